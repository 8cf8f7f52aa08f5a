"""The load: stages, transforms and carries over each entity in order, batch by batch, exactly once.

The target's ledger is the truth about what is done; the log catches up with it. Reading runs ahead in a
thread of its own and never waits for the target. Nothing here decides: it executes a checked plan.
"""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from connectors.protocols import LedgerRow
from engine.archive import Archive, reasons_in
from engine.batch import BatchRows, batch_rows, commit_batch
from engine.batch_events import batch_committed, quarantine_seen
from engine.check import CheckedEntity
from engine.context import Context, Progress
from engine.executors.spread import Run, Spread, spread_over
from engine.executors.task import Landed
from engine.faults import fault_point
from engine.generation import refuse_open_generation
from engine.match import Matching, match_parts, matched_path
from engine.merge import Merging, Part, merge_parts
from engine.persist import persist, stop_if_asked
from engine.prepare import Preparer, Settled
from engine.references import fill_part, resolve_references
from engine.stage import part_path
from engine.stager import Stager, first_parts
from engine.transform import Counts
from engine.workers import Task, Workers
from workspace.events import (
    BatchCommitted,
    EntityCompleted,
    PartStaged,
    PhaseStarted,
)


@dataclass(frozen=True)
class LoadOutcome:
    """Sums over the job's ledger. `moved` is False where there was nothing left to do."""

    read: int
    inserted: int
    updated: int
    unchanged: int
    merged: int
    excluded: int
    quarantined: int
    moved: bool
    changes: dict[str, dict[str, int]] = field(default_factory=dict)


def load(ctx: Context) -> LoadOutcome:
    """Carries over what the ledger doesn't have yet.

    Raises InterruptedJobError when `ctx.stop` said so between two batches, JobFailedError where retrying
    did not help; either way `load` goes on where it stopped when called again. UsageError while a sync is under way.
    """
    refuse_open_generation(ctx.workspace, ctx.paths.job)
    if archive := Archive.of(ctx.checked.plan, ctx.paths.job):
        archive.make()
    ledger = persist(ctx, "taking the job", partial(_take_job, ctx))
    preparer = Preparer(ctx.paths, ctx.checked)
    changes: dict[str, dict[str, int]] = {}
    before = len(ledger)
    try:
        with (
            ThreadPoolExecutor(1, "sorter") as sorter,
            Workers(ctx.paths, ctx.processes) as workers,
            spread_over(ctx) as spread,
            Stager(ctx) as stager,
        ):
            ctx.workspace.record(PhaseStarted("load"))
            for entity in ctx.checked.entities:
                changes[entity.name] = _Loading(ctx, preparer, stager, workers, sorter, entity, ledger, spread).run()
        deferred = [entity for entity in ctx.checked.entities if entity.deferred]
        if deferred:
            ctx.workspace.record(PhaseStarted("references"))
        for entity in deferred:
            fault_point("between passes")
            for name, count in _fill_references(ctx, preparer, entity, ledger).items():
                changes[entity.name][name] = changes[entity.name].get(name, 0) + count
        for entity in ctx.checked.entities:
            if entity.id_column is not None and entity.id_column.sequence:
                raise_ = partial(ctx.target.raise_sequence, entity.target, entity.id_column)
                persist(ctx, f"the sequence of {entity.name}", raise_)
    finally:
        preparer.close()
    first = [row for row in ledger.values() if row.step == 1 and not row.undone]
    return LoadOutcome(
        sum(r.read for r in first),
        sum(r.inserted for r in first),
        sum(r.updated for r in first),
        sum(r.unchanged for r in first),
        sum(r.merged for r in first),
        sum(r.excluded for r in first),
        sum(r.quarantined for r in first),
        len(ledger) > before,
        changes,
    )


def _take_job(ctx: Context) -> dict[tuple[str, int, int], LedgerRow]:
    """Takes the job in the target; its ledger, with which the log has caught up."""
    target = ctx.target
    target.prepare()
    target.lease(ctx.paths.job, ctx.source_identity)
    for entity in ctx.checked.entities:
        target.register_entity(ctx.source_identity, entity.name, entity.plan.to)
    ledger = {(row.entity, row.batch, row.step): row for row in target.ledger()}
    _catch_up(ctx, ledger)
    return ledger


def _catch_up(ctx: Context, ledger: dict[tuple[str, int, int], LedgerRow]) -> None:
    """Records batches that the target committed and the log doesn't tell of: the crash came in between."""
    told = {
        (e.event.entity, e.event.batch, e.event.step)
        for e in ctx.workspace.events(types=[BatchCommitted])
        if isinstance(e.event, BatchCommitted)
    }
    for key, row in ledger.items():
        if key not in told:
            _record_recovered(ctx, row, 0.0)


