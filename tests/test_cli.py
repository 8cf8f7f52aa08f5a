"""The command: jobs, status, inspect and init on a real workspace; text, JSON, and what may not be printed."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pexpect
import pytest

from cli.init import plan_to_start_from
from cli.verbs import app
from engine.plan import parse_plan
from engine.plan_schema import plan_schema
from tests.cli_runner import MIGRATE, environment, migrate
from workspace.events import (
    BatchCommitted,
    BeliefHeld,
    DecisionMade,
    JobFinished,
    JobStarted,
    PhaseStarted,
    QuarantineSeen,
    QuestionAsked,
)
from workspace.lock import JobLock
from workspace.log import Workspace
from workspace.paths import JobPaths

NASTY = "a\x1b[31mred\x1b[0m [red]b[/red] \u202etxt\n:smile:\x07"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with one job whose texts hold what would steer a terminal."""
    with Workspace.open(JobPaths(tmp_path, "first"), write=True) as workspace:
        workspace.record(
            JobStarted(job="first", source="sqlite:///crm.db", target="postgresql://me@db/cloud"),
            PhaseStarted("survey"),
            BeliefHeld(subject="contacts.email1", claim="holds e-mail addresses", confidence=0.98),
            DecisionMade(
                id="d1", kind="match", subject="people.email", choice={"from": NASTY}, rung="rule", confidence=0.9
            ),
            PhaseStarted("load"),
            BatchCommitted(
                entity="contacts", batch=0, step=1, plan_version=1, read=1200, inserted=1190, quarantined=10
            ),
            QuarantineSeen(entity="contacts", signature=f"birthday: {NASTY}", code="cast", field="birthday", count=10),
            QuestionAsked(id="q1", kind="match", subject="people.city", text=f"which column is the city? {NASTY}"),
            JobFinished("waiting", 4),
        )
    return tmp_path


def test_jobs(folder: Path) -> None:
    text = migrate("jobs", cwd=folder)
    assert text.code == 0
    assert text.out.splitlines()[1].split() == [
        "first",
        "waiting",
        "load",
        "1,200",
        "1,190",
        "10",
        "1",
        *text.out.split()[-2:],
    ]
    job = migrate("jobs", "--json", cwd=folder).json["jobs"][0]
    assert (job["job"], job["state"], job["read"], job["loaded"], job["exit_code"]) == (
        "first",
        "waiting",
        1200,
        1190,
        4,
    )


def test_jobs_where_there_is_none(tmp_path: Path) -> None:
    assert migrate("jobs", "--json", cwd=tmp_path).json == {"jobs": []}
    assert "migrate run" in migrate("jobs", cwd=tmp_path).out


def test_a_damaged_job_does_not_hide_the_others(folder: Path) -> None:
    broken = JobPaths(folder, "broken").create()
    broken.database.write_bytes(b"no database at all" * 100)
    states = {job["job"]: job["state"] for job in migrate("jobs", "--json", cwd=folder).json["jobs"]}
    assert states == {"first": "waiting", "broken": "unreadable"}


def test_status(folder: Path) -> None:
    text = migrate("status", cwd=folder)
    assert "first: waiting" in text.out
    assert "migrate answer first" in text.out
    status = migrate("status", "first", "--json", cwd=folder).json
    assert status["progress"]["entities"]["contacts"]["counts"]["quarantined"] == 10
    assert status["running"] is None


def test_status_says_who_runs_it(folder: Path) -> None:
    with JobLock(JobPaths(folder, "first")):
        assert f"running, process {os.getpid()}" in migrate("status", cwd=folder).out
        assert migrate("jobs", "--json", cwd=folder).json["jobs"][0]["state"] == "running"


def test_inspect_at_and_diff(folder: Path) -> None:
    assert migrate("inspect", "--at", "2", "--json", cwd=folder).json["progress"]["phase"] == "survey"
    now = migrate("inspect", "--progress", "--json", cwd=folder).json
    assert set(now) == {"job", "position", "progress"}
    assert now["position"] == 9
    diff = migrate("inspect", "--diff", "2", "6", "--json", cwd=folder).json
    assert (diff["from"], diff["to"]) == (2, 6)
    assert ["progress", "phase"] in [item["path"] for item in diff["changed"]]
    text = migrate("inspect", "--diff", "2", "6", cwd=folder).out
    assert "~ progress.phase: survey -> load" in text
    only = migrate("inspect", "--diff", "2", "6", "--belief", "--json", cwd=folder).json
    assert {item["path"][0] for part in ("appeared", "changed", "went") for item in only[part]} == {"belief"}


