"""Local times and dates a column at a time, against the rules of each zone and the calendar."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from importlib import resources
from itertools import pairwise
from zoneinfo._zoneinfo import (  # type: ignore[import-not-found]
    ZoneInfo as ReadableZone,  # the pure Python one shows its transitions
)

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.functions.dates import EXCEL_DATE, LOCAL_TIME, local_time
from engine.functions.zones import steady_offset, zone
from tests.test_functions_columns import agree


def zones() -> Iterator[tuple[str, list[int]]]:
    for name in resources.files("tzdata").joinpath("zones").read_text(encoding="ascii").split():
        with resources.files("tzdata").joinpath("zoneinfo", *name.split("/")).open("rb") as file:
            yield name, list(ReadableZone.from_file(file, key=name)._trans_utc)


ZONES = dict(zones())


def test_clocks_are_never_changed_twice_within_two_days() -> None:
    """What `steady_offset` rests on; new rules of some country would show here."""
    for name, transitions in ZONES.items():
        gaps = [b - a for a, b in pairwise(transitions)]
        assert min(gaps, default=10**9) > 48 * 3600, name


def test_local_times_around_every_change_of_clocks() -> None:
    rng = random.Random(1)
    answered = 0
    for name, transitions in ZONES.items():
        rows = [("2011-04-03 10:00:00", name)]
        for transition in rng.sample(transitions, min(len(transitions), 12)):
            if transition < -60_000_000_000:
                continue
            at = datetime.fromtimestamp(0, UTC).replace(tzinfo=None) + timedelta(seconds=transition)
            for _ in range(6):
                moment = at + timedelta(seconds=rng.randint(-100_000, 100_000))
                rows.append((moment.strftime("%Y-%m-%d %H:%M:%S").rjust(19, "0"), name))
        answered += agree(LOCAL_TIME, rows)
    assert answered > 10_000  # else the column answers nothing and proves nothing


moments = st.datetimes() | st.datetimes(datetime(1949, 12, 30), datetime(2050, 1, 3))


@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(moments, st.sampled_from(sorted(ZONES))), min_size=1, max_size=8))
def test_any_local_time(rows: list[tuple[datetime, str]]) -> None:
    """Several zones in one column."""
    agree(LOCAL_TIME, [(moment.replace(microsecond=0).isoformat(" "), name) for moment, name in rows])


FORM_OF_A_TIME = r"(?:[0-9]{4}|19[4-9][0-9]|20[0-5][0-9])-[01][0-9]-[0-3][0-9][ T][0-2][0-9]:[0-9]{2}:[0-6][0-9]"


@settings(max_examples=300, deadline=None)
@given(st.lists(st.from_regex(FORM_OF_A_TIME, fullmatch=True), min_size=1, max_size=8))
def test_any_text_in_the_form_of_a_time(texts: list[str]) -> None:
    agree(LOCAL_TIME, [(text, "America/New_York") for text in texts])
    agree(EXCEL_DATE, [(text[:10],) for text in texts])


def test_every_count_of_days() -> None:
    counts = [*range(2200), *range(44000, 44100), *range(2958400, 2958500), 9999999]
    assert agree(EXCEL_DATE, [(str(count),) for count in counts]) > 2000
    assert agree(EXCEL_DATE, [(f"0{count}",) for count in counts]) == 0


def test_every_day_of_years_long_and_short() -> None:
    days = [f"{y}-{m:02d}-{d:02d}" for y in (1900, 1999, 2000, 2024) for m in range(14) for d in range(33)]
    assert agree(EXCEL_DATE, [(day,) for day in days]) == 4 * 365


@settings(max_examples=500, deadline=None)
@given(st.datetimes(datetime(1971, 1, 1), datetime(2037, 1, 1)), st.sampled_from(sorted(ZONES)))
def test_an_instant_comes_back_from_its_local_time(moment: datetime, name: str) -> None:
    """From an instant to what clocks showed and back: the same, or an hour earlier where clocks showed it twice."""
    instant = moment.replace(microsecond=0, tzinfo=UTC)
    local = instant.astimezone(zone(name))
    value, reason = local_time(local.replace(tzinfo=None).isoformat(" "), name)
    assert reason is None
    assert isinstance(value, str)
    back = datetime.fromisoformat(value)
    assert back == (instant if local.fold == 0 else local.replace(fold=0).astimezone(UTC))


@pytest.mark.parametrize("name", ["America/New_York", "Asia/Kolkata", "Australia/Lord_Howe", "Africa/Casablanca"])
def test_most_days_are_steady(name: str) -> None:
    assert sum(steady_offset(name, f"2015-{m:02d}-15") is not None for m in range(1, 13)) >= 11
