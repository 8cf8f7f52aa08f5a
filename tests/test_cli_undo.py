"""`migrate undo` as a person meets it: what is shown and asked, exit codes, and what other verbs say afterwards."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path

import pexpect
import pytest

from sample_data.servers import Database, PostgresServer
from tests.cli_runner import MIGRATE, environment, migrate_here
from tests.engine_jobs import sqlite_source
from tests.test_cli_jobs import PLAN, TARGET, Job

SOURCE = """
CREATE TABLE accounts (id INTEGER PRIMARY KEY, name TEXT);
INSERT INTO accounts VALUES (1, 'Acme'), (2, 'Bolt');
CREATE TABLE contacts (id INTEGER PRIMARY KEY, name TEXT, mail TEXT, account_id INT, deleted INT, notes TEXT);
INSERT INTO contacts VALUES (1, 'Ana', 'ana@example.com', 1, 0, NULL), (2, 'Bo', 'nobody at home', 2, 0, NULL), (3, 'Cy', NULL, 1, 1, NULL),
  (4, 'Di', NULL, 2, 0, NULL);
"""


@pytest.fixture
def job(tmp_path: Path, postgres: PostgresServer, postgres_database: Database, monkeypatch: pytest.MonkeyPatch) -> Job:
    """A job that moved two firms and two people; one more is in quarantine, one is left out."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PACKHORSE_DATA_HOME", str(tmp_path / "data-home"))
    postgres_database.run(TARGET)
    (tmp_path / "plan.yaml").write_text(PLAN)
    made = Job(tmp_path, sqlite_source(tmp_path / "legacy.db", SOURCE), postgres_database, postgres)
    assert made.run("--yes", "--tolerate", "100").code == 0
    assert len(made.rows()) == 4
    return made


def test_taken_back_and_over(job: Job) -> None:
    asked = migrate_here("undo", "j")
    asked.refused("PH-101", "nothing was taken back", "--yes")
    assert "contacts  people           1       2        0     0            1" in asked.err
    assert len(job.rows()) == 4

    done = migrate_here("undo", "j", "--yes")
    assert (done.code, done.out) == (0, "j: taken back: 4 rows deleted, 0 restored\n"), done
    assert job.rows() == []

    again = migrate_here("undo", "j")
    assert (again.code, again.out) == (0, "j: nothing of it is left in the target\n"), again
    status = migrate_here("status", "j", "--json").json
    assert (status["state"], status["progress"]["taken_back"], status["progress"]["counts"]["loaded"]) == (
        "undone",
        True,
        0,
    )
    assert status["progress"]["entities"]["contacts"]["undone"] == {
        "batches": 1,
        "deleted": 2,
        "restored": 0,
        "refused": 0,
    }
    assert "all, 1 taken back" in migrate_here("status", "j").out
    assert migrate_here("jobs", "--json").json["jobs"][0]["state"] == "undone"
    assert migrate_here("quarantine", "list", "j", "--json").json["clusters"] == []
    assert migrate_here("quarantine", "show", "j", "--json").json["rows"] == []
    verified = migrate_here("verify", "j", "--json")
    assert verified.code == 0, verified
    assert {(e["read"], e["loaded"]) for e in verified.json["entities"]} == {(0, 0)}
    assert migrate_here("jobs", "--json").json["jobs"][0]["state"] == "undone"  # looking changes nothing
    for command in (["resume", "j"], [*job.command[1:], "--yes"]):
        migrate_here(*command).refused("PH-101", "the job j was taken back and is over", "another --job name")
    assert job.rows() == []
    assert migrate_here(*job.command[1:-1], "j2", "--yes", "--tolerate", "100").code == 0
    assert len(job.rows()) == 4


