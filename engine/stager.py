"""Fills the stage ahead of the load, in a thread that has the source connection to itself.

The thread makes parts durable; only the caller's thread writes the log, so a part is relied on once it is
recorded and never before.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from types import TracebackType

from connectors.protocols import Source
from connectors.relation import about
from engine.check import CheckedEntity
from engine.context import Context
from engine.faults import fault_point
from engine.stage import part_path, stage_parts
from workspace.errors import JobFailedError
from workspace.events import PartStaged, RowsExpected, StageCompleted
from workspace.log import Workspace

AHEAD = 64
"""Parts that may wait for the load before reading pauses."""


@dataclass(frozen=True)
class _Done:
    entity: str
    counted: int


def recorded_parts(workspace: Workspace, entity: str) -> list[PartStaged]:
    """An entity's parts as the log has them, in order; a part recorded twice counts as last told."""
    found: dict[int, PartStaged] = {}
    for entry in workspace.events(types=[PartStaged]):
        if isinstance(entry.event, PartStaged) and entry.event.entity == entity:
            if entry.event.part == 0:
                found.clear()
            found[entry.event.part] = entry.event
    return [found[n] for n in sorted(found)]


def first_parts(workspace: Workspace, entity: str) -> list[PartStaged]:
    """The parts of an entity's first generation: what a load carries over. Those of a sync come after them."""
    parts, complete = recorded_parts(workspace, entity), completed_stage(workspace, entity)
    return parts if complete is None else parts[: complete.parts]


def completed_stage(workspace: Workspace, entity: str) -> StageCompleted | None:
    """The record that an entity's stage is whole, or None."""
    last = None
    for entry in workspace.events(types=[StageCompleted]):
        if isinstance(entry.event, StageCompleted) and entry.event.entity == entity:
            last = entry.event
    return last


def count_read(source: Source, entity: CheckedEntity, *, whole: bool) -> int:
    """How many rows the source holds, by its own count, once they were read. Where the `whole` was one answer, that is
    those of the answer and those that lack a key: to join and count them all would take the old server as long as to
    read them."""
    if not whole or source.answered is None:
        return source.count(entity.plan.from_)
    return source.answered + (source.count(entity.plan.from_, entity.plan.key) if entity.plan.key else 0)


class Stager:
    """Stages the entities of a context in load order. A context manager; `parts` must be asked in that order."""

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx
        self._queue: queue.Queue[PartStaged | RowsExpected | _Done | BaseException] = queue.Queue(AHEAD)
        self._ended = threading.Event()
        self._complete = {e.name: completed_stage(ctx.workspace, e.name) for e in ctx.checked.entities}
        # Without a key, reading can't go on in the middle: what was staged before its end is read again.
        self._recorded = {
            e.name: first_parts(ctx.workspace, e.name) if e.plan.key or self._complete[e.name] else []
            for e in ctx.checked.entities
        }
        # What an earlier process read, of whichever entity, is of another instant: references between the two may dangle.
        self._first = not any(True for _ in ctx.workspace.events(types=[PartStaged, StageCompleted]))
        self._check_files()
        self._expected: dict[str, int] = {}
        todo = [e for e in ctx.checked.entities if self._complete[e.name] is None]
        self._thread = threading.Thread(target=self._run, args=(todo,), name="stager", daemon=True)

    def __enter__(self) -> Stager:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._ended.set()
        while self._thread.is_alive():
            try:
                self._queue.get(timeout=0.05)
            except queue.Empty:
                continue
        self._thread.join()

    def complete_parts(self, entity: CheckedEntity) -> list[PartStaged] | None:
        """The entity's parts where an earlier run staged all of them, else None."""
        return self._recorded[entity.name] if self._complete[entity.name] is not None else None

    def parts(self, entity: CheckedEntity) -> Iterator[PartStaged]:
        """The entity's parts in order, each recorded before it is given; those of an earlier run first."""
        if self._complete[entity.name] is not None or self._recorded[entity.name]:
            yield from self._recorded[entity.name]
        if self._complete[entity.name] is not None:
            return
        rows = sum(p.rows for p in self._recorded[entity.name])
        count = len(self._recorded[entity.name])
        while True:
            item = self._next()
            if isinstance(item, BaseException):
                raise item
            if isinstance(item, _Done):
                assert item.entity == entity.name
                self._ctx.workspace.record(
                    StageCompleted(
                        entity=entity.name,
                        rows=rows,
                        parts=count,
                        snapshot=self._ctx.source.snapshot and self._first,
                        counted=item.counted,
                    )
                )
                return
            self._ctx.workspace.record(item)
            fault_point("after part recorded")
            rows += item.rows
            count += 1
            yield item

    def expected(self, entity: str) -> int | None:
        """How many rows there will be, about, for a person who watches; None before the source was asked."""
        complete = self._complete.get(entity)
        return complete.rows if complete else self._expected.get(entity)

    def ready(self) -> bool:
        """True where the next part can be had without waiting for the source."""
        return not self._queue.empty()

    def _next(self) -> PartStaged | _Done | BaseException:
        while True:
            try:
                item = self._queue.get(timeout=0.5)
                if not isinstance(item, RowsExpected):
                    return item
                self._ctx.workspace.record(item)
            except queue.Empty:
                if not self._thread.is_alive() and self._queue.empty():
                    raise JobFailedError("reading the source ended early", advice="`migrate resume`") from None

    def _run(self, todo: list[CheckedEntity]) -> None:
        try:
            source = self._ctx.source
            for entity in todo:  # all before the first is read: who watches is told when the last will be there
                self._expected[entity.name] = source.count(about(entity.plan.from_, source.dialect))
                self._put(RowsExpected(entity.name, self._expected[entity.name]))
            for entity in todo:
                done = self._recorded[entity.name]
                for part in stage_parts(
                    source, entity, self._ctx.paths, done, rows=self._ctx.batch_rows, stop=self._stopping
                ):
                    self._put(part)
                    if self._stopping():
                        return
                counted = count_read(source, entity, whole=not done)
                self._expected[entity.name] = counted
                self._put(_Done(entity.name, counted))
        except BaseException as error:
            self._put(error)

    def _stopping(self) -> bool:
        return self._ended.is_set()

    def _put(self, item: PartStaged | RowsExpected | _Done | BaseException) -> None:
        while not self._ended.is_set():
            try:
                self._queue.put(item, timeout=0.2)
            except queue.Full:
                continue
            return

    def _check_files(self) -> None:
        for entity in self._ctx.checked.entities:
            for part in self._recorded[entity.name]:
                path = part_path(self._ctx.paths.stage / entity.name, part.part)
                if not path.exists() or path.stat().st_size != part.bytes:
                    raise JobFailedError(
                        "a part of the stage is missing or cut off", where=str(path),
                        advice="start a new job; the crosswalk in the target keeps what was loaded from being loaded twice",
                    )  # fmt: skip
