"""The rehearsal: the whole job carried out into an empty copy of its target, and what the real night will bring.

The stage is the job's own, so that what was rehearsed is what is loaded later. The target itself is only read.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from connectors.copy_of_target import Copy
from connectors.measures import Room, Way
from engine.context import Context, Progress
from engine.executors.choice import Choice
from engine.faults import fault_point
from engine.load import LoadOutcome, load
from engine.stage import part_path
from engine.stager import Stager, completed_stage, recorded_parts
from engine.verify import Verification, verify
from workspace.errors import InterruptedJobError, JobFailedError, UsageError
from workspace.events import BatchCommitted, PhaseStarted, Piloted, Rehearsed, StageCompleted
from workspace.log import Workspace
from workspace.progress import fold_progress

_TRIED = {
    "rehearse": ("rehearsal", "rehearse SOURCE TARGET --job {}"),
    "pilot": ("pilot", "run SOURCE TARGET --job {} --pilot"),
}
TRIPS_A_BATCH = 14
"""Questions that a batch asks the target, one after the other: the distance to it is paid for each."""


@dataclass(frozen=True)
class EntityRehearsed:
    """What became of an entity's rows in the copy. `collisions` are among the `quarantined`; `signatures` counts those
    by how they fail. `rows_bytes` and `index_bytes` are what its table takes."""

    entity: str
    source: str
    target: str
    read: int
    loaded: int
    merged: int
    excluded: int
    quarantined: int
    collisions: int
    signatures: dict[str, int]
    rows_bytes: int
    index_bytes: int


@dataclass(frozen=True)
class Forecast:
    """Seconds and bytes that the real job will take. `read_seconds` is what reading the source anew would take, None
    where that wasn't measured: a job that was rehearsed doesn't read again. `load_seconds` are those of the rehearsal and
    `way_seconds` more for the distance to the target; `verify_seconds` likewise."""

    read_seconds: float | None
    load_seconds: float
    way_seconds: float
    verify_seconds: float
    stage_bytes: int
    transformed_bytes: int
    target_bytes: int
    record_bytes: int
    log_bytes: int

    @property
    def seconds(self) -> float:
        """From the first batch to the end of the verification."""
        return self.load_seconds + self.way_seconds + self.verify_seconds


@dataclass(frozen=True)
class Rehearsal:
    """How it went, entities in load order. `problems` are those of the verification, empty where all holds;
    `differences` what the copy lacks of the target, or has otherwise; `seconds` by phase."""

    plan_version: int
    entities: tuple[EntityRehearsed, ...]
    problems: tuple[str, ...]
    differences: tuple[str, ...]
    seconds: dict[str, float]
    way: Way
    forecast: Forecast

    @property
    def quarantined(self) -> int:
        """Rows in quarantine, over all entities."""
        return sum(each.quarantined for each in self.entities)

    @property
    def read(self) -> int:
        """Rows of the stage, over all entities."""
        return sum(each.read for each in self.entities)

    def to_dict(self) -> dict[str, Any]:
        """As JSON values."""
        return {**asdict(self), "forecast": {**asdict(self.forecast), "seconds": self.forecast.seconds}}


def stage_all(ctx: Context) -> None:
    """Reads what isn't staged yet. InterruptedJobError when asked to stop; what stands is not read again."""
    todo = [entity for entity in ctx.checked.entities if completed_stage(ctx.workspace, entity.name) is None]
    if todo:
        ctx.workspace.record(PhaseStarted("stage"))
    with Stager(ctx) as stager:
        for entity in todo:
            staged = 0
            for part in stager.parts(entity):
                staged += part.rows
                ctx.progress(Progress("stage", entity.name, staged, stager.expected(entity.name)))
                if ctx.stop():
                    raise _interrupted(ctx)


