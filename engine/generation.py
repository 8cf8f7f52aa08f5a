"""Generations of a job's stage, as the log has them: the first is what the job read when it began, each sync is one.

A generation is staged as a whole, at one instant of the source where that has such, or not at all; its parts and
batches go on in number after those before it. Reads the log alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Literal

from engine.stager import completed_stage, recorded_parts
from workspace.errors import UsageError
from workspace.events import GenerationStaged, PartStaged, PhaseStarted, SyncCompleted, SyncStarted
from workspace.log import Workspace

Deletes = Literal["keep", "delete", "mark"]
"""What becomes of rows of the target that the source has no longer."""


@dataclass(frozen=True)
class Generation:
    """One of them. With `redriven`, the plan changed and not the source (see SyncStarted). `began` is when its reading began, of what came later the source's state may not be; `staged` is
    by entity, empty until the whole generation stands; the others as SyncStarted has them."""

    number: int
    began: datetime
    deletes: Deletes = "keep"
    full: bool = False
    edited: Literal["", "keep", "overwrite", "ask"] = ""
    redriven: tuple[str, ...] = ()
    written_by: int = 0
    staged: Mapping[str, GenerationStaged] = field(default_factory=dict)
    completed: bool = False


def generations(workspace: Workspace) -> list[Generation]:
    """All generations in order, the first where a load has begun; of a sync that was killed while it read, the last
    try. Empty where nothing was read."""
    found: dict[int, Generation] = {}
    for entry in workspace.events(types=[PhaseStarted, SyncStarted, GenerationStaged, SyncCompleted]):
        event = entry.event
        if isinstance(event, PhaseStarted) and event.phase == "load":
            found.setdefault(1, Generation(1, entry.at, completed=True))
        elif isinstance(event, SyncStarted):
            found[event.generation] = Generation(
                event.generation, entry.at, event.deletes, event.full, event.edited, tuple(event.redriven), event.written_by
            )  # fmt: skip
        elif isinstance(event, GenerationStaged):
            known = found[event.generation]
            found[event.generation] = replace(known, staged={**known.staged, event.entity: event})
        elif isinstance(event, SyncCompleted):
            found[event.generation] = replace(found[event.generation], completed=True)
    return [found[number] for number in sorted(found)]


def open_generation(workspace: Workspace) -> Generation | None:
    """The sync that stands in the stage and isn't wholly in the target yet, or None."""
    found = generations(workspace)
    return found[-1] if found and found[-1].staged and not found[-1].completed else None


def open_redrive(workspace: Workspace) -> Generation | None:
    """The re-drive that began and isn't wholly in the target yet, staged or not; None where there is none."""
    found = generations(workspace)
    return found[-1] if found and found[-1].redriven and not found[-1].completed else None


def refuse_open_generation(workspace: Workspace, job: str) -> None:
    """UsageError while a sync or a re-drive is under way: its rows would be taken for those of the load."""
    if open_redrive(workspace) is not None:
        raise UsageError(
            "a re-drive of the job began and didn't end", where=f"job {job}", advice=f"`migrate resume {job}` goes on"
        )
    if open_generation(workspace) is not None:
        raise UsageError(
            "a sync of the job began and didn't end", where=f"job {job}", advice=f"`migrate sync {job}` goes on"
        )


def staged_parts(workspace: Workspace, staged: GenerationStaged) -> list[PartStaged]:
    """The parts of an entity's generation that hold rows."""
    numbers = range(staged.first, staged.first + staged.parts)
    return [part for part in recorded_parts(workspace, staged.entity) if part.part in numbers]


def removal_parts(workspace: Workspace, staged: GenerationStaged) -> list[PartStaged]:
    """The parts that hold no row, and tell what leaves the target."""
    first = staged.first + staged.parts
    numbers = range(first, first + staged.removals)
    return [part for part in recorded_parts(workspace, staged.entity) if part.part in numbers]


@dataclass(frozen=True)
class LastCount:
    """What the source counted of an entity when it was last read. `gone` rows the stage has besides, None where nobody
    looked for them; `removals` are batches that took some of those out. `one_instant`: both are of one state."""

    counted: int
    gone: int | None
    one_instant: bool
    removals: range = range(0)


def last_count(workspace: Workspace, entity: str) -> LastCount | None:
    """None where the entity's first stage isn't whole."""
    read = [g for g in generations(workspace) if entity in g.staged and not g.redriven]
    latest = read[-1].staged[entity] if read else None
    if latest is not None:
        first = latest.first + latest.parts
        return LastCount(latest.counted, latest.gone, latest.snapshot, range(first, first + latest.removals))
    complete = completed_stage(workspace, entity)
    return None if complete is None or complete.counted is None else LastCount(complete.counted, 0, complete.snapshot)


def over_path(folder: Path, part: int) -> Path:
    """Where the rows lie that a part's rows take the place of: n, key, of_batch, excluded. Of a removal, rows that leave
    the target; those with `gone` are read no longer."""
    return folder / f"over-{part:05d}.parquet"
