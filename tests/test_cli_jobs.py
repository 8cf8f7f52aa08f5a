"""Whole jobs by the command, on a real PostgreSQL: run, dry run, signals, resume, verify, quarantine, draft."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pexpect
import psycopg
import pytest

from sample_data.servers import Database, PostgresServer
from tests.cli_runner import MIGRATE, Result, environment, migrate, migrate_here

PASSWORD = "hunter2 horse"
PLAN = """\
version: 1
entities:
  accounts:
    from: accounts
    to: companies
    key: id
    id: uuid5
    fields:
      name: {sql: "trim(name)"}
  contacts:
    from: contacts
    to: people
    where: "deleted = '0'"
    key: id
    id: uuid5
    fields:
      full_name: {sql: "trim(name)"}
      email: {sql: "email(mail)"}
      company_id: {from: account_id, ref: accounts, missing: 'null'}
    unmapped:
      notes: no counterpart
"""
TARGET = """
CREATE TABLE companies (id uuid PRIMARY KEY, name text NOT NULL);
CREATE TABLE people (id uuid PRIMARY KEY, full_name text NOT NULL, email text,
    company_id uuid REFERENCES companies, CHECK (full_name <> 'Mallory'));
"""
CONTACTS = 600


@dataclass(frozen=True)
class Job:
    """A folder with a legacy CRM and a plan, and a target; commands are run in it."""

    folder: Path
    source: str
    target: Database
    server: PostgresServer

    def run(self, *more: str) -> Result:
        return migrate_here("run", self.source, self.dsn, "--plan", "plan.yaml", "--job", "j", *more)

    @property
    def dsn(self) -> str:
        return self.target.socket_dsn

    @property
    def command(self) -> list[str]:
        return [MIGRATE, "run", self.source, self.dsn, "--plan", "plan.yaml", "--job", "j"]

    def rows(self) -> list[tuple[object, ...]]:
        return [
            *self.target.rows("SELECT id::text, name FROM companies ORDER BY 1"),
            *self.target.rows("SELECT id::text, full_name, email, company_id::text FROM people ORDER BY 1"),
        ]

    def count(self, table: str) -> int:
        return int(self.target.rows(f"SELECT count(*) FROM {table}")[0][0])

    def started(self, **env: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [*self.command, "--yes"], cwd=self.folder, env=environment(self.folder, env), text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip

    @contextmanager
    def blocked(self, table: str) -> Iterator[Callable[[], None]]:
        """Keeps rows out of a table, not readers; yields what waits until a batch stands before it."""
        with psycopg.connect(self.dsn) as holder:
            holder.execute(f"LOCK TABLE {table} IN SHARE MODE".encode())
            yield lambda: until(
                lambda: bool(
                    self.server.rows(
                        "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
                        f" AND datname = '{self.target.name}'"
                    )
                )
            )


def until(true: Callable[[], bool], seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it did not come to pass"
        time.sleep(0.02)


@pytest.fixture
def job(tmp_path: Path, postgres: PostgresServer, postgres_database: Database, monkeypatch: pytest.MonkeyPatch) -> Job:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PACKHORSE_DATA_HOME", str(tmp_path / "data-home"))
    postgres_database.run(TARGET)
    legacy = tmp_path / "legacy.db"
    with sqlite3.connect(legacy) as connection:
        connection.execute("CREATE TABLE accounts (id INTEGER PRIMARY KEY, name TEXT)")
        connection.execute(
            "CREATE TABLE contacts (id INTEGER PRIMARY KEY, name TEXT, mail TEXT, account_id INT, deleted INT, notes TEXT)"
        )
        connection.executemany("INSERT INTO accounts VALUES (?, ?)", [(i, f"Firm {i}") for i in range(40)])
        connection.executemany(
            "INSERT INTO contacts VALUES (?, ?, ?, ?, ?, ?)",
            [(i, f" Person {i}", f"P{i}@Example.com", i % 45, int(i % 10 == 9), None) for i in range(CONTACTS)],
        )
        connection.execute("UPDATE contacts SET mail = 'nobody at home' WHERE id IN (1, 2, 3)")
        connection.execute("UPDATE contacts SET name = 'Mallory' WHERE id = 4")
    connection.close()
    (tmp_path / "plan.yaml").write_text(PLAN)
    return Job(tmp_path, f"sqlite:///{legacy}", postgres_database, postgres)


def test_a_job_from_end_to_end(job: Job) -> None:
    ran = job.run("--yes", "--json")
    assert ran.code == 0, ran
    counts = ran.json["progress"]["entities"]["contacts"]["counts"]
    assert (counts["read"], counts["inserted"], counts["excluded"], counts["quarantined"]) == (600, 536, 60, 4)
    assert ran.json["progress"]["verified"] is True
    assert (job.count("companies"), job.count("people")) == (40, 536)
    before = job.rows()

    verified = migrate_here("verify", "--json")
    assert verified.code == 0, verified
    assert [e["read"] == e["loaded"] + e["merged"] + e["excluded"] + e["quarantined"] for e in verified.json["entities"]] == [
        True, True,
    ]  # fmt: skip

    assert migrate_here("preview", "j", "--json").json["entities"][1]["unchanged"] == 536
    assert migrate_here("jobs", "--json").json["jobs"][0]["state"] == "done"  # looking changes nothing

    clusters = migrate_here("quarantine", "list", "--json").json["clusters"]
    assert {(c["code"], c["count"]) for c in clusters} == {("function", 3), ("check", 1)}
    signature = next(c["signature"] for c in clusters if c["code"] == "function")
    rows = migrate_here("quarantine", "show", "--signature", signature, "--json").json["rows"]
    assert sorted(row["key"] for row in rows) == [["1"], ["2"], ["3"]]
    assert rows[0]["raw"]["mail"] == "nobody at home"
    assert migrate_here("quarantine", "export", "-o", "held.csv").code == 0
    assert len((job.folder / "held.csv").read_text().splitlines()) == 5
    assert (job.folder / "held.csv").stat().st_mode & 0o777 == 0o600
    assert migrate_here("quarantine", "export", "-o", "held.jsonl").code == 0
    assert len((job.folder / "held.jsonl").read_text().splitlines()) == 4

    again = migrate_here("resume", "j")  # nothing is left to do
    assert again.code == 0, again
    assert job.rows() == before
    assert "j: done, reconciled" in again.out


def test_verify_turns_red_when_a_row_is_missing(job: Job) -> None:
    assert job.run("--yes").code == 0
    job.target.run("DELETE FROM people WHERE full_name = 'Person 5'")
    red = migrate_here("verify")
    assert red.code == 1
    assert "NOT RECONCILED" in red.out
    assert "no longer in the target" in red.out
    assert "failed (not verified)" in migrate_here("status").out


def test_more_in_quarantine_than_tolerated(job: Job) -> None:
    assert job.run("--yes", "--tolerate", "3").code == 3
    assert migrate_here("jobs", "--json").json["jobs"][0]["exit_code"] == 3


def test_nothing_is_written_by_previews(job: Job) -> None:
    before = _dump(job)
    dry = job.run("--dry-run", "--yes", "--json")
    assert dry.code == 0, dry
    contacts = next(e for e in dry.json["entities"] if e["entity"] == "contacts")
    assert (contacts["read"], contacts["load"], contacts["excluded"], contacts["quarantined"]) == (600, 537, 60, 3)
    text = migrate_here("preview", "j")
    assert text.code == 0, text
    assert "' Person 0'" in text.out
    assert "-> full_name 'Person 0'" in text.out
    assert "no counterpart" in text.out
    assert "nothing was written" in text.out
    given = ["--source", job.source, "--target", job.dsn]
    assert migrate_here("preview", "--plan", "plan.yaml", *given).code == 0
    assert [each["state"] for each in migrate_here("jobs", "--json").json["jobs"]] == ["previewed", "previewed"]
    assert migrate_here("plan", "check", "plan.yaml", *given).code == 0
    assert migrate_here("plan", "draft", job.source, job.dsn, "--model", "none", "-o", "draft.yaml").code == 0
    assert _dump(job) == before
    resumed = migrate_here("resume", "j", "--yes")  # what was previewed is what is loaded
    assert resumed.code == 0, resumed
    assert job.count("people") == 536


def test_a_drafted_plan_can_be_checked(job: Job) -> None:
    drafted = migrate_here("plan", "draft", job.source, job.dsn, "--model", "none", "-o", "draft.yaml", "--job", "d")
    assert drafted.code == 0, drafted
    if "entities: {}" not in (job.folder / "draft.yaml").read_text():
        checked = migrate_here("plan", "check", "draft.yaml")
        assert checked.code == 0, checked
    migrate_here("plan", "draft", job.source, job.dsn, "-o", "draft.yaml").refused("PH-101", "--force")


def test_the_first_migration_of_the_readme(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LEGACY", job.source)
    monkeypatch.setenv("CLOUD", job.target.dsn)  # holds a password
    given = ["${LEGACY}", "${CLOUD}"]
    assert migrate_here("doctor", *given, "--model", "none").code == 0
    dry = migrate_here("run", *given, "--zone", "Europe/Berlin", "--job", "crm", "--dry-run", "--model", "none")
    assert dry.code in (0, 4), dry
    assert job.count("people") == 0
    questions = migrate_here("answer", "crm", "--json")
    assert questions.code == 0, questions
    resumed = migrate_here("resume", "crm", "--yes")  # the DSNs need not be given again
    assert resumed.code in (0, 3, 4), resumed
    if resumed.code != 4:
        assert job.count("people") > 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_one_signal_finishes_the_batch_and_resume_goes_on(job: Job, number: signal.Signals) -> None:
    with job.blocked("companies") as wait:
        process = job.started()
        wait()
        process.send_signal(number)
        assert "finishing the batch at hand" in _line(process, "finishing")
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, (out, err)
    assert "migrate resume j" in err
    assert "Traceback" not in err
    assert (job.count("companies"), job.count("people")) == (40, 0)  # the batch at hand, and no other
    assert migrate_here("jobs", "--json").json["jobs"][0]["state"] == "interrupted"
    assert migrate_here("resume", "--yes").code == 0
    assert job.count("people") == 536


def test_a_second_signal_stops_at_once_and_loses_nothing(job: Job) -> None:
    with job.blocked("people") as wait:
        process = job.started()
        wait()
        process.send_signal(signal.SIGINT)
        _line(process, "finishing")
        began = time.monotonic()
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=30)  # while the table is still locked
        assert time.monotonic() - began < 10
    assert process.returncode == 130
    assert "Traceback" not in err
    assert migrate_here("resume", "--yes").code == 0
    assert (job.count("companies"), job.count("people")) == (40, 536)


@pytest.mark.parametrize("place", ["before commit:2", "after commit:2", "after transform", "after part recorded"])
def test_killed_and_resumed_is_as_undisturbed(job: Job, place: str) -> None:
    process = job.started(PACKHORSE_FAULT=place)
    process.communicate(timeout=120)
    assert process.returncode == -signal.SIGKILL
    assert migrate_here("jobs", "--json").json["jobs"][0]["state"] == "stopped"
    resumed = migrate_here("resume", "--yes")
    assert resumed.code == 0, resumed
    killed = job.rows()
    job.target.run("TRUNCATE people, companies; DROP SCHEMA packhorse CASCADE")
    undisturbed = migrate_here("run", job.source, job.dsn, "--plan", "plan.yaml", "--job", "other", "--yes")
    assert undisturbed.code == 0, undisturbed
    assert job.rows() == killed


def test_a_second_process_or_machine_on_the_same_job(job: Job, tmp_path: Path) -> None:
    with job.blocked("people") as wait:
        process = job.started()
        wait()
        job.run("--yes").refused("PH-402", f"process {process.pid}")
        migrate_here("resume", "j").refused("PH-402")
        elsewhere = tmp_path / "another-machine"
        elsewhere.mkdir()
        command = ["run", job.source, job.dsn, "--plan", str(job.folder / "plan.yaml"), "--job", "j", "--yes"]
        migrate(*command, cwd=elsewhere).refused("PH-402", "j")
    process.communicate(timeout=60)
    assert process.returncode == 0


def test_a_password_is_kept_nowhere_and_asked_for_again(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    role = f"carrier_{job.target.name}"
    job.target.run(f"CREATE ROLE {role} LOGIN SUPERUSER PASSWORD '{PASSWORD}'")
    dsn = job.server.dsn(job.target.name, user=role, password=PASSWORD)
    try:
        command = ["run", job.source, dsn, "--plan", "plan.yaml", "--job", "j", "--yes"]
        ran = migrate(*command, "--json", cwd=job.folder)
        assert ran.code == 0, ran
        told = [ran.out, ran.err]
        for verb in (("status",), ("inspect",), ("inspect", "--log"), ("jobs",)):
            told.append(migrate_here(*verb, "--json").out)
        refused = migrate_here("verify", "j")
        refused.refused("PH-101", "--target", "PACKHORSE_TARGET")
        again = migrate_here("resume", "j")
        again.refused("PH-101", "--target")
        told += [refused.err, again.err]
        for way in (dsn, "${MY_CLOUD}"):
            monkeypatch.setenv("MY_CLOUD", dsn)
            monkeypatch.setenv("PACKHORSE_TARGET", way)
            verified = migrate_here("verify", "j")
            assert verified.code == 0, verified
            told += [verified.out, verified.err]
        files = [path for path in job.folder.rglob("*") if path.is_file()]
        assert any(path.name == "workspace.db" for path in files)
        for secret in (PASSWORD, PASSWORD.replace(" ", "%20")):
            assert not [text for text in told if secret in text]
            assert not [path for path in files if secret.encode() in path.read_bytes()]
    finally:
        job.target.run(f"DROP OWNED BY {role} CASCADE; DROP ROLE {role}")


def test_on_a_terminal_it_asks_once_before_the_first_row(job: Job) -> None:
    env = environment(job.folder, {"TERM": "xterm", "COLUMNS": "120"})
    for answer, code, people in (("n", 130, 0), ("y", 0, 536)):
        child = pexpect.spawn(
            job.command[0], job.command[1:], cwd=str(job.folder), env=env, timeout=60, encoding="utf-8"
        )
        child.expect("move these rows")
        assert job.count("people") == 0
        child.sendline(answer)
        child.expect(pexpect.EOF)
        child.close()
        assert child.exitstatus == code, child.before
        assert job.count("people") == people


def test_on_a_terminal_it_asks_what_only_a_person_can_say(job: Job) -> None:
    job.target.run("ALTER TABLE people ADD COLUMN joined_at timestamptz")
    with sqlite3.connect(job.folder / "legacy.db") as connection:
        connection.execute("ALTER TABLE contacts ADD COLUMN joined_at TEXT")
        connection.execute("UPDATE contacts SET joined_at = '2019-05-01 10:00:00'")
    connection.close()
    env = environment(job.folder, {"TERM": "xterm", "COLUMNS": "120"})
    command = ["run", job.source, job.dsn, "--job", "asked", "--model", "none", "--dry-run"]
    child = pexpect.spawn(MIGRATE, command, cwd=str(job.folder), env=env, timeout=60, encoding="utf-8")
    typed = ["Mars/Base", "Europe/Berlin"]
    while child.expect(["answer \\([^:]*: $", pexpect.EOF], timeout=120) == 0:
        asked_now = child.before.rpartition("question ")[2]
        child.sendline(typed.pop(0) if "In which zone" in asked_now and typed else "")
    child.close()
    assert not typed
    zone = migrate_here("inspect", "asked", "--belief", "--json").json["belief"]["decisions"]["zone"]
    assert [(made["choice"], made["rung"]) for made in zone.values()] == [("Europe/Berlin", "ask")]


RUNS: list[tuple[str, list[str], str]] = [
    ("unknown scheme", ["run", "oracle://h/d", "TARGET"], "PH-102"),
    ("a target that cannot be one", ["run", "SOURCE", "exports"], "PH-102"),
    ("no target there", ["run", "SOURCE", "sqlite:///x.db"], "PH-103"),
    ("no source there", ["run", "sqlite:///nowhere.db", "TARGET"], "PH-103"),
    ("wrong port", ["run", "SOURCE", "postgresql://me@127.0.0.1:1/db"], "PH-103"),
    ("no such plan", ["run", "SOURCE", "TARGET", "--plan", "no.yaml"], "PH-201"),
    ("a job's name", ["run", "SOURCE", "TARGET", "--job", "../x"], "PH-401"),
    ("autonomy", ["run", "SOURCE", "TARGET", "--autonomy", "2"], "PH-101"),
    ("zone", ["run", "SOURCE", "TARGET", "--zone", "Mars/Base", "--model", "none"], "PH-101"),
    ("no model", ["run", "SOURCE", "TARGET", "--model", "no.gguf"], "PH-301"),
    ("a model that is none", ["run", "SOURCE", "TARGET", "--model", "plan.yaml"], "PH-301"),
    ("a model cut off", ["run", "SOURCE", "TARGET", "--model", "cut.gguf"], "PH-301"),
    ("check: cut off", ["model", "check", "cut.gguf"], "PH-301"),
    ("check: none", ["model", "check", "plan.yaml"], "PH-301"),
    ("one argument", ["run", "SOURCE"], "PH-101"),
]  # fmt: skip


@pytest.mark.parametrize(("arguments", "code"), [each[1:] for each in RUNS], ids=[each[0] for each in RUNS])
def test_bad_runs_move_nothing(job: Job, arguments: list[str], code: str) -> None:
    from agent.models.embedded import embedded_model_path

    (job.folder / "cut.gguf").write_bytes(embedded_model_path().read_bytes()[:1_000_000])
    (job.folder / "exports").mkdir()
    before = _dump(job)
    given = [{"SOURCE": job.source, "TARGET": job.dsn}.get(each, each) for each in arguments]
    migrate_here(*given, *(["--yes"] if given[0] == "run" else [])).refused(code)
    assert _dump(job) == before


@pytest.mark.parametrize("verb", ["run", "resume", "verify", "preview"])
def test_a_workspace_of_a_newer_version(job: Job, verb: str) -> None:
    assert job.run("--yes", "--dry-run").code == 0
    with sqlite3.connect(job.folder / ".packhorse/jobs/j/workspace.db") as connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()
    result = job.run("--yes") if verb == "run" else migrate_here(verb, "j")
    result.refused("PH-401", "newer")
    assert job.count("people") == 0


def test_a_job_name_that_is_taken_by_other_systems(job: Job) -> None:
    assert job.run("--yes").code == 0
    (job.folder / "other.csv").write_text("id,name\n1,a\n")
    migrate_here("run", "other.csv", job.dsn, "--job", "j", "--yes", "--model", "none").refused("PH-101", "--job")


def test_a_disk_that_fills_is_one_line_and_resumable(job: Job, tmp_path: Path) -> None:
    small = tmp_path / "small"
    small.mkdir()
    if (
        os.geteuid() != 0
        or subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", str(small)], capture_output=True, check=False
        ).returncode
    ):
        pytest.skip("no right to mount a small disk")
    command = ["run", job.source, job.dsn, "--plan", str(job.folder / "plan.yaml"), "--job", "j", "--yes"]
    filler = small / "filler"
    try:
        filler.write_bytes(b"x" * (3 * 2**20 - 256 * 1024))
        full = migrate(*command, cwd=small)
        full.refused("PH-502", exit_code=1)
        filler.unlink()
        resumed = migrate("resume", "j", "--yes", cwd=small)
        assert resumed.code == 0, resumed
        assert job.count("people") == 536
    finally:
        subprocess.run(["umount", "-l", str(small)], check=True)


def _line(process: subprocess.Popen[str], word: str) -> str:
    """Reads the process's stderr up to a line with the word."""
    assert process.stderr is not None
    while line := process.stderr.readline():
        if word in line:
            return line
    raise AssertionError(f"no line with {word!r}")


def _dump(job: Job) -> str:
    """The whole target as pg_dump writes it, catalogue and rows."""
    done = subprocess.run(
        [job.server.binaries / "pg_dump", "-h", job.server.socket_folder, "-p", str(job.server.port), "-U", "postgres", job.target.name],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return "\n".join(line for line in done.stdout.splitlines() if "restrict" not in line)
