"""How many values of the source lie in given hours of the local clock, counted there in SQL.

One query a column, each one scan, for the columns with most values. It must never put a value of a record into
SQL text: the hours it asks for are of our own making.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

from agent.lexicon import words
from agent.profile import ColumnProfile
from agent.skipped_hours import Counts
from agent.survey import Survey
from connectors.protocols import Kind, Source

MOST_COLUMNS = 12
_OF_UTC = frozenset({"utc", "gmt", "zulu"})


@dataclass(frozen=True)
class ClockColumn:
    """A column of local times with about so many values."""

    table: str
    name: str
    kind: Kind
    values: int


def says_utc(column: str) -> bool:
    """True for a column whose name says that it keeps UTC."""
    return bool(_OF_UTC & set(words(column)))


def clock_columns(found: Survey) -> list[ClockColumn]:
    """The columns that keep date and time without a zone, those with most values first."""
    columns = [
        ClockColumn(table.name, name, profile.column.kind, round(table.rows * (1 - profile.empty_share)))
        for table in found.tables.values()
        for name, profile in table.columns.items()
        if _keeps_local_time(profile) and not says_utc(name)
    ]
    return sorted((c for c in columns if c.values), key=lambda c: (-c.values, c.table, c.name))


def count_hours(
    source: Source,
    columns: Collection[ClockColumn],
    hours: Collection[str],
    watch: Callable[[str, str, int, int], None] = lambda phase, column, done, total: None,
) -> dict[tuple[str, str], Counts]:
    """By (table, column) the values in each of the hours (`2015-03-08 02`) in which there are any."""
    wanted = ", ".join(f"'{hour}'" for hour in sorted(hours))
    out: dict[tuple[str, str], Counts] = {}
    for done, column in enumerate(columns):
        watch("match", f"{column.table}.{column.name}", done, len(columns))
        relation = ".".join(source.quote(part) for part in column.table.split("."))
        hour = _hour(source, column)
        sql = f"SELECT {hour} AS at_hour, COUNT(*) FROM {relation} WHERE {hour} IN ({wanted}) GROUP BY {hour}"
        rows = source.query(sql) if hours else []
        out[column.table, column.name] = {_text(at): int(str(count)) for at, count in rows}
    return out


def _keeps_local_time(profile: ColumnProfile) -> bool:
    if profile.trait("zoned") >= 0.05:
        return False
    return profile.column.kind is Kind.DATETIME or (
        profile.column.kind is Kind.TEXT and profile.trait("datetime") > 0.9
    )


def _hour(source: Source, column: ClockColumn) -> str:
    """The SQL that gives the first 13 characters of a time as ISO 8601 has it, with a blank for T."""
    quoted = source.quote(column.name)
    if source.dialect == "postgres" and column.kind is Kind.DATETIME:
        return f"to_char({quoted}, 'YYYY-MM-DD HH24')"
    text = f"SUBSTR({quoted}, 1, 13)"
    return f"REPLACE({text}, 'T', ' ')" if column.kind is Kind.TEXT else text


def _text(value: object) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
