"""What a plan leaves out on purpose: counted by the first condition that holds a row back, and kept whole in the
archive, however often the job is killed.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pyarrow.parquet as pq
import pytest

from engine.plan import dump_plan, load_plan, parse_plan
from sample_data.servers import Database, PostgresServer
from tests.cli_runner import migrate, migrate_here
from tests.engine_jobs import EngineJob, load_and_verify, sqlite_source
from workspace.errors import PlanError, UsageError
from workspace.log import Workspace
from workspace.paths import JobPaths
from workspace.state import state_at

SOURCE = """
CREATE TABLE contacts(id integer primary key, name text, deleted text, entered text, photo blob);
INSERT INTO contacts VALUES (1, 'Ana', '0', '2020-01-01', x'00ff'), (2, 'Bo', '1', '2020-01-01', NULL), (3, 'Cy', '0', '2001-01-01', NULL),
  (4, 'Di', NULL, '2001-01-01', x'41'), (5, 'Ed', '0', NULL, NULL), (6, 'Evil', '0', '2021-01-01', NULL), (7, NULL, '1', '2001-01-01', NULL);
"""
TARGET = "CREATE TABLE people(id int PRIMARY KEY, name text CHECK (name <> 'Evil'))"
PLAN = """
{archive}
entities:
  contacts:
    from: contacts
    to: people
    key: id
    where:
      deleted: deleted = '0'
      before 2018: entered >= '2018-01-01'
    fields: {{name: {{from: name}}}}
