"""Dates and times as legacy systems keep them: local time without a zone, day counts of a spreadsheet.

It must never make a date up, nor drop a time of day without a word. `date_columns` answers for the plain
ones a column at a time.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta, tzinfo

from engine.functions import date_columns, zones
from engine.functions.protocol import DomainFunction, Outcome, Reason
from engine.functions.text import trimmed

_ZERO_DATE = Reason("zero date", soft=True)
_NOT_A_DATE = Reason("not a date")
_OUT_OF_RANGE = Reason("date out of range")
_NO_ZONE = Reason("local time without a time zone")
_UNKNOWN_ZONE = Reason("unknown time zone")
_IN_A_GAP = Reason("local time that does not exist")
_TIME_OF_DAY = Reason("date with a time of day")
_YEAR_OR_DAYS = Reason("ambiguous date: a year or a count of days")

_ZERO = re.compile(r"0000-00-00(?:[ T]00:00(?::00(?:\.0{1,9})?)?)?Z?")
_DATETIME = re.compile(
    r"(?P<date>[0-9]{4}-[0-9]{2}-[0-9]{2})"
    r"(?:[ T](?P<time>(?:[01][0-9]|2[0-3]):[0-9]{2}(?::[0-9]{2})?)(?:\.(?P<fraction>[0-9]{1,9}))?"
    r"(?: ?(?P<offset>Z|z|UTC|GMT|[+-][0-9]{2}(?::?[0-9]{2})?))?)?"
)


def _parsed(text: str) -> tuple[datetime, tzinfo | None, bool] | None:
    """The date and time, its own zone where it names one, and whether it is a mere date; None for no date."""
    match = _DATETIME.fullmatch(text)
    if match is None:
        return None
    fraction = match["fraction"] or ""
    if fraction[6:].strip("0"):
        return None  # finer than a microsecond
    try:
        moment = datetime.fromisoformat(f"{match['date']} {match['time'] or '00:00'}")
        moment = moment.replace(microsecond=int(fraction[:6].ljust(6, "0")))
    except ValueError:
        return None
    offset = match["offset"]
    zone = None
    if offset is not None:
        zone = UTC if offset.upper() in ("Z", "UTC", "GMT") else zones.fixed(offset)
        if zone is None:
            return None
    return moment, zone, match["time"] is None


def _instant(moment: datetime) -> Outcome:
    try:
        return f"{moment.astimezone(UTC).replace(tzinfo=None).isoformat(' ')}+00:00", None
    except OverflowError:
        return None, _OUT_OF_RANGE


def local_time(value: str | None, zone: str | None) -> Outcome:
    """The instant, as text in UTC (`2011-04-03 14:00:00+00:00`), of a local time in an IANA zone or at an offset.

    Takes `YYYY-MM-DD`, with `HH:MM[:SS[.ffffff]]` after a space or T; an offset or Z in the value wins over
    `zone`. A mere date is the first instant of its day. A time that clocks show twice is the first of the
    two. A time that clocks skip is a reason: moving it would make it one with a time that is there, and it
    tells that the zone may be wrong. NULL for NULL and blank text; zero dates are a soft reason.
    """
    text = trimmed(value)
    if not text:
        return None, None
    if len(text) > 64:
        return None, _NOT_A_DATE
    if _ZERO.fullmatch(text):
        return None, _ZERO_DATE
    parsed = _parsed(text)
    if parsed is None:
        return None, _NOT_A_DATE
    moment, own_zone, is_date = parsed
    if own_zone is not None:
        return _instant(moment.replace(tzinfo=own_zone))
    name = trimmed(zone)
    if not name:
        return None, _NO_ZONE
    rules = zones.zone(name) if len(name) <= 64 else None
    if rules is None:
        return None, _UNKNOWN_ZONE
    first, second = moment.replace(tzinfo=rules), moment.replace(tzinfo=rules, fold=1)
    if not is_date and zones.offset(first) < zones.offset(second):
        return None, _IN_A_GAP
    return _instant(first)


_EPOCH_1900 = date(1899, 12, 30)  # day 61 is 1900-03-01; the days before the bug are one less off
_LAST_DAY = 2958465  # 9999-12-31
_NUMBER = re.compile(r"([+-]?)([0-9]{1,12})(?:[.,]([0-9]{0,20}))?")


def excel_date(value: str | None) -> Outcome:
    """The date, `YYYY-MM-DD`, of a spreadsheet's count of days (1900 system) or of an ISO date.

    Day 60 is 1900-02-29, which was none: `not a date`. Day 0 is a zero date (soft). 1900 to 2100 are a
    reason: a year, more likely than a day of 1905. A time of day (a fraction, or other than 00:00:00) is a
    reason, since a date cannot hold it. NULL for NULL and blank text.
    """
    text = trimmed(value)
    if not text:
        return None, None
    if len(text) > 64:
        return None, _NOT_A_DATE
    number = _NUMBER.fullmatch(text)
    if number is None:
        return _iso_date(text)
    days, fraction = int(number[2]), (number[3] or "").strip("0")
    if number[1] == "-" and (days or fraction):
        return None, _OUT_OF_RANGE
    if days > _LAST_DAY:
        return None, _OUT_OF_RANGE
    if fraction:
        return None, _TIME_OF_DAY
    if days == 0:
        return None, _ZERO_DATE
    if days == 60:
        return None, _NOT_A_DATE
    if 1900 <= days <= 2100:
        return None, _YEAR_OR_DAYS
    return (_EPOCH_1900 + timedelta(days if days > 60 else days + 1)).isoformat(), None


def _iso_date(text: str) -> Outcome:
    if _ZERO.fullmatch(text):
        return None, _ZERO_DATE
    parsed = _parsed(text)
    if parsed is None:
        return None, _NOT_A_DATE
    moment, own_zone, _ = parsed
    if own_zone is not None or moment != datetime(moment.year, moment.month, moment.day):
        return None, _TIME_OF_DAY
    return moment.date().isoformat(), None


LOCAL_TIME = DomainFunction(
    "local_time", ("value", "zone"), 0, "TIMESTAMPTZ", local_time, columns=date_columns.local_time
)
EXCEL_DATE = DomainFunction("excel_date", ("value",), 0, "DATE", excel_date, columns=date_columns.excel_date)
