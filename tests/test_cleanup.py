"""A job's records taken out of the target: exported whole first, once however often the process is killed, and
nothing of other jobs' or of the customer's with them.
"""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pexpect
import psycopg
import pyarrow.parquet as pq
import pytest

from connectors.postgres_schema import STEPS, TABLES
from engine.faults import CLEANUP_POINTS
from sample_data.servers import Database
from tests.cli_runner import MIGRATE, Result, environment, migrate, migrate_here
from tests.engine_jobs import records, sqlite_source
from tests.small_crm import PLAN, SOURCE, TARGET

CROSSWALK = (
    "SELECT e.name, x.old_id, x.new_id FROM packhorse.crosswalk x JOIN packhorse.entity e ON e.id = x.entity_id "
    "JOIN packhorse.job j ON j.id = x.job_id WHERE j.name = '{}' ORDER BY 1, 2"
)
SCHEMAS = "SELECT nspname FROM pg_namespace WHERE nspname = 'packhorse'"


@pytest.fixture
def cloud(tmp_path: Path, postgres_database: Database, monkeypatch: pytest.MonkeyPatch) -> Database:
    """A target with one job in it, done and verified, with rows in quarantine."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PACKHORSE_DATA_HOME", str(tmp_path / "data-home"))
    postgres_database.run(TARGET)
    sqlite_source(tmp_path / "legacy.db", SOURCE)
    (tmp_path / "plan.yaml").write_text(PLAN)
    assert run(postgres_database, "j").code == 0
    return postgres_database


def run(cloud: Database, job: str, source: str = "sqlite:///legacy.db") -> Result:
    return migrate_here(
        "run", source, cloud.socket_dsn, "--plan", "plan.yaml", "--job", job, "--tolerate", "100", "--yes"
    )


def held(cloud: Database) -> dict[str, str]:
    """All of the customer's rows."""
    with psycopg.connect(cloud.socket_dsn) as connection:
        return records(connection)


def exported(file: Path) -> list[tuple[str, ...]]:
    if file.suffix == ".parquet":
        rows = pq.read_table(file).to_pylist()
    else:
        with file.open(encoding="utf-8-sig", newline="") as text:
            rows = list(csv.DictReader(text))
    return [(row["entity"], row["old_id"], row["new_id"]) for row in rows]


def test_the_list_of_tables_is_what_the_steps_make() -> None:
    made = {
        line.split("CREATE TABLE x.")[1].split()[0] for step in STEPS for line in step("x") if "CREATE TABLE" in line
    }
    assert set(TABLES) == made


@pytest.mark.parametrize("kill", ["", *CLEANUP_POINTS])
def test_exported_whole_and_taken_out_once(kill: str, cloud: Database, tmp_path: Path) -> None:
    before, crosswalk = held(cloud), cloud.rows(CROSSWALK.format("j"))
    quarantined = migrate_here("quarantine", "show", "j", "--json").json["rows"]
    assert len(crosswalk) == 11
    if kill:
        killed = migrate("cleanup", "j", "--yes", cwd=tmp_path, env={"PACKHORSE_FAULT": kill})
        assert killed.code == -9, killed
        gone = kill == "cleanup after commit"
        assert (cloud.rows(SCHEMAS) == []) == gone
        if not gone:
            assert cloud.rows(CROSSWALK.format("j")) == crosswalk
    done = migrate_here("cleanup", "j", "--yes", "--json")
    assert done.code == 0, done
    file = tmp_path / ".packhorse" / "jobs" / "j" / "crosswalk.parquet"
    assert done.json == {
        "job": "j", "crosswalk": str(file), "rows": {"accounts": 3, "contacts": 4, "notes": 4},
        "quarantine": str(file.with_name("crosswalk-quarantine.jsonl")), "schema_gone": True,
    }  # fmt: skip
    assert exported(file) == crosswalk
    lines = [json.loads(line) for line in file.with_name("crosswalk-quarantine.jsonl").read_text().splitlines()]
    assert lines == quarantined
    assert {each.stat().st_mode & 0o777 for each in file.parent.glob("crosswalk*")} == {0o600}
    assert (cloud.rows(SCHEMAS), held(cloud)) == ([], before)
    assert len(migrate_here("inspect", "j", "--log", "--type", "job_cleaned_up").out.splitlines()) == 1


def test_afterwards_each_verb_says_so(cloud: Database) -> None:
    assert migrate_here("cleanup", "j", "--yes").code == 0
    for verb in ("resume", "verify", "undo --yes", "quarantine show", "quarantine retry", "cleanup --yes"):
        migrate_here(*verb.split(), "j").refused(
            "PH-101", "the job j was cleaned up: its records are no longer in the target", "crosswalk.parquet"
        )
    assert cloud.rows(SCHEMAS) == []  # and none made it anew
    assert migrate_here("status", "j", "--json").json["state"] == "cleaned up"


