"""Engine jobs for tests: a source made from a few statements, a context to run, what a target holds, a child to kill.

A child is forked from a process that has imported the engine once, since importing takes longer than a load.
Never keeps a connection open after `running` ends.
"""

from __future__ import annotations

import importlib
import multiprocessing
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql

import engine.faults
import engine.workers
from connectors.dsn import open_source, open_target
from connectors.postgres import PostgresTarget
from connectors.protocols import LedgerRow, Source
from engine.check import check_loaded, check_plan
from engine.context import Context
from engine.edited_plan import check_edited, keep_edited
from engine.executors.choice import INLINE, Choice
from engine.load import LoadOutcome, load
from engine.plan import parse_plan
from engine.prepare import try_queries
from engine.quarantine import drop, droppable
from engine.redrive import Redrive, check_grown, grown_plan
from engine.retry import EditedRows, Retry, RetryOutcome
from engine.retry_plan import check_next
from engine.sync import Sync
from engine.sync_outcome import SyncOptions, SyncOutcome
from engine.sync_plan import check_policies
from engine.undo import Undo, UndoOutcome
from engine.verify import Verification, verify
from workspace.log import Workspace
from workspace.paths import JobPaths
from workspace.state import state_at


@dataclass(frozen=True)
class EngineJob:
    """What a run of the engine is given. `source_name` stands for the source in the crosswalk; `executor` and `stage`
    are as `--executor` and `--stage`."""

    base: str
    name: str
    plan: str
    source: str
    target: str
    batch_rows: int = 50_000
    source_name: str = "legacy"
    executor: str = INLINE
    stage: str = ""

    def named(self, name: str) -> EngineJob:
        """A new job over the same source and target."""
        return replace(self, name=name)

    @contextmanager
    def running(self, *, source: Source | None = None, try_first: bool = True) -> Iterator[Context]:
        """The job's context, with both systems connected and the workspace held for writing."""
        paths = JobPaths(Path(self.base), self.name).create()
        opened = source or open_source(self.source)
        try:
            target = open_target(self.target)
            try:
                checked = check_plan(parse_plan(self.plan), opened, target.catalogue())
                if try_first:
                    try_queries(paths, checked)
                with Workspace.open(paths, write=True) as workspace:
                    yield Context(
                        paths, workspace, opened, target, checked, self.source_name, batch_rows=self.batch_rows,
                        choice=self.choice,
                    )  # fmt: skip
            finally:
                target.close()
        finally:
            if source is None:
                opened.close()

    @property
    def choice(self) -> Choice:
        """Who loads."""
        return Choice(self.executor, self.stage, self.target)

    def load(self) -> LoadOutcome:
        """Loads in this process."""
        with self.running() as ctx:
            return load(ctx)

    def load_in_child(self, fault: str = "", *, careless: bool = False, processes: int = 0) -> int:
        """Loads and verifies in a process of its own, which kills itself at `fault` (`before commit:2`); its exit
        code, -9 for a kill. `careless` commits the ledger row by itself, before the batch that it tells of. With `processes` every second part is transformed in one of them."""
        child = self.start_in_child(fault, careless=careless, processes=processes)
        child.join(120)
        assert child.exitcode is not None, "the child hangs"
        return child.exitcode

    def start_in_child(self, fault: str = "", *, careless: bool = False, processes: int = 0) -> BaseProcess:
        """The same, begun; the caller waits for it, or kills it."""
        child = _CHILDREN.Process(target=_child, args=(dict(os.environ), self, fault, careless, processes))
        child.start()
        return child

    def undo(self, batch: tuple[str, int] | None = None) -> UndoOutcome:
        """Takes the job, or a batch of it, back in this process; what is counted is what was foreseen."""
        paths = JobPaths(Path(self.base), self.name)
        target = open_target(self.target)
        try:
            checked = check_loaded(parse_plan(self.plan), target.catalogue())
            with Workspace.open(paths, write=True) as workspace:
                undo = Undo(paths, workspace, target, checked, batch=batch)
                undo.foresee()
                return undo.run()
        finally:
            target.close()

    def undo_in_child(self, fault: str = "") -> int:
        """The same in a process of its own, which kills itself at `fault`; its exit code, -9 for a kill."""
        child = _CHILDREN.Process(target=_child_undoes, args=(dict(os.environ), self, fault))
        child.start()
        child.join(120)
        assert child.exitcode is not None, "the child hangs"
        return child.exitcode

    def latest(self) -> EngineJob:
        """The job under the last plan of its log, where that has one."""
        with Workspace.open(JobPaths(Path(self.base), self.name)) as workspace:
            plan = state_at(workspace).belief.plan
        return replace(self, plan=plan) if plan else self

    def retry(self, plan: str = "", edited: EditedRows | None = None, **narrowed: Any) -> RetryOutcome:
        """Drives rows of the quarantine once more, in this process, by an edited plan where given."""
        with self.latest().running() as ctx:
            checked = check_next(ctx, parse_plan(plan)) if plan else None
            return Retry(ctx, checked=checked, edited=edited, **narrowed).run()

    def drop(self, entity: str = "", signature: str = "") -> int:
        """Gives up open rows in quarantine; how many."""
        with self.latest().running() as ctx:
            found = droppable(ctx.paths, ctx.workspace, ctx.target, ctx.checked.plan, entity, signature)
            dropped = drop(found)
        assert dropped == found.rows
        return dropped

    def sync(self, plan: str = "", **options: Any) -> SyncOutcome:
        """Brings in what changed in the source, in this process; with other policies where a plan is given."""
        with self.latest().running() as ctx:
            checked = check_policies(ctx, parse_plan(plan)) if plan else None
            return Sync(ctx, SyncOptions(**options), checked).run()

    def sync_in_child(self, fault: str = "", **options: Any) -> int:
        """The same in a process of its own, which kills itself at `fault`; its exit code, -9 for a kill."""
        child = _CHILDREN.Process(target=_child_syncs, args=(dict(os.environ), self, fault, options))
        child.start()
        child.join(120)
        assert child.exitcode is not None, "the child hangs"
        return child.exitcode

    def edit(self, plan: str) -> None:
        """Keeps a plan that a person edited as the job's next version; `redrive` drives what it says otherwise again."""
        with self.latest().running() as ctx:
            edited = check_edited(ctx.paths, ctx.workspace, parse_plan(plan), ctx.source, ctx.target.catalogue())
            keep_edited(ctx.paths, ctx.workspace, edited, plan)

    def redrive(self, wished: str) -> SyncOutcome | None:
        """Brings the rows under a plan that has more fields, in this process; None where it hasn't. Goes on with one
        that was begun."""
        with self.latest().running() as ctx:
            begun = Redrive.going_on(ctx)
            if begun is not None:
                return begun.run()
            plan, names = grown_plan(ctx.checked.plan, parse_plan(wished))
            if not names:
                return None
            return Redrive(replace(ctx, checked=check_grown(ctx, plan)), ctx.checked, names).run()

    def redrive_in_child(self, wished: str, fault: str = "") -> int:
        """The same in a process of its own, which kills itself at `fault`; its exit code, -9 for a kill."""
        child = _CHILDREN.Process(target=_child_redrives, args=(dict(os.environ), self, wished, fault))
        child.start()
        child.join(120)
        assert child.exitcode is not None, "the child hangs"
        return child.exitcode

    def verified(self) -> Verification:
        """What verification finds, under the last plan of the log."""
        with self.latest().running() as ctx:
            return verify(ctx)

    def retry_in_child(self, fault: str = "", plan: str = "", edited: EditedRows | None = None) -> int:
        """The same in a process of its own, which kills itself at `fault`; its exit code, -9 for a kill."""
        child = _CHILDREN.Process(target=_child_retries, args=(dict(os.environ), self, fault, plan, edited))
        child.start()
        child.join(120)
        assert child.exitcode is not None, "the child hangs"
        return child.exitcode


