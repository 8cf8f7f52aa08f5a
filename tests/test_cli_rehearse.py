"""`migrate rehearse` as a person meets it: a target full of its own rules, what the rehearsal foresees of it, and the
real job that keeps to that or stops."""

from __future__ import annotations

import contextlib
import signal
import subprocess
from pathlib import Path
from typing import Any

import psutil
import psycopg
import pytest

from sample_data.servers import Database, PostgresServer
from tests.cli_runner import MIGRATE, Result, environment, migrate_here
from tests.engine_jobs import sqlite_source, whole_target
from tests.test_cli_jobs import until
from workspace.events import PartStaged
from workspace.log import Workspace
from workspace.paths import JobPaths

SOURCE = """
CREATE TABLE accounts (id INTEGER PRIMARY KEY, name TEXT, parent INT);
INSERT INTO accounts VALUES (1, 'Acme', NULL), (2, 'Bolt', 1), (3, 'Taken', NULL), (4, 'acme', 2);
CREATE TABLE contacts (id INTEGER PRIMARY KEY, name TEXT, mail TEXT, account_id INT, mood TEXT, deleted INT);
INSERT INTO contacts VALUES (1, 'Ana', 'ana@example.com', 1, 'so; so', 0), (2, 'Bo', 'nobody at home', 2, 'fine', 0),
  (3, 'Cy', NULL, 1, 'fine', 1), (4, 'Di', NULL, 4, 'it''s "odd"', 0), (5, 'Evil', NULL, 1, 'fine', 0),
  (6, 'Mallory', NULL, 1, 'fine', 0), (7, 'Gil', NULL, NULL, 'unknown', 0);
INSERT INTO contacts SELECT n, 'Person ' || n, NULL, 2, 'fine', 0 FROM (WITH RECURSIVE c(n) AS (SELECT 100 UNION ALL SELECT n + 1 FROM c WHERE n < 139) SELECT n FROM c);
"""
TARGET = """
CREATE EXTENSION citext;
CREATE SCHEMA "crm; --";
CREATE TYPE "crm; --".mood AS ENUM ('so; so', 'fine', 'it''s "odd"');
CREATE DOMAIN address AS citext CHECK (VALUE LIKE '%@%');
CREATE TABLE statuses (code text PRIMARY KEY);
INSERT INTO statuses VALUES ('new');
CREATE TABLE companies (id uuid PRIMARY KEY, "na""me" citext NOT NULL UNIQUE, parent_id uuid REFERENCES companies);
INSERT INTO companies VALUES ('00000000-0000-0000-0000-000000000001', 'Taken', NULL);
CREATE TABLE "crm; --"."pe'ople" (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name text NOT NULL CHECK (name <> 'Evil'), mail address,
    "mood" "crm; --".mood, company_id uuid REFERENCES companies, status text NOT NULL REFERENCES statuses,
    loud text GENERATED ALWAYS AS (upper(name)) STORED);
CREATE FUNCTION "crm; --".refuse() RETURNS trigger LANGUAGE plpgsql AS $body$
BEGIN IF NEW.name = 'Mallory' THEN RAISE EXCEPTION 'no % here', NEW.name; END IF; RETURN NEW; END $body$;
CREATE TRIGGER "no; mallory" BEFORE INSERT ON "crm; --"."pe'ople" FOR EACH ROW EXECUTE FUNCTION "crm; --".refuse();
"""
PLAN = """
version: 1
entities:
  accounts:
    from: accounts
    to: companies
    key: id
    id: uuid5
    fields:
      na"me: {from: name}
      parent_id: {from: parent, ref: accounts, missing: 'null'}
  contacts:
    from: contacts
    to: "pe'ople"
    where: deleted = '0'
    key: id
    id: sequence
    fields:
      name: {from: name}
      mail: {sql: "email(mail)"}
      mood: {from: mood}
      company_id: {from: account_id, ref: accounts, missing: 'null'}
      status: {default: new}
"""


