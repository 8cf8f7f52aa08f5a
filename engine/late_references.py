"""References that loaded rows lack because the row they refer to was in quarantine then, and isn't any more.

Of rows that are loaded nothing else is touched, and these columns only where they hold nothing and nobody edited the row
since. One transaction a batch, with a step of its own in the ledger: what a killed command left is found by the next.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa

from connectors.protocols import LedgerRow, RowsRefusedError
from connectors.target import Target
from engine.batch import checksum_of, shown_key
from engine.check import CheckedEntity, CheckedField
from engine.compile import key_sql
from engine.context import Context
from engine.loaded import loaded_entity
from engine.persist import persist, stop_if_asked
from engine.prepare import Preparer
from engine.quarantine import catch_up, record_retry
from engine.query import LOADED, identifier, literal, read_parts
from engine.references import referring_sql
from engine.refusing import load_refusing
from engine.retried_rows import stage_keys, stage_rows, write_stage_rows
from engine.stage import part_path
from engine.stager import recorded_parts
from engine.transaction import batch_transaction
from engine.transform import execute, fetch
from workspace.events import PartStaged

T = TypeVar("T")


@dataclass(frozen=True)
class _Lacking:
    """Rows of one batch that may lack references: by source key, the number in the stage, the id in the target, the
    checksum that the crosswalk has, and the ids of the rows they refer to, by column."""

    batch: int
    fields: tuple[CheckedField, ...]
    rows: pa.Table

    @property
    def columns(self) -> list[str]:
        return [f.column.name for f in self.fields]


class LateReferences:
    """One command's part of it. The job is leased, and its entities are known to the target."""

    def __init__(self, ctx: Context, verb: str) -> None:
        """`verb` is the command that goes on with it, without the job's name."""
        self._ctx, self._verb = ctx, verb
        self._preparer = Preparer(ctx.paths, ctx.checked, f"late-v{ctx.checked.plan.version}")
        self._duck = self._preparer.duck

    def fill(self) -> dict[str, int]:
        """Fills them; how many rows of which entity. Entities that merge duplicates are left as they are: there, a
        row's references are its cluster's. InterruptedJobError, JobFailedError as any command's."""
        ctx = self._ctx
        self._persist("reading the ledger", partial(catch_up, ctx.workspace, ctx.target, ctx.checked.plan))
        filled: dict[str, int] = {}
        try:
            arrived: dict[str, str] = {}
            for number, name in enumerate(sorted({ref for e in ctx.checked.entities for ref in e.references})):
                table = f"late_arrivals_{number}"
                if self._arrivals(ctx.checked.entity(name), table):
                    arrived[name] = table
            for entity in ctx.checked.entities:
                fields = tuple(f for f in entity.fields if f.plan.ref in arrived)
                if fields and entity.id_column is not None and entity.plan.key and entity.plan.merge is None:
                    filled[entity.name] = self._fill_entity(entity, fields, arrived)
        finally:
            self._preparer.close()
        return {name: count for name, count in filled.items() if count}

    def _arrivals(self, entity: CheckedEntity, table: str) -> bool:
        """Makes a table of the source keys of rows that left the quarantine into the target. False where none did."""
        target, parts = self._ctx.target, recorded_parts(self._ctx.workspace, entity.name)
        retried = self._persist("reading the quarantine", partial(target.retried_rows, entity.name))
        freed = self._persist("reading the ledger", partial(target.freed_rows, entity.name))
        numbers = [*freed, *(row.row for row in retried if not row.excluded)]
        if not numbers or not parts:
            return False
        take = partial(self._preparer.take_crosswalk, entity, target)
        crosswalk = self._persist(f"reading the crosswalk of {entity.name}", take)
        self._duck.register("late_numbers", pa.table({"n": pa.array(numbers, pa.int64())}))
        execute(
            self._duck,
            f"CREATE OR REPLACE TEMP TABLE {table} AS SELECT DISTINCT lower(trim(s.key)) AS key FROM "
            f"(SELECT {key_sql(entity)} AS key FROM {read_parts(self._staged(entity, p) for p in parts)} "
            f"WHERE _ph_n IN (SELECT n FROM late_numbers)) s JOIN read_parquet({literal(str(crosswalk))}) x ON x.old_id = s.key",
        )
        self._duck.unregister("late_numbers")
        return bool(execute(self._duck, f"SELECT count(*) FROM {table}")[0][0])

    def _fill_entity(self, entity: CheckedEntity, fields: tuple[CheckedField, ...], arrived: Mapping[str, str]) -> int:
        ctx, duck, filled = self._ctx, self._duck, 0
        parts = recorded_parts(ctx.workspace, entity.name)
        stage = [self._staged(entity, part) for part in parts]
        execute(duck, "CREATE OR REPLACE TEMP TABLE late_rows (n BIGINT)")
        for field in fields:
            execute(duck, f"INSERT INTO late_rows {referring_sql(entity, field, stage, arrived[field.plan.ref or ''])}")
        if not stage or not execute(duck, "SELECT count(*) FROM late_rows")[0][0]:
            return 0
        keys = partial(stage_keys, ctx, entity, duck, [part.part for part in parts], "late_staged")
        self._persist("reading the ledger", keys)
        for name in sorted({f.plan.ref for f in entity.fields if f.plan.ref is not None} | {entity.name}):
            take = partial(self._preparer.take_crosswalk, ctx.checked.entity(name), ctx.target)
            self._persist(f"reading the crosswalk of {name}", take)
        execute(
            duck,
            "CREATE OR REPLACE TEMP TABLE late_loaded AS SELECT DISTINCT s.n, s.key, x.new_id, x.target_hash, x.reference_hash, "
            "x.batch::INT AS batch "
            f"FROM late_staged s JOIN late_rows USING (n) JOIN read_parquet({literal(str(self._preparer.crosswalks[entity.name]))}) x "
            f"ON x.old_id = s.key WHERE s.wanted AND x.merged IS DISTINCT FROM 't' AND x.job_id = '{int(ctx.target.job_id)}'",
        )
        retried = self._persist("reading the quarantine", partial(ctx.target.retried_rows, entity.name))
        edits = {row.row: row.edited for row in retried if row.edited}
        start = 0
        for part in parts:
            stop_if_asked(ctx, self._verb)
            found = execute(duck, f"SELECT n FROM late_loaded WHERE n >= {start} AND n < {start + part.rows}")
            if found:
                numbers = [n for (n,) in found]
                mine = {n: edits[n] for n in numbers if n in edits}
                table = stage_rows(ctx.paths.stage / entity.name, part.part, numbers, mine)
                filled += self._fill_part(entity, fields, part, table)
            start += part.rows
        return filled

    def _fill_part(
        self, entity: CheckedEntity, fields: tuple[CheckedField, ...], part: PartStaged, table: pa.Table
    ) -> int:
        filled = 0
        folder = self._preparer.folder(entity)
        staged = write_stage_rows(folder / "late-rows.parquet", table)
        resolved = self._resolved(entity, fields, staged, folder / "late-rows-out.parquet")
        batches = execute(self._duck, f"SELECT DISTINCT batch FROM late_loaded JOIN ({resolved}) USING (n) ORDER BY 1")
        for (batch,) in batches:
            rows = fetch(
                self._duck,
                f"SELECT l.n AS _ph_n, l.key AS _ph_key, l.new_id AS _ph_id, l.target_hash AS _ph_target_hash, r.* EXCLUDE (n) "
                f"FROM late_loaded l JOIN ({resolved}) r USING (n) WHERE l.batch = {int(batch)} ORDER BY l.n",
            )
            lacking = _Lacking(batch, fields, rows)
            if self._persist(f"reading {entity.plan.to}", partial(_empty, self._ctx.target, entity, lacking)):
                filled += self._commit(entity, part, lacking)
        return filled

    def _resolved(self, entity: CheckedEntity, fields: tuple[CheckedField, ...], staged: Path, out: Path) -> str:
        """A SELECT of the rows' numbers and what their references are to hold, by column. Rows of which the crosswalk says
        that they hold it are left out: each command looks at all that ever came late, and the target need not."""
        listed = {f.column.name: f"{'d' if f.deferred else 't'}.{identifier(f.column.name)}" for f in fields}
        self._preparer.transform_file(entity, staged, out)
        joined, others = "", []
        if not all(f.deferred for f in fields):
            others.append("t._ph_target_hash IS DISTINCT FROM replace(l.target_hash, '-', '')")
        if any(f.deferred for f in fields):
            query = self._preparer.second_pass(entity).over(staged)
            execute(self._duck, f"CREATE OR REPLACE TEMP TABLE late_deferred AS SELECT * FROM ({query})")
            joined = "JOIN late_deferred d ON d._ph_n = t._ph_n"
            others.append("d._ph_target_hash IS DISTINCT FROM replace(l.reference_hash, '-', '')")
        return (
            f"SELECT t._ph_n AS n, {', '.join(listed.values())} FROM read_parquet({literal(str(out))}) t "
            f"JOIN late_loaded l ON l.n = t._ph_n {joined} "
            f"WHERE t._ph_outcome = {LOADED} AND ({' OR '.join(others)}) AND ({' OR '.join(f'{each} IS NOT NULL' for each in listed.values())})"
        )

    def _commit(self, entity: CheckedEntity, part: PartStaged, lacking: _Lacking) -> int:
        ctx = self._ctx
        # even: in the ledger, the step of a retry that fills references
        next_step = partial(ctx.target.next_step, entity.name, lacking.batch)
        step = self._persist("reading the ledger", next_step) + 1
        row = LedgerRow(
            entity.name, lacking.batch, step, shown_key(part.key_low), shown_key(part.key_high), ctx.checked.plan.version
        )  # fmt: skip
        started = time.monotonic()
        commit = partial(_commit, ctx.target, entity, row, lacking)
        done = self._persist(f"late references of batch {lacking.batch} of {entity.name}", commit)
        tell = partial(
            record_retry, ctx.workspace, ctx.target, entity.name, lacking.batch, time.monotonic() - started,
            recovered=done is None,
        )  # fmt: skip
        self._persist("reading the ledger", tell)
        return 0 if done is None else done

    def _staged(self, entity: CheckedEntity, part: PartStaged) -> Path:
        return part_path(self._ctx.paths.stage / entity.name, part.part)

    def _persist(self, what: str, act: Callable[[], T]) -> T:
        return persist(self._ctx, what, act, f"{self._verb} {self._ctx.paths.job}")


