"""The target's server goes away in mid-load: killed before a COMMIT, or right after it, and started again.

The load waits for it, asks the ledger what became of the batch, and the end is that of an undisturbed load.
A server that stays away stops the job with one line, and the load goes on when it is back.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from connectors.postgres import PostgresTarget
from engine import persist
from engine.load import load
from engine.verify import verify
from sample_data.servers import Database, PostgresServer
from tests.engine_jobs import EngineJob, sqlite_source
from tests.small_crm import PLAN, SOURCE, TARGET, dumps
from workspace.errors import JobFailedError
from workspace.events import BatchCommitted, RetryMade
from workspace.log import Workspace
from workspace.paths import JobPaths

COMMITS = 3  # the server dies at the third


@pytest.fixture
def database(postgres_to_crash: PostgresServer) -> Iterator[Database]:
    database = postgres_to_crash.new_database()
    database.run(TARGET)
    yield database
    postgres_to_crash.drop(database)


@pytest.fixture(scope="module")
def undisturbed(postgres_to_crash: PostgresServer, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    database = postgres_to_crash.new_database()
    database.run(TARGET)
    source = sqlite_source(tmp_path_factory.mktemp("legacy") / "legacy.db", SOURCE)
    with EngineJob(
        str(tmp_path_factory.mktemp("job")), "job", PLAN, source, database.socket_dsn, batch_rows=2
    ).running() as ctx:
        load(ctx)
    with postgres_to_crash.connect(database.name) as connection:
        held = dumps(connection)
    postgres_to_crash.drop(database)
    return held


@pytest.fixture
def job(database: Database, tmp_path: Path) -> EngineJob:
    source = sqlite_source(tmp_path / "legacy.db", SOURCE)
    return EngineJob(str(tmp_path), "job", PLAN, source, database.socket_dsn, batch_rows=2)


def dying(server: PostgresServer, monkeypatch: pytest.MonkeyPatch, *, after: bool, come_back: bool) -> None:
    """Kills the server around the third COMMIT, once."""
    plain = PostgresTarget.commit
    seen = [0]

    def commit(target: PostgresTarget) -> None:
        seen[0] += 1
        if seen[0] != COMMITS:
            return plain(target)
        if after:
            # on disk, and then gone before the answer is heard
            target._connection.execute("COMMIT")
        server.kill()
        if come_back:
            server.start()
        return plain(target)

    monkeypatch.setattr(PostgresTarget, "commit", commit)


@pytest.mark.parametrize("after", [False, True], ids=["before COMMIT", "after COMMIT, unheard"])
def test_a_restarted_server_loses_and_doubles_nothing(
    job: EngineJob, database: Database, postgres_to_crash: PostgresServer, undisturbed: dict[str, str],
    monkeypatch: pytest.MonkeyPatch, after: bool,
) -> None:  # fmt: skip
    dying(postgres_to_crash, monkeypatch, after=after, come_back=True)
    with job.running() as ctx:
        load(ctx)
        assert verify(ctx).ok
    with postgres_to_crash.connect(database.name) as connection:
        assert dumps(connection) == undisturbed
    with Workspace.open(JobPaths(Path(job.base), job.name)) as workspace:
        events: list[Any] = [e.event for e in workspace.events(types=[RetryMade, BatchCommitted])]
    assert any(isinstance(e, RetryMade) for e in events)
    assert any(isinstance(e, BatchCommitted) and e.recovered for e in events) is after


def test_a_server_that_stays_away_stops_the_job_and_the_job_goes_on(
    job: EngineJob, database: Database, postgres_to_crash: PostgresServer, undisturbed: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(persist, "RETRY_SECONDS", 1.0)
    with monkeypatch.context() as patched:
        dying(postgres_to_crash, patched, after=False, come_back=False)
        with job.running() as ctx, pytest.raises(JobFailedError, match="the target is gone"):
            load(ctx)
    postgres_to_crash.start()
    with job.running() as ctx:
        load(ctx)
        assert verify(ctx).ok
    with postgres_to_crash.connect(database.name) as connection:
        assert dumps(connection) == undisturbed
