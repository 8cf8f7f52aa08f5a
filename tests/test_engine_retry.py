"""Rows of the quarantine driven once more: by the same plan, an edited one, or with edited values; and killed meanwhile.

After each the equation holds by verification's own counts, and by checksums: those of the ledger, all steps of a batch
together, are those of the crosswalk's rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from engine.retry import EntityRetried
from sample_data.servers import Database, PostgresServer
from tests.engine_jobs import EngineJob, sqlite_source
from workspace.log import Workspace
from workspace.paths import JobPaths
from workspace.state import state_at

SOURCE = """
CREATE TABLE firms(id text primary key, name text, parent text, kind text);
INSERT INTO firms VALUES ('a', 'Acme', 'd', 'Client'), ('b', 'Bolt', 'a', 'Odd'), ('c', 'Bolt', NULL, 'Odd'), ('d', 'Dyn', 'b', 'Odd'), ('e', 'Evil', NULL, 'Client'),
  ('f', 'Acme', NULL, 'Client');
CREATE TABLE people(id integer primary key, name text, firm text, born text, deleted int, photo blob);
INSERT INTO people VALUES (1, 'Ana', 'a', '1984-02-29', 0, NULL), (2, 'Bo', 'b', '1990-01-01', 0, x'00ff'), (3, 'Cy', 'd', 'never', 0, NULL),
  (4, 'Di', 'a', 'never', 0, NULL), (5, 'Ed', 'a', '1999-09-09', 1, NULL), (6, 'Flo', 'a', 'gone', 0, NULL);
"""
TARGET = """
CREATE TYPE kind AS ENUM ('customer', 'other');
CREATE TABLE companies(id uuid primary key, name text UNIQUE CHECK (name <> 'Evil'), parent_id uuid REFERENCES companies, kind kind);
CREATE TABLE persons(id bigint GENERATED ALWAYS AS IDENTITY primary key, name text, company_id uuid NOT NULL REFERENCES companies, born date, photo bytea);
"""
PLAN = """
entities:
  people:
    from: people
    to: persons
    key: id
    id: sequence
    where: deleted = 0
    fields: {name: {from: name}, company_id: {from: firm, ref: firms}, born: {from: born}, photo: {from: photo}}
  firms:
    from: firms
    to: companies
    key: id
    id: uuid5
    fields: {name: {from: name}, parent_id: {from: parent, ref: firms, missing: 'null'}, kind: {from: kind, map: kinds}}
value_maps:
  kinds: {Client: customer}
"""
MENDED = PLAN.replace("{Client: customer}", "{Client: customer, Odd: other}")
HELD = "SELECT e.name, q.key, q.code, q.signature, q.status FROM packhorse.quarantine q JOIN packhorse.entity e ON e.id = q.entity_id ORDER BY 1, q.row"
FIRMS = "SELECT c.name, p.name, c.kind::text FROM companies c LEFT JOIN companies p ON p.id = c.parent_id ORDER BY 1"
SUMS = """
WITH l AS (SELECT entity_id, batch, sum(checksum) AS c FROM packhorse.ledger GROUP BY 1, 2),
x AS (SELECT entity_id, batch, sum(('x' || substr(replace(target_hash::text, '-', ''), 18, 15))::bit(60)::bigint) AS c FROM packhorse.crosswalk GROUP BY 1, 2)
SELECT count(*) FROM l FULL JOIN x USING (entity_id, batch) WHERE coalesce(l.c, 0) <> coalesce(x.c, 0)
"""


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
    """Loaded, in batches of two rows: 4 firms and 4 people are in quarantine."""
    made = EngineJob(str(tmp_path), "job", PLAN, legacy, postgres_database.socket_dsn, batch_rows=2)
    made.load()
    return made


def holds(job: EngineJob, cloud: psycopg.Connection[Any]) -> None:
    """Asserts that verification finds nothing, and that the ledger's checksums are the crosswalk's."""
    found = job.verified()
    assert found.ok, [e.problems for e in found.entities]
    assert cloud.execute(SUMS).fetchone() == (0,)
    with Workspace.open(JobPaths(Path(job.base), job.name)) as workspace:
        progress = state_at(workspace).progress
    for entity in found.entities:
        counts = progress.entities[entity.entity].counts
        assert (counts.read, counts.loaded, counts.excluded, counts.quarantined) == (
            entity.read, entity.loaded, entity.excluded, entity.quarantined,
        )  # fmt: skip
        failures = progress.entities[entity.entity].failures.values()
        assert sum(f.count for f in failures) == entity.quarantined
        assert sum(f.dropped for f in failures) == entity.dropped


def test_a_plan_change_brings_in_just_the_rows_concerned(job: EngineJob, cloud: psycopg.Connection[Any]) -> None:
    before = cloud.execute(HELD).fetchall()
    assert [row[:3] for row in before] == [
        ("firms", "b", "map"), ("firms", "c", "map"), ("firms", "d", "map"), ("firms", "e", "check"), ("firms", "f", "unique"),
        ("people", "2", "reference"), ("people", "3", "reference"), ("people", "4", "cast"), ("people", "6", "cast"),
    ]  # fmt: skip
    loaded = cloud.execute("SELECT id, xmin FROM companies").fetchall()
    outcome = job.retry(MENDED)
    assert outcome.plan_version == 2
    assert outcome.changed == {"firms": ["kind"]}
    assert outcome.entities == (
        EntityRetried("firms", driven=5, inserted=2, stay=3, references=2),
        EntityRetried("people", driven=4, inserted=1, stay=3),
    )
    assert cloud.execute(FIRMS).fetchall() == [
        ("Acme", None, "customer"), ("Bolt", "Acme", "other"), ("Dyn", "Bolt", "other")
    ]  # fmt: skip
    assert set(loaded) <= set(cloud.execute("SELECT id, xmin FROM companies").fetchall()), "a loaded row was touched"
    assert [row[:3] for row in cloud.execute(HELD)] == [
        ("firms", "c", "unique"), ("firms", "e", "check"), ("firms", "f", "unique"), ("people", "3", "cast"), ("people", "4", "cast"), ("people", "6", "cast"),
    ]  # fmt: skip
    holds(job, cloud)
