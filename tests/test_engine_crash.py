"""A load killed at each place on the exactly-once path, the first time and a later time it is passed.

Loaded again, the target holds the same as after an undisturbed load: records, crosswalk, ledger, quarantine,
byte for byte. Ids from a sequence may differ, so they are compared by the source keys they stand for.
"""

from __future__ import annotations

import itertools
import signal
import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import sql

from connectors.dsn import open_source
from connectors.protocols import Page
from engine.faults import POINTS
from engine.load import load
from engine.verify import verify
from sample_data.servers import Database, PostgresServer
from tests.engine_jobs import EngineJob, copied, sqlite_source
from workspace.errors import SourceLostError
from workspace.events import BatchCommitted, QuarantineSeen, StageCompleted
from workspace.log import Workspace
from workspace.paths import JobPaths

SOURCE = """
CREATE TABLE accounts(id text primary key, name text, parent text);
INSERT INTO accounts VALUES ('a', 'Acme', 'e'), ('b', 'Bolt', 'a'), ('c', 'Bolt', NULL), ('d', 'Dyn', 'nope'), ('e', 'Eon', 'd');
CREATE TABLE contacts(id integer primary key, name text, account text, born text, deleted int);
INSERT INTO contacts VALUES (1, 'Ana', 'a', '1984-02-29', 0), (2, 'Bo', 'b', '0000-00-00', 0), (3, 'Cy', 'c', NULL, 0), (4, 'Di', 'e', 'never', 0),
  (5, 'Ed', NULL, '', 0), (6, 'Evil', 'a', NULL, 0), (7, 'Gil', 'a', NULL, 1);
CREATE TABLE notes(id integer primary key, contact int, text text);
INSERT INTO notes VALUES (1, 1, 'one'), (2, 2, 'two'), (3, 4, 'three'), (4, 5, NULL);
"""
TARGET = """
CREATE TABLE companies(id uuid primary key, name text UNIQUE, parent_id uuid REFERENCES companies);
CREATE TABLE people(id bigint GENERATED ALWAYS AS IDENTITY primary key, name text CHECK (name <> 'Evil'), company_id uuid REFERENCES companies, born date);
CREATE TABLE notes(id int primary key, person_id bigint REFERENCES people, text text);
INSERT INTO companies VALUES ('00000000-0000-0000-0000-000000000001', 'Dyn', NULL);
"""
PLAN = """
entities:
  notes: {from: notes, to: notes, key: id, fields: {person_id: {from: contact, ref: contacts, missing: 'null'}, text: {from: text}}}
  contacts:
    from: contacts
    to: people
    key: id
    id: sequence
    where: deleted = 0
    fields: {name: {from: name}, company_id: {from: account, ref: accounts, missing: 'null'}, born: {from: born}}
  accounts:
    from: accounts
    to: companies
    key: id
    id: uuid5
    fields: {name: {from: name}, parent_id: {from: parent, ref: accounts, missing: 'null'}}
"""
# How often each place is passed in one load, batches of two rows: the last is the last.
PASSED = {
    "after stage write": 9, "after part recorded": 9, "after transform": 9, "after ledger taken": 9, "in copy": 9,
    "before commit": 12, "after commit": 12, "after checkpoint": 12, "between passes": 1, "in verify": 1,
}  # fmt: skip
KILLS = [f"{point}:{n}" for point, most in PASSED.items() for n in sorted({1, most} if "commit" in point else {most})]

