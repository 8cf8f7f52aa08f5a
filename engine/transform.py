"""Runs an entity's query over one part of the stage and keeps the result as Parquet.

The result is what a batch loads: one row a source row, with its outcome. It can be thrown away and made
again at any time, so it needs no durability.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from engine.query import EXCLUDED, LOADED, MERGED, QUARANTINED, Query, literal
from workspace.disk import disk_errors
from workspace.errors import DiskFullError, JobFailedError

# Dictionaries would save a tenth of the bytes, and take a twentieth of a transform's time.
_FORMAT = "FORMAT parquet, COMPRESSION lz4, DICTIONARY_SIZE_LIMIT 0"

# Words that mix letters and digits (ids, hashes) first, or each id would have a shape of its own.
_SHAPES = (
    (r"[\p{L}0-9]*(\p{L}[0-9]|[0-9]\p{L})[\p{L}0-9]*", "x"),
    (r"[0-9]{5,}", "9+"),
    (r"[0-9]", "9"),
    (r"\p{L}+", "a"),
    (r"[^\x20-\x7E]", "?"),
    (r"(a[ .'-]+)+a", "a a"),
)


@dataclass(frozen=True)
class Counts:
    """Rows of a part by outcome, how many values were changed, by `field: change`, and rows excluded, by the condition
    that held them back."""

    read: int = 0
    loaded: int = 0
    excluded: int = 0
    quarantined: int = 0
    merged: int = 0
    changes: dict[str, int] = field(default_factory=dict)
    excluded_by: dict[str, int] = field(default_factory=dict)


def transform_part(duck: duckdb.DuckDBPyConnection, query: Query, part: Path, out: Path) -> Counts:
    """Transforms one part into `out`; the counts. JobFailedError names what DuckDB could not do."""
    # A name of its own: a process whose job was killed may still be at it when the job goes on.
    temporary = out.with_suffix(f".{os.getpid()}.writing")
    with disk_errors():
        out.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        execute(duck, f"COPY ({query.over(part)}) TO {literal(str(temporary))} ({_FORMAT})")
        counts = count_part(duck, temporary)
        with disk_errors():
            with temporary.open("rb") as file:
                os.fchmod(file.fileno(), 0o600)  # a worker elsewhere has an umask of its own
                os.fsync(file.fileno())
            temporary.rename(out)
    except BaseException:
        # a full disk would stay full of it
        temporary.unlink(missing_ok=True)
        raise
    return counts


def take_up_part(duck: duckdb.DuckDBPyConnection, part: Path, out: Path) -> Counts | None:
    """The counts of what an earlier run made of a part; None where it made nothing, nothing whole, or made it of a
    part that was staged again since (rows without a key come in another order)."""
    if not out.exists() or out.stat().st_mtime_ns <= part.stat().st_mtime_ns:
        return None
    try:
        return count_part(duck, out)
    except JobFailedError:
        return None


def count_part(duck: duckdb.DuckDBPyConnection, out: Path) -> Counts:
    """The counts of a transformed part."""
    rows = execute(duck, f"SELECT _ph_outcome, count(*) FROM read_parquet({literal(str(out))}) GROUP BY 1")
    outcome = dict(rows)
    changes = execute(
        duck,
        f"SELECT c, count(*) FROM (SELECT unnest(_ph_changes) AS c FROM read_parquet({literal(str(out))}) "
        f"WHERE _ph_outcome = {LOADED} AND _ph_changes IS NOT NULL) GROUP BY 1 ORDER BY 1",
    )
    left_out = execute(
        duck,
        f"SELECT _ph_reason, count(*) FROM read_parquet({literal(str(out))}) WHERE _ph_outcome = {EXCLUDED} "
        "AND _ph_reason IS NOT NULL GROUP BY 1 ORDER BY 1",
    )
    return Counts(
        sum(outcome.values()),
        outcome.get(LOADED, 0),
        outcome.get(EXCLUDED, 0),
        outcome.get(QUARANTINED, 0),
        outcome.get(MERGED, 0),
        dict(changes),
        dict(left_out),
    )


def shape_sql(value: str) -> str:
    """DuckDB SQL for the shape of a text: digits as 9, letters as a, ids as x; holds no record value."""
    sql = f"left({value}, 60)"
    for pattern, sign in _SHAPES:
        sql = f"regexp_replace({sql}, {literal(pattern)}, '{sign}', 'g')"
    return sql


def execute(duck: duckdb.DuckDBPyConnection, sql: str) -> list[tuple[Any, ...]]:
    """Runs a statement and gives its rows; a full disk and anything else become one clear line."""
    with _told():
        return duck.execute(sql).fetchall()


def fetch(duck: duckdb.DuckDBPyConnection, sql: str) -> pa.Table:
    """The rows of a SELECT as Arrow. Errors as `execute`'s."""
    with _told():
        return duck.sql(sql).to_arrow_table()


@contextmanager
def _told() -> Iterator[None]:
    try:
        yield
    except duckdb.Error as error:
        message = " ".join(str(error).split())
        if "No space left" in message or "disk is full" in message.lower():
            raise DiskFullError("the disk is full", advice="free some space, then `migrate resume`") from None
        raise JobFailedError(
            f"the transform failed: {message[:200]}", advice="report this with the plan; the job can be resumed"
        ) from None