def _empty(target: Target, entity: CheckedEntity, lacking: _Lacking) -> dict[str, list[int]]:
    """By column, the places of rows that hold nothing there, and for which there is something."""
    rows, found = lacking.rows, dict[str, list[int]]()
    given: Sequence[Sequence[str | None]] = list(zip(*(rows[c].to_pylist() for c in lacking.columns), strict=True))
    columns = [f.column for f in lacking.fields]
    held = target.beside(entity.target, loaded_entity(entity).identity, rows["_ph_id"].to_pylist(), columns, given)
    for place, (values, pairs) in enumerate(zip(given, held, strict=True)):
        for name, value, (_, there) in zip(lacking.columns, values, pairs, strict=True):
            if value is not None and there is None:
                found.setdefault(name, []).append(place)
    return found


def _commit(target: Target, entity: CheckedEntity, row: LedgerRow, lacking: _Lacking) -> int | None:
    """Fills the references that are empty in rows that nobody edited, in one transaction: how many rows. None when the
    ledger has the step. What the target refuses stays empty."""
    assert entity.id_column is not None
    with batch_transaction(target, partial(target.take, row), "retry ") as taken:
        if not taken:
            return None
        lacking = replace(lacking, rows=_unedited(target, entity, lacking))
        rows, refused = lacking.rows, list[tuple[int, RowsRefusedError]]()
        done: set[int] = set()
        identity = entity.id_column.name
        for column, places in (_empty(target, entity, lacking) if rows.num_rows else {}).items():
            some = rows.take(pa.array(places, pa.int64()))
            some = some.append_column(identity, some["_ph_id"])

            def load(slice_: pa.Table, column: str = column) -> None:
                with target.savepoint():
                    target.update(entity.target, [identity], [column], slice_)

            before = len(refused)
            load_refusing(some, load, refused)
            done |= set(some["_ph_n"].to_pylist()) - {n for n, _ in refused[before:]}
        rows = rows.filter(pa.array([n in done for n in rows["_ph_n"].to_pylist()], pa.bool_()))
        now = target.rehash(loaded_entity(entity), rows["_ph_key"].to_pylist())
        changed = checksum_of(pa.chunked_array([list(now.values())], pa.string())) - checksum_of(
            rows["_ph_target_hash"]
        )
        target.settle(replace(row, updated=rows.num_rows, checksum=changed))
    return int(rows.num_rows)


def _unedited(target: Target, entity: CheckedEntity, lacking: _Lacking) -> pa.Table:
    """The rows without those that hold something else than what was written; all of them locked."""
    assert entity.id_column is not None
    rows, loaded = lacking.rows, loaded_entity(entity)
    direct: list[str] = [f.column.name for f in lacking.fields if not f.deferred]
    looked_at = rows.append_column(entity.id_column.name, rows["_ph_id"])
    edited: set[Any] = {e.key for e in target.edited_rows(loaded, direct, looked_at, looked_at.slice(0, 0))}
    if entity.deferred:
        edited |= set(target.edited_references(loaded, rows["_ph_key"].to_pylist()))
    return rows.filter(pa.array([key not in edited for key in rows["_ph_key"].to_pylist()], pa.bool_()))
