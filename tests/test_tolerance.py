"""A load that sends too many rows to quarantine stops early: between batches, with what explains it, and resumable."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from engine.course import load_on_course
from engine.tolerance import projected
from sample_data.servers import Database, PostgresServer
from tests.cli_runner import migrate_here
from tests.engine_jobs import EngineJob, sqlite_source
from workspace.errors import QuarantinedTooManyError

PLAN = """
entities:
  few: {from: few, to: few, key: id, fields: {born: {from: born}}}
  many: {from: many, to: many, key: id, after: [few], fields: {born: {from: born}}}
"""
TARGET = "CREATE TABLE few(id int PRIMARY KEY, born date NOT NULL); CREATE TABLE many(id int PRIMARY KEY, born date NOT NULL)"


@pytest.mark.parametrize(
    ("held", "read", "rows", "least", "most"),
    [
        (0, 500, 1000, 0, 0),
        (50, 50, 1000, 50, 50),  # a twentieth of its rows tells nothing yet
        (50, 100, 100, 50, 50),  # all are read: what is there is all
        (50, 100, 1000, 300, 450),  # a half, and surely a third
        (10, 20, 100, 20, 35),  # few rows: far from sure
        (5000, 10000, 100_000, 48_000, 50_000),  # many: nearly a half
        (1, 10_000, 100_000, 1, 3),
    ],
)
def test_what_is_to_come_at_the_least(held: int, read: int, rows: int, least: int, most: int) -> None:
    assert least <= projected(held, read, rows) <= most


@pytest.fixture
def cloud(postgres: PostgresServer, postgres_database: Database) -> Iterator[psycopg.Connection[Any]]:
    postgres_database.run(TARGET)
    with postgres.connect(postgres_database.name) as connection:
        yield connection


@pytest.fixture
def job(postgres_database: Database, cloud: psycopg.Connection[Any], tmp_path: Path) -> EngineJob:
    """All of few rows are bad, and of many: a half of the first thousand, none of the other."""
    rows = ", ".join(f"({i}, '{'never' if i % 2 and i < 1000 else '2001-01-01'}')" for i in range(2000))
    script = "CREATE TABLE few(id int PRIMARY KEY, born text); INSERT INTO few VALUES (1, 'x'), (2, 'x'), (3, 'y z');"
    source = sqlite_source(
        tmp_path / "legacy.db",
        f"{script} CREATE TABLE many(id int PRIMARY KEY, born text); INSERT INTO many VALUES {rows};",
    )
    return EngineJob(str(tmp_path), "job", PLAN, source, postgres_database.socket_dsn, batch_rows=50)


@pytest.mark.parametrize(
    ("tolerate", "read", "held"),
    [
        (0.1, 200, 100),  # a tenth of many is enough to tell
        (0.42, 300, 150),  # of more it takes longer to be sure
        (40, 100, 50),  # a number of rows is passed, or it isn't
        (2, 0, 0),
    ],
)
def test_it_stops_between_batches_and_goes_on(
    tolerate: float, read: int, held: int, job: EngineJob, cloud: psycopg.Connection[Any]
) -> None:
    with job.running() as ctx, pytest.raises(QuarantinedTooManyError) as stopped:
        load_on_course(ctx, None, tolerate)
    counted = cloud.execute(
        "SELECT coalesce(sum(read), 0)::int, coalesce(sum(quarantined), 0)::int FROM packhorse.ledger WHERE entity_id = (SELECT id FROM packhorse.entity WHERE name = 'many')"
    )
    assert counted.fetchone() == (read, held)
    if read:
        assert stopped.value.details[0] == f"{held} many: born: cast date: 'a'"
    else:
        assert stopped.value.details == ("2 few: born: cast date: 'a'", "1 few: born: cast date: 'a a'")
    with job.running() as ctx, pytest.raises(QuarantinedTooManyError):  # and again, before a row moves
        load_on_course(ctx, None, tolerate)
    assert cloud.execute("SELECT count(*) FROM packhorse.ledger").fetchone() == (1 + read // 50,)
    with job.running() as ctx:
        outcome = load_on_course(ctx, None, 1000)
    assert (outcome.read, outcome.quarantined) == (2003, 503)
    assert job.verified().ok


def test_one_that_reads_all_ends_in_order(job: EngineJob) -> None:
    """The last batch is the end: there is nothing to stop any more."""
    with job.running() as ctx:
        assert load_on_course(ctx, None, 503).quarantined == 503
    with job.running() as ctx:
        assert load_on_course(ctx, None, 0).quarantined == 503


def test_what_a_person_sees(
    job: EngineJob, cloud: psycopg.Connection[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PACKHORSE_DATA_HOME", str(tmp_path / "data-home"))
    (tmp_path / "plan.yaml").write_text(PLAN)
    stopped = migrate_here(
        "run", job.source, job.target, "--plan", "plan.yaml", "--job", "j", "--tolerate", "2", "--yes"
    )
    assert stopped.code == 3
    lines = stopped.err.splitlines()
    at = next(
        i
        for i, line in enumerate(lines)
        if line.startswith("stopped PH-603: 3 rows are in quarantine, and 2 are tolerated")
    )
    assert lines[at + 1 : at + 3] == ["  2 few: born: cast date: 'a'", "  1 few: born: cast date: 'a a'"]
    status = migrate_here("status", "j", "--json").json
    assert (status["state"], status["progress"]["outcome"]) == ("stopped", "too many in quarantine")
    assert "migrate resume j" in migrate_here("status", "j").out
    assert migrate_here("resume", "j").code == 3
    assert migrate_here("resume", "j", "--tolerate", "0.5").code == 0
    assert migrate_here("resume", "j").code == 0  # what is tolerated is remembered