"""
LEFT_OUT = [("2", "deleted"), ("3", "before 2018"), ("4", "deleted"), ("5", "before 2018"), ("7", "deleted")]


@pytest.fixture
def cloud(postgres: PostgresServer, postgres_database: Database) -> Iterator[psycopg.Connection[Any]]:
    postgres_database.run(TARGET)
    with postgres.connect(postgres_database.name) as connection:
        yield connection


@pytest.fixture
def job(postgres_database: Database, cloud: psycopg.Connection[Any], tmp_path: Path) -> EngineJob:
    source = sqlite_source(tmp_path / "legacy.db", SOURCE)
    plan = PLAN.format(archive=f"archive: {tmp_path}/kept/here")
    return EngineJob(str(tmp_path), "job", plan, source, postgres_database.socket_dsn, batch_rows=2)


def archived(folder: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for file in sorted(folder.rglob("*.parquet")):
        assert file.stat().st_mode & 0o777 == 0o600
        rows += pq.read_table(file).to_pylist()
    return rows


def told(job: EngineJob) -> dict[str, int]:
    with Workspace.open(JobPaths(Path(job.base), job.name)) as workspace:
        return dict(state_at(workspace).progress.entities["contacts"].excluded_by)


@pytest.mark.parametrize(
    ("where", "says"),
    [
        ("{}", "needs one"),
        ("{a: ''}", "needs one, and each its condition"),
        ("{'': deleted = '0'}", "can't be a condition's name"),
        ("{'a\\tb': x}", "can't be a condition's name"),
        ("[deleted]", "where"),
    ],
)
def test_conditions_that_are_none(where: str, says: str) -> None:
    with pytest.raises(PlanError, match=says):
        parse_plan(f"entities: {{a: {{from: a, to: b, key: id, where: {where}}}}}")


def test_a_plan_with_conditions_reads_back_equal() -> None:
    plan = parse_plan(PLAN.format(archive="archive: /kept"))
    assert parse_plan(dump_plan(plan)) == plan
    assert plan.entities["contacts"].conditions == {
        "deleted": "deleted = '0'",
        "before 2018": "entered >= '2018-01-01'",
    }


def test_an_archive_is_relative_to_the_plans_file(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "plan.yaml").write_text(PLAN.format(archive="archive: kept"))
    assert load_plan(tmp_path / "sub" / "plan.yaml").archive == str(tmp_path / "sub" / "kept")


@pytest.mark.parametrize(
    "kill", ["", "after transform:2", "after ledger taken:2", "before commit:2", "after commit:2", "after commit:4"]
)
def test_each_row_left_out_is_counted_and_kept_once(kill: str, job: EngineJob, tmp_path: Path) -> None:
    if kill:
        assert job.load_in_child(kill) == -9
    load_and_verify(job)
    folder = tmp_path / "kept" / "here"
    rows = archived(folder)
    assert [(row["_ph_key"], row["_ph_reason"]) for row in rows] == LEFT_OUT
    assert rows[2] == {
        "id": "4",
        "name": "Di",
        "deleted": None,
        "entered": "2001-01-01",
        "photo": b"A",
        "_ph_n": 3,
        "_ph_key": "4",
        "_ph_reason": "deleted",
    }
    assert {each.stat().st_mode & 0o777 for each in (folder, folder.parent, folder / "job" / "contacts")} == {0o700}
    assert list(folder.rglob("*.writing")) == []
    assert told(job) == {"deleted": 3, "before 2018": 2}
    found = job.verified()
    assert (found.ok, found.entities[0].excluded_by) == (True, {"deleted": 3, "before 2018": 2})


def test_a_row_that_a_retry_leaves_out_is_kept_too(
    job: EngineJob, cloud: psycopg.Connection[Any], tmp_path: Path
) -> None:
    job.load()
    assert cloud.execute("SELECT key FROM packhorse.quarantine").fetchall() == [("6",)]
    stricter = PLAN.format(archive="archive: elsewhere").replace(
        "entered >= '2018-01-01'", "entered >= '2018-01-01'\n      evil: name <> 'Evil'"
    )
    assert job.retry_in_child("retry before commit", stricter) == -9
    assert job.retry(stricter).entities[0].excluded == 1
    found = job.verified()
    assert (found.ok, found.entities[0].excluded_by) == (True, {"deleted": 3, "before 2018": 2, "evil": 1}), found
    assert sorted((row["_ph_key"], row["_ph_reason"]) for row in archived(tmp_path / "kept")) == sorted(
        [*LEFT_OUT, ("6", "evil")]
    )
    assert not (tmp_path / "elsewhere").exists()  # a job keeps the archive that it began with


def test_verify_sees_what_the_archive_lacks(job: EngineJob, tmp_path: Path) -> None:
    job.load()
    files = sorted((tmp_path / "kept" / "here" / "job" / "contacts").iterdir())
    files[0].unlink()
    assert job.verified().entities[0].problems == ("the archive holds 2 rows that 'deleted' left out, counted 3",)


def test_an_archive_that_cannot_be_made_moves_nothing(
    job: EngineJob, cloud: psycopg.Connection[Any], tmp_path: Path
) -> None:
    (tmp_path / "kept").write_text("a file")
    with pytest.raises(UsageError, match="archive"):
        job.load()
    assert cloud.execute("SELECT count(*) FROM people").fetchone() == (0,)


def test_a_person_sees_the_reasons(job: EngineJob, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PACKHORSE_DATA_HOME", str(tmp_path / "data-home"))
    (tmp_path / "plan.yaml").write_text(PLAN.format(archive=""))
    command = ("run", job.source, job.target, "--plan", "plan.yaml", "--job", "j", "--tolerate", "100", "--yes")
    dry = migrate_here(*command, "--dry-run")
    assert "3 excluded: deleted" in dry.out, dry
    assert migrate_here("preview", "j", "--json").json["entities"][0]["excluded_by"] == {"deleted": 3, "before 2018": 2}
    line = "contacts: excluded: 3 deleted, 2 before 2018"
    killed = migrate(
        *command, cwd=tmp_path, env={"PACKHORSE_FAULT": "after commit"}
    )  # the log learns of it by what is left
    assert killed.code == -9
    assert line in migrate_here("resume", "j").out
    assert migrate_here("status", "j", "--json").json["progress"]["entities"]["contacts"]["excluded_by"] == {
        "deleted": 3,
        "before 2018": 2,
    }
    assert line in migrate_here("verify", "j").out
    assert migrate_here("verify", "j", "--json").json["entities"][0]["excluded_by"] == {"deleted": 3, "before 2018": 2}
