"""The log of one job: typed events in SQLite, only ever appended, each durable before it is relied on.

One process writes (it holds the job's lock, `workspace.lock`); any number read, live. The file itself refuses
changes to what it holds. It must grow with batches and decisions, never with rows.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType

from workspace.database import APPLICATION, connect, translated
from workspace.errors import WorkspaceError
from workspace.events import Event, event_from_json, event_to_json, newer_version
from workspace.paths import JobPaths

_CHUNK = 500  # events a read; no read transaction stays open between two, so that the WAL can be folded in


@dataclass(frozen=True)
class Entry:
    """An event in its place: `position` counts from 1 without gaps, `at` is when it was recorded, in UTC."""

    position: int
    at: datetime
    event: Event


class Workspace:
    """A job's log, open. Made by `Workspace.open`; a context manager that closes it. For any thread."""

    def __init__(self, paths: JobPaths, connection: sqlite3.Connection, write: bool) -> None:
        self.paths = paths
        self.writable = write
        self._connection = connection
        self._thread = threading.RLock()

    @classmethod
    def open(cls, paths: JobPaths, write: bool = False) -> Workspace:
        """Opens the job's log; to write, makes it where it is missing and brings an older one up to date.

        Raises WorkspaceError for a job that isn't there, a file that is damaged or no workspace, or one from
        a newer version (or, to read, from an older one); DiskFullError. Whoever writes holds a JobLock.
        """
        if write:
            paths.create()
        elif not paths.exists():
            raise WorkspaceError(
                f"no job {paths.job!r} here",
                where=str(paths.folder),
                advice="migrate jobs lists those there are",
            )
        with translated(paths.database):
            connection = connect(paths.database, write=write)
            try:
                _check_kind(connection, paths.database)
                if write:
                    _bring_up_to_date(connection)
                    _check_whole(connection, paths.database)
                elif _version(connection) < SCHEMA_VERSION:
                    raise WorkspaceError(
                        "the workspace is empty or was written by an older version of Packhorse",
                        where=str(paths.database),
                        advice=f"migrate resume {paths.job} brings it up to date",
                    )
            except BaseException:
                connection.close()
                raise
        return cls(paths, connection, write)

    def record(self, event: Event, *more: Event) -> int:
        """Appends the events in one transaction; returns the position of the last.

        When it returns they survive a crash of the process and of the machine; when it raises (DiskFullError,
        JobFailedError, WorkspaceError) none of them is in the log.
        """
        if not self.writable:
            raise RuntimeError("this workspace was opened to read")
        rows = [(each.type, event_to_json(each)) for each in (event, *more)]
        with self._use() as connection, transaction(connection):
            at = datetime.now(UTC).isoformat(timespec="microseconds")
            last = 0
            for type_, body in rows:
                cursor = connection.execute(
                    "INSERT INTO event (at, type, body) VALUES (?, ?, ?)", (at, type_, body)
                )
                last = cursor.lastrowid or 0
            return last

    def events(
        self,
        start: int = 1,
        stop: int | None = None,
        types: Collection[type[Event] | str] | None = None,
    ) -> Iterator[Entry]:
        """The events from position `start` to `stop`, both included (None: to the end, and what is recorded
        meanwhile), of the given types (None: all), in order. Raises WorkspaceError for one it can't read."""
        names = None if types is None else sorted({t if isinstance(t, str) else t.type for t in types})
        if names == []:
            return
        wanted = "" if names is None else f" AND type IN ({', '.join('?' * len(names))})"
        query = (
            "SELECT position, at, type, body FROM event"
            f" WHERE position >= ? AND position <= ?{wanted} ORDER BY position LIMIT {_CHUNK}"
        )
        top = stop if stop is not None else 2**63 - 1
        while start <= top:
            with self._use() as connection:
                rows = connection.execute(query, (start, top, *(names or ()))).fetchall()
            for position, at, type_, body in rows:
                yield _entry(self.paths.database, position, at, type_, body)
            if len(rows) < _CHUNK:
                return
            start = rows[-1][0] + 1

    @property
    def position(self) -> int:
        """The position of the last event; 0 in an empty log."""
        with self._use() as connection:
            (last,) = connection.execute("SELECT coalesce(max(position), 0) FROM event").fetchone()
        return int(last)

    def close(self) -> None:
        """Ends the use of the file. Safe to call twice."""
        with self._thread, translated(self.paths.database):
            self._connection.close()

    def __enter__(self) -> Workspace:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @contextmanager
    def _use(self) -> Iterator[sqlite3.Connection]:
        with self._thread, translated(self.paths.database):
            yield self._connection


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


def _keep_events(connection: sqlite3.Connection) -> None:
    connection.execute(
        "CREATE TABLE event (position INTEGER PRIMARY KEY, at TEXT NOT NULL, type TEXT NOT NULL,"
        " body TEXT NOT NULL)"
    )
    connection.execute("CREATE INDEX event_by_type ON event (type, position)")


def _refuse_changes_to_events(connection: sqlite3.Connection) -> None:
    for verb in ("UPDATE", "DELETE"):
        connection.execute(
            f"CREATE TRIGGER event_refuses_{verb.lower()} BEFORE {verb} ON event"
            " BEGIN SELECT raise(ABORT, 'the log is append-only'); END"
        )


MIGRATIONS: tuple[Callable[[sqlite3.Connection], None], ...] = (_keep_events, _refuse_changes_to_events)
"""What makes a file of schema version n one of version n + 1, in order. Only ever added to."""

SCHEMA_VERSION = len(MIGRATIONS)


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def _check_kind(connection: sqlite3.Connection, file: Path) -> None:
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    tables = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]
    if application != APPLICATION and (application or tables):
        raise WorkspaceError("this SQLite file is no workspace of Packhorse", where=str(file))
    version = _version(connection)
    if version > SCHEMA_VERSION:
        error = newer_version(f"schema version {version}, this one knows {SCHEMA_VERSION}")
        error.where = str(file)
        raise error


def _bring_up_to_date(connection: sqlite3.Connection) -> None:
    with transaction(connection):
        for migrate in MIGRATIONS[_version(connection) :]:
            migrate(connection)
        connection.execute(f"PRAGMA application_id = {APPLICATION}")
        connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")


def _check_whole(connection: sqlite3.Connection, file: Path) -> None:
    """Whoever goes on writing must stand on a sound log: no damaged page, no gap."""
    verdict = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    count, last = connection.execute("SELECT count(*), coalesce(max(position), 0) FROM event").fetchone()
    if verdict != "ok" or count != last:
        raise damaged(file, verdict if verdict != "ok" else f"{last - count} events are missing")


def damaged(file: Path, how: str) -> WorkspaceError:
    """The error for a file that isn't as it was written."""
    return WorkspaceError(
        f"the workspace is damaged: {' '.join(how.split())[:160]}",
        where=str(file),
        advice="bring it back from a backup; the target's ledger still knows what was loaded",
    )


def _entry(file: Path, position: int, at: str, type_: str, body: str) -> Entry:
    try:
        return Entry(position, datetime.fromisoformat(at), event_from_json(type_, body))
    except WorkspaceError as error:
        error.where = f"{file}, event {position}"
        raise
    except (TypeError, ValueError) as error:
        raise damaged(file, f"event {position} can't be read") from error
