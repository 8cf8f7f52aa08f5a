"""A job's files once it is signed off: for their owner alone from the first, and then without a record's value, however
often the purge is killed; what was counted, decided and done stays.

The source's values are words that stand nowhere else, so that any file may be searched for them.
"""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pexpect
import pytest

from engine.faults import PURGE_POINTS
from sample_data.servers import Database
from tests import small_crm
from tests.cli_runner import MIGRATE, Result, environment, migrate, migrate_here
from tests.engine_jobs import sqlite_source
from workspace.events import JobPurged
from workspace.lock import JobLock
from workspace.log import Workspace
from workspace.paths import JobPaths
from workspace.state import state_at

SOURCE = """
CREATE TABLE accounts(id text primary key, name text, industry text, owner text, email text);
CREATE TABLE contacts(id integer primary key, first_name text, last_name text, account_id text, birthdate text, email text,
  status text, salary numeric, city text, deleted int);
"""
TARGET = """
CREATE TYPE industry AS ENUM ('technology', 'banking', 'retail');
CREATE TYPE status AS ENUM ('active', 'inactive');
CREATE TABLE accounts(id uuid primary key, name text UNIQUE, industry industry, owner text, email text);
CREATE TABLE contacts(id bigint GENERATED ALWAYS AS IDENTITY primary key, first_name text, last_name text CHECK (last_name NOT LIKE '%evil%'),
  account_id uuid REFERENCES accounts, birthdate date, email text, status status, salary numeric(8,2), city text);
CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  IF NEW.first_name LIKE '%trig%' THEN RAISE EXCEPTION 'bad name % of %', NEW.first_name, upper(NEW.city); END IF; RETURN NEW; END $$;
CREATE TRIGGER refuse BEFORE INSERT ON contacts FOR EACH ROW EXECUTE FUNCTION refuse();
"""
PLACED = {"Zqxindustry", "Zqxstatus"}
"""Values that a person gave a label: words of the plan."""
MINE = ("report.html", "report.md", "report.xlsx", "held.xlsx", "held.csv", "held.jsonl", "draft.yaml", "legacy.db")


def _filled(file: Path) -> set[str]:
    """Writes the source's rows; the words in them that stand nowhere else."""
    words: set[str] = {"Zqxindustry", "Zqxunplaced", "Zqxowner", "Zqxstatus", "Zqxcity", "1907-07-07", "99887766"}

    def word(name: str, number: int) -> str:
        words.add(f"Zqx{number:03d}{name}")
        return f"Zqx{number:03d}{name}"

    with sqlite3.connect(file) as connection:
        for i in range(60):
            name = word("aname", i if i != 7 else 6)  # two of one name, which is unique in the target
            industry = ("Technology", "Banking", "Zqxindustry", "Retail", "Zqxunplaced")[i % 5]
            row = (word("akey", i), name, industry, f"Zqxowner {i % 2}", word("amail", i) + "@example.com")
            connection.execute("INSERT INTO accounts VALUES (?, ?, ?, ?, ?)", row)
        for i in range(200):
            first = word("first", i) + ("trig" if i % 60 == 7 else "")
            last = word("last", i) + ("evil" if i % 50 == 3 else "")
            born = (
                word("born", i) if i % 40 == 5 else "1907-07-07" if i == 0 else f"19{i % 60 + 20}-{i % 12 + 1:02d}-11"
            )
            status = ("active", "inactive", "Zqxstatus")[i % 3]
            salary = "99887766554.5" if i % 90 == 50 else str(3000 + i)
            row_of = (i, first, last, f"Zqx{i % 60:03d}akey", born, word("cmail", i) + "@x.example", status, salary)
            row_of = (*row_of, ("Zqxcity", "Boston")[i % 2], int(i % 20 == 0))
            connection.execute("INSERT INTO contacts VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", row_of)
    connection.close()
    return words


@pytest.fixture(scope="module")
def signed_off(postgres: object, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Database, set[str]]]:
    """A folder with a job `j` of an umask of 000, drafted, previewed, answered, resumed, with rows in quarantine that
    were retried and dropped, synced, verified, told of; and files that a person made of it."""
    database = postgres.new_database()  # type: ignore[attr-defined]
    database.run(TARGET)
    folder = tmp_path_factory.mktemp("signed-off")
    sqlite_source(folder / "legacy.db", SOURCE)
    words = _filled(folder / "legacy.db")
    before = os.umask(0)
    try:
        _work(folder, database)
    finally:
        os.umask(before)
    yield folder, database, words
    postgres.drop(database)  # type: ignore[attr-defined]


