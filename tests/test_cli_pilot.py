"""`run --pilot`: a slice closed under references goes into the target first; the job takes it up, or it is taken back."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path

import psycopg
import pytest

from sample_data.servers import Database
from tests.cli_runner import MIGRATE, Result, environment, migrate_here
from tests.engine_jobs import records, sqlite_source
from workspace.events import PartStaged
from workspace.log import Workspace
from workspace.paths import JobPaths

SOURCE = """
CREATE TABLE accounts (id TEXT PRIMARY KEY, name TEXT, parent TEXT, lead INT);
INSERT INTO accounts SELECT 'a' || n, 'Firm ' || n, CASE WHEN n > 0 THEN 'A' || (n / 2) || ' ' END, 299 - n
  FROM (WITH RECURSIVE c(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM c WHERE n < 99) SELECT n FROM c);
CREATE TABLE contacts (id INTEGER PRIMARY KEY, name TEXT, mail TEXT, account TEXT, deleted INT);
INSERT INTO contacts SELECT n, 'Person ' || n, 'p' || (n % 250) || '@example.com', 'a' || (n % 110), n % 10 = 9
  FROM (WITH RECURSIVE c(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM c WHERE n < 299) SELECT n FROM c);
CREATE TABLE tags (id INTEGER PRIMARY KEY, name TEXT);
INSERT INTO tags VALUES (1, 'good'), (2, 'late'), (3, 'new'), (4, 'old');
CREATE TABLE contact_tags (contact INT, tag INT, PRIMARY KEY (contact, tag));
INSERT INTO contact_tags SELECT n, n % 4 + 1 FROM (WITH RECURSIVE c(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM c WHERE n < 310) SELECT n FROM c);
CREATE TABLE lines (text TEXT);
INSERT INTO lines VALUES ('one'), ('two');
"""
TARGET = """
CREATE TABLE companies (id uuid PRIMARY KEY, name text NOT NULL, parent_id uuid REFERENCES companies, lead_id bigint);
CREATE TABLE people (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name text NOT NULL CHECK (name <> 'Person 7'), mail text UNIQUE,
    company_id uuid NOT NULL REFERENCES companies);
ALTER TABLE companies ADD FOREIGN KEY (lead_id) REFERENCES people;
CREATE TABLE tags (id int PRIMARY KEY, name text);
CREATE TABLE people_tags (person_id bigint REFERENCES people, tag_id int REFERENCES tags, PRIMARY KEY (person_id, tag_id));
CREATE TABLE lines (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, text text);
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
      name: {from: name}
      parent_id: {sql: "lower(parent)", ref: accounts, missing: 'null'}
      lead_id: {from: lead, ref: contacts, missing: 'null'}
  contacts:
    from: contacts
    to: people
    where: deleted = '0'
    key: id
    id: sequence
    fields:
      name: {from: name}
      mail: {from: mail}
      company_id: {from: account, ref: accounts}
  tags: {from: tags, to: tags, key: id, fields: {name: {from: name}}}
  contact_tags:
    from: contact_tags
    to: people_tags
    key: [contact, tag]
    id: none
    fields:
      person_id: {from: contact, ref: contacts}
      tag_id: {from: tag, ref: tags}
  lines: {from: lines, to: lines, key: [], id: sequence, fields: {text: {from: text}}}
"""
TABLES = {
    "companies": "SELECT id::text, name, parent_id::text FROM companies ORDER BY 1",
    "people": "SELECT id, name, mail, company_id::text FROM people ORDER BY 2",
    "people_tags": "SELECT person_id, tag_id FROM people_tags ORDER BY 1, 2",
}


@pytest.fixture
def target(tmp_path: Path, postgres_database: Database, monkeypatch: pytest.MonkeyPatch) -> Database:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PACKHORSE_DATA_HOME", str(tmp_path / "data-home"))
    postgres_database.run(TARGET)
    sqlite_source(tmp_path / "legacy.db", SOURCE)
    (tmp_path / "plan.yaml").write_text(PLAN)
    return postgres_database


def run(target: Database, *more: str, job: str = "j") -> Result:
    return migrate_here(
        "run", "legacy.db", target.socket_dsn, "--plan", "plan.yaml", "--job", job, "--yes", "--tolerate", "1000", *more
    )


def rows(target: Database) -> dict[str, list[tuple[object, ...]]]:
    return {table: target.rows(statement) for table, statement in TABLES.items()}


def test_a_slice_goes_first_and_the_job_takes_it_up(target: Database, tmp_path: Path) -> None:
    piloted = run(target, "--pilot", "3%", "--json")
    assert piloted.code == 0, piloted
    assert (piloted.json["job"], piloted.json["progress"]["verified"]) == ("j-pilot", True)
    first = rows(target)
    assert 8 <= len(first["people"]) < 100
    assert 3 <= len(first["companies"]) < 60
    assert {person for person, _ in first["people_tags"]} <= {person[0] for person in first["people"]}
    assert target.rows("SELECT count(*) FROM companies WHERE name <> 'Firm 0' AND parent_id IS NULL") == [(0,)]
    # whoever leads a firm of the slice came along, unless the plan leaves them out
    assert target.rows(
        "SELECT count(*) FROM packhorse.quarantine WHERE code = 'reference' AND raw ->> 'account' < 'a100'"
    ) == [(0,)]

    done = migrate_here("resume", "j", "--yes", "--json")
    assert done.code == 0, done
    whole = rows(target)
    for table, held in first.items():
        assert set(held) <= set(whole[table]), table  # none twice, and with the ids that people have seen
    assert len({name for _, name, *_ in whole["people"]}) == len(whole["people"])
    counts = done.json["progress"]["entities"]["contacts"]["counts"]
    assert counts["unchanged"] == len(first["people"])
    with Workspace.open(JobPaths(tmp_path, "j")) as workspace:
        assert len(list(workspace.events(types=[PartStaged]))) == 5  # read once
    for job in ("j", "j-pilot"):
        assert migrate_here("verify", job, "--json").json["ok"], job

    migrate_here("undo", "j-pilot", "--yes").refused("PH-101", "a part of the job j now", "migrate undo j")
    assert rows(target) == whole
    assert migrate_here("undo", "j", "--yes").code == 0
    assert migrate_here("undo", "j-pilot", "--yes").code == 0
    assert target.rows("SELECT (SELECT count(*) FROM people), (SELECT count(*) FROM companies)") == [(0, 0)]


def test_the_job_ends_as_it_would_without_a_pilot(
    target: Database, postgres_database: Database, tmp_path: Path
) -> None:
    """Who wins where rows collide isn't decided by who happened to be in the slice."""
    assert run(target, job="plain").code == 0
    plain = target.rows("SELECT name, mail, company_id::text FROM people ORDER BY 1"), rows(target)["companies"]
    assert migrate_here("undo", "plain", "--yes").code == 0
    assert run(target, "--pilot", "60").code == 0
    assert run(target).code == 0
    assert (
        target.rows("SELECT name, mail, company_id::text FROM people ORDER BY 1"),
        rows(target)["companies"],
    ) == plain
    assert migrate_here("verify", "j", "--json").json["ok"]


