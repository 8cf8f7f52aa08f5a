"""Rows that the target held before, on their way into a batch: taken out of those to insert, and written over what is
there in one go, with what it held kept for taking back."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from connectors.protocols import RowsRefusedError
from connectors.target import Target
from engine.check import CheckedEntity
from engine.query import literal
from engine.refusing import load_refusing
from engine.transform import fetch


def split_matches(duck: duckdb.DuckDBPyConnection, inserts: pa.Table, matched: Path) -> tuple[pa.Table, pa.Table, int]:
    """Of rows to insert: those that are new; those that the target held before, with _ph_same, which says whether it
    holds already all that it will; and how many of those do. `matched` is as `engine.match` writes it."""
    if not inserts.num_rows:
        return inserts, inserts.append_column("_ph_same", pa.nulls(0, pa.bool_())), 0
    numbers = inserts["_ph_n"]
    low, high = pc.min(numbers).as_py(), pc.max(numbers).as_py()
    found = fetch(
        duck,
        f"SELECT n, unchanged FROM read_parquet({literal(str(matched))}) WHERE outcome = 'one' AND n BETWEEN {low} AND {high} ORDER BY n",
    )
    place = pc.index_in(numbers, found["n"].combine_chunks().cast(numbers.type))
    known = pc.is_valid(place)
    matches = inserts.filter(known)
    same = found["unchanged"].take(place.combine_chunks().drop_null())
    return inserts.filter(pc.invert(known)), matches.append_column("_ph_same", same), pc.sum(same).as_py() or 0


def enter_matches(
    target: Target, entity: CheckedEntity, rows: pa.Table, refused: list[tuple[int, RowsRefusedError]]
) -> tuple[pa.Table, int, int, dict[tuple[str, ...], str]]:
    """Writes matched rows over those that they are one with: the rows, how many are new after all (what they matched is
    gone), how many of the others were the same, and what those held before, as JSON by identity. Those that the target
    refuses go to `refused`."""
    assert entity.id_column is not None
    rows = rows.append_column(entity.id_column.name, rows["_ph_id"])
    held: dict[tuple[str, ...], str] = {}
    before = len(refused)

    def load(slice_: pa.Table) -> None:
        with target.savepoint():
            found = target.upsert(entity.target, list(entity.written), entity.identity, slice_)
        held.update(found)

    load_refusing(rows, load, refused)
    ids = zip(rows["_ph_id"].to_pylist(), rows["_ph_same"].to_pylist(), strict=True)
    same = sum(1 for new_id, unchanged in ids if unchanged and (new_id,) in held)
    entered = int(rows.num_rows) - (len(refused) - before) - len(held)
    return rows, entered, same, held
