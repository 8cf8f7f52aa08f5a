"""In which zone the source's clock stands: no value tells, so it is asked once for the whole system unless the
database itself names one."""

from __future__ import annotations

import zoneinfo
from collections import Counter

from agent.matter import Matter, Option
from agent.survey import Survey

ZONE = "zone:source"


def zone_matter(found: Survey, fields: tuple[str, ...], holds: tuple[str, ...]) -> Matter:
    """The question, with the zones that the source's own settings and user records name."""
    named: Counter[str] = Counter()
    known = zoneinfo.available_timezones()
    for table in found.tables.values():
        for profile in table.columns.values():
            if profile.distinct > 200 or not profile.trait("letters"):
                continue
            zones = {v: n for v, n in profile.top if "/" in v and v in known}
            if zones and sum(zones.values()) >= 0.9 * sum(n for _, n in profile.top):
                named.update(zones)
    total = sum(named.values())
    # Users' own zones say where they sit, not how the server wrote; one alone in the whole system is a hint.
    options = [Option(z, z, 0.55 * n / total, {"rows_that_name_it": n}) for z, n in named.most_common(5)]
    if "UTC" not in named:
        options.append(Option("UTC", "UTC", 0.2))
    text = (
        f"The source keeps {len(fields)} columns of dates with times and no zone. In which zone did its clock stand?"
        " Name it as America/New_York or Europe/Berlin, or UTC."
    )
    return Matter(
        "zone", "source", text, tuple(options), must=True, evidence={"fields": list(fields)[:60]}, holds=holds,
        stakes="high", free=True,
    )  # fmt: skip


def check_zone(zone: str) -> bool:
    """True for a zone that the database of zones knows."""
    return zone in zoneinfo.available_timezones()
