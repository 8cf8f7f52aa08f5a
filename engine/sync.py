"""A sync: what changed in the source since the job last read it, brought in as a further generation of the same job.

The generation is staged as a whole, then loaded batch by batch like any other; the log catches up with the target.
Rows that the source didn't change are not touched, but for those that refer to one that arrives.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from connectors.protocols import LedgerRow
from connectors.records import KeptEdit
from engine.batch import batch_rows
from engine.check import CheckedEntity, CheckedPlan
from engine.compile import key_sql, source_hash_sql
from engine.context import Context, Progress
from engine.faults import fault_point
from engine.generation import Generation, generations, open_generation, over_path, staged_parts
from engine.persist import persist
from engine.prepare import Preparer, Settled
from engine.query import literal, read_parts
from engine.references import fill_part, resolve_references
from engine.retried_rows import stage_rows, write_stage_rows
from engine.retry_batch import held_by_ours
from engine.stage import part_path
from engine.stager import recorded_parts
from engine.sync_batch import Incoming, base_rows, commit_part
from engine.sync_read import EntityRead, GenerationReader
from engine.transform import execute
from workspace.errors import InterruptedJobError, UsageError
from workspace.events import (
    BatchCommitted,
    BatchSynced,
    EntityCompleted,
    PartStaged,
    QuarantineSeen,
    SyncCompleted,
    SyncStarted,
)
from workspace.state import state_at

T = TypeVar("T")


@dataclass(frozen=True)
class SyncOptions:
    """What a person said: what becomes of rows that the source has no longer (keep, delete, mark), whether watermarks
    are not to be relied on, and what stands in the place of the entities' `edited` ("" for nothing)."""

    deletes: Literal["keep", "delete", "mark"] = "keep"
    full: bool = False
    edited: Literal["", "keep", "overwrite", "ask"] = ""


@dataclass(frozen=True)
class EntitySynced:
    """Of one entity: rows read and counted in the source; of those, new, changed, and unchanged ones driven again;
    `gone` ones that the source has no longer (None: nobody looked). Then what became of them: see LedgerRow and
    SyncCounts. `freed` left the quarantine; `references` are rows that had deferred ones filled."""

    entity: str
    seen: int = 0
    counted: int = 0
    new: int = 0
    changed: int = 0
    again: int = 0
    gone: int | None = None
    snapshot: bool = False
    watermark: str = ""
    inserted: int = 0
    updated: int = 0
    unchanged: int = 0
    excluded: int = 0
    quarantined: int = 0
    freed: int = 0
    kept: int = 0
    asked: int = 0
    deleted: int = 0
    marked: int = 0
    stayed: int = 0
    references: int = 0


@dataclass(frozen=True)
class SyncOutcome:
    """What was found, and with `done` what was brought in. `since` is when the generation before was read, `lag` the
    seconds from then until this one was. `kept` are rows of the target that stay as somebody edited them, of this
    and earlier syncs; `skipped` are entities without a key, whose changes nobody can tell."""

    generation: int
    done: bool
    since: datetime
    lag: float
    entities: tuple[EntitySynced, ...]
    skipped: tuple[str, ...]
    kept: dict[str, list[KeptEdit]]

    @property
    def asked(self) -> int:
        """Rows of which a person is to say what holds."""
        return sum(row.asked for rows in self.kept.values() for row in rows)

    def to_dict(self) -> dict[str, Any]:
        """As JSON values."""
        return {
            "generation": self.generation,
            "done": self.done,
            "since": self.since.isoformat(timespec="milliseconds"),
            "lag_seconds": round(self.lag, 3),
            "entities": [asdict(each) for each in self.entities],
            "skipped": list(self.skipped),
            "asked": self.asked,
            "kept_rows": [
                {"entity": entity, "key": row.old_id.split("\x1f"), "id": row.new_id, "fields": row.fields.split(", "), "asked": row.asked}
                for entity, rows in self.kept.items()
                for row in rows
            ],
        }  # fmt: skip