def _work(folder: Path, cloud: Database) -> None:
    def done(*arguments: str, code: int = 0) -> Result:
        result = migrate(*arguments, cwd=folder)
        assert result.code == code, (arguments, result)
        return result

    source = f"sqlite:///{folder}/legacy.db"
    done("run", source, cloud.socket_dsn, "--job", "j", "--yes", "--model", "none", "--tolerate", "1000", "--dry-run")
    done("run", source, cloud.socket_dsn, "--job", "j", "--yes", "--model", "none", "--tolerate", "1000")
    asked = {each["id"]: each for each in done("answer", "j", "--json").json["questions"]}
    assert {"values:accounts.industry", "values:contacts.status", "format:contacts.birthdate"} <= set(asked)
    said = {
        "values:accounts.industry": "Zqxindustry=technology; Zqxunplaced=quarantine",
        "values:contacts.status": "Zqxstatus=inactive",
    }
    answers = [
        f"--set={id_}={said.get(id_) or (each['candidates'][0]['answer'] if each['candidates'] else 'none')}"
        for id_, each in asked.items()
    ]
    done("answer", "j", *answers)
    done("resume", "j", "--yes")
    done("preview", "j")
    done("quarantine", "retry", "j")
    done("sync", "j")
    done("rehearse", source, cloud.socket_dsn, "--job", "r", "--model", "none", "--tolerate", "1000")
    for file in ("held.xlsx", "held.csv", "held.jsonl"):
        done("quarantine", "export", "j", "-o", file, *(["--entity", "contacts"] if file.endswith("csv") else []))
    for file in ("report.html", "report.md", "report.xlsx"):
        done("report", "j", "-o", file)
    done("plan", "draft", source, cloud.socket_dsn, "-o", "draft.yaml", "--model", "none")
    done("quarantine", "drop", "j", "--yes")
    done("verify", "j")


