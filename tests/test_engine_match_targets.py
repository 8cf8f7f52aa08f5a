"""Rows already there, met by what a target is like in earnest: people at work in it, other jobs, odd types and names."""

from __future__ import annotations

import signal
import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import sql

from sample_data.servers import Database, PostgresServer
from tests.engine_jobs import EngineJob, copied, reconciled, records, sqlite_source

SOURCE = """
CREATE TABLE contacts(id integer primary key, name text, email text, phone text, rate text, extra text, boss int);
INSERT INTO contacts VALUES
  (1, 'Ana', 'ana@x.example', '111', '1.5', '{"a": 1}', 2),
  (2, 'Bo',  'bo@x.example',  '222', '2.5', '{"b":2}',  NULL),
  (3, 'Cy',  'cy@x.example',  '333', NULL,  NULL,       1),
  (4, 'Dan', 'dan@x.example', '444', NULL,  NULL,       NULL);
"""
TARGET = """
CREATE TABLE people(id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, "na%me" varchar(40), "E Mail" text, phone text,
  rate double precision, extra json, boss_id bigint REFERENCES people, seen timestamptz DEFAULT '2020-01-01+00', tags text[]);
INSERT INTO people ("na%me", "E Mail", phone, rate, extra, tags) VALUES
  ('Anna', 'ana@x.example', NULL, 0.1, '{"z":  [1, 2],  "z": 3}', '{a,"b c"}'), ('Zed', 'zed@x.example', NULL, NULL, NULL, NULL),
  (NULL, 'cy@x.example', '999', NULL, NULL, NULL);
"""
PLAN = """
entities:
  contacts:
    from: contacts
    to: people
    key: id
    id: sequence
    match: {by: "E Mail"}
    fields:
      "na%me": {from: name}
      "E Mail": {from: email}
      phone: {from: phone}
      rate: {from: rate}
      extra: {from: extra}
"""
LOOK = sql.SQL("""SELECT "E Mail", "na%me", phone, rate, extra FROM people""")


def people(connection: psycopg.Connection[Any]) -> dict[str, list[str]]:
    rows = [row.split("\t") for row in copied(connection, LOOK).splitlines()]
    return {row[0]: row[1:] for row in rows}


@pytest.fixture
def legacy(tmp_path: Path) -> str:
    return sqlite_source(tmp_path / "legacy.db", SOURCE)


@pytest.fixture
def cloud(postgres: PostgresServer, postgres_database: Database) -> Iterator[psycopg.Connection[Any]]:
    postgres_database.run(TARGET)
    with postgres.connect(postgres_database.name) as connection:
        connection.autocommit = True
        yield connection


@pytest.fixture
def job(legacy: str, postgres_database: Database, tmp_path: Path) -> EngineJob:
    return EngineJob(str(tmp_path), "job", PLAN, legacy, postgres_database.socket_dsn, batch_rows=2)


def test_odd_names_and_types(job: EngineJob, cloud: psycopg.Connection[Any]) -> None:
    before = records(cloud)
    job.load()
    reconciled(job)
    assert people(cloud)["ana@x.example"] == ["Anna", "111", "0.1", '{"z":  [1, 2],  "z": 3}']
    assert people(cloud)["cy@x.example"] == ["Cy", "999", "\\N", "\\N"]
    assert job.undo().refused == 0
    after = records(cloud)
    assert {n: r for n, r in after.items() if "_seq" not in n} == {n: r for n, r in before.items() if "_seq" not in n}


def test_an_edit_between_decision_and_batch_stays(job: EngineJob, cloud: psycopg.Connection[Any]) -> None:
    assert job.load_in_child("after checkpoint:1") == -signal.SIGKILL
    cloud.execute("""UPDATE people SET rate = 4.25, phone = NULL, "na%me" = 'Cyd', seen = now() WHERE id = 3""")
    job.load()
    assert people(cloud)["cy@x.example"] == ["Cyd", "333", "4.25", "\\N"]
    reconciled(job)


