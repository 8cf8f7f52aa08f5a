"""In which zone the source's clock stands, decided once for the whole system.

Two kinds of evidence that don't hang on each other have to agree: the system's own settings name one zone, and the
times themselves leave out the hours that its clocks skip. Either alone never decides. Settings may say how times
are shown, not how they are kept; the times tell families of zones apart and not New York from Chicago.
Where they don't agree, or one is silent, a person is asked, with what there is of either.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property

from agent.clock_counts import MOST_COLUMNS, ClockColumn, clock_columns, count_hours, says_utc
from agent.clock_settings import check_zone, named_zones
from agent.matter import Matter, Option
from agent.skipped_hours import DIRT, Counts, Verdict, judge, skips
from agent.survey import Survey
from connectors.protocols import Source

__all__ = ["ZONE", "Clock", "check_zone", "look_at_clock", "zone_matter"]

ZONE = "zone:source"
_SURE = 0.98  # both kinds of evidence agree
_NAMED = 0.45  # settings alone: below what any rung may decide by
_KEPT_TO = 0.4  # the times alone: shared out among the zones of a family
_OWN_CHANCE = 0.05  # how far the columns that are carried over have to bear it out by themselves

_FAMILIES: tuple[tuple[str, ...], ...] = (
    ("America/New_York", "America/Chicago", "America/Denver", "America/Los_Angeles"),
    ("Europe/Berlin", "Europe/Paris", "Europe/Madrid"),
    ("Europe/London", "Europe/Lisbon"),
    ("Europe/Helsinki", "Europe/Athens"),
    ("Australia/Sydney", "Australia/Adelaide"),
    ("Pacific/Auckland",),
    ("America/Mexico_City",),
    ("America/Sao_Paulo",),
    ("America/Santiago",),
    ("Asia/Jerusalem",),
    ("Europe/Moscow",),
    ("Africa/Cairo",),
)
"""Zones whose clocks skip the same hours, the best known of each family."""


@dataclass(frozen=True)
class Clock:
    """What was found of the source's clock: zones that `settings` name with where, values by hour in the columns
    that were counted, and which columns the plan `draws` on."""

    settings: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    counts: Mapping[tuple[str, str], Counts] = field(default_factory=dict)
    draws: frozenset[tuple[str, str]] = frozenset()
    last_year: int = 0

    def verdict(self, zone: str) -> Verdict:
        """What the times say of a zone, over all columns that were counted."""
        return judge(skips(zone, self.last_year), self._all)

    @cached_property
    def _all(self) -> Counts:
        return _sum(self.counts.values())

    def objection(self, zone: str) -> str:
        """Why the times don't bear out that zone for good, in words; empty where they do."""
        changes, verdict = skips(zone, self.last_year), self.verdict(zone)
        if not changes:
            return "its clocks skip no hour, so no time can tell"
        if verdict.said != "confirms":
            told = "there are too few times to tell" if verdict.said == "too little" else "the times contradict it"
            return f"{told}: {_figures(verdict)}"
        for column, counts in self.counts.items():
            if judge(changes, counts).said == "refutes":
                return f"{'.'.join(column)} contradicts it: {_figures(judge(changes, counts))}"
        utc = [f"{table}.{name}" for table, name in sorted(self.draws) if says_utc(name)]
        if utc:
            return f"{', '.join(utc)} is named as kept in UTC"
        own = judge(changes, _sum(c for column, c in self.counts.items() if column in self.draws))
        if own.found > DIRT * own.expected or own.by_number >= _OWN_CHANCE:
            return f"the times that are carried over are too few to tell: {_figures(own)}"
        return ""


def look_at_clock(
    found: Survey,
    source: Source,
    draws: Collection[tuple[str, str]],
    watch: Callable[[str, str, int, int], None] = lambda phase, column, done, total: None,
) -> Clock:
    """What settings and times say, by one query for each of the dozen columns with most times.

    `draws` are the (table, column) of local times that the plan draws on."""
    settings = named_zones(found, source)
    last_year = datetime.now(UTC).year
    zones = {*settings, *(family[0] for family in _FAMILIES)}
    hours = frozenset[str]().union(*(change.hours for zone in zones for change in skips(zone, last_year)))
    columns: list[ClockColumn] = clock_columns(found)[:MOST_COLUMNS]
    counts = count_hours(source, columns, hours, watch)
    return Clock(settings, counts, frozenset(draws), last_year)


