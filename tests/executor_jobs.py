"""Jobs for tests of executors: one that gives the same target however it runs, a Dask cluster of real processes, and
a hold on the target that stops workers in the middle of a batch. Leaves no process behind.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import distributed
import psycopg

from connectors.dsn import Dsn
from connectors.postgres_connection import connect
from sample_data.servers import Database
from tests.engine_jobs import EngineJob, copied, records, sqlite_source

TARGET = """
CREATE TABLE firms(id uuid primary key, old text UNIQUE, name text NOT NULL, parent_id uuid REFERENCES firms);
CREATE TABLE people(id uuid primary key, old text, email text, mobile text, firm_id uuid REFERENCES firms,
                    CHECK (mobile NOT LIKE '%7777%'));
CREATE UNIQUE INDEX one_mail ON people (lower(email));
"""
PLAN = """
entities:
  firms: {from: firms, to: firms, key: id, id: uuid5, fields: {old: {from: id}, name: {sql: "html_text(name)"}, parent_id: {from: parent, ref: firms, missing: 'null'}}}
  people:
    {from: people, to: people, key: id, id: uuid5,
     fields: {old: {from: id}, email: {sql: "email(email)"}, mobile: {sql: "phone(mobile, 'DE')"}, firm_id: {from: firm, ref: firms, missing: quarantine}}}
"""
LEGACY = """
CREATE TABLE firms(id integer primary key, name text, parent integer);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 90)
INSERT INTO firms SELECT i, 'Firm &amp; ' || i, nullif(i % 7, 0) FROM n;
CREATE TABLE people(id integer primary key, email text, mobile text, firm integer);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 400)
INSERT INTO people SELECT i, 'p' || (i % 390) || '@Example.com', '030 ' || (1000000 + i * 7777), i % 95 + 1 FROM n;
"""
BATCHES = 3 + 10  # of 40 rows; the firms' second pass has three more


def a_job(database: Database, folder: Path, executor: str, stage: str = "") -> EngineJob:
    """A job over the source above, into a fresh database; the target's password stands in the DSN."""
    database.run(TARGET)
    source = sqlite_source(folder / "legacy.db", LEGACY)
    return EngineJob(str(folder), "job", PLAN, source, database.dsn, batch_rows=40, executor=executor, stage=stage)


def outcome(job: EngineJob) -> dict[str, str]:
    """All that a load leaves in the target but the times of it: the customer's tables and our records."""
    with reached(job) as connection:
        found = records(connection)
        for table, columns in (
            (
                "ledger",
                "entity_id, batch, step, key_low, key_high, read, inserted, updated, unchanged, excluded, quarantined, checksum",
            ),
            ("crosswalk", "entity_id, batch, old_id, new_id, source_hash, target_hash, reference_hash"),
            ("quarantine", "entity_id, batch, row, key, field, code, signature, detail, raw"),
        ):
            found[table] = copied(connection, psycopg.sql.SQL(f"SELECT {columns} FROM packhorse.{table}"))
    return found


def reached(job: EngineJob) -> psycopg.Connection[Any]:
    """A connection of the test's own to the job's target; what it does is done at once."""
    return connect(Dsn.parse(job.target), "test")


def committed(job: EngineJob) -> int:
    """How many rows the ledger has."""
    with reached(job) as watcher:
        return _count(watcher, "SELECT count(*) FROM packhorse.ledger")


@contextmanager
def hold(job: EngineJob, after: int, workers: int) -> Iterator[None]:
    """Once `after` batches are in the ledger, lets no row into `people` until the block ends; begins when so many
    workers stand in the middle of a batch: its ledger row written, its rows not in."""
    with reached(job) as watcher, reached(job) as holder, holder.transaction():
        until(lambda: _there(watcher) and _count(watcher, "SELECT count(*) FROM packhorse.ledger") >= after)
        holder.execute("LOCK TABLE people IN SHARE MODE")
        waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE 'COPY%' AND datname = current_database()"
        until(lambda: _count(watcher, waiting) >= workers)
        yield


def until(true: Callable[[], Any], seconds: float = 60) -> None:
    """Waits for it; fails where it doesn't come."""
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, "it didn't come to that"
        time.sleep(0.02)


def _there(watcher: psycopg.Connection[Any]) -> bool:
    return bool(_count(watcher, "SELECT count(*) FROM pg_class WHERE oid = to_regclass('packhorse.ledger')"))


def _count(watcher: psycopg.Connection[Any], statement: str) -> int:
    row = watcher.execute(statement).fetchone()
    assert row is not None
    return int(row[0])


class Cluster:
    """A Dask scheduler and workers of one thread each, as a person starts them. `variables` are the workers' own."""

    def __init__(self, folder: Path, workers: int, **variables: str) -> None:
        self._folder, self._variables = folder, variables
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.address = f"127.0.0.1:{free.getsockname()[1]}"
        self.executor = f"dask://{self.address}"
        host, port = self.address.split(":")
        self.scheduler = self._start(
            "scheduler", "--host", host, "--port", port, "--no-show", "--dashboard-address", f"{host}:0"
        )
        self.workers: list[subprocess.Popen[bytes]] = []
        for _ in range(workers):
            self._add_worker()
        self._wait_for_workers()

    def add_worker(self) -> None:
        """Starts one worker more, in place of one that was killed; it takes part when this returns."""
        self._add_worker()
        self._wait_for_workers()

    def _wait_for_workers(self) -> None:
        if self.workers:
            with self.client() as client:
                client.wait_for_workers(len(self.workers), timeout=60)

    def _add_worker(self) -> None:
        local = self._folder / "scratch"
        self.workers.append(
            self._start(
                "worker", f"tcp://{self.address}", "--nthreads", "1", "--no-nanny", "--no-dashboard",
                "--memory-limit", "0", "--local-directory", str(local),
            )
        )  # fmt: skip

    def client(self) -> distributed.Client:
        """A client of the test's own."""
        return distributed.Client(f"tcp://{self.address}", set_as_default=False)

    def log(self) -> str:
        """What scheduler and workers have written."""
        return "".join(path.read_text(errors="replace") for path in sorted(self._folder.glob("*.log")))

    def _start(self, *arguments: str) -> subprocess.Popen[bytes]:
        with (self._folder / f"{len(list(self._folder.glob('*.log')))}-{arguments[0]}.log").open("wb") as log:
            return subprocess.Popen(
                [sys.executable, "-m", "dask", *arguments],
                stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, cwd=self._folder,
                env={**os.environ, "DASK_LOGGING__DISTRIBUTED": "debug", **self._variables},
            )  # fmt: skip

    def end(self) -> None:
        """Ends what still runs."""
        for process in (*self.workers, self.scheduler):
            process.kill()
            process.wait()


def kill(process: subprocess.Popen[bytes]) -> None:
    """Ends it as a power cut does."""
    process.send_signal(signal.SIGKILL)
    process.wait()


def inline(job: EngineJob) -> EngineJob:
    """The same job, loaded by one process."""
    return replace(job, executor="inline", stage="")
