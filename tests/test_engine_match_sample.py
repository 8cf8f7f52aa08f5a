"""Matched rows in the sample that verification compares field by field: what the job filled, and what it had to leave."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest

from connectors.records import Fill
from engine.match_sample import filled_value
from sample_data.servers import Database, PostgresServer
from tests.engine_jobs import EngineJob, reconciled, sqlite_source

SOURCE = """
CREATE TABLE contacts(id integer primary key, name text, email text, rate text, facts text, out text, boss int);
INSERT INTO contacts VALUES (1, 'Ana', 'ana@x.example', '1.5', '{"a": 1}', '1', 2), (2, 'Bo', 'bo@x.example', '2.5', NULL, '0', NULL),
  (3, 'Cy', 'cy@x.example', NULL, '[3]', '0', 1), (4, 'Dan', 'dan@x.example', '4.5', '[]', '0', 3);
"""
TARGET = """
CREATE TABLE people(id uuid PRIMARY KEY DEFAULT gen_random_uuid(), name text, email text, rate double precision, facts json,
  opt_out boolean, boss_id uuid REFERENCES people);
INSERT INTO people (name, email, rate, facts, opt_out) VALUES ('Anna', 'ana@x.example', NULL, '{"z":  1}', false),
  (NULL, 'cy@x.example', 0.1, NULL, false);
"""
PLAN = """
entities:
  contacts:
    from: contacts
    to: people
    key: id
    id: uuid5
    match: {by: email, strictest: {opt_out: true}}
    fields: {name: {from: name}, email: {from: email}, rate: {from: rate}, facts: {from: facts}, opt_out: {from: out},
             boss_id: {from: boss, ref: contacts, missing: 'null'}}
"""
KEPT = "the row was there before the job, and holds something else than it held"


@pytest.fixture
def cloud(postgres: PostgresServer, postgres_database: Database) -> Iterator[psycopg.Connection[Any]]:
    postgres_database.run(TARGET)
    with postgres.connect(postgres_database.name) as connection:
        connection.autocommit = True
        yield connection


@pytest.fixture
def job(postgres_database: Database, tmp_path: Path) -> EngineJob:
    legacy = sqlite_source(tmp_path / "legacy.db", SOURCE)
    return EngineJob(str(tmp_path), "job", PLAN, legacy, postgres_database.socket_dsn, batch_rows=2)


@pytest.mark.parametrize("fill", ["empty", "all", "[rate]", "[name, facts, boss_id]"])
def test_matched_rows_are_compared_by_what_was_to_be_filled(
    job: EngineJob, cloud: psycopg.Connection[Any], fill: str
) -> None:
    cloud.execute("UPDATE people SET boss_id = (SELECT id FROM people WHERE name = 'Anna') WHERE rate = 0.1")
    job = replace(job, plan=PLAN.replace("by: email", f"by: email, fill: {fill}"))
    job.load()
    found = reconciled(job).entities[0]
    assert (found.matched, found.compared) == (2, 4)


# What somebody changes in a matched row, and the one line of the sample; of the first two no checksum tells.
TAMPERED = [
    ("rate = 1.25 WHERE name = 'Anna'", "source key 1, column rate: from character 3 on it holds '25' and the stage gives '5' (4 and 3 characters in all)"),
    ("rate = 0.2 WHERE name = 'Cy'", f"source key 3, column rate: {KEPT}"),
    ("""facts = '{"z": 1}' WHERE name = 'Anna'""", f"source key 1, column facts: {KEPT}"),
    ("facts = '[4]' WHERE name = 'Cy'", "source key 3, column facts: from character 2 on it holds '4]' and the stage gives '3]' (3 and 3 characters in all)"),
    ("name = 'Anne' WHERE name = 'Anna'", f"source key 1, column name: {KEPT}"),
    ("opt_out = false WHERE name = 'Anna'", "source key 1, column opt_out: from character 1 on it holds 'fal' and the stage gives 'tru' (5 and 4 characters in all)"),
    ("boss_id = NULL WHERE name = 'Anna'", "source key 1, column boss_id: is NULL, and the stage gives a value of 36 characters"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "line"), TAMPERED)
def test_a_field_that_differs_is_named(job: EngineJob, cloud: psycopg.Connection[Any], change: str, line: str) -> None:
    job.load()
    reconciled(job)
    assert cloud.execute(f"UPDATE people SET {change}").rowcount == 1
    problems = [each for each in job.verified().entities[0].problems if "column" in each]
    assert [each.split(": ", 1)[1] for each in problems] == [line]


def test_what_a_later_job_fills_is_held_against_what_it_found(job: EngineJob, cloud: psycopg.Connection[Any]) -> None:
    """Not against what the first job found: a person has emptied a field and edited another since."""
    job.load()
    cloud.execute("UPDATE people SET rate = NULL, name = 'Hanna' WHERE name = 'Anna'")
    with sqlite3.connect(job.source.removeprefix("sqlite:///")) as source:
        source.execute("UPDATE contacts SET rate = '9.5', facts = '[9]' WHERE id = 1")
    later = job.named("later")
    later.load()
    assert cloud.execute("SELECT rate FROM people WHERE name = 'Hanna'").fetchone() == (9.5,)
    assert reconciled(later).entities[0].compared == 1
    cloud.execute("UPDATE people SET rate = 9.25 WHERE name = 'Hanna'")
    (problem,) = later.verified().entities[0].problems
    assert "source key 1, column rate: from character 3" in problem


@pytest.mark.parametrize(
    ("rule", "own", "before", "wanted"),
    [
        (Fill("empty"), "a", "b", "b"), (Fill("empty"), "a", None, "a"), (Fill("empty"), None, "b", "b"),
        (Fill("over"), "a", "b", "a"), (Fill("over"), None, "b", "b"), (Fill("keep"), "a", None, None),
        (Fill("empty", True), "true", "false", "true"), (Fill("over", True), "false", "true", "true"),
        (Fill("keep", False), "false", None, "false"), (Fill("keep", False), "true", None, None),
    ],
)  # fmt: skip
def test_what_a_field_holds_then(rule: Fill, own: str | None, before: str | None, wanted: str | None) -> None:
    assert filled_value(rule, own, before) == wanted