def zone_matter(found: Survey, fields: tuple[str, ...], holds: tuple[str, ...], clock: Clock | None = None) -> Matter:
    """The question, with the zones that speak for themselves, likeliest first; one that both kinds of evidence name
    is sure enough for a rule. Without `clock` it is merely the question."""
    text = (
        f"The source keeps {len(fields)} columns of dates with times and no zone. In which zone did its clock stand?"
        " Name it as America/New_York or Europe/Berlin, or UTC."
    )
    evidence: dict[str, object] = {"fields": list(fields)[:60]}
    matter = Matter("zone", "source", text, (), must=True, evidence=evidence, holds=holds, stakes="high", free=True)
    if clock is None:
        return matter
    options = {o.answer: o for o in (*_used_by_people(found, clock), *_kept_to(clock), *_set(clock))}
    options.setdefault("UTC", _utc(clock))
    said = "; ".join(f"{zone} ({', '.join(places)})" for zone, places in clock.settings.items()) or "no zone"
    evidence = {"settings name": said, "why it is asked": _why(clock), **evidence}
    return replace(matter, options=tuple(sorted(options.values(), key=lambda o: -o.weight)), evidence=evidence)


def _why(clock: Clock) -> str:
    if len(clock.settings) == 1:
        return clock.objection(next(iter(clock.settings)))
    if clock.settings:
        return "the settings name several zones"
    return "no setting names a zone, and the times alone can't tell one from others of its family"


def _set(clock: Clock) -> list[Option]:
    """The zones that settings name; sure where it is one that the times bear out."""
    options = []
    for zone, places in clock.settings.items():
        verdict, changes = clock.verdict(zone), skips(zone, clock.last_year)
        weight = _NAMED / len(clock.settings)
        if len(clock.settings) == 1 and not clock.objection(zone):
            weight = _SURE
        elif verdict.said == "refutes":
            weight = 0.05
        told = {"set in": ", ".join(places), **(_facts(clock, verdict) if changes else {})}
        options.append(Option(zone, zone, weight, told))
    return options


def _kept_to(clock: Clock) -> list[Option]:
    """The zones of families whose skipped hours the times leave out."""
    options = []
    for family in _FAMILIES:
        verdict = clock.verdict(family[0])
        if verdict.said == "confirms":
            weight = _KEPT_TO / len(family)
            facts = _facts(clock, verdict)
            options += [Option(z, z, weight - 0.001 * n, facts) for n, z in enumerate(family)]
    return options


def _utc(clock: Clock) -> Option:
    """A clock without summer time: likelier where the times contradict families with one and bear out none."""
    said = Counter(clock.verdict(family[0]).said for family in _FAMILIES)
    if said["confirms"]:
        return Option("UTC", "UTC", 0.05)
    if said["refutes"]:
        return Option("UTC", "UTC", 0.4, {"families of zones that the times contradict": said["refutes"]})
    return Option("UTC", "UTC", 0.2)


def _used_by_people(found: Survey, clock: Clock) -> list[Option]:
    """Zones in columns of zones: they say where people sit, not how the server wrote, and are a hint at most.
    Those that the times contradict are left out."""
    named: Counter[str] = Counter()
    for table in found.tables.values():
        for profile in table.columns.values():
            if profile.distinct > 200 or not profile.trait("letters"):
                continue
            zones = {v: n for v, n in profile.top if "/" in v and check_zone(v)}
            if zones and sum(zones.values()) >= 0.9 * sum(n for _, n in profile.top):
                named.update(zones)
    total = sum(named.values())
    return [
        Option(z, z, 0.35 * n / total, {"rows that name it": n})
        for z, n in named.most_common(5)
        if clock.verdict(z).said != "refutes"
    ]


def _facts(clock: Clock, verdict: Verdict) -> dict[str, object]:
    return {**verdict.facts(), "columns counted": len(clock.counts)}


def _figures(verdict: Verdict) -> str:
    return f"{verdict.found} values in the hours that its clocks skip, where {verdict.expected:.1f} were to be expected"


def _sum(counts: Iterable[Counts]) -> Counts:
    total: Counter[str] = Counter()
    for each in counts:
        total.update(each)
    return total
