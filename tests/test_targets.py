"""The same small jobs into each kind of target: what is promised of PostgreSQL holds of SQLite and MariaDB too."""

from __future__ import annotations

import signal
import sqlite3
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

import connectors.sqlite_target
import engine.faults
from connectors.dsn import open_target
from connectors.protocols import LeaseLostError, LedgerRow
from engine.faults import POINTS, RETRY_POINTS, UNDO_POINTS
from engine.load import load
from engine.verify import verify
from sample_data.servers import Database
from tests import test_engine_sync as sync
from tests.engine_jobs import EngineJob, sqlite_source
from tests.small_crm import PLAN, SOURCE
from workspace.errors import JobLockedError
from workspace.events import RetryMade

# What a target makes of the small job's tables: id kinds, a key of a sequence, a check, a self reference.
TABLES = {
    "sqlite": """
CREATE TABLE companies(id TEXT PRIMARY KEY, name VARCHAR(80) UNIQUE, parent_id TEXT REFERENCES companies);
CREATE TABLE people(id INTEGER PRIMARY KEY, name TEXT CHECK (name <> 'Evil'), company_id TEXT REFERENCES companies, born DATE);
CREATE TABLE notes(id INT PRIMARY KEY, person_id INTEGER REFERENCES people, text TEXT);
INSERT INTO companies VALUES ('00000000-0000-0000-0000-000000000001', 'Dyn', NULL);
""",
    "mariadb": """
CREATE TABLE companies(id BINARY(16) PRIMARY KEY, name VARCHAR(80) UNIQUE, parent_id BINARY(16), FOREIGN KEY (parent_id) REFERENCES companies (id)) ENGINE=InnoDB;
CREATE TABLE people(id BIGINT AUTO_INCREMENT PRIMARY KEY, name VARCHAR(80) CHECK (name <> 'Evil'), company_id BINARY(16), born DATE, FOREIGN KEY (company_id) REFERENCES companies (id)) ENGINE=InnoDB;
CREATE TABLE notes(id INT PRIMARY KEY, person_id BIGINT, text TEXT, FOREIGN KEY (person_id) REFERENCES people (id)) ENGINE=InnoDB;
INSERT INTO companies VALUES (UNHEX('00000000000000000000000000000001'), 'Dyn', NULL);
""",
}
PASSED = {"before commit": 4, "after commit": 11, "in copy": 6}


@dataclass
class Cloud:
    """A target of one kind, to make tables in and look at."""

    kind: str
    dsn: str
    _database: Any

    def run(self, script: str) -> None:
        """Runs the statements of a script."""
        if self.kind == "sqlite":
            with sqlite3.connect(self._database) as connection:
                connection.executescript(script)
            connection.close()
        else:
            self._database.run(script)

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """The rows of a SELECT."""
        if self.kind == "sqlite":
            connection = sqlite3.connect(self._database)
            try:
                return connection.execute(sql).fetchall()
            finally:
                connection.close()
        return [tuple(row) for row in self._database.rows(sql)]

    def held(self) -> dict[str, list[tuple[Any, ...]]]:
        """The customer's tables."""
        names = ("companies", "people", "notes")
        return {name: sorted(self.rows(f"SELECT * FROM {name}"), key=repr) for name in names}

    def whole(self) -> dict[str, list[tuple[Any, ...]]]:
        """The customer's tables and our records of them, without instants."""
        ours = {
            "crosswalk": "entity_id, job_id, batch, old_id, new_id, source_hash, target_hash, reference_hash, replaced",
            "ledger": "entity_id, batch, step, key_low, key_high, plan_version, inserted, updated, excluded, quarantined, checksum",
            "quarantine": "entity_id, batch, field, code, signature, detail, raw, status",
        }
        return self.held() | {
            name: sorted(self.rows(f"SELECT {columns} FROM packhorse_{name}"), key=repr)
            for name, columns in ours.items()
        }


@pytest.fixture(params=["sqlite", "mariadb"])
def cloud(request: pytest.FixtureRequest, tmp_path: Path) -> Cloud:
    kind = request.param
    if kind == "sqlite":
        file = tmp_path / "cloud.db"
        found = Cloud(kind, sqlite_source(file, ""), file)
    else:
        database: Database = request.getfixturevalue("mariadb_database")
        found = Cloud(kind, database.dsn, database)
    found.run(TABLES[kind])
    return found


