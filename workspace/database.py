"""How a SQLite file of ours is opened, and what its errors mean to a person.

WAL, so that readers and the writer don't wait for each other; `synchronous=FULL` where it writes, so that
what was committed is on the disk. Files are for their owner alone (0600). It doesn't know what a file holds.
"""

from __future__ import annotations

import errno
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from workspace.errors import DiskFullError, JobFailedError, JobLockedError, PackhorseError, WorkspaceError

APPLICATION = 0x5041434B  # "PACK", in the header of each file of ours
OWNER_ONLY = 0o600
_FULL = (errno.ENOSPC, errno.EDQUOT)
_WAIT = 10.0  # seconds for another connection's transaction; ours last milliseconds


def connect(file: Path, *, write: bool) -> sqlite3.Connection:
    """An open connection without implicit transactions; `write` makes the file where it is missing.

    Raises sqlite3.Error or OSError; see `translated`.
    """
    if write:
        # SQLite gives its -wal and -shm files the mode of the database, so this one call decides for all
        descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, OWNER_ONLY)
        try:
            os.fchmod(descriptor, OWNER_ONLY)
        finally:
            os.close(descriptor)
    connection = sqlite3.connect(
        f"{file.resolve().as_uri()}?mode={'rw' if write else 'ro'}",
        uri=True,
        timeout=_WAIT,
        isolation_level=None,
        check_same_thread=False,
    )
    try:
        if write:
            connection.execute("PRAGMA journal_mode = WAL").fetchone()
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("PRAGMA fullfsync = ON")  # macOS: past the drive's own cache
        else:
            connection.execute("PRAGMA query_only = ON")
    except BaseException:
        connection.close()
        raise
    return connection


@contextmanager
def translated(file: Path) -> Iterator[None]:
    """Turns SQLite's and the file system's errors in the block into ours.

    DiskFullError; WorkspaceError for a file that is damaged, no database or closed to us; JobLockedError when
    another process keeps writing it; JobFailedError when the disk fails.
    """
    try:
        yield
    except sqlite3.Error as error:
        raise _translate(error, file) from error
    except OSError as error:
        if error.errno in _FULL:
            raise _full(file) from error
        raise WorkspaceError(f"can't open the workspace: {error.strerror}", where=str(file)) from error


def _translate(error: sqlite3.Error, file: Path) -> PackhorseError:
    extended = getattr(error, "sqlite_errorcode", None) or 0
    primary = extended & 0xFF
    if primary == sqlite3.SQLITE_FULL or extended == sqlite3.SQLITE_IOERR_SHMSIZE:
        return _full(file)
    if primary in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT):
        return WorkspaceError(
            f"the workspace is damaged or no workspace at all: {error}",
            where=str(file),
            advice="bring it back from a backup; the target's ledger still knows what was loaded",
        )
    if primary in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return JobLockedError(
            "another process keeps writing this workspace", where=str(file), advice="wait for it to end"
        )
    if primary == sqlite3.SQLITE_IOERR:
        return JobFailedError(
            f"the disk failed under the workspace: {error}",
            where=str(file),
            advice="see to the disk, then: migrate resume",
        )
    return WorkspaceError(f"can't use the workspace: {error}", where=str(file))


def _full(file: Path) -> DiskFullError:
    return DiskFullError(
        "no space left for the workspace", where=str(file), advice="free some space, then: migrate resume"
    )
