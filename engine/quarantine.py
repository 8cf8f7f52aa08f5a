"""The rows in quarantine: read back from the target, raw and with the reason; given up; and what the log tells of them.

The log knows the clusters; the rows themselves are in the target alone.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from psycopg import sql

from connectors.postgres import PostgresTarget
from connectors.postgres_retry import Totals, clusters_held, drop_rows, retry_totals
from connectors.postgres_schema import SCHEMA
from engine.context import Context
from workspace.errors import UsageError
from workspace.events import BatchRetried, RowsDropped
from workspace.state import state_at

_COLUMNS = ("entity", "row", "key", "field", "code", "signature", "detail", "raw", "status")


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
    target: PostgresTarget, job: str, *, entity: str = "", signature: str = "", limit: int | None = None
) -> Iterator[QuarantinedRow]:
    """The job's rows in quarantine, by entity and in the order of the stage; of one entity or signature where
    given. Nothing when the target doesn't know the job. ConnectError."""
    if not target.know(job):
        return
    statement = sql.SQL(
        "SELECT e.name, q.row, q.key, q.field, q.code, q.signature, q.detail, q.raw, q.status"
        " FROM {schema}.quarantine q JOIN {schema}.entity e ON e.id = q.entity_id"
        " WHERE q.job_id = {job} {narrowed} ORDER BY e.name, q.row {limited}"
    ).format(
        schema=sql.Identifier(SCHEMA),
        job=sql.Literal(target.job_id),
        narrowed=sql.SQL(" ").join(
            sql.SQL("AND {} = {}").format(sql.SQL(column), sql.Literal(value))
            for column, value in (("e.name", entity), ("q.signature", signature))
            if value
        ),
        limited=sql.SQL("LIMIT {}").format(sql.Literal(limit)) if limit is not None else sql.SQL(""),
    )
    for batch in target.stream(statement, _COLUMNS):
        for row in batch.to_pylist():
            key = tuple((row["key"] or "").split("\x1f"))
            texts = {name: row[name] or "" for name in ("entity", "field", "code", "signature", "detail", "status")}
            yield QuarantinedRow(row=int(row["row"]), key=key, raw=json.loads(row["raw"]), **texts)


def known_job(ctx: Context, entity: str = "") -> None:
    """Leases the job, to work on its quarantine. UsageError where it isn't loaded to the end, was taken back, or
    doesn't have the entity; JobLockedError."""
    job = f"job {ctx.paths.job}"
    names = [e.name for e in ctx.checked.entities]
    if entity and entity not in names:
        raise UsageError(f"the job has no entity {entity[:100]!r}", where=job, advice=f"it has: {', '.join(names)}")
    progress = state_at(ctx.workspace).progress
    if progress.taken_back:
        raise UsageError("the job was taken back: nothing of it is in quarantine", where=job)
    ctx.target.prepare()
    ended = all(name in progress.entities and progress.entities[name].completed for name in names)
    if not ctx.target.know(ctx.paths.job) or not ended:
        raise UsageError(
            "the job has not loaded all of its rows yet", where=job, advice=f"migrate resume {ctx.paths.job}"
        )
    ctx.target.lease(ctx.paths.job, ctx.source_identity)
    for each in ctx.checked.entities:
        ctx.target.register_entity(ctx.source_identity, each.name, each.plan.to)


def drop(ctx: Context, entity: str = "", signature: str = "") -> int:
    """Gives up open rows, of one entity or signature where given: they stay in quarantine, and counted, as dropped.
    How many. UsageError as `known_job`'s. Killed at any instant, none or all of them are dropped."""
    known_job(ctx, entity)
    catch_up(ctx)
    target = ctx.target
    names = [each.name for each in ctx.checked.entities if entity in ("", each.name)]
    target.begin()
    try:
        dropped = {name: drop_rows(target, name, signature) for name in names}
        target.commit()
    except BaseException:
        target.rollback()
        raise
    events = [
        RowsDropped(name, batch, rows, clusters_held(target, name, batch).get(batch, []))
        for name, batches in dropped.items()
        for batch, rows in batches.items()
    ]
    if events:
        ctx.workspace.record(*events)
    return sum(event.rows for event in events)


def record_retry(ctx: Context, entity: str, batch: int, *, seconds: float = 0.0, recovered: bool = False) -> None:
    """Tells the log what the target holds of a batch that was retried."""
    totals = retry_totals(ctx.target, entity, batch).get(batch, Totals())
    clusters = clusters_held(ctx.target, entity, batch).get(batch, [])
    ctx.workspace.record(_event(entity, batch, totals, clusters, seconds, recovered))


def catch_up(ctx: Context) -> None:
    """Records what the target committed in quarantine and the log doesn't tell of: the crash came in between."""
    told: dict[tuple[str, int], tuple[Totals, list[dict[str, Any]]]] = {}
    for entry in ctx.workspace.events(types=[BatchRetried, RowsDropped]):
        event = entry.event
        assert isinstance(event, BatchRetried | RowsDropped)
        key = (event.entity, event.batch)
        known = told.get(key, (Totals(), []))[0]
        if isinstance(event, BatchRetried):
            known = Totals(
                event.step, event.plan_version, event.inserted, event.updated, event.unchanged, event.excluded,
                event.references,
            )  # fmt: skip
        told[key] = (known, event.clusters)
    for entity in (e.name for e in ctx.checked.entities):
        totals, held = retry_totals(ctx.target, entity), clusters_held(ctx.target, entity)
        dropped = {batch for batch, clusters in held.items() if any(each["dropped"] for each in clusters)}
        for batch in sorted({*totals, *dropped}):
            now = (totals.get(batch, Totals()), held.get(batch, []))
            if told.get((entity, batch)) != now:
                ctx.workspace.record(_event(entity, batch, *now, 0.0, True))


def _event(
    entity: str, batch: int, totals: Totals, clusters: list[dict[str, Any]], seconds: float, recovered: bool
) -> BatchRetried:
    return BatchRetried(entity, batch, **asdict(totals), clusters=clusters, seconds=seconds, recovered=recovered)
