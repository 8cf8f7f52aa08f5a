"""Named places on the exactly-once path where a test can have the process killed, or anything else happen.

Does nothing unless PACKHORSE_FAULT names the place (`before commit`, or `before commit:3` for the third
time it is passed). Must cost nothing otherwise, and no environment variable may have it run anything.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable

POINTS = (
    "after stage write",
    "after part recorded",
    "after transform",
    "after ledger taken",
    "in copy",
    "before commit",
    "after commit",
    "after checkpoint",
    "between passes",
    "in verify",
)
MERGE_POINTS = ("after duplicates decided",)
MATCH_POINTS = ("after matches decided", "late matches found")
UNDO_POINTS = ("undo begun", "undo rows gone", "undo before commit", "undo after commit", "undo after checkpoint")
RETRY_POINTS = (
    "retry begun",
    "retry ledger taken",
    "retry rows in",
    "retry before commit",
    "retry after commit",
    "retry after checkpoint",
    "retry between passes",
)
CLEANUP_POINTS = ("cleanup exported", "cleanup before commit", "cleanup after commit")
PURGE_POINTS = ("purge begun", "purge log", "purge told", "purge log forgotten", "purge file removed")
SYNC_POINTS = (
    "sync begun",
    "sync parts written",
    "sync staged",
    "sync ledger taken",
    "sync rows superseded",
    "sync rows in",
    "sync before commit",
    "sync after commit",
    "sync after checkpoint",
    "sync between passes",
    "sync before completed",
)
REDRIVE_POINTS = ("redrive begun",)
REHEARSAL_POINTS = ("rehearsal begun", "rehearsal done", "pilot cut")
hook: Callable[[str], None] | None = None
"""What a test has happen at each place instead, in the thread that passes it; set from Python only."""
_wanted = os.environ.get("PACKHORSE_FAULT", "")
_name, _, _nth = _wanted.partition(":")
_left = int(_nth) if _nth.isdigit() else 1


def fault_point(name: str) -> None:
    """Kills this process with SIGKILL where the test asked for it; the log of phases goes to PACKHORSE_PHASE."""
    global _left
    if _phase_file is not None:
        _tell(name)
    if hook is not None:
        hook(name)
    if name != _name:
        return
    _left -= 1
    if _left == 0:
        os.kill(os.getpid(), signal.SIGKILL)


_phase_file = os.environ.get("PACKHORSE_PHASE") or None


def _tell(name: str) -> None:
    assert _phase_file is not None
    with open(_phase_file, "w") as file:
        file.write(name)
