"""An entity's parts on their way through workers: transformed anywhere, settled here in order, committed anywhere.

What stays with this process is what has an order: the source, collisions, the log. A batch is given to a worker once
all parts up to it are settled, so that the outcome doesn't hang on which batch commits first; and where a unique key
can only be compared by the target, one batch at a time. Writes nothing to the target.
"""

from __future__ import annotations

import secrets
import time
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from engine.archive import Archive
from engine.check import CheckedEntity
from engine.collisions import Settler, all_compared
from engine.context import Context
from engine.executors.place import Place
from engine.executors.task import Answer, Commit, Executor, Landed, Transform, Transformed, Work, alone
from engine.persist import persist, stop_if_asked, wait_while_paused
from engine.prepare import Preparer
from workspace.errors import PackhorseError
from workspace.events import PartStaged, WorkSpread
from workspace.pause import pause_asked


@dataclass(frozen=True)
class Run:
    """One load's workers, and the place that they share with this process. `seconds` counts up what they spent, by
    `transform`, `sort`, `target` and `files`, and what this process spent beside them, as `settle` and `files`."""

    name: str
    executor: Executor
    place: Place
    seconds: dict[str, float]


@dataclass(frozen=True)
class Arrived:
    """A part that is done with: `landed` is None where the ledger had its batch before."""

    part: PartStaged
    landed: Landed | None
    seconds: float
    excluded_by: Mapping[str, int]


@dataclass
class _Batch:
    part: PartStaged
    transformed: Transformed
    losers: tuple[str, int] | None
    future: Future[Answer] | None = None
    begun: float = 0.0


