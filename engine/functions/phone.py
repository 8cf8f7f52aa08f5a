"""Phone numbers as people type them, to E.164.

What phonenumbers takes for a valid number is one; nothing is dropped without a word: letters, a second
number or an extension are reasons, never cut off. `phone_plans` answers for plain numbers at a small part
of the price, and only where it is proved to answer alike; `phones` does so for a column.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache
from itertools import repeat

import phonenumbers
import pyarrow as pa
import pyarrow.compute as pc
from phonenumbers import NumberParseException, PhoneNumberFormat, ValidationResult
from phonenumbers.re_util import enable_pattern_cache

from engine.functions.columns import cleaned, left
from engine.functions.country import country as iso_country
from engine.functions.phone_plans import (
    BY_BEGINNING,
    NO_REGION,
    Plan,
    plain_international,
    plain_national,
    plan_of_region,
)
from engine.functions.protocol import Answers, DomainFunction, Outcome, Reason
from engine.functions.text import trimmed

enable_pattern_cache()

_LETTERS = Reason("not a phone number: letters")
_CHARACTERS = Reason("not a phone number")
_TOO_SHORT = Reason("not a phone number: too short")
_TOO_LONG = Reason("not a phone number: too long")
_NO_SUCH = Reason("not a phone number: no such number")
_PLACEHOLDER = Reason("not a phone number: placeholder")
_EXTENSION = Reason("phone number with an extension")
_SEVERAL = Reason("several phone numbers")
_NO_COUNTRY = Reason("phone number without a country")
_UNKNOWN_COUNTRY = Reason("phone number of an unknown country")

_LONGEST = 250  # as the library has it
_DASHES = str.maketrans(
    dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212\u30fc", "-")
    | dict.fromkeys("\xad\u200b\u200e\u200f\u202a\u202c\u2060\ufeff")
)
_NUMBER = re.compile(r"\(?\+?[0-9 \t()\[\]./-]+")
_SEPARATORS = b" \t()[]./-"
# Behind a slash, one to three digits after a whole number: the other end of a range of lines, no part of it.
_OTHER_LINE = re.compile(r"(?:[0-9][^0-9/]*){7,}/ ?[0-9]{1,3}")
_EXTENDED = re.compile(
    r"(?:ext(?:ension)?|extn|ext|xt|x|#|dw|durchwahl|poste|int|interno|anexo|ramal|wew)[ .:=#]*[0-9]{1,7}\)?#?",
    re.IGNORECASE,
)
_TWO = re.compile(r"[0-9][ )]*(?:[,;|&\n]|or|oder|ou|and|und|et)[ (]*\+?[ (]*[0-9]", re.IGNORECASE)
_TRUNK_ZERO = re.compile(r"[(\[] ?0 ?[)\]]")
_RUNS = ("1234567890" * 3, "9876543210" * 3, *(digit * 20 for digit in "0123456789"))
_ODD_ENDS = " ".join(_RUNS)


@lru_cache(maxsize=4096)
def _region(name: str | None) -> tuple[str | None, Reason | None]:
    """The region that a plan's country names; None and None for no country."""
    given = trimmed(name).upper()
    if given in phonenumbers.SUPPORTED_REGIONS:
        return given, None  # XK among them, which has numbers but no ISO code
    code, reason = iso_country(name)
    if reason is not None:
        return None, _UNKNOWN_COUNTRY
    assert code is None or isinstance(code, str)
    if code is not None and code not in phonenumbers.SUPPORTED_REGIONS:
        return None, _UNKNOWN_COUNTRY
    return code, None


def _refused(text: str) -> Reason:
    """Why a text holds more, or something else, than the characters of one number."""
    for extension in _EXTENDED.finditer(text):
        if extension.end() == len(text) and _NUMBER.fullmatch(text[: extension.start()].rstrip(" ,;.-/(") or "x"):
            return _EXTENSION
    if _TWO.search(text):
        return _SEVERAL
    return _LETTERS if any(c.isalpha() for c in text) else _CHARACTERS


def _is_placeholder(digits: str) -> bool:
    """True for one digit repeated and for a run such as 123456, 0123456789 or 2345678901."""
    run = digits.lstrip("0")
    return run in _ODD_ENDS


def _by_library(number: str, region: str | None) -> Outcome:
    """What phonenumbers makes of `+` and digits, or of digits dialled within a region."""
    try:
        parsed = phonenumbers.parse(number, region)
    except NumberParseException as error:
        if error.error_type == NumberParseException.INVALID_COUNTRY_CODE:
            return None, _NO_SUCH
        return None, _TOO_LONG if error.error_type == NumberParseException.TOO_LONG else _TOO_SHORT
    if phonenumbers.is_valid_number(parsed):
        return phonenumbers.format_number(parsed, PhoneNumberFormat.E164), None
    possible = phonenumbers.is_possible_number_with_reason(parsed)
    if possible in (ValidationResult.TOO_SHORT, ValidationResult.IS_POSSIBLE_LOCAL_ONLY):
        return None, _TOO_SHORT
    return None, _TOO_LONG if possible == ValidationResult.TOO_LONG else _NO_SUCH


def _digits(text: str) -> str:
    """The digits of a text that `_NUMBER` matches, with its `+` where it has one."""
    return text.encode().translate(None, _SEPARATORS).decode()


