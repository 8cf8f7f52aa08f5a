"""Time zones by the rules of the tzdata package, not of the machine: the same job gives the same instants everywhere."""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone, tzinfo
from functools import lru_cache
from importlib import resources
from zoneinfo import ZoneInfo

_OFFSET = re.compile(r"(?:UTC|GMT)?([+-])([0-9]{1,2})(?::?([0-9]{2}))?")


@lru_cache(maxsize=1)
def _zone_names() -> dict[str, str]:
    names = resources.files("tzdata").joinpath("zones").read_text(encoding="ascii").split()
    return {name.lower(): name for name in names}


def fixed(text: str) -> tzinfo | None:
    """The zone of an offset such as `+05:30`, `UTC-3`; None where it is none or beyond 15 hours."""
    match = _OFFSET.fullmatch(text)
    if match is None:
        return None
    minutes = int(match[2]) * 60 + int(match[3] or 0)
    if minutes > 15 * 60 or int(match[3] or 0) > 59:
        return None
    return timezone(timedelta(minutes=-minutes if match[1] == "-" else minutes))


@lru_cache(maxsize=1024)
def zone(name: str) -> tzinfo | None:
    """The zone of an IANA name in any case, or of an offset; None where there is no such zone."""
    known = _zone_names().get(name.lower())
    if known is None:
        return fixed(name.upper())
    with resources.files("tzdata").joinpath("zoneinfo", *known.split("/")).open("rb") as file:
        return ZoneInfo.from_file(file, key=known)


def offset(local: datetime) -> timedelta:
    """How far ahead of UTC the clocks of a time's zone are then."""
    ahead = local.utcoffset()
    assert ahead is not None
    return ahead


def steady_offset(name: str, day: str) -> timedelta | None:
    """The one offset of a zone all through a day (`2011-04-03`), or None where it changes or cannot be told.

    Clocks are never changed twice in a day, so that both its ends tell; each is read both ways, since an
    end may itself be a time that clocks show twice or skip.
    """
    rules = zone(name)
    if rules is None:
        return None
    start = datetime.fromisoformat(day).replace(tzinfo=rules)
    end = start.replace(hour=23, minute=59, second=59, microsecond=999999)
    offsets = {offset(t.replace(fold=fold)) for t in (start, end) for fold in (0, 1)}
    return offsets.pop() if len(offsets) == 1 else None
