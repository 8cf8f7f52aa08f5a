"""One batch of a later generation, in one transaction on the target.

Its ledger row is taken first and is unique: what its rows take the place of, the rows, their crosswalk, the quarantine
and what stays as it was edited commit with it or not at all.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from connectors.protocols import LedgerRow, RowsRefusedError
from connectors.records import OVER, EditedRow, KeptEdit, SyncCounts
from connectors.target import Target
from engine.batch import (
    BatchRows,
    checksum_of,
    named,
    shown_key,
    write_rows,
)  # fmt: skip
from engine.check import CheckedEntity
from engine.context import Context
from engine.faults import fault_point
from engine.loaded import loaded_entity
from engine.prepare import Preparer
from engine.query import identifier, literal
from engine.references import fill_rows, rows_to_fill
from engine.refusing import load_refusing, refused_rows, without
from engine.transaction import batch_transaction
from engine.transform import fetch
from workspace.events import PartStaged
from workspace.paths import JobPaths


@dataclass(frozen=True)
class Incoming:
    """What a part of a generation brings: its rows as for a batch, the rows of the stage that they take the place of
    (as OVER), what was written before of those that are updated (as `base_rows` gives it), the numbers of rows whose
    id another source key has, the entity's crosswalk (None where it has none), source keys that are to be marked as
    deleted no longer, and the entity as the plan had it that the rows in the target were `written` by."""

    rows: BatchRows
    over: pa.Table
    base: pa.Table
    doubled: frozenset[int]
    existing: Path | None
    back: tuple[str, ...]
    written: CheckedEntity


@dataclass
class _Updated:
    """Of rows that are in the target: written, left as they were edited, refused."""

    written: int = 0
    left: int = 0
    asked: int = 0
    renewed: set[str] = field(default_factory=set)
    kept: list[KeptEdit] = field(default_factory=list)
    refused: list[tuple[int, RowsRefusedError]] = field(default_factory=list)


def commit_part(
    target: Target,
    duck: duckdb.DuckDBPyConnection,
    paths: JobPaths,
    entity: CheckedEntity,
    part: PartStaged,
    incoming: Incoming,
    version: int,
) -> LedgerRow | None:
    """Carries the part into the target in one transaction; the ledger's row. None when the ledger has it already.

    Keeps the invariant that a row of the stage is superseded if and only if the row that took its place is in the
    target, excluded or in quarantine. TargetLostError leaves open whether it committed: calling again tells.
    """
    row = LedgerRow(
        entity.name, part.part, 1, shown_key(part.key_low), shown_key(part.key_high), version, read=part.rows
    )
    with batch_transaction(target, partial(target.take, row), "sync ") as taken:
        if not taken:
            return None
        fault_point("sync ledger taken")
        target.supersede(entity.name, part.part, incoming.over.select(OVER.names))
        fault_point("sync rows superseded")
        rows = incoming.rows
        # What gives up a unique value goes before what may take it.
        updated = _update(target, entity, part, incoming)
        bad = {n for n, _ in updated.refused}
        wrote = write_rows(
            target, duck, paths, entity, part,
            replace(rows, inserts=without(rows.inserts, set(incoming.doubled)), updates=rows.updates.slice(0, 0)),
        )  # fmt: skip
        marker = entity.target.column(entity.plan.deleted.column) if entity.plan.deleted is not None else None
        if incoming.back and marker is not None:
            target.unmark_rows(loaded_entity(entity), marker, incoming.back)
        fault_point("sync rows in")
        quarantined = _with_refused(duck, paths, entity, part, incoming, wrote.quarantined, updated)
        if quarantined.num_rows:
            target.quarantine(entity.name, part.part, quarantined)
        there = without(rows.updates, bad)
        renewed = there.filter(pc.is_in(there["_ph_key"], pa.array(sorted(updated.renewed), pa.string())))
        stayed = [key for key in there["_ph_key"].to_pylist() if key not in updated.renewed]
        row = replace(
            row,
            inserted=wrote.inserted,
            updated=wrote.updated + updated.written,
            unchanged=rows.unchanged + updated.left,
            merged=wrote.merged,
            excluded=rows.excluded,
            quarantined=quarantined.num_rows,
            checksum=wrote.checksum + checksum_of(renewed["_ph_target_hash"]) + _held_checksum(duck, incoming, stayed),
        )
        if incoming.written is not entity:
            target.rehash(loaded_entity(entity), [*_quarantined_keys(quarantined), *stayed])
        target.settle(row)
        target.note_sync(entity.name, part.part, SyncCounts(kept=len(updated.kept), asked=updated.asked))
    return row


def commit_references(
    ctx: Context,
    preparer: Preparer,
    entity: CheckedEntity,
    written: CheckedEntity,
    resolved: Path,
    part: PartStaged,
    start: int,
) -> LedgerRow | None:
    """Fills the deferred references of one part's rows, which begin at number `start`, but for those that somebody
    edited in the target, unless the plan has them written over; `written` is the entity as they were filled before.
    The ledger's row; None when the ledger has it."""
    rows, missing = rows_to_fill(preparer, entity, resolved, start, start + part.rows)
    row = LedgerRow(
        entity.name, part.part, 2, shown_key(part.key_low), shown_key(part.key_high), ctx.checked.plan.version, read=part.rows
    )  # fmt: skip
    with batch_transaction(ctx.target, partial(ctx.target.take, row), "sync ") as taken:
        if not taken:
            return None
        policies = {f.plan.edited or entity.plan.edited for f in entity.deferred}
        if policies != {"overwrite"}:
            edited = ctx.target.edited_references(loaded_entity(written), rows["_ph_key"].to_pylist())
            rows = rows.filter(pc.invert(pc.is_in(rows["_ph_key"], pa.array(edited, pa.string()))))
        row = replace(row, updated=fill_rows(ctx.target, entity, rows, missing))
        ctx.target.settle(row)
    return row


