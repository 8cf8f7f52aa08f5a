"""Worker processes on this machine: the same target as one process makes, through any death."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest
from pyftpdlib.authorizers import DummyAuthorizer
from pyftpdlib.handlers import FTPHandler
from pyftpdlib.servers import FTPServer

from engine import collisions
from engine.collisions import all_compared
from engine.context import Progress
from engine.executors import dask_cluster
from engine.executors.choice import Choice
from engine.load import load
from engine.verify import verify
from sample_data.servers import Database, PostgresServer
from tests.engine_jobs import EngineJob
from tests.executor_jobs import BATCHES, a_job, hold, inline, outcome, until
from workspace.errors import ConnectError, InterruptedJobError, JobFailedError, UsageError
from workspace.events import BatchCommitted, RetryMade, WorkSpread
from workspace.paths import JobPaths


@pytest.fixture(scope="module")
def undisturbed(postgres: PostgresServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """What one process makes of it."""
    database = postgres.new_database()
    job = a_job(database, tmp_path_factory.mktemp("undisturbed"), "inline")
    job.load()
    yield outcome(job)
    postgres.drop(database)


def finished(job: EngineJob) -> dict[str, str]:
    """What is in the target once the job has gone on to its end."""
    with job.running() as ctx:
        load(ctx)
        assert verify(ctx).ok
    return outcome(job)


def processes() -> set[int]:
    """The ids of all worker processes, whoever started them."""
    found = psutil.process_iter(["pid", "cmdline"])
    return {p.info["pid"] for p in found if "engine.executors.processes" in (p.info["cmdline"] or [])}


def working() -> list[int]:
    """The ids of those that are this process's own."""
    return sorted(processes() & {p.pid for p in psutil.Process().children()})


def test_the_same_rows_as_one_process_makes(
    undisturbed: dict[str, str], postgres_database: Database, tmp_path: Path
) -> None:
    job = a_job(postgres_database, tmp_path, "local:2")
    assert finished(job) == undisturbed
    assert "unique one_mail" in undisturbed["quarantine"]
    assert "people: check" in undisturbed["quarantine"]
    assert not working()
    with job.running() as ctx:
        (spent,) = [e.event for e in ctx.workspace.events(types=[WorkSpread])]
        batches = [e.event for e in ctx.workspace.events(types=[BatchCommitted])]
    assert isinstance(spent, WorkSpread)
    assert (spent.executor, spent.width) == ("local:2", 2)
    assert min(spent.seconds[kind] for kind in ("transform", "sort", "target", "settle")) > 0
    assert len(batches) == BATCHES + 3


