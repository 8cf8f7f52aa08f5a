"""Rows that the target held before, in a verification: how many there are, by its own count, and whether each is where it
was decided.

Reads the tables `staged`, `carried` and `held` that verification makes, and what the load decided; writes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import duckdb

from connectors.protocols import LedgerRow
from engine.query import literal
from engine.transform import execute

_MOST_SHOWN = 10


def count_matched(duck: duckdb.DuckDBPyConnection) -> int:
    """Of the rows loaded, those that are one with a row which the target held before and holds still."""
    (count,) = execute(
        duck,
        "SELECT count(*) FROM (SELECT DISTINCT key FROM staged WHERE wanted) s JOIN carried c ON c.old_id = s.key "
        "WHERE c.replaced = 't' AND c.merged = 'f' AND c.found_hash IS NOT NULL AND s.key NOT IN (SELECT key FROM held)",
    )[0]
    return int(count)


def strayed_matches(duck: duckdb.DuckDBPyConnection, decided: Path) -> list[str]:
    """A line on rows that are in the target, but not as the row that they were matched with: second copies; none where
    nothing was decided."""
    if not decided.exists():
        return []
    found = execute(
        duck,
        f"SELECT s.key FROM read_parquet({literal(str(decided))}) d JOIN staged s ON s.n = d._ph_n "
        "JOIN carried c ON c.old_id = s.key WHERE d._ph_outcome = 'one' AND s.wanted AND s.key NOT IN (SELECT key FROM held) "
        f"AND (c.new_id <> d._ph_held OR c.replaced = 'f') ORDER BY s.n LIMIT {_MOST_SHOWN + 1}",
    )
    if not found:
        return []
    more = " and more" if len(found) > _MOST_SHOWN else ""
    keys = ", ".join(row[0] for row in found[:_MOST_SHOWN])
    return [f"matched, and not one with the row that was there: source keys {keys}{more}"]


def miscounted_matches(
    duck: duckdb.DuckDBPyConnection, ledger: Sequence[LedgerRow], entity: str, matched: int
) -> list[str]:
    """A line where the ledger says another number of matched rows than was counted; none where an older version loaded a
    batch without counting them. Rows of batches that were taken back, and stay, are in neither."""
    rows = [row for row in ledger if row.entity == entity and row.step == 1]
    counts = [row.matched for row in rows if not row.undone]
    if any(count is None for count in counts):
        return []
    if undone := ", ".join(str(row.batch) for row in rows if row.undone):
        matched -= execute(
            duck,
            f"SELECT count(*) FROM carried WHERE replaced = 't' AND merged = 'f' AND own = 't' AND found_hash IS NOT NULL "
            f"AND CAST(batch AS INTEGER) IN ({undone}) AND old_id IN (SELECT key FROM staged WHERE wanted) "
            "AND old_id NOT IN (SELECT key FROM held)",
        )[0][0]
    said = sum(count or 0 for count in counts)
    return [f"the ledger says matched {said:,}, counted {matched:,}"] if said != matched else []
