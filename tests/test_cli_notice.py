"""`--on`: a webhook or a command is told how a command ended; it can't change the end, nor hold it up for long."""

from __future__ import annotations

import json
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from cli import notice
from cli.goals import goals_of
from cli.observed import End
from tests.cli_runner import MIGRATE, environment, migrate, migrate_here
from tests.plain_job import SECRET, write_systems
from workspace.errors import QuarantinedTooManyError, UsageError, WaitingForPersonError


@dataclass
class Hook:
    """A web server that takes what it is sent and answers with the codes given, the last from then on; a code of 0 hangs."""

    codes: list[int] = field(default_factory=lambda: [200])
    bodies: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    released: threading.Event = field(default_factory=threading.Event)
    port: int = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hooks/s3cr3t"


@contextmanager
def serving(*codes: int) -> Iterator[Hook]:
    hook = Hook(list(codes) or [200])

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            hook.bodies.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            hook.headers.append(dict(self.headers))
            code = hook.codes.pop(0) if len(hook.codes) > 1 else hook.codes[0]
            if code == 0:
                self.send_response(200)
                while not hook.released.wait(0.5):  # a byte now and then, so that no single read times out
                    self.wfile.write(b"x-slow: 1\r\n")
                return
            self.send_response(code)
            if code in (301, 307):
                self.send_header("Location", hook.url)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    hook.port = server.server_address[1]
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield hook
    finally:
        hook.released.set()
        server.shutdown()
        server.server_close()


KEYS = [
    "event", "command", "job", "exit_code", "error", "counts", "questions", "verified", "next", "folder", "host", "at",
]  # fmt: skip


def test_a_webhook_and_a_command_are_told_of_the_end(tmp_path: Path) -> None:
    run = write_systems(tmp_path, rows=50, bad=2)
    teller = tmp_path / "tell.py"
    teller.write_text("import sys; open('told.json', 'w').write(sys.stdin.read()); print('printed')")
    with serving() as hook:
        command = f"done,question={sys.executable} '{teller}'"
        done = migrate(*run, "--json", "--on", f"done,failure={hook.url}", "--on", command, cwd=tmp_path)
    assert done.code == 0, done
    assert done.json["exit_code"] == 0, "what the command prints doesn't come between"
    assert "printed" in done.err
    (told,) = hook.bodies
    assert json.loads((tmp_path / "told.json").read_text()) == told
    assert list(told) == KEYS
    assert (told["event"], told["command"], told["job"], told["exit_code"]) == ("done", "run", "night", 0)
    assert (told["counts"]["read"], told["counts"]["loaded"], told["counts"]["quarantined"]) == (50, 48, 2)
    assert told["verified"] is True
    assert told["next"] == "migrate quarantine list night"
    assert told["folder"] == str(tmp_path)
    assert told["error"] is None
    assert SECRET not in json.dumps(told)
    assert hook.headers[0]["Content-Type"] == "application/json"
    again = migrate("verify", "--on", f"failure,question={hook.url}", cwd=tmp_path)
    assert again.code == 0
    assert len(hook.bodies) == 1, "nobody asked for done"


@pytest.mark.parametrize(("most", "event", "code"), [("1", "done", 3), ("5", "done", 0)])
def test_a_job_with_too_many_in_quarantine_is_done_with_its_code(
    tmp_path: Path, most: str, event: str, code: int
) -> None:
    run = write_systems(tmp_path, rows=50, bad=2)
    with serving() as hook:
        assert migrate(*run, "--tolerate", most, "--on", f"done,failure={hook.url}", cwd=tmp_path).code == code
    assert [(told["event"], told["exit_code"]) for told in hook.bodies] == [(event, code)]


@pytest.mark.parametrize(
    ("code", "error", "event"),
    [
        (0, None, "done"), (3, None, "done"), (1, None, "failure"), (4, None, "question"), (130, None, ""),
        (4, WaitingForPersonError("x"), "question"), (3, QuarantinedTooManyError("x"), "failure"), (2, UsageError("x"), "failure"),
        (130, KeyboardInterrupt(), "failure"), (1, ZeroDivisionError(), "failure"),
    ],
)  # fmt: skip
def test_which_event_an_end_is(code: int, error: BaseException | None, event: str) -> None:
    end = End("run", None)
    end.code, end.error = code, error
    assert notice._event(end) == event


def test_a_failure_is_told_by_its_code_without_its_text(tmp_path: Path) -> None:
    run = write_systems(tmp_path)
    (tmp_path / "cloud.db").unlink()
    with serving() as hook:
        failed = migrate(*run, "--on", f"failure={hook.url}", cwd=tmp_path)
        assert failed.code == 2
        assert migrate("resume", "--on", f"failure={hook.url}", cwd=tmp_path).code == 2
    assert [told["error"]["code"] for told in hook.bodies] == ["PH-103", "PH-401"]
    assert hook.bodies[0]["next"] == "migrate run --help"
    assert hook.bodies[0]["error"]["meaning"].startswith("A system that cannot be reached")