def _international(digits: str) -> Outcome:
    plain = plain_international(digits)
    return (plain, None) if plain is not None else _by_library("+" + digits, None)


def _national(digits: str, region: str) -> Outcome:
    plain = plain_national(digits, region)
    return (plain, None) if plain is not None else _by_library(digits, region)


def _e164(text: str, digits: str, country: str | None) -> Outcome:
    """The outcome for a text that `_NUMBER` matches and its digits, with or without a `+` before them."""
    if digits[0] == "+":
        outcome = _international(digits[1:])
        if outcome[0] is None and _TRUNK_ZERO.search(text):
            # `+48 (0) 22...`: a zero for callers at home, in a country whose plan knows none.
            without = _international(_digits(_TRUNK_ZERO.sub("", text, count=1))[1:])
            return without if without[0] is not None else outcome
        return outcome
    region, unknown = _region(country)
    if region is not None:
        outcome = _national(digits, region)
        if outcome[0] is not None or not digits.startswith("00"):
            return outcome
    if digits.startswith("00"):
        return _international(digits[2:])
    return None, unknown or _NO_COUNTRY


def phone(value: str | None, country: str | None = None) -> Outcome:
    """The number in E.164 (`+498912345678`), read as dialled in `country`: a code or a name, as in `country()`.

    A number with `+` or `00` needs no country. `(0)`, spaces, slashes, dots, dashes and brackets go. NULL for
    NULL and blank text. Reasons: letters or other characters; too short; too long; no such number; a
    placeholder (000000, 1234567); several numbers; an extension, which E.164 has no place for
    (`regexp_replace` in the plan can drop it, knowingly); no country, or an unknown one, for a national number.
    """
    text = trimmed(value)
    if not text:
        return None, None
    if len(text) > _LONGEST:
        return None, _TOO_LONG
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text).translate(_DASHES).strip()
        text = "".join(str(unicodedata.decimal(c)) if c.isdecimal() else c for c in text)
    if text[:4].lower() == "tel:":
        text = text[4:].lstrip()
    if not _NUMBER.fullmatch(text):
        return None, _refused(text)
    digits = _digits(text)
    if len(digits) < 3:
        return None, _TOO_SHORT
    if "/" in text and _OTHER_LINE.fullmatch(text):
        return None, _SEVERAL
    if _is_placeholder(digits.lstrip("+")):
        return None, _PLACEHOLDER
    found, reason = _e164(text, digits, country)
    odd = isinstance(found, str) and found[-6:] in _ODD_ENDS
    if odd and _is_placeholder(str(phonenumbers.parse(str(found)).national_number)):
        return None, _PLACEHOLDER
    return found, reason


# A slash in front of four digits is in no number that `_OTHER_LINE` matches.
_HARMLESS_SLASH = re.compile(r"/(?= ?[0-9]{4})")
_PLAIN_SEPARATORS = _SEPARATORS.replace(b"/", b"")
# A placeholder of six digits or more ends in one of these.
_NOT_PLAIN = frozenset(run[at : at + 6] for run in _RUNS for at in range(len(run) - 5)) | {""}
_LONG_ENOUGH = 10  # characters of E.164: six digits at least behind the calling code, so that the above holds


def phones(values: pa.Array, countries: pa.Array | None = None) -> Answers:
    """The numbers of texts that hold nothing but digits, usual separators and a `+` in front, where they are plain."""
    texts = pc.if_else(pc.less_equal(pc.binary_length(values), _LONGEST), values, "").fill_null("").to_pylist()
    numbers = cleaned(texts, _PLAIN_SEPARATORS, _HARMLESS_SLASH)
    found: list[str | None] = []
    for text, number, dialled in zip(texts, numbers, _plans(countries, len(texts)), strict=True):
        if number[-6:] in _NOT_PLAIN:
            found.append(None)
            continue
        plan: Plan | None = dialled
        if number[0] == "+":
            first = text[0] == "+" or text.lstrip(" ").startswith(("+", "(+"))
            plan = BY_BEGINNING.get(number[1:4]) if first else None
        elif number[:2] == "00" and (begin := dialled.abroad.match(number)):
            number = f"+{number[begin.end() :]}"
            plan = BY_BEGINNING.get(number[1:4])
        if plan is not None and (match := plan.by_length[len(number)](number)):
            e164 = plan.start + match[match.lastindex or 0]
            found.append(e164 if len(e164) >= _LONG_ENOUGH else None)
        else:
            found.append(None)
    answers = pa.array(found, pa.string())
    return answers, left(values, answers.is_valid())


def _plans(countries: pa.Array | None, rows: int) -> Iterable[Plan]:
    """How each row's number is dialled, by its country."""
    if countries is None:
        return repeat(NO_REGION, rows)
    named = countries.dictionary_encode(null_encoding="encode")
    regions = [_region(name)[0] for name in named.dictionary.to_pylist()]
    plans = [plan_of_region(region) or NO_REGION if region is not None else NO_REGION for region in regions]
    return map(plans.__getitem__, named.indices.to_pylist())


PHONE = DomainFunction("phone", ("value", "country"), 1, "VARCHAR", phone, columns=phones)
