"""What a struck job left behind, as digests to compare with those of a job that nothing disturbed."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import psycopg
import pyarrow.parquet as pq
from psycopg import sql

from bench.compare import dump_target
from bench.fault_jobs import BenchJob
from connectors.dsn import open_source, open_target
from engine.check import check_plan
from engine.plan import Plan
from workspace.events import (
    BatchCommitted,
    BatchSynced,
    BatchUndone,
    DuplicatesFound,
    EntityCompleted,
    JobCleanedUp,
    PlanChanged,
    StageCompleted,
    SyncCompleted,
)
from workspace.log import Workspace

_TOLD = (
    BatchCommitted, BatchSynced, BatchUndone, DuplicatesFound, EntityCompleted, JobCleanedUp, PlanChanged, StageCompleted,
    SyncCompleted,
)  # fmt: skip
_OURS = ("superseded", "synced", "kept", "marked", "retried", "held_before")
"""Tables of ours whose rows are the same however often a job was struck; what else we hold, `dump_target` reads."""
_SAME = "to_jsonb(t) - 'n' - 'new_id' - 'held' - 'target_hash' - 'reference_hash' - 'edited_hash'"


def held(job: BenchJob, plan: Plan, folder: Path) -> dict[str, str]:
    """Digests of all that the target holds by now, and how often the log tells of each thing done."""
    with psycopg.connect(job.target) as connection:
        gone = connection.execute("SELECT to_regnamespace('packhorse') IS NULL").fetchone() == (True,)
        found = _cleaned(connection, job) if gone else _ours(connection)
    if not gone:
        source, target = open_source(job.source), open_target(job.target)
        try:
            found |= dump_target(job.target, check_plan(job.latest(plan), source, target.catalogue()), folder)
        finally:
            source.close()
            target.close()
    told: dict[str, int] = {}
    with Workspace.open(job.paths) as workspace:
        for entry in workspace.events(types=_TOLD):
            event = entry.event
            batch, step = getattr(event, "batch", ""), getattr(event, "step", "")
            name = f"the log's {event.type} {getattr(event, 'entity', '')} {batch} {step}"
            # an undo's second pass may be done twice, the second time finding nothing to do
            told[name] = 1 if isinstance(event, BatchUndone) else told.get(name, 0) + 1
    return found | {name: str(count) for name, count in told.items()}


def _ours(connection: psycopg.Connection[Any]) -> dict[str, str]:
    """Rows without the columns that hold an id of a sequence, or what follows from one."""
    found = {}
    for table in _OURS:
        query = sql.SQL("SELECT ({})::text FROM packhorse.{} t ORDER BY 1").format(
            sql.SQL(_SAME), sql.Identifier(table)
        )
        found[f"our {table}"] = _digest(connection, query)
    return found


def _cleaned(connection: psycopg.Connection[Any], job: BenchJob) -> dict[str, str]:
    """Where our schema is gone: the customer's rows, which ids of a sequence don't differ in, since all are copies of one
    load; and what was exported before."""
    tables = connection.execute(
        "SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace ORDER BY 1"
    ).fetchall()
    found = {
        str(name): _digest(connection, sql.SQL("SELECT t::text FROM {} t ORDER BY 1").format(sql.Identifier(str(name))))
        for (name,) in tables
    }
    rows = pq.read_table(job.paths.folder / "crosswalk.parquet").to_pylist()
    exported = "\n".join(sorted(map(str, rows)))
    return {**found, "the exported crosswalk": hashlib.sha256(exported.encode()).hexdigest()}


def _digest(connection: psycopg.Connection[Any], query: sql.Composed) -> str:
    return hashlib.sha256("\n".join(str(value) for (value,) in connection.execute(query)).encode()).hexdigest()
