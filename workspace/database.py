"""How a SQLite file of ours is opened, and what its errors mean to a person.

WAL, so that readers and the writer don't wait for each other; `synchronous=FULL` where it writes, so that
what was committed is on the disk. Files are for their owner alone (0600). It doesn't know what a file holds.
"""

from __future__ import annotations

import errno
import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from workspace.errors import DiskFullError, JobFailedError, JobLockedError, PackhorseError, WorkspaceError

OWNER_ONLY = 0o600
_FULL = (errno.ENOSPC, errno.EDQUOT)
_WAIT = 10.0  # seconds for another connection's transaction; ours last milliseconds

Migration = Callable[[sqlite3.Connection], None]


@dataclass(frozen=True)
class Schema:
    """What a file holds: its `name` for messages, the `application` number in its header, and the migrations
    that make a file of version n one of version n + 1, in order. Migrations are only ever added to."""

    name: str
    application: int
    migrations: tuple[Migration, ...]

    @property
    def version(self) -> int:
        """The version that this program writes."""
        return len(self.migrations)


def connect(file: Path, schema: Schema, *, write: bool) -> sqlite3.Connection:
    """An open connection without implicit transactions, to a file of that schema's version.

    `write` makes the file where it is missing and brings an older one up to date. Raises WorkspaceError for a
    file of something else or of another version, and sqlite3.Error or OSError; see `translated`.
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
        version = _check_kind(connection, schema, file)
        if write:
            connection.execute("PRAGMA journal_mode = WAL").fetchone()
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("PRAGMA fullfsync = ON")  # macOS: past the drive's own cache
            if version < schema.version:  # else nothing is written: a full disk must not keep a file shut
                _bring_up_to_date(connection, schema)
        else:
            connection.execute("PRAGMA query_only = ON")
            if version < schema.version:
                raise WorkspaceError(
                    f"the {schema.name} is empty or was written by an older version of Packhorse",
                    where=str(file),
                    advice="the next command that writes to it brings it up to date: migrate resume",
                )
    except BaseException:
        connection.close()
        raise
    return connection


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """All of the block or nothing of it. The write lock is taken first, so that none is missing midway."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:  # SQLite has rolled back by itself after some errors
            connection.execute("ROLLBACK")
        raise


@contextmanager
def translated(file: Path, schema: Schema) -> Iterator[None]:
    """Turns SQLite's and the file system's errors in the block into ours.

    DiskFullError; WorkspaceError for a file that is damaged, no database or closed to us; JobLockedError when
    another process keeps writing it; JobFailedError when the disk fails.
    """
    try:
        yield
    except sqlite3.Error as error:
        raise _translate(error, file, schema) from error
    except OSError as error:
        if error.errno in _FULL:
            raise _full(file, schema) from error
        raise WorkspaceError(f"can't open the {schema.name}: {error.strerror}", where=str(file)) from error


def damaged(file: Path, schema: Schema, how: str) -> WorkspaceError:
    """The error for a file that isn't as it was written."""
    return WorkspaceError(
        f"the {schema.name} is damaged: {' '.join(how.split())[:160]}",
        where=str(file),
        advice="bring the file back from a backup, or set it aside and start anew",
    )


def newer_version(name: str, what: str) -> WorkspaceError:
    """The error for a file that a newer Packhorse wrote; `what` is the thing in it that isn't known here."""
    return WorkspaceError(
        f"this {name} was written by a newer version of Packhorse (it holds {what})",
        advice="upgrade packhorse, or use the version that wrote it",
    )


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def _check_kind(connection: sqlite3.Connection, schema: Schema, file: Path) -> int:
    """The version of the file, after a look at what kind it is."""
    connection.execute("BEGIN")  # one snapshot, since another process may be making the file just now
    try:
        application = connection.execute("PRAGMA application_id").fetchone()[0]
        tables = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]
        version = _version(connection)
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
    if application != schema.application and (application or tables):
        raise WorkspaceError(f"this SQLite file is no {schema.name} of Packhorse", where=str(file))
    if version > schema.version:
        error = newer_version(schema.name, f"schema version {version}, this one knows {schema.version}")
        error.where = str(file)
        raise error
    return version


def _bring_up_to_date(connection: sqlite3.Connection, schema: Schema) -> None:
    """All missing migrations and the version in one transaction: none is done twice or by half."""
    with transaction(connection):
        for migrate in schema.migrations[_version(connection) :]:
            migrate(connection)
        connection.execute(f"PRAGMA application_id = {schema.application}")
        connection.execute(f"PRAGMA user_version = {schema.version}")


def _translate(error: sqlite3.Error, file: Path, schema: Schema) -> PackhorseError:
    extended = getattr(error, "sqlite_errorcode", None) or 0
    primary = extended & 0xFF
    if primary == sqlite3.SQLITE_FULL or extended == sqlite3.SQLITE_IOERR_SHMSIZE:
        return _full(file, schema)
    if primary in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT):
        return damaged(file, schema, str(error))
    if primary in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return JobLockedError(
            f"another process keeps writing this {schema.name}", where=str(file), advice="wait for it to end"
        )
    if primary == sqlite3.SQLITE_IOERR:
        return JobFailedError(
            f"the disk failed under the {schema.name}: {error}",
            where=str(file),
            advice="see to the disk, then: migrate resume",
        )
    return WorkspaceError(f"can't use the {schema.name}: {error}", where=str(file))


def _full(file: Path, schema: Schema) -> DiskFullError:
    return DiskFullError(
        f"no space left for the {schema.name}",
        where=str(file),
        advice="free some space, then: migrate resume",
    )