def test_a_pilot_is_taken_back(target: Database) -> None:
    with psycopg.connect(target.socket_dsn) as connection:
        before = {name: held for name, held in records(connection).items() if "seq" not in name}
    assert run(target, "--pilot", "5").code == 0
    assert target.rows("SELECT count(*) > 4 FROM people") == [(True,)]
    again = run(target, "--pilot", "5")
    assert again.code == 0, again
    run(target, "--pilot", "6").refused("PH-101", "j-pilot is there already, of 5")
    assert migrate_here("undo", "j-pilot", "--yes").code == 0
    with psycopg.connect(target.socket_dsn) as connection:
        assert {name: held for name, held in records(connection).items() if "seq" not in name} == before


@pytest.mark.parametrize("fault", ["pilot cut", "in copy:2"])
def test_killed_it_goes_on(fault: str, target: Database, tmp_path: Path) -> None:
    child = subprocess.run(
        [MIGRATE, "run", "legacy.db", target.socket_dsn, "--plan", "plan.yaml", "--job", "j", "--yes", "--pilot", "5%"],
        cwd=tmp_path, env=environment(tmp_path, {"PACKHORSE_FAULT": fault}), stdin=subprocess.DEVNULL,
        capture_output=True, check=False,
    )  # fmt: skip
    assert child.returncode == -signal.SIGKILL, child.stderr
    if fault == "pilot cut":
        migrate_here("resume", "j", "--yes").refused("PH-101", "the pilot of j did not come to its end")
        assert target.rows("SELECT count(*) FROM people") == [(0,)]
        assert run(target, "--pilot", "5%").code == 0
    else:
        assert migrate_here("resume", "j-pilot", "--yes").code in (0, 3)
    loaded = len(rows(target)["people"])
    assert 10 < loaded < 150
    assert migrate_here("verify", "j-pilot", "--json").json["ok"]


TWINS = """
CREATE TABLE people (id INTEGER PRIMARY KEY, name TEXT, mail TEXT);
INSERT INTO people SELECT n, 'Person ' || CASE WHEN n < 40 THEN n % 20 ELSE n END, CASE WHEN n < 40 THEN n % 20 ELSE n END || '@example.com'
  FROM (WITH RECURSIVE c(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM c WHERE n < 299) SELECT n FROM c);
"""
MERGED = """
version: 1
entities:
  people:
    from: people
    to: people
    key: id
    merge: {%s}
    fields: {name: {from: name}, mail: {from: mail}}
"""


@pytest.mark.parametrize(
    ("how", "merged"),
    [("same: [[mail]]", True), ("same: [[mail]], by: {name: name, mail: email}, block: [name]", False)],
)
def test_rows_that_are_one_are_in_a_slice_together_or_not_at_all(
    how: str, merged: bool, postgres_database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PACKHORSE_DATA_HOME", str(tmp_path / "data-home"))
    postgres_database.run("CREATE TABLE people (id int PRIMARY KEY, name text, mail text)")
    sqlite_source(tmp_path / "legacy.db", TWINS)
    (tmp_path / "plan.yaml").write_text(MERGED % how)
    first = run(postgres_database, "--pilot", "80", "--json")
    assert first.code == 0, first
    counts = first.json["progress"]["entities"]["people"]["counts"]
    twins = postgres_database.rows("SELECT count(*) FROM packhorse.crosswalk WHERE old_id::int < 40")[0][0]
    assert twins == 2 * counts["merged"]
    assert (twins > 0) is merged
    assert run(postgres_database).code == 0
    assert postgres_database.rows("SELECT count(*), count(DISTINCT mail) FROM people") == [(280, 280)]
    for job in ("j-pilot", "j"):
        assert migrate_here("verify", job, "--json").json["ok"], job


@pytest.mark.parametrize("share", ["", "0", "0%", "101%", "some", "-1", "1e3"])
def test_no_part_of_the_rows(share: str, target: Database) -> None:
    run(target, f"--pilot={share}").refused("PH-101", "is no part of the rows")
