"""From where on a sync reads an entity that has a watermark: just below the highest value that the stage holds.

The bound may only ever be too low: then rows are read that didn't change, and the comparison finds that out.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import duckdb

from connectors.protocols import Kind
from engine.check import CheckedEntity
from engine.context import Context
from engine.query import identifier, read_parts
from engine.stage import part_path
from engine.transform import execute
from workspace.errors import PlanError
from workspace.events import PartStaged

_AHEAD = timedelta(days=1)
"""How far the source's clock may be before ours, its zone included; later times are typing errors."""


def low_mark(
    ctx: Context, entity: CheckedEntity, duck: duckdb.DuckDBPyConnection, parts: list[PartStaged], latest: str
) -> str:
    """The lowest value of the watermark's column that has to be read, as the source writes it; empty where all has to
    be: nothing is staged yet, no value tells, or the source key isn't unique. `latest` is the table that the reader
    made. PlanError where the column is text that isn't dates."""
    watermark = entity.plan.watermark
    column = entity.source.column(watermark.column) if watermark is not None else None
    if watermark is None or column is None or not parts:
        return ""
    if execute(duck, f"SELECT count(*) <> count(DISTINCT key) FROM {latest}")[0][0]:
        return ""  # of rows that share a key, those below the mark would be taken for gone
    rows = f"{read_parts(part_path(ctx.paths.stage / entity.name, part.part) for part in parts)}"
    text = identifier(column.name)
    if column.kind in (Kind.INTEGER, Kind.DECIMAL):
        kind = "HUGEINT" if column.kind is Kind.INTEGER else "DECIMAL(38, 6)"
        value = f"max(TRY_CAST({text} AS {kind})) - {watermark.overlap}"
        return str(execute(duck, f"SELECT coalesce(CAST({value} AS VARCHAR), '') FROM {rows}")[0][0])
    instant = f"TRY_CAST(regexp_replace({text}, '([+-][0-9]{{2}}(:?[0-9]{{2}})?|Z)$', '') AS TIMESTAMP)"
    if column.kind is Kind.TEXT:
        (odd,) = execute(duck, f"SELECT count(*) FROM {rows} WHERE trim({text}) <> '' AND {instant} IS NULL")[0]
        if odd:
            raise PlanError(
                f"{column.name} holds text that is no date in {odd:,} rows, and can't be ordered",
                where=f"entities.{entity.name}.watermark",
                advice="name another column, leave the watermark out, or read all with --full",
            )
    limit = f"TIMESTAMP '{datetime.now(UTC).replace(tzinfo=None) + _AHEAD}'"
    shape = "%Y-%m-%d" if column.kind is Kind.DATE else "%Y-%m-%d %H:%M:%S"
    found = execute(
        duck,
        f"SELECT coalesce(strftime(max(moment) FILTER (WHERE moment < {limit}) - INTERVAL {watermark.overlap} SECOND, '{shape}'), '') "
        f"FROM (SELECT {instant} AS moment FROM {rows})",
    )
    return str(found[0][0])
