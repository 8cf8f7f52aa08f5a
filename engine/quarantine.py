"""The rows in quarantine: read back from the target, raw and with the reason; given up; and what the log tells of them.

The log knows the clusters; the rows themselves are in the target alone.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import pyarrow as pa

from connectors.records import Totals
from connectors.target import Target
from engine.faults import fault_point
from engine.plan import Plan
from engine.syntax import columns_of
from workspace.errors import UsageError
from workspace.events import BatchRetried, RowsDropped
from workspace.log import Workspace
from workspace.paths import JobPaths
from workspace.state import state_at


@dataclass(frozen=True)
class QuarantinedRow:
    """A source row that could not be loaded: its number in the stage, its key, what failed on which field, and all it
    held.

    `raw` is the row as the source sent it (binary as hexadecimal digits); `status` is open or dropped.
    """

    entity: str
    row: int
    key: tuple[str, ...]
    field: str
    code: str
    signature: str
    detail: str
    raw: dict[str, Any]
    status: str

    def to_dict(self) -> dict[str, Any]:
        """As JSON values."""
        return {**self.__dict__, "key": list(self.key)}


def quarantined_rows(
    target: Target, job: str, *, entity: str = "", signature: str = "", limit: int | None = None
) -> Iterator[QuarantinedRow]:
    """The job's rows in quarantine, by entity and in the order of the stage; of one entity or signature where
    given. Nothing when the target doesn't know the job. ConnectError."""
    if not target.know(job):
        return
    yield from _rows(target.quarantined_rows(entity, signature, limit))


def examples(target: Target, job: str) -> dict[tuple[str, str], QuarantinedRow]:
    """The first row of each cluster, an open one where there is one, by entity and signature. ConnectError."""
    if not target.know(job):
        return {}
    return {(row.entity, row.signature): row for row in _rows(target.quarantine_examples())}


def failing_value(row: QuarantinedRow, plan: Plan) -> tuple[str, str | None] | None:
    """The source column that the field which failed draws on first, and its value; None where no field did."""
    entity = plan.entities.get(row.entity)
    planned = entity.fields.get(row.field.split(", ")[0]) if entity else None
    if planned is None or planned.constant:
        return None
    by_name = {name.lower(): name for name in row.raw}
    drawn = columns_of(planned.expression, row.field)
    column = next((by_name[name.lower()] for name in drawn if name.lower() in by_name), None)
    return None if column is None else (column, row.raw[column])


def _rows(batches: Iterator[pa.RecordBatch]) -> Iterator[QuarantinedRow]:
    for batch in batches:
        for row in batch.to_pylist():
            key = tuple((row["key"] or "").split("\x1f"))
            texts = {name: row[name] or "" for name in ("entity", "field", "code", "signature", "detail", "status")}
            yield QuarantinedRow(row=int(row["row"]), key=key, raw=json.loads(row["raw"]), **texts)


def known_job(paths: JobPaths, workspace: Workspace, target: Target, plan: Plan, entity: str = "") -> None:
    """Leases the job, to work on its quarantine. UsageError where it isn't loaded to the end, was taken back, or
    doesn't have the entity; JobLockedError."""
    job = f"job {paths.job}"
    if entity and entity not in plan.entities:
        raise UsageError(
            f"the job has no entity {entity[:100]!r}", where=job, advice=f"it has: {', '.join(plan.entities)}"
        )
    progress = state_at(workspace).progress
    if progress.taken_back:
        raise UsageError("the job was taken back: nothing of it is in quarantine", where=job)
    target.prepare()
    ended = all(name in progress.entities and progress.entities[name].completed for name in plan.entities)
    if not ended or not target.know(paths.job):
        raise UsageError("the job has not loaded all of its rows yet", where=job, advice=f"migrate resume {paths.job}")
    source = target.source_of_job()
    target.lease(paths.job, source)
    for name, planned in plan.entities.items():
        target.know_entity(source, name, planned.to)


@dataclass(frozen=True)
class Droppable:
    """Open rows that a person may give up, by entity. The job is leased while the connection lives."""

    workspace: Workspace
    target: Target
    entities: tuple[str, ...]
    signature: str
    rows: int


def droppable(
    paths: JobPaths, workspace: Workspace, target: Target, plan: Plan, entity: str = "", signature: str = ""
) -> Droppable:
    """Finds the open rows, of one entity or signature where given. Errors as `known_job`'s."""
    known_job(paths, workspace, target, plan, entity)
    catch_up(workspace, target, plan)
    names = tuple(name for name in plan.entities if entity in ("", name) and target.knows_entity(name))
    rows = sum(len(target.held_rows(name, signature)) for name in names)
    return Droppable(workspace, target, names, signature, rows)


def drop(found: Droppable) -> int:
    """Gives the rows up: they stay in quarantine, and counted, as dropped. How many. Killed at any instant, none or
    all of them are dropped, and the log learns of it by the next command on the quarantine."""
    target = found.target
    target.begin()
    try:
        dropped = {name: target.drop_rows(name, found.signature) for name in found.entities}
        target.commit()
    except BaseException:
        target.rollback()
        raise
    fault_point("after commit")
    events = [
        RowsDropped(name, batch, rows, target.clusters_held(name, batch).get(batch, []))
        for name, batches in dropped.items()
        for batch, rows in batches.items()
    ]
    if events:
        found.workspace.record(*events)
    return sum(event.rows for event in events)


def record_retry(
    workspace: Workspace, target: Target, entity: str, batch: int, seconds: float, *, recovered: bool
) -> None:
    """Tells the log what the target holds of a batch that was retried."""
    totals = target.retry_totals(entity, batch).get(batch, Totals())
    clusters = target.clusters_held(entity, batch).get(batch, [])
    workspace.record(_event(entity, batch, totals, clusters, seconds, recovered))


def catch_up(workspace: Workspace, target: Target, plan: Plan) -> None:
    """Records what the target committed in quarantine and the log doesn't tell of: the crash came in between."""
    told: dict[tuple[str, int], tuple[Totals, list[dict[str, Any]]]] = {}
    for entry in workspace.events(types=[BatchRetried, RowsDropped]):
        event = entry.event
        assert isinstance(event, BatchRetried | RowsDropped)
        key = (event.entity, event.batch)
        known = told.get(key, (Totals(), []))[0]
        if isinstance(event, BatchRetried):
            known = Totals(
                event.step, event.plan_version, event.inserted, event.updated, event.unchanged, event.merged, event.excluded,
                event.references,
            )  # fmt: skip
        told[key] = (known, event.clusters)
    for entity in filter(target.knows_entity, plan.entities):
        totals, held = target.retry_totals(entity), target.clusters_held(entity)
        dropped = {batch for batch, clusters in held.items() if any(each["dropped"] for each in clusters)}
        for batch in sorted({*totals, *dropped}):
            now = (totals.get(batch, Totals()), held.get(batch, []))
            if told.get((entity, batch)) != now:
                workspace.record(_event(entity, batch, *now, 0.0, True))


def _event(
    entity: str, batch: int, totals: Totals, clusters: list[dict[str, Any]], seconds: float, recovered: bool
) -> BatchRetried:
    return BatchRetried(entity, batch, **asdict(totals), clusters=clusters, seconds=seconds, recovered=recovered)