def test_inspect_log(folder: Path) -> None:
    events = migrate("inspect", "--log", "--json", cwd=folder).json["events"]
    assert [event["position"] for event in events] == list(range(1, 10))
    assert len(migrate("inspect", "--log", "--type", "phase_started", cwd=folder).out.splitlines()) == 2


def test_answering_on_a_terminal(folder: Path) -> None:
    env = environment(folder, {"TERM": "xterm"})
    child = pexpect.spawn(MIGRATE, ["answer"], cwd=str(folder), env=env, timeout=60, encoding="utf-8")
    child.expect("which column is the city")
    child.expect("answer \\(")
    child.sendline("no such thing")
    child.expect("is no answer")
    child.expect("answer \\(")
    child.sendline("none")
    child.expect("1 answered, 0 open; migrate resume first")
    child.expect(pexpect.EOF)
    child.close()
    assert migrate("answer", "--json", cwd=folder).json["questions"] == []


def test_answering_by_option(folder: Path) -> None:
    listed = migrate("answer", cwd=folder)
    assert "--set 'q1=1'" in listed.out
    migrate("answer", "--set", "q1", cwd=folder).refused("PH-101", "QUESTION=ANSWER")
    migrate("answer", "--set", "q9=none", cwd=folder).refused("PH-101", "q9")
    answered = migrate("answer", "--set", "q1=none", "--json", cwd=folder).json
    assert (answered["answered"], answered["questions"]) == (1, [])


@pytest.mark.parametrize(
    "command",
    [("status",), ("inspect",), ("inspect", "--log"), ("inspect", "--diff", "0", "9"), ("quarantine", "list")],
)
def test_record_values_cannot_steer_a_terminal(folder: Path, command: tuple[str, ...]) -> None:
    master, slave = pty.openpty()  # on a terminal, where colour is on and markup would count
    env = environment(folder, {"TERM": "xterm-256color", "COLUMNS": "400"})
    with subprocess.Popen(
        [MIGRATE, *command], cwd=folder, env=env, stdout=slave, stderr=slave, stdin=subprocess.DEVNULL
    ) as process:
        os.close(slave)
        seen = b""
        while chunk := _read(master):
            seen += chunk
        assert process.wait() == 0
    os.close(master)
    text = seen.decode()
    assert "\x1b[31mred" not in text
    assert "\x07" not in text
    assert "\u202e" not in text
    flat = " ".join(text.split())
    assert "[red]b[/red]" in flat, text
    assert ":smile:" in flat


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 65536)
    except OSError:  # the other end is closed
        return b""


def test_off_a_terminal_there_is_no_colour_and_nothing_is_cut(folder: Path) -> None:
    for command in (("status",), ("inspect",), ("jobs",)):
        assert "\x1b" not in migrate(*command, cwd=folder).out
    out = migrate("inspect", "--log", cwd=folder, env={"COLUMNS": "40"}).out
    assert max(map(len, out.splitlines())) > 80


def test_json_is_one_object_of_ascii(folder: Path) -> None:
    for command in (("jobs",), ("status",), ("inspect",), ("inspect", "--log"), ("quarantine", "list")):
        result = migrate(*command, "--json", cwd=folder)
        assert result.json
        assert result.out.isascii()
        assert result.err == ""


def test_init_writes_a_plan_that_parses_and_keeps_a_file_that_is_there(tmp_path: Path) -> None:
    assert migrate("init", cwd=tmp_path).code == 0
    written = (tmp_path / "plan.yaml").read_text()
    line, _, plan = written.partition("\n")
    assert line == "# yaml-language-server: $schema=.packhorse/plan.schema.json"
    assert json.loads((tmp_path / ".packhorse" / "plan.schema.json").read_text()) == plan_schema()
    assert plan == plan_to_start_from()
    assert set(parse_plan(written).entities) == {"accounts", "contacts"}
    (tmp_path / "plan.yaml").write_text("mine")
    migrate("init", cwd=tmp_path).refused("PH-101", "--force")
    assert (tmp_path / "plan.yaml").read_text() == "mine"


def test_version_and_help(tmp_path: Path) -> None:
    assert migrate("--version", cwd=tmp_path).out.startswith("packhorse 0.")
    assert migrate(cwd=tmp_path).code == 0
    for command in app.registered_commands:
        assert command.callback is not None
        assert migrate(command.name or command.callback.__name__, "--help", cwd=tmp_path).code == 0


def test_a_reader_that_goes_away_is_no_error(folder: Path) -> None:
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {MIGRATE} inspect --log --json | head -c 1"],
        cwd=folder, env=environment(folder), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stderr == ""


def test_the_reference_is_current() -> None:
    root = Path(__file__).parent.parent
    done = subprocess.run(
        [sys.executable, str(root / "docs" / "generate.py"), "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
