"""What passes is tried again, and told as what it is where it lasts; nothing else is tried a second time."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest

import engine.persist
from connectors.postgres_errors import told
from connectors.protocols import RowsRefusedError, TargetBusyError, TargetLostError
from engine.load import load
from sample_data.servers import Database
from tests.cli_runner import migrate_here
from tests.engine_jobs import EngineJob, sqlite_source
from workspace.errors import CatalogueError, JobFailedError
from workspace.log import Workspace
from workspace.paths import JobPaths
from workspace.state import state_at


@pytest.mark.parametrize(
    ("state", "lost", "becomes"),
    [
        ("08006", True, TargetLostError),  # connection_failure
        ("08006", False, TargetLostError),
        ("57P01", True, TargetLostError),  # admin_shutdown
        ("57P02", True, TargetLostError),  # crash_shutdown
        ("57P03", False, TargetLostError),  # cannot_connect_now
        ("57P05", True, TargetLostError),  # idle_session_timeout
        ("25P03", True, TargetLostError),  # idle_in_transaction_session_timeout
        ("25P04", True, TargetLostError),  # transaction_timeout
        ("40003", False, TargetLostError),  # statement_completion_unknown: the ledger tells
        ("40001", False, TargetBusyError),  # serialization_failure
        ("40P01", False, TargetBusyError),  # deadlock_detected
        ("53300", False, TargetBusyError),  # too_many_connections
        ("55P03", False, TargetBusyError),  # lock_not_available
        ("57014", False, TargetBusyError),  # query_canceled
        ("57014", True, TargetLostError),
        ("57P04", True, JobFailedError),  # database_dropped
        ("3D000", True, JobFailedError),  # invalid_catalog_name
        ("28P01", True, JobFailedError),  # invalid_password
        ("40002", False, JobFailedError),  # transaction_integrity_constraint_violation
        ("40000", False, JobFailedError),  # transaction_rollback
        ("53100", False, JobFailedError),  # disk_full
        ("53200", False, JobFailedError),  # out_of_memory
        ("54000", False, JobFailedError),  # program_limit_exceeded
        ("0A000", False, JobFailedError),  # feature_not_supported
        ("25006", False, JobFailedError),  # read_only_sql_transaction
        ("42P01", False, JobFailedError),  # undefined_table
        ("XX000", False, JobFailedError),  # internal_error
        ("42501", False, CatalogueError),  # insufficient_privilege
        ("22007", False, RowsRefusedError),  # invalid_datetime_format
        ("23505", False, RowsRefusedError),  # unique_violation
        ("P0001", False, RowsRefusedError),  # raise_exception
    ],
)  # fmt: skip
def test_what_becomes_of_an_error(state: str, lost: bool, becomes: type[Exception]) -> None:
    found = told(psycopg.errors.lookup(state)("said"), "postgresql://host/db", lost=lost)
    assert type(found) is becomes, found


def test_a_connection_without_a_state_is_lost() -> None:
    assert type(told(psycopg.OperationalError("server closed the connection"), "x", lost=False)) is TargetLostError


SOURCE = "CREATE TABLE t(id int PRIMARY KEY, name text); INSERT INTO t VALUES (1, 'Ana'), (2, 'Bo');"
PLAN = "entities: {t: {from: t, to: t, key: id, fields: {name: {from: name}}}}"
SLOW = """
CREATE TABLE t(id int PRIMARY KEY, name text);
CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(20); RETURN NEW; END';
CREATE TRIGGER slow BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION slow();
"""


@pytest.fixture
def job(postgres_database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> EngineJob:
    monkeypatch.setattr(engine.persist, "RETRY_SECONDS", 1.0)
    source = sqlite_source(tmp_path / "legacy.db", SOURCE)
    return EngineJob(str(tmp_path), "j", PLAN, source, postgres_database.socket_dsn)


def test_a_statement_timeout_that_lasts_is_told_as_one(
    job: EngineJob, postgres_database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    postgres_database.run(f"{SLOW} ALTER DATABASE {postgres_database.name} SET statement_timeout = '150ms'")
    shown: list[str] = []
    with job.running() as ctx:
        ctx.progress = lambda step: shown.append(f"{step.phase} {step.entity}")
        with pytest.raises(JobFailedError) as failed:
            load(ctx)
    assert "the target broke off a COPY after its statement timeout of 150ms, " in failed.value.what
    assert (
        failed.value.advice
        == "give the target's user more time: ALTER ROLE ... SET statement_timeout = 0; then `migrate resume`"
    )
    assert [line for line in shown if line.startswith("again batch 0 of t, try 1: the target broke off a COPY")]
    with Workspace.open(JobPaths(tmp_path, "j")) as workspace:
        tried = state_at(workspace).progress.attempts["batch 0 of t"]
    assert tried.count >= 2
    monkeypatch.chdir(tmp_path)
    assert (
        f"tried again {tried.count} times: batch 0 of t: the target broke off a COPY" in migrate_here("status", "j").out
    )
    postgres_database.run(f"ALTER DATABASE {postgres_database.name} RESET statement_timeout; DROP TRIGGER slow ON t")
    assert job.load().inserted == 2


def test_a_lock_that_lasts_is_told_as_one(job: EngineJob, postgres_database: Database) -> None:
    postgres_database.run(
        f"CREATE TABLE t(id int PRIMARY KEY, name text); ALTER DATABASE {postgres_database.name} SET lock_timeout = '100ms'"
    )
    with psycopg.connect(postgres_database.socket_dsn) as other, job.running() as ctx:
        other.execute("LOCK TABLE t IN SHARE MODE")
        with pytest.raises(JobFailedError) as failed:
            load(ctx)
    assert "the target broke off a COPY that waited for a lock, " in failed.value.what
    assert "pg_locks" in failed.value.advice


def test_verify_needs_no_right_to_write(
    job: EngineJob, postgres_database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PACKHORSE_DATA_HOME", str(tmp_path / "data-home"))
    postgres_database.run("CREATE TABLE t(id int PRIMARY KEY, name text)")
    (tmp_path / "plan.yaml").write_text(PLAN)
    assert migrate_here("run", job.source, job.target, "--plan", "plan.yaml", "--job", "v", "--yes").code == 0
    reader = f"reader_{postgres_database.name}"
    postgres_database.run(
        f"CREATE ROLE {reader} LOGIN; GRANT USAGE ON SCHEMA public, packhorse TO {reader}; "
        f"GRANT SELECT ON ALL TABLES IN SCHEMA public, packhorse TO {reader}"
    )
    try:
        dsn = job.target.replace("//postgres@", f"//{reader}@")
        verified = migrate_here("verify", "v", "--target", dsn)
        assert verified.code == 0, verified
    finally:
        postgres_database.run(f"DROP OWNED BY {reader}; DROP ROLE {reader}")