@pytest.fixture
def job(cloud: Cloud, tmp_path: Path) -> EngineJob:
    legacy = sqlite_source(tmp_path / "legacy.db", SOURCE)
    return EngineJob(str(tmp_path), "job", PLAN, legacy, cloud.dsn, batch_rows=2)


def test_what_is_loaded_is_verified(cloud: Cloud, job: EngineJob) -> None:
    """Ana to Gil: one excluded, one refused by the CHECK alone; a company that is there, one that another has; a circle."""
    outcome = job.load()
    assert (outcome.read, outcome.inserted, outcome.excluded, outcome.quarantined) == (16, 11, 1, 4)
    assert job.verified().ok, job.verified()
    assert sorted(row[0] for row in cloud.rows("SELECT name FROM companies")) == ["Acme", "Bolt", "Dyn", "Eon"]
    assert cloud.rows(
        "SELECT c.name, p.name FROM companies c JOIN companies p ON p.id = c.parent_id ORDER BY 1"
    ) == [("Acme", "Eon"), ("Bolt", "Acme")]  # fmt: skip
    held = cloud.rows("SELECT field, code FROM packhorse_quarantine ORDER BY 2, 1")
    assert [code for _, code in held] == ["cast", "check", "unique", "unique"]


@pytest.mark.parametrize("fault", [f"{place}:{n}" for place, n in PASSED.items()])
def test_killed_anywhere_it_goes_on(cloud: Cloud, job: EngineJob, tmp_path: Path, fault: str) -> None:
    assert fault.rpartition(":")[0] in POINTS
    assert job.load_in_child(fault) == -signal.SIGKILL
    assert job.load_in_child() == 0
    assert job.verified().ok
    counted = cloud.rows(
        "SELECT (SELECT count(*) FROM companies), (SELECT count(*) FROM people), (SELECT count(*) FROM notes)"
    )
    assert counted == [(4, 4, 4)]


def test_what_is_taken_back_is_as_it_was(cloud: Cloud, job: EngineJob) -> None:
    before = cloud.held()
    job.load()
    assert cloud.held() != before
    undone = job.undo()
    assert (undone.deleted, undone.restored, undone.kept) == (11, 0, {})
    assert cloud.held() == before
    assert job.verified().ok


@pytest.mark.parametrize("fault", ["undo rows gone:3", "undo after commit:2"])
def test_an_undo_that_is_killed_goes_on(cloud: Cloud, job: EngineJob, fault: str) -> None:
    assert fault.rpartition(":")[0] in UNDO_POINTS
    before = cloud.held()
    job.load()
    assert job.undo_in_child(fault) == -signal.SIGKILL
    assert job.undo_in_child() == 0
    assert cloud.held() == before


def test_a_row_that_changed_stays_and_what_it_refers_to(cloud: Cloud, job: EngineJob) -> None:
    """Ana's name changed: she stays, with Acme, whose she is, Eon, whose Acme is, and the note that is hers."""
    job.load()
    cloud.run("UPDATE people SET name = 'Anna' WHERE name = 'Ana'")
    changed, field = [line for entity in job.verified().entities for line in entity.problems]
    assert "hold other values than were loaded: source keys 1" in changed
    assert "source key 1, column name" in field
    kept = job.undo().kept
    assert kept["contacts"] == {"changed in the target since": 1}
    assert set(kept) == {"contacts", "accounts"}
    assert [row[0] for row in cloud.rows("SELECT name FROM people")] == ["Anna"]
    assert [row[0] for row in cloud.rows("SELECT name FROM companies ORDER BY 1")] == ["Acme", "Dyn", "Eon"]


def test_a_later_job_over_the_same_source_updates_and_gives_back(cloud: Cloud, job: EngineJob, tmp_path: Path) -> None:
    job.load()
    first = cloud.whole()
    with sqlite3.connect(tmp_path / "legacy.db") as legacy:
        legacy.executescript(
            "UPDATE accounts SET name = 'Acme & Co' WHERE id = 'a'; UPDATE contacts SET born = '1990-01-01' WHERE id = 1"
        )
    legacy.close()
    second = job.named("second")
    outcome = second.load()
    assert (outcome.inserted, outcome.updated, outcome.quarantined) == (0, 2, 4)
    assert second.verified().ok
    assert ("Acme & Co",) in cloud.rows("SELECT name FROM companies")
    second.undo()
    held = cloud.whole()
    for name in ("companies", "people", "notes", "crosswalk"):
        assert held[name] == first[name], name
    assert job.verified().ok


