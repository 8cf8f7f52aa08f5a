"""A sync: what changed in the source since the job last read it, brought in as a further generation of the same job.

The generation is staged as a whole, then loaded batch by batch like any other; the log catches up with the target.
Rows that the source didn't change are not touched, but for those that refer to one that arrives.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, replace
from datetime import UTC, datetime
from functools import partial
from typing import TypeVar

from connectors.protocols import LedgerRow
from engine.check import CheckedEntity, CheckedPlan
from engine.context import Context
from engine.faults import fault_point
from engine.generation import (
    Deletes,
    Generation,
    generations,
    open_generation,
    open_redrive,
    removal_parts,
    staged_parts,
)
from engine.late_references import LateReferences
from engine.persist import persist
from engine.prepare import Preparer
from engine.retry_plan import adopt
from engine.sync_load import EntityLoad
from engine.sync_outcome import EntitySynced, SyncOptions, SyncOutcome
from engine.sync_read import GenerationReader, why_not
from engine.sync_stage import EntityRead
from workspace.errors import CatalogueError, PlanError, UsageError
from workspace.events import (
    BatchCommitted,
    BatchSynced,
    EntityCompleted,
    QuarantineSeen,
    SyncCompleted,
    SyncStarted,
)
from workspace.state import state_at

T = TypeVar("T")


class Sync:
    """One command's part of it."""

    def __init__(self, ctx: Context, options: SyncOptions, checked: CheckedPlan | None = None) -> None:
        """`checked` is the plan's next version, as `check_policies` gives it. UsageError where the job isn't loaded to
        the end or was taken back, or where a sync is under way that was begun with other options or another plan."""
        self._ctx, self._options, self._checked = ctx, options, checked or ctx.checked
        self._again = f"migrate sync {ctx.paths.job}"
        job = f"job {ctx.paths.job}"
        if state_at(ctx.workspace).progress.taken_back:
            raise UsageError("the job was taken back and is over", where=job, advice="a new job loads anew")
        if merging := [e.name for e in ctx.checked.entities if e.plan.merge is not None]:
            raise UsageError(
                f"the plan merges duplicates of {merging[0]}, and a sync looks at what changed alone", where=job,
                advice="start a new job over the same systems: it loads what is new and merges it into what is there",
            )  # fmt: skip
        if matching := [e.name for e in ctx.checked.entities if e.plan.match is not None]:
            raise UsageError(
                f"the plan matches rows of {matching[0]}, which a sync doesn't do", where=job,
                advice="start a new job over the same systems: it loads what is new, and updates what is there",
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
        others = options not in (SyncOptions(), _options(under_way)) if under_way else False
        if under_way and (others or self._checked is not ctx.checked):
            raise UsageError(
                "a sync with other options is under way", where=job, advice=f"`{self._again}` goes on with it"
            )
        _check_rights(ctx, options.deletes)
        self._skipped = {e.name: why for e in ctx.checked.entities if (why := why_not(e))}

    def foresee(self) -> SyncOutcome:
        """What the source holds otherwise; nothing is written, not even to the stage. UsageError while a re-drive is
        under way."""
        ctx = self._ctx
        self._refuse_redrive()
        if not ctx.target.know(ctx.paths.job):
            raise UsageError("nothing of the job is in the target", where=f"job {ctx.paths.job}")
        for entity in ctx.checked.entities:
            ctx.target.know_entity(ctx.source_identity, entity.name, entity.plan.to)
        ctx = replace(ctx, checked=self._checked)
        before = generations(ctx.workspace)
        number = before[-1].number + 1
        began = datetime.now(UTC)
        with GenerationReader(ctx, number, self._again, self._options.deletes, full=self._options.full) as reader:
            found = reader.read()
        entities = tuple(_read(read) for read in found)
        return self._outcome(number, False, _closed(before), began, entities)

    def run(self) -> SyncOutcome:
        """Reads what changed and brings it in, or goes on with what an earlier command staged.

        InterruptedJobError when `stop` said so between two batches, JobFailedError where retrying did not help; either
        way the same command goes on. UsageError while a re-drive is under way."""
        self._refuse_redrive()
        return self._go()

    def _refuse_redrive(self) -> None:
        if open_redrive(self._ctx.workspace) is not None:
            job = self._ctx.paths.job
            raise UsageError(
                "a re-drive of the job began and didn't end",
                where=f"job {job}",
                advice=f"`migrate resume {job}` goes on",
            )

    def _go(self) -> SyncOutcome:
        """Stages a generation, or takes up the one that stands, and brings it in."""
        ctx = self._ctx
        self._persist("taking the job", self._take)
        self._catch_up()
        ctx = self._ctx = adopt(ctx, self._checked, "given for a sync")
        edited = self._under_way.edited if self._under_way else self._options.edited
        if edited:
            ctx = self._ctx = replace(ctx, checked=_with_policy(ctx.checked, edited))
        generation = self._under_way or self._stage()
        self._bring_in(generation)
        return self._persist("reading the ledger", partial(self._told, generation))

    def _bring_in(self, generation: Generation) -> None:
        """Loads the generation that stands in the stage, both passes, and tells the log that it is done."""
        ctx = self._ctx
        preparer = Preparer(ctx.paths, ctx.checked, f"sync-{generation.number}")
        before = self._written_by(generation)
        by = preparer if before is ctx.checked else Preparer(ctx.paths, before, f"sync-{generation.number}-before")
        try:
            for entity in self._concerned(generation):
                EntityLoad(ctx, preparer, by, entity, generation, self._tell).load()
            fault_point("sync between passes")
            for entity in self._concerned(generation):
                if entity.deferred:
                    EntityLoad(ctx, preparer, by, entity, generation, self._tell).fill_references()
            for entity in reversed(ctx.checked.entities):  # what refers goes before what it refers to
                if entity.name in generation.staged:
                    EntityLoad(ctx, preparer, by, entity, generation, self._tell).remove()
        finally:
            preparer.close()
            by.close()
        for entity in ctx.checked.entities:
            if entity.id_column is not None and entity.id_column.sequence:
                raise_ = partial(ctx.target.raise_sequence, entity.target, entity.id_column)
                self._persist(f"the sequence of {entity.name}", raise_)
        LateReferences(ctx, "migrate resume" if generation.redriven else "migrate sync").fill()
        fault_point("sync before completed")
        ctx.workspace.record(
            SyncCompleted(generation.number), *(EntityCompleted(name) for name in sorted(generation.staged))
        )

    def _written_by(self, generation: Generation) -> CheckedPlan:
        """The plan that the rows in the target were written by: the job's own, but for a re-drive."""
        return self._ctx.checked

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
        return self._staged(GenerationReader(ctx, number, self._again, options.deletes, full=options.full), number)

    def _staged(self, reader: GenerationReader, number: int) -> Generation:
        """What the reader finds, staged and told of."""
        ctx = self._ctx
        with reader:
            found = reader.read()
            self._persist("reading the crosswalk", partial(reader.stage, found))
        fault_point("sync parts written")
        parts = [part for read in found for part in (*read.parts, *read.removals)]
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
                self._tell(row, 0.0, True)

    # -- what became of it ------------------------------------------------------------------------

    def _tell(self, row: LedgerRow, seconds: float, recovered: bool) -> None:
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
            workspace = self._ctx.workspace
            for part in (*staged_parts(workspace, staged), *removal_parts(workspace, staged)):
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


def _check_rights(ctx: Context, deletes: Deletes) -> None:
    """UsageError, PlanError, CatalogueError where what may have to be done can't be."""
    verbs = ["update", *(["delete"] if deletes == "delete" else [])]
    for entity in ctx.checked.entities:
        held, marker = entity.target.privileges, entity.plan.deleted
        if held is not None and (missing := [verb.upper() for verb in verbs if verb not in held]):
            raise CatalogueError(
                f"a sync needs {' and '.join(missing)} on the target's {entity.plan.to}", where=ctx.target.dsn,
                advice=f"GRANT {', '.join(missing)} ON {entity.plan.to} TO the user of the target DSN",
            )  # fmt: skip
        if deletes == "mark" and (marker is None or marker.column in entity.written):
            raise PlanError(
                "no column of the target is left to mark rows as deleted in", where=f"entities.{entity.name}.deleted",
                advice="name one that no field fills: `deleted: {column: deleted_at}`",
            )  # fmt: skip


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
    return next(g for g in reversed(before) if g.completed and not g.redriven)


def _options(generation: Generation) -> SyncOptions:
    return SyncOptions(generation.deletes, generation.full, generation.edited)


def _with_policy(checked: CheckedPlan, edited: str) -> CheckedPlan:
    """The plan with another `edited` for each entity; fields that say their own keep it."""
    entities = tuple(replace(e, plan=e.plan.model_copy(update={"edited": edited})) for e in checked.entities)
    return replace(checked, entities=entities)
