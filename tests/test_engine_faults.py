"""Every kind of fault at places on the exactly-once path: the job ends as one that nothing disturbed.

What retrying cures, the process that meets it gets through by itself; the rest takes the command again. Kills of a
load without processes beside it are in test_engine_crash; the whole matrix is `python -m bench.faults`.
"""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
import pytest

import engine.faults
from bench.fault_jobs import COMMANDS, ELSEWHERE, unreached
from bench.fault_kinds import CHILDREN, KINDS, Kind, dsn_of, run_child, struck_child, target_for
from connectors.dsn import Dsn, open_source
from connectors.postgres import PostgresTarget
from connectors.protocols import Page
from engine.faults import POINTS, UNDO_POINTS
from engine.load import load
from sample_data.servers import Database, PostgresServer
from tests.engine_jobs import EngineJob, load_and_verify, sqlite_source
from tests.small_crm import PLAN, SOURCE, TARGET, dumps, told
from workspace.errors import InterruptedJobError, JobFailedError, JobLockedError, SourceLostError
from workspace.events import RetryMade
from workspace.log import Workspace
from workspace.paths import JobPaths

CHILDREN.set_forkserver_preload(["tests.engine_jobs", "bench.fault_kinds"])
BY_NAME = {kind.name: kind for kind in KINDS}

# What strikes, where, and how many processes transform. In batches of two rows: accounts have three (and three of the
# second pass), contacts four, notes two.
CELLS = [
    ("killed", "after transform:5", 2),
    ("killed", "after checkpoint:3", 0),
    ("connection lost", "after stage write:4", 0),
    ("connection lost", "after transform:5", 2),
    ("connection lost", "after ledger taken:1", 0),
    ("connection lost", "after checkpoint:3", 0),
    ("connection lost", "between passes:1", 0),
    ("server restarted", "in copy:5", 0),
    ("server restarted", "in verify:1", 0),
    ("disk full", "after stage write:4", 0),
    ("disk full", "after part recorded:5", 2),
    ("disk full", "after commit:4", 0),
    ("disk full", "in verify:1", 0),
    ("lock timeout", "before commit:11", 0),
    ("lock timeout", "in verify:1", 0),
    ("statement timeout", "after ledger taken:5", 0),
    ("deadlock", "after ledger taken:1", 0),
    ("deadlock", "in copy:5", 2),
    ("serialisation", "after ledger taken:5", 0),
    ("serialisation", "between passes:1", 0),
    ("no connection left", "before commit:2", 0),
    ("no connection left", "in verify:1", 0),
    ("workers killed", "after part recorded:5", 2),
    ("workers killed", "in copy:4", 2),
]
UNDO_CELLS = [
    ("connection lost", "undo begun:1"),
    ("server restarted", "undo rows gone:2"),
    ("deadlock", "undo rows gone:4"),
    ("connection lost", "undo before commit:3"),
    ("no connection left", "undo after commit:5"),
    ("disk full", "undo after commit:2"),
    ("lock timeout", "undo after checkpoint:6"),
]


@dataclass(frozen=True)
class Loaded:
    """A job that nothing disturbed: what its target and its log hold after it, its database and folder to copy."""

    job: EngineJob
    database: Database
    held: dict[str, str]
    told: tuple[Counter[Any], ...]


@pytest.fixture(scope="module")
def legacy(tmp_path_factory: pytest.TempPathFactory) -> str:
    return sqlite_source(tmp_path_factory.mktemp("legacy") / "legacy.db", SOURCE)