class Spread:
    """One entity's parts. Not for use by two threads."""

    def __init__(
        self, ctx: Context, run: Run, preparer: Preparer, settler: Settler, entity: CheckedEntity, existing: Path | None
    ) -> None:
        self.changes: Counter[str] = Counter()
        self._ctx, self._run, self._preparer, self._settler = ctx, run, preparer, settler
        self._entity = entity
        with self._timed("files"):
            put = run.place.put
            needed = [name for name in entity.references if name in preparer.crosswalks]
            self._work = Work(
                run.name, ctx.paths.job, str(ctx.paths.base), ctx.choice.place, ctx.source_identity, ctx.choice.target,
                ctx.target.schema, entity.name, alone(ctx.checked, entity.name),
                tuple((name, put(preparer.crosswalks[name])) for name in needed), put(existing) if existing else None,
            )  # fmt: skip
        self._transforming: deque[tuple[PartStaged, Future[Answer]]] = deque()
        self._transformed: deque[tuple[PartStaged, Transformed]] = deque()
        self._settled: deque[_Batch] = deque()
        self._landing: deque[_Batch] = deque()
        self._fetched: list[Path] = []
        self._last = self._stopping = False
        self._rows = 0
        self._one_by_one = not all_compared(entity)
        # Without a key, reading begins anew after a crash, and rows may come in another order: then no batch may be
        # in the ledger before all of its entity is in the stage.
        self._open = bool(entity.plan.key)

    def carry(self, parts: Iterable[PartStaged], there: frozenset[int]) -> Iterator[Arrived]:
        """Carries the parts over, but for the batches `there` already; each as it is done with, in order.

        Asked to stop, it lets the batches under way land and raises InterruptedJobError. What raises otherwise
        leaves some under way, of which the ledger knows.
        """
        try:
            for part in parts:
                self._begin(part)
                yield from self._advance(there)
            self._open = self._last = True
            yield from self._advance(there)
        finally:
            for _, future in self._transforming:
                future.cancel()
            for file in self._fetched:
                file.unlink(missing_ok=True)

    def _begin(self, part: PartStaged) -> None:
        with self._timed("files"):
            self._run.place.put(self._preparer.files(self._entity, part)[0])
        self._transforming.append((part, self._run.executor.submit(Transform(self._work, part))))

    def _advance(self, there: frozenset[int]) -> Iterator[Arrived]:
        """Does what can be done, and waits while enough is under way: for all of it after the last part."""
        while True:
            ahead = 2 * self._run.executor.width + 1  # so that no worker idles
            if not self._stopping and self._ctx.stop():
                self._stop()
            if self._landing and (self._landing[0].future is None or self._landing[0].future.done()):
                yield self._land(self._landing.popleft())
            elif self._transforming and self._transforming[0][1].done():
                self._take(*self._transforming.popleft())
            elif not self._stopping and not self._landing and pause_asked(self._ctx.paths):
                wait_while_paused(self._ctx)  # what was under way has landed, and is in the log
            elif self._transformed and self._enough():
                self._settle()
            elif self._may_give() and len(self._landing) <= (0 if self._one_by_one else ahead):
                self._give(self._settled.popleft(), there)
            elif self._stopping and not self._landing:
                stop_if_asked(self._ctx)
            elif self._stopping or self._full(ahead):
                heads = [future for _, future in list(self._transforming)[:1]]
                self._wait([*heads, *(batch.future for batch in list(self._landing)[:1])])
            else:
                return

    def _may_give(self) -> bool:
        """True where a batch waits for a worker, and nobody wants the job to wait."""
        return bool(self._settled) and self._open and not pause_asked(self._ctx.paths)

    def _enough(self) -> bool:
        """True where what is transformed is worth settling, or is all that will come."""
        rows = sum(part.rows for part, _ in self._transformed)
        return rows >= self._settler.grain or (self._last and not self._transforming)

    def _full(self, ahead: int) -> bool:
        """True where the next part has to wait, or after the last part, anything is under way."""
        if self._last:
            return bool(self._transforming or self._landing)
        held = sum(batch.part.rows for batch in self._settled)
        return len(self._transforming) > ahead or (self._open and held > self._settler.grain + ahead * self._rows)

    def _stop(self) -> None:
        self._stopping = True
        for _, future in self._transforming:
            future.cancel()
        self._transforming.clear()
        self._transformed.clear()
        self._settled.clear()

    def _take(self, part: PartStaged, future: Future[Answer]) -> None:
        transformed = self._result(future)
        assert isinstance(transformed, Transformed)
        self.changes.update(transformed.counts.changes)
        self._rows = max(self._rows, part.rows)
        if archive := Archive.of(self._ctx.checked.plan, self._ctx.paths.job):
            archive.keep(self._preparer.duck, self._entity, self._preparer.files(self._entity, part)[0], part.part)
        self._transformed.append((part, transformed))

    def _settle(self) -> None:
        """The next parts of all, in order: which of their rows lose to one before them."""
        parts = []
        for part, transformed in self._transformed:
            with self._timed("files"):
                keys = self._run.place.get(transformed.keys)
            if not self._run.place.shared:
                self._fetched.append(keys)
            parts.append((part.part, keys, part.rows))
        with self._timed("settle"):
            lost = self._settler.settle_all(parts)
        for (part, transformed), losers in zip(self._transformed, lost, strict=True):
            with self._timed("files"):
                told = (self._run.place.put(losers.path), losers.count) if losers else None
            self._settled.append(_Batch(part, transformed, told))
        self._transformed.clear()

    def _give(self, batch: _Batch, there: frozenset[int]) -> None:
        """Has a worker commit a batch: all parts up to it are settled."""
        if batch.part.part not in there:
            batch.future, batch.begun = self._submitted(batch), time.monotonic()
        self._landing.append(batch)

    def _submitted(self, batch: _Batch) -> Future[Answer]:
        token = self._ctx.target.lease_token
        return self._run.executor.submit(Commit(self._work, batch.part, token, batch.transformed, batch.losers))

    def _land(self, batch: _Batch) -> Arrived:
        """What became of a batch. Where the target was lost it is given again: the ledger lets it in once."""
        landed = None
        if batch.future is not None:
            futures = [batch.future]

            def result() -> Landed:
                found = self._result(futures.pop() if futures else self._submitted(batch))
                assert isinstance(found, Landed)
                return found

            what = f"batch {batch.part.part} of {self._entity.name}"
            landed = persist(self._ctx, what, result, mend=self._ctx.target.keep_lease)
        with self._timed("files"):
            staged = self._run.place.name(self._preparer.files(self._entity, batch.part)[0])
            made = (batch.transformed.out, batch.transformed.keys, *([batch.losers[0]] if batch.losers else []))
            self._run.place.remove(staged, *made)
        return Arrived(
            batch.part, landed, time.monotonic() - batch.begun if landed else 0.0, batch.transformed.counts.excluded_by
        )

    def _result(self, future: Future[Answer]) -> Transformed | Landed:
        while not future.done():
            self._wait([future])
        answer = future.result()
        for what, seconds in answer.seconds.items():
            self._run.seconds[what] += seconds
        if isinstance(answer.result, PackhorseError):
            raise answer.result
        return answer.result

    def _wait(self, futures: Sequence[Future[Answer] | None]) -> None:
        if not wait([f for f in futures if f is not None], timeout=1.0, return_when=FIRST_COMPLETED).done:
            self._run.executor.look()

    @contextmanager
    def _timed(self, what: str) -> Iterator[None]:
        started = time.monotonic()
        try:
            yield
        finally:
            self._run.seconds[what] += time.monotonic() - started


@contextmanager
def spread_over(ctx: Context) -> Iterator[Run | None]:
    """The workers that the context's executor has, for one load; None where this process loads by itself."""
    if ctx.choice.inline:
        yield None
        return
    name = secrets.token_hex(6)
    place = Place(ctx.paths.folder, ctx.choice.place, name)
    place.clear_job()
    try:
        with ctx.choice.opened() as executor:
            run = Run(name, executor, place, defaultdict(float))
            yield run
            ctx.workspace.record(WorkSpread(ctx.choice.name, executor.width, dict(run.seconds)))
    finally:
        with suppress(PackhorseError):  # the next load's beginning clears it too
            place.clear_job()