def test_a_retried_row_leaves_the_quarantine(cloud: Cloud, job: EngineJob) -> None:
    """Di's birthday, which is none, is left out by the next plan; the others stay for what they are. Her note, which was
    loaded without her, is hers."""
    job.load()
    assert "retry before commit" in RETRY_POINTS
    plan = PLAN.replace("born: {from: born}", "born: {sql: \"nullif(born, 'never')\"}")
    assert job.retry_in_child("retry before commit", plan) == -signal.SIGKILL
    assert job.retry_in_child("", plan) == 0
    assert job.verified().ok
    assert cloud.rows("SELECT count(*) FROM people") == [(5,)]
    notes = "SELECT n.text, p.name FROM notes n LEFT JOIN people p ON p.id = n.person_id ORDER BY n.id"
    assert cloud.rows(notes) == [("one", "Ana"), ("two", "Bo"), ("three", "Di"), (None, "Ed")]
    assert sorted(code for (code,) in cloud.rows("SELECT code FROM packhorse_quarantine")) == [
        "check",
        "unique",
        "unique",
    ]
    assert job.drop() == 3
    assert job.verified().ok


def test_one_process_has_the_job(cloud: Cloud, job: EngineJob) -> None:
    job.load()
    first, second = open_target(cloud.dsn), open_target(cloud.dsn)
    try:
        first.lease("job", "legacy")
        with pytest.raises(JobLockedError):
            second.lease("job", "legacy")
        first.close()
        second.lease("job", "legacy")
    finally:
        first.close()
        second.close()


def test_a_batch_is_written_under_the_lease_of_another_process(cloud: Cloud, job: EngineJob) -> None:
    job.load()
    holder, worker = open_target(cloud.dsn), open_target(cloud.dsn)
    row = LedgerRow("notes", 99, 1, "", "", 1)
    try:
        holder.lease("job", "legacy")
        worker.join("job", holder.lease_token)
        worker.know_entity("legacy", "notes", "notes")
        worker.begin()
        assert worker.take(row)
        worker.rollback()
        holder.close()
        worker.begin()
        with pytest.raises(LeaseLostError):
            worker.take(row)
        worker.rollback()
    finally:
        holder.close()
        worker.close()


def test_a_sample_is_as_the_stage_gives_it_and_the_records_go(cloud: Cloud, job: EngineJob) -> None:
    job.load()
    with job.running() as ctx:
        assert verify(ctx, sample=100).ok
    cloud.run("UPDATE people SET born = '1999-09-09' WHERE name = 'Ana'")
    with job.running() as ctx:
        problems = [line for entity in verify(ctx, sample=100).entities for line in entity.problems]
    assert any("column born" in line for line in problems), problems
    target = open_target(cloud.dsn)
    try:
        target.lease("job", "legacy")
        assert target.owned_rows() == {"accounts": 3, "contacts": 4, "notes": 4}
        assert sum(batch.num_rows for batch in target.owned_crosswalk()) == 11
        target.begin()
        target.hold_records()
        gone = target.remove_records()
        target.commit()
        assert gone == (cloud.kind == "sqlite")
        assert not target.know("job")
    finally:
        target.close()


def test_a_lost_connection_is_made_again(mariadb_database: Database, tmp_path: Path) -> None:
    """The server ends the connection within a batch, and once more between COMMIT and its answer's being told."""
    mariadb_database.run(TABLES["mariadb"])
    legacy = sqlite_source(tmp_path / "legacy.db", SOURCE)
    job = EngineJob(str(tmp_path), "job", PLAN, legacy, mariadb_database.dsn, batch_rows=2)
    with job.running() as ctx:
        passed: list[str] = []

        def cut(place: str) -> None:
            passed.append(place)
            if (place, passed.count(place)) in (("in copy", 3), ("before commit", 5)):
                (number,) = ctx.target.read(sa.text("SELECT CONNECTION_ID()"))[0]  # type: ignore[attr-defined]
                mariadb_database.run(f"KILL {number}")

        engine.faults.hook = cut
        try:
            outcome = load(ctx)
        finally:
            engine.faults.hook = None
        tries = [entry.event for entry in ctx.workspace.events(types=[RetryMade])]
    assert len(tries) == 2
    assert (outcome.inserted, outcome.quarantined) == (11, 4)
    assert job.verified().ok


