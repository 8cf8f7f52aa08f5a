"""Countries as people write them, to the ISO 3166-1 code of two letters.

Exact after folding case, accents and dots; it must never guess by likeness: a name that is unknown, means
two countries, or means one that is no more, is a reason.
"""

from __future__ import annotations

import gettext
import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache

import pycountry

from engine.functions import country_names
from engine.functions.protocol import DomainFunction, Outcome, Reason
from engine.functions.text import trimmed

_UNKNOWN = Reason("unknown country")
_AMBIGUOUS = Reason("ambiguous country")
_FORMER = Reason("former country")
_WITHOUT_CODE = Reason("country without an iso code")

_LONGEST = 100  # the longest official name has 80 characters or so
_UNFOLDED = str.maketrans(
    {"ø": "o", "ł": "l", "đ": "d", "ð": "d", "þ": "th", "æ": "ae", "œ": "oe", "ı": "i", ".": None}
)
_SPELT_OUT = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "å": "aa", "ø": "oe"})
_SHORT = {"st": "saint", "ste": "saint", "rep": "republic"}
_AND = frozenset({"and", "und", "et", "y", "e", "en", "i", "og", "och", "ja", "a"})


def _folded(text: str) -> str:
    """Lower case without accents, dots and punctuation; `u s a` is `usa`; a leading `the` goes."""
    plain = unicodedata.normalize("NFKD", text.casefold().translate(_UNFOLDED))
    plain = "".join(c for c in plain if not unicodedata.combining(c)).translate(_UNFOLDED)
    words = [_SHORT.get(w, w) for w in re.sub(r"[\W_]+", " ", plain).split()]
    if len(words) > 1 and words[0] == "the":
        words = words[1:]
    if len(words) > 1 and all(len(w) == 1 and w.isascii() for w in words):
        return "".join(words)
    return " ".join(words)


def _spellings(name: str) -> Iterator[str]:
    """The ways to write one name that fold differently: oe for ö, & for and."""
    for text in {name, unicodedata.normalize("NFC", name).casefold().translate(_SPELT_OUT)}:
        folded = _folded(text)
        yield folded
        words = folded.split()
        if len(words) > 2:
            yield " ".join(w for w in words if w not in _AND)


def _agrees(official: str, short: str) -> bool:
    """True where a long name has a word that begins like one of the short name.

    A few of the catalogues' official names were copied from another country's; these are left out.
    """
    begins = {w[:4] for w in _folded(short).split() if len(w) >= 4}
    return any(w[:4] in begins for w in _folded(official).split())


def _official_names() -> Iterator[tuple[str, str]]:
    """Each name that ISO and its translators give, with its code; in English also the part before a comma."""
    for country in pycountry.countries:
        for attribute in ("name", "common_name", "official_name"):
            if name := getattr(country, attribute, None):
                yield name, country.alpha_2
        yield re.split(r"[,(]", country.name)[0], country.alpha_2
    for language in country_names.LANGUAGES:
        translated = gettext.translation("iso3166-1", pycountry.LOCALES_DIR, languages=[language]).gettext
        for country in pycountry.countries:
            short = translated(country.name)
            yield short, country.alpha_2
            if common := getattr(country, "common_name", None):
                yield translated(common), country.alpha_2
            official = getattr(country, "official_name", None)
            if official and _agrees(translated(official), short):
                yield translated(official), country.alpha_2


@lru_cache(maxsize=1)
def _codes() -> dict[str, str | Reason]:
    """Two or three letters, upper case, to the ISO code of two, or to the reason why there is none."""
    codes: dict[str, str | Reason] = {}
    for country in pycountry.historic_countries:
        codes |= dict.fromkeys((country.alpha_2, country.alpha_3), _FORMER)
    codes |= dict.fromkeys(country_names.WITHOUT_CODE_LETTERS, _WITHOUT_CODE)
    codes |= country_names.CODES
    codes |= {country.alpha_3: country.alpha_2 for country in pycountry.countries}
    codes |= {country.alpha_2: country.alpha_2 for country in pycountry.countries}
    return codes


@lru_cache(maxsize=1)
def _names() -> dict[str, str | Reason]:
    """Folded name to ISO code, or to the reason why there is none. Built at first use, half a second."""
    names: dict[str, str | Reason] = {}
    for country in pycountry.historic_countries:
        names[_folded(country.name.split(",")[0])] = _FORMER
    names |= {_folded(name): _FORMER for name in country_names.FORMER}
    claims: dict[str, set[str]] = {}
    for name, code in _official_names():
        for spelling in _spellings(name):
            claims.setdefault(spelling, set()).add(code)
    names |= {name: next(iter(codes)) if len(codes) == 1 else _AMBIGUOUS for name, codes in claims.items()}
    for code, others in country_names.NAMES.items():
        names |= {spelling: code for name in others for spelling in _spellings(name)}
    names |= {_folded(name): _AMBIGUOUS for name in country_names.AMBIGUOUS}
    names |= {_folded(name): _WITHOUT_CODE for name in country_names.WITHOUT_CODE}
    return names


def country(value: str | None) -> Outcome:
    """The ISO code of two letters for a code of two or three letters or a name in any of many languages.

    NULL for NULL and blank text. Reasons: `unknown country`; `ambiguous country` (Korea, Congo);
    `former country` (Yugoslavia); `country without an iso code` (Kosovo). Two letters are always a country's
    code: `CA` is Canada, never California.
    """
    text = trimmed(value)
    if not text:
        return None, None
    if len(text) > _LONGEST:
        return None, _UNKNOWN
    # Codes before folding: a short name that loses its accents would turn into another country's code.
    letters = text.replace(".", "").replace(" ", "")
    if len(letters) <= 3 and letters.isascii():
        found = _codes().get(letters.upper(), _UNKNOWN)
    else:
        found = _names().get(_folded(text), _UNKNOWN)
    return (found, None) if isinstance(found, str) else (None, found)


COUNTRY = DomainFunction("country", ("value",), 0, "VARCHAR", country)
