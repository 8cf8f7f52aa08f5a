"""Rows of a batch that were merged: those that the batch merges, and those that an earlier job did.

A merged row has no target row of its own; its row in the crosswalk names that of the row it went into.
"""

from __future__ import annotations

from pathlib import Path

import duckdb
import pyarrow as pa

from connectors.protocols import RowsRefusedError
from engine.query import LOADED, MERGED, literal
from engine.transform import execute, fetch

MERGED_ROWS = pa.schema(
    [("_ph_n", pa.int64()), *((name, pa.string()) for name in ("old_id", "home", "source_hash", "target_hash"))]
)
"""A merged row: its number in the stage, its source key, that of the row it goes into, its checksums."""


def merged_rows(duck: duckdb.DuckDBPyConnection, out: str, existing: Path | None) -> tuple[pa.Table, int]:
    """Of a transformed part, `out` as DuckDB reads it: the rows to merge, as MERGED_ROWS, and how many an earlier job
    merged. `existing` is the crosswalk as it was before, None where there was none."""
    before = 0
    there = ""
    if existing is not None:
        there = f"LEFT JOIN read_parquet({literal(str(existing))}) e ON e.old_id = t._ph_key"
        before = execute(
            duck, f"SELECT count(*) FROM {out} t {there} WHERE e.merged = 't' AND t._ph_outcome IN ({LOADED}, {MERGED})"
        )[0][0]
    marked = execute(duck, f"SELECT count(*) FROM {out} WHERE _ph_outcome = {MERGED}")[0][0]
    if not marked:
        return MERGED_ROWS.empty_table(), before
    new = "WHERE e.merged IS DISTINCT FROM 't' AND" if existing is not None else "WHERE"
    rows = fetch(
        duck,
        f"SELECT t._ph_n, t._ph_key AS old_id, t._ph_home AS home, t._ph_source_hash AS source_hash, "
        f"t._ph_target_hash AS target_hash FROM {out} t {there} {new} t._ph_outcome = {MERGED}",
    )
    return rows.cast(MERGED_ROWS), before


def homeless(rows: pa.Table, written: pa.Table) -> list[tuple[int, RowsRefusedError]]:
    """Rows that were to be merged and were not: the target refused the row that they go into. By number, each with the
    reason that keeps it in quarantine."""
    if rows.num_rows == written.num_rows:
        return []
    done = set(written["old_id"].to_pylist())
    each = zip(rows["_ph_n"].to_pylist(), rows["old_id"].to_pylist(), rows["home"].to_pylist(), strict=True)
    return [
        (n, RowsRefusedError("merge", f"the row that it is one with is not in the target: source key {home}"))
        for n, old_id, home in each
        if old_id not in done
    ]
