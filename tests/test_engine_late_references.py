"""A row whose parent was in quarantine when it was loaded gets its reference once the parent comes in, by whichever
command; killed meanwhile, edited meanwhile, taken back."""

from __future__ import annotations

import signal
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

import engine.late_references
from engine.retry import EntityRetried
from sample_data.servers import Database, PostgresServer
from tests.engine_jobs import EngineJob, lost_at, reconciled, sqlite_source
from tests.test_engine_retry import SUMS, loaded

SOURCE = """
CREATE TABLE firms(id text primary key, name text, parent text, kind text);
INSERT INTO firms VALUES ('a', 'Acme', 'd', 'Client'), ('b', 'Bolt', NULL, 'Client'), ('c', 'Cox', 'a', 'Client'), ('d', 'Dyn', 'b', 'Odd'), ('e', 'Eva', NULL, 'Mad');
CREATE TABLE people(id integer primary key, name text, firm text, second text, boss integer);
INSERT INTO people VALUES (1, 'Ana', 'd', 'a', NULL), (2, 'Bo', 'a', 'd', 1), (3, 'Cy', 'd', 'd', 2), (4, 'Di', 'e', 'b', NULL), (5, 'Ed', NULL, NULL, NULL), (6, 'Flo', 'D ', 'e', 5);
"""
TARGET = """
CREATE TABLE companies(id uuid primary key, name text, parent_id uuid REFERENCES companies, kind text);
CREATE TABLE persons(id bigint GENERATED ALWAYS AS IDENTITY primary key, name text, company_id uuid REFERENCES companies, second_id uuid REFERENCES companies,
  boss_id bigint REFERENCES persons, phone text);
"""
PLAN = """
entities:
  firms:
    from: firms
    to: companies
    key: id
    id: uuid5
    fields: {name: {from: name}, parent_id: {from: parent, ref: firms, missing: 'null'}, kind: {from: kind, map: kinds}}
  people:
    from: people
    to: persons
    key: id
    id: sequence
    fields:
      name: {from: name}
      company_id: {from: firm, ref: firms, missing: 'null'}
      second_id: {from: second, ref: firms, missing: 'null'}
      boss_id: {from: boss, ref: people, missing: 'null'}
value_maps:
  kinds: {Client: customer}
"""
MENDED = PLAN.replace("{Client: customer}", "{Client: customer, Odd: other}")
PEOPLE = """
SELECT p.name, f.name, s.name, b.name FROM persons p LEFT JOIN companies f ON f.id = p.company_id LEFT JOIN companies s ON s.id = p.second_id
  LEFT JOIN persons b ON b.id = p.boss_id ORDER BY 1
"""
FIRMS = "SELECT c.name, p.name FROM companies c LEFT JOIN companies p ON p.id = c.parent_id ORDER BY 1"
WHOLE = [
    ("Ana", "Dyn", "Acme", None), ("Bo", "Acme", "Dyn", "Ana"), ("Cy", "Dyn", "Dyn", "Bo"), ("Di", None, "Bolt", None), ("Ed", None, None, None),
    ("Flo", None, None, "Ed"),
]  # fmt: skip
WHOLE_FIRMS = [("Acme", "Dyn"), ("Bolt", None), ("Cox", "Acme"), ("Dyn", "Bolt")]
STEPS = "SELECT count(*) FROM packhorse.ledger"


@pytest.fixture(scope="module")
def legacy(tmp_path_factory: pytest.TempPathFactory) -> str:
    return sqlite_source(tmp_path_factory.mktemp("legacy") / "legacy.db", SOURCE)


@pytest.fixture
def cloud(postgres: PostgresServer, postgres_database: Database) -> Iterator[psycopg.Connection[Any]]:
    postgres_database.run(TARGET)
    with postgres.connect(postgres_database.name) as connection:
        yield connection


@pytest.fixture
def job(legacy: str, postgres_database: Database, cloud: Any, tmp_path: Path) -> EngineJob:
    """Loaded, in batches of two rows: two firms are in quarantine, and what refers to them is in without."""
    made = loaded(EngineJob(str(tmp_path), "job", PLAN, legacy, postgres_database.socket_dsn, batch_rows=2))
    assert [row[1:3] for row in cloud.execute(PEOPLE)] == [
        (None, "Acme"), ("Acme", None), (None, None), (None, "Bolt"), (None, None), (None, None)
    ]  # fmt: skip
    return made


def holds(job: EngineJob, cloud: psycopg.Connection[Any]) -> None:
    """Asserts that all that may refer does, that verification finds nothing, and that the checksums agree."""
    assert cloud.execute(PEOPLE).fetchall() == WHOLE
    assert cloud.execute(FIRMS).fetchall() == WHOLE_FIRMS
    reconciled(job)
    assert cloud.execute(SUMS).fetchone() == (0,)


def test_a_parent_that_a_retry_brings_in_is_referred_to(job: EngineJob, cloud: psycopg.Connection[Any]) -> None:
    before = dict(cloud.execute("SELECT name, xmin FROM persons").fetchall())
    outcome = job.retry(MENDED)
    assert outcome.entities == (
        EntityRetried("firms", driven=2, inserted=1, stay=1, references=2),
        EntityRetried("people", references=3),
    )
    holds(job, cloud)
    after = dict(cloud.execute("SELECT name, xmin FROM persons").fetchall())
    assert {name for name in after if after[name] != before[name]} == {"Ana", "Bo", "Cy"}


