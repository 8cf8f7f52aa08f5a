"""A source that goes on working while it is read, on real servers: rows that come, change and go behind the page at
hand and before it. What one snapshot leaves out, and what an interrupted reading mixes up, a sync brings right."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest

import engine.faults
from engine.load import load
from sample_data.servers import Database, PostgresServer
from tests.engine_jobs import EngineJob, reconciled
from workspace.events import PartStaged, PlanChanged

ROWS = [(n, f"n{n}", f"2024-01-{n:02} 00:00:00") for n in range(10, 30)]
TABLE = "CREATE TABLE t(id int PRIMARY KEY, v varchar(20), at {})"
PLAN = "entities: {t: {from: t, to: t, key: id, fields: {v: {from: v}}, watermark: at}}"
MEANWHILE = """
INSERT INTO t VALUES (1, 'behind', '2024-02-01 00:00:00'), (90, 'before', '2024-02-01 00:00:00');
UPDATE t SET v = 'changed', at = '2024-02-01 00:00:00' WHERE id IN (11, 28);
DELETE FROM t WHERE id IN (12, 27);
"""
HELD = "SELECT id, v FROM t ORDER BY id"


@pytest.fixture(params=["postgres", "mariadb"])
def legacy(request: pytest.FixtureRequest, postgres: PostgresServer) -> Iterator[Database]:
    """A source of 20 rows that can be written to while it is read."""
    if request.param == "mariadb":
        database: Database = request.getfixturevalue("mariadb_database")
        database.run(TABLE.format("datetime"))
    else:
        database = postgres.new_database()
        database.run(TABLE.format("timestamp"))
    database.run("INSERT INTO t VALUES " + ", ".join(map(str, ROWS)))
    yield database
    if request.param == "postgres":
        postgres.drop(database)


@pytest.fixture
def cloud(postgres: PostgresServer, postgres_database: Database) -> Iterator[psycopg.Connection[Any]]:
    postgres_database.run("CREATE TABLE t(id int PRIMARY KEY, v text)")
    with postgres.connect(postgres_database.name) as connection:
        yield connection


@pytest.fixture
def job(legacy: Database, postgres_database: Database, cloud: Any, tmp_path: Path) -> EngineJob:
    made = EngineJob(str(tmp_path), "job", PLAN, legacy.dsn, postgres_database.socket_dsn, batch_rows=4)
    with made.running() as ctx:
        ctx.workspace.record(PlanChanged(1, PLAN, "file"))
    return made


def source_holds(legacy: Database) -> list[tuple[int, str]]:
    return [(int(row[0]), str(row[1])) for row in legacy.rows(HELD)]


def test_a_snapshot_is_loaded_and_a_sync_brings_the_rest(
    job: EngineJob, legacy: Database, cloud: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[str] = []

    def write_meanwhile(place: str) -> None:
        written.append(place)
        if written.count("after stage write") == 2 and place == "after stage write":
            legacy.run(MEANWHILE)

    monkeypatch.setattr(engine.faults, "hook", write_meanwhile)
    with job.running() as ctx:
        load(ctx)
    monkeypatch.undo()
    assert cloud.execute(HELD).fetchall() == [row[:2] for row in ROWS], "the stage is of one instant"
    (verified,) = reconciled(job).entities
    assert verified.counted == len(ROWS)
    (entity,) = job.sync(deletes="delete").entities
    assert (entity.snapshot, entity.new, entity.changed, entity.gone, entity.deleted) == (True, 2, 2, 2, 2)
    assert entity.seen < entity.counted, "the watermark was relied on"
    assert cloud.execute(HELD).fetchall() == source_holds(legacy)
    reconciled(job)


def test_what_an_interrupted_reading_mixed_up_is_told_and_brought_right(
    job: EngineJob, legacy: Database, cloud: psycopg.Connection[Any]
) -> None:
    assert job.load_in_child("after part recorded:3") == -signal.SIGKILL
    legacy.run(MEANWHILE)
    job.load()
    mixed = dict(cloud.execute(HELD).fetchall())
    assert (mixed.get(1), mixed[11], mixed[12]) == (None, "n11", "n12"), "behind the page: as it was"
    assert (mixed[90], mixed[28], mixed.get(27)) == ("before", "changed", None), "before it: as it is now"
    (verified,) = job.verified().entities
    assert verified.problems == (), "as many rows came as went, so that a count can't tell"
    assert "the stage is not of one instant of the source" in " ".join(verified.notes)
    (entity,) = job.sync(deletes="delete", full=True).entities
    assert (entity.new, entity.changed, entity.deleted) == (1, 1, 1)
    assert cloud.execute(HELD).fetchall() == source_holds(legacy)
    reconciled(job)


def test_tables_read_before_and_after_a_kill_are_of_two_instants(
    job: EngineJob, legacy: Database, cloud: psycopg.Connection[Any]
) -> None:
    legacy.run("CREATE TABLE u(id int PRIMARY KEY, t_id int)")
    legacy.run("INSERT INTO u VALUES (1, 12)")
    cloud.execute("CREATE TABLE u(id int PRIMARY KEY, t_id int)")
    plan = f"{PLAN[:-1]}, u: {{from: u, to: u, key: id, after: [t], fields: {{t_id: {{from: t_id}}}}}}}}"
    both = replace(job, plan=plan)
    with both.running() as ctx:
        ctx.workspace.record(PlanChanged(2, plan, "file"))
    # all of t is read, nothing of u: then both come and go
    assert both.load_in_child("before commit:5") == -signal.SIGKILL
    with both.running() as ctx:
        read = {e.event.entity for e in ctx.workspace.events(types=[PartStaged]) if isinstance(e.event, PartStaged)}
    assert read == {"t"}
    legacy.run("INSERT INTO u VALUES (2, 90)")
    both.load()
    noted = {each.entity: " ".join(each.notes) for each in both.verified().entities}
    assert "the stage is not of one instant" in noted["u"], "u refers to a row of t that came after t was read"