@pytest.fixture
def target(tmp_path: Path, postgres_database: Database, monkeypatch: pytest.MonkeyPatch) -> Database:
    """A target full of rules of its own; a legacy CRM and a plan lie in the folder at hand."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PACKHORSE_DATA_HOME", str(tmp_path / "data-home"))
    postgres_database.run(TARGET)
    postgres_database.run(f'ALTER DATABASE {postgres_database.name} SET search_path = public, "crm; --"')
    sqlite_source(tmp_path / "legacy.db", SOURCE)
    (tmp_path / "plan.yaml").write_text(PLAN)
    return postgres_database


def rehearse(target: Database, *more: str) -> Result:
    return migrate_here("rehearse", "legacy.db", target.socket_dsn, "--plan", "plan.yaml", "--job", "j", *more)


def run(target: Database, *more: str) -> Result:
    return migrate_here("run", "legacy.db", target.socket_dsn, "--plan", "plan.yaml", "--job", "j", "--yes", *more)


def held(target: Database) -> dict[str, str]:
    with psycopg.connect(target.socket_dsn) as connection:
        return whole_target(connection)


def counts(entities: list[dict[str, Any]]) -> dict[str, tuple[int, ...]]:
    return {e["entity"]: (e["read"], e["loaded"], e["excluded"], e["quarantined"]) for e in entities}


def servers_of(folder: Path) -> list[psutil.Process]:
    """Processes of the scratch servers that commands in the folder started: each has it in its environment."""
    mark = f"PACKHORSE_DATA_HOME={folder / 'data-home'}"
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if Path(process.exe()).name == "postgres" and mark in (f"{k}={v}" for k, v in process.environ().items()):
                found.append(process)
    return found


def rehearsing(target: Database, folder: Path, **env: str) -> subprocess.Popen[str]:
    """A rehearsal in a process of its own."""
    return subprocess.Popen(
        [MIGRATE, "rehearse", "legacy.db", target.socket_dsn, "--plan", "plan.yaml", "--job", "j"],
        cwd=folder, env=environment(folder, env), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def test_a_rehearsal_foresees_what_the_job_does(target: Database, tmp_path: Path) -> None:
    before = held(target)
    done = rehearse(target, "--tolerate", "100", "--json")
    assert done.code == 0, done
    assert held(target) == before
    told = done.json
    assert (told["problems"], told["differences"], told["exit_code"]) == ([], [], 0)
    foreseen = counts(told["entities"])
    assert foreseen == {"accounts": (4, 2, 0, 2), "contacts": (47, 42, 1, 4)}
    by_name = {e["entity"]: e for e in told["entities"]}
    assert by_name["accounts"]["collisions"] == 2  # one with a row that is there, one of another case
    assert {signature.split(":")[1].strip() for signature in by_name["contacts"]["signatures"]} >= {
        "check pe'ople_name_check"
    }
    assert "no … here" in str(by_name["contacts"]["signatures"]) or "trigger" in str(by_name["contacts"]["signatures"])
    assert by_name["contacts"]["rows_bytes"] > 0
    forecast = told["forecast"]
    assert forecast["seconds"] >= forecast["load_seconds"] > 0
    assert min(forecast[name] for name in ("stage_bytes", "target_bytes", "record_bytes", "log_bytes")) > 0
    assert not (tmp_path / ".packhorse" / "jobs" / "j" / "rehearsal").exists()
    assert servers_of(tmp_path) == []
    status = migrate_here("status", "j")
    assert "j: rehearsed" in status.out
    assert "migrate resume j       moves the rows" in status.out

    (tmp_path / "legacy.db").rename(tmp_path / "gone.db")  # the stage stands: the source is opened, not read
    sqlite_source(tmp_path / "legacy.db", "CREATE TABLE accounts (id INTEGER PRIMARY KEY, name TEXT, parent INT);"
                  "CREATE TABLE contacts (id INTEGER PRIMARY KEY, name TEXT, mail TEXT, account_id INT, mood TEXT, deleted INT);")  # fmt: skip
    moved = migrate_here("resume", "j", "--yes", "--json")
    assert moved.code == 0, moved
    assert migrate_here("verify", "j", "--no-ask-source", "--json").json["ok"] is True
    assert counts(migrate_here("verify", "j", "--no-ask-source", "--json").json["entities"]) == foreseen


@pytest.mark.parametrize("fault", ["in copy:2"])
def test_killed_it_leaves_nothing_and_begins_anew(fault: str, target: Database, tmp_path: Path) -> None:
    before = held(target)
    child = rehearsing(target, tmp_path, PACKHORSE_FAULT=fault)
    child.communicate(timeout=120)
    assert child.returncode == -signal.SIGKILL
    assert psutil.wait_procs(servers_of(tmp_path), timeout=30)[1] == []
    assert held(target) == before
    migrate_here("resume", "j", "--yes").refused("PH-101", "did not come to its end", "migrate rehearse")
    assert held(target) == before
    again = rehearse(target, "--json", "--tolerate", "100")
    assert counts(again.json["entities"]) == {"accounts": (4, 2, 0, 2), "contacts": (47, 42, 1, 4)}
    with Workspace.open(JobPaths(tmp_path, "j")) as workspace:  # read once, whatever happened
        assert len(list(workspace.events(types=[PartStaged]))) == 2


def test_interrupted_it_leaves_the_target_alone(target: Database, tmp_path: Path) -> None:
    target.run("CREATE SCHEMA other; CREATE TABLE other.things (id int)")
    before = held(target)
    with psycopg.connect(target.socket_dsn) as holder:  # pg_dump waits for this, and nobody before it
        holder.execute("LOCK TABLE other.things IN ACCESS EXCLUSIVE MODE")
        child = rehearsing(target, tmp_path)
        until(
            lambda: bool(
                target.rows(
                    "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND application_name = 'pg_dump'"
                )
            )
        )
        child.send_signal(signal.SIGINT)
    _, said = child.communicate(timeout=60)
    assert child.returncode == 130, said
    assert "nothing was written to the target" in said
    assert servers_of(tmp_path) == []
    assert held(target) == before
    migrate_here("resume", "j", "--yes").refused("PH-101", "did not come to its end")


def test_the_job_stops_where_it_strays(target: Database) -> None:
    assert rehearse(target, "--tolerate", "100").code == 0
    target.run("""ALTER TABLE "crm; --"."pe'ople" ADD CHECK (name NOT LIKE 'Person 11%')""")
    stopped = run(target, "--tolerate", "100", "--stray", "0.05")
    stopped.refused(
        "PH-505", "contacts: 14 rows in quarantine, 4 were foreseen", "2 more are tolerated", "--stray", exit_code=1
    )
    assert target.rows("SELECT count(*) FROM packhorse.ledger") == [(2,)]  # what was committed stays
    assert migrate_here("resume", "j", "--yes").code == 1  # what is allowed is kept
    assert target.rows("SELECT count(*) FROM packhorse.ledger") == [(2,)]
    gone_on = migrate_here("resume", "j", "--yes", "--stray", "10")
    assert gone_on.code == 0, gone_on
    assert "j: done, reconciled" in gone_on.out
    rehearse(target).refused("PH-101", "the job j has begun to move rows")


def test_into_a_database_that_stays(target: Database, postgres: PostgresServer) -> None:
    place = postgres.new_database()
    try:
        done = rehearse(target, "--tolerate", "100", "--into", place.socket_dsn, "--json")
        assert done.code == 0, done
        assert place.rows("""SELECT count(*), count(*) FILTER (WHERE status = 'new') FROM "crm; --"."pe'ople" """) == [
            (42, 42)
        ]
        assert place.rows("SELECT count(*) FROM packhorse.quarantine") == [(6,)]
        assert target.rows("SELECT count(*) FROM companies") == [(1,)]
        rehearse(target, "--into", place.socket_dsn).refused("PH-101", "not empty")
        assert place.rows("SELECT count(*) FROM packhorse.quarantine") == [(6,)]
    finally:
        postgres.drop(place)
    rehearse(target, "--into", "sqlite:///legacy.db").refused("PH-102", "can't stand in for the target")


def test_for_a_person_it_says_what_the_night_will_bring(target: Database) -> None:
    """With no more rights than the job needs, and the schema for its records made beforehand."""
    mover = f"mover_{target.name}"
    target.run(
        f"""CREATE ROLE {mover} LOGIN; GRANT USAGE ON SCHEMA "crm; --" TO {mover}; GRANT SELECT, INSERT, UPDATE ON ALL TABLES IN SCHEMA
        public, "crm; --" TO {mover}; CREATE SCHEMA packhorse AUTHORIZATION {mover}; COMMENT ON SCHEMA packhorse IS 'packhorse 0';
        CREATE ROLE "no such there"; CREATE POLICY p ON statuses TO "no such there" USING (true); CREATE TABLE secret (id serial)"""
    )
    dsn = target.socket_dsn.replace("postgres@", f"{mover}@")
    try:
        done = migrate_here("rehearse", "legacy.db", dsn, "--plan", "plan.yaml", "--job", "j")
    finally:
        target.run(
            f"""DROP POLICY p ON statuses; DROP OWNED BY {mover}; DROP ROLE {mover}; DROP ROLE "no such there" """
        )
    assert done.code == 3, done  # more in quarantine than the job will tolerate
    for line in (
        '1 to quarantine: accounts: na"me: unique companies_na"me_key', "table public.secret: the target's user has no SELECT",
        'not as in the target: CREATE POLICY p ON public.statuses TO "no such there"', "foreseen", "as rehearsed", "of stage",
        "written to its log", "j: rehearsed, reconciled; nothing was written",
    ):  # fmt: skip
        assert line in done.out, (line, done.out)


def test_another_target_than_postgresql_is_refused_before_anything_is_read(target: Database, tmp_path: Path) -> None:
    sqlite_source(tmp_path / "cloud.db", "CREATE TABLE companies (id TEXT PRIMARY KEY)")
    refused = migrate_here("rehearse", "legacy.db", "sqlite:///cloud.db", "--plan", "plan.yaml", "--job", "k")
    refused.refused("PH-102", "needs a PostgreSQL target")
    assert not (tmp_path / ".packhorse").exists()
