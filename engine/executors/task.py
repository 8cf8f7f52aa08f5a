"""What a worker is told to do, and what it answers: small things only, since they pass through other machines.

A task holds no password and no record but the keys of its range: DSNs stand in it as they were given, with the names
of variables that the worker has itself. Its repr, which may get into logs and dashboards, holds neither.
"""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from typing import Protocol

from connectors.protocols import LedgerRow
from engine.check import CheckedPlan
from engine.transform import Counts
from workspace.errors import PackhorseError
from workspace.events import PartStaged


@dataclass(frozen=True, repr=False)
class Work:
    """What all tasks of an entity share. Files are named from the job's folder.

    `run` is one run of a job; `base` is where the job lies, `place` the URL of where its files lie for all workers or
    "" for the job's own folder. `source` is the source's identity, `target` the DSN as given, `schema` where our
    records are in it. `checked` holds the entity alone; `crosswalks` are the files, by entity, that its references
    are looked up in; `existing` is its own crosswalk from before.
    """

    run: str
    job: str
    base: str
    place: str
    source: str
    target: str
    schema: str
    entity: str
    checked: CheckedPlan
    crosswalks: tuple[tuple[str, str], ...] = ()
    existing: str | None = None


@dataclass(frozen=True)
class Transformed:
    """A part after its transform: the file of its rows, the file of what is compared of them, the counts."""

    out: str
    keys: str
    counts: Counts


@dataclass(frozen=True, repr=False)
class Transform:
    """Transforms a part; Transformed comes back."""

    work: Work
    part: PartStaged

    def __repr__(self) -> str:
        return f"transform of part {self.part.part} of {self.work.entity}"


@dataclass(frozen=True, repr=False)
class Commit:
    """Commits a transformed part under the lease of that token; Landed comes back. `losers` is the file of the rows
    that lost a collision, and how many they are."""

    work: Work
    part: PartStaged
    token: str
    transformed: Transformed
    losers: tuple[str, int] | None

    def __repr__(self) -> str:
        return f"batch {self.part.part} of {self.work.entity}"


@dataclass(frozen=True)
class Landed:
    """What became of a batch: its ledger row, None where the ledger had it already; what went to quarantine, as
    signature, code, field and rows."""

    row: LedgerRow | None
    clusters: tuple[tuple[str, str, str, int], ...] = ()


Task = Transform | Commit


@dataclass(frozen=True)
class Answer:
    """What came of a task, or why nothing did; the seconds that went into it, by `transform`, `sort`, `target` and
    `files`."""

    result: Transformed | Landed | PackhorseError
    seconds: dict[str, float] = field(default_factory=dict)


class Executor(Protocol):
    """Has workers do tasks. Which worker, and how often where one is lost, is its own business: the ledger lets each
    batch in once."""

    @property
    def width(self) -> int:
        """How many tasks can be done at once now; 0 while there is no worker."""
        ...

    def submit(self, task: Task) -> Future[Answer]:
        """Has a task done. The future fails with JobFailedError where no worker could do it."""
        ...

    def look(self) -> None:
        """Called while a task is waited for. JobFailedError where waiting has become useless."""
        ...

    def close(self) -> None:
        """Lets the workers go; what isn't begun is dropped."""
        ...


def alone(checked: CheckedPlan, entity: str) -> CheckedPlan:
    """The checked plan with that entity alone, without systems: as little as a worker needs."""
    planned = checked.plan.entities[entity]
    maps = {f.map for f in planned.fields.values() if f.map}
    plan = checked.plan.model_copy(
        update={
            "entities": {entity: planned},
            "value_maps": {name: values for name, values in checked.plan.value_maps.items() if name in maps},
            "source": "",
            "target": "",
        }
    )
    return replace(checked, plan=plan, entities=(checked.entity(entity),))
