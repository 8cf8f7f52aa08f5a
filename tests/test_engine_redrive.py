"""Fields that waited for an answer when their rows moved, brought in afterwards; killed meanwhile, and taken back."""

from __future__ import annotations

import signal
import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest

from engine.edited_plan import check_edited
from engine.faults import REDRIVE_POINTS, SYNC_POINTS
from engine.plan import parse_plan
from engine.redrive import grown_plan
from sample_data.servers import Database, PostgresServer
from tests.engine_jobs import EngineJob, lost_at, reconciled, sqlite_source
from tests.test_engine_retry import loaded
from workspace.errors import CatalogueError, UsageError

SOURCE = """
CREATE TABLE users(id integer primary key, name text);
INSERT INTO users VALUES (1, 'Uma'), (2, 'Vic');
CREATE TABLE people(id integer primary key, name text, boss integer, owner integer, born text, city text, deleted integer);
INSERT INTO people VALUES (1, 'Ana', NULL, 1, '1984-02-29', 'Rome', 0), (2, 'Bo', 4, 2, '1990-01-01', 'Oslo', 0),
  (3, 'Cy', 1, 9, 'never', 'Bonn', 0), (4, 'Di', 2, 1, '1999-09-09', 'Lima', 0), (5, 'Ed', 1, 2, '1970-01-01', NULL, 1),
  (6, NULL, 1, 2, '1970-01-01', 'Kiev', 0), (7, 'Gus', NULL, NULL, NULL, NULL, 0);
"""
TARGET = """
CREATE TABLE members(id bigint primary key, name text NOT NULL);
CREATE TABLE persons(id bigint primary key, name text NOT NULL, boss_id bigint REFERENCES persons, owner_id bigint REFERENCES members,
  born date, city text DEFAULT 'nowhere');
"""
USERS = """
  users: {from: users, to: members, key: id, fields: {name: {from: name}}}
"""
PEOPLE = """
entities:
  people:
    from: people
    to: persons
    key: id
    where: deleted = 0
    fields: {name: {from: name}%s}
    unmapped: {boss: waits, owner: waits, born: waits, city: waits}
"""
FIRST = PEOPLE % "" + USERS
MORE = ", owner_id: {from: owner, ref: users, missing: 'null'}, city: {from: city}"
DEFERRED = ", boss_id: {from: boss, ref: people, missing: 'null'}"
BORN = ", born: {from: born}"
WISHED = PEOPLE % (MORE + DEFERRED) + USERS
ALL = PEOPLE % (MORE + DEFERRED + BORN) + USERS
ROWS = "SELECT p.id, p.name, b.name, m.name, p.born::text, p.city FROM persons p LEFT JOIN persons b ON b.id = p.boss_id LEFT JOIN members m ON m.id = p.owner_id ORDER BY 1"


@pytest.fixture
def cloud(postgres: PostgresServer, postgres_database: Database) -> Iterator[psycopg.Connection[Any]]:
    postgres_database.run(TARGET)
    with postgres.connect(postgres_database.name) as connection:
        yield connection


@pytest.fixture
def job(postgres_database: Database, cloud: Any, tmp_path: Path) -> EngineJob:
    """Loaded with names alone, in batches of two rows; one row lacks a name and is in quarantine."""
    source = sqlite_source(tmp_path / "legacy.db", SOURCE)
    return loaded(EngineJob(str(tmp_path), "job", FIRST, source, postgres_database.socket_dsn, batch_rows=2))


def test_fields_that_waited_come_into_rows_that_are_loaded(job: EngineJob, cloud: psycopg.Connection[Any]) -> None:
    outcome = job.redrive(WISHED)
    assert outcome is not None
    (people,) = outcome.entities
    assert (people.updated, people.inserted, people.quarantined, people.excluded, people.references) == (5, 0, 1, 1, 3)
    assert cloud.execute(ROWS).fetchall() == [
        (1, "Ana", None, "Uma", None, "Rome"), (2, "Bo", "Di", "Vic", None, "Oslo"), (3, "Cy", "Ana", None, None, "Bonn"),
        (4, "Di", "Bo", "Uma", None, "Lima"), (7, "Gus", None, None, None, None),
    ]  # fmt: skip
    found = next(e for e in reconciled(job).entities if e.entity == "people")
    assert (found.read, found.loaded, found.excluded, found.quarantined) == (7, 5, 1, 1)
    assert job.redrive(WISHED) is None


