"""A batch: one part of the stage, carried into the target in one transaction, exactly once.

Its ledger row is taken first and is unique, so of two workers on one batch one wins and the other sees
that there is nothing to do; rows, crosswalk and quarantine commit with it or not at all.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from connectors.protocols import LedgerRow, RowsRefusedError
from connectors.target import Target
from engine.check import CheckedEntity
from engine.collisions import SOURCE_KEY
from engine.compile import raw_sql
from engine.faults import fault_point
from engine.match_late import link_late, take_alone
from engine.match_rows import enter_matches, matched_rows
from engine.merge_rows import homeless, merged_rows
from engine.prepare import Settled
from engine.query import LOADED, QUARANTINED, identifier, literal
from engine.refusing import QUARANTINE, enter_rows, load_refusing, refused_rows, without
from engine.stage import part_path
from engine.transaction import batch_transaction
from engine.transform import fetch, shape_sql
from workspace.events import PartStaged
from workspace.paths import JobPaths


@dataclass(frozen=True)
class BatchRows:
    """What one batch would do. Tables hold text columns; `inserts` and `updates` begin with _ph_n, _ph_key,
    _ph_id, _ph_source_hash, _ph_target_hash; `quarantined` has QUARANTINE's columns; `merged` are MERGED_ROWS, and
    `matches` are rows that the target held before (as `matched_rows` gives them, None where nothing is matched);
    `merged_before` rows that an earlier job merged, which stay as they are; `excluded_by` counts excluded rows by the
    condition that holds them back. `decided` is the file that says which rows the target held before (None where nothing
    is matched), and so many of the unchanged are `known` to be among those by an earlier job."""

    inserts: pa.Table
    updates: pa.Table
    unchanged: int
    unchanged_sum: int
    excluded: int
    quarantined: pa.Table
    merged: pa.Table
    merged_before: int
    excluded_by: Mapping[str, int] = field(default_factory=dict)
    matches: pa.Table | None = None
    decided: Path | None = None
    known: int = 0


@dataclass(frozen=True)
class Committed:
    """What a batch did: its ledger row; its quarantined rows, with QUARANTINE's columns; the crosswalk's new rows,
    old_id and new_id among their columns."""

    row: LedgerRow
    quarantined: pa.Table
    crosswalk: pa.Table


@dataclass(frozen=True)
class Written:
    """Of `write_rows`: rows inserted, updated and merged, the quarantined ones, the crosswalk's new rows (see Committed), and
    the checksum of all that are in the target, unchanged ones too. `same` matched rows held all that already; `linked` are those and the ones that were filled."""

    inserted: int
    updated: int
    merged: int
    quarantined: pa.Table
    crosswalk: pa.Table
    checksum: int
    same: int = 0
    linked: int = 0


def batch_rows(
    duck: duckdb.DuckDBPyConnection, paths: JobPaths, entity: CheckedEntity, settled: Settled, existing: Path | None
) -> BatchRows:
    """Sorts a settled part's rows by what the batch does with them. `existing` is the entity's crosswalk as it was
    before, None where there was none."""
    part, counts = settled.part, settled.counts
    out = f"read_parquet({literal(str(settled.out))})"
    fields = "".join(f", t.{identifier(f.column.name)}" for f in entity.fields)

    def head(new_id: str) -> str:
        return f"t._ph_n, t._ph_key, {new_id} AS _ph_id, t._ph_source_hash, t._ph_target_hash{fields}"

    lost = (
        f"LEFT JOIN read_parquet({literal(str(settled.losers.path))}) l ON l._ph_n = t._ph_n" if settled.losers else ""
    )
    rows = f"FROM {out} t {lost} "
    enters = f"t._ph_outcome = {LOADED}"
    loses = 'l."index" IS NOT NULL' if settled.losers else "false"
    new = "true"
    if settled.matched is not None:
        decided = f"(SELECT * FROM read_parquet({literal(str(settled.matched))}) WHERE _ph_outcome = 'one')"
        rows, new = f"{rows}LEFT JOIN {decided} m ON m._ph_n = t._ph_n ", "m._ph_n IS NULL"
    found = f"{enters} AND NOT {loses} AND NOT {new}", "t._ph_id", "false"
    if existing is None:
        inserts = fetch(duck, f"SELECT {head('t._ph_id')} {rows} WHERE {enters} AND NOT {loses} AND {new}")
        updates = inserts.slice(0, 0)
        same = updates.select(["_ph_target_hash"]).append_column("known", pa.array([], pa.bool_()))
    else:
        rows += f"LEFT JOIN read_parquet({literal(str(existing))}) e ON e.old_id = t._ph_key"
        # What an earlier job loaded keeps its place; a second row of the same source key never had one.
        if settled.losers:
            loses += f' AND (e.new_id IS NULL OR l."index" = {literal(SOURCE_KEY)})'
        # What was merged stays merged, whatever the plan says now.
        enters += f" AND NOT ({loses}) AND e.merged IS DISTINCT FROM 't'"
        # md5 and uuid spell one hash in two ways
        unchanged = "coalesce(replace(e.target_hash, '-', '') = t._ph_target_hash AND replace(e.source_hash, '-', '') = t._ph_source_hash, false)"
        before, its_hash = "false", "t._ph_target_hash"
        if settled.matched is not None:
            # A row that an earlier job matched holds more than the source says: it is filled again where that changed.
            before = "coalesce(e.replaced = 't', false)"
            own = "coalesce(replace(e.source_hash, '-', '') = t._ph_source_hash, false)"
            unchanged = f"CASE WHEN {before} THEN {own} ELSE {unchanged} END"
            its_hash = f"CASE WHEN {before} THEN replace(e.target_hash, '-', '') ELSE t._ph_target_hash END"
            found = (
                f"{enters} AND CASE WHEN e.new_id IS NULL THEN NOT {new} ELSE {before} AND NOT {unchanged} END",
                "coalesce(e.new_id, t._ph_id)",
                "e.new_id IS NOT NULL",
            )
        inserts = fetch(duck, f"SELECT {head('t._ph_id')} {rows} WHERE {enters} AND e.new_id IS NULL AND {new}")
        updates = fetch(
            duck,
            f"SELECT {head('e.new_id')} {rows} WHERE {enters} AND e.new_id IS NOT NULL AND NOT {unchanged} AND NOT {before}",
        )
        same = fetch(
            duck,
            f"SELECT {its_hash} AS _ph_target_hash, {before} AS known {rows} WHERE {enters} AND e.new_id IS NOT NULL AND {unchanged}",
        )
    matches = matched_rows(duck, entity, settled, rows, *found) if settled.matched is not None else None
    merged, merged_before = merged_rows(duck, out, existing)
    quarantined = QUARANTINE.empty_table()
    if counts.quarantined or settled.losers:
        shape = shape_sql("t._ph_shown")
        statement = (
            f'SELECT CAST(t._ph_n AS VARCHAR) AS "row", t._ph_key AS key, t._ph_field AS field, '
            f"regexp_extract(t._ph_reason, '^[a-z_]+') AS code, "
            # what a row is matched with is in the detail alone: its key would make each a kind of its own
            f"t._ph_field || ': ' || CASE WHEN starts_with(t._ph_reason, 'match ') THEN split_part(t._ph_reason, ':', 1) "
            f"ELSE t._ph_reason END || CASE WHEN t._ph_shown <> '' AND NOT regexp_matches(t._ph_reason, "
            f"'^(reference|map|required)') THEN ': ''' || {shape} || '''' ELSE '' END AS signature, "
            f"t._ph_reason AS detail, t._ph_raw AS raw FROM {out} t WHERE t._ph_outcome = {QUARANTINED}"
        )
        if settled.losers:
            stage = literal(str(part_path(paths.stage / entity.name, part.part)))
            statement += (
                f" UNION ALL SELECT CAST(t._ph_n AS VARCHAR), t._ph_key, l.field, 'unique', l.field || ': unique ' || l.\"index\" || "
                f"CASE WHEN starts_with(l.detail, 'collides') THEN '' ELSE ', ' || l.detail END, "
                f"'unique ' || l.\"index\" || ', ' || l.detail, s.raw {rows} "
                f"JOIN (SELECT _ph_n, {raw_sql(entity)} AS raw FROM read_parquet({stage})) s ON s._ph_n = t._ph_n "
                f"WHERE t._ph_outcome = {LOADED} AND {loses}"
            )
        quarantined = fetch(duck, statement).cast(QUARANTINE)
    return BatchRows(
        _in_order(inserts),
        _in_order(updates),
        same.num_rows,
        checksum_of(same["_ph_target_hash"]),
        counts.excluded,
        _in_order(quarantined, "row"),
        _in_order(merged),
        merged_before,
        counts.excluded_by,
        None if matches is None else _in_order(matches),
        settled.matched,
        pc.sum(same["known"]).as_py() or 0,
    )


def _in_order(rows: pa.Table, column: str = "_ph_n") -> pa.Table:
    """The rows by their number in the stage: as they come, nearly always."""
    numbers = rows[column].cast(pa.int64()).combine_chunks()
    if len(numbers) < 2 or pc.all(pc.less(numbers[:-1], numbers[1:])).as_py():
        return rows
    return rows.take(pc.sort_indices(numbers))


def commit_batch(
    target: Target,
    duck: duckdb.DuckDBPyConnection,
    paths: JobPaths,
    entity: CheckedEntity,
    part: PartStaged,
    rows: BatchRows,
    version: int,
) -> Committed | None:
    """Carries a batch into the target in one transaction; what it did.

    None when the ledger has the batch already. TargetLostError leaves open whether it committed: calling again
    tells.
    """
    row = LedgerRow(
        entity.name, part.part, 1, shown_key(part.key_low), shown_key(part.key_high), version, read=part.rows
    )
    take = partial(take_alone, target, entity, row, inserts=rows.inserts.num_rows)
    with batch_transaction(target, take) as taken:
        if not taken:
            return None
        fault_point("after ledger taken")
        wrote = write_rows(target, duck, paths, entity, part, rows)
        if wrote.quarantined.num_rows:
            target.quarantine(entity.name, part.part, wrote.quarantined)
        row = replace(
            row,
            inserted=wrote.inserted,
            updated=wrote.updated,
            unchanged=rows.unchanged + wrote.same,
            merged=wrote.merged,
            excluded=rows.excluded,
            quarantined=wrote.quarantined.num_rows,
            checksum=wrote.checksum,
            matched=None if rows.decided is None else rows.known + wrote.linked,
        )
        target.settle(row)
    return Committed(row, wrote.quarantined, wrote.crosswalk)


def write_rows(
    target: Target,
    duck: duckdb.DuckDBPyConnection,
    paths: JobPaths,
    entity: CheckedEntity,
    part: PartStaged,
    rows: BatchRows,
) -> Written:
    """Writes a batch's rows and their crosswalk, in the caller's transaction. Those that the target refuses are among
    the `quarantined` of what comes back, which the caller writes."""
    refused: list[tuple[int, RowsRefusedError]] = []
    inserts, matches = rows.inserts, rows.matches
    if rows.decided is not None and matches is not None:
        inserts, late = link_late(target, duck, entity, inserts, rows.decided, refused)
        fault_point("late matches found")
        matches = pa.concat_tables([matches, late], promote_options="default")
    inserts = _with_ids(target, entity, inserts)
    inserted, replaced = enter_rows(target, entity, inserts, refused)
    fault_point("in copy")
    matched = enter_matches(target, entity, matches, refused) if matches is not None and matches.num_rows else None
    updated = _update(target, entity, rows.updates, refused)
    bad = {n for n, _ in refused}
    kept = without(inserts, bad)
    renewed = without(rows.updates, bad)
    crosswalk = _crosswalk(entity, kept, replaced)
    if kept.num_rows:
        target.crosswalk(entity.name, part.part, crosswalk)
    if renewed.num_rows:
        target.renew_crosswalk(
            entity.name,
            part.part,
            pa.table(
                {
                    "old_id": renewed["_ph_key"],
                    "source_hash": renewed["_ph_source_hash"],
                    "target_hash": renewed["_ph_target_hash"],
                }
            ),
        )
    crosswalk = crosswalk.select(["old_id", "new_id"])
    linked = crosswalk.slice(0, 0)
    if matched is not None:
        if matched.crosswalk.num_rows:
            target.crosswalk(entity.name, part.part, matched.crosswalk)
        if matched.renewed.num_rows:
            target.renew_crosswalk(entity.name, part.part, matched.renewed)
        linked = matched.crosswalk.select(["old_id", "new_id"])
        linked = linked.append_column("replaced", pa.repeat(pa.scalar("t"), linked.num_rows))
    merged = (
        target.merge_crosswalk(entity.name, part.part, rows.merged) if rows.merged.num_rows else crosswalk.slice(0, 0)
    )
    refused += homeless(rows.merged, merged)
    quarantined = rows.quarantined
    if refused:
        quarantined = pa.concat_tables([quarantined, refused_rows(duck, paths, entity, part, refused)])
    checksum = rows.unchanged_sum + checksum_of(kept["_ph_target_hash"]) + checksum_of(renewed["_ph_target_hash"])
    same = linked_rows = 0
    if matched is not None:
        checksum, same, linked_rows = checksum + checksum_of(matched.hashes), matched.same, len(matched.hashes)
        updated += matched.changed
    return Written(
        inserted, updated + len(replaced), merged.num_rows + rows.merged_before, quarantined,
        pa.concat_tables([crosswalk, merged, linked], promote_options="default"), checksum, same,
        linked_rows,
    )  # fmt: skip


def _update(target: Target, entity: CheckedEntity, rows: pa.Table, refused: list[tuple[int, RowsRefusedError]]) -> int:
    """Brings rows that an earlier job loaded up to what the source holds now; deferred columns stay."""
    if rows.num_rows == 0:
        return 0
    columns = [f.column.name for f in entity.fields if not f.deferred]
    written = rows if entity.id_column is None else named(rows, entity.id_column.name)
    if entity.id_column is None:
        # A link row is its key: one whose key leads elsewhere now stays as it is, and verification tells.
        columns = [name for name in columns if name not in entity.identity]
        now = pc.binary_join_element_wise(*(rows[c] for c in entity.identity), "\x1f")
        written = rows.filter(pc.equal(now, rows["_ph_id"]))
    before = len(refused)

    def load(slice_: pa.Table) -> None:
        with target.savepoint():
            target.update(entity.target, entity.identity, columns, slice_)

    if columns:
        load_refusing(written, load, refused)
    return int(rows.num_rows) - (len(refused) - before)


def _with_ids(target: Target, entity: CheckedEntity, rows: pa.Table) -> pa.Table:
    if entity.id_column is None:
        return rows
    if entity.plan.id == "sequence":
        ids = target.next_ids(entity.target, entity.id_column, rows.num_rows) if rows.num_rows else []
        rows = rows.set_column(rows.column_names.index("_ph_id"), "_ph_id", pa.array(ids, pa.string()))
    return named(rows, entity.id_column.name)


def named(rows: pa.Table, identity: str) -> pa.Table:
    """The rows with their id under the name of its column too."""
    return rows.append_column(identity, rows["_ph_id"])


def _crosswalk(entity: CheckedEntity, rows: pa.Table, replaced: dict[tuple[str, ...], str]) -> pa.Table:
    if entity.id_column is None:
        new = pc.binary_join_element_wise(*(rows[c] for c in entity.identity), "\x1f")
    else:
        new = rows["_ph_id"]
    held = pa.nulls(rows.num_rows, pa.string())
    if replaced:
        keys = zip(*(rows[c].to_pylist() for c in entity.identity), strict=True)
        held = pa.array([replaced.get(tuple(k)) for k in keys], pa.string())
    return pa.table(
        {
            "old_id": rows["_ph_key"],
            "new_id": new,
            "source_hash": rows["_ph_source_hash"],
            "target_hash": rows["_ph_target_hash"],
            "replaced": held,
        }
    )


def checksum_of(hashes: pa.ChunkedArray) -> int:
    """The sum of the last 60 bits of each MD5, as an exact integer; independent of the rows' order."""
    if len(hashes) == 0:
        return 0
    tails = (
        pc.utf8_slice_codeunits(pc.replace_substring(hashes, "-", ""), 17, 32)
        .to_numpy(zero_copy_only=False)
        .astype("S15")
    )
    digits = np.frombuffer(tails.tobytes(), dtype=np.uint8).reshape(len(tails), 15).astype(np.int64)
    values = np.where(digits >= 97, digits - 87, digits - 48)
    totals = values.sum(axis=0)
    return sum(int(total) << (4 * (14 - i)) for i, total in enumerate(totals))


def shown_key(key: tuple[str, ...] | None) -> str:
    """A key as the ledger has it: parts joined with U+001F, no NUL."""
    return "\x1f".join(key or ()).replace("\0", "␀")
