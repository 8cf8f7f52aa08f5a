"""What the demo tells: its steps, the kill, the reconciliation, and where the records are."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Protocol

from rich.console import Console

from cli.views.pace import duration
from workspace.state import State

_SHOW_CURSOR = "\x1b[?25h"


class Server(Protocol):
    """The server that the records went to."""

    @property
    def pid(self) -> int:
        """Its process id."""

    @property
    def binaries(self) -> Path:
        """Where its programs lie."""

    @property
    def socket_folder(self) -> Path:
        """Where its socket lies."""


def headline(console: Console, step: int, text: str) -> None:
    """A step begins."""
    console.print(f"\n{step} of 5  {text}", style="bold cyan")


def prepared(console: Console, rows: int, source: Path, pid: int) -> None:
    """Both systems stand."""
    console.print(f"  {rows:,} rows in {source}; PostgreSQL runs as process {pid}")


def killed(console: Console, batches: int) -> None:
    """The job was killed; what it drew may have left the cursor hidden."""
    if sys.stderr.isatty():
        print(_SHOW_CURSOR, end="", file=sys.stderr, flush=True)
    console.print(f"\n  killed with SIGKILL in mid-load, {batches} batches committed", style="bold red")


def end(console: Console, state: State, folder: Path, server: Server, job: str, seconds: float) -> None:
    """Where the records are, and what to try next; the reconciliation table stands above it."""
    questions = len(state.progress.open_questions)
    console.print()
    psql = [str(server.binaries / "psql"), "-h", str(server.socket_folder), "-U", "postgres", "cloud"]
    console.print(f"done in {duration(seconds)}. The records are in PostgreSQL (process {server.pid}), to look at with")
    console.print(f"  {shlex.join(psql)}")
    console.print("which goes on running until")
    console.print(f"  kill -INT {server.pid}")
    console.print(f"\nnext, in {shlex.quote(str(folder))}:", style="bold")
    for command, what in (
        (f"migrate status {job}", "how it went"),
        (f"migrate inspect {job} --belief", "what was decided, by which rung, on what evidence"),
        (f"migrate answer {job}", f"the {questions} questions that wait for a person"),
        (f"migrate quarantine list {job}", "what could not be loaded, and why"),
        (f"migrate inspect {job} --log", "every step, in order"),
    ):
        console.print(f"  {command:<36} {what}")
