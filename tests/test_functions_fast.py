"""Each fast path against the library it stands in for: mails, entities, mojibake, time zones, uuids, amounts."""

from __future__ import annotations

import html
import random
import re
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from html.entities import html5
from importlib import resources
from itertools import pairwise
from zoneinfo._zoneinfo import (  # type: ignore[import-not-found]
    ZoneInfo as ReadableZone,  # the pure Python one shows its transitions
)

import email_validator
import ftfy
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from engine.functions import dates
from engine.functions.email import _PLAIN, _by_library, email
from engine.functions.identity import uuid5
from engine.functions.money import _LONGEST, money
from engine.functions.money import _PLAIN as _PLAIN_AMOUNT
from engine.functions.text import html_text, mojibake

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


def zones() -> Iterator[tuple[str, list[int]]]:
    for name in resources.files("tzdata").joinpath("zones").read_text(encoding="ascii").split():
        with resources.files("tzdata").joinpath("zoneinfo", *name.split("/")).open("rb") as file:
            yield name, list(ReadableZone.from_file(file, key=name)._trans_utc)


ZONES = dict(zones())


def test_clocks_are_never_changed_twice_within_two_days() -> None:
    """What `_steady_offset` rests on; new rules of some country would show here."""
    for name, transitions in ZONES.items():
        gaps = [b - a for a, b in pairwise(transitions)]
        assert min(gaps, default=10**9) > 48 * 3600, name


def agree_local(text: str, zone: str) -> None:
    assert dates.local_time(text, zone) == dates._by_rules(text, zone), (text, zone)


def test_local_times_around_every_change_of_clocks() -> None:
    rng = random.Random(1)
    for zone, transitions in ZONES.items():
        for transition in rng.sample(transitions, min(len(transitions), 12)):
            if transition < -60_000_000_000:
                continue
            at = datetime.fromtimestamp(0, UTC).replace(tzinfo=None) + timedelta(seconds=transition)
            for _ in range(6):
                moment = at + timedelta(seconds=rng.randint(-100_000, 100_000))
                agree_local(moment.strftime("%Y-%m-%d %H:%M:%S").rjust(19, "0"), zone)


@settings(max_examples=500, deadline=None)
@given(st.datetimes(), st.sampled_from(sorted(ZONES)))
def test_any_local_time(moment: datetime, zone: str) -> None:
    agree_local(moment.replace(microsecond=0).isoformat(" "), zone)


@settings(max_examples=300, deadline=None)
@given(st.from_regex(re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9]{2}:[0-9]{2}:[0-9]{2}"), fullmatch=True))
def test_any_text_in_the_form_of_a_time(text: str) -> None:
    agree_local(text, "America/New_York")


@settings(max_examples=500, deadline=None)
@given(st.datetimes(datetime(1971, 1, 1), datetime(2037, 1, 1)), st.sampled_from(sorted(ZONES)))
def test_an_instant_comes_back_from_its_local_time(moment: datetime, zone: str) -> None:
    """From an instant to what clocks showed and back: the same, or an hour earlier where clocks showed it twice."""
    instant = moment.replace(microsecond=0, tzinfo=UTC)
    rules = dates._zone(zone)
    local = instant.astimezone(rules)
    value, reason = dates.local_time(local.replace(tzinfo=None).isoformat(" "), zone)
    assert reason is None
    assert isinstance(value, str)
    back = datetime.fromisoformat(value)
    assert back == (instant if local.fold == 0 else local.replace(fold=0).astimezone(UTC))


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


@pytest.mark.parametrize("zone", ["America/New_York", "Asia/Kolkata", "Australia/Lord_Howe", "Africa/Casablanca"])
def test_the_fast_path_is_taken(zone: str) -> None:
    """Else the tests above would compare a path with itself."""
    assert sum(dates._steady_offset(zone, f"2015-{m:02d}-15") is not None for m in range(1, 13)) >= 11