LOOKED_AT = {
    "companies": "SELECT * FROM companies",
    "people": "SELECT x.old_id, p.name, p.company_id, p.born FROM people p LEFT JOIN packhorse.crosswalk x ON x.new_id = p.id::text "
    "AND x.entity_id = (SELECT id FROM packhorse.entity WHERE name = 'contacts')",
    "notes": "SELECT n.id, x.old_id, n.text FROM notes n LEFT JOIN people p ON p.id = n.person_id "
    "LEFT JOIN packhorse.crosswalk x ON x.new_id = p.id::text AND x.entity_id = (SELECT id FROM packhorse.entity WHERE name = 'contacts')",
    "crosswalk": "SELECT e.name, x.batch, x.old_id, CASE e.name WHEN 'contacts' THEN '' ELSE x.new_id END, x.source_hash, "
    "CASE e.name WHEN 'notes' THEN NULL ELSE x.target_hash END, x.reference_hash, x.replaced FROM packhorse.crosswalk x JOIN packhorse.entity e ON e.id = x.entity_id",
    "ledger": "SELECT e.name, l.batch, l.step, key_low, key_high, plan_version, read, inserted, updated, unchanged, merged, excluded, quarantined, "
    "CASE e.name WHEN 'notes' THEN NULL ELSE checksum END FROM packhorse.ledger l JOIN packhorse.entity e ON e.id = l.entity_id",
    "quarantine": "SELECT e.name, q.batch, q.row, q.key, q.field, q.code, q.signature, q.detail, q.raw::text, q.status "
    "FROM packhorse.quarantine q JOIN packhorse.entity e ON e.id = q.entity_id",
    "sequence": "SELECT (SELECT max(id) FROM people) <= last_value FROM people_id_seq",
}  # fmt: skip


def dumps(connection: psycopg.Connection[Any]) -> dict[str, str]:
    return {name: copied(connection, sql.SQL(statement)) for name, statement in LOOKED_AT.items()}


def told(job: EngineJob) -> tuple[Counter[Any], Counter[Any]]:
    """What the log tells: each batch once, and the failures by signature."""
    with Workspace.open(JobPaths(Path(job.base), job.name)) as workspace:
        events = [entry.event for entry in workspace.events(types=[BatchCommitted, QuarantineSeen])]
    batches = Counter((e.entity, e.batch, e.step, e.inserted) for e in events if isinstance(e, BatchCommitted))
    seen: Counter[Any] = Counter()
    for e in events:
        if isinstance(e, QuarantineSeen):
            seen[e.entity, e.signature, e.code] += e.count
    return batches, seen


@pytest.fixture(scope="module")
def legacy(tmp_path_factory: pytest.TempPathFactory) -> str:
    return sqlite_source(tmp_path_factory.mktemp("legacy") / "legacy.db", SOURCE)


@pytest.fixture
def cloud(postgres: PostgresServer, postgres_database: Database) -> Iterator[psycopg.Connection[Any]]:
    postgres_database.run(TARGET)
    with postgres.connect(postgres_database.name) as connection:
        yield connection


@pytest.fixture
def job(legacy: str, postgres_database: Database, tmp_path: Path) -> EngineJob:
    return EngineJob(str(tmp_path), "job", PLAN, legacy, postgres_database.socket_dsn, batch_rows=2)


@pytest.fixture(scope="module")
def undisturbed(
    legacy: str, postgres: PostgresServer, tmp_path_factory: pytest.TempPathFactory
) -> tuple[dict[str, str], tuple[Counter[Any], Counter[Any]]]:
    """What the target and the log hold after a load that nothing disturbed."""
    database = postgres.new_database()
    database.run(TARGET)
    job = EngineJob(str(tmp_path_factory.mktemp("job")), "job", PLAN, legacy, database.socket_dsn, batch_rows=2)
    with job.running() as ctx:
        load(ctx)
        assert verify(ctx).ok
    with postgres.connect(database.name) as connection:
        held = dumps(connection)
    postgres.drop(database)
    return held, told(job)


def test_every_place_is_tried() -> None:
    assert set(PASSED) == set(POINTS)


def test_the_undisturbed_load_is_worth_comparing(undisturbed: Any) -> None:
    held, (batches, seen) = undisturbed
    assert len(batches) == 12
    assert set(seen) == {
        ("accounts", "name: unique companies_name_key", "unique"),
        ("accounts", "name: unique companies_name_key, held by a row already in the target", "unique"),
        ("contacts", "born: cast date: 'a'", "cast"),
        ("contacts", "contacts: check people_name_check", "check"),
    }
    assert held["companies"].count("\n") == 4
    assert held["sequence"] == "t\n"


@pytest.mark.parametrize("kill", KILLS)
def test_killed_and_loaded_again(
    kill: str, job: EngineJob, cloud: psycopg.Connection[Any], undisturbed: tuple[dict[str, str], Any]
) -> None:
    assert job.load_in_child(kill) == -signal.SIGKILL
    with job.running() as ctx:
        again = load(ctx)
        assert verify(ctx).ok
        assert again.read == 16
        assert not load(ctx).moved
    held, log = undisturbed
    assert dumps(cloud) == held
    assert told(job) == log


