"""The jobs that `bench.faults` strikes: the sample's load and its taking back, each in a process of its own, and what
its target and its log hold after it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import engine.workers
from bench.compare import dump_target
from connectors.dsn import Dsn, open_source, open_target
from engine.check import CheckedPlan, check_loaded, check_plan
from engine.context import Context
from engine.load import load
from engine.plan import load_plan
from engine.undo import Undo
from engine.verify import verify
from sample_data import GOLD_PLAN
from workspace.events import BatchCommitted, BatchUndone, EntityCompleted, RetryMade, StageCompleted
from workspace.lock import JobLock
from workspace.log import Workspace
from workspace.paths import JobPaths

NAME = "struck"
_TOLD = (BatchCommitted, BatchUndone, EntityCompleted, StageCompleted)


@dataclass(frozen=True)
class SampleJob:
    """A load of the sample by its gold plan. With `processes`, every part but an entity's last is transformed in one."""

    folder: str
    source: str
    target: str
    batch_rows: int
    processes: int

    @property
    def paths(self) -> JobPaths:
        """Its files."""
        return JobPaths(Path(self.folder), NAME)

    def loading(self) -> Callable[[], None]:
        """The work of `load`, for a process."""
        return partial(load_sample, self)

    def undoing(self) -> Callable[[], None]:
        """The work of `undo`, for a process."""
        return partial(undo_sample, self)

    def retries(self) -> int:
        """How often something was tried again, as the log tells."""
        with Workspace.open(self.paths) as workspace:
            return len(list(workspace.events(types=[RetryMade])))

    def held(self, folder: Path) -> dict[str, str]:
        """Digests of all that the target holds by now, and how often the log tells of each thing done."""
        digests = dump_target(self.target, self.checked(), folder)
        told: dict[str, int] = {}
        with Workspace.open(self.paths) as workspace:
            for entry in workspace.events(types=_TOLD):
                event = entry.event
                batch, step = getattr(event, "batch", ""), getattr(event, "step", "")
                name = f"the log's {event.type} {getattr(event, 'entity', '')} {batch} {step}"
                # an undo's second pass may be done twice, the second time finding nothing to do
                told[name] = 1 if isinstance(event, BatchUndone) else told.get(name, 0) + 1
        return digests | {name: str(count) for name, count in told.items()}

    def checked(self) -> CheckedPlan:
        """The plan, against the two systems."""
        source, target = open_source(self.source), open_target(self.target)
        try:
            return check_plan(load_plan(GOLD_PLAN), source, target.catalogue())
        finally:
            source.close()
            target.close()


def load_sample(job: SampleJob) -> None:
    """Loads and verifies; AssertionError where verification finds a problem."""
    if job.processes:
        engine.workers._WORTH_A_PROCESS = 1
    paths = job.paths.create()
    source, target = open_source(job.source), open_target(job.target)
    checked = check_plan(load_plan(GOLD_PLAN), source, target.catalogue())
    identity = Dsn.parse(job.source).identity
    with JobLock(paths), Workspace.open(paths, write=True) as workspace:
        context = Context(
            paths, workspace, source, target, checked, identity, batch_rows=job.batch_rows, processes=job.processes
        )
        load(context)
        result = verify(context)
    assert result.ok, [entity.problems for entity in result.entities]


def undo_sample(job: SampleJob) -> None:
    """Takes the job back."""
    target = open_target(job.target)
    checked = check_loaded(load_plan(GOLD_PLAN), target.catalogue())
    with JobLock(job.paths), Workspace.open(job.paths, write=True) as workspace:
        undo = Undo(job.paths, workspace, target, checked)
        undo.foresee()
        undo.run()
