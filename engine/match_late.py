"""Rows that others put in the target after a job's rows were matched: found when a batch comes, before it inserts any.

What was decided before stands, and nothing here changes it: a row of the target that is promised to another source row is
no match. Where the plan doesn't forgo it, others wait while the batch is on its way, so that none is added between.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import duckdb
import pyarrow as pa

from connectors.protocols import LedgerRow, RowsRefusedError
from connectors.records import FIT, FittingRow
from connectors.target import Target
from engine.check import CheckedEntity
from engine.collisions import compared_key, marker_of
from engine.loaded import loaded_entity
from engine.query import literal
from engine.refusing import load_refusing, without
from engine.transform import execute

SEVERAL = "match several rows of the target"
SECOND = "match a row that another has"


def take_alone(target: Target, entity: CheckedEntity, row: LedgerRow, *, inserts: int) -> bool:
    """As `Target.take`; where rows are matched and some are to be inserted, with others kept out of the table first, so
    that nothing which others wait for is held while they are waited for, and none of theirs is missed."""
    match = entity.plan.match
    if match is not None and match.lock and inserts:
        target.keep_others_out(entity.target)
    return target.take(row)


def link_late(
    target: Target,
    duck: duckdb.DuckDBPyConnection,
    entity: CheckedEntity,
    inserts: pa.Table,
    decided: Path,
    refused: list[tuple[int, RowsRefusedError]],
) -> tuple[pa.Table, pa.Table]:
    """Of rows to insert: those that are to be inserted still, and those that fit a row which the target holds by now, as
    `matched_rows` gives them. `decided` is what the load decided before. Rows that fit several, where the plan doesn't
    call them new, or one that another source row has go to `refused`; so do rows that the target can't look for."""
    match = entity.plan.match
    assert match is not None
    found = _fitting(target, entity, inserts, refused)
    taken = _promised(duck, decided, [row.held for row in found])
    keys = dict(zip(inserts["_ph_n"].to_pylist(), inserts["_ph_key"].to_pylist(), strict=True))
    late: dict[int, FittingRow] = {}
    for row in found:
        why = ""
        if row.fits > 1:
            if match.several == "new":
                continue
            why = SEVERAL
        elif row.owner is not None or row.held in taken:
            owner = row.owner if row.owner is not None else taken[row.held]
            why = f"{SECOND}: source key {owner}" if owner else SECOND
        else:
            late[row.n] = row
            taken[row.held] = keys[row.n]
        if why:
            refused.append((row.n, RowsRefusedError("match", why, column=", ".join(match.by[row.rule]))))
    kept = without(inserts, {n for n, _ in refused} | set(late))
    return kept, _as_matches(inserts, late)


def _fitting(
    target: Target, entity: CheckedEntity, rows: pa.Table, refused: list[tuple[int, RowsRefusedError]]
) -> list[FittingRow]:
    """The rows that fit, by number. Values that aren't of their column's type are in `refused`: no row takes them."""
    match = entity.plan.match
    assert match is not None
    loaded = loaded_entity(entity)
    rules = [compared_key(entity, rule) for rule in match.by]
    found: list[FittingRow] = []

    def look(slice_: pa.Table) -> None:
        with target.savepoint():
            found.extend(target.rows_fitting(loaded, rules, slice_, marker_of(entity)))

    load_refusing(rows, look, refused)
    return sorted(found, key=lambda row: row.n)


def _promised(duck: duckdb.DuckDBPyConnection, decided: Path, held: Sequence[str]) -> dict[str, str]:
    """Of these rows of the target, those that were matched before the load, whose batch may be yet to come."""
    if not held:
        return {}
    listed = ", ".join(map(literal, dict.fromkeys(held)))
    rows = execute(
        duck,
        f"SELECT _ph_held FROM read_parquet({literal(str(decided))}) WHERE _ph_outcome = 'one' AND _ph_held IN ({listed})",
    )
    return {row[0]: "" for row in rows}


def _as_matches(inserts: pa.Table, late: dict[int, FittingRow]) -> pa.Table:
    rows = inserts.filter(pa.array([n in late for n in inserts["_ph_n"].to_pylist()], pa.bool_()))
    each = [late[n] for n in rows["_ph_n"].to_pylist()]
    rows = rows.set_column(
        rows.column_names.index("_ph_id"), "_ph_id", pa.array([row.held for row in each], pa.string())
    )
    for name in ("_ph_same", "_ph_known"):
        rows = rows.append_column(name, pa.repeat(pa.scalar(False), rows.num_rows))
    return rows.append_column(FIT, pa.array([row.fit for row in each], pa.string()))