def test_nothing_is_asked_or_written_where_nothing_is_lacking(
    job: EngineJob, cloud: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    job.retry(MENDED)
    monkeypatch.setattr(engine.late_references, "_empty", None)  # the crosswalk alone tells
    job.retry()
    steps = cloud.execute(STEPS).fetchone()
    outcome = job.retry(entity="people")
    assert [e.references for e in outcome.entities] == []
    assert cloud.execute(STEPS).fetchone() == steps


def test_rows_that_somebody_edited_keep_what_they_hold(job: EngineJob, cloud: psycopg.Connection[Any]) -> None:
    cloud.execute("UPDATE persons SET name = 'Anna' WHERE name = 'Ana'")
    cloud.execute("UPDATE persons SET second_id = company_id WHERE name = 'Bo'")
    cloud.execute("UPDATE companies SET parent_id = (SELECT id FROM companies WHERE name = 'Cox') WHERE name = 'Acme'")
    cloud.execute("UPDATE persons SET phone = '1' WHERE name = 'Cy'")  # a column that the job doesn't write
    job.retry(MENDED)
    assert cloud.execute(PEOPLE).fetchall()[:3] == [
        ("Anna", None, "Acme", None), ("Bo", "Acme", "Acme", "Anna"), ("Cy", "Dyn", "Dyn", "Bo")
    ]  # fmt: skip
    assert cloud.execute(FIRMS).fetchall()[0] == ("Acme", "Cox")
    assert cloud.execute(SUMS).fetchone() == (0,)
    changed = {e.entity: [str(p) for p in e.problems] for e in job.latest().verified().entities}
    assert any("1 rows" in p or "2 rows" in p for p in changed["people"]), (
        "an edit must still be told from what was written"
    )


@pytest.mark.parametrize(
    "point",
    ["retry between passes", *(f"retry {at}:{n}" for at in ("before commit", "after commit") for n in range(2, 6))],
)
def test_killed_at_any_place_the_next_command_goes_on(
    job: EngineJob, cloud: psycopg.Connection[Any], point: str
) -> None:
    assert job.retry_in_child(point, MENDED) == -signal.SIGKILL
    job.latest().retry(MENDED)
    holds(job, cloud)


def test_a_target_that_is_lost_is_waited_for(job: EngineJob, cloud: psycopg.Connection[Any]) -> None:
    with lost_at("retry after commit", cloud):
        job.retry(MENDED)
    holds(job, cloud)


def test_the_whole_job_can_be_taken_back_afterwards(job: EngineJob, cloud: psycopg.Connection[Any]) -> None:
    job.retry(MENDED)
    assert job.latest().undo().refused == 0
    assert cloud.execute("SELECT (SELECT count(*) FROM persons), (SELECT count(*) FROM companies)").fetchone() == (0, 0)


def test_a_sync_afterwards_takes_none_of_it_for_an_edit(
    job: EngineJob, cloud: psycopg.Connection[Any], tmp_path: Path
) -> None:
    job.retry(MENDED)
    with sqlite3.connect(job.source.removeprefix("sqlite:///")) as connection:
        connection.execute("UPDATE people SET name = 'Anne' WHERE id = 1")
    connection.close()
    try:
        outcome = job.latest().sync()
        assert outcome.kept == {}
        assert cloud.execute(PEOPLE).fetchall()[0] == ("Anne", "Dyn", "Acme", None)
        reconciled(job.latest())
    finally:
        with sqlite3.connect(job.source.removeprefix("sqlite:///")) as connection:
            connection.execute("UPDATE people SET name = 'Ana' WHERE id = 1")
        connection.close()


def test_rows_of_an_earlier_job_are_left_to_it(job: EngineJob, cloud: psycopg.Connection[Any]) -> None:
    second = loaded(job.named("second"))
    second.retry(MENDED)
    # the second job loaded nothing of it but the firm that came in
    assert cloud.execute(PEOPLE).fetchall()[0] == ("Ana", None, "Acme", None)
    reconciled(second)


CHAIN = """
entities:
  firms: {from: firms, to: companies, key: id, id: uuid5, fields: {name: {from: name}}}
  people:
    from: people
    to: persons
    key: id
    id: sequence
    fields: {name: {from: name}, company_id: {from: firm, ref: firms}, boss_id: {from: boss, ref: people, missing: 'null'}}
"""


@pytest.mark.parametrize("point", ["", "sync between passes", "sync before completed"])
def test_a_sync_that_lets_a_parent_in_is_the_same(
    postgres_database: Database, cloud: psycopg.Connection[Any], tmp_path: Path, point: str
) -> None:
    """Ana waits in quarantine for her firm, and Bo, whose boss she is, is in without her."""
    people = "CREATE TABLE people(id integer primary key, name text, firm text, boss integer);"
    firms = "CREATE TABLE firms(id text primary key, name text); INSERT INTO firms VALUES ('a', 'Acme');"
    rows = "INSERT INTO people VALUES (1, 'Ana', 'd', NULL), (2, 'Bo', 'a', 1), (3, 'Cy', 'a', 2);"
    source = sqlite_source(tmp_path / "chain.db", people + firms + rows)
    job = loaded(EngineJob(str(tmp_path), "job", CHAIN, source, postgres_database.socket_dsn, batch_rows=2))
    bosses = "SELECT p.name, b.name FROM persons p LEFT JOIN persons b ON b.id = p.boss_id ORDER BY 1"
    assert cloud.execute(bosses).fetchall() == [("Bo", None), ("Cy", "Bo")]
    with sqlite3.connect(tmp_path / "chain.db") as connection:
        connection.execute("INSERT INTO firms VALUES ('d', 'Dyn')")
    connection.close()
    if point:
        assert job.sync_in_child(point) == -signal.SIGKILL
    job.sync()
    assert cloud.execute(bosses).fetchall() == [("Ana", None), ("Bo", "Ana"), ("Cy", "Bo")]
    reconciled(job)
    assert job.latest().undo().refused == 0