def test_a_job_that_waits_for_a_person_is_a_question(tmp_path: Path) -> None:
    run = write_systems(tmp_path)

    with sqlite3.connect(tmp_path / "legacy.db") as connection:
        connection.execute("CREATE TABLE zz9 (id INTEGER PRIMARY KEY, q1 TEXT, q2 TEXT)")
        connection.execute("INSERT INTO zz9 VALUES (1, 'a', 'b')")
    without_plan = [*run[:3], "--job", "night", "--yes", "--model", "none"]
    with serving() as hook:
        waiting = migrate(*without_plan, "--autonomy", "1", "--on", f"question={hook.url}", cwd=tmp_path)
    assert waiting.code == 4, waiting
    (told,) = hook.bodies
    assert (told["event"], told["exit_code"], told["next"]) == ("question", 4, "migrate answer night")
    assert told["questions"] > 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_job_is_a_failure_that_says_how_to_go_on(tmp_path: Path, number: signal.Signals) -> None:
    run = write_systems(tmp_path, rows=300_000)
    log = tmp_path / "log.jsonl"
    with serving() as hook:
        process = subprocess.Popen(
            [MIGRATE, *run, "--log-file", str(log), "--on", f"failure,done={hook.url}"],
            cwd=tmp_path, env=environment(tmp_path), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        until = time.monotonic() + 60
        while not (log.exists() and "batch_committed" in log.read_text()) and time.monotonic() < until:
            time.sleep(0.01)
        process.send_signal(number)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 130, said
    (told,) = hook.bodies
    assert (told["event"], told["exit_code"], told["error"]["code"]) == ("failure", 130, "PH-602")
    assert told["next"] == "migrate resume night"
    assert 0 < told["counts"]["read"] < 300_000


def test_a_server_that_fails_is_tried_three_times(tmp_path: Path) -> None:
    run = write_systems(tmp_path)
    with serving(500, 503, 204) as hook:
        done = migrate(*run, "--on", f"done={hook.url}", cwd=tmp_path)
    assert (done.code, len(hook.bodies)) == (0, 3)
    assert "was not told" not in done.err
    with serving(500) as hook:
        done = migrate("verify", "--on", f"done={hook.url}", cwd=tmp_path)
    assert (done.code, len(hook.bodies)) == (0, 3)
    assert "note: http://127.0.0.1 was not told: the server answers 500" in done.err
    assert "s3cr3t" not in done.err


@pytest.mark.parametrize(("code", "said"), [(404, "answers 404"), (401, "answers 401"), (307, "sends on with 307")])
def test_what_trying_again_does_not_mend_is_tried_once(code: int, said: str) -> None:
    with serving(code) as hook:
        assert said in notice._post(hook.url, b"{}")
    assert len(hook.bodies) == 1


def test_nobody_at_home() -> None:
    began = time.monotonic()
    assert notice._post("http://127.0.0.1:9/", b"{}") == "no answer: ConnectError"
    assert time.monotonic() - began < notice.SECONDS


def test_a_server_and_a_command_that_hang_hold_nothing_up_for_long(tmp_path: Path) -> None:
    """The server sends a byte now and then; the command starts another one that hangs on after it."""
    run = write_systems(tmp_path)
    script = tmp_path / "hang.sh"
    script.write_text("#!/bin/sh\nsleep 321 &\necho $! > hanging.pid\nwait\n")
    script.chmod(0o755)
    with serving(0) as hook:
        began = time.monotonic()
        done = migrate(*run, "--on", f"done={hook.url}", "--on", f"done={script}", cwd=tmp_path)
        took = time.monotonic() - began
    assert done.code == 0
    assert took < 4 * notice.SECONDS  # the command would take 321 s, and the server would never end
    assert done.err.count("was not told") == 2, done.err
    child = int((tmp_path / "hanging.pid").read_text())
    time.sleep(0.2)
    state = Path(f"/proc/{child}/stat")
    assert not state.exists() or state.read_text().split()[2] == "Z", "what the command started has ended with it"


def test_a_command_that_fails_is_a_note(tmp_path: Path) -> None:
    run = write_systems(tmp_path)
    done = migrate(*run, "--on", "done=false", "--on", "done=true", cwd=tmp_path)
    assert done.code == 0
    assert done.err.count("was not told") == 1
    assert "note: false was not told: it ended with 1" in done.err


WRONG = [
    ("done", "no URL or command"),
    ("done=", "no URL or command"),
    ("don=true", "did you mean 'done'"),
    ("done,=true", "no event ''"),
    ("done=ftp://h/x", "http:// or https://"),
    ("done=http://", "http:// or https://"),
    ("done=http://h:99999/", "http:// or https://"),
    ("done=no-such-command-at-all x", "no command 'no-such-command-at-all'"),
    ("done=sh -c 'x", "can't be read"),
    ("done=https://h/${NOT_SET_HERE}", "NOT_SET_HERE"),
]


@pytest.mark.parametrize(("text", "said"), WRONG)
def test_what_cannot_be_told_is_refused_before_anything_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    result = migrate_here("run", "a", "b", "--on", text)
    assert result.code == 2
    assert said in result.err
    assert not (tmp_path / ".packhorse").exists()


def test_a_variable_keeps_the_secret_of_a_url(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving() as hook:
        monkeypatch.setenv("HOOK_PATH", "hooks/s3cr3t")
        (goal,) = goals_of([f"done=http://127.0.0.1:{hook.port}/${{HOOK_PATH}}"])
        assert goal.name == "http://127.0.0.1"
        assert notice._post(goal.url, b"{}") == ""


def test_each_verb_that_works_on_a_job_has_the_options() -> None:
    for verb in ("run", "resume", "sync", "verify", "rehearse", "undo"):
        said = migrate_here(verb, "--help").out
        assert "--on" in said, verb
        assert "--log-file" in said, verb
    assert "--on" not in migrate_here("status", "--help").out
