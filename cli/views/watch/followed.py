"""A job as whoever watches it knows it, told from its log alone: the state, how fast each entity goes, what was decided.

Reads the log and asks who holds the lock; never takes it for writing, and writes nothing. Instants of the log are
laid on a clock that stands still while no process runs the job and while it is paused, so that rates mean something.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator
from datetime import datetime

from cli.views.jobs import job_state
from cli.views.pace import Pace
from cli.views.watch.forecast import seconds_to_load, weights_of
from cli.views.watch.throughput import Throughput
from workspace.events import (
    PHASES,
    BatchCommitted,
    DecisionMade,
    JobWentOn,
    PartStaged,
    PhaseStarted,
    PlanChanged,
    QuarantineSeen,
    QuestionAnswered,
    QuestionAsked,
)
from workspace.lock import lock_holder
from workspace.log import Entry, Workspace
from workspace.paths import JobPaths
from workspace.pause import pause_asked
from workspace.progress import Progress
from workspace.state import State

_LOG_LINES = 1000
_GROWTH = 60.0  # seconds that a cluster's growth is taken over

Cluster = tuple[str, str]
"""An entity and a signature."""


class Followed:
    """A job's log, followed. `holder` is who runs the job, None where nobody does; `paused` is True where somebody
    wants it to wait. `decisions` and `log` hold entries, the latest last."""

    def __init__(self, paths: JobPaths) -> None:
        self.paths = paths
        self.state = State()
        self.holder: str | None = None
        self.paused = False
        self.decisions: list[Entry] = []
        self.log: deque[Entry] = deque(maxlen=_LOG_LINES)
        self.throughput = Throughput()
        self._paces: dict[str, Pace] = {}
        self._grown: dict[Cluster, deque[tuple[float, int]]] = {}
        self._weights: dict[str, float] = {}
        self._last_batch: float | None = None  # or the phase's beginning
        self._asleep = 0.0  # seconds of the log in which nothing was to be done

    @property
    def progress(self) -> Progress:
        """How far the job is."""
        return self.state.progress

    @property
    def word(self) -> str:
        """running, paused, done, ...: as `migrate jobs` says."""
        return job_state(self.progress, self.holder)

    @property
    def over(self) -> bool:
        """True where no process runs the job."""
        return self.holder is None

    def follow(self, workspace: Workspace) -> bool:
        """Takes in what was recorded since; True where anything was, or the job began, ended, or was asked to wait.
        WorkspaceError where the log can't be read."""
        # the holder first: what an ended process wrote is in the log by then
        before = self.state.position, self.holder, self.paused
        self.holder, self.paused = lock_holder(self.paths), pause_asked(self.paths)
        for entry in workspace.events(start=self.state.position + 1):
            self.take(entry)
        return before != (self.state.position, self.holder, self.paused)

    def take(self, entry: Entry) -> None:
        """Takes in the next event."""
        before, self.state = self.progress, self.state.apply(entry)
        self.log.append(entry)
        match entry.event:
            case PhaseStarted() as started:
                self._begin(started, before, entry.at)
            case JobWentOn() if before.paused_at is not None:
                self._asleep += (entry.at - before.paused_at).total_seconds()
            case PartStaged() as part:
                self._note(part.entity, "stage", entry.at, part.rows)
            case BatchCommitted() as batch:
                rows = batch.read if batch.step == 1 else self._rows_of(batch.entity, batch.batch)
                self._note(batch.entity, "load" if batch.step == 1 else "references", entry.at, rows)
                if batch.step == 1:
                    self.throughput.add(self._clock(entry.at), batch.read)
            case QuarantineSeen() as seen:
                grown = self._grown.setdefault((seen.entity, seen.signature), deque())
                grown.append((self._clock(entry.at), seen.count))
            case DecisionMade() | QuestionAsked() | QuestionAnswered():
                self.decisions.append(entry)
            case PlanChanged() as changed:
                self._weights = weights_of(changed.plan)

    def now(self) -> float:
        """This instant on the clock of the paces; that of the last event while nothing is under way."""
        progress = self.progress
        last = progress.last_at or datetime.now().astimezone()
        if self.holder is None:
            return self._clock(last)
        return (
            self._clock(progress.paused_at)
            if progress.paused_at
            else max(self._clock(last), time.time() - self._asleep)
        )

    def paces(self) -> Iterator[Pace]:
        """Each entity in the phase that it is in, in the order of the load; those still to come have no phase."""
        for name, entity in self.progress.entities.items():
            yield self._paces.get(name) or Pace("", name, entity.counts.read, entity.rows_to_read)

    def seconds_to_load(self) -> float | None:
        """Time until all rows are loaded; None where that isn't known, or nothing is being loaded."""
        if self.holder is None or self.progress.phase != "load":
            return None
        return seconds_to_load(self.progress, self._paces, self._weights, self.now())

    def growth(self, cluster: Cluster) -> int:
        """By how many rows a cluster has grown in the last minute of the job."""
        since = self.now() - _GROWTH
        return sum(count for at, count in self._grown.get(cluster, ()) if at >= since)

    def _begin(self, started: PhaseStarted, before: Progress, at: datetime) -> None:
        """A phase begins. One that isn't after the phase before is of another process: what lay between doesn't count."""
        if before.phase and PHASES.index(started.phase) <= PHASES.index(before.phase):
            self._asleep += (at - (before.paused_at or before.last_at or at)).total_seconds()
            self._paces.clear()
        self._last_batch = self._clock(at)
        if started.phase == "load":
            self.throughput.begin(self._last_batch)

    def _note(self, name: str, phase: str, at: datetime, rows: int) -> None:
        """So many rows more are done with in a phase of an entity."""
        entity, pace, now = self.progress.entities[name], self._paces.get(name), self._clock(at)
        if phase == "stage" and pace is not None and pace.phase == "load":
            pace.total = entity.rows_to_read
            return  # reading runs ahead of the load
        done = {
            "stage": entity.staged_rows,
            "load": entity.counts.read,
            "references": sum(self._rows_of(name, batch) for batch, _ in entity.second_pass),
        }[phase]
        if pace is None or pace.phase != phase:
            # the first batch of a load is on its way from the moment that its rows are read
            staged = pace is not None and (pace.phase, phase) == ("stage", "load")
            began = pace.began if pace is not None and staged else self._last_batch or now
            pace = self._paces[name] = Pace(phase, name, began=began, before=done - rows)
        pace.total = entity.rows_to_read
        pace.note(now, done)
        if phase != "stage":
            self._last_batch = now

    def _rows_of(self, entity: str, batch: int) -> int:
        rows, _ = self.progress.entities[entity].parts.get(batch) or (0, 0)
        return rows

    def _clock(self, at: datetime) -> float:
        return at.timestamp() - self._asleep