def test_a_row_that_the_new_field_fails_on_stays_and_is_in_quarantine(
    job: EngineJob, cloud: psycopg.Connection[Any]
) -> None:
    outcome = job.redrive(ALL)
    assert outcome is not None
    assert cloud.execute("SELECT key, code FROM packhorse.quarantine ORDER BY 1").fetchall() == [
        ("3", "cast"),
        ("6", "required"),
    ]
    assert cloud.execute("SELECT name, city, born FROM persons WHERE id = 3").fetchall() == [("Cy", "nowhere", None)]
    found = next(e for e in reconciled(job).entities if e.entity == "people")
    assert (found.loaded, found.quarantined) == (4, 2)
    assert any(note.startswith("1 rows in quarantine also stand in the target") for note in found.notes)


def test_what_a_person_edited_meanwhile_stays_and_gets_the_new_fields(
    job: EngineJob, cloud: psycopg.Connection[Any]
) -> None:
    cloud.execute("UPDATE persons SET name = 'Anna' WHERE id = 1")
    outcome = job.redrive(WISHED)
    assert outcome is not None
    assert cloud.execute(ROWS).fetchall()[0] == (1, "Anna", None, "Uma", None, "Rome")
    assert [(row.old_id, row.fields) for row in outcome.kept["people"]] == [("1", "name")]
    reconciled(job)


# -- a `where` that was edited ----------------------------------------------------------------------

NARROWER = FIRST.replace("where: deleted = 0", "where: {deleted: deleted = 0, northern: city <> 'Oslo'}")
NAMES = "SELECT id, name FROM persons ORDER BY 1"


def test_rows_that_an_edited_where_holds_back_leave_and_come_again(
    job: EngineJob, cloud: psycopg.Connection[Any]
) -> None:
    fields = (
        "{name: {from: name}}\n    unmapped: {boss",
        "{name: {sql: upper(name)}, city: {from: city}}\n    unmapped: {boss",
    )
    job.edit(NARROWER.replace(*fields).replace(", city: waits", ""))
    outcome = job.redrive("")
    assert outcome is not None
    (people,) = outcome.entities
    assert (people.updated, people.excluded, people.deleted, people.stayed, people.quarantined) == (3, 3, 2, 0, 1)
    assert cloud.execute(NAMES).fetchall() == [(1, "ANA"), (3, "CY"), (4, "DI")]
    found = next(e for e in reconciled(job).entities if e.entity == "people")
    assert (found.read, found.loaded, found.excluded, found.quarantined) == (7, 3, 3, 1)
    assert found.excluded_by == {"northern": 2, "deleted": 1}
    job.edit(job.latest().plan.replace("city <> 'Oslo'", "1 = 1").replace("deleted = 0", "1 = 1"))
    job.redrive("")
    assert [row[0] for row in cloud.execute(NAMES)] == [1, 2, 3, 4, 5, 7]
    found = next(e for e in reconciled(job).entities if e.entity == "people")
    assert (found.read, found.loaded, found.excluded, found.quarantined) == (7, 6, 0, 1)
    assert job.latest().undo().refused == 0
    assert cloud.execute(NAMES).fetchall() == []


def test_what_a_person_edited_or_refers_to_stays_though_the_plan_leaves_it_out(
    job: EngineJob, cloud: psycopg.Connection[Any]
) -> None:
    cloud.execute("UPDATE persons SET name = 'Anna' WHERE id = 1")
    cloud.execute("INSERT INTO persons (id, name, boss_id) VALUES (900, 'theirs', 2)")
    job.edit(FIRST.replace("where: deleted = 0", "where: id > 3"))
    outcome = job.redrive("")
    assert outcome is not None
    assert [(row.old_id, row.fields) for row in outcome.kept["people"]] == [
        ("1", "(left out by the plan: edited in the target)"),
        ("2", "(left out by the plan: a row of public.persons refers to it)"),
    ]
    assert cloud.execute(NAMES).fetchall() == [
        (1, "Anna"),
        (2, "Bo"),
        (4, "Di"),
        (5, "Ed"),
        (7, "Gus"),
        (900, "theirs"),
    ]
    found = next(e for e in reconciled(job).entities if e.entity == "people")
    assert (found.read, found.loaded, found.excluded, found.quarantined) == (7, 3, 3, 1)
    assert any(note.startswith("2 rows were left as they are") for note in found.notes)


@pytest.mark.parametrize(
    "point",
    [
        "redrive begun", "sync staged", "sync after checkpoint:4", "sync ledger taken:5", "sync rows in:5",
        "sync before commit:5", "sync after commit:5", "sync after checkpoint:5", "sync before completed",
    ],
)  # fmt: skip
def test_killed_while_rows_leave_it_goes_on(job: EngineJob, cloud: psycopg.Connection[Any], point: str) -> None:
    job.edit(NARROWER)
    assert job.redrive_in_child("", point) == -signal.SIGKILL
    assert job.redrive("") is not None
    assert cloud.execute(NAMES).fetchall() == [(1, "Ana"), (3, "Cy"), (4, "Di")]
    found = next(e for e in reconciled(job).entities if e.entity == "people")
    assert (found.read, found.loaded, found.excluded, found.quarantined) == (7, 3, 3, 1)


