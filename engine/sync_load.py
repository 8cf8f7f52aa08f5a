"""One entity's parts of a generation, carried over batch by batch; its references; and rows that leave the target.

What was written before is made anew from the stage, so that an edit in the target is told from it field by field.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from connectors.protocols import LedgerRow
from engine.archive import Archive
from engine.batch import batch_rows
from engine.check import CheckedEntity
from engine.compile import key_sql, source_hash_sql
from engine.context import Context, Progress
from engine.generation import Generation, over_path, removal_parts, staged_parts
from engine.persist import persist, stop_if_asked
from engine.prepare import Preparer, Settled
from engine.query import LOADED, literal, read_parts
from engine.references import resolve_references
from engine.retried_rows import stage_rows, write_stage_rows
from engine.retry_batch import held_by_ours
from engine.stage import part_path
from engine.stager import recorded_parts
from engine.sync_batch import Incoming, base_rows, commit_part, commit_references
from engine.sync_removal import commit_removal
from engine.transform import execute
from workspace.events import PartStaged

T = TypeVar("T")

Tell = Callable[[LedgerRow, float, bool], None]
"""Tells the log of a batch that the target has committed: its row, the seconds it took, whether an earlier try did it."""


class EntityLoad:
    """One entity's parts of a generation on their way."""

    def __init__(
        self, ctx: Context, preparer: Preparer, by: Preparer, entity: CheckedEntity, generation: Generation, tell: Tell
    ) -> None:
        """`by` transforms as the rows in the target were written: as `preparer` does, but for a re-drive."""
        self._by, self._written = by, by.checked.entity(entity.name)
        self._ctx, self._preparer, self._entity, self._tell = ctx, preparer, entity, tell
        self._verb = "migrate resume" if generation.redriven else "migrate sync"
        self._again = f"{self._verb} {ctx.paths.job}"
        self._generation = generation
        self._parts = staged_parts(ctx.workspace, generation.staged[entity.name])
        self._removals = removal_parts(ctx.workspace, generation.staged[entity.name])
        first = generation.staged[entity.name].first
        self._before = [part for part in recorded_parts(ctx.workspace, entity.name) if part.part < first]
        self._start = sum(part.rows for part in self._before)
        self._stage = self._ctx.paths.stage / entity.name

    def load(self) -> None:
        """Commits the parts that the ledger doesn't have."""
        ctx, entity, preparer = self._ctx, self._entity, self._preparer
        ledger = self._persist("reading the ledger", ctx.target.ledger)
        there = {row.batch for row in ledger if row.entity == entity.name and row.step == 1}
        if all(part.part in there for part in self._parts):
            return
        self._take_crosswalks({f.plan.ref for f in entity.fields if f.plan.ref is not None and not f.deferred})
        existing = self._persist(
            f"reading the crosswalk of {entity.name}", partial(preparer.existing, entity, ctx.target)
        )
        settler = self._persist(
            f"reading the keys in {entity.plan.to}", partial(preparer.settler, entity, ctx.target, ours=True)
        )
        settler.pass_over(self._start)
        base = self._base(existing)
        done = held = 0
        for part in self._parts:
            out, counts = preparer.transform(entity, part)
            settled = Settled(part, out, counts, settler.settle(part.part, out, part.rows))
            if part.part not in there:
                stop_if_asked(self._ctx, self._verb)
                if archive := Archive.of(ctx.checked.plan, ctx.paths.job):
                    archive.keep(preparer.duck, entity, preparer.files(entity, part)[0], part.part)
                held += self._commit(settled, existing, base).quarantined
            done += part.rows
            ctx.progress(Progress("sync", entity.name, done, sum(p.rows for p in self._parts), held))

    def _commit(self, settled: Settled, existing: Path | None, base: list[Path]) -> LedgerRow:
        ctx, entity, part, duck = self._ctx, self._entity, settled.part, self._preparer.duck
        rows = batch_rows(duck, ctx.paths, entity, settled, self._looked_at(existing))
        doubled: frozenset[int] = frozenset()
        if entity.plan.write == "upsert" and existing is not None:
            doubled = frozenset(held_by_ours(duck, entity, settled.out, existing))
        over = pq.read_table(over_path(self._stage, part.part), columns=["n", "of_batch", "excluded"])
        texts = [over[name].cast(pa.string()) for name in over.column_names]
        incoming = Incoming(
            rows, pa.table(texts, over.column_names), base_rows(duck, self._written, base, rows.updates), doubled, existing,
            self._back(settled), self._written,
        )  # fmt: skip
        started = time.monotonic()
        commit = partial(commit_part, ctx.target, duck, ctx.paths, entity, part, incoming, ctx.checked.plan.version)
        row = self._persist(f"batch {part.part} of {entity.name}", commit)
        return self._committed(row, part, 1, started)

    def _looked_at(self, existing: Path | None) -> Path | None:
        """The crosswalk, in which rows that stay as they were edited have no checksum: what may be written of them hangs
        on the plan, also where the source says what it said before."""
        edits = self._persist("reading the crosswalk", partial(self._ctx.target.kept_edits, self._entity.name))
        kept = [row.old_id for row in edits]
        if existing is None or not kept:
            return existing
        path = existing.with_name("existing-looked-at.parquet")
        self._preparer.duck.register("kept_view", pa.table({"key": pa.array(kept, pa.string())}))
        execute(
            self._preparer.duck,
            f"COPY (SELECT * REPLACE (CASE WHEN old_id NOT IN (SELECT key FROM kept_view) THEN target_hash END AS target_hash) "
            f"FROM read_parquet({literal(str(existing))})) TO {literal(str(path))} (FORMAT parquet)",
        )
        self._preparer.duck.unregister("kept_view")
        return path

    def _back(self, settled: Settled) -> tuple[str, ...]:
        """Source keys of the part that a sync marked as deleted, and that are wanted again."""
        keys = partial(self._ctx.target.marked_keys, self._entity.name)
        marked = self._persist("reading the crosswalk", keys) if self._entity.plan.deleted is not None else []
        if not marked:
            return ()
        found = execute(
            self._preparer.duck,
            f"SELECT _ph_key FROM read_parquet({literal(str(settled.out))}) WHERE _ph_outcome = {LOADED}",
        )
        return tuple(sorted({key for (key,) in found} & set(marked)))

    def remove(self) -> None:
        """Takes out of the target what the source has no longer."""
        ctx, entity = self._ctx, self._entity
        ledger = self._persist("reading the ledger", ctx.target.ledger)
        there = {row.batch for row in ledger if row.entity == entity.name and row.step == 1}
        for part in self._removals:
            if part.part in there:
                continue
            stop_if_asked(ctx, self._verb)
            over = pq.read_table(over_path(self._stage, part.part))
            started = time.monotonic()
            commit = partial(
                commit_removal, ctx.target, entity, self._written, part, over, self._generation.deletes,
                ctx.checked.plan.version,
            )  # fmt: skip
            row = self._persist(f"batch {part.part} of {entity.name}", commit)
            self._committed(row, part, 1, started)

    def _committed(self, row: LedgerRow | None, part: PartStaged, step: int, started: float) -> LedgerRow:
        """Tells the log of a batch; `row` is None where an earlier try did commit, though its answer was lost."""
        recovered = row is None
        if row is None:
            ledger = self._persist("reading the ledger", self._ctx.target.ledger)
            row = next(r for r in ledger if (r.entity, r.batch, r.step) == (self._entity.name, part.part, step))
        self._tell(row, time.monotonic() - started, recovered)
        return row

    def _base(self, existing: Path | None) -> list[Path]:
        """What was written of the rows that are to be updated: for each, the version in the stage that the crosswalk
        has the checksum of, transformed anew."""
        if existing is None or not self._before:
            return []
        entity, duck, by = self._written, self._preparer.duck, self._by
        if by is not self._preparer:
            self._take_crosswalks({f.plan.ref for f in entity.fields if f.plan.ref is not None and not f.deferred}, by)
        folder = by.folder(entity)
        files = read_parts(part_path(self._stage, part.part) for part in self._before)
        over = read_parts(over_path(self._stage, part.part) for part in self._parts)
        versions = (
            f"SELECT max(v.n) AS n FROM (SELECT _ph_n AS n, {key_sql(entity)} AS key, {source_hash_sql(entity)} AS hash FROM {files}) v "
            f"JOIN read_parquet({literal(str(existing))}) x ON x.old_id = v.key AND replace(x.source_hash, '-', '') = v.hash "
            f"WHERE v.key IN (SELECT key FROM {over}) GROUP BY v.key"
        )
        execute(duck, f"CREATE OR REPLACE TEMP TABLE base_versions AS {versions}")
        retried = self._persist("reading the quarantine", partial(self._ctx.target.retried_rows, entity.name))
        edits = {row.row: row for row in retried if row.edited}
        numbers = {n for (n,) in execute(duck, "SELECT n FROM base_versions")}
        found = []
        plain = folder / "base-rows.parquet"
        listed = ", ".join(map(str, edits)) or "-1"
        execute(
            duck,
            f"COPY (SELECT * FROM {files} WHERE _ph_n IN (SELECT n FROM base_versions) AND _ph_n NOT IN ({listed})) "
            f"TO {literal(str(plain))} (FORMAT parquet)",
        )
        found.append(plain)
        for n in sorted(numbers & set(edits)):
            table = stage_rows(self._stage, edits[n].batch, [n], {n: edits[n].edited})
            found.append(write_stage_rows(folder / f"base-row-{n}.parquet", table))
        outs = []
        for staged in found:
            out = staged.with_name(f"{staged.stem}-out.parquet")
            by.transform_file(entity, staged, out)
            outs.append(out)
        return outs

    def fill_references(self) -> None:
        """The second pass over the parts: references within the entity, or to entities loaded after it."""
        ctx, entity, preparer = self._ctx, self._entity, self._preparer
        ledger = self._persist("reading the ledger", ctx.target.ledger)
        there = {row.batch for row in ledger if row.entity == entity.name and row.step == 2}
        todo = [part for part in self._parts if part.part not in there]
        if not todo:
            return
        self._take_crosswalks({f.plan.ref for f in entity.deferred if f.plan.ref is not None} | {entity.name})
        resolved = resolve_references(preparer, entity, self._parts)
        position = self._start
        for part in self._parts:
            if part in todo:
                stop_if_asked(self._ctx, self._verb)
                self._fill(resolved, part, position)
            position += part.rows

    def _fill(self, resolved: Path, part: PartStaged, position: int) -> None:
        ctx, entity = self._ctx, self._entity
        started = time.monotonic()
        done = self._persist(
            f"references of batch {part.part} of {entity.name}",
            partial(commit_references, ctx, self._preparer, entity, self._written, resolved, part, position),
        )
        self._committed(done, part, 2, started)

    def _take_crosswalks(self, names: set[str], by: Preparer | None = None) -> None:
        """Has the entity's references looked up in the crosswalks that the target has now."""
        for name in sorted(names):
            take = partial((by or self._preparer).take_crosswalk, self._ctx.checked.entity(name), self._ctx.target)
            self._persist(f"reading the crosswalk of {name}", take)

    def _persist(self, what: str, act: Callable[[], T]) -> T:
        return persist(self._ctx, what, act, self._again)
