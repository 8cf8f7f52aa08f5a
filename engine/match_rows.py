"""Rows that the target held before, on their way into a batch: told from those to insert, and filled in the target by what
it holds at that instant, with what that was kept for taking back."""

from __future__ import annotations

from dataclasses import dataclass

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from connectors.protocols import RowsRefusedError
from connectors.records import FIT, Fill, FilledRow
from connectors.target import Target
from engine.check import CheckedEntity
from engine.loaded import loaded_entity
from engine.prepare import Settled
from engine.query import identifier, literal
from engine.refusing import load_refusing
from engine.transform import fetch

GONE = "the row of the target that it is one with is gone, or no longer fits"


@dataclass(frozen=True)
class Entered:
    """Matched rows that are in the target: the crosswalk of those that are new in it (old_id, new_id, source_hash,
    target_hash, reference_hash, replaced), the hashes of those that an earlier job matched (old_id, source_hash,
    target_hash), the hashes of all, and how many hold something else than before."""

    crosswalk: pa.Table
    renewed: pa.Table
    hashes: pa.ChunkedArray
    changed: int

    @property
    def same(self) -> int:
        """How many hold what they held."""
        return len(self.hashes) - self.changed


def fill_rules(entity: CheckedEntity, *, deferred: bool = False) -> dict[str, Fill]:
    """What a matched row takes over, by column: of the second pass where `deferred`, else of the first."""
    match = entity.plan.match
    assert match is not None
    found = {}
    for column in (f.column.name for f in entity.fields if f.deferred == deferred):
        strict = match.strictest.get(column)
        if isinstance(match.fill, tuple):
            rule = Fill("over" if column in match.fill else "keep", strict)
        else:
            rule = Fill("over" if match.fill == "all" else "empty", strict)
        if rule != Fill("keep"):
            found[column] = rule
    return found


def matched_rows(
    duck: duckdb.DuckDBPyConnection, entity: CheckedEntity, settled: Settled, rows: str, condition: str, new_id: str, known: str
) -> pa.Table:  # fmt: skip
    """The matched rows of a part, with the values that the source has: as a batch's updates, and _ph_same, whether it is
    foreseen that nothing is filled, _ph_known, whether an earlier job matched them, and what the target's row held that they
    fit, as `Target.fill` takes it. `rows` are a FROM of the part's rows t and what was decided, m; `condition` picks those
    that enter, `new_id` and `known` are SQL over them."""
    match = entity.plan.match
    assert match is not None
    fits = "".join(
        f"WHEN {n} THEN '{n}:' || concat_ws(chr(31), {', '.join('m.' + identifier(c) for c in rule)}) "
        for n, rule in enumerate(match.by)
    )
    own = literal(str(settled.own or settled.out))
    fields = "".join(f", o.{identifier(f.column.name)}" for f in entity.fields)
    return fetch(
        duck,
        f"SELECT t._ph_n, t._ph_key, {new_id} AS _ph_id, t._ph_source_hash, t._ph_target_hash{fields}, "
        f"coalesce(m._ph_same, false) AS _ph_same, {known} AS _ph_known, "
        f"CASE WHEN NOT ({known}) THEN CASE m._ph_rung {fits}END END AS {FIT} {rows} JOIN read_parquet({own}) o ON o._ph_n = t._ph_n "
        f"WHERE {condition}",
    )


def enter_matches(
    target: Target, entity: CheckedEntity, rows: pa.Table, refused: list[tuple[int, RowsRefusedError]]
) -> Entered:
    """Fills the rows of the target that matched rows are one with. Those that the target refuses, or has no longer, go to
    `refused`."""
    assert entity.id_column is not None
    assert entity.plan.match is not None
    loaded, rules, by = loaded_entity(entity), fill_rules(entity), entity.plan.match.by
    done: dict[str, FilledRow] = {}
    changed = 0

    def load(slice_: pa.Table) -> None:
        nonlocal changed
        with target.savepoint():
            found = target.fill(loaded, rules, slice_, by)
        done.update(found.rows)
        changed += found.changed

    load_refusing(rows.append_column(entity.id_column.name, rows["_ph_id"]), load, refused)
    bad = {n for n, _ in refused}
    there = [key in done for key in rows["_ph_key"].to_pylist()]
    refused += [
        (n, RowsRefusedError("match", GONE))
        for n, found in zip(rows["_ph_n"].to_pylist(), there, strict=True)
        if not found and n not in bad
    ]
    rows = rows.filter(pa.array(there, pa.bool_()))
    filled = [done[key] for key in rows["_ph_key"].to_pylist()]
    table = pa.table(
        {
            "old_id": rows["_ph_key"],
            "new_id": rows["_ph_id"],
            "source_hash": rows["_ph_source_hash"],
            "target_hash": pa.array([each.target_hash for each in filled], pa.string()),
            "reference_hash": pa.array([each.reference_hash for each in filled], pa.string()),
            "replaced": pa.array([each.held for each in filled], pa.string()),
        }
    )
    known = rows["_ph_known"]
    return Entered(
        table.filter(pc.invert(known)),
        table.filter(known).select(["old_id", "source_hash", "target_hash"]),
        pa.chunked_array(table["target_hash"].chunks, pa.string()),
        changed,
    )