def _recover(ctx: Context, key: tuple[str, int, int], started: float) -> LedgerRow:
    """The ledger row of a batch that an earlier try did commit, though its answer was lost; the log is told."""
    row = next(r for r in ctx.target.ledger() if (r.entity, r.batch, r.step) == key)
    _record_recovered(ctx, row, time.monotonic() - started)
    return row


def _record_recovered(ctx: Context, row: LedgerRow, seconds: float) -> None:
    seen = ctx.target.clusters(row.entity, row.batch) if row.step == 1 and row.quarantined else []
    made = ctx.paths.transformed / f"v{row.plan_version}" / row.entity
    left_out = reasons_in(part_path(made, row.batch)) if row.step == 1 and row.excluded else {}
    told = batch_committed(row, seconds, left_out, recovered=True)
    ctx.workspace.record(told, *quarantine_seen(row.entity, row.batch, seen))
    ctx.after_batch(row)


class _Loading:
    """One entity on its way: parts are staged, transformed, sorted and committed side by side, each in order."""

    def __init__(
        self,
        ctx: Context,
        preparer: Preparer,
        stager: Stager,
        workers: Workers,
        sorter: ThreadPoolExecutor,
        entity: CheckedEntity,
        ledger: dict[tuple[str, int, int], LedgerRow],
        spread: Run | None,
    ) -> None:
        # A row that goes into another needs that in the target before it: batches of an entity that merges go in order.
        self._whole = entity.plan.merge is not None or entity.plan.match is not None
        self._spread = None if self._whole else spread
        self._ctx, self._preparer, self._stager, self._workers = ctx, preparer, stager, workers
        self._sorter, self._entity, self._ledger = sorter, entity, ledger
        self._changes: Counter[str] = Counter()
        self._staged = self._done = 0
        self._matched: Path | None = None

    def run(self) -> dict[str, int]:
        """Carries over all batches that the ledger doesn't have; the changes made to values, by `field: change`."""
        ctx, entity, ledger = self._ctx, self._entity, self._ledger
        needed = entity.deferred or any(entity.name in other.references for other in ctx.checked.entities)
        if self._all_there():
            if needed:
                self._take_crosswalk()
            self._complete()
            return {}
        self._existing = persist(
            ctx, f"reading the crosswalk of {entity.name}", partial(self._preparer.existing, entity, ctx.target)
        )
        self._settler = persist(
            ctx,
            f"reading the keys in {entity.plan.to}",
            partial(self._preparer.settler, entity, ctx.target, ours=True),
        )
        self._quarantined = sum(row.quarantined for key, row in ledger.items() if key[0] == entity.name)
        noted = needed and self._existing is None and self._spread is None
        self._notes = self._preparer.note_crosswalk(entity) if noted else None
        # The refused rows of one batch are looked up while the next is sorted: by a cursor of their own.
        self._lookup = self._preparer.duck.cursor()
        try:
            if self._spread is None:
                self._carry_over()
            else:
                self._spread_out(self._spread)
        except BaseException:
            if self._notes:
                self._notes.drop()
            raise
        self._complete()
        if self._notes:
            self._notes.finish()
        elif needed:
            self._take_crosswalk()
        return dict(self._changes)

    def _take_crosswalk(self) -> None:
        """Has those that refer to the entity use the crosswalk that the target has of it."""
        take = partial(self._preparer.take_crosswalk, self._entity, self._ctx.target)
        persist(self._ctx, f"reading the crosswalk of {self._entity.name}", take)

    def _complete(self) -> None:
        """Tells the log, unless an earlier run did, that the entity's batches are all in the ledger."""
        done = EntityCompleted(self._entity.name)
        if all(entry.event != done for entry in self._ctx.workspace.events(types=[EntityCompleted])):
            self._ctx.workspace.record(done)

    def _all_there(self) -> bool:
        """True where an earlier run staged the whole entity and the ledger has each of its batches."""
        parts = self._stager.complete_parts(self._entity)
        return parts is not None and all((self._entity.name, part.part, 1) in self._ledger for part in parts)

    def _spread_out(self, run: Run) -> None:
        """Has workers carry the parts over; the log is written here, as they land."""
        entity = self._entity.name
        spread = Spread(self._ctx, run, self._preparer, self._settler, self._entity, self._existing)
        there = frozenset(batch for name, batch, step in self._ledger if (name, step) == (entity, 1))
        for arrived in spread.carry(self._staged_parts(), there):
            if arrived.landed is not None:
                self._record_landed(arrived.part, arrived.landed, arrived.seconds, arrived.excluded_by)
            self._tell(arrived.part)
        self._changes.update(spread.changes)

    def _record_landed(self, part: PartStaged, landed: Landed, seconds: float, excluded_by: Mapping[str, int]) -> None:
        key = (self._entity.name, part.part, 1)
        if landed.row is None:
            recover = partial(_recover, self._ctx, key, time.monotonic() - seconds)
            self._ledger[key] = persist(self._ctx, "reading the ledger", recover)
        else:
            self._ledger[key] = landed.row
            clusters = quarantine_seen(self._entity.name, part.part, landed.clusters)
            self._ctx.workspace.record(batch_committed(landed.row, seconds, excluded_by), *clusters)
        self._quarantined += self._ledger[key].quarantined
        fault_point("after checkpoint")
        self._ctx.after_batch(self._ledger[key])

    def _carry_over(self) -> None:
        transforming: deque[tuple[PartStaged, Future[tuple[Path, Counts]]]] = deque()
        sorting: deque[tuple[PartStaged, Future[BatchRows | None]]] = deque()
        try:
            for part in self._staged_parts():
                transforming.append((part, self._transform(part)))
                if self._whole:
                    stop_if_asked(self._ctx)
                    continue  # all rows are held against each other before the first is carried over
                self._advance(transforming, sorting)
                # Without a key, reading begins anew after a crash, and rows may come in another order: then no
                # batch may be in the ledger before all of its entity is in the stage.
                while (
                    self._entity.plan.key
                    and sorting
                    and (len(transforming) >= self._workers.ahead or not self._stager.ready())
                ):
                    self._finish(*sorting.popleft())
                    self._advance(transforming, sorting)
                stop_if_asked(self._ctx)
            if self._entity.plan.merge is not None:
                self._merge(transforming)
            if self._entity.plan.match is not None:
                self._match(transforming)
            if self._whole:
                self._advance(transforming, sorting)
            while sorting:
                self._finish(*sorting.popleft())
                self._advance(transforming, sorting)
        finally:
            for _, transformed in transforming:
                transformed.cancel()
            for _, sorted_ in sorting:
                sorted_.cancel()

    def _staged_parts(self) -> Iterator[PartStaged]:
        """The entity's parts in order, as they are staged; who watches is told while nothing else is to be seen."""
        for part in self._stager.parts(self._entity):
            self._staged += part.rows
            if not self._done:
                self._ctx.progress(Progress("stage", self._entity.name, self._staged, None))
            yield part

    def _merge(self, transforming: deque[tuple[PartStaged, Future[tuple[Path, Counts]]]]) -> None:
        """Waits for all parts, and has those with merged rows take the place of those where they stand alone."""
        ctx, entity = self._ctx, self._entity
        parts = [Part(part, *transformed.result()) for part, transformed in transforming]
        stop_if_asked(ctx)
        ctx.progress(Progress("merge", entity.name, self._staged))
        begun = any(name == entity.name for name, _, _ in self._ledger)
        with Merging(ctx.paths, entity, parts, self._existing, self._settler) as merging:
            transforming.clear()
            transforming.extend(merge_parts(ctx.workspace, merging, None if begun else ctx.checked.plan.version))

    def _match(self, transforming: deque[tuple[PartStaged, Future[tuple[Path, Counts]]]]) -> None:
        """Waits for all parts, and has those with matched rows take the place of those where they stand alone."""
        ctx, entity = self._ctx, self._entity
        parts = [Part(part, *transformed.result()) for part, transformed in transforming]
        stop_if_asked(ctx)
        ctx.progress(Progress("match", entity.name, self._staged))
        begun = any(name == entity.name for name, _, _ in self._ledger)
        path = matched_path(ctx.paths, entity.name)
        matching = Matching(self._preparer.duck, ctx.paths, entity, parts, self._existing)
        version = None if begun else ctx.checked.plan.version
        found = persist(
            ctx, f"matching {entity.name}", partial(match_parts, ctx.workspace, matching, ctx.target, path, version)
        )
        self._settler.matched = self._matched = path
        transforming.clear()
        transforming.extend(found)

    def _transform(self, part: PartStaged) -> Future[tuple[Path, Counts]]:
        """Begins to transform a part: in a process where that pays, else in the sorter's thread, which has DuckDB."""
        expected = self._stager.expected(self._entity.name) or 0
        if not self._workers.pay_for(part.rows, expected):
            return self._sorter.submit(self._preparer.transform, self._entity, part)
        staged, out = self._preparer.files(self._entity, part)
        return self._workers.submit(Task(self._entity.name, self._preparer.query(self._entity), staged, out))

    def _advance(
        self,
        transforming: deque[tuple[PartStaged, Future[tuple[Path, Counts]]]],
        sorting: deque[tuple[PartStaged, Future[BatchRows | None]]],
    ) -> None:
        """Has the next parts sorted: two ahead, since sorted rows are held in memory."""
        while transforming and len(sorting) < 2:
            part, transformed = transforming.popleft()
            sorting.append((part, self._sorter.submit(self._sort, part, transformed)))

    def _sort(self, part: PartStaged, transformed: Future[tuple[Path, Counts]]) -> BatchRows | None:
        """Settles a part's collisions and sorts its rows; None where the ledger has it. In the sorter's thread."""
        out, counts = transformed.result()
        fault_point("after transform")
        own = self._preparer.files(self._entity, part)[1] if self._matched else None
        settled = Settled(part, out, counts, self._settler.settle(part.part, out, part.rows), self._matched, own)
        self._changes.update(counts.changes)
        if (self._entity.name, part.part, 1) in self._ledger:
            return None
        if archive := Archive.of(self._ctx.checked.plan, self._ctx.paths.job):
            # before the batch: what its ledger row calls excluded lies in the archive by then
            archive.keep(self._preparer.duck, self._entity, self._preparer.files(self._entity, part)[0], part.part)
        return batch_rows(self._preparer.duck, self._ctx.paths, self._entity, settled, self._existing)

    def _finish(self, part: PartStaged, sorting: Future[BatchRows | None]) -> None:
        rows = sorting.result()
        if rows is not None:
            stop_if_asked(self._ctx)
            self._commit(part, rows)
            self._quarantined += self._ledger[self._entity.name, part.part, 1].quarantined
        self._tell(part)

    def _tell(self, part: PartStaged) -> None:
        """Tells who watches that a part is done with."""
        self._done += part.rows
        total = max(self._stager.expected(self._entity.name) or 0, self._done)
        self._ctx.progress(Progress("load", self._entity.name, self._done, total, self._quarantined))

    def _commit(self, part: PartStaged, rows: BatchRows) -> None:
        """Carries one batch over, then tells the log: in that order, so that the log never claims too much."""
        ctx, entity = self._ctx, self._entity
        key = (entity.name, part.part, 1)
        started = time.monotonic()
        did = persist(
            ctx,
            f"batch {part.part} of {entity.name}",
            partial(commit_batch, ctx.target, self._lookup, ctx.paths, entity, part, rows, ctx.checked.plan.version),
        )
        if did is None:
            self._ledger[key] = persist(ctx, "reading the ledger", partial(_recover, ctx, key, started))
            if self._notes:
                self._notes.drop()
                self._notes = None
        else:
            self._ledger[key] = did.row
            if self._notes:
                self._notes.add(did.crosswalk)
            seen = Counter(zip(*(did.quarantined[c].to_pylist() for c in ("signature", "code", "field")), strict=True))
            clusters = quarantine_seen(
                entity.name, part.part, [(*names, count) for names, count in sorted(seen.items())]
            )
            ctx.workspace.record(batch_committed(did.row, time.monotonic() - started, rows.excluded_by), *clusters)
        fault_point("after checkpoint")
        ctx.after_batch(self._ledger[key])