class Sync:
    """One command's part of it."""

    def __init__(self, ctx: Context, options: SyncOptions) -> None:
        """UsageError where the job isn't loaded to the end or was taken back, or where a sync is under way that was
        begun with other options."""
        self._ctx, self._options = ctx, options
        self._again = f"migrate sync {ctx.paths.job}"
        job = f"job {ctx.paths.job}"
        if state_at(ctx.workspace).progress.taken_back:
            raise UsageError("the job was taken back and is over", where=job, advice="a new job loads anew")
        if merging := [e.name for e in ctx.checked.entities if e.plan.merge is not None]:
            raise UsageError(
                f"the plan merges duplicates of {merging[0]}, and a sync looks at what changed alone", where=job,
                advice="start a new job over the same systems: it loads what is new and merges it into what is there",
            )  # fmt: skip
        ended = {
            e.event.entity
            for e in ctx.workspace.events(types=[EntityCompleted])
            if isinstance(e.event, EntityCompleted)
        }
        if not set(ctx.checked.plan.entities) <= ended:
            raise UsageError(
                "the job has not loaded all of its rows yet", where=job, advice=f"migrate resume {ctx.paths.job}"
            )
        self._under_way = open_generation(ctx.workspace)
        under_way = self._under_way
        if under_way and options not in (
            SyncOptions(),
            _options(under_way),
        ):
            raise UsageError(
                "a sync with other options is under way", where=job, advice=f"`{self._again}` goes on with it"
            )
        self._skipped = tuple(e.name for e in ctx.checked.entities if not e.plan.key)

    def foresee(self) -> SyncOutcome:
        """What the source holds otherwise; nothing is written, not even to the stage."""
        ctx = self._ctx
        if not ctx.target.know(ctx.paths.job):
            raise UsageError("nothing of the job is in the target", where=f"job {ctx.paths.job}")
        for entity in ctx.checked.entities:
            ctx.target.know_entity(ctx.source_identity, entity.name, entity.plan.to)
        before = generations(ctx.workspace)
        number = before[-1].number + 1
        began = datetime.now(UTC)
        with GenerationReader(ctx, number) as reader:
            found = reader.read()
        entities = tuple(_read(read) for read in found)
        return self._outcome(number, False, _closed(before), began, entities)

    def run(self) -> SyncOutcome:
        """Reads what changed and brings it in, or goes on with what an earlier command staged.

        InterruptedJobError when `stop` said so between two batches, JobFailedError where retrying did not help; either
        way the same command goes on."""
        ctx = self._ctx
        self._persist("taking the job", self._take)
        self._catch_up()
        edited = self._under_way.edited if self._under_way else self._options.edited
        if edited:
            ctx = self._ctx = replace(ctx, checked=_with_policy(ctx.checked, edited))
        generation = self._under_way or self._stage()
        preparer = Preparer(ctx.paths, ctx.checked, f"sync-{generation.number}")
        try:
            for entity in self._concerned(generation):
                _Entity(self, preparer, entity, generation).load()
            fault_point("sync between passes")
            for entity in self._concerned(generation):
                if entity.deferred:
                    _Entity(self, preparer, entity, generation).fill_references()
        finally:
            preparer.close()
        for entity in ctx.checked.entities:
            if entity.id_column is not None and entity.id_column.sequence:
                raise_ = partial(ctx.target.raise_sequence, entity.target, entity.id_column)
                self._persist(f"the sequence of {entity.name}", raise_)
        fault_point("sync before completed")
        ctx.workspace.record(
            SyncCompleted(generation.number), *(EntityCompleted(name) for name in sorted(generation.staged))
        )
        return self._persist("reading the ledger", partial(self._told, generation))

    # -- the generation ---------------------------------------------------------------------------

    def _take(self) -> None:
        target = self._ctx.target
        target.prepare()
        target.lease(self._ctx.paths.job, self._ctx.source_identity)
        for entity in self._ctx.checked.entities:
            target.register_entity(self._ctx.source_identity, entity.name, entity.plan.to)

    def _stage(self) -> Generation:
        """Reads a generation and has the log tell of it, of all entities at once: it stands whole or not at all."""
        ctx, options = self._ctx, self._options
        last = generations(ctx.workspace)[-1]
        number = last.number + 1 if last.completed else last.number
        ctx.workspace.record(SyncStarted(number, options.deletes, options.full, options.edited))
        fault_point("sync begun")
        with GenerationReader(ctx, number) as reader:
            found = reader.read()
            self._persist("reading the crosswalk", partial(reader.stage, found))
        fault_point("sync parts written")
        parts = [part for read in found for part in read.parts]
        ctx.workspace.record(*parts, *(read.event(number) for read in found))
        fault_point("sync staged")
        generation = open_generation(ctx.workspace)
        assert generation is not None
        return generation

    def _concerned(self, generation: Generation) -> list[CheckedEntity]:
        staged = generation.staged
        return [e for e in self._ctx.checked.entities if e.name in staged and staged[e.name].parts]

    def _catch_up(self) -> None:
        """Records batches that the target committed and the log doesn't tell of: the crash came in between."""
        told = {
            (e.event.entity, e.event.batch, e.event.step)
            for e in self._ctx.workspace.events(types=[BatchCommitted])
            if isinstance(e.event, BatchCommitted)
        }
        for row in self._persist("reading the ledger", self._ctx.target.ledger):
            if (row.entity, row.batch, row.step) not in told:
                self.tell(row, 0.0, recovered=True)

    # -- what became of it ------------------------------------------------------------------------

    def tell(self, row: LedgerRow, seconds: float, *, recovered: bool = False) -> None:
        """Tells the log of a batch that the target has committed, all of it at once."""
        events: list[QuarantineSeen | BatchSynced] = []
        target, name = self._ctx.target, row.entity
        if row.step == 1:
            seen = self._persist("reading the quarantine", partial(target.clusters, name, row.batch))
            events += [
                QuarantineSeen(entity=name, signature=signature, code=code, field=field_, count=n, batch=row.batch)
                for signature, code, field_, n in seen
            ]
            events.append(self._persist("reading the ledger", partial(self._synced, row)))
        committed = BatchCommitted(
            entity=name, batch=row.batch, step=1 if row.step == 1 else 2, plan_version=row.plan_version, read=row.read,
            inserted=row.inserted, updated=row.updated, unchanged=row.unchanged, merged=row.merged, excluded=row.excluded,
            quarantined=row.quarantined, seconds=seconds, recovered=recovered,
        )  # fmt: skip
        self._ctx.workspace.record(committed, *events)
        fault_point("sync after checkpoint")

    def _synced(self, row: LedgerRow) -> BatchSynced:
        target = self._ctx.target
        over = target.superseded_counts(row.entity, row.batch)
        sums = {
            name: sum(each.get(name, 0) for each in over.values()) for name in ("loaded", "excluded", "quarantined")
        }
        clusters = [
            {"batch": batch, "clusters": target.clusters_held(row.entity, batch).get(batch, [])}
            for batch, each in sorted(over.items())
            if each.get("quarantined")
        ]
        return BatchSynced(
            row.entity, row.batch, **sums, clusters=clusters, **asdict(target.sync_counts(row.entity, row.batch))
        )

    def _told(self, generation: Generation) -> SyncOutcome:
        target = self._ctx.target
        ledger = {(row.entity, row.batch, row.step): row for row in target.ledger()}
        entities = []
        for entity in self._ctx.checked.entities:
            staged = generation.staged.get(entity.name)
            if staged is None:
                continue
            sums = dict.fromkeys(
                ("inserted", "updated", "unchanged", "excluded", "quarantined", "freed", "kept", "asked", "deleted", "marked", "stayed", "references"),
                0,
            )  # fmt: skip
            for part in staged_parts(self._ctx.workspace, staged):
                row = ledger[entity.name, part.part, 1]
                for name in ("inserted", "updated", "unchanged", "excluded", "quarantined"):
                    sums[name] += getattr(row, name)
                for name, count in asdict(target.sync_counts(entity.name, part.part)).items():
                    sums[name] += count
                over = target.superseded_counts(entity.name, part.part)
                sums["freed"] += sum(each.get("quarantined", 0) for each in over.values())
                second = ledger.get((entity.name, part.part, 2))
                sums["references"] += second.updated if second else 0
            entities.append(
                EntitySynced(
                    entity.name, staged.seen, staged.counted, staged.new, staged.changed, staged.again, staged.gone,
                    staged.snapshot, staged.watermark, **sums,
                )
            )  # fmt: skip
        before = [g for g in generations(self._ctx.workspace) if g.number < generation.number]
        return self._outcome(generation.number, True, _closed(before), generation.began, tuple(entities))

    def _outcome(
        self, number: int, done: bool, before: Generation, began: datetime, entities: tuple[EntitySynced, ...]
    ) -> SyncOutcome:
        kept = {e.name: self._ctx.target.kept_edits(e.name) for e in self._ctx.checked.entities}
        lag = (began - before.began).total_seconds()
        return SyncOutcome(
            number,
            done,
            before.began,
            lag,
            entities,
            self._skipped,
            {name: rows for name, rows in kept.items() if rows},
        )

    def _persist(self, what: str, act: Callable[[], T]) -> T:
        return persist(self._ctx, what, act, self._again)

    def stop_if_asked(self) -> None:
        """InterruptedJobError where a person asked to stop."""
        if self._ctx.stop():
            raise InterruptedJobError(
                "interrupted; what was committed stays", where=f"job {self._ctx.paths.job}", advice=self._again
            )

    @property
    def context(self) -> Context:
        """What the sync works with."""
        return self._ctx

    def persist(self, what: str, act: Callable[[], T]) -> T:
        """Does it, again after a lost connection or what passes."""
        return self._persist(what, act)