def test_rows_that_stay(job: Job) -> None:
    job.target.run("UPDATE people SET full_name = 'Diana' WHERE full_name = 'Di'")
    kept = migrate_here("undo", "j", "--yes", "--json")
    assert kept.code == 3, kept
    [(id_,)] = job.target.rows("SELECT id::text FROM people")
    [(firm,)] = job.target.rows("SELECT id::text FROM companies")
    assert kept.json == {
        "job": "j",
        "batch": None,
        "deleted": 2,
        "restored": 0,
        "kept": {
            "accounts": {"a row of public.people refers to it": 1},
            "contacts": {"changed in the target since": 1},
        },
        "kept_rows": [
            {"entity": "accounts", "key": ["2"], "id": firm, "reason": "a row of public.people refers to it"},
            {"entity": "contacts", "key": ["4"], "id": id_, "reason": "changed in the target since"},
        ],
        "refused": 2,
        "exit_code": 3,
    }
    assert "migrate undo j         tries again" in migrate_here("status", "j").out
    again = migrate_here("undo", "j", "--yes")
    assert again.code == 3
    assert "        1 rows of contacts stay: changed in the target since" in again.out
    assert "j: 0 rows deleted, 0 restored, 2 STAY" in again.out


def test_one_batch(job: Job) -> None:
    done = migrate_here("undo", "j", "--batch", "contacts:0", "--yes")
    assert (done.code, done.out) == (0, "j, batch contacts:0: taken back: 2 rows deleted, 0 restored\n"), done
    assert (job.count("people"), job.count("companies")) == (0, 2)
    assert migrate_here("resume", "j").code == 0
    assert job.count("people") == 0
    assert migrate_here("status", "j", "--json").json["state"] == "done"


@pytest.mark.parametrize(
    ("batch", "words"),
    [
        ("contacts", "'contacts' is no batch"),
        (":1", "is no batch"),
        ("contacts:x", "is no batch"),
        ("contacts:9999999999999", "is no batch"),
        ("contacts:7", "contacts has no batch 7"),
        ("leads:0", "leads has no batch 0"),
    ],
)
def test_no_such_batch(batch: str, words: str, job: Job) -> None:
    migrate_here("undo", "j", "--batch", batch, "--yes").refused("PH-101", words)
    assert len(job.rows()) == 4


def test_the_source_is_not_needed(job: Job) -> None:
    (job.folder / "legacy.db").unlink()
    assert migrate_here("undo", "j", "--yes").code == 0
    assert job.rows() == []


def test_on_a_terminal_it_asks_once(job: Job) -> None:
    env = environment(job.folder, {"TERM": "xterm", "COLUMNS": "120"})
    for answer, code, rows in (("n", 130, 4), ("y", 0, 0)):
        child = pexpect.spawn(MIGRATE, ["undo", "j"], cwd=str(job.folder), env=env, timeout=60, encoding="utf-8")
        child.expect("take back all of it")
        assert len(job.rows()) == 4
        child.sendline(answer)
        child.expect(pexpect.EOF)
        child.close()
        assert child.exitstatus == code, child.before
        assert len(job.rows()) == rows


def test_interrupted_and_gone_on_with(job: Job) -> None:
    """A signal lets the batch at hand go to its end: people go, firms stay until the command is given again."""
    env = environment(job.folder)
    with job.blocked("people") as until_blocked:
        undoing = subprocess.Popen(
            [MIGRATE, "undo", "j", "--yes"], cwd=job.folder, env=env, stderr=subprocess.PIPE, text=True
        )
        until_blocked()
        undoing.send_signal(signal.SIGINT)
        assert undoing.stderr is not None
        while "finishing the batch" not in undoing.stderr.readline():
            assert undoing.poll() is None
    _, said = undoing.communicate(timeout=60)
    assert undoing.returncode == 130, said
    assert "interrupted PH-602: interrupted; what was taken back stays taken back" in said
    assert (job.count("people"), job.count("companies")) == (0, 2)
    assert "migrate undo j         goes on taking back" in migrate_here("status", "j").out
    migrate_here("resume", "j").refused("PH-101", "was taken back and is over")
    assert migrate_here("undo", "j", "--yes").code == 0
    assert job.rows() == []