def reconciled(job: EngineJob) -> Verification:
    """What verification finds, which is no problem; asserts that the log tells the same numbers."""
    found = job.verified()
    assert found.ok, [e.problems for e in found.entities]
    with Workspace.open(JobPaths(Path(job.base), job.name)) as workspace:
        progress = state_at(workspace).progress
    for entity in found.entities:
        counts = progress.entities[entity.entity].counts
        assert (counts.read, counts.loaded, counts.excluded, counts.quarantined) == (
            entity.read, entity.loaded, entity.excluded, entity.quarantined,
        )  # fmt: skip
        failures = progress.entities[entity.entity].failures.values()
        assert sum(f.count for f in failures) == entity.quarantined
        assert sum(f.dropped for f in failures) == entity.dropped
    return found


def load_and_verify(job: EngineJob, processes: int = 0) -> None:
    """What a person's command does: loads, and verifies. With `processes` every second part is transformed in one."""
    if processes:
        engine.workers._WORTH_A_PROCESS = 1
    with job.running() as ctx:
        ctx.processes = processes
        load(ctx)
        result = verify(ctx)
    assert result.ok, [entity.problems for entity in result.entities]


@contextmanager
def lost_at(point: str, cloud: psycopg.Connection[Any], *, every: int = 1) -> Iterator[None]:
    """The server ends the job's connections when it passes the place, each time or every other (what lies within a
    transaction is passed again at once); that it passed there is asserted."""
    passed = 0

    def lose(name: str) -> None:
        nonlocal passed
        passed += name == point
        if name == point and passed % every == 1 % every:
            cloud.execute(
                "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "
                "WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'"
            )

    engine.faults.hook = lose
    try:
        yield
    finally:
        engine.faults.hook = None
    assert passed, f"it didn't pass {point}"


_CHILDREN = multiprocessing.get_context("forkserver")
_CHILDREN.set_forkserver_preload(["tests.engine_jobs"])


def _begin(environment: dict[str, str], fault: str) -> None:
    """What a child has of its test: the server that it's forked from has the environment of the first test that forked."""
    os.environ.clear()
    os.environ.update(environment, PACKHORSE_FAULT=fault)
    importlib.reload(engine.faults)


