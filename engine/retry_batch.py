"""Rows of one batch that were in quarantine, driven once more, in one transaction on the target.

Its ledger row is taken first and is unique: rows, crosswalk and what leaves the quarantine commit with it or not at
all, so that a row leaves the quarantine once however often the process is killed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import duckdb
import pyarrow as pa

from connectors.protocols import LedgerRow
from connectors.records import CHANGES, Edits
from connectors.target import Target
from engine.batch import BatchRows, batch_rows, shown_key, write_rows
from engine.check import CheckedEntity
from engine.collisions import SOURCE_KEY, Settler
from engine.compile import source_hash_sql
from engine.faults import fault_point
from engine.prepare import Preparer, Settled
from engine.query import EXCLUDED, LOADED, identifier, literal
from engine.references import fill_rows
from engine.retried_rows import stage_rows, write_stage_rows
from engine.stage import part_path
from engine.transaction import batch_transaction
from engine.transform import execute
from workspace.events import PartStaged
from workspace.paths import JobPaths


@dataclass(frozen=True)
class Selected:
    """Rows of one part that are to be driven again: their numbers in the stage, where the part begins, the values
    that a person edited, and rows that can't enter because another row of their source key did."""

    part: PartStaged
    start: int
    numbers: tuple[int, ...]
    edits: Mapping[int, Edits]
    doubled: frozenset[int]


@dataclass(frozen=True)
class Prepared:
    """What is to be done with them: as for a batch, the numbers of those that the plan excludes, and the reasons of
    those that were held back: number to field, index, detail. `staged` holds the rows before the transform."""

    rows: BatchRows
    excluded: frozenset[int]
    held_back: Mapping[int, tuple[str, str, str]]
    staged: Path


def prepare_rows(
    preparer: Preparer, entity: CheckedEntity, selected: Selected, settler: Settler, existing: Path | None
) -> Prepared:
    """Transforms the rows and settles their collisions. `existing` is the entity's crosswalk as it is now."""
    key = ", ".join(entity.plan.key)
    held_back = dict.fromkeys(selected.doubled, (key, SOURCE_KEY, "another row has the same source key"))
    settled = _transformed(preparer, entity, selected, set(selected.numbers) - set(held_back))
    # What an upsert would write over must not be a row of this entity: it came from another source row.
    if entity.plan.write == "upsert" and existing is not None:
        index, names = next(
            ((k.name, ", ".join(k.columns)) for k in entity.target.unique_keys if k.primary),
            ("primary key", ", ".join(entity.identity)),
        )
        ours = held_by_ours(preparer.duck, entity, settled.out, existing)
        held_back |= dict.fromkeys(ours, (names, index, "held by a row already in the target"))
        if ours:
            settled = _transformed(preparer, entity, selected, set(selected.numbers) - set(held_back))
    losers = settler.settle(selected.part.part, settled.out, selected.part.rows)
    rows = _batch_rows(preparer, entity, replace(settled, losers=losers), existing, selected.edits)
    excluded = execute(
        preparer.duck,
        f"SELECT _ph_n FROM read_parquet({literal(str(settled.out))}) WHERE _ph_outcome = {EXCLUDED}",
    )
    staged = _rows_file(preparer, entity, selected.part)
    return Prepared(rows, frozenset(n for (n,) in excluded), held_back, staged)


def _transformed(preparer: Preparer, entity: CheckedEntity, selected: Selected, numbers: set[int]) -> Settled:
    part, folder = selected.part, preparer.folder(entity)
    table = stage_rows(preparer.paths.stage / entity.name, part.part, numbers, selected.edits)
    staged = write_stage_rows(_rows_file(preparer, entity, part), table)
    out = part_path(folder, part.part)
    return Settled(part, out, preparer.transform_file(entity, staged, out), None)


def _rows_file(preparer: Preparer, entity: CheckedEntity, part: PartStaged) -> Path:
    return preparer.folder(entity) / f"rows-{part.part:05d}.parquet"


def held_by_ours(duck: duckdb.DuckDBPyConnection, entity: CheckedEntity, out: Path, existing: Path) -> list[int]:
    """The numbers of transformed rows whose id a row of another source key has: an upsert would write over that."""
    new_id = "t._ph_id"
    if entity.id_column is None:
        new_id = f"concat_ws(chr(31), {', '.join(f't.{identifier(c)}' for c in entity.identity)})"
    rows = execute(
        duck,
        f"SELECT DISTINCT t._ph_n FROM read_parquet({literal(str(out))}) t JOIN read_parquet({literal(str(existing))}) e "
        f"ON e.new_id = {new_id} WHERE t._ph_outcome = {LOADED} AND e.old_id <> t._ph_key",
    )
    return [n for (n,) in rows]


