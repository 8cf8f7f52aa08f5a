"""`migrate demo`: the main job on a made-up CRM, killed in mid-load and resumed, on real servers.

All of it lies in ./.demo; the same commands that a person types are run, each in a process of its own.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.options import Model, here
from cli.views import demo as view
from cli.views.output import on_stdout
from workspace.errors import JobFailedError, PackhorseError
from workspace.events import BatchCommitted
from workspace.log import Workspace
from workspace.paths import JobPaths
from workspace.state import state_at

if TYPE_CHECKING:
    from sample_data.servers import DemoServer

JOB = "demo"
_ZONE = "America/New_York"  # where the old system's clock stood: a small sample has too few times to tell
_MIDDLE = 5  # batches committed when the job is killed
# What a person who knew the old system answers to the questions that hold entities back. The sample's clean
# records are where these are known from (sample_data/gold_plan.yaml).
_ANSWERS = {
    "entity:currencies": "none",
    "field:campaigns.channel": "column:campaign_type",
    "field:cases.state": "column:status",
    "field:opportunities.currency_code": "sql:coalesce(iso4217, 'USD')",
    "field:tasks.state": "column:status",
    "field:users.state": "column:status",
    "field:users.joined_at": "column:date_entered",
}
_MIGRATE = [sys.executable, "-c", "from cli.app import main; main()"]
_FINE = (0, 3, 4)  # done; done with rows in quarantine; done but for questions

Contacts = Annotated[int, typer.Option("--contacts", min=100, metavar="N", help="How many contacts the CRM has.")]
Killed = Annotated[bool, typer.Option("--kill/--no-kill", help="Kill the job in mid-load and resume it.")]


def demo(contacts: Contacts = 20_000, kill: Killed = True, model: Model = None) -> int:
    """Run the main job on a made-up CRM: SQLite to PostgreSQL, killed in mid-load, resumed, verified.

    Everything lies in ./.demo, and the PostgreSQL server goes on running, so that the records can be looked
    at. Running it again starts anew.
    """
    from sample_data.servers import DemoServer

    folder = here() / ".demo"
    server = DemoServer(folder / "postgres")
    source, target = folder / "legacy.db", server.dsn("cloud")
    console = on_stdout()
    started = time.monotonic()

    view.headline(console, 1, f"a CRM of fifteen years with {contacts:,} contacts, and a PostgreSQL for it to go to")
    rows = _prepare(folder, server, source, contacts)
    view.prepared(console, rows, source, server.pid)

    view.headline(console, 2, f"migrate run {source.name} postgresql://... --job {JOB} --zone {_ZONE} --yes")
    options = ["--zone", _ZONE, *(["--model", model] if model else [])]
    dsn = f"sqlite:///{source}"
    code = _run(folder, ["run", dsn, target, "--job", JOB, "--yes", *options], kill_in=folder if kill else None)
    if code == -signal.SIGKILL:
        view.killed(console, _committed(folder))
        view.headline(console, 3, f"migrate resume {JOB}")
        code = _run(folder, ["resume", JOB])
    _check(code)
    answers = [f"{question}={answer}" for question, answer in _ANSWERS.items() if question in _open_questions(folder)]
    if answers:
        view.headline(console, 4, f"migrate answer {JOB} --set {answers[-1]} ...; migrate resume {JOB}")
        _check(_run(folder, ["answer", JOB, *(word for answer in answers for word in ("--set", answer))]))
        _check(_run(folder, ["resume", JOB]))
    view.headline(console, 5, f"migrate verify {JOB}")
    _check(_run(folder, ["verify", JOB]))
    with Workspace.open(JobPaths(folder, JOB)) as workspace:
        state = state_at(workspace)
    view.end(console, state, folder, server, JOB, time.monotonic() - started)
    return 0


def _prepare(folder: Path, server: DemoServer, source: Path, contacts: int) -> int:
    """Makes both systems anew and takes away the job of an earlier demo; returns the rows of the source."""
    from sample_data import CLOUD_SQL, write_sample
    from sample_data.servers import ServerError

    folder.mkdir(exist_ok=True)
    for left in (folder / ".packhorse", folder / "experience"):
        shutil.rmtree(left, ignore_errors=True)
    for left in folder.glob("legacy.db*"):
        left.unlink()
    facts = write_sample("sqlite", source, contacts)
    try:
        server.start()
    except ServerError as error:
        raise JobFailedError(str(error), where=str(server.folder), advice=f"see {server.folder}/log") from None
    server.make_database("cloud", CLOUD_SQL.read_text(encoding="utf-8"))
    return sum(facts.rows.values())


def _open_questions(folder: Path) -> set[str]:
    """The ids of the questions that wait for a person."""
    with Workspace.open(JobPaths(folder, JOB)) as workspace:
        return set(state_at(workspace).progress.open_questions)


def _committed(folder: Path) -> int:
    """How many batches the log tells of."""
    try:
        with Workspace.open(JobPaths(folder, JOB)) as workspace:
            return sum(1 for _ in workspace.events(types=[BatchCommitted]))
    except PackhorseError:
        return 0


def _run(folder: Path, arguments: list[str], kill_in: Path | None = None) -> int:
    """Runs one command on this terminal; its exit code, -9 where it was killed."""
    environment = {**os.environ, "PACKHORSE_DATA_HOME": str(folder / "experience"), "PACKHORSE_DEFAULTS": os.devnull}
    # nobody is asked in a demo: without a terminal to read from, a job goes on by itself
    with subprocess.Popen([*_MIGRATE, *arguments], cwd=folder, env=environment, stdin=subprocess.DEVNULL) as process:
        if kill_in is not None:
            threading.Thread(target=_kill, args=(process, kill_in), daemon=True).start()
        try:
            return process.wait()
        except KeyboardInterrupt:  # the child has got it too and is ending
            return process.wait()


def _kill(process: subprocess.Popen[bytes], folder: Path) -> None:
    """Kills the process once some batches are committed and some are not."""
    while process.poll() is None:
        if _committed(folder) >= _MIDDLE:
            process.kill()
            return
        time.sleep(0.05)


def _check(code: int) -> None:
    if code == 130:
        raise KeyboardInterrupt
    if code not in _FINE:
        raise JobFailedError(f"a step of the demo ended with exit code {code}", advice="its own lines above say why")