def rehearse(ctx: Context, copy: Copy) -> Rehearsal:
    """Carries the whole stage, which must stand, into the copy, verifies it, and records what that brought.

    Begins anew each time: what an earlier rehearsal left is removed first. Writes nothing to the target.
    """
    if matching := [e.name for e in ctx.checked.entities if e.plan.match is not None]:
        raise UsageError(
            f"the plan matches rows of {matching[0]}, and a copy of the target holds none", where=f"job {ctx.paths.job}",
            advice="`migrate run SOURCE TARGET --dry-run` shows how many rows would match",
        )  # fmt: skip
    paths = ctx.paths.rehearsal
    with Workspace.open(paths, write=True) as workspace:
        _take_up_stage(ctx, workspace)
        rehearsing = replace(ctx, paths=paths, workspace=workspace, target=copy, choice=Choice())
        for entity in ctx.checked.entities:  # so that rows brought in before don't count as keys of others
            if ctx.target.has_schema():
                ctx.target.know_entity(ctx.source_identity, entity.name, entity.plan.to)
        tables = [entity.target for entity in ctx.checked.entities]
        before = copy.room(tables)
        fault_point("rehearsal begun")
        try:
            started = time.monotonic()
            loaded = load(rehearsing)
            load_seconds = time.monotonic() - started
            after = copy.room(tables)
            verified = verify(rehearsing, ask_source=False)
            verify_seconds = time.monotonic() - started - load_seconds
        except InterruptedJobError:
            raise _interrupted(ctx) from None
        except JobFailedError as error:
            raise type(error)(error.what, where=error.where, advice="mend the cause and rehearse again") from None
        fault_point("rehearsal done")
        seconds = {"load": load_seconds, "verify": verify_seconds}
        found = _told(ctx, rehearsing, loaded, verified, (before, after), seconds, copy)
        ctx.workspace.record(_event(found, workspace))
    return found


@contextmanager
def rehearsal_folder(ctx: Context) -> Iterator[Path]:
    """The folder that a rehearsal works in, empty at first and gone at the end; one that was killed may have left
    it, never its server."""
    folder = ctx.paths.rehearsal.folder
    shutil.rmtree(folder, ignore_errors=True)
    ctx.paths.rehearsal.create()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def refuse_unfinished(workspace: Workspace) -> None:
    """UsageError for a job whose rehearsal or pilot did not come to its end, and that has moved no row yet: whoever
    wanted one of these should not get the night itself."""
    begun = ""
    for entry in workspace.events(types=[PhaseStarted, Rehearsed, Piloted, BatchCommitted]):
        if isinstance(entry.event, BatchCommitted):
            return
        if not isinstance(entry.event, PhaseStarted):
            begun = ""
        elif entry.event.phase in _TRIED:
            begun = entry.event.phase
    if begun:
        what, again = _TRIED[begun]
        job = workspace.paths.job
        raise UsageError(
            f"the {what} of {job} did not come to its end", where=str(workspace.paths.folder),
            advice=f"`migrate {again.format(job)}` goes on with it; `migrate run SOURCE TARGET --job {job}` moves all rows",
        )  # fmt: skip


def _interrupted(ctx: Context) -> InterruptedJobError:
    return InterruptedJobError(
        "interrupted; nothing was written to the target", where=f"job {ctx.paths.job}",
        advice="the same command rehearses again; what was read from the source is not read again",
    )  # fmt: skip


def _take_up_stage(ctx: Context, workspace: Workspace) -> None:
    """Tells the rehearsal's log what stands in the job's stage."""
    for entity in ctx.checked.entities:
        complete = completed_stage(ctx.workspace, entity.name)
        assert complete is not None
        workspace.record(complete, *recorded_parts(ctx.workspace, entity.name))