def test_another_writer_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch meets a program that writes to the file; once that has ended, it goes in."""
    monkeypatch.setattr(connectors.sqlite_target, "_WAIT_SECONDS", 0.1)
    file = tmp_path / "cloud.db"
    job = EngineJob(
        str(tmp_path),
        "job",
        PLAN,
        sqlite_source(tmp_path / "legacy.db", SOURCE),
        sqlite_source(file, TABLES["sqlite"]),
        2,
    )
    other = sqlite3.connect(file, isolation_level=None)
    with job.running() as ctx:
        passed: list[str] = []

        def write(place: str) -> None:
            passed.append(place)
            if place == "after checkpoint" and passed.count(place) == 2:
                other.execute("BEGIN IMMEDIATE")

        record = ctx.workspace.record

        def told(*events: Any) -> Any:
            if any(isinstance(event, RetryMade) for event in events) and other.in_transaction:
                other.execute("COMMIT")
            return record(*events)

        monkeypatch.setattr(ctx.workspace, "record", told)
        engine.faults.hook = write
        try:
            assert load(ctx).inserted == 11
        finally:
            engine.faults.hook = None
        assert ctx.workspace.events(types=[RetryMade])
    other.close()
    assert job.verified().ok


SYNC_TABLES = {
    "sqlite": """
CREATE TABLE companies(id TEXT PRIMARY KEY, name TEXT UNIQUE, parent_id TEXT REFERENCES companies, kind TEXT CHECK (kind IN ('customer', 'other')), deleted_at DATETIME);
CREATE TABLE persons(id INTEGER PRIMARY KEY, name TEXT, company_id TEXT NOT NULL REFERENCES companies, born DATE, city TEXT, deleted_at DATETIME);
""",
    "mariadb": """
CREATE TABLE companies(id CHAR(36) PRIMARY KEY, name VARCHAR(80) UNIQUE, parent_id CHAR(36) REFERENCES companies (id), kind ENUM('customer', 'other'), deleted_at DATETIME);
CREATE TABLE persons(id BIGINT AUTO_INCREMENT PRIMARY KEY, name TEXT, company_id CHAR(36) NOT NULL REFERENCES companies (id), born DATE, city TEXT, deleted_at DATETIME);
""",
}


@pytest.mark.parametrize("deletes", ["delete", "mark"])
def test_a_sync_brings_in_what_changed(cloud: Cloud, tmp_path: Path, deletes: str) -> None:
    """Flo is gone from the source: deleted, or marked. Ed was edited in the target: he stays as he is."""
    cloud.run("DROP TABLE notes; DROP TABLE people; DROP TABLE companies;" + SYNC_TABLES[cloud.kind])
    source = sqlite_source(tmp_path / "legacy.db", sync.SOURCE)
    plan = sync.PLAN.replace("    to: companies\n", "    to: companies\n    deleted: {column: deleted_at}\n")
    job = EngineJob(str(tmp_path), "job", plan, source, cloud.dsn, batch_rows=2)
    job.load()
    cloud.run("UPDATE persons SET city = 'Here' WHERE name = 'Ed'")
    sync.change(job, sync.CHANGES)
    outcome = {each.entity: each for each in job.sync(deletes=deletes).entities}
    assert (outcome["people"].inserted, outcome["people"].updated, outcome["people"].quarantined) == (5, 0, 2)
    assert (outcome["people"].deleted, outcome["people"].marked) == ((1, 0) if deletes == "delete" else (0, 1))
    assert cloud.rows("SELECT name, city FROM persons WHERE name IN ('Ed', 'Eddy')") == [("Ed", "Here")]
    left = cloud.rows("SELECT deleted_at IS NOT NULL FROM persons WHERE name = 'Flo'")
    assert left == ([] if deletes == "delete" else [(1,)])
    problems = [line for each in job.verified().entities for line in each.problems]
    assert not [line for line in problems if "edited" not in line], problems
