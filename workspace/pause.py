"""The mark in a job's folder that asks the job to wait: whoever watches makes it and takes it away.

It is no part of the log, which only the job's own process writes. The job looks for it between two batches, and it
outlives that process: a job that is killed meanwhile and resumed waits again.
"""

from __future__ import annotations

import contextlib
import getpass
import os
import socket

from workspace.errors import WorkspaceError
from workspace.paths import JobPaths


def ask_to_pause(paths: JobPaths) -> None:
    """Asks the job to wait after the batch at hand, for how long it may take. WorkspaceError where the folder can't
    be written to."""
    try:
        with contextlib.suppress(FileExistsError):  # asked before
            descriptor = os.open(paths.pause, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            try:
                os.write(descriptor, (this_user() + "\n").encode())
            finally:
                os.close(descriptor)
    except OSError as error:
        raise WorkspaceError(f"the job can't be asked to pause: {error.strerror}", where=str(paths.pause)) from error


def ask_to_go_on(paths: JobPaths) -> None:
    """Takes the wish to pause back. WorkspaceError where the folder can't be written to."""
    try:
        paths.pause.unlink(missing_ok=True)
    except OSError as error:
        raise WorkspaceError(f"the job can't be told to go on: {error.strerror}", where=str(paths.pause)) from error


def pause_asked(paths: JobPaths) -> bool:
    """True where somebody wants the job to wait. Costs one look at the folder."""
    return paths.pause.exists()


def who_paused(paths: JobPaths) -> str:
    """`user on host`, or nothing where that isn't known."""
    try:
        return paths.pause.read_text(encoding="utf-8")[:200].strip()
    except (OSError, UnicodeDecodeError):
        return ""


def this_user() -> str:
    """Who is at work here, for others to read: `user on host`."""
    try:
        who = getpass.getuser()
    except (KeyError, OSError):  # a user without a name, as in some containers
        who = f"user {os.getuid()}"
    return f"{who} on {socket.gethostname()}"