@pytest.mark.parametrize("edit", ["'zoe@x.example'", "NULL", "''"])
def test_a_row_that_no_longer_fits_when_its_batch_comes(
    job: EngineJob, cloud: psycopg.Connection[Any], edit: str
) -> None:
    """It is somebody else's by now: nothing is written into it, and nobody is there twice."""
    assert job.load_in_child("after checkpoint:1") == -signal.SIGKILL
    cloud.execute(sql.SQL("""UPDATE people SET "E Mail" = {} WHERE id = 3""").format(sql.SQL(edit)))
    before = cloud.execute("SELECT p::text FROM people p WHERE id = 3").fetchall()
    job.load()
    found = reconciled(job)
    assert cloud.execute("SELECT p::text FROM people p WHERE id = 3").fetchall() == before
    assert cloud.execute("SELECT key, code FROM packhorse.quarantine").fetchall() == [("3", "match")]
    assert found.entities[0].matched == 1
    assert "cy@x.example" not in people(cloud)


OURS = [
    "n",
    "outcome",
    "known",
    "fields",
    "detail",
    "unchanged",
    "rung",
    "fits",
    "new_id",
    "key",
    "k0",
    "deleted",
    "old_id",
]


@pytest.mark.parametrize("by", [["n"], ["fields", "outcome"], ["k0", "key"], ["new_id", "fits"]])
def test_columns_that_have_names_of_ours(
    tmp_path: Path, postgres_database: Database, postgres: PostgresServer, by: list[str]
) -> None:
    columns = ", ".join(f"{name} text" for name in OURS)
    values = ", ".join(f"'{name} 1'" for name in OURS)
    source = sqlite_source(
        tmp_path / "ours.db",
        f"CREATE TABLE rows(id integer primary key, {columns}, more text); INSERT INTO rows VALUES (1, {values}, 'new');"
        f"INSERT INTO rows(id, n) VALUES (2, 'two')",
    )
    postgres_database.run(
        f"CREATE TABLE rows(id bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY, {columns}, more text, UNIQUE ({', '.join(by)}));"
        f"INSERT INTO rows({', '.join(OURS)}) VALUES ({values})"
    )
    fields = "".join(f"\n      {name}: {{from: {name}}}" for name in [*OURS, "more"])
    plan = f"entities:\n  rows:\n    from: rows\n    to: rows\n    key: id\n    id: sequence\n    match: {{by: {by}}}\n    fields:{fields}\n"
    job = EngineJob(str(tmp_path), "job", plan, source, postgres_database.socket_dsn)
    job.load()
    assert reconciled(job).entities[0].matched == 1
    with postgres.connect(postgres_database.name) as connection:
        listed = sql.SQL("SELECT {} FROM rows").format(sql.SQL(", ").join(map(sql.Identifier, [*OURS, "more"])))
        rows = copied(connection, listed).splitlines()
    assert len(rows) == 2
    assert "\t".join([*(f"{name} 1" for name in OURS), "new"]) in rows


def test_a_row_gone_between_decision_and_batch(job: EngineJob, cloud: psycopg.Connection[Any]) -> None:
    assert job.load_in_child("after checkpoint:1") == -signal.SIGKILL
    cloud.execute("DELETE FROM people WHERE id = 3")
    job.load()
    reconciled(job)
    assert "cy@x.example" not in people(cloud)
    assert cloud.execute("SELECT key, code FROM packhorse.quarantine").fetchall() == [("3", "match")]