@pytest.fixture(scope="module")
def small_disk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("small")
    mount = ["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(folder)]
    try:
        if subprocess.run(mount, capture_output=True, check=False).returncode:
            pytest.skip("no right to mount a small disk")
    except FileNotFoundError:
        pytest.skip("nothing to mount a small disk with")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


@pytest.fixture(scope="module")
def loaded(legacy: str, postgres_to_crash: PostgresServer, tmp_path_factory: pytest.TempPathFactory) -> Loaded:
    database = target_for(postgres_to_crash, TARGET)
    job = EngineJob(str(tmp_path_factory.mktemp("job")), "job", PLAN, legacy, dsn_of(database), batch_rows=2)
    load_and_verify(job)
    return Loaded(job, database, held(job, postgres_to_crash, database), told(job))


@pytest.fixture(scope="module")
def undone(loaded: Loaded, postgres_to_crash: PostgresServer, tmp_path_factory: pytest.TempPathFactory) -> Loaded:
    base = tmp_path_factory.mktemp("undone")
    job, database = copied_job(loaded, postgres_to_crash, base)
    job.undo()
    return Loaded(job, database, held(job, postgres_to_crash, database), told(job))


@pytest.fixture
def base(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Where the job's folder is to be: on the small disk for the kind that fills it."""
    if "disk full" not in request.node.name:
        return tmp_path
    folder: Path = request.getfixturevalue("small_disk") / tmp_path.name
    folder.mkdir()
    return folder


def copied_job(loaded: Loaded, server: PostgresServer, base: Path) -> tuple[EngineJob, Database]:
    """The loaded job once more, in a folder and a database of its own."""
    shutil.copytree(loaded.job.base, base, dirs_exist_ok=True)
    database = Database(server, server.new_name())
    server.run(f"CREATE DATABASE {database.name} TEMPLATE {loaded.database.name}")
    return replace(loaded.job, base=str(base), target=dsn_of(database)), database


def held(job: EngineJob, server: PostgresServer, database: Database) -> dict[str, str]:
    with server.connect(database.name) as connection:
        return dumps(connection)


def take_back(job: EngineJob) -> None:
    job.undo()


def struck(
    work: Callable[[], None], kind: Kind, place: str, server: PostgresServer, database: Database, base: Path,
    job: EngineJob,
) -> None:  # fmt: skip
    """Has the fault strike the work, and the work done again where that ended it, in processes of their own."""
    name, nth = place.split(":")
    ended = struck_child(work, kind, name, int(nth), server, database, base if kind.needs == "disk" else None)
    assert ended.struck
    if kind.heals:
        assert ended.code == 0, ended.said
        with Workspace.open(JobPaths(Path(job.base), job.name)) as workspace:
            assert list(workspace.events(types=[RetryMade]))
    else:
        assert ended.code == (-signal.SIGKILL if kind.name == "killed" else 2), ended.said
        again = run_child(work)
        assert again.code == 0, again.said


def test_every_kind_and_place_is_tried() -> None:
    assert {kind for kind, _, _ in CELLS} == set(BY_NAME)
    assert {place.split(":")[0] for _, place, _ in CELLS} == set(POINTS)
    assert {place.split(":")[0] for _, place in UNDO_CELLS} == set(UNDO_POINTS)


def test_the_matrix_strikes_every_named_place_or_says_why_not(monkeypatch: pytest.MonkeyPatch) -> None:
    assert unreached() == []
    assert all(reason and "\n" not in reason for reason in ELSEWHERE.values())
    monkeypatch.setattr(engine.faults, "NEW_POINTS", ("a new place",), raising=False)
    assert unreached() == ["a new place"]
    monkeypatch.setitem(ELSEWHERE, COMMANDS[0].points[0], "struck after all")
    assert unreached() == sorted(["a new place", COMMANDS[0].points[0]])


def test_every_place_in_the_code_is_named_in_the_lists() -> None:
    """Of `batch_transaction`, whose places begin as the caller says, the ends."""
    root = Path(engine.faults.__file__).parent.parent
    code = "".join(path.read_text() for room in ("engine", "agent") for path in (root / room).rglob("*.py"))
    named = {point for name, points in vars(engine.faults).items() if name.endswith("POINTS") for point in points}
    passed = set(re.findall(r'fault_point\("([^"]+)"\)', code))
    begun = {""} | set(re.findall(r'batch_transaction\([^\n]*"(\w+ )"\)', code))
    assert named == passed | {f"{place}{end}" for place in begun for end in ("before commit", "after commit")}


@pytest.mark.parametrize(("kind", "place", "processes"), CELLS)
def test_a_load_that_is_struck(
    kind: str, place: str, processes: int, legacy: str, postgres_to_crash: PostgresServer, loaded: Loaded, base: Path
) -> None:
    database = target_for(postgres_to_crash, TARGET)
    job = replace(loaded.job, base=str(base), target=dsn_of(database))
    work = partial(load_and_verify, job, processes)
    struck(work, BY_NAME[kind], place, postgres_to_crash, database, base, job)
    assert held(job, postgres_to_crash, database) == loaded.held
    assert told(job) == loaded.told
    postgres_to_crash.drop(database)


@pytest.mark.parametrize(("kind", "place"), UNDO_CELLS)
def test_an_undo_that_is_struck(
    kind: str, place: str, postgres_to_crash: PostgresServer, loaded: Loaded, undone: Loaded, base: Path
) -> None:
    job, database = copied_job(loaded, postgres_to_crash, base)
    struck(partial(take_back, job), BY_NAME[kind], place, postgres_to_crash, database, base, job)
    assert held(job, postgres_to_crash, database) == undone.held
    assert told(job) == undone.told
    postgres_to_crash.drop(database)


MUTUAL = """
CREATE TABLE teams(id integer primary key, name text, lead integer);
INSERT INTO teams VALUES (1, 'red', 11), (2, 'blue', 12), (3, 'green', 99), (4, 'grey', 13);
CREATE TABLE members(id integer primary key, name text, team integer);
INSERT INTO members VALUES (11, 'Ana', 2), (12, 'Bo', 1), (13, 'Cy', 4), (14, 'Di', NULL);
"""
MUTUAL_TARGET = """
CREATE TABLE teams(id uuid primary key, name text, lead_id bigint);
CREATE TABLE members(id bigint GENERATED ALWAYS AS IDENTITY primary key, name text, team_id uuid REFERENCES teams);
ALTER TABLE teams ADD FOREIGN KEY (lead_id) REFERENCES members;
"""
MUTUAL_PLAN = """
entities:
  teams: {from: teams, to: teams, key: id, id: uuid5, fields: {name: {from: name}, lead_id: {from: lead, ref: members, missing: 'null'}}}
  members: {from: members, to: members, key: id, id: sequence, fields: {name: {from: name}, team_id: {from: team, ref: teams, missing: 'null'}}}
"""


@pytest.mark.parametrize(
    ("kind", "place"),
    [("killed", "after commit:2"), ("killed", "between passes:1"), ("connection lost", "after commit:5")],
)
def test_entities_that_refer_to_each_other(
    kind: str, place: str, postgres_to_crash: PostgresServer, tmp_path: Path
) -> None:
    database = target_for(postgres_to_crash, MUTUAL_TARGET)
    source = sqlite_source(tmp_path / "legacy.db", MUTUAL)
    job = EngineJob(str(tmp_path), "job", MUTUAL_PLAN, source, dsn_of(database), batch_rows=2)
    struck(partial(load_and_verify, job), BY_NAME[kind], place, postgres_to_crash, database, tmp_path, job)
    found = database.rows(
        "SELECT t.name, l.name FROM teams t LEFT JOIN members l ON l.id = t.lead_id UNION ALL "
        "SELECT m.name, t.name FROM members m LEFT JOIN teams t ON t.id = m.team_id ORDER BY 1"
    )
    assert dict(found) == {
        "red": "Ana", "blue": "Bo", "green": None, "grey": "Cy", "Ana": "blue", "Bo": "red", "Cy": "grey", "Di": None,
    }  # fmt: skip
    postgres_to_crash.drop(database)


@pytest.fixture
def job(postgres_to_crash: PostgresServer, loaded: Loaded, tmp_path: Path) -> Iterator[EngineJob]:
    """A job not begun, to run in this process."""
    database = target_for(postgres_to_crash, TARGET)
    yield replace(loaded.job, base=str(tmp_path), target=dsn_of(database))
    postgres_to_crash.drop(database)


def test_a_source_that_breaks_off_leaves_no_thread(job: EngineJob, loaded: Loaded) -> None:
    """In the middle of the second entity, batches of the first being committed meanwhile."""
    source = open_source(job.source)
    whole = source.pages

    def broken_off(relation: Any, *args: Any, **options: Any) -> Iterator[Page]:
        for number, page in enumerate(whole(relation, *args, **options)):
            if "contacts" in str(relation) and number == 1:
                raise SourceLostError("gone")
            yield page

    source.pages = broken_off  # type: ignore[method-assign]
    threads = set(threading.enumerate())
    with job.running(source=source) as ctx, pytest.raises(SourceLostError):
        load(ctx)
    source.close()
    assert set(threading.enumerate()) == threads
    load_and_verify(job)
    assert told(job) == loaded.told


def test_asked_to_stop_while_the_target_is_gone(job: EngineJob, postgres_to_crash: PostgresServer) -> None:
    """The first Ctrl-C counts while a lost target is waited for, not only when it is back."""
    asked = threading.Event()
    with job.running() as ctx:
        record = ctx.workspace.record

        def recorded(*events: Any) -> int:
            if isinstance(events[0], RetryMade):
                asked.set()
            return record(*events)

        ctx.workspace.record = recorded  # type: ignore[method-assign, assignment]
        ctx.stop = asked.is_set
        database = job.target.split("?")[0].rsplit("/", 1)[1]
        postgres_to_crash.rows(
            f"SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = '{database}'"
        )
        with pytest.raises(InterruptedJobError):
            load(ctx)


@pytest.mark.parametrize("harm", ["cut off", "missing"])
def test_a_stage_that_was_harmed_is_told(
    harm: str, loaded: Loaded, postgres_to_crash: PostgresServer, tmp_path: Path
) -> None:
    job, database = copied_job(loaded, postgres_to_crash, tmp_path)
    part = JobPaths(tmp_path, "job").stage / "contacts" / "part-00001.parquet"
    part.unlink() if harm == "missing" else part.write_bytes(part.read_bytes()[:-9])
    with job.running() as ctx, pytest.raises(JobFailedError, match="a part of the stage is missing or cut off"):
        load(ctx)
    postgres_to_crash.drop(database)


def test_a_connection_that_the_target_has_not_ended_yet(job: EngineJob) -> None:
    """Its lease is waited for where it is our own lost one's; where it is another's that lives, the job is taken."""
    first, second = PostgresTarget(Dsn.parse(job.target)), PostgresTarget(Dsn.parse(job.target))
    first.prepare()
    first.lease("job", "legacy")
    with pytest.raises(JobLockedError):
        second.lease("job", "legacy")
    lost = first._connection
    first._connection = second._connection  # so that closing leaves the lost one open, as a server that noticed nothing

    def end_when_waited_for() -> None:
        with psycopg.connect(job.target, autocommit=True) as looker:
            while not looker.execute("SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted").fetchall():
                pass
        lost.close()

    ending = threading.Thread(target=end_when_waited_for)
    ending.start()
    first.reconnect()
    ending.join()
    assert first.ledger() == []
    first.close()