@pytest.fixture
def there(
    signed_off: tuple[Path, Database, set[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[Path, Database, set[str]]:
    """The same in a folder of the test's own; the target is shared, and not to be written to."""
    folder, database, words = signed_off
    shutil.copytree(folder, tmp_path / "here", copy_function=shutil.copy2)
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setenv("PACKHORSE_DATA_HOME", str(tmp_path / "here" / "data-home"))
    return tmp_path / "here", database, words


def _job(folder: Path) -> JobPaths:
    return JobPaths(folder, "j")


def _found(folder: Path, words: set[str]) -> dict[str, set[str]]:
    """The source's words in each file of the job, and of what is kept across jobs: as they are, and as UTF-16."""
    found = {}
    for place in (_job(folder).folder, folder / "data-home"):
        for file in (each for each in place.rglob("*") if each.is_file()):
            data = file.read_bytes()
            held = {word for word in words if word.encode() in data or word.encode("utf-16-le") in data}
            if held:
                found[str(file.relative_to(place))] = held
    return found


def _in_log(folder: Path, words: set[str]) -> dict[str, set[str]]:
    """The source's words in the log, by type of event."""
    found: dict[str, set[str]] = {}
    with sqlite3.connect(_job(folder).database) as connection:
        for type_, body in connection.execute("SELECT type, body FROM event"):
            if held := {word for word in words if word.casefold() in body.casefold()}:
                found.setdefault(type_, set()).update(held)
    connection.close()
    return found


def _accounts(folder: Path) -> dict[str, object]:
    """What has to stay."""
    with Workspace.open(_job(folder)) as workspace:
        state = state_at(workspace)
        parts = [json.loads(json.dumps(e.event.sha256)) for e in workspace.events(types=["part_staged"])]  # type: ignore[attr-defined]
        whose = [(e.at, e.event.type) for e in workspace.events() if not isinstance(e.event, JobPurged)]
    progress, belief = state.progress.to_dict(), state.belief
    decisions = {
        key: (each.made.choice, each.made.rung, each.made.confidence) for key, each in belief.decisions.items()
    }
    kept = ("entities", "counts", "decisions", "verified", "outcome", "exit_code", "phases", "plan_version")
    versions = [(each.version, each.by, each.why) for each in belief.plan_versions]
    return {
        **{k: progress[k] for k in kept}, "parts": parts, "whose": whose, "made": decisions, "plan": belief.plan,
        "versions": versions,
    }  # fmt: skip


def test_each_file_is_its_owners_alone_whatever_the_umask(signed_off: tuple[Path, Database, set[str]]) -> None:
    folder = signed_off[0]
    places = [folder / ".packhorse", folder / "data-home"]
    made = [*places, *(each for place in places for each in place.rglob("*")), *(folder / name for name in MINE[:-1])]
    assert len(made) > 60
    assert {str(each): oct(each.stat().st_mode & 0o777) for each in made if each.stat().st_mode & 0o077} == {}


def test_the_log_holds_no_value_but_what_goes_with_a_purge(there: tuple[Path, Database, set[str]]) -> None:
    folder, _, words = there
    found = _in_log(folder, words)
    keys = {word for word in words if word.endswith("akey")}
    assert found.pop("part_staged") <= keys
    assert found.pop("question_asked") == {"Zqxindustry", "Zqxunplaced", "Zqxstatus"}
    assert found.pop("question_answered") == {"Zqxindustry", "Zqxunplaced", "Zqxstatus"}
    assert {type_: held - PLACED for type_, held in found.items() if held - PLACED} == {}
    assert "plan_changed" in found
    for file in ("workspace.db", "workspace.db-wal"):
        assert _found(folder, words).get(file, set()) <= keys | PLACED | {"Zqxunplaced"}


def test_signatures_hold_no_value(there: tuple[Path, Database, set[str]]) -> None:
    """A trigger names the row as it likes: what it says is one signature all the same."""
    with Workspace.open(_job(there[0])) as workspace:
        failures = state_at(workspace).progress.entities["contacts"].failures
    said = [signature for signature in failures if "trigger" in signature]
    assert said == ["contacts: trigger bad name … of …"]


@pytest.mark.parametrize("kill", ["", *PURGE_POINTS, "purge log:40", "purge file removed:3"])
def test_purged_once_however_often_it_is_killed(kill: str, there: tuple[Path, Database, set[str]]) -> None:
    folder, _, words = there
    before = _accounts(folder)
    assert _found(folder, words)
    if kill:
        killed = migrate("purge", "j", "--yes", cwd=folder, env={"PACKHORSE_FAULT": kill})
        assert killed.code == -9, killed
        told = len(migrate_here("inspect", "j", "--log", "--type", "job_purged").out.splitlines())
        assert told == (kill not in ("purge begun", "purge log", "purge log:40"))
        assert _accounts(folder) == before
        if told:  # from here on nothing relies on files that may be gone
            migrate_here("resume", "j").refused("PH-101", "the job j was purged on")
    done = migrate_here("purge", "j", "--yes", "--json")
    assert done.code == 0, done
    (only,) = done.json["jobs"]
    assert (only["purged"], only["open"], only["cleaned_up"]) == (True, "", False)
    assert {name: held - PLACED for name, held in _found(folder, words).items() if held - PLACED} == {}
    assert _accounts(folder) == before
    left = {str(each.relative_to(_job(folder).folder)) for each in _job(folder).folder.rglob("*") if each.is_file()}
    log = {"workspace.db", "workspace.db-wal", "workspace.db-shm"}
    assert left - log == {"lock", "created", *(name for name in left if name.startswith("plans/"))}
    assert len(migrate_here("inspect", "j", "--log", "--type", "job_purged").out.splitlines()) == 1
    with (
        sqlite3.connect(_job(folder).database) as connection,
        pytest.raises(sqlite3.IntegrityError, match="append-only"),
    ):
        connection.execute("UPDATE event SET body = '{}' WHERE position = 1")
    connection.close()
    again = migrate_here("purge", "j", "--yes")
    assert (again.code, again.out) == (0, "j: was purged already\n"), again


def test_afterwards_each_verb_says_what_it_can_no_more(there: tuple[Path, Database, set[str]]) -> None:
    told = migrate_here("status", "j", "--json").json
    assert migrate_here("purge", "j", "--yes").code == 0
    for verb in ("resume", "preview", "verify", "sync", "quarantine retry"):
        migrate_here(*verb.split(), "j").refused(
            "PH-101",
            "the job j was purged on",
            "can't be resumed, previewed, verified, retried or synced",
            "migrate report j",
        )
    migrate_here("answer", "j", "--set", "values:accounts.industry=Zqxunplaced=retail").refused(
        "PH-101", "was purged on"
    )
    migrate_here(
        "run", migrate_here("status", "j", "--json").json["source"], there[1].socket_dsn, "--job", "j", "--yes"
    ).refused("PH-101", "was purged on")
    status = migrate_here("status", "j", "--json").json
    assert (status["state"], status["progress"]["counts"]) == ("purged", told["progress"]["counts"])
    shown = migrate_here("status", "j").out
    assert "its stage and record values are gone" in shown
    assert "migrate resume" not in shown
    assert "migrate cleanup j" in shown
    report = migrate_here("report", "j", "--json")
    assert (report.code, report.json["changes"], report.json["reconciled"]) == (0, None, True), report
    assert "was purged on" in report.json["why_no_changes"]
    assert migrate_here("jobs", "--json").json["jobs"][0]["state"] == "purged"
    assert migrate_here("plan", "explain", "accounts.industry", "--job", "j").code == 0


def test_not_while_somebody_runs_it(there: tuple[Path, Database, set[str]]) -> None:
    folder = there[0]
    before = _found(folder, there[2])
    with JobLock(_job(folder)):
        migrate_here("purge", "j", "--yes").refused("PH-402", "is being run by")
        skipped = migrate_here("purge", "--older-than", "0d", "--yes", "--json")
    assert "is being run by" in skipped.json["left"]["j"]
    assert _found(folder, there[2]) == before


def test_a_terminal_is_asked_once(there: tuple[Path, Database, set[str]]) -> None:
    folder = there[0]
    migrate_here("purge", "j").refused("PH-101", "nothing was purged: there is no terminal to ask on")
    child = pexpect.spawn(
        MIGRATE, ["purge", "j"], cwd=str(folder), env=environment(folder), encoding="utf-8", timeout=60
    )  # type: ignore[arg-type]
    child.expect("stays in the target until `migrate cleanup j`")
    child.expect(r"\[y/N\]")
    child.sendline("n")
    child.expect("nothing was purged")
    child.expect(pexpect.EOF)
    assert migrate_here("status", "j", "--json").json["state"] == "done"


def test_older_jobs_by_their_last_event(there: tuple[Path, Database, set[str]]) -> None:
    """`r` was rehearsed and never run: it isn't settled, and says so."""
    none = migrate_here("purge", "--older-than", "90d", "--yes", "--json").json
    assert (none["jobs"], none["left"]) == ([], {})
    shown = migrate_here("purge", "--older-than", "0d", "--dry-run", "--json").json
    assert [each["job"] for each in shown["jobs"]] == ["j"]
    assert (shown["dry_run"], shown["jobs"][0]["purged"], shown["jobs"][0]["files"] > 10) == (True, False, True)
    assert shown["left"]["r"].startswith("it is not done")
    assert migrate_here("status", "j", "--json").json["state"] == "done"
    assert migrate_here("purge", "--older-than", "0w", "--yes").code == 0
    assert _states() == {"purged": 1, "rehearsed": 1, "drafted": 1}
    assert migrate_here("purge", "--older-than", "0d", "--yes", "--unsettled").code == 0
    assert _states() == {"purged": 3}
    assert {n: h - PLACED for n, h in _found_in(there[0] / ".packhorse", there[2]).items() if h - PLACED} == {}
    for wrong in ("90", "d", "3m", "-1d"):
        migrate_here("purge", f"--older-than={wrong}").refused("PH-101", "is no age", "90d or 12w")
    migrate_here("purge", "j", "--older-than", "1d").refused("PH-101", "a job and --older-than at once")


def _states() -> Counter[str]:
    return Counter(each["state"] for each in migrate_here("jobs", "--json").json["jobs"])


def _found_in(place: Path, words: set[str]) -> dict[str, set[str]]:
    files = [each for each in place.rglob("*") if each.is_file()]
    return {str(f): {w for w in words if w.encode() in f.read_bytes()} for f in files}


@pytest.fixture
def small(tmp_path: Path, postgres_database: Database, monkeypatch: pytest.MonkeyPatch) -> Database:
    """A job `j` that is done and verified, with rows open in quarantine."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PACKHORSE_DATA_HOME", str(tmp_path / "data-home"))
    postgres_database.run(small_crm.TARGET)
    sqlite_source(tmp_path / "legacy.db", small_crm.SOURCE)
    (tmp_path / "plan.yaml").write_text("archive: left-out\n" + small_crm.PLAN)
    source, to = "sqlite:///legacy.db", postgres_database.socket_dsn
    done = migrate_here("run", source, to, "--plan", "plan.yaml", "--job", "j", "--tolerate", "100", "--yes")
    assert done.code == 0, done
    return postgres_database


def test_not_before_it_is_settled_unless_told_so(small: Database) -> None:
    migrate_here("purge", "j", "--yes").refused(
        "PH-101", "the job j is not settled", "rows are open in quarantine", "--unsettled"
    )
    assert migrate_here("purge", "j", "--dry-run").code == 0
    assert migrate_here("status", "j", "--json").json["state"] == "done"
    done = migrate_here("purge", "j", "--yes", "--unsettled")
    assert done.code == 0, done
    assert "elsewhere, yours to remove" in done.err
    assert Path("left-out/j").is_dir()
    assert '"unsettled": true' in migrate_here("inspect", "j", "--log", "--type", "job_purged", "--json").out


def test_dropped_rows_are_settled(small: Database) -> None:
    assert migrate_here("quarantine", "drop", "j", "--yes").code == 0
    assert migrate_here("verify", "j").code == 0
    assert migrate_here("purge", "j", "--yes").code == 0


def test_a_purged_job_is_still_taken_out_of_the_target(small: Database) -> None:
    """Its crosswalk is exported; its raw rows, which were to go, are not put on the disk again."""
    assert migrate_here("purge", "j", "--yes", "--unsettled").code == 0
    done = migrate_here("cleanup", "j", "--yes", "--json")
    assert (done.code, done.json["quarantine"], sum(done.json["rows"].values())) == (0, None, 11), done
    assert small.rows("SELECT nspname FROM pg_namespace WHERE nspname = 'packhorse'") == []
    assert migrate_here("status", "j", "--json").json["state"] == "purged"
    assert "migrate cleanup" not in migrate_here("status", "j").out
    migrate_here("verify", "j").refused("PH-101", "was purged on")
    folder = JobPaths(Path.cwd(), "j").folder
    assert {each.name for each in folder.iterdir() if each.is_file()} >= {"crosswalk.parquet"}
    assert not list(folder.glob("*quarantine*"))


def test_what_a_cleanup_exported_goes_too(small: Database) -> None:
    """The rows of the quarantine always, the crosswalk where that is asked for."""
    folder = JobPaths(Path.cwd(), "j").folder
    assert migrate_here("cleanup", "j", "--yes").code == 0
    assert (folder / "crosswalk-quarantine.jsonl").is_file()
    (folder / "notes.txt").write_text("mine")
    done = migrate_here("purge", "j", "--yes")
    assert done.code == 0, done
    assert "stays in the job's folder" in done.err
    assert "migrate cleanup" not in done.err
    assert ((folder / "crosswalk.parquet").is_file(), (folder / "crosswalk-quarantine.jsonl").exists()) == (True, False)
    assert migrate_here("purge", "j", "--yes", "--crosswalk").code == 0
    assert not (folder / "crosswalk.parquet").exists()
    assert (folder / "notes.txt").read_text() == "mine"


def test_a_purged_job_is_still_taken_back(small: Database) -> None:
    """What the job wrote stands in the target's own records."""
    assert migrate_here("purge", "j", "--yes", "--unsettled").code == 0
    done = migrate_here("undo", "j", "--yes", "--json")
    assert (done.code, done.json["deleted"]) == (0, 11), done
    assert small.rows("SELECT count(*) FROM people") == [(0,)]


def test_a_script_writes_for_its_owner_alone(small: Database, tmp_path: Path) -> None:
    import packhorse

    before = os.umask(0)
    try:
        plan = packhorse.load_plan("plan.yaml")
        folder = tmp_path / "script"
        folder.mkdir()
        packhorse.run(plan, job="s", source="sqlite:///legacy.db", target=small.socket_dsn, folder=folder, tolerate=100)
        assert os.umask(0) == 0
    finally:
        os.umask(before)
    made = list((folder / ".packhorse").rglob("*"))
    assert len(made) > 20
    assert [str(each) for each in made if each.stat().st_mode & 0o077] == []