def _quarantined_keys(quarantined: pa.Table) -> list[str]:
    return [str(key) for key in quarantined["key"].to_pylist()]


def _update(target: Target, entity: CheckedEntity, part: PartStaged, incoming: Incoming) -> _Updated:
    """Brings rows up to what the source holds now. Of one that somebody edited in the target, only the fields that the
    plan allows."""
    rows, done = incoming.rows.updates, _Updated()
    if rows.num_rows == 0:
        return done
    columns = [f.column.name for f in entity.fields if not f.deferred]
    if entity.id_column is None or not columns:
        # A link row is its key: the same key again is the same row.
        done.written, done.renewed = rows.num_rows, set(rows["_ph_key"].to_pylist())
    else:
        identity, loaded = entity.id_column.name, loaded_entity(entity)
        known = [f.column.name for f in incoming.written.fields if not f.deferred]
        rows = named(rows, identity)
        before = loaded_entity(incoming.written)
        edits = {e.key: e for e in target.edited_rows(before, known, rows, named(incoming.base, identity))}
        groups: dict[frozenset[str], list[str]] = {}
        for key, new_id in zip(rows["_ph_key"].to_pylist(), rows["_ph_id"].to_pylist(), strict=True):
            written, kept, asked = _decide(entity, columns, known, edits.get(key))
            groups.setdefault(written, []).append(key)
            if kept:
                done.kept.append(KeptEdit(key, new_id, ", ".join(kept), asked))
                done.asked += asked
        _write_groups(target, entity, identity, rows, groups, done)
        refused = {n for n, _ in done.refused}
        gone = set(rows.filter(pc.is_in(rows["_ph_n"], pa.array(sorted(refused), pa.int64())))["_ph_key"].to_pylist())
        done.kept = [each for each in done.kept if each.old_id not in gone]
        target.note_kept(loaded, part.part, rows["_ph_key"].to_pylist(), done.kept)
    if done.renewed:
        some = rows.filter(pc.is_in(rows["_ph_key"], pa.array(sorted(done.renewed), pa.string())))
        names = {"old_id": "_ph_key", "source_hash": "_ph_source_hash", "target_hash": "_ph_target_hash"}
        target.renew_crosswalk(entity.name, part.part, pa.table({to: some[name] for to, name in names.items()}))
    return done