def _told(
    ctx: Context, rehearsing: Context, loaded: LoadOutcome, verified: Verification, rooms: tuple[Room, Room],
    seconds: dict[str, float], copy: Copy,
) -> Rehearsal:  # fmt: skip
    progress = fold_progress(rehearsing.workspace.events())
    entities = []
    for entity in ctx.checked.entities:
        done = progress.entities[entity.name]
        signatures = {name: failure.count for name, failure in done.failures.items()}
        rows, indexes = rooms[1].tables[entity.target.name]
        found = next(each for each in verified.entities if each.entity == entity.name)
        entities.append(
            EntityRehearsed(
                entity.name, entity.plan.from_, entity.plan.to, found.read, found.loaded, found.merged, found.excluded,
                found.quarantined, sum(f.count for f in done.failures.values() if f.code == "unique"),
                dict(sorted(signatures.items(), key=lambda each: -each[1])), rows, indexes,
            )
        )  # fmt: skip
    read = _read_seconds(ctx.workspace)
    problems = [f"{each.entity}: {line}" for each in verified.entities for line in each.problems]
    way = ctx.target.way()
    forecast = _forecast(rehearsing, rooms, seconds, read, way, copy.way())
    seconds = {**({"read": read} if read is not None else {}), **seconds}
    return Rehearsal(
        ctx.checked.plan.version, tuple(entities), tuple(problems), tuple(map(str, copy.differences)), seconds, way, forecast
    )  # fmt: skip


def _forecast(
    rehearsing: Context, rooms: tuple[Room, Room], seconds: dict[str, float], read: float | None, there: Way, here: Way
) -> Forecast:
    """The rehearsal's own measures, and what the distance to the target adds: to each question of each batch the trip,
    to each byte of rows and records the slower line."""
    before, after = rooms
    grown = {name: sum(sizes) - sum(before.tables[name]) for name, sizes in after.tables.items()}
    sent = sum(sizes[0] - before.tables[name][0] for name, sizes in after.tables.items()) + after.records
    batches = sum(1 for _ in rehearsing.workspace.events(types=[BatchCommitted]))
    trips = max(there.trip - here.trip, 0.0)
    slower = max(1 / there.speed - 1 / here.speed, 0.0)
    parts = [p for entity in rehearsing.checked.entities for p in recorded_parts(rehearsing.workspace, entity.name)]
    transformed = sum(file.stat().st_size for file in rehearsing.paths.transformed.rglob("part-*.parquet"))
    return Forecast(
        read_seconds=read,
        load_seconds=seconds["load"],
        way_seconds=batches * TRIPS_A_BATCH * trips + sent * slower,
        verify_seconds=seconds["verify"] + after.records * slower,
        stage_bytes=sum(part_path(rehearsing.paths.stage / p.entity, p.part).stat().st_size for p in parts),
        transformed_bytes=transformed,
        target_bytes=sum(grown.values()),
        record_bytes=after.records - before.records,
        log_bytes=after.log - before.log,
    )


def _read_seconds(workspace: Workspace) -> float | None:
    """How long reading the source took, as the log has it; None where it isn't known by itself."""
    begun = last = None
    for entry in workspace.events(types=[PhaseStarted, StageCompleted]):
        if isinstance(entry.event, StageCompleted):
            last = entry.at
        elif isinstance(entry.event, PhaseStarted) and entry.event.phase == "stage":
            begun = entry.at
    return (last - begun).total_seconds() if begun is not None and last is not None and last > begun else None


def _event(found: Rehearsal, workspace: Workspace) -> Rehearsed:
    batches: dict[str, dict[int, tuple[int, int, int]]] = {each.entity: {} for each in found.entities}
    for entry in workspace.events(types=[BatchCommitted]):
        event = entry.event
        if isinstance(event, BatchCommitted) and event.step == 1:
            batches[event.entity][event.batch] = (event.read, event.excluded, event.quarantined)
    entities = {
        each.entity: {
            "read": each.read, "loaded": each.loaded, "merged": each.merged, "excluded": each.excluded,
            "quarantined": each.quarantined, "batches": [list(row) for _, row in sorted(batches[each.entity].items())],
        }
        for each in found.entities
    }  # fmt: skip
    return Rehearsed(plan_version=found.plan_version, entities=entities, report=found.to_dict())
