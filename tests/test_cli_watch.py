"""`migrate watch`: a real job followed, from another process, while it runs, when it is killed, paused, and over."""

from __future__ import annotations

import asyncio
import re
import signal
import sqlite3
import subprocess
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pexpect
import pytest
from textual.pilot import Pilot
from textual.widgets import DataTable, Input, RichLog, Static

from cli.views.watch.app import WatchApp
from cli.views.watch.followed import Followed
from cli.views.watch.screens import ClusterScreen, QuestionScreen
from tests.cli_runner import MIGRATE, environment, migrate_here
from tests.test_cli_jobs import Job, job, until
from workspace.events import DecisionMade, QuarantineSeen, QuestionAsked
from workspace.lock import JobLock
from workspace.log import Workspace
from workspace.paths import JobPaths

__all__ = ["job"]

EVIL = "[red]x[/red] \x1b[2J\x1b]0;owned\x07"


def looked_at(paths: JobPaths, look: Callable[[WatchApp, Pilot[Any]], Awaitable[None]]) -> None:
    """The screen on a job, at 80 by 24."""

    async def go() -> None:
        with Workspace.open(paths) as workspace:
            app = WatchApp(Followed(paths), workspace)
            async with app.run_test(size=(80, 24)) as pilot:
                await pilot.pause(0.2)
                await look(app, pilot)

    asyncio.run(go())


def shown(app: WatchApp, where: str) -> str:
    return str(app.screen.query_one(where, Static).content)


def table(app: WatchApp, where: str) -> list[list[str]]:
    """The cells of a table as they are shown: texts, in which nothing is markup any more."""
    found = app.query_one(where, DataTable)
    return [[each.plain for each in found.get_row_at(n)] for n in range(found.row_count)]


def test_a_job_that_is_over(job: Job) -> None:
    assert job.run("--yes").code == 0

    async def look(app: WatchApp, pilot: Pilot[Any]) -> None:
        assert shown(app, "#head") == "j: done, reconciled"
        assert "640 read = 576 loaded + 60 excluded + 4 quarantined" in shown(app, "#equation")
        entities = table(app, "#entities")
        assert [row[0] for row in entities] == ["accounts", "contacts"]
        assert [row[2].strip() for row in entities] == ["40 / 40", "600 / 600"]
        assert entities[1][1] == "█" * 10
        clusters = table(app, "#quarantine-table")
        assert [row[0].strip() for row in clusters] == ["3", "1"]
        await pilot.press("enter")
        await pilot.pause(0.2)
        assert isinstance(app.screen, ClusterScreen)
        assert "3 rows open" in shown(app, "#told")
        await pilot.press("r")  # the rows themselves, out of the target
        for _ in range(100):
            await pilot.pause(0.1)
            if "reading" not in shown(app, "#told"):
                break
        assert re.search(r"^1  .*", shown(app, "#told"), re.MULTILINE)
        await pilot.press("escape", "4")
        await pilot.pause(0.2)
        assert len(app.query_one("#lines", RichLog).lines) == app.followed.state.position
        await pilot.press("p")
        await pilot.pause(0.2)
        assert not app.followed.paths.pause.exists()

    looked_at(JobPaths(job.folder, "j"), look)


def test_nothing_in_the_folder_is_written_by_looking(job: Job) -> None:
    assert job.run("--yes").code == 0
    paths = JobPaths(job.folder, "j")

    def files() -> dict[str, bytes]:
        kept = [each for each in paths.folder.rglob("*") if each.is_file() and not each.name.endswith("-shm")]
        return {str(each): each.read_bytes() for each in kept}

    before = files()

    async def look(app: WatchApp, pilot: Pilot[Any]) -> None:
        await pilot.press("1", "enter", "escape", "2", "3", "4")
        await pilot.pause(1.2)

    looked_at(paths, look)
    assert {name: body for name, body in files().items() if body} == {
        name: body for name, body in before.items() if body
    }