def test_a_csv_file_where_a_person_wants_it(cloud: Database, tmp_path: Path) -> None:
    cloud.run("UPDATE packhorse.crosswalk SET old_id = '=1+1' WHERE old_id = 'a'")
    (tmp_path / "there.csv").write_text("mine")
    migrate_here("cleanup", "j", "--yes", "--export", "there.csv").refused("PH-101", "there is a file of that name")
    migrate_here("cleanup", "j", "--yes", "--export", "x.txt").refused("PH-101", ".parquet or .csv")
    migrate_here("cleanup", "j", "--yes", "--export", "no/x.csv").refused("PH-101", "no such folder")
    assert migrate_here("cleanup", "j", "--yes", "--export", "out.csv").code == 0
    rows = exported(tmp_path / "out.csv")
    assert (len(rows), [old for _, old, _ in rows if old.endswith("1+1")]) == (11, ["'=1+1"])


def test_what_another_job_needs_stays(cloud: Database, tmp_path: Path) -> None:
    """A later job over the same source knows rows that it left as they were by the crosswalk of the first."""
    assert run(cloud, "later").code == 0
    sqlite_source(tmp_path / "other.db", SOURCE.replace("'Acme'", "'Other'").replace("'Bolt'", "'Bold'"))
    (tmp_path / "plan.yaml").write_text(
        "entities: {other: {from: accounts, to: companies, key: id, id: uuid5, fields: {name: {from: name}}}}"
    )
    assert run(cloud, "other", "sqlite:///other.db").code == 0
    theirs = cloud.rows(CROSSWALK.format("other"))
    done = migrate_here("cleanup", "j", "--yes", "--json")
    assert (done.code, done.json["schema_gone"]) == (0, False), done
    for job in ("later", "other"):
        verified = migrate_here("verify", job)
        assert verified.code == 0, verified
    assert cloud.rows(CROSSWALK.format("other")) == theirs
    left = "SELECT j.name, count(*) FROM packhorse.{} JOIN packhorse.job j ON j.id = job_id GROUP BY 1 ORDER BY 1"
    assert (
        "j" not in dict(cloud.rows(left.format("ledger"))).keys() | dict(cloud.rows(left.format("quarantine"))).keys()
    )

    assert migrate_here("cleanup", "other", "--yes", "--json").json["schema_gone"] is False
    assert migrate_here("verify", "later").code == 0
    assert cloud.rows(CROSSWALK.format("other")) == []
    assert migrate_here("cleanup", "later", "--yes", "--json").json["schema_gone"] is True
    assert cloud.rows(SCHEMAS) == []


def test_a_schema_that_something_hangs_on_stays(cloud: Database) -> None:
    cloud.run("CREATE VIEW ids AS SELECT old_id, new_id FROM packhorse.crosswalk")
    done = migrate_here("cleanup", "j", "--yes", "--json")
    assert (done.code, done.json["schema_gone"]) == (0, False), done
    assert [cloud.rows(f"SELECT count(*) FROM packhorse.{table}") for table in TABLES] == [[(0,)]] * len(TABLES)
    assert cloud.rows("SELECT * FROM ids") == []


def test_only_what_is_signed_off(cloud: Database) -> None:
    cloud.run("UPDATE people SET name = 'Anne' WHERE name = 'Ana'")
    assert migrate_here("verify", "j").code == 1
    migrate_here("cleanup", "j", "--yes").refused("PH-101", "the job j is not done", "--unverified")
    assert len(cloud.rows(CROSSWALK.format("j"))) == 11
    migrate_here("cleanup", "j").refused("PH-101", "the job j is not done")
    migrate_here("cleanup", "j", "--unverified").refused(
        "PH-101", "nothing was removed: there is no terminal to ask on"
    )
    assert migrate_here("cleanup", "j", "--unverified", "--yes").code == 0


def test_a_crosswalk_that_changes_during_the_export_is_left_alone(
    cloud: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    import engine.faults

    def another_job(name: str) -> None:
        if name == "cleanup exported":
            cloud.run("UPDATE packhorse.crosswalk SET job_id = 77 WHERE old_id = 'a'")

    monkeypatch.setattr(engine.faults, "hook", another_job)
    migrate_here("cleanup", "j", "--yes").refused("PH-501", "another job changed the crosswalk", exit_code=1)
    monkeypatch.undo()
    assert cloud.rows("SELECT count(*) FROM packhorse.crosswalk") == [(11,)]


def test_on_a_terminal_it_asks_once(cloud: Database, tmp_path: Path) -> None:
    child = pexpect.spawn(
        MIGRATE, ["cleanup", "j"], cwd=str(tmp_path), env=environment(tmp_path), encoding="utf-8", timeout=60
    )  # type: ignore[arg-type]
    child.expect("3 rows of the crosswalk of accounts")
    child.expect(r"\[y/N\]")
    child.sendline("n")
    child.expect("nothing was removed")
    child.expect(pexpect.EOF)
    assert len(cloud.rows(CROSSWALK.format("j"))) == 11