def _decide(
    entity: CheckedEntity, columns: list[str], known: list[str], edit: EditedRow | None
) -> tuple[frozenset[str], list[str], bool]:
    """Which columns of a row are written, which stay although the source says otherwise, and whether a person is to say
    what holds. Columns that aren't `known` were never written before."""
    if edit is None:
        return frozenset(columns), [], False
    written, kept, asked = {name for name in columns if name not in known}, [], False
    for name in known:
        own = entity.plan.fields[name].edited
        policy = own or entity.plan.edited
        if policy == "overwrite" or (own is not None and name not in edit.edited):
            written.add(name)
        elif name in edit.differs:
            kept.append(name)
            asked = asked or policy == "ask"
    return frozenset(written), kept, asked


def _write_groups(
    target: Target,
    entity: CheckedEntity,
    identity: str,
    rows: pa.Table,
    groups: Mapping[frozenset[str], list[str]],
    done: _Updated,
) -> None:
    """Updates the rows, all that have the same columns written at once."""
    kept = {each.old_id for each in done.kept}
    for written, keys in groups.items():
        some = rows if len(groups) == 1 else rows.filter(pc.is_in(rows["_ph_key"], pa.array(keys, pa.string())))
        before = len(done.refused)
        if not written:
            done.left += some.num_rows
            # nothing is kept where the target came to hold the same by itself
            done.renewed |= set(keys) - kept
            continue
        columns = sorted(written)

        def load(slice_: pa.Table, columns: list[str] = columns) -> None:
            with target.savepoint():
                target.update(entity.target, [identity], columns, slice_)

        load_refusing(some, load, done.refused)
        bad = {n for n, _ in done.refused[before:]}
        done.renewed |= set(without(some, bad)["_ph_key"].to_pylist())
        done.written += some.num_rows - len(bad)


def _with_refused(
    duck: duckdb.DuckDBPyConnection,
    paths: JobPaths,
    entity: CheckedEntity,
    part: PartStaged,
    incoming: Incoming,
    quarantined: pa.Table,
    updated: _Updated,
) -> pa.Table:
    """The rows for the quarantine, with those whose update was refused, and those whose id another source key has."""
    index = next((k.name for k in entity.target.unique_keys if k.primary), "primary key")
    held = RowsRefusedError("unique", "held by a row already in the target", constraint=index)
    refused = [*updated.refused, *((n, held) for n in sorted(incoming.doubled))]
    if not refused:
        return quarantined
    return pa.concat_tables([quarantined, refused_rows(duck, paths, entity, part, refused)])


def _held_checksum(duck: duckdb.DuckDBPyConnection, incoming: Incoming, keys: list[str]) -> int:
    """The checksum of rows that stay as they are, by what was written of them."""
    if not keys or incoming.existing is None:
        return 0
    listed = ", ".join(literal(key) for key in keys)
    hashes = fetch(
        duck,
        f"SELECT target_hash FROM read_parquet({literal(str(incoming.existing))}) WHERE old_id IN ({listed})",
    )
    return checksum_of(hashes["target_hash"])


def base_rows(
    duck: duckdb.DuckDBPyConnection, entity: CheckedEntity, transformed: list[Path], rows: pa.Table
) -> pa.Table:
    """What was written before of the rows that are to be updated: their columns, _ph_key, _ph_id and
    _ph_target_hash; rows of which no version was found are left out."""
    columns = [f.column.name for f in entity.fields if not f.deferred]
    duck.register("wanted_rows", rows.select(["_ph_key", "_ph_id"]))
    nothing = ", ".join(f"NULL::VARCHAR AS {identifier(c)}" for c in [*columns, "_ph_key", "_ph_target_hash"])
    listed = ", ".join(f"b.{identifier(c)}" for c in [*columns, "_ph_key", "_ph_target_hash"])
    source = (
        f"read_parquet([{', '.join(literal(str(path)) for path in transformed)}])"
        if transformed
        else f"(SELECT {nothing} WHERE false)"
    )
    found = fetch(duck, f"SELECT {listed}, w._ph_id FROM {source} b JOIN wanted_rows w ON w._ph_key = b._ph_key")
    duck.unregister("wanted_rows")
    return found
