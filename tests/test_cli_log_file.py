"""`--log-file`: a JSON line for each event, whole after kills, its owner's alone, and without a record value."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from cli.log_file import LogFile
from cli.log_lines import LISTS_OF_NAMES, NAMES, level, shown
from tests.cli_runner import migrate, migrate_here
from tests.plain_job import SECRET, write_systems
from tests.workspace_events import EVENTS, logs
from workspace.events import EVENT_TYPES, Event, JobFinished, PhaseStarted, RetryMade, Verified
from workspace.listening import listening
from workspace.log import Workspace
from workspace.paths import JobPaths


def lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text(encoding="ascii").splitlines()]


def positions(file: Path, job: str = "night") -> list[int]:
    return [line["position"] for line in lines(file) if line["job"] == job and "position" in line]


def log_types(folder: Path, job: str = "night") -> list[str]:
    with Workspace.open(JobPaths(folder, job)) as workspace:
        return [entry.event.type for entry in workspace.events()]


def test_a_whole_job_is_in_it_line_by_line(tmp_path: Path) -> None:
    run = write_systems(tmp_path, rows=50, bad=2)
    done = migrate(*run, "--log-file", "log.jsonl", cwd=tmp_path)
    assert done.code == 0, done
    file = tmp_path / "log.jsonl"
    assert file.stat().st_mode & 0o777 == 0o600
    text = file.read_text()
    assert SECRET not in text
    found = lines(file)
    assert [line["event"] for line in found if "position" in line] == log_types(tmp_path)
    assert positions(file) == list(range(1, len(log_types(tmp_path)) + 1))
    assert all(list(line)[:3] == ["timestamp", "level", "event"] for line in found)
    assert all(line["timestamp"].endswith("Z") and line["job"] == "night" for line in found)
    seen = next(line for line in found if line["event"] == "quarantine_seen")
    assert seen["phase"] == "load"
    assert (seen["level"], seen["entity"], seen["field"], seen["count"]) == ("warning", "people", "born", 2)
    assert (found[-1]["event"], found[-1]["exit_code"], found[-1]["level"]) == ("command_ended", 0, "info")

    before = len(found)
    for verb in (("verify",), ("sync",), ("undo", "--yes")):
        assert migrate(*verb, "--log-file", "log.jsonl", cwd=tmp_path).code == 0
    assert len(lines(file)) > before
    assert positions(file) == list(range(1, len(log_types(tmp_path)) + 1))
    assert SECRET not in file.read_text()


@pytest.mark.parametrize("place", ["after commit:1", "before commit:1", "after transform:1", "after checkpoint:1"])
def test_it_survives_a_kill_and_a_resume(tmp_path: Path, place: str) -> None:
    run = write_systems(tmp_path, rows=50, bad=2)
    killed = migrate(*run, "--log-file", "log.jsonl", cwd=tmp_path, env={"PACKHORSE_FAULT": place})
    assert killed.code == -signal.SIGKILL, killed
    with (tmp_path / "log.jsonl").open("r+b") as file:  # as if it had come in the middle of a write
        text = file.read()
        file.truncate(len(text) - 20)
    assert migrate("resume", "--log-file", "log.jsonl", cwd=tmp_path).code == 0
    whole = (tmp_path / "log.jsonl").read_text().splitlines()
    sound = [line for line in whole if line.endswith("}")]
    assert len(sound) == len(whole) - 1
    (tmp_path / "sound.jsonl").write_text("\n".join(sound) + "\n")
    assert positions(tmp_path / "sound.jsonl") == list(range(1, len(log_types(tmp_path)) + 1))


def test_a_log_begun_later_tells_what_comes_and_another_jobs_lines_are_left(tmp_path: Path) -> None:
    run = write_systems(tmp_path)
    assert migrate(*run, cwd=tmp_path).code == 0
    before = len(log_types(tmp_path))
    (tmp_path / "log.jsonl").write_text('{"job": "other", "position": 3}\nnot json\n{"position": 1}\n[]\n')
    (tmp_path / "log.jsonl").chmod(0o644)
    assert migrate("verify", "--log-file", "log.jsonl", cwd=tmp_path).code == 0
    assert (tmp_path / "log.jsonl").stat().st_mode & 0o777 == 0o600
    kept = (tmp_path / "log.jsonl").read_text().splitlines()[4:]
    found = [json.loads(line) for line in kept]
    assert next(line["position"] for line in found if "position" in line) == before + 1
    assert found[0]["phase"] == "verify"


def test_an_error_stands_there_by_its_code(tmp_path: Path) -> None:
    run = write_systems(tmp_path)
    (tmp_path / "cloud.db").unlink()
    assert migrate(*run, "--log-file", "log.jsonl", cwd=tmp_path).code == 2
    last = lines(tmp_path / "log.jsonl")[-1]
    assert (last["event"], last["level"], last["code"], last["exit_code"]) == ("command_ended", "error", "PH-103", 2)


@pytest.mark.parametrize("name", ["-", ".", "no/such/folder/log", "/dev/null", "fifo"])
def test_what_cannot_be_a_log_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.chdir(tmp_path)
    os.mkfifo("fifo")
    migrate_here("run", "a", "b", "--log-file", name).refused("PH-101", "--log-file")


def test_a_full_disk_is_a_note_and_the_job_goes_on(tmp_path: Path) -> None:
    run = write_systems(tmp_path, rows=50)
    code = (
        "import cli.log_file as f; f.LogFile._put = lambda *a, **k: (_ for _ in ()).throw(OSError(28, 'No space left'));"
        f"import sys; sys.argv = ['migrate', *{[*run, '--log-file', 'log.jsonl']!r}]; from cli.app import main; main()"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("note: the log file lacks lines") == 1


TEXTS = {
    "job_started": {"job", "source", "target"},
    "plan_changed": {"by"},
    "phase_started": {"phase"},
    "table_profiled": {"side", "table"},
    "decision_made": {"kind", "rung"},
    "question_asked": {"kind", "holds"},
    "question_answered": {"by"},
    "action_taken": {"action"},
    "feedback_given": {"action"},
    "quarantine_seen": {"entity", "code", "field"},
    "interrupted": {"signal"},
    "job_finished": {"outcome"},
    "work_spread": {"executor"},
    "sync_started": {"deletes", "edited", "redriven"},
    "piloted": {"pilot"},
    "job_paused": {"by", "process"},
    "job_purged": {"by"},
}
"""What each event shows besides its numbers; `entity` stands in most. A field of a new event belongs here once it was
asked whether a record value can ever stand in it."""


def test_what_is_shown_is_what_was_thought_about() -> None:
    assert set(EVENTS) == set(EVENT_TYPES.values())
    for name, kind in EVENT_TYPES.items():
        texts = {each.name for each in fields(kind) if each.name in NAMES | LISTS_OF_NAMES}  # type: ignore[arg-type]
        # QuarantineRetried's `edited` is a table of counts, which is left out
        if name == "quarantine_retried":
            texts -= {"edited"}
        if name == "job_finished":
            texts |= {"outcome"}
        assert texts - {"entity"} == TEXTS.get(name, set()) - {"entity"}, name


@given(logs)
def test_no_list_no_table_and_no_other_text_gets_out(events: Sequence[Event]) -> None:
    for event in events:
        for name, value in shown(event).items():
            assert isinstance(value, bool | int | float) or name in NAMES | LISTS_OF_NAMES | {"outcome"}, (event, name)
            json.dumps(value, allow_nan=False)
        assert level(event) in ("info", "warning", "error")


def test_levels() -> None:
    assert level(PhaseStarted("load")) == "info"
    assert level(RetryMade("x", 1, "y")) == "warning"
    assert level(Verified(False)) == "error"
    assert [level(JobFinished("x", code)) for code in (0, 1, 2, 3, 4, 130)] == [
        "info", "error", "error", "warning", "warning", "warning",
    ]  # fmt: skip
    assert shown(JobFinished("failed: hunter2", 1)) == {"outcome": "failed", "exit_code": 1}


def test_two_logs_of_one_job_are_told_apart(tmp_path: Path) -> None:
    paths = JobPaths(tmp_path, "night")
    log = LogFile(str(tmp_path / "log.jsonl"))
    with listening(log):
        for place in (paths, paths.rehearsal):
            if place is not paths:
                place.create()
            with Workspace.open(place, write=True) as workspace:
                workspace.record(PhaseStarted("load"), PhaseStarted("verify"))
    log.close()
    again = LogFile(str(tmp_path / "log.jsonl"))
    assert again._last == {("night", False): 2, ("night", True): 2}
    again.close()
