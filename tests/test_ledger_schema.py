"""Another name for our schema in the target: quoted right in every statement, and known to a job without being told."""

from __future__ import annotations

from pathlib import Path

import pytest

from connectors.dsn import open_target
from connectors.postgres_schema import checked_name
from sample_data.servers import Database
from tests.cli_runner import Result, migrate, migrate_here
from tests.engine_jobs import sqlite_source
from tests.small_crm import PLAN, SOURCE, TARGET
from workspace.errors import UsageError

ODD = "Our \"Odd\" schema: 100% {of} 'it'; --, %s é"
LONGEST = "é" * 31 + "x"


@pytest.mark.parametrize(
    "name", ["packhorse", "Migration", "a", "select", "two words", "x.y", "pg", "'", '"', ODD, LONGEST]
)
def test_a_name_that_a_schema_can_have(name: str) -> None:
    assert checked_name(name) == name


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("", "no text"),
        ("a\0b", "no text"),
        ("\udcff", "no text"),
        (LONGEST + "y", "has 64 bytes, and a schema's name at most 63"),
        ("pg_ledger", "PostgreSQL keeps for itself"),
        ("PG_ledger", "PostgreSQL keeps for itself"),
        ("information_schema", "PostgreSQL keeps for itself"),
    ],
)
def test_a_name_that_no_schema_can_have(name: str, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        checked_name(name)


@pytest.fixture
def cloud(tmp_path: Path, postgres_database: Database, monkeypatch: pytest.MonkeyPatch) -> Database:
    """An empty target; the source and the plan lie in the folder that commands are run in."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PACKHORSE_DATA_HOME", str(tmp_path / "data-home"))
    postgres_database.run(TARGET)
    sqlite_source(tmp_path / "legacy.db", SOURCE)
    (tmp_path / "plan.yaml").write_text(PLAN)
    return postgres_database


def run(cloud: Database, job: str, *more: str) -> Result:
    return migrate_here(
        "run",
        "sqlite:///legacy.db",
        cloud.socket_dsn,
        "--plan",
        "plan.yaml",
        "--job",
        job,
        "--tolerate",
        "100",
        "--yes",
        *more,
    )


def schemas(cloud: Database) -> list[str]:
    return [
        str(name)
        for (name,) in cloud.rows(
            "SELECT nspname FROM pg_namespace WHERE obj_description(oid) ~ '^packhorse' ORDER BY 1"
        )
    ]


def test_a_job_finds_its_records_without_being_told(cloud: Database, tmp_path: Path) -> None:
    name = ODD
    command = [
        "run",
        "sqlite:///legacy.db",
        cloud.socket_dsn,
        "--plan",
        "plan.yaml",
        "--job",
        "j",
        "--tolerate",
        "100",
        "--yes",
    ]
    killed = migrate(*command, "--ledger-schema", name, cwd=tmp_path, env={"PACKHORSE_FAULT": "before commit:3"})
    assert killed.code == -9, killed
    resumed = migrate_here("resume", "j")
    assert resumed.code == 0, resumed
    assert migrate_here("verify", "j").code == 0
    rows = migrate_here("quarantine", "show", "j", "--json").json["rows"]
    assert {(row["entity"], tuple(row["key"])) for row in rows} >= {("contacts", ("4",)), ("contacts", ("6",))}
    assert all(each["example"] for each in migrate_here("quarantine", "list", "j", "--json").json["clusters"])

    (tmp_path / "lenient.yaml").write_text(PLAN.replace("{from: born}", "{from: born, otherwise: 'null'}"))
    retried = migrate_here("quarantine", "retry", "j", "--plan", "lenient.yaml", "--json")
    assert (retried.code, [e["inserted"] for e in retried.json["entities"] if e["entity"] == "contacts"]) == (0, [1]), (
        retried
    )
    assert migrate_here("quarantine", "drop", "j", "--entity", "accounts", "--yes").code == 0
    assert migrate_here("verify", "j").code == 0

    (tmp_path / "plan.yaml").write_text(PLAN.replace("text: {from: text}", "text: {sql: 'upper(text)'}"))
    assert run(cloud, "later", "--ledger-schema", name).code == 0  # a later job knows the rows, and changes some
    assert migrate_here("preview", "later", "--json").json["entities"][0]["load"] == 0
    assert migrate_here("undo", "later", "--yes").code == 0
    assert migrate_here("verify", "j").code == 0
    undone = migrate_here("undo", "j", "--yes")
    assert undone.code == 0, undone
    assert (cloud.rows("SELECT count(*) FROM people"), schemas(cloud)) == ([(0,)], [name])


def test_a_job_keeps_the_schema_it_began_with(cloud: Database) -> None:
    assert run(cloud, "j", "--ledger-schema", LONGEST).code == 0
    run(cloud, "j", "--ledger-schema", "other").refused(
        "PH-101", "keeps its records in the schema " + LONGEST, "leave the option out"
    )
    assert run(cloud, "j").code == 0
    assert schemas(cloud) == [LONGEST]


def test_jobs_of_one_name_in_two_schemas_are_two(cloud: Database) -> None:
    """A lease on one of them keeps nobody from the other."""
    holder = open_target(cloud.socket_dsn, "elsewhere")
    try:
        holder.prepare()
        holder.lease("j", "a source")
        assert run(cloud, "j").code == 0
    finally:
        holder.close()
    assert schemas(cloud) == ["elsewhere", "packhorse"]


@pytest.mark.parametrize(("name", "code", "words"), [
    ("public", "PH-104", "the target has a schema public that is not ours"),
    ("theirs", "PH-104", "the target has a schema theirs that is not ours"),
    ("x" * 64, "PH-101", "has 64 bytes"),
])  # fmt: skip
def test_a_schema_that_is_not_ours_is_left_alone(name: str, code: str, words: str, cloud: Database) -> None:
    cloud.run("CREATE SCHEMA theirs; CREATE TABLE theirs.job (id int)")
    run(cloud, "j", "--ledger-schema", name).refused(code, words)
    assert schemas(cloud) == []


def test_records_of_another_job_are_no_table_to_fill(cloud: Database) -> None:
    assert run(cloud, "j", "--ledger-schema", "records").code == 0
    target = open_target(f"{cloud.socket_dsn}&schema=public,records")
    try:
        assert {table.schema for table in target.catalogue().tables.values()} == {"public"}
    finally:
        target.close()
