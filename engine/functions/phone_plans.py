"""Numbering plans compiled for speed: the numbers that phonenumbers would take as they stand.

A million different numbers cost phonenumbers a minute. Here its own metadata becomes one pattern for each
region and number of digits. It must never accept what phonenumbers refuses, nor give another number: wherever
a rule is not plain (a prefix that is rewritten, digits that may be a calling code) there is no answer.
tests/test_functions_phone.py holds the two against each other in every region.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial

from phonenumbers import COUNTRY_CODE_TO_REGION_CODE, PhoneMetadata

_TYPES = (
    "fixed_line mobile toll_free premium_rate shared_cost voip personal_number pager uan voicemail".split()  # noqa: SIM905
)
_NOTHING = r"\Z."  # matches no text
_MOST_DIGITS = 20  # with prefixes; a number has 17 at most
_Matching = Callable[[str], "re.Match[str] | None"]


class _ByLength(dict[int, _Matching]):
    """What takes texts of a length: a pattern whose last group is the national number, made when first needed.

    Digits of other scripts, which `phone` turns into ours before, are not taken.
    """

    def __init__(self, pattern: Callable[[int], str]) -> None:
        self._pattern = pattern

    def __missing__(self, length: int) -> _Matching:
        pattern = self._pattern(length) if length <= _MOST_DIGITS else ""
        matching = re.compile(pattern, re.ASCII).fullmatch if pattern else _no_match
        if length <= _MOST_DIGITS:
            self[length] = matching
        return matching


def _no_match(_: str) -> None:
    return None


@dataclass(frozen=True)
class Plan:
    """Numbers as written in one way: with a `+` and one calling code, or as dialled in one region.

    Where `by_length[len(text)](text)` matches a text, `start` and the last group are the number in E.164.
    `abroad` matches what is dialled before a calling code.
    """

    start: str
    by_length: _ByLength
    abroad: re.Pattern[str]


def _inner(pattern: str | None) -> str:
    """A pattern of the metadata as a part of another, whose groups it must not count among."""
    return "(?:" + re.sub(r"\((?!\?)", "(?:", pattern) + ")" if pattern else _NOTHING


def _general(metadata: PhoneMetadata) -> str:
    general = metadata.general_desc
    return _inner(general.national_number_pattern if general is not None else None)


def _region_numbers(metadata: PhoneMetadata, length: int) -> str:
    """The national numbers of one region with so many digits; empty where there are none."""
    general = metadata.general_desc
    if general is None or length not in general.possible_length:
        return ""
    patterns = []
    for name in _TYPES:
        kind = getattr(metadata, name)
        if kind is None or not kind.national_number_pattern:
            continue
        if not kind.possible_length or length in kind.possible_length:
            patterns.append(_inner(kind.national_number_pattern))
    return rf"(?={_general(metadata)}\Z)(?:{'|'.join(dict.fromkeys(patterns))})" if patterns else ""


@lru_cache(maxsize=512)
def _regions(calling_code: str) -> tuple[PhoneMetadata, ...]:
    """The regions that share a calling code, in the order in which phonenumbers asks them."""
    code = int(calling_code)
    every = (PhoneMetadata.metadata_for_region_or_calling_code(code, r) for r in COUNTRY_CODE_TO_REGION_CODE[code])
    return tuple(m for m in every if m is not None)


@lru_cache(maxsize=256)
def _numbers(calling_code: str, length: int) -> str:
    """The national numbers of all regions of a calling code with so many digits; empty where there are none.

    `leading_digits` claims a number for its region, valid or not: no region behind it is asked.
    """
    regions = _regions(calling_code)
    if len(regions) == 1:
        return _region_numbers(regions[0], length)
    numbers = ""
    for metadata in reversed(regions):
        own = _region_numbers(metadata, length)
        if metadata.leading_digits:
            claimed = _inner(metadata.leading_digits)
            others = f"(?!{claimed})(?:{numbers})" if numbers else ""
            own = f"(?={claimed}){own}" if own else ""
        else:
            others = numbers
        numbers = "|".join(filter(None, (own, others)))
    return f"(?:{numbers})" if numbers else ""


def _with_trunk(metadata: PhoneMetadata, length: int, begin: str, *, once: bool) -> str:
    """What stands behind `begin`: a national number of the region's calling code, or the trunk prefix and one.

    Only the region's one usual trunk prefix is taken, and only where phonenumbers would take it off, too. A
    number that begins with what may be another prefix, or with one that is rewritten, is not plain.
    """
    code = str(metadata.country_code)
    trunk = metadata.national_prefix_for_parsing
    if not trunk:
        return f"({_numbers(code, length)})" if _numbers(code, length) else ""
    first = f"(?>{_inner(trunk)})"
    ways = []
    if _numbers(code, length):
        ways.append(rf"(?!{first}(?<!\A{begin}))({_numbers(code, length)})")
    usual = metadata.national_prefix or ""
    alone = re.fullmatch(trunk, usual) if usual.isdigit() else None
    rest = length - len(usual)
    general = metadata.general_desc
    lengths = set(general.possible_length) - set(general.possible_length_local_only) if general is not None else set()
    if alone is not None and alone.lastindex is None and rest in lengths and _numbers(code, rest):
        again = f"(?!{_inner(trunk)})" if once else ""
        viable = rf"(?={_general(metadata)}\Z)"
        ways.append(rf"(?={first}[0-9]{{{rest}}}\Z){usual}{viable}{again}({_numbers(code, rest)})")
    return f"(?:{'|'.join(ways)})" if ways else ""


def _international(code: str, length: int) -> str:
    begin = rf"\+{code}"
    behind = _with_trunk(_regions(code)[0], length - 1 - len(code), begin, once=False)
    return begin + behind if behind else ""


def _dialled(metadata: PhoneMetadata, length: int) -> str:
    code = str(metadata.country_code)
    # Where the code is the trunk prefix, too, a first 1 goes in either case, but two of them are not plain.
    both = code == metadata.national_prefix_for_parsing
    behind = _with_trunk(metadata, length, "", once=both)
    if not behind:
        return ""
    abroad = f"(?!{_inner(metadata.international_prefix)})"
    # Five digits or fewer behind zeros may be a placeholder: `phone` looks closer.
    return f"(?!0{{{max(length - 5, 0)}}}){abroad}{'' if both else f'(?!{code})'}{behind}"


_ABROAD = re.compile("00")


def _plan_of_code(code: str) -> Plan:
    return Plan("+" + code, _ByLength(partial(_international, code)), _ABROAD)


def _by_beginning() -> dict[str, Plan]:
    plans = {str(code): _plan_of_code(str(code)) for code in COUNTRY_CODE_TO_REGION_CODE}
    beginnings = (f"{n:03d}" for n in range(1000))
    found = (
        (digits, next((plans[digits[:n]] for n in (1, 2, 3) if digits[:n] in plans), None)) for digits in beginnings
    )
    return {digits: plan for digits, plan in found if plan is not None}


BY_BEGINNING = _by_beginning()
"""By the first three digits behind a `+`: the plan of the calling code, which takes the text with its `+`."""

NO_REGION = Plan("", _ByLength(lambda _: ""), _ABROAD)
"""Where nobody knows in which region a number is dialled: `00` begins a calling code, nothing else is plain."""


@lru_cache(maxsize=512)
def plan_of_region(region: str) -> Plan | None:
    """The plan of digits as dialled within a region; None for a region that has no numbers."""
    metadata = PhoneMetadata.metadata_for_region(region, None)
    if metadata is None:
        return None
    abroad = re.compile(metadata.international_prefix or _NOTHING, re.ASCII)
    return Plan(f"+{metadata.country_code}", _ByLength(partial(_dialled, metadata)), abroad)


def plain(text: str, dialled: Plan) -> str | None:
    """E.164 of a `+` and digits, or of digits as dialled, or None where phonenumbers has to be asked."""
    plan: Plan | None = dialled
    if text[:1] == "+":
        plan = BY_BEGINNING.get(text[1:4])
    elif begin := dialled.abroad.match(text):
        return plain("+" + text[begin.end() :], dialled)
    match = plan.by_length[len(text)](text) if plan is not None else None
    return f"{plan.start}{match[match.lastindex or 0]}" if plan is not None and match is not None else None


def plain_international(digits: str) -> str | None:
    """E.164 of the digits behind a `+`, or None where phonenumbers has to be asked."""
    return plain("+" + digits, NO_REGION)


def plain_national(digits: str, region: str) -> str | None:
    """E.164 of the digits dialled within a region, or None where phonenumbers has to be asked."""
    plan = plan_of_region(region)
    return plain(digits, plan) if plan is not None else None
