"""Takes back what a job wrote: batch by batch, newest first, second pass before first, and nothing of anybody else's.

Each batch is one transaction on the target with its own record in the ledger; the log catches up with it, as it does
in a load. Rows that changed since, or that rows which stay refer to, are kept and listed. Decides nothing else.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any, Literal, TypeVar

import stamina

from connectors.protocols import LedgerRow, TargetLostError
from connectors.records import KeptRow, Undone
from connectors.target import Target
from engine.check import CheckedPlan
from engine.context import Progress
from engine.faults import fault_point
from engine.generation import generations
from engine.loaded import loaded_entity
from engine.persist import given_up
from engine.undo_batch import BatchTakenBack, take_back
from workspace.errors import InterruptedJobError, PlanError, UsageError
from workspace.events import BatchUndone, RetryMade, UndoStarted
from workspace.log import Workspace
from workspace.paths import JobPaths

T = TypeVar("T")
RETRY_SECONDS = 120.0
MOST_SHOWN = 20
_WORTH_A_VACUUM = 1_000
_WORTH_AN_INDEX = 10_000


@dataclass(frozen=True)
class EntityUndo:
    """Of one entity: rows that would go, rows that would hold again what they held, and by reason rows that stay."""

    entity: str
    target: str
    delete: int
    restore: int
    kept: Mapping[str, int]
    quarantined: int
    batches: int


@dataclass(frozen=True)
class UndoPreview:
    """What taking back would do. `slow` are lines on foreign keys without an index, which make it slow."""

    entities: tuple[EntityUndo, ...]
    kept_rows: tuple[KeptRow, ...]
    slow: tuple[str, ...]

    @property
    def nothing(self) -> bool:
        """True where nothing that the job wrote is left, its own records included."""
        return not any(e.delete or e.restore or e.kept or e.batches for e in self.entities)


@dataclass(frozen=True)
class UndoOutcome:
    """What was done: rows deleted and restored by this command, and rows that stay, by entity and reason."""

    deleted: int
    restored: int
    kept: Mapping[str, Mapping[str, int]]
    kept_rows: tuple[KeptRow, ...] = field(default=())

    @property
    def refused(self) -> int:
        """How many rows stay."""
        return sum(sum(reasons.values()) for reasons in self.kept.values())

    def to_dict(self) -> dict[str, Any]:
        """As JSON values."""
        return {**asdict(self), "refused": self.refused}


class Undo:
    """One command's part of taking a job, or one batch of it, back. The job is leased while the connection lives."""

    def __init__(
        self,
        paths: JobPaths,
        workspace: Workspace,
        target: Target,
        checked: CheckedPlan,
        *,
        batch: tuple[str, int] | None = None,
        progress: Callable[[Progress], None] = lambda step: None,
        stop: Callable[[], bool] = lambda: False,
    ) -> None:
        """UsageError where the target has nothing of the job, or not that batch; PlanError where the plan lacks
        what was loaded; JobLockedError, CatalogueError."""
        self._paths, self._workspace, self._target, self._checked = paths, workspace, target, checked
        self._batch, self._progress, self._stop = batch, progress, stop
        if not target.know(paths.job):
            raise UsageError(f"nothing of {paths.job} was loaded: there is nothing to take back", where=target.dsn)
        target.prepare()
        source = target.source_of_job()
        target.lease(paths.job, source)
        for entity in checked.entities:
            target.know_entity(source, entity.name, entity.plan.to)
        if lacking := [name for name in target.entities_of_job() if not target.knows_entity(name)]:
            raise PlanError(
                f"the job loaded {lacking[0]!r}, which its plan doesn't have, or loads into another table now",
                where="entities", advice="take the job back with the plan it was loaded by",
            )  # fmt: skip
        self._check_batch()
        self._emptied: set[str] = set()
        self._rows = target.undo_list([loaded_entity(entity) for entity in checked.entities], batch)

    def _check_batch(self) -> None:
        if self._batch is None:
            return
        if len(generations(self._workspace)) > 1:
            raise UsageError(
                "the job was synced, and rows of one batch are others' by now", where=f"job {self._paths.job}",
                advice=f"`migrate undo {self._paths.job}` takes back all of it",
            )  # fmt: skip
        name, number = self._batch
        known = sorted(r.batch for r in self._target.ledger() if r.entity == name and r.step == 1)
        if number not in known:
            have = f"it has {known[0]} to {known[-1]}" if known else "none of it was loaded"
            raise UsageError(f"{name} has no batch {number}", where=f"job {self._paths.job}", advice=have)

    def foresee(self) -> UndoPreview:
        """What `run` would do now; writes nothing of the customer's."""
        self._find()
        counts = self._rows.counts()
        taken = self._target.undone()
        left = [row for row in self._batches() if row.step == 1 and (row.entity, row.batch, 1) not in taken]
        entities = []
        for entity in self._checked.entities:
            kept: Counter[str] = Counter()
            going: Counter[str] = Counter()
            for name, act, reason, count in counts:
                if name == entity.name:
                    (going if reason is None else kept)[act if reason is None else reason] += count
            mine = {row.batch for row in left if row.entity == entity.name}
            held = self._target.clusters_held(entity.name) if mine else {}
            entities.append(
                EntityUndo(
                    entity.name, entity.plan.to, going["delete"], going["restore"] + going["return"] + going["refer"], dict(kept),
                    sum(c["open"] + c["dropped"] for batch in mine for c in held.get(batch, [])), len(mine),
                )
            )  # fmt: skip
        return UndoPreview(tuple(entities), tuple(self._rows.kept(MOST_SHOWN)), tuple(self._slow(entities)))

    def _slow(self, entities: list[EntityUndo]) -> list[str]:
        by_name = {entity.entity: entity for entity in entities}
        return [
            f"{'.'.join(filter(None, key.table))} has no index on {', '.join(key.columns)}: the target looks through all of "
            f"it for each of {by_name[key.entity].delete:,} rows of {by_name[key.entity].target}"
            for key in self._rows.slow
            if by_name[key.entity].delete >= _WORTH_AN_INDEX
        ]

    def run(self) -> UndoOutcome:
        """Takes back what `foresee` found, and what else can go once that is gone.

        InterruptedJobError when `stop` said so between two batches, JobFailedError where retrying did not help;
        either way another command goes on where this one stopped."""
        name, number = self._batch or ("", None)
        self._workspace.record(UndoStarted(name, number))
        fault_point("undo begun")
        self._persist("reading the ledger", self._catch_up)
        deleted = restored = 0
        while True:
            moved = 0
            going = self._persist("reading the ledger", self._rows.going)
            totals = _by_entity(going)
            gone: Counter[str] = Counter()
            for row in self._persist("reading the ledger", partial(self._to_do, going)):
                self._stop_if_asked()
                count = going.get((row.entity, row.batch), 0)
                if row.step == 1 and count >= _WORTH_A_VACUUM:
                    self._clear(row.entity)
                done = self._take_back(row)
                if row.step == 1:
                    gone[row.entity] += count
                self._emptied.add(row.entity)
                self._progress(Progress("undo", row.entity, gone[row.entity], totals[row.entity]))
                moved += done.deleted + done.restored
                deleted, restored = deleted + done.deleted, restored + done.restored
            kept, shown = self._persist("looking at what stays", self._kept)
            if not moved or not kept:
                return UndoOutcome(deleted, restored, kept, shown)
            # what kept a row may be gone itself by now
            self._find()

    def _batches(self) -> list[LedgerRow]:
        """The job's batches, or the one, newest first."""
        rows = self._target.ledger()
        rows = [row for row in rows if self._batch is None or (row.entity, row.batch) == self._batch]
        rows.reverse()
        rows.sort(key=lambda row: -row.step)
        return rows

    def _to_do(self, going: Mapping[tuple[str, int], int]) -> list[LedgerRow]:
        """Batches that were not taken back, or hold rows that can go now."""
        taken = self._target.undone()
        return [
            row
            for row in self._batches()
            if (row.entity, row.batch, row.step) not in taken or (row.entity, row.batch) in going
        ]

    def _take_back(self, row: LedgerRow) -> BatchTakenBack:
        """Takes a batch back, then tells the log: in that order, so that the log never claims too much."""
        started = time.monotonic()
        act = partial(take_back, self._target, self._rows, row)
        done = self._persist(f"taking back batch {row.batch} of {row.entity}", act)
        self._workspace.record(_event((row.entity, row.batch, row.step), done.totals, time.monotonic() - started))
        fault_point("undo after checkpoint")
        return done

    def _find(self) -> None:
        self._persist("looking at what the job wrote", self._rows.find)

    def _clear(self, entity: str) -> None:
        """Clears up the tables that the target looks through for each of the entity's rows that goes, where no index
        serves: rows that went before would be looked at each time."""
        for key in self._rows.slow:
            for other in self._checked.entities:
                table = other.target
                if key.entity == entity and key.table == (table.schema, table.relation) and other.name in self._emptied:
                    self._emptied.discard(other.name)
                    self._target.tidy(table)

    def _kept(self) -> tuple[dict[str, dict[str, int]], tuple[KeptRow, ...]]:
        """Rows that stay, by entity and reason; and the first of them."""
        kept: dict[str, dict[str, int]] = {}
        for entity, _, reason, count in self._rows.counts():
            if reason is not None:
                reasons = kept.setdefault(entity, {})
                reasons[reason] = reasons.get(reason, 0) + count
        return kept, tuple(self._rows.kept(MOST_SHOWN))

    def _catch_up(self) -> None:
        """Records batches that the target took back and the log doesn't tell of: the crash came in between."""
        told: dict[tuple[str, int, int], Undone] = {}
        for entry in self._workspace.events(types=[BatchUndone]):
            event = entry.event
            assert isinstance(event, BatchUndone)
            told[event.entity, event.batch, event.step] = (event.deleted, event.restored, event.refused)
        for key, totals in self._target.undone().items():
            if told.get(key) != totals:
                self._workspace.record(_event(key, totals, 0.0, recovered=True))

    def _persist(self, what: str, act: Callable[[], T]) -> T:
        """Does it, again after a lost connection or what passes; each try is in the log. The list of rows goes with
        the connection and is made again."""
        number = 0
        try:
            for attempt in stamina.retry_context(
                on=TargetLostError, attempts=None, timeout=RETRY_SECONDS, wait_initial=0.2, wait_max=5.0
            ):
                with attempt:
                    number += 1
                    if number > 1:
                        self._target.reconnect()
                        self._rows.find()
                    try:
                        return act()
                    except TargetLostError as error:
                        self._workspace.record(RetryMade(what, number, str(error)[:200]))
                        self._progress(Progress("again", f"{what}, try {number}: {str(error)[:80]}"))
                        raise
        except TargetLostError as error:
            raise given_up(error, number, self._target.dsn, f"migrate undo {self._paths.job}") from None
        raise AssertionError("unreachable")

    def _stop_if_asked(self) -> None:
        if self._stop():
            raise InterruptedJobError(
                "interrupted; what was taken back stays taken back", where=f"job {self._paths.job}",
                advice=f"migrate undo {self._paths.job}",
            )  # fmt: skip


def _by_entity(going: Mapping[tuple[str, int], int]) -> Counter[str]:
    totals: Counter[str] = Counter()
    for (entity, _), count in going.items():
        totals[entity] += count
    return totals


def _event(key: tuple[str, int, int], totals: Undone, seconds: float, *, recovered: bool = False) -> BatchUndone:
    entity, batch, step = key
    steps: dict[int, Literal[1, 2]] = {1: 1, 2: 2}
    return BatchUndone(entity, batch, steps[step], *totals, seconds=seconds, recovered=recovered)
