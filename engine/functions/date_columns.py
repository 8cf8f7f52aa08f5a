"""Dates and times a column at a time: what `dates` answers for one value, for the plain ones among many.

It must never answer otherwise than `dates` does: what isn't written out in full, lies outside of the years at
hand, or falls on a day when clocks are changed is left to be asked there.
tests/test_functions_columns.py holds the two against each other.
"""

from __future__ import annotations

from datetime import timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from engine.functions.columns import left, matched, placed
from engine.functions.protocol import Answers
from engine.functions.zones import steady_offset

if TYPE_CHECKING:
    from numpy.typing import NDArray

Whole: TypeAlias = "NDArray[np.int64]"

_FIRST_DAY, _DAYS = -7305, 36525  # from 1950 to 2049, counted from 1970-01-01
_UNKNOWN, _UNSTEADY = -(2**31), -(2**31) + 1  # no offset is as large
_DAY = 86400

_MONTH_DAY = (
    "(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)"
    "|02-(?:0[1-9]|1[0-9]|2[0-8]))"  # not the 29th, which is in some years only
)
_PLAIN_TIME = rf"\A(?:19[5-9]|20[0-4])[0-9]-{_MONTH_DAY}[ T](?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]\z"
_PLAIN_DATE = rf"\A[12][0-9]{{3}}-{_MONTH_DAY}\z"
_PLAIN_COUNT = r"\A[1-9][0-9]{1,6}\z"
_EPOCH_1900 = -25569  # 1899-12-30


@lru_cache(maxsize=64)
def _offsets(zone: str) -> NDArray[np.int32]:
    """The offset in seconds of each day of the years at hand, as far as they were asked for: 150 kB a zone."""
    return np.full(_DAYS, _UNKNOWN, np.int32)


def _offsets_of_days(zone: str | None, days: Whole) -> Whole:
    """Seconds east of UTC all through each day; `_UNSTEADY` where that cannot be told."""
    if zone is None or len(zone) > 64:
        return np.full(len(days), _UNSTEADY)
    offsets = _offsets(zone)
    found = offsets[days - _FIRST_DAY]
    if (found == _UNKNOWN).any():
        for day in np.unique(days[found == _UNKNOWN]).tolist():
            steady = steady_offset(zone, str(np.datetime64(day, "D")))
            offsets[day - _FIRST_DAY] = _UNSTEADY if steady is None else steady // timedelta(seconds=1)
        found = offsets[days - _FIRST_DAY]
    widened: Whole = found.astype(np.int64)
    return widened


def local_time(values: pa.Array, zones: pa.Array) -> Answers:
    """The instants of `YYYY-MM-DD HH:MM:SS` between 1950 and 2049, on days when the zone's clocks stay."""
    plain = matched(values, _PLAIN_TIME)
    seconds = values.filter(plain).cast(pa.timestamp("s")).view(pa.int64()).to_numpy()
    offsets = _offsets_by_zone(zones.filter(plain).dictionary_encode(null_encoding="encode"), seconds // _DAY)
    steady = offsets != _UNSTEADY
    instants = pa.array(seconds - offsets).view(pa.timestamp("s")).cast(pa.string())
    instants = pc.binary_join_element_wise(instants, "+00:00", "")
    if steady.all():
        return placed(plain, instants), left(values, plain)
    answered = pc.replace_with_mask(plain, plain, pa.array(steady))
    return placed(answered, instants.filter(pa.array(steady))), left(values, answered)


def _offsets_by_zone(zones: pa.DictionaryArray, days: Whole) -> Whole:
    names = zones.dictionary.to_pylist()
    if len(names) == 1:
        return _offsets_of_days(names[0], days)
    offsets = np.empty_like(days)
    places = zones.indices.to_numpy()
    for place, name in enumerate(names):
        rows = places == place
        offsets[rows] = _offsets_of_days(name, days[rows])
    return offsets


def excel_date(values: pa.Array) -> Answers:
    """The dates from `YYYY-MM-DD` and from counts of 61 days or more that are no year."""
    iso = matched(values, _PLAIN_DATE)
    counts = matched(values, _PLAIN_COUNT)
    dates = pc.if_else(iso, values, pa.scalar(None, pa.string()))
    if counts.true_count == 0:
        return dates, left(values, iso)
    days = values.filter(counts).cast(pa.int32()).to_numpy()
    plain = (days > 60) & (days <= 2958465) & ((days < 1900) | (days > 2100))
    counts = pc.replace_with_mask(counts, counts, pa.array(plain))
    counted = pa.array(days[plain] + np.int32(_EPOCH_1900)).view(pa.date32()).cast(pa.string())
    return pc.replace_with_mask(dates, counts, counted), left(values, pc.or_(iso, counts))
