"""Instants and dates of the sample, and the wall clock of New York that the legacy system kept.

Instants are whole seconds since 1970 in UTC. None falls into the hour that the wall clock shows twice
in autumn, so that each can be told from its local time.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from .draw import Draw, Index

Seconds = NDArray[np.int64]
Days = NDArray[np.int64]

NIGHTLY = 0.6
"""The share of the rows last touched by the nightly run, or brought in by it, where it touches a table."""

_ZONE = ZoneInfo("America/New_York")


def _offset(at: datetime) -> int:
    """New York's offset from UTC in seconds."""
    return int((at.astimezone(_ZONE).utcoffset() or timedelta()).total_seconds())


def _changes() -> tuple[Seconds, Seconds]:
    """The instants at which New York's offset changes from 2000 to 2040, and the offset from each on."""
    at = datetime(2000, 1, 1, tzinfo=UTC)
    moments, offsets = [int(at.timestamp())], [_offset(at)]
    while at.year < 2040:
        tomorrow = at + timedelta(days=1)
        if _offset(tomorrow) != offsets[-1]:
            at = next(a for a in (at + timedelta(hours=n) for n in range(25)) if _offset(a) != offsets[-1])
            moments.append(int(at.timestamp()))
            offsets.append(_offset(at))
        at = tomorrow
    return np.array(moments), np.array(offsets)


_MOMENTS, _OFFSETS = _changes()


def moments(draw: Draw, stream: str, index: Index, first_year: int, last_year: int) -> Seconds:
    """An instant a row between two years, none of them in an hour that New York shows twice."""
    start = int(datetime(first_year, 1, 1, tzinfo=UTC).timestamp())
    stop = int(datetime(last_year + 1, 1, 1, tzinfo=UTC).timestamp())
    return clear(start + draw.below(stream, index, stop - start))


def clear(seconds: Seconds) -> Seconds:
    """The instants, those within an hour of a change of New York's clock put three hours later."""
    near = np.abs(_MOMENTS[np.searchsorted(_MOMENTS, seconds + 3601, side="right") - 1] - seconds) <= 3601
    return np.where(near, seconds + 3 * 3600, seconds)


def by_night(draw: Draw, stream: str, index: Index, seconds: Seconds) -> Seconds:
    """The instants, most of them put off to the nightly run: between two and three on New York's wall clock.

    In the night in which that hour is skipped the run is late, as `clear` has it.
    """
    local = seconds + _OFFSETS[np.searchsorted(_MOMENTS, seconds, side="right") - 1]
    night = (local // 86_400 + 1) * 86_400
    due = night + 2 * 3600 + local % 3600
    run = due - _OFFSETS[np.searchsorted(_MOMENTS, night + 5 * 3600, side="right") - 1]
    return clear(np.where(draw.chance(f"{stream}/night", index, NIGHTLY), run, seconds))


def utc_text(seconds: Seconds) -> pa.Array:
    """As PostgreSQL writes a timestamptz in UTC: 2011-04-03 14:00:00+00."""
    text = pa.array(seconds).cast(pa.timestamp("s")).cast(pa.string())
    return pc.binary_join_element_wise(text, "+00", "")


def new_york_text(seconds: Seconds) -> pa.Array:
    """The wall clock in New York: 2011-04-03 10:00:00."""
    offset = _OFFSETS[np.searchsorted(_MOMENTS, seconds, side="right") - 1]
    return pa.array(seconds + offset).cast(pa.timestamp("s")).cast(pa.string())


def days(draw: Draw, stream: str, index: Index, first_year: int, last_year: int) -> Days:
    """A date a row between two years, as days since 1970."""
    start = (datetime(first_year, 1, 1) - datetime(1970, 1, 1)).days
    stop = (datetime(last_year + 1, 1, 1) - datetime(1970, 1, 1)).days
    return start + draw.below(stream, index, stop - start)


def date_text(value: Days) -> pa.Array:
    """Dates as 2011-04-03."""
    return pa.array(value.astype(np.int32)).cast(pa.date32()).cast(pa.string())


def excel_text(value: Days) -> pa.Array:
    """Dates as the serial numbers that a spreadsheet keeps (1900 system, after February 1900)."""
    return pa.array(value + 25569).cast(pa.string())
