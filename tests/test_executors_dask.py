"""A Dask cluster of real processes, any of which may be killed: nothing is lost, nothing comes twice, no secret shows."""

from __future__ import annotations

import pickle
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

import distributed
import pytest

from connectors.dsn import Dsn
from engine.executors import dask_cluster
from engine.executors.choice import Choice
from engine.executors.place import Place
from engine.load import load
from engine.verify import verify
from sample_data.servers import Database, PostgresServer
from tests.cli_runner import migrate
from tests.engine_jobs import EngineJob
from tests.executor_jobs import BATCHES, Cluster, a_job, committed, hold, inline, kill, outcome, reached, until
from workspace.errors import ConnectError, JobFailedError
from workspace.paths import JobPaths


@pytest.fixture(scope="module")
def undisturbed(postgres: PostgresServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """What one process makes of it."""
    database = postgres.new_database()
    job = a_job(database, tmp_path_factory.mktemp("undisturbed"), "inline")
    job.load()
    yield outcome(job)
    postgres.drop(database)


@pytest.fixture(scope="module")
def cluster(postgres: PostgresServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A scheduler and two workers, who have the target's password in a variable; whoever ends a worker adds one."""
    found = Cluster(tmp_path_factory.mktemp("dask"), 2, CLOUD_PASSWORD=postgres.password)
    yield found
    found.end()


@pytest.fixture
def job(postgres_database: Database, tmp_path: Path, cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> EngineJob:
    monkeypatch.setenv("CLOUD_PASSWORD", postgres_database.server.password)
    made = a_job(postgres_database, tmp_path, cluster.executor)
    return replace(made, target=without_password(postgres_database))


def without_password(database: Database) -> str:
    """The database's DSN with the name of a variable in the password's place."""
    secret = quote(database.server.password, safe="")
    assert secret in database.dsn
    return database.dsn.replace(secret, "${CLOUD_PASSWORD}")


def loading(job: EngineJob) -> tuple[threading.Thread, list[BaseException]]:
    """The load, in a thread, and what it raises."""
    raised: list[BaseException] = []

    def act() -> None:
        try:
            job.load()
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=act, daemon=True)
    thread.start()
    return thread, raised


def finished(job: EngineJob) -> dict[str, str]:
    """What is in the target once the job has gone on to its end."""
    with job.running() as ctx:
        load(ctx)
        assert verify(ctx).ok
    return outcome(job)


def test_a_worker_killed_in_mid_range_loses_its_range_to_another(
    undisturbed: dict[str, str], job: EngineJob, cluster: Cluster
) -> None:
    thread, raised = loading(job)
    with hold(job, after=5, workers=2):
        kill(cluster.workers.pop())
    thread.join(60)
    assert not raised
    assert outcome(job) == undisturbed
    assert finished(inline(job)) == undisturbed
    cluster.add_worker()


def test_workers_of_a_driver_that_is_killed_stop_and_another_executor_goes_on(
    undisturbed: dict[str, str], job: EngineJob, cluster: Cluster
) -> None:
    driver = job.start_in_child()
    with hold(job, after=5, workers=2):
        there = committed(job)
        driver.kill()
        driver.join()
    with cluster.client() as client:
        until(lambda: client.run_on_scheduler(tasks) == 0)
    assert committed(job) <= there + 2 < BATCHES
    assert finished(replace(job, executor="local:1")) == undisturbed


def test_a_scheduler_that_is_killed_stops_the_job_with_one_line(
    undisturbed: dict[str, str], job: EngineJob, tmp_path: Path, postgres: PostgresServer
) -> None:
    own = Cluster(tmp_path, 1, CLOUD_PASSWORD=postgres.password)
    try:
        thread, raised = loading(replace(job, executor=own.executor))
        with hold(job, after=5, workers=1):
            kill(own.scheduler)
        thread.join(60)
    finally:
        own.end()
    assert [str(error) for error in raised] == [f"the Dask scheduler is gone ({own.executor})"]
    assert isinstance(raised[0], JobFailedError)
    assert "migrate resume" in raised[0].advice
    assert finished(inline(job)) == undisturbed


def test_a_cluster_without_a_worker_is_not_waited_for_without_end(
    job: EngineJob, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dask_cluster, "NO_WORKER_SECONDS", 0.0)
    monkeypatch.setattr(dask_cluster, "WIDTH_SECONDS", 0.5)
    own = Cluster(tmp_path, 0)
    try:
        with pytest.raises(ConnectError, match="has no worker"):
            replace(job, executor=own.executor).choice.check(JobPaths(tmp_path, "j").create(), "packhorse")
        thread, raised = loading(replace(job, executor=own.executor))
        thread.join(60)
    finally:
        own.end()
    assert [str(error) for error in raised] == [f"the Dask cluster has no worker left ({own.executor})"]


def test_no_secret_and_no_record_stands_in_tasks_logs_or_states(job: EngineJob, cluster: Cluster) -> None:
    thread, raised = loading(job)
    with hold(job, after=5, workers=2), cluster.client() as client:
        assert client.run_on_scheduler(tasks) >= 2  # those that stand in the middle; others may have ended
        held = client.run_on_scheduler(all_held)
        seen = str(client.get_scheduler_logs()) + str(client.get_worker_logs()) + str(client.run(said))
    thread.join(60)
    assert not raised
    secret = Dsn.parse(job.target).password
    for spelling in (secret, quote(secret, safe=""), quote(secret)):
        assert spelling.encode() not in held
        assert spelling not in seen + cluster.log()
    assert b"CLOUD_PASSWORD" in held, "the tasks were not looked into"
    assert b"@Example.com" not in held
    assert "@Example.com" not in seen + cluster.log()
    assert "commit" in seen, "the workers' stories were not looked into"


def test_the_command_begins_on_a_cluster_and_its_files_lie_elsewhere(
    undisturbed: dict[str, str], job: EngineJob, cluster: Cluster, tmp_path: Path
) -> None:
    (tmp_path / "plan.yaml").write_text(job.plan)
    place = tmp_path / "place"
    given = [job.source, job.target, "--plan", "plan.yaml", "--job", "job", "--model", "none", "--yes"]
    done = migrate("run", *given, "--executor", cluster.executor, "--stage", place, cwd=tmp_path)
    assert (done.code, done.err.count("\n" * 2)) == (0, 0), done.err
    with reached(job) as connection:
        (loaded,) = connection.execute("SELECT count(*) FROM people").fetchone() or (0,)
    assert loaded == undisturbed["public.people"].count("\n")
    assert not list(place.rglob("*.parquet"))


@pytest.mark.parametrize(
    ("target", "place", "told"),
    [
        ("postgresql://crm:${NOT_THERE}@h/d", "", "the environment variable NOT_THERE is not set"),
        ("${HERE_ALONE}", "", "the environment variable HERE_ALONE is not set"),
        ("postgresql://crm@127.0.0.1:1/nowhere", "", "refused"),
        ("", "memory://here", "doesn't see in the stage place what was put there"),
        ("", "", "doesn't see the job's folder"),
    ],
)
def test_what_a_worker_lacks_is_told_before_anything_moves(
    job: EngineJob, tmp_path: Path, target: str, place: str, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NOT_THERE", "here it is")
    monkeypatch.setenv("HERE_ALONE", "postgresql://crm@h/d")
    paths = JobPaths(tmp_path, "j").create()
    if not place and not target:
        monkeypatch.setattr(Place, "put", lambda self, file: "not-there")
    with pytest.raises(ConnectError, match=f"a worker can't take part: .*{told}") as caught:
        Choice.of(job.executor, place, target or job.target).check(paths, "packhorse")
    assert caught.value.advice
    assert caught.value.where.startswith("tcp://")
    assert not list(paths.temp.iterdir())


def tasks(dask_scheduler: distributed.Scheduler) -> int:
    """How many tasks the scheduler knows."""
    return sum(key.startswith("packhorse-") for key in dask_scheduler.tasks)


def all_held(dask_scheduler: distributed.Scheduler) -> bytes:
    """All that a scheduler keeps of tasks and says of them."""
    shown = [
        repr(task) + str(task.__dict__ if hasattr(task, "__dict__") else "") for task in dask_scheduler.tasks.values()
    ]
    specs = [pickle.dumps(task.run_spec) for task in dask_scheduler.tasks.values()]
    story = repr(dask_scheduler.story(*dask_scheduler.tasks)) + repr(dask_scheduler.get_events())
    return b"".join([*specs, "".join(shown).encode(), story.encode()])


def said(dask_worker: distributed.Worker) -> str:
    """All that a worker keeps of tasks."""
    state = dask_worker.state
    return repr(list(state.tasks.values())) + repr(state.story(*state.tasks)) + repr(list(state.log))