def _batch_rows(
    preparer: Preparer, entity: CheckedEntity, settled: Settled, existing: Path | None, edits: Mapping[int, Edits]
) -> BatchRows:
    """As `batch_rows`, with the checksum of the source row as it was sent where a person edited it: a later job has to
    see that the source didn't change."""
    rows = batch_rows(preparer.duck, preparer.paths, entity, settled, existing)
    if not edits:
        return rows
    stage = literal(str(part_path(preparer.paths.stage / entity.name, settled.part.part)))
    listed = ", ".join(str(n) for n in edits)
    sent = dict(
        execute(
            preparer.duck,
            f"SELECT _ph_n, {source_hash_sql(entity)} FROM read_parquet({stage}) WHERE _ph_n IN ({listed})",
        )
    )
    return replace(rows, inserts=_as_sent(rows.inserts, sent), updates=_as_sent(rows.updates, sent))


def _as_sent(rows: pa.Table, sent: Mapping[int, str]) -> pa.Table:
    pairs = zip(rows["_ph_n"].to_pylist(), rows["_ph_source_hash"].to_pylist(), strict=True)
    hashes = pa.array([sent.get(n, hash_) for n, hash_ in pairs], pa.string())
    return rows.set_column(rows.column_names.index("_ph_source_hash"), "_ph_source_hash", hashes)


def commit_rows(
    target: Target,
    duck: duckdb.DuckDBPyConnection,
    paths: JobPaths,
    entity: CheckedEntity,
    selected: Selected,
    prepared: Prepared,
    step: int,
    version: int,
) -> LedgerRow | None:
    """Carries the rows into the target in one transaction; the ledger's row. None when the ledger has the step.

    Keeps the invariant that a row is in quarantine, or noted as having left it by a step that the ledger has.
    TargetLostError leaves open whether it committed: calling again tells.
    """
    row = _ledger_row(entity, selected.part, step, version)
    with batch_transaction(target, partial(target.take, row), "retry ") as taken:
        if not taken:
            return None
        fault_point("retry ledger taken")
        rows = prepared.rows
        wrote = write_rows(target, duck, paths, entity, selected.part, rows)
        fault_point("retry rows in")
        changes = _changes(selected, prepared, wrote.quarantined)
        row = replace(
            row,
            inserted=wrote.inserted,
            updated=wrote.updated,
            unchanged=rows.unchanged,
            merged=wrote.merged,
            excluded=rows.excluded,
            quarantined=-sum(1 for outcome in changes["outcome"].to_pylist() if outcome != "stays"),
            checksum=wrote.checksum,
        )
        target.settle_retry(row, changes)
    return row


def commit_references(
    target: Target, entity: CheckedEntity, part: PartStaged, rows: pa.Table, step: int, version: int
) -> tuple[LedgerRow, dict[str, int]] | None:
    """Fills deferred references of rows that left the quarantine, in one transaction; the ledger's row, and what was
    refused. None when the ledger has the step."""
    row = _ledger_row(entity, part, step, version)
    refused: dict[str, int] = {}
    with batch_transaction(target, partial(target.take, row), "retry ") as taken:
        if not taken:
            return None
        row = replace(row, updated=fill_rows(target, entity, rows, refused))
        target.settle(row)
    return row, refused


def _ledger_row(entity: CheckedEntity, part: PartStaged, step: int, version: int) -> LedgerRow:
    return LedgerRow(entity.name, part.part, step, shown_key(part.key_low), shown_key(part.key_high), version)


def _changes(selected: Selected, prepared: Prepared, quarantined: pa.Table) -> pa.Table:
    """What becomes of each row, as CHANGES."""
    reasons = {
        int(each["row"]): (each["field"], each["code"], each["signature"], each["detail"])
        for each in quarantined.to_pylist()
    }
    for n, (field, index, detail) in prepared.held_back.items():
        why = f"unique {index}, {detail}"
        reasons[n] = (field, "unique", f"{field}: {why}", why)
    columns: dict[str, list[str | None]] = {name: [] for name in CHANGES.names}
    for n in selected.numbers:
        reason: tuple[str | None, ...] = reasons.get(n, (None,) * 4)
        outcome = "stays" if n in reasons else "excluded" if n in prepared.excluded else "loaded"
        edited = json.dumps(selected.edits[n]) if n in selected.edits and outcome != "stays" else None
        if n in selected.edits and outcome == "stays":
            reason = (*reason[:3], f"{reason[3]} (as edited)")
        for name, value in zip(CHANGES.names, (str(n), outcome, edited, *reason), strict=True):
            columns[name].append(value)
    return pa.table(columns, schema=CHANGES)