def test_killed_again_and_again(job: EngineJob, cloud: psycopg.Connection[Any], undisturbed: Any) -> None:
    for kill in (
        "after part recorded:3",
        "before commit:2",
        "after commit:2",
        "after commit:3",
        "in copy:2",
        "between passes",
    ):
        assert job.load_in_child(kill) == -signal.SIGKILL
    assert job.load_in_child() == 0
    assert dumps(cloud) == undisturbed[0]
    assert told(job) == undisturbed[1]


def test_a_stage_without_key_starts_over(job: EngineJob, cloud: psycopg.Connection[Any]) -> None:
    """Rows that nothing tells apart are read again from the first, and each is there once all the same."""
    keyless = replace(
        job,
        plan="entities: {notes: {from: notes, to: log, key: [], id: sequence, fields: {text: {from: text}}}}",
        batch_rows=1,
    )
    cloud.execute("CREATE TABLE log(id bigint GENERATED BY DEFAULT AS IDENTITY primary key, text text)")
    assert keyless.load_in_child("after part recorded:3") == -signal.SIGKILL
    with keyless.running() as ctx:
        outcome = load(ctx)
        assert (outcome.read, outcome.inserted) == (4, 4)
        assert verify(ctx).ok
    assert sorted(str(row[0]) for row in cloud.execute("SELECT text FROM log")) == ["None", "one", "three", "two"]


def test_a_source_without_key_that_breaks_off_leaves_nothing_loaded(
    job: EngineJob, cloud: psycopg.Connection[Any]
) -> None:
    """What is read anew may come in another order: so nothing is in the ledger before all has been read."""
    keyless = replace(
        job,
        plan="entities: {notes: {from: notes, to: log, key: [], id: sequence, fields: {text: {from: text}}}}",
        batch_rows=1,
    )
    cloud.execute("CREATE TABLE log(id bigint GENERATED BY DEFAULT AS IDENTITY primary key, text text)")
    source = open_source(job.source)
    whole, loaded = source.pages, threading.Event()

    def broken_off(*args: Any, **options: Any) -> Iterator[Page]:
        yield from itertools.islice(whole(*args, **options), 3)
        loaded.wait(2)
        raise SourceLostError("gone")

    source.pages = broken_off  # type: ignore[method-assign]
    with keyless.running(source=source) as ctx, pytest.raises(SourceLostError):
        load(replace(ctx, progress=lambda p: loaded.set() if p.phase == "load" else None))
    source.close()
    assert not loaded.is_set()
    assert cloud.execute("SELECT count(*) FROM log").fetchone() == (0,)
    assert keyless.load_in_child() == 0
    assert cloud.execute("SELECT count(*) FROM log").fetchone() == (4,)


def test_a_job_without_its_last_record_is_not_done(job: EngineJob, cloud: psycopg.Connection[Any]) -> None:
    """The stage's last part is there, the record that it was the last is not: nothing may report success."""
    assert job.load_in_child("after part recorded:3") == -signal.SIGKILL
    with job.running() as ctx:
        result = verify(ctx)
        assert not result.ok
    with job.running() as ctx:
        load(ctx)
        assert len(list(ctx.workspace.events(types=[StageCompleted]))) == 3
        assert verify(ctx).ok


@pytest.mark.parametrize("kill", ["after ledger taken:1", "in copy:5", "before commit:3"])
def test_this_test_can_fail(
    kill: str, job: EngineJob, cloud: psycopg.Connection[Any], undisturbed: tuple[dict[str, str], Any]
) -> None:
    """With the ledger's row outside the batch's transaction, the same kill loses rows, and both the comparison
    and verification say so."""
    assert job.load_in_child(kill, careless=True) == -signal.SIGKILL
    with job.running() as ctx:
        load(ctx)
        result = verify(ctx)
    assert not result.ok
    assert any("neither loaded nor quarantined" in line for entity in result.entities for line in entity.problems)
    assert dumps(cloud) != undisturbed[0]
