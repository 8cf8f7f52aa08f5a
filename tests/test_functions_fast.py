"""Each fast path against the library it stands in for: mails, entities, mojibake, uuids, amounts."""

from __future__ import annotations

import html
import re
import uuid
from decimal import Decimal
from html.entities import html5
from itertools import pairwise
from re._constants import BRANCH, IN, LITERAL, RANGE  # type: ignore[import-not-found]
from re._parser import parse  # type: ignore[import-not-found]
from typing import Any

import email_validator
import ftfy
import pyarrow as pa
import pyarrow.compute as pc
from ftfy.badness import BADNESS_RE, is_bad
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from engine.functions.email import _PLAIN, _by_library, email
from engine.functions.identity import uuid5
from engine.functions.money import _LONGEST, money
from engine.functions.money import _PLAIN as _PLAIN_AMOUNT
from engine.functions.text import _ENCODING_ONLY, _SUSPECT, _reread, html_text, mojibake

ALNUM = "aZ09xn"
atoms = st.text(ALNUM + "_+-", min_size=1, max_size=8)
labels = st.text(ALNUM + "-", min_size=1, max_size=7) | st.integers(30, 64).map(
    lambda n: "a-" * (n // 2) + "a" * (n % 2)
)
plain_mails = st.builds(
    lambda local, domain, top: f"{'.'.join(local)}@{'.'.join([*domain, top])}",
    st.lists(atoms, min_size=1, max_size=4),
    st.lists(labels, min_size=1, max_size=4),
    st.text("aZ1-", min_size=1, max_size=6) | st.just("q" * 63),
).filter(lambda text: len(text) <= 254 and _PLAIN.fullmatch(text) is not None)


@settings(max_examples=500, deadline=None)
@given(plain_mails)
def test_plain_mails_are_what_the_validator_gives(address: str) -> None:
    valid = email_validator.validate_email(address, check_deliverability=False)
    assert email(address) == (address.lower(), None) == (valid.normalized.lower(), None) == _by_library(address)


@settings(max_examples=500, deadline=None)
@given(plain_mails, st.sampled_from(list(".-_@+xX0 '\u00fc\u0130\n\x00")), st.floats(0, 1))
def test_mails_a_character_off(address: str, character: str, where: float) -> None:
    """At the edge of the fast path's pattern both still agree: it takes the address, or leaves it to the validator."""
    at = int(where * len(address))
    changed = address[:at] + character + address[at:]
    assume(len(changed) <= 254)
    if _PLAIN.fullmatch(changed):
        assert _by_library(changed) == (changed.lower(), None)


@settings(max_examples=300, deadline=None)
@given(plain_mails)
def test_a_mail_once_given_stays(address: str) -> None:
    once, _ = email(f" {address.title()} ")
    assert isinstance(once, str)
    assert email(once) == (once, None)


def strict_unescape(text: str) -> str:
    """The standard library's own unescape, one entity with a semicolon at a time."""
    return re.sub(r"&(#[0-9]+|#[xX][0-9a-fA-F]+|[A-Za-z0-9]+);", lambda m: html.unescape(m.group()), text)


known = st.sampled_from(sorted(name for name in html5 if name.endswith(";"))).map(lambda name: "&" + name)
numbers = st.integers(160, 0xD7FF).map(lambda n: f"&#{n};")
pieces = st.one_of(
    known,
    numbers,
    st.sampled_from(["&", ";", "amp;", "&amp;uuml;", "&amp;amp;lt;", "#", " ", "AT&T", "Müller", "&copy ", "\n"]),
)


@settings(max_examples=500, deadline=None)
@given(st.lists(pieces).map("".join))
def test_entities_as_the_standard_library_undoes_them(text: str) -> None:
    # Known names only: where a name is unknown the standard library takes its beginning (&notit; as &not it;).
    assume(all(m in html5 for m in re.findall(r"&([A-Za-z0-9]+;)", text)))
    once = strict_unescape(text)
    assume(all(m in html5 for m in re.findall(r"&([A-Za-z0-9]+;)", once)))
    assert html_text(text) == (strict_unescape(once), None)


@given(st.text(st.characters(exclude_characters="&", codec="utf-8")))
def test_text_without_an_ampersand_stays(text: str) -> None:
    assert html_text(text) == (text, None)
    assert html.unescape(text) == text


@given(st.text(st.characters(max_codepoint=127)))
def test_ascii_holds_no_mojibake(text: str) -> None:
    assert mojibake(text) == (text, None)
    assert ftfy.fix_encoding(text) == text


WORDS = [
    "Müller",
    "Größe",
    "Straße",
    "Çelik",
    "Gönül",
    "Łukasz",
    "Żółć",
    "Dvořák",
    "Ångström",
    "Søren",
    "Þór",
    "Đorđe",
    "José",
    "Nuñez",
    "Françoise",
    "Élodie",
    "naïve",
    "Zoë",
    "Ørsted",
    "Năstase",
    "Şahin",
    "İpek",
    "Григорий",
    "Ελένη",
    "日本",
    "김",
    "São",
    "Österreich",
    "Côte",
    "d’Ivoire",
    "«Bonjour»",
    "“Acme”",
    "–",
    "it’s",
    "€",
    "5",
    "10°",
    "5½",
]


@given(st.lists(st.sampled_from(WORDS), min_size=1, max_size=6).map(" ".join))
def test_good_text_stays(text: str) -> None:
    assert mojibake(text) == (text, None)


@given(st.lists(st.sampled_from([w for w in WORDS if w.isalpha() and not w.isascii()]), min_size=2, max_size=5))
def test_text_read_as_latin_1_or_windows_1252_comes_back(words: list[str]) -> None:
    text = " ".join(words)
    for wrong in ("latin-1", "sloppy-windows-1252"):
        damaged = text.encode().decode(wrong)
        value, reason = mojibake(damaged)
        # Either whole or untouched, never half.
        assert value in (text, damaged)
        assert reason is None


damaged = st.builds(
    lambda text, wrong, more: text.encode().decode(wrong, "replace") + more,
    st.lists(st.sampled_from([*WORDS, "ÃÂ", "\x1a", "í", "À", "\xa0", "à "]), min_size=1, max_size=4).map(" ".join),
    st.sampled_from(["latin-1", "sloppy-windows-1252", "sloppy-windows-1250", "macroman", "cp437"]),
    st.sampled_from(["", " ", "é", "Ã", "€", "\x85", " â€™s"]),
)


@settings(max_examples=1000, deadline=None)
@given(
    damaged | damaged.map(lambda text: text.encode().decode("latin-1")) | st.text("Ã©Â¼â€™ü \xa0Ñ\x81\xad", max_size=8)
)
def test_damage_reread_as_ftfy_does(text: str) -> None:
    reread = _reread(text)
    if is_bad(text) and reread is not None:
        assert reread == ftfy.fix_encoding(text, _ENCODING_ONLY)


def test_plain_damage_is_reread() -> None:
    """Else the test above would prove nothing."""
    assert _reread("MÃ¼ller") == "Müller"
    assert _reread("Ã‰vora") == "Évora"


def sets(alternative: Any) -> list[set[int] | None]:
    """The characters that may stand at each place of a sequence in a parsed pattern; None where any may."""
    places: list[set[int] | None] = []
    for operation, argument in alternative:
        if operation is LITERAL:
            places.append({argument})
        elif operation is IN and all(kind in (LITERAL, RANGE) for kind, _ in argument):
            ranges = ((a, a) if kind is LITERAL else a for kind, a in argument)
            places.append({c for low, high in ranges for c in range(low, high + 1)})
        else:
            places.append(None)
    return places


def test_all_that_ftfy_takes_for_damage_is_suspect() -> None:
    """Each of its alternatives has two characters of certain blocks side by side, or one of a few by itself."""
    suspect = {*range(0x80, 0xA0), *map(ord, "ÂÃŒœ")}
    ((operation, (_, alternatives)),) = parse(BADNESS_RE.pattern, BADNESS_RE.flags)
    suspect_in_pairs = {*range(0x80, 0x590), *range(0x2000, 0x2E80), *range(0xE000, 0x10000)}
    assert operation is BRANCH
    assert len(alternatives) > 30
    for alternative in alternatives:
        places = sets(alternative)
        alone = any(p is not None and p <= suspect for p in places)
        pair = any(a and b and a | b <= suspect_in_pairs for a, b in pairwise(places))
        assert alone or pair, alternative


@settings(max_examples=1000)
@given(st.text("aÃÂœ\x80\x9f ü漢.®”", max_size=6) | st.text(max_size=6))
def test_what_is_not_suspect_is_not_bad(text: str) -> None:
    if not pc.match_substring_regex(pa.array([text]), _SUSPECT)[0].as_py():
        assert not is_bad(text)
        assert all(mojibake(text[i:]) == (text[i:], None) for i in range(len(text)))


@given(st.text(min_size=1), st.text(min_size=1))
def test_uuids_as_the_standard_library_makes_them(namespace: str, value: str) -> None:
    assume(uuid5(namespace, value)[0] is not None)
    wanted = uuid.uuid5(uuid.uuid5(uuid.NAMESPACE_URL, f"packhorse:{namespace}"), value)
    assert uuid5(namespace, value) == (str(wanted), None)


@settings(max_examples=500)
@given(st.from_regex(_PLAIN_AMOUNT, fullmatch=True))
def test_plain_amounts_alike_both_ways(text: str) -> None:
    """A space in front takes the amount past the fast path."""
    assume(len(text) < _LONGEST)
    assert money(text) == money(" " + text)
    value, _ = money(text)
    assert isinstance(value, str)
    assert Decimal(value) == Decimal(text)


@settings(max_examples=500)
@given(
    st.integers(-(10**12), 10**12),
    st.integers(0, 99),
    st.sampled_from([(".", ","), (",", "."), (" ", ","), ("'", ".")]),
)
def test_amounts_as_countries_write_them(whole: int, cents: int, marks: tuple[str, str]) -> None:
    group, decimal = marks
    text = f"{whole:,}".replace(",", group) + f"{decimal}{cents:02d}"
    value, reason = money(text)
    assert reason is None
    assert isinstance(value, str)
    assert Decimal(value) == Decimal(f"{whole}.{cents:02d}")