def _fill_references(
    ctx: Context, preparer: Preparer, entity: CheckedEntity, ledger: dict[tuple[str, int, int], LedgerRow]
) -> dict[str, int]:
    """The second pass: references within the entity, or to entities loaded after it."""
    changes: Counter[str] = Counter()
    parts = first_parts(ctx.workspace, entity.name)
    todo = [part for part in parts if (entity.name, part.part, 2) not in ledger]
    resolved = resolve_references(preparer, entity, parts) if todo else None
    total = sum(p.rows for p in parts)
    done = 0
    for part in parts:
        key = (entity.name, part.part, 2)
        if resolved is not None and key not in ledger:
            stop_if_asked(ctx)
            started = time.monotonic()
            result = persist(
                ctx,
                f"references of batch {part.part} of {entity.name}",
                partial(fill_part, ctx, preparer, entity, resolved, part, done),
            )
            if result is None:
                ledger[key] = persist(ctx, "reading the ledger", partial(_recover, ctx, key, started))
            else:
                ledger[key], missing = result
                changes.update(missing)
                ctx.workspace.record(batch_committed(ledger[key], time.monotonic() - started))
            fault_point("after checkpoint")
        done += part.rows
        ctx.progress(Progress("references", entity.name, done, total))
    return dict(changes)