def test_what_stands_though_the_plan_leaves_it_out_is_told_with_what_takes_it_out(
    job: EngineJob, cloud: psycopg.Connection[Any]
) -> None:
    with sqlite3.connect(job.source.removeprefix("sqlite:///")) as connection:
        connection.execute("UPDATE people SET deleted = 1 WHERE id = 2")
    connection.close()
    job.sync()
    said = "1 rows that the plan leaves out stand in the target: `migrate sync job --deletes delete` takes them out"
    assert said in next(e for e in reconciled(job).entities if e.entity == "people").notes
    job.sync(deletes="delete")
    assert [row[0] for row in cloud.execute(NAMES)] == [1, 3, 4, 7]
    assert said not in next(e for e in reconciled(job).entities if e.entity == "people").notes


def test_an_edited_where_wants_the_right_to_delete(job: EngineJob) -> None:
    with job.running() as ctx:
        found = ctx.target.catalogue()
        some = {n: replace(t, privileges=frozenset({"select", "insert", "update"})) for n, t in found.tables.items()}
        with pytest.raises(CatalogueError, match="needs DELETE") as refused:
            check_edited(ctx.paths, ctx.workspace, parse_plan(NARROWER), ctx.source, replace(found, tables=some))
    assert refused.value.advice.startswith("GRANT DELETE ON persons")


@pytest.mark.parametrize("point", [*REDRIVE_POINTS, *(p for p in SYNC_POINTS if p != "sync begun")])
def test_killed_at_any_place_it_goes_on_where_it_stopped(
    job: EngineJob, cloud: psycopg.Connection[Any], point: str
) -> None:
    assert job.redrive_in_child(WISHED, point) == -signal.SIGKILL
    with pytest.raises(UsageError, match="re-drive"):
        job.sync()
    with pytest.raises(UsageError, match="re-drive"):
        job.latest().load()
    assert job.redrive(WISHED) is not None
    assert [row[3] for row in cloud.execute(ROWS)] == ["Uma", "Vic", None, "Uma", None]
    assert [row[2] for row in cloud.execute(ROWS)] == [None, "Di", "Ana", "Bo", None]
    found = next(e for e in reconciled(job).entities if e.entity == "people")
    assert (found.read, found.loaded, found.excluded, found.quarantined) == (7, 5, 1, 1)


@pytest.mark.parametrize("point", ["redrive begun", "sync staged", "sync after checkpoint"])
def test_a_target_that_is_lost_is_waited_for(point: str, job: EngineJob, cloud: psycopg.Connection[Any]) -> None:
    with lost_at(point, cloud):
        job.redrive(WISHED)
    assert [row[3] for row in cloud.execute(ROWS)] == ["Uma", "Vic", None, "Uma", None]
    reconciled(job)


def test_the_whole_job_can_be_taken_back_afterwards(job: EngineJob, cloud: psycopg.Connection[Any]) -> None:
    job.redrive(WISHED)
    assert job.latest().undo().refused == 0
    assert cloud.execute("SELECT count(*) FROM persons").fetchone() == (0,)
    assert cloud.execute("SELECT count(*) FROM members").fetchone() == (0,)


def test_a_sync_afterwards_brings_the_new_fields_too(job: EngineJob, cloud: psycopg.Connection[Any]) -> None:
    job.redrive(WISHED)
    with sqlite3.connect(job.source.removeprefix("sqlite:///")) as connection:
        connection.execute("UPDATE people SET city = 'Bari' WHERE id = 1")
    connection.close()
    job.sync()
    assert cloud.execute("SELECT city FROM persons WHERE id = 1").fetchone() == ("Bari",)
    reconciled(job)


def test_a_grown_plan_keeps_what_rows_were_loaded_by() -> None:
    before, wished = parse_plan(FIRST), parse_plan(ALL.replace("{name: {from: name}", "{name: {sql: 'upper(name)'}"))
    plan, names = grown_plan(before, wished)
    assert names == ("people",)
    assert plan.entities["people"].fields["name"] == before.entities["people"].fields["name"]
    assert sorted(plan.entities["people"].fields) == ["born", "boss_id", "city", "name", "owner_id"]
    assert plan.entities["people"].unmapped == {}
    assert grown_plan(before, before) == (before, ())
    # a sync refuses a plan that merges, in whichever entity: growing another one would end the command
    merging = parse_plan(FIRST.replace("to: members, key: id,", "to: members, key: id, merge: {same: name},"))
    assert grown_plan(merging, wished) == (merging, ())
