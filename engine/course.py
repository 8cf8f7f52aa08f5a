"""Whether a job keeps to the course that its rehearsal foresaw: after each batch, and at the end.

A job that was not rehearsed has no course to stray from.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from connectors.protocols import LedgerRow
from engine.context import Context
from engine.load import LoadOutcome, load
from engine.stager import completed_stage
from engine.tolerance import Tolerance
from workspace.errors import StrayedError
from workspace.events import BatchCommitted, Rehearsed, StrayAllowed
from workspace.log import Workspace

STRAY_SHARE, STRAY_ROWS = 0.01, 10
"""How many rows more than foreseen are no alarm, unless told otherwise: this share of those read, and always this
many: in the target others work meanwhile."""


@dataclass(frozen=True)
class Foreseen:
    """An entity's rehearsal: rows read, excluded and quarantined, of all of it and by batch."""

    read: int
    excluded: int
    quarantined: int
    batches: tuple[tuple[int, int, int], ...]


def load_on_course(ctx: Context, stray: float | None, tolerate: float) -> LoadOutcome:
    """Loads as `load` does, and stops with QuarantinedTooManyError where more rows are in quarantine than `tolerate`
    allows (see Tolerance), with StrayedError where more are excluded or in quarantine than the job's
    last rehearsal foresaw. What was committed stays. `stray` is how many more may be: a share of the rows read below 1,
    else rows; None for what was last allowed. Invariant: a batch is in the ledger and in the log before it is judged, so that
    stopping loses nothing."""
    if stray is not None:
        ctx.workspace.record(StrayAllowed(stray))
    rehearsed = last_rehearsal(ctx.workspace)
    course = Course(ctx, rehearsed) if rehearsed is not None else None
    tolerance = Tolerance(ctx, tolerate, course.after_batch if course is not None else ctx.after_batch)
    tolerance.check()
    if course is None:
        return load(replace(ctx, after_batch=tolerance.after_batch))
    course.check()
    outcome = load(replace(ctx, after_batch=tolerance.after_batch))
    course.check(ended=True)
    return outcome


def last_rehearsal(workspace: Workspace) -> Rehearsed | None:
    """The job's last rehearsal, or None."""
    last = None
    for entry in workspace.events(types=[Rehearsed]):
        if isinstance(entry.event, Rehearsed):
            last = entry.event
    return last


class Course:
    """A job beside its rehearsal. Batches are known by number, in whatever order they come."""

    def __init__(self, ctx: Context, rehearsed: Rehearsed) -> None:
        self._ctx = ctx
        self._foreseen = {
            name: Foreseen(each["read"], each["excluded"], each["quarantined"], tuple(map(tuple, each["batches"])))
            for name, each in rehearsed.entities.items()
        }
        self._most = _allowed(ctx.workspace)
        self._done: dict[str, dict[int, tuple[int, int, int]]] = {}
        # batches that a sync brought in later are beyond what was rehearsed
        staged = {name: completed_stage(ctx.workspace, name) for name in self._foreseen}
        self._first = {name: complete.parts for name, complete in staged.items() if complete is not None}
        for entry in ctx.workspace.events(types=[BatchCommitted]):
            if isinstance(entry.event, BatchCommitted) and entry.event.step == 1:
                self._note(entry.event)

    def after_batch(self, row: LedgerRow) -> None:
        """Takes up a batch that is committed. StrayedError where the entity strays with it."""
        if row.step == 1:
            self._note(row)
            self._check(row.entity, ended=False)

    def check(self, *, ended: bool = False) -> None:
        """StrayedError for the first entity that strays; `ended` once all batches are there."""
        for entity in self._ctx.checked.entities:
            self._check(entity.name, ended=ended)

    def _note(self, row: LedgerRow | BatchCommitted) -> None:
        if row.batch >= self._first.get(row.entity, row.batch + 1):
            return
        self._done.setdefault(row.entity, {})[row.batch] = (row.read, row.excluded, row.quarantined)

    def _check(self, entity: str, *, ended: bool) -> None:
        foreseen, done = self._foreseen.get(entity), self._done.get(entity)
        if foreseen is None or not done:
            return
        read, excluded, quarantined = _sums(list(done.values()))
        like = self._same_batches(foreseen, done)
        if like is None:
            # Another reading of the source: batches can't be compared, but the whole can, by shares.
            scale = max(1.0, read / foreseen.read) if foreseen.read else 1.0
            like = (foreseen.read, round(foreseen.excluded * scale), round(foreseen.quarantined * scale))
        most = self._rows(read)
        found = [("in quarantine", quarantined, like[2]), ("excluded", excluded, like[1])]
        for what, rows, expected in found:
            if rows - expected > most:
                raise self._strayed(f"{entity}: {rows:,} rows {what}, {expected:,} were foreseen of so many", most)
        if ended and abs(read - foreseen.read) > self._rows(foreseen.read):
            raise self._strayed(f"{entity}: {read:,} rows read, {foreseen.read:,} were foreseen", most)

    def _same_batches(self, foreseen: Foreseen, done: dict[int, tuple[int, int, int]]) -> tuple[int, int, int] | None:
        """What the rehearsal made of just these batches; None where they aren't the same."""
        try:
            like = [foreseen.batches[n] for n in done]
        except IndexError:
            return None
        same = all(a[0] == b[0] for a, b in zip(like, done.values(), strict=True))
        return _sums(like) if same else None

    def _rows(self, read: int) -> int:
        if self._most is None:
            return max(STRAY_ROWS, int(STRAY_SHARE * read))
        return int(self._most * read) if self._most < 1 else int(self._most)

    def _strayed(self, what: str, most: int) -> StrayedError:
        job = self._ctx.paths.job
        return StrayedError(
            f"not as rehearsed: {what}, and {most:,} more are tolerated", where=f"job {job}",
            advice=f"`migrate quarantine list {job}` shows why; `migrate resume {job} --stray ROWS` goes on all the same",
        )  # fmt: skip


def _sums(rows: Sequence[tuple[int, int, int]]) -> tuple[int, int, int]:
    return sum(r[0] for r in rows), sum(r[1] for r in rows), sum(r[2] for r in rows)


def _allowed(workspace: Workspace) -> float | None:
    """What a person allowed last, or None."""
    last = None
    for entry in workspace.events(types=[StrayAllowed]):
        if isinstance(entry.event, StrayAllowed):
            last = entry.event.most
    return last