class _Entity:
    """One entity's parts of a generation on their way."""

    def __init__(self, sync: Sync, preparer: Preparer, entity: CheckedEntity, generation: Generation) -> None:
        self._sync, self._ctx, self._preparer, self._entity = sync, sync.context, preparer, entity
        self._parts = staged_parts(self._ctx.workspace, generation.staged[entity.name])
        self._before = [
            part for part in recorded_parts(self._ctx.workspace, entity.name) if part.part < self._parts[0].part
        ]
        self._start = sum(part.rows for part in self._before)
        self._stage = self._ctx.paths.stage / entity.name

    def load(self) -> None:
        """Commits the parts that the ledger doesn't have."""
        ctx, entity, preparer = self._ctx, self._entity, self._preparer
        ledger = self._sync.persist("reading the ledger", ctx.target.ledger)
        there = {row.batch for row in ledger if row.entity == entity.name and row.step == 1}
        if all(part.part in there for part in self._parts):
            return
        self._take_crosswalks({f.plan.ref for f in entity.fields if f.plan.ref is not None and not f.deferred})
        existing = self._sync.persist(
            f"reading the crosswalk of {entity.name}", partial(preparer.existing, entity, ctx.target)
        )
        settler = self._sync.persist(
            f"reading the keys in {entity.plan.to}", partial(preparer.settler, entity, ctx.target, ours=True)
        )
        settler.pass_over(self._start)
        base = self._base(existing)
        done = held = 0
        for part in self._parts:
            out, counts = preparer.transform(entity, part)
            settled = Settled(part, out, counts, settler.settle(part.part, out, part.rows))
            if part.part not in there:
                self._sync.stop_if_asked()
                held += self._commit(settled, existing, base).quarantined
            done += part.rows
            ctx.progress(Progress("sync", entity.name, done, sum(p.rows for p in self._parts), held))

    def _commit(self, settled: Settled, existing: Path | None, base: list[Path]) -> LedgerRow:
        ctx, entity, part, duck = self._ctx, self._entity, settled.part, self._preparer.duck
        rows = batch_rows(duck, ctx.paths, entity, settled, existing)
        doubled: frozenset[int] = frozenset()
        if entity.plan.write == "upsert" and existing is not None:
            doubled = frozenset(held_by_ours(duck, entity, settled.out, existing))
        over = pq.read_table(over_path(self._stage, part.part), columns=["n", "of_batch", "excluded"])
        texts = [over[name].cast(pa.string()) for name in over.column_names]
        incoming = Incoming(
            rows, pa.table(texts, over.column_names), base_rows(duck, entity, base, rows.updates), doubled, existing
        )
        started = time.monotonic()
        commit = partial(commit_part, ctx.target, duck, ctx.paths, entity, part, incoming, ctx.checked.plan.version)
        row = self._sync.persist(f"batch {part.part} of {entity.name}", commit)
        recovered = row is None
        if row is None:  # an earlier try did commit, though its answer was lost
            ledger = self._sync.persist("reading the ledger", ctx.target.ledger)
            row = next(r for r in ledger if (r.entity, r.batch, r.step) == (entity.name, part.part, 1))
        self._sync.tell(row, time.monotonic() - started, recovered=recovered)
        return row

    def _base(self, existing: Path | None) -> list[Path]:
        """What was written of the rows that are to be updated: for each, the version in the stage that the crosswalk
        has the checksum of, transformed anew."""
        if existing is None or not self._before:
            return []
        entity, duck = self._entity, self._preparer.duck
        folder = self._preparer.folder(entity)
        files = read_parts(part_path(self._stage, part.part) for part in self._before)
        over = read_parts(over_path(self._stage, part.part) for part in self._parts)
        versions = (
            f"SELECT max(v.n) AS n FROM (SELECT _ph_n AS n, {key_sql(entity)} AS key, {source_hash_sql(entity)} AS hash FROM {files}) v "
            f"JOIN read_parquet({literal(str(existing))}) x ON x.old_id = v.key AND replace(x.source_hash, '-', '') = v.hash "
            f"WHERE v.key IN (SELECT key FROM {over}) GROUP BY v.key"
        )
        execute(duck, f"CREATE OR REPLACE TEMP TABLE base_versions AS {versions}")
        edits = {row.row: row for row in self._ctx.target.retried_rows(entity.name) if row.edited}
        (numbers,) = zip(*execute(duck, "SELECT n FROM base_versions"), strict=True) or ((),)
        found = []
        plain = folder / "base-rows.parquet"
        listed = ", ".join(map(str, edits)) or "-1"
        execute(
            duck,
            f"COPY (SELECT * FROM {files} WHERE _ph_n IN (SELECT n FROM base_versions) AND _ph_n NOT IN ({listed})) "
            f"TO {literal(str(plain))} (FORMAT parquet)",
        )
        found.append(plain)
        for n in sorted(set(numbers) & set(edits)):
            table = stage_rows(self._stage, edits[n].batch, [n], {n: edits[n].edited})
            found.append(write_stage_rows(folder / f"base-row-{n}.parquet", table))
        outs = []
        for staged in found:
            out = staged.with_name(f"{staged.stem}-out.parquet")
            self._preparer.transform_file(entity, staged, out)
            outs.append(out)
        return outs

    def fill_references(self) -> None:
        """The second pass over the parts: references within the entity, or to entities loaded after it."""
        ctx, entity, preparer = self._ctx, self._entity, self._preparer
        ledger = self._sync.persist("reading the ledger", ctx.target.ledger)
        there = {row.batch for row in ledger if row.entity == entity.name and row.step == 2}
        todo = [part for part in self._parts if part.part not in there]
        if not todo:
            return
        self._take_crosswalks({f.plan.ref for f in entity.deferred if f.plan.ref is not None} | {entity.name})
        resolved = resolve_references(preparer, entity, self._parts)
        position = self._start
        for part in self._parts:
            if part in todo:
                self._sync.stop_if_asked()
                self._fill(resolved, part, position)
            position += part.rows

    def _fill(self, resolved: Path, part: PartStaged, position: int) -> None:
        ctx, entity = self._ctx, self._entity
        started = time.monotonic()
        done = self._sync.persist(
            f"references of batch {part.part} of {entity.name}",
            partial(fill_part, ctx, self._preparer, entity, resolved, part, position),
        )
        row = done[0] if done is not None else None
        recovered = row is None
        if row is None:
            ledger = self._sync.persist("reading the ledger", ctx.target.ledger)
            row = next(r for r in ledger if (r.entity, r.batch, r.step) == (entity.name, part.part, 2))
        self._sync.tell(row, time.monotonic() - started, recovered=recovered)

    def _take_crosswalks(self, names: set[str]) -> None:
        """Has the entity's references looked up in the crosswalks that the target has now."""
        for name in sorted(names):
            take = partial(self._preparer.take_crosswalk, self._ctx.checked.entity(name), self._ctx.target)
            self._sync.persist(f"reading the crosswalk of {name}", take)


def _read(read: EntityRead) -> EntitySynced:
    return EntitySynced(
        read.entity.name,
        read.seen,
        read.counted,
        read.new,
        read.changed,
        read.again,
        read.gone,
        read.snapshot,
        read.watermark,
    )


def _closed(before: list[Generation]) -> Generation:
    """The last generation that is wholly in the target."""
    return next(g for g in reversed(before) if g.completed)


def _options(generation: Generation) -> SyncOptions:
    return SyncOptions(generation.deletes, generation.full, generation.edited)


def _with_policy(checked: CheckedPlan, edited: str) -> CheckedPlan:
    """The plan with another `edited` for each entity; fields that say their own keep it."""
    entities = tuple(replace(e, plan=e.plan.model_copy(update={"edited": edited})) for e in checked.entities)
    return replace(checked, entities=entities)
