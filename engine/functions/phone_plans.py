"""Numbering plans compiled for speed: the numbers that phonenumbers would take as they stand.

A million different numbers cost phonenumbers a minute. Here its own metadata becomes one pattern per
calling code and length. It must never accept what phonenumbers refuses, nor give another number: wherever
a rule is not plain (a prefix that is rewritten, digits that may be a calling code) there is no answer.
tests/test_functions_phone.py holds the two against each other in every region.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from phonenumbers import COUNTRY_CODE_TO_REGION_CODE, PhoneMetadata

_TYPES = (
    "fixed_line mobile toll_free premium_rate shared_cost voip personal_number pager uan voicemail".split()  # noqa: SIM905
)


_NOTHING = r"\Z."  # matches no text


@dataclass(frozen=True)
class _Region:
    """One region's numbers: a pattern per length; `leading` claims a number for the region, valid or not."""

    leading: re.Pattern[str] | None
    by_length: dict[int, re.Pattern[str]]

    def holds(self, nsn: str) -> bool:
        pattern = self.by_length.get(len(nsn))
        return pattern is not None and pattern.fullmatch(nsn) is not None


@dataclass(frozen=True)
class _Prefixes:
    """What may stand before a national number. `rewrites`: the last group of `trunk`, where it matches, is put
    elsewhere. `code_is_trunk`: a first 1 is the calling code or the trunk prefix, and goes in either case."""

    international: re.Pattern[str]
    calling_code: str
    code_is_trunk: bool
    trunk: re.Pattern[str] | None
    rewrites: bool
    after_trunk: re.Pattern[str]
    lengths_after_trunk: frozenset[int]


def _general(metadata: PhoneMetadata) -> str:
    general = metadata.general_desc
    return (general.national_number_pattern if general is not None else None) or _NOTHING


def _compiled(metadata: PhoneMetadata) -> _Region:
    general = metadata.general_desc
    by_length = {}
    for length in general.possible_length if general is not None else ():
        patterns = []
        for name in _TYPES:
            kind = getattr(metadata, name)
            if kind is None or not kind.national_number_pattern:
                continue
            if not kind.possible_length or length in kind.possible_length:
                patterns.append(kind.national_number_pattern)
        if patterns:
            either = "|".join(dict.fromkeys(patterns))
            by_length[length] = re.compile(rf"(?=(?:{_general(metadata)})\Z)(?:{either})")
    leading = metadata.leading_digits
    return _Region(re.compile(leading) if leading else None, by_length)


@lru_cache(maxsize=512)
def _regions(calling_code: str) -> tuple[_Region, ...]:
    """The regions that share a calling code, in the order in which phonenumbers asks them."""
    code = int(calling_code)
    every = (PhoneMetadata.metadata_for_region_or_calling_code(code, r) for r in COUNTRY_CODE_TO_REGION_CODE[code])
    return tuple(_compiled(m) for m in every if m is not None)


@lru_cache(maxsize=512)
def _trunk_of_code(calling_code: str) -> re.Pattern[str] | None:
    code = int(calling_code)
    main = PhoneMetadata.metadata_for_region_or_calling_code(code, COUNTRY_CODE_TO_REGION_CODE[code][0])
    prefix = main.national_prefix_for_parsing if main is not None else None
    return re.compile(prefix) if prefix else None


@lru_cache(maxsize=512)
def _prefixes(region: str) -> _Prefixes | None:
    metadata = PhoneMetadata.metadata_for_region(region, None)
    if metadata is None:
        return None
    general, prefix = metadata.general_desc, metadata.national_prefix_for_parsing
    lengths = frozenset(general.possible_length) - frozenset(general.possible_length_local_only) if general else ()
    return _Prefixes(
        international=re.compile(metadata.international_prefix or _NOTHING),
        calling_code=str(metadata.country_code),
        code_is_trunk=prefix == str(metadata.country_code),
        trunk=re.compile(prefix) if prefix else None,
        rewrites=bool(metadata.national_prefix_transform_rule),
        after_trunk=re.compile(_general(metadata)),
        lengths_after_trunk=frozenset(lengths),
    )


def _is_valid(calling_code: str, nsn: str) -> bool:
    regions = _regions(calling_code)
    if len(regions) == 1:
        return regions[0].holds(nsn)
    for region in regions:
        if region.leading is not None:
            if region.leading.match(nsn):
                return region.holds(nsn)
        elif region.holds(nsn):
            return True
    return False


def _begins(digits: str, prefix: re.Pattern[str] | None) -> bool:
    """True where a prefix stands at the beginning; patterns that may match nothing (Argentina's) say so."""
    match = prefix.match(digits) if prefix is not None else None
    return match is not None and (match.end() > 0 or match.lastindex is not None)


_CODES = frozenset(str(code) for code in COUNTRY_CODE_TO_REGION_CODE)


def plain_international(digits: str) -> str | None:
    """E.164 of the digits behind a `+`, or None where phonenumbers has to be asked."""
    for length in (1, 2, 3):
        code = digits[:length]
        if code in _CODES:
            nsn = digits[length:]
            plain = not _begins(nsn, _trunk_of_code(code)) and _is_valid(code, nsn)
            return "+" + digits if plain else None
    return None


def plain_national(digits: str, region: str) -> str | None:
    """E.164 of the digits dialled within a region, or None where phonenumbers has to be asked."""
    prefixes = _prefixes(region)
    if prefixes is None or prefixes.international.match(digits):
        return None
    if digits.startswith(prefixes.calling_code) and not prefixes.code_is_trunk:
        return None
    nsn = digits
    trunk = prefixes.trunk.match(digits) if prefixes.trunk is not None else None
    if trunk is not None:
        if prefixes.rewrites and trunk.groups() and trunk.groups()[-1] is not None:
            return None
        nsn = digits[trunk.end() :]
        if len(nsn) not in prefixes.lengths_after_trunk or not prefixes.after_trunk.fullmatch(nsn):
            return None
        if prefixes.code_is_trunk and _begins(nsn, prefixes.trunk):
            return None
    return f"+{prefixes.calling_code}{nsn}" if _is_valid(prefixes.calling_code, nsn) else None