def test_a_later_job_fills_what_came_since_and_no_more(
    job: EngineJob, cloud: psycopg.Connection[Any], legacy: str
) -> None:
    job.load()
    cloud.execute("UPDATE people SET phone = '888' WHERE id = 1")
    before = records(cloud)
    with sqlite3.connect(legacy.removeprefix("sqlite:///")) as source:
        source.execute("UPDATE contacts SET name = 'Ana B', phone = '112', rate = '9' WHERE id = 1")
        source.execute("UPDATE contacts SET rate = '7', extra = '{\"n\": 0}' WHERE id = 3")
    later = job.named("later")
    later.load()
    assert people(cloud)["ana@x.example"] == ["Anna", "888", "0.1", '{"z":  [1, 2],  "z": 3}']
    assert people(cloud)["cy@x.example"] == ["Cy", "999", "7", '{"n": 0}']
    reconciled(later)
    assert later.undo().refused == 0
    assert {n: r for n, r in records(cloud).items() if "_seq" not in n} == {
        n: r for n, r in before.items() if "_seq" not in n
    }


def test_a_row_of_another_source_counts_as_there_before(
    job: EngineJob, cloud: psycopg.Connection[Any], tmp_path: Path
) -> None:
    other = sqlite_source(tmp_path / "other.db", SOURCE.replace("(4, 'Dan', 'dan@x", "(40, 'Eve', 'bo@x"))
    job.load()
    second = replace(job.named("second"), source=other, source_name="other")
    second.load()
    emails = [row.split("\t")[0] for row in copied(cloud, LOOK).splitlines()]
    assert sorted(emails) == ["ana@x.example", "bo@x.example", "cy@x.example", "dan@x.example", "zed@x.example"]
    assert second.undo().refused == 0


def test_a_new_source_row_for_a_row_matched_by_an_earlier_job(
    job: EngineJob, cloud: psycopg.Connection[Any], legacy: str
) -> None:
    job.load()
    with sqlite3.connect(legacy.removeprefix("sqlite:///")) as source:
        source.execute("INSERT INTO contacts (id, name, email) VALUES (9, 'Ann', 'ana@x.example')")
    later = job.named("later")
    later.load()
    emails = [row.split("\t")[0] for row in copied(cloud, LOOK).splitlines()]
    assert emails.count("ana@x.example") == 1
    reconciled(later)


def test_two_entities_of_one_job_into_one_table(job: EngineJob, cloud: psycopg.Connection[Any]) -> None:
    """What the job itself wrote a moment ago was not there before."""
    plan = PLAN + PLAN.split("entities:")[1].replace("contacts:\n", "again:\n    after: [contacts]\n", 1)
    job = replace(job, plan=plan)
    job.load()
    assert [row.split("\t")[0] for row in copied(cloud, LOOK).splitlines()].count("bo@x.example") == 2


WITH_BOSS = PLAN + "      boss_id: {from: boss, ref: contacts, missing: 'null'}\n"


@pytest.mark.parametrize("fault", ["", "after commit:2", "between passes:1", "after commit:4"])
def test_references_within_the_entity(job: EngineJob, cloud: psycopg.Connection[Any], fault: str) -> None:
    cloud.execute("UPDATE people SET boss_id = 2 WHERE id = 3")
    before = records(cloud)
    job = replace(job, plan=WITH_BOSS)
    if fault:
        assert job.load_in_child(fault) == -signal.SIGKILL
    else:
        job.load()
    if fault:
        job.load()
    reconciled(job)
    bosses = dict(
        cloud.execute('SELECT p."E Mail", b."E Mail" FROM people p LEFT JOIN people b ON b.id = p.boss_id').fetchall()
    )
    assert bosses["ana@x.example"] == "bo@x.example"
    assert bosses["cy@x.example"] == "zed@x.example"
    assert job.undo().refused == 0
    assert {n: r for n, r in records(cloud).items() if "_seq" not in n} == {
        n: r for n, r in before.items() if "_seq" not in n
    }


def test_taken_back_between_the_passes(job: EngineJob, cloud: psycopg.Connection[Any]) -> None:
    cloud.execute("UPDATE people SET boss_id = 2 WHERE id = 3")
    before = records(cloud)
    job = replace(job, plan=WITH_BOSS)
    assert job.load_in_child("between passes:1") == -signal.SIGKILL
    assert job.undo().refused == 0
    assert {n: r for n, r in records(cloud).items() if "_seq" not in n} == {
        n: r for n, r in before.items() if "_seq" not in n
    }