def test_record_values_are_data(tmp_path: Path) -> None:
    paths = JobPaths(tmp_path, "j").create()
    with Workspace.open(paths, write=True) as workspace:
        workspace.record(
            QuarantineSeen(EVIL, EVIL, "cast", EVIL, 3, EVIL),
            DecisionMade(
                EVIL, "match", EVIL, EVIL, "choose", 0.9, [{"answer": EVIL, "weight": 0.5}], EVIL, 2, 10, 5, 0.5
            ),
            QuestionAsked(EVIL, "match", EVIL, EVIL, [{"answer": EVIL}], {EVIL: EVIL}, [EVIL]),
        )

    async def look(app: WatchApp, pilot: Pilot[Any]) -> None:
        literal = "[red]x[/red]"
        for where in ("#entities", "#quarantine-table", "#decisions-table", "#questions-table"):
            cells = [cell for row in table(app, where) for cell in row]
            assert any(literal in cell for cell in cells), where
            assert not any("\x1b" in cell or "\x07" in cell for cell in cells), where
        assert "2 calls, 15 tokens, 0.5 s" in [cell for row in table(app, "#decisions-table") for cell in row]
        for keys in (("1", "enter"), ("2", "enter"), ("3", "enter"), ("a",)):
            await pilot.press(*keys)
            await pilot.pause(0.2)
            told = shown(app, "#told")
            assert literal in told, keys
            assert "\x1b" not in told
            await pilot.press("escape")
        await pilot.pause(0.2)
        drawn = app.export_screenshot()
        assert "\x1b" not in drawn
        await pilot.press("4")
        await pilot.pause(0.2)
        lines = "\n".join(line.text for line in app.query_one("#lines", RichLog).lines)
        assert literal in lines
        assert "\x1b" not in lines

    looked_at(paths, look)
    said = migrate_here("watch", "j") if Path.cwd() == tmp_path else None
    assert said is None or "\x1b" not in said.out


def test_a_question_is_answered(job: Job) -> None:
    drafted = migrate_here("plan", "draft", job.source, job.dsn, "--model", "none", "--job", "d", "-o", "draft.yaml")
    assert drafted.code == 0, drafted
    open_before = migrate_here("answer", "d", "--json").json["questions"]
    assert open_before

    async def look(app: WatchApp, pilot: Pilot[Any]) -> None:
        await pilot.press("3", "a")
        await pilot.pause(0.2)
        screen = app.screen
        assert isinstance(screen, QuestionScreen)
        screen.query_one(Input).value = "no such answer at all"
        await pilot.press("enter")
        await pilot.pause(0.2)
        assert app.screen is screen  # it stays open, and says what is wrong
        screen.query_one(Input).value = "none"
        await pilot.press("enter")
        await pilot.pause(0.8)
        assert not isinstance(app.screen, QuestionScreen)

    looked_at(JobPaths(job.folder, "d"), look)
    assert len(migrate_here("answer", "d", "--json").json["questions"]) == len(open_before) - 1


