"""Signatures of lessons: what stays the same from one job to the next, with every record value taken out.

They are kept across jobs and may be handed to other people, so a value becomes its shape here, whoever made
the signature and whatever they left in it.
"""

from __future__ import annotations

import re
import unicodedata

_LONGEST = 200
_QUOTED = re.compile(r"(?<!\w)['\"].*['\"]|(?<!\w)['\"].*", re.DOTALL)
_ADDRESS = re.compile(r"\S+@\S+|\w+://\S+")
_NUMBER = re.compile(r"\d+", re.UNICODE)
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_CUSTOM = re.compile(r"_{1,2}c$")  # how SugarCRM's family and Salesforce end the names of custom columns


def shape(value: str) -> str:
    """The value with digits as 9, letters as a or A, white space as a blank, all else as it is."""
    return "".join(map(_shape_of, value))


def normalise(signature: str) -> str:
    """A signature as it is kept: lower case, single blanks, numbers as 9, what stands in quotes (from the
    first to the last) and addresses as shapes, at most 200 characters. Doing it twice changes nothing."""
    text = signature
    for _ in range(5):  # lower-casing and cutting may call for one more round
        text, before = _normalised(text), text
        if text == before:
            break
    return text


def column_pattern(column: str) -> str:
    """A column's name as lessons know it: `EmailAddress2`, `email_address_2` and `email_address1_c` are all
    `email_address_9`."""
    words = _CAMEL.sub("_", unicodedata.normalize("NFKC", column)).casefold()
    words = _CUSTOM.sub("", re.sub(r"\W+", "_", words))
    words = re.sub(r"(?<=[^\W\d_])(?=\d)", "_", words)
    return _NUMBER.sub("9", re.sub("_+", "_", words)).strip("_")


def match_signature(table: str, column: str) -> str:
    """What a lesson on a match is about: this column of this table. Its remedy is the target field."""
    return f"{column_pattern(table)}.{column_pattern(column)}"


def value_map_signature(column: str, labels: list[str]) -> str:
    """What a lesson on a value map is about: values of such a column going to these labels of the target's
    enum (part of its schema, no record values). Its remedy is the map."""
    return f"{column_pattern(column)} to {'|'.join(sorted(label.casefold() for label in labels))}"


def _normalised(text: str) -> str:
    text = unicodedata.normalize("NFKC", text)
    quoted = _QUOTED.search(text)
    start, end = quoted.span() if quoted else (len(text), len(text))
    made = _outside(text[:start]) + shape(text[start:end]) + _outside(text[end:])
    return " ".join(made.split())[:_LONGEST].rstrip()


def _outside(text: str) -> str:
    kept: list[str] = []
    end = 0
    for found in _ADDRESS.finditer(text):
        kept += [text[end : found.start()], shape(found.group())]
        end = found.end()
    kept.append(text[end:])
    return _NUMBER.sub("9", "".join(kept).casefold())


def _shape_of(character: str) -> str:
    category = unicodedata.category(character)
    if category.startswith("N"):
        return "9"
    if category in ("Lu", "Lt"):
        return "A"
    if category[0] in "LM":
        return "a"
    if category[0] in "ZC":
        return " "
    return character
