"""The log of one job: typed events in SQLite, only ever appended, each durable before it is relied on. Once a job is
purged, record values go out of its events (`Workspace.thin`); no event does.

One process writes (it holds the job's lock, `workspace.lock`); any number read, live. The file itself refuses
changes to what it holds. It must grow with batches and decisions, never with rows.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType

from workspace.database import Schema, connect, damaged, transaction, translated
from workspace.errors import JobLockedError, WorkspaceError
from workspace.events import Event, event_from_json, event_to_json
from workspace.listening import tell
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
        with translated(paths.database, SCHEMA):
            connection = connect(paths.database, SCHEMA, write=write)
            if write:
                try:
                    _check_whole(connection, paths.database)
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
        with self._use() as connection:
            at, last = datetime.now(UTC), 0
            with transaction(connection):
                for type_, body in rows:
                    cursor = connection.execute(
                        "INSERT INTO event (at, type, body) VALUES (?, ?, ?)",
                        (at.isoformat(timespec="microseconds"), type_, body),
                    )
                    last = cursor.lastrowid or 0
            first = last - len(more)
            tell(self.paths, [Entry(first + i, at, each) for i, each in enumerate((event, *more))])
            return last

    def thin(self, thinned: Callable[[Event], Event], then: Callable[[int], Sequence[Event]]) -> int:
        """Puts `thinned` of each event in its place and appends what `then` says of how many that changed: all in one
        transaction. Returns that number. Whoever reads the log meanwhile sees it as it was, or as it is then.

        The only way that an event ever changes, for values that have to go; positions, times and types stay. What was
        there before is gone from the file after `forget`.
        """
        if not self.writable:
            raise RuntimeError("this workspace was opened to read")
        changed = 0
        with self._use() as connection:
            connection.execute("PRAGMA secure_delete = ON")
            with transaction(connection):
                for trigger in _REFUSE_CHANGES:
                    connection.execute(f"DROP TRIGGER IF EXISTS {trigger}")
                for entry in self.events():
                    after = thinned(entry.event)
                    if after != entry.event:
                        connection.execute(
                            "UPDATE event SET body = ? WHERE position = ?", (event_to_json(after), entry.position)
                        )
                        changed += 1
                _refuse_changes_to_events(connection)
                at = datetime.now(UTC).isoformat(timespec="microseconds")
                for event in then(changed):
                    row = (at, event.type, event_to_json(event))
                    connection.execute("INSERT INTO event (at, type, body) VALUES (?, ?, ?)", row)
        return changed

    def forget(self) -> None:
        """Leaves nothing in the file and its WAL of what events held before `thin`. JobLockedError where a reader keeps
        the WAL; DiskFullError (it takes the room of the log once more)."""
        with self._use() as connection:
            connection.execute("PRAGMA secure_delete = ON")
            connection.execute("VACUUM")
            busy, _, _ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        if busy:
            raise JobLockedError(
                "another process keeps reading this workspace", where=str(self.paths.database),
                advice=f"end it, then: migrate purge {self.paths.job}",
            )  # fmt: skip

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
        file = self.paths.database
        top = stop if stop is not None else 2**63 - 1
        while start <= top:
            with self._use() as connection:
                rows = connection.execute(query, (start, top, *(names or ()))).fetchall()
            for position, at, type_, body in rows:
                yield _entry(file, position, at, type_, body)
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
        with self._thread, translated(self.paths.database, SCHEMA):
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
        with self._thread, translated(self.paths.database, SCHEMA):
            yield self._connection


def _keep_events(connection: sqlite3.Connection) -> None:
    connection.execute(
        "CREATE TABLE event (position INTEGER PRIMARY KEY, at TEXT NOT NULL, type TEXT NOT NULL, body TEXT NOT NULL)"
    )
    connection.execute("CREATE INDEX event_by_type ON event (type, position)")


_REFUSE_CHANGES = {f"event_refuses_{verb.lower()}": verb for verb in ("UPDATE", "DELETE")}


def _refuse_changes_to_events(connection: sqlite3.Connection) -> None:
    for trigger, verb in _REFUSE_CHANGES.items():
        connection.execute(
            f"CREATE TRIGGER {trigger} BEFORE {verb} ON event BEGIN SELECT raise(ABORT, 'the log is append-only'); END"
        )


SCHEMA = Schema("workspace", 0x5041434B, (_keep_events, _refuse_changes_to_events))
"""The log's schema; "PACK" in the header of the file."""


def _check_whole(connection: sqlite3.Connection, file: Path) -> None:
    """Whoever goes on writing must stand on a sound log: no damaged page, no gap."""
    verdict = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    count, last = connection.execute("SELECT count(*), coalesce(max(position), 0) FROM event").fetchone()
    if verdict != "ok" or count != last:
        raise damaged(file, SCHEMA, verdict if verdict != "ok" else f"{last - count} events are missing")


def _entry(file: Path, position: int, at: str, type_: str, body: str) -> Entry:
    try:
        return Entry(position, datetime.fromisoformat(at), event_from_json(type_, body))
    except WorkspaceError as error:
        error.where = f"{file}, event {position}"
        raise
    except (TypeError, ValueError) as error:
        raise damaged(file, SCHEMA, f"event {position} can't be read") from error