def test_paused_killed_and_resumed_under_its_eyes(job: Job) -> None:
    paths = JobPaths(job.folder, "j")
    with job.blocked("companies") as wait:
        process = job.started()
        wait()

        async def ask(app: WatchApp, pilot: Pilot[Any]) -> None:
            assert f"process {process.pid}" in shown(app, "#head")
            await pilot.press("a")
            await pilot.press("p")
            await pilot.pause(0.8)
            assert paths.pause.exists()
            assert "will pause after the batch at hand" in shown(app, "#head")

        looked_at(paths, ask)
    until(lambda: migrate_here("status", "j", "--json").json["state"] == "paused")
    assert (job.count("companies"), job.count("people")) == (40, 0)
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=60)

    async def see(app: WatchApp, pilot: Pilot[Any]) -> None:
        assert shown(app, "#head").startswith("j: stopped, in load")

    looked_at(paths, see)
    with JobLock(paths):  # another process has begun, and has recorded nothing yet: that pause was the killed one's
        assert migrate_here("status", "j", "--json").json["state"] == "running"
    resumed = subprocess.Popen(
        [MIGRATE, "resume", "j", "--yes"], cwd=job.folder, env=environment(job.folder), text=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    until(lambda: migrate_here("status", "j", "--json").json["state"] == "paused")  # it outlived the process
    assert job.count("people") == 0

    async def go_on(app: WatchApp, pilot: Pilot[Any]) -> None:
        assert "paused since" in shown(app, "#head")
        await pilot.press("g")
        for _ in range(300):
            await pilot.pause(0.1)
            if shown(app, "#head") == "j: done, reconciled":
                return
        raise AssertionError(shown(app, "#head"))

    looked_at(paths, go_on)
    out, err = resumed.communicate(timeout=60)
    assert resumed.returncode == 0, (out, err)
    assert "migrate watch --go-on j" in err
    assert job.count("people") == 536
    kinds = [each["type"] for each in migrate_here("inspect", "j", "--log", "--json").json["events"]]
    assert kinds.count("job_paused") == 2
    assert kinds.count("job_went_on") == 1


def test_workers_pause_too(job: Job) -> None:
    paths = JobPaths(job.folder, "j")
    with job.blocked("companies") as wait:
        process = subprocess.Popen(
            [*job.command, "--yes", "--executor", "local:2"], cwd=job.folder, env=environment(job.folder), text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        wait()
        assert migrate_here("watch", "j", "--pause").code == 0
    until(lambda: migrate_here("status", "j", "--json").json["state"] == "paused")
    assert job.count("people") == 0
    assert migrate_here("watch", "j", "--go-on").code == 0
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, (out, err)
    assert job.count("people") == 536
    assert not paths.pause.exists()


def test_lines_where_there_is_no_terminal(job: Job) -> None:
    with job.blocked("people") as wait:
        process = job.started()
        wait()
        watching = subprocess.Popen(
            [MIGRATE, "watch", "j"], cwd=job.folder, env=environment(job.folder), text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        assert watching.stdout is not None
        first = watching.stdout.readline()
        assert first.startswith(("load", "stage contacts")), first
    process.communicate(timeout=60)
    out, err = watching.communicate(timeout=60)
    assert watching.returncode == 0, (out, err)
    assert out.splitlines()[-2:] == [
        "j: done, reconciled",
        "read 640 = loaded 576 + merged 0 + excluded 60 + quarantined 4",
    ]
    assert "\x1b" not in first + out


def test_lines_end_when_the_job_is_killed(job: Job) -> None:
    process = job.started(PACKHORSE_FAULT="after commit:2")
    process.communicate(timeout=60)
    seen = migrate_here("watch", "j")
    assert seen.code == 130, seen
    assert seen.out.startswith("j: stopped")


@pytest.mark.parametrize("colour", [True, False])
def test_in_a_real_terminal_of_80_by_24(job: Job, colour: bool) -> None:
    assert job.run("--yes").code == 0
    env = environment(job.folder, {"TERM": "xterm-256color", **({} if colour else {"NO_COLOR": "1"})})
    if colour:
        env.pop("NO_COLOR", None)
    child = pexpect.spawn(
        MIGRATE, ["watch", "j"], cwd=str(job.folder), env=env, timeout=60, encoding="utf-8", dimensions=(24, 80)
    )
    child.expect_exact("Quit")
    said = child.before + child.after
    child.send("q")
    child.expect(pexpect.EOF)
    child.close()
    said += child.before
    assert child.exitstatus == 0
    for wanted in ("done, reconciled", "contacts", "Quarantine", "3 Questions"):
        assert wanted in said, wanted
    assert "\x1b[?1049l" in said  # the terminal is as it was
    coloured = re.findall(r"\x1b\[[\d;]*\b(?:[34]8;[25]|3[0-7]|4[0-7]|9[0-7])[\d;]*m", said)
    assert bool(coloured) == colour, coloured[:3]


def test_a_database_of_another_kind_is_one_clear_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    migrate_here("watch", "nobody").refused("PH-401", "nobody", exit_code=2)
    paths = JobPaths(tmp_path, "odd").create()
    with sqlite3.connect(paths.database) as connection:
        connection.execute("CREATE TABLE other (x)")
    connection.close()
    migrate_here("watch", "odd").refused("PH-401", "no workspace", exit_code=2)