def test_parts_that_are_settled_together_come_to_the_same(
    undisturbed: dict[str, str], postgres_database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As those of a long table are: here, as many rows as stood before."""
    monkeypatch.setattr(collisions, "GRAIN", 1)
    together: list[int] = []
    settle = collisions.Settler.settle_all

    def settle_all(settler: collisions.Settler, parts: Any) -> Any:
        together.append(len(parts))
        return settle(settler, parts)

    monkeypatch.setattr(collisions.Settler, "settle_all", settle_all)
    assert finished(a_job(postgres_database, tmp_path, "local:1")) == undisturbed
    assert together[3:] == [1, 1, 2, 4, 2]


def test_a_worker_killed_in_mid_range_is_replaced_and_nothing_comes_twice(
    undisturbed: dict[str, str], postgres_database: Database, tmp_path: Path
) -> None:
    job = a_job(postgres_database, tmp_path, "local:2")
    loading = threading.Thread(target=job.load, daemon=True)
    loading.start()
    with hold(job, after=5, workers=2):
        killed = working()[0]
        os.kill(killed, signal.SIGKILL)
        until(lambda: killed not in working())
    loading.join(60)
    assert finished(job) == undisturbed


def test_workers_end_with_a_job_that_is_killed_and_another_executor_goes_on(
    undisturbed: dict[str, str], postgres_database: Database, tmp_path: Path
) -> None:
    job = a_job(postgres_database, tmp_path, "local:2")
    before = processes()
    assert job.load_in_child("after checkpoint:6") == -signal.SIGKILL
    until(lambda: not processes() - before)
    assert finished(inline(job)) == undisturbed


def test_a_task_that_no_worker_outlives_stops_the_job(postgres_database: Database, tmp_path: Path) -> None:
    job = a_job(postgres_database, tmp_path, "local:1")
    with job.running() as ctx:
        stopped = threading.Event()

        def kill_all() -> None:
            while not stopped.is_set():
                for pid in working():
                    with suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)

        killer = threading.Thread(target=kill_all)
        killer.start()
        try:
            with pytest.raises(JobFailedError, match="worker processes ended early"):
                load(ctx)
        finally:
            stopped.set()
            killer.join()


def test_what_is_asked_to_stop_finishes_the_batches_at_hand(
    undisturbed: dict[str, str], postgres_database: Database, tmp_path: Path
) -> None:
    job = a_job(postgres_database, tmp_path, "local:2")
    with job.running() as ctx:
        seen: list[int] = []
        asked = replace(ctx, progress=lambda step: seen.append(step.rows_done), stop=lambda: len(seen) > 6)
        with pytest.raises(InterruptedJobError):
            load(asked)
        told = sum(1 for e in ctx.workspace.events(types=[BatchCommitted]))
        assert told == len(ctx.target.ledger()) < BATCHES
    assert finished(job) == undisturbed


@pytest.fixture
def ftp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, Path]]:
    """A place behind FTP, whose password is in a variable: its URL, and the folder that it shows."""
    shown = tmp_path / "ftp"
    shown.mkdir()
    monkeypatch.setenv("FTP_PASSWORD", "entree")
    users = DummyAuthorizer()
    users.add_user("carrier", "entree", str(shown), perm="elradfmwMT")
    handler: Any = type("Handler", (FTPHandler,), {"authorizer": users})
    server = FTPServer(("127.0.0.1", 0), handler)
    serving = threading.Thread(target=server.serve_forever, kwargs={"timeout": 0.1, "handle_exit": False})
    serving.start()
    yield f"ftp://carrier:${{FTP_PASSWORD}}@127.0.0.1:{server.address[1]}/", shown
    server.close_all()
    serving.join()


def test_the_job_lies_behind_a_filesystem_that_is_not_this_machines(
    undisturbed: dict[str, str], postgres_database: Database, tmp_path: Path, ftp: tuple[str, Path]
) -> None:
    job = a_job(postgres_database, tmp_path, "local:2", ftp[0])
    most: list[int] = []
    with job.running() as ctx:
        load(replace(ctx, progress=lambda _: most.append(sum(1 for _ in ftp[1].rglob("*.parquet")))))
        assert verify(ctx).ok
    assert outcome(job) == undisturbed
    assert 0 < max(most) < 30, "parts that are done with stay there"
    assert not list(ftp[1].rglob("*.parquet")), "something is left there"


@pytest.mark.parametrize(
    ("executor", "stage", "target", "told"),
    [
        ("cluster", "", "postgresql://u@h/d", "no executor 'cluster'"),
        ("local:0", "", "postgresql://u@h/d", "no executor 'local:0'"),
        ("dask://host", "", "postgresql://u@h/d", "no executor 'dask://host'"),
        ("inline", "s3://bucket", "postgresql://u@h/d", "--stage is for workers elsewhere"),
        ("dask://host:1", "", "postgresql://u:typed@h/d", "a typed password would have to travel"),
        ("dask://host:1", "", "postgresql://u@h/d?password=typed", "a typed password would have to travel"),
        ("dask://host:1", "ftp://u:typed@h/d", "postgresql://u@h/d", "a typed password in the stage place"),
        ("local:2", "", "postgresql://u:typed@h/d", ""),
        ("dask://host:1", "", "postgresql://u:${PW}@h/d", ""),
        ("dask://host:1", "ftp://u:${PW}@h/d", "${CLOUD}", ""),
    ],
)
def test_what_can_be_chosen(executor: str, stage: str, target: str, told: str) -> None:
    if not told:
        assert Choice.of(executor, stage, target).name == executor
        return
    with pytest.raises(UsageError, match=told) as caught:
        Choice.of(executor, stage, target)
    assert "typed@" not in str(caught.value)
    assert caught.value.advice


def test_a_place_that_cannot_be_used_is_told_before_anything_moves(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    for place, told in ((f"{file}/below", "the stage place can't be used"), ("nosuch://bucket", "can't be opened")):
        with pytest.raises((UsageError, JobFailedError), match=told):
            Choice("local:1", place).check(JobPaths(tmp_path, "j").create(), "packhorse")


@pytest.mark.parametrize(
    ("index", "compared"),
    [
        ("", True),
        ("CREATE UNIQUE INDEX one ON people (email)", True),
        ("CREATE UNIQUE INDEX one ON people (lower(email)) WHERE mobile IS NOT NULL", True),
        ("CREATE UNIQUE INDEX one ON people (md5(email))", False),
        ("ALTER TABLE people ADD filled_there int DEFAULT 1 UNIQUE", False),
        ("CREATE EXTENSION citext; ALTER TABLE people ALTER email TYPE citext", False),
        ("ALTER TABLE people ADD CONSTRAINT one EXCLUDE USING btree (old WITH =)", True),
    ],
)
def test_batches_go_one_by_one_where_the_target_alone_tells_who_loses(
    postgres_database: Database, tmp_path: Path, index: str, compared: bool
) -> None:
    job = a_job(postgres_database, tmp_path, "inline")
    postgres_database.run(index or "SELECT 1")
    with job.running(try_first=False) as ctx:
        assert all_compared(ctx.checked.entity("people")) is compared
        assert all_compared(ctx.checked.entity("firms"))


def test_dask_that_is_not_installed_is_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    chosen = Choice.of("dask://127.0.0.1:1", "", "postgresql://u@h/d")
    with pytest.raises(UsageError, match="needs dask") as caught:
        chosen.check(JobPaths(tmp_path, "j").create(), "packhorse")
    assert "packhorse[dask]" in caught.value.advice


def test_a_scheduler_that_does_not_answer_is_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(dask_cluster, "TIMEOUT", 1)
    chosen = Choice.of("dask://127.0.0.1:1", "", "postgresql://u@h/d")
    with pytest.raises(ConnectError, match="no Dask scheduler answers") as caught:
        chosen.check(JobPaths(tmp_path, "j").create(), "packhorse")
    assert caught.value.where == "dask://127.0.0.1:1"


def test_a_target_that_restarts_is_waited_for_and_the_lease_goes_on(
    undisturbed: dict[str, str], postgres_to_crash: PostgresServer, tmp_path: Path
) -> None:
    """The driver, which only waits meanwhile, has its lease again, and the workers go on under it."""
    job = a_job(postgres_to_crash.new_database(), tmp_path, "local:2")
    restarted: list[int] = []

    def restart_once(step: Progress) -> None:
        if (step.phase, step.entity) == ("load", "people") and not restarted:
            restarted.append(step.rows_done)
            postgres_to_crash.restart()

    with job.running() as ctx:
        load(replace(ctx, progress=restart_once))
        retried = [e.event for e in ctx.workspace.events(types=[RetryMade])]
        assert verify(ctx).ok
    assert any(isinstance(e, RetryMade) and e.what.startswith("batch") for e in retried)
    assert outcome(job) == undisturbed
