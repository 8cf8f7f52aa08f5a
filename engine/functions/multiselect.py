"""Several values packed in one text, as each system packs them.

It must never split at a comma (labels hold commas) nor at the semicolon that ends an HTML entity, and it
never gives half a list: text that is a list in a form not known here is a reason.
"""

from __future__ import annotations

import json
import re

from engine.functions.protocol import DomainFunction, Outcome, Reason
from engine.functions.text import ENTITY, trimmed, undone

_NOT_A_LIST = Reason("not a list of values")
_PHP_ARRAY = re.compile(r"a:[0-9]+:\{.*\}", re.DOTALL)
_MAX_DEPTH = 200  # json's parser recurses; deeper text is refused before it is parsed


def _at_semicolons(text: str) -> list[str]:
    if "&" not in text:
        return text.split(";")
    ends = {m.end() - 1 for m in ENTITY.finditer(text) if undone(m.group()) is not None}
    parts, start = [], 0
    for i, character in enumerate(text):
        if character == ";" and i not in ends:
            parts.append(text[start:i])
            start = i + 1
    return [*parts, text[start:]]


def _from_json(text: str) -> list[str] | None:
    """The elements of a JSON array of texts, numbers and booleans; None where it is anything else."""
    if text.count("[") + text.count("{") > _MAX_DEPTH:
        return None
    try:
        # Numbers keep their own spelling: 1.10 is a label here, no quantity.
        elements = json.loads(text, parse_int=str, parse_float=str, parse_constant=str)
        "".join(e for e in elements if isinstance(e, str)).encode()  # an escape can spell half a surrogate pair
    except (ValueError, RecursionError):
        return None
    values = []
    for element in elements:
        if isinstance(element, bool):
            values.append("true" if element else "false")
        elif isinstance(element, str):
            values.append(element)
        elif element is not None:
            return None
    return values


def _unpacked(text: str) -> list[str] | None:
    if "\x01" in text:  # CiviCRM
        return text.split("\x01")
    if "|##|" in text:  # vtiger, YetiForce
        return text.split("|##|")
    if len(text) > 1 and text[0] == "^" and text[-1] == "^":  # SuiteCRM; "^^" is its empty list
        return text[1:-1].split("^,^")
    if "^,^" in text:  # older Sugar, without the outer marks
        return text.split("^,^")
    if text[0] == "[" and text[-1] == "]" and ("," in text or '"' in text or text.strip("[] ") == ""):
        return _from_json(text)  # "[Other]" is a label
    if _PHP_ARRAY.fullmatch(text):
        return None
    if ";" in text:  # Salesforce, HubSpot
        return _at_semicolons(text)
    if "|" in text and not any(p != p.strip() or not p for p in text.split("|")):  # Mautic: no spaces around
        return text.split("|")
    return [text]


def multiselect(value: str | None) -> Outcome:
    """The values in the order given, each once, without spaces at their ends; [] for NULL and blank text.

    Known: `^a^,^b^` (SuiteCRM), `a |##| b` (vtiger, YetiForce), `a;b` (Salesforce, HubSpot), `a|b` (Mautic),
    values wrapped in \\x01 (CiviCRM), a JSON array of plain values. Other text is one value. A PHP array,
    a nested or broken JSON array are the reason `not a list of values`.
    """
    text = trimmed(value)
    if not text:
        return [], None
    parts = _unpacked(text)
    if parts is None:
        return None, _NOT_A_LIST
    return list(dict.fromkeys(p for p in map(trimmed, parts) if p)), None


MULTISELECT = DomainFunction("multiselect", ("value",), 0, "VARCHAR[]", multiselect)