def _child(environment: dict[str, str], job: EngineJob, fault: str, careless: bool, processes: int) -> None:
    _begin(environment, fault)
    if careless:
        take = PostgresTarget.take

        def take_and_commit(target: PostgresTarget, row: LedgerRow) -> bool:
            taken = take(target, row)
            target.commit()
            target.begin()
            return taken

        PostgresTarget.take = take_and_commit  # type: ignore[method-assign, assignment]
    if processes:
        engine.workers._WORTH_A_PROCESS = 1
    with job.running() as ctx:
        load(replace(ctx, processes=processes))
        verify(ctx)


def _child_undoes(environment: dict[str, str], job: EngineJob, fault: str) -> None:
    _begin(environment, fault)
    job.undo()


def _child_syncs(environment: dict[str, str], job: EngineJob, fault: str, options: dict[str, Any]) -> None:
    _begin(environment, fault)
    job.sync(**options)


def _child_redrives(environment: dict[str, str], job: EngineJob, wished: str, fault: str) -> None:
    _begin(environment, fault)
    job.redrive(wished)


def _child_retries(
    environment: dict[str, str], job: EngineJob, fault: str, plan: str, edited: EditedRows | None
) -> None:
    _begin(environment, fault)
    job.retry(plan, edited)


def sqlite_source(path: Path, script: str) -> str:
    """A SQLite file made by the script; its DSN."""
    with sqlite3.connect(path) as connection:
        connection.executescript(script)
    connection.close()
    return f"sqlite:///{path}"


def csv_source(folder: Path, script: str) -> str:
    """A folder with a CSV file for each table that the script makes: text quoted, NULL unquoted nothing."""
    folder.mkdir()
    with sqlite3.connect(":memory:") as connection:
        connection.executescript(script)
        tables = [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        for table in tables:
            rows = connection.execute(f'SELECT * FROM "{table}"')
            lines = [",".join(_csv_value(c[0]) for c in rows.description)]
            lines += [",".join(_csv_value(value) for value in row) for row in rows]
            (folder / f"{table}.csv").write_text("\n".join(lines) + "\n", encoding="utf-8", newline="")
    connection.close()
    return str(folder)


def _csv_value(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return '"' + value.replace('"', '""') + '"'
    return str(value)


_CATALOGUES = {
    "pg_namespace": "nspname, nspowner, nspacl",
    "pg_class": "oid, relname, relnamespace, reltype, relowner, relfilenode, relkind, relchecks, relhastriggers, relacl",
    "pg_attribute": "attrelid, attname, atttypid, attnum, attnotnull, atthasdef, attisdropped",
    "pg_attrdef": "oid, adrelid, adnum",
    "pg_constraint": "oid, conname, conrelid, contype",
    "pg_index": "indexrelid, indrelid, indisunique, indisvalid",
    "pg_proc": "oid, proname, pronamespace",
    "pg_type": "oid, typname, typnamespace",
    "pg_trigger": "oid, tgrelid, tgname, tgenabled",
    "pg_description": "objoid, objsubid, description",
    "pg_sequence": "seqrelid, seqstart, seqincrement",
    "pg_extension": "extname",
    "pg_largeobject_metadata": "oid",
}


def whole_target(connection: psycopg.Connection[Any]) -> dict[str, str]:
    """Everything a database holds, by name: each catalogue, each table's rows, each sequence's state."""
    each = sql.SQL(" UNION ALL ").join(
        sql.SQL("SELECT {}, md5(string_agg(({})::text, E'\\n' ORDER BY ({})::text)) FROM pg_catalog.{}").format(
            sql.Literal(name), sql.SQL(columns), sql.SQL(columns), sql.Identifier(name)
        )
        for name, columns in _CATALOGUES.items()
    )
    held = {name: str(digest) for name, digest in connection.execute(each)}
    found = connection.execute(
        "SELECT n.nspname, c.relname, c.relkind::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
        "WHERE c.relkind IN ('r', 'S', 'm') AND n.nspname NOT IN ('pg_catalog', 'information_schema', 'pg_toast')"
    ).fetchall()
    for schema, name, kind in found:
        relation = sql.Identifier(schema, name)
        shown = sql.SQL("last_value, is_called") if kind == "S" else sql.SQL("*")
        held[f"{schema}.{name}"] = copied(connection, sql.SQL("SELECT {} FROM {}").format(shown, relation))
    return held


def copied(connection: psycopg.Connection[Any], statement: sql.Composed | sql.SQL) -> str:
    """The rows of a SELECT as COPY writes them, in the order of their text."""
    with connection.cursor() as cursor, cursor.copy(sql.SQL("COPY ({}) TO STDOUT").format(statement)) as copy:
        return "".join(sorted(b"".join(bytes(block) for block in copy).decode().splitlines(keepends=True)))


def records(connection: psycopg.Connection[Any]) -> dict[str, str]:
    """The customer's tables alone, as COPY dumps by name."""
    return {
        name: rows
        for name, rows in whole_target(connection).items()
        if "." in name and not name.startswith("packhorse.")
    }
