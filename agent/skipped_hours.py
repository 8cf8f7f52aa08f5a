"""The hours that a zone's clocks skip, held against what a source's times say: evidence that the clock stood there.

Where clocks go forward there are local times that can't exist. A system that keeps such a local time has none in
those hours, though it has some in the same hours of the weeks around; one that keeps UTC, or stands elsewhere,
goes on as ever. It tells families of zones apart, never the zones in one: New York, Chicago and Denver skip
the same hours of the clock, and a zone without summer time skips none. So it may confirm a zone that something
else names, and must never be all that one is taken for.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Literal

from engine.functions.zones import offset, zone

FIRST_YEAR = 1985
CHANCE = 0.001
"""How likely it may at most be that what is missing is missing by chance."""
DIRT = 0.1
"""The share of what was to be expected that may lie in skipped hours all the same."""
_WEEKS = (-2, -1, 0, 1, 2)

Counts = Mapping[str, int]
"""Values by hour of the local clock, `2015-03-08 02`."""
Said = Literal["confirms", "refutes", "too little"]


@dataclass(frozen=True)
class Skip:
    """One change of a zone's clocks: the hours skipped, and those one and two weeks before and after, as `Counts`
    names them."""

    gap: tuple[str, ...]
    before: tuple[tuple[str, ...], ...]
    after: tuple[tuple[str, ...], ...]

    @property
    def hours(self) -> frozenset[str]:
        """All hours that have to be counted."""
        return frozenset().union(self.gap, *self.before, *self.after)


@dataclass(frozen=True)
class Verdict:
    """What the counts say of a zone. `found` values lie in its skipped hours where `expected` were to be, by the
    side of the change on which fewer are; `chance` is how likely so few are in a clock that skips nothing, `by_number`
    by the number of values alone."""

    said: Said
    found: int
    expected: float
    chance: float
    by_number: float = 1.0

    def facts(self) -> dict[str, object]:
        """The figures, for the log."""
        told = f"{self.found or 'none'} where {self.expected:.0f} were to be expected"
        return {"values in the hours that its clocks skip": told, "chance of so few": f"{self.chance:.1g}"}


@lru_cache(maxsize=256)
def skips(name: str, last_year: int) -> tuple[Skip, ...]:
    """All changes to summer time of a zone from 1985 to the end of a year, each with whole hours to skip.

    Left out are changes of more than three hours and those that another follows or precedes within 16 days; empty
    for a zone that isn't known or has none."""
    changes = _changes(name, last_year)
    found = []
    for place, (moment, before, after) in enumerate(changes):
        near = [c[0] for c in (*changes[max(0, place - 1) : place], *changes[place + 1 : place + 2])]
        if not timedelta(0) < after - before <= timedelta(hours=3):
            continue
        if any(abs(other - moment) < timedelta(days=16) for other in near):
            continue
        gap = _whole_hours(moment + before, moment + after)
        weeks = {w: tuple(f"{h + timedelta(weeks=w):%Y-%m-%d %H}" for h in gap) for w in _WEEKS}
        if gap:
            found.append(Skip(weeks[0], (weeks[-2], weeks[-1]), (weeks[1], weeks[2])))
    return tuple(found)


def judge(changes: tuple[Skip, ...], counts: Counts) -> Verdict:
    """Whether the counts bear out that clocks changed so; `too little` where there are no changes.

    What is missing is held against the weeks before and the weeks after, and the worse of the two counts: where
    people or timers keep summer time and the system keeps UTC, an hour of its clock may fall silent from the
    change on, or until it, and would look skipped beside the other side alone. Values are likely to come in heaps
    (an import, a correction of all rows), so it must be unlikely both by their number (Poisson) and by the
    number of hours in which there are any, each hour one draw (hypergeometric)."""
    covered = [change for change in changes if any(hour in counts for hour in change.hours)]
    gaps = [_sum(counts, change.gap) for change in covered]
    sides = [
        [_sum(counts, week) for change in covered for week in change.before],
        [_sum(counts, week) for change in covered for week in change.after],
    ]
    found = sum(gaps)
    expected, most = (pick(sum(side) / 2 for side in sides) for pick in (min, max))
    # More than dirt: so many are not to be had by chance, were there as much dirt as may be.
    refutes = found > DIRT * most and _many(found, DIRT * most) < CHANCE
    if not expected:
        return Verdict("refutes" if refutes else "too little", found, 0.0, 1.0)
    by_hours = max(_few_hours(gaps, side, DIRT * expected / len(gaps)) for side in sides)
    by_number = _few(found, expected)
    chance = max(by_number, by_hours)
    confirms = found <= DIRT * expected and chance < CHANCE
    said: Said = "confirms" if confirms else "refutes" if refutes else "too little"
    return Verdict(said, found, expected, chance, by_number)


def _changes(name: str, last_year: int) -> list[tuple[datetime, timedelta, timedelta]]:
    """Each change of a zone's offset: the instant in UTC (naive), the offset before and from it on."""
    rules = zone(name)
    if rules is None:
        return []

    def ahead(moment: datetime) -> timedelta:
        return offset(moment.replace(tzinfo=UTC).astimezone(rules))

    found = []
    at, week = datetime(FIRST_YEAR, 1, 1), timedelta(days=7)
    while at.year <= last_year:
        if ahead(at) != ahead(at + week):
            low, high = 0, 7 * 86_400
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (middle, high) if ahead(at + timedelta(seconds=middle)) == ahead(at) else (low, middle)
            found.append((at + timedelta(seconds=high), ahead(at), ahead(at + week)))
        at += week
    return found


def _whole_hours(start: datetime, stop: datetime) -> list[datetime]:
    """The hours of the clock that lie wholly between two times."""
    at = start.replace(minute=0, second=0)
    hours = [at + timedelta(hours=n) for n in range(5)]
    return [h for h in hours if start <= h and h + timedelta(hours=1) <= stop]


def _sum(counts: Counts, hours: tuple[str, ...]) -> int:
    return sum(counts.get(hour, 0) for hour in hours)


def _few(found: int, expected: float) -> float:
    """An upper bound (Chernoff's) of the chance that a Poisson count of that mean is so low."""
    if found >= expected:
        return 1.0
    return math.exp(found - expected + (found * math.log(expected / found) if found else 0.0))


def _many(found: int, expected: float) -> float:
    """The same of the chance that it is so high."""
    if found <= expected:
        return 1.0
    if not expected:
        return 0.0
    return math.exp(found - expected + found * math.log(expected / found))


def _few_hours(gaps: list[int], others: list[int], dirt: float) -> float:
    """The chance that so few of the skipped hours are busy, were the busy hours dealt out over all alike."""
    busy, found = sum(n > dirt for n in (*gaps, *others)), sum(n > dirt for n in gaps)
    ways = math.comb(len(gaps) + len(others), len(gaps))
    quiet = len(gaps) + len(others) - busy
    return sum(math.comb(busy, k) * math.comb(quiet, len(gaps) - k) for k in range(found + 1)) / ways
