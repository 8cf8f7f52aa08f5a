"""Experience across jobs: which remedy held for which signature, in the user's data directory.

It holds signatures (`workspace.signature`: no record values), remedies and how often they held; never a
row. A remedy of kind `value_map` is a map of picklist labels, as a plan has it. Lessons of other people's stores are
kept beside one's own, so that the same file taken in twice counts once.
"""

from __future__ import annotations

import json
import math
import sqlite3
import uuid
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from threading import RLock
from types import TracebackType
from typing import Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from workspace.database import Schema, connect, transaction, translated
from workspace.errors import WorkspaceError
from workspace.paths import OWNER_ONLY, data_directory
from workspace.signature import normalise

LessonKind = Literal["match", "value_map", "failure"]
LESSON_KINDS: tuple[str, ...] = get_args(LessonKind)

_Z = 1.6449  # one-sided 95 %
_PRIOR = 9.0
_FORMAT = 1


@dataclass(frozen=True)
class Lesson:
    """A remedy for a signature, and its record over all jobs."""

    kind: LessonKind
    signature: str
    remedy: str
    tried: int
    held: int
    last_seen: datetime

    @property
    def trust(self) -> float:
        """Lower bound of the share of tries that it will hold in, 0..1: Wilson's, one-sided at 95 %.

        Held 1 of 1 gives 0.27, 9 of 10 gives 0.65, 20 of 20 gives 0.88: few tries are never sure.
        """
        if not self.tried:
            return 0.0
        share, n = self.held / self.tried, self.tried
        middle = share + _Z * _Z / (2 * n)
        margin = _Z * math.sqrt(share * (1 - share) / n + _Z * _Z / (4 * n * n))
        return max(0.0, (middle - margin) / (1 + _Z * _Z / n))

    @property
    def likely(self) -> float:
        """The share of tries that it is expected to hold in: the mean of a Beta distribution that begins at 9 : 0.5, and in
        which a failure counts as nine tries. Held 1 of 1 gives 0.95, 1 of 2 gives 0.51, 9 of 10 gives 0.65. It begins lower than
        what was measured (docs/evaluation.md)."""
        failed = self.tried - self.held
        return (self.held + _PRIOR) / (self.held + _PRIOR + 0.5 + _PRIOR * failed)

    def to_dict(self) -> dict[str, Any]:
        """As JSON values."""
        return {
            "kind": self.kind,
            "signature": self.signature,
            "remedy": self.remedy,
            "tried": self.tried,
            "held": self.held,
            "trust": round(self.trust, 4),
            "last_seen": self.last_seen.isoformat(timespec="seconds"),
        }


class _Exported(BaseModel):
    """A lesson in an exported file: the counts of one store."""

    model_config = ConfigDict(extra="forbid")
    origin: str = Field(min_length=1, max_length=64)
    kind: LessonKind
    signature: str = Field(min_length=1)
    remedy: str = Field(min_length=1)
    tried: int = Field(ge=0, lt=2**53)
    held: int = Field(ge=0, lt=2**53)
    last_seen: datetime


class _ExportedFile(BaseModel):
    model_config = ConfigDict(extra="forbid")
    packhorse_experience: int
    lessons: list[_Exported]


class ExperienceStore:
    """The lessons of all jobs of this user. Several processes may use it at once. A context manager."""

    def __init__(self, file: Path, connection: sqlite3.Connection, origin: str) -> None:
        self.file = file
        self._connection = connection
        self._origin = origin
        self._thread = RLock()

    @classmethod
    def open(cls, path: Path | None = None) -> ExperienceStore:
        """Opens the store at `path` (None: `experience.db` in the data directory), made where it is missing.

        Raises WorkspaceError (damaged, newer version, closed to us) and DiskFullError; a job can do without.
        """
        file = path or data_directory() / "experience.db"
        with translated(file, SCHEMA):
            if not file.parent.is_dir():
                file.parent.mkdir(mode=OWNER_ONLY, parents=True, exist_ok=True)
            connection = connect(file, SCHEMA, write=True)
            try:
                (origin,) = connection.execute("SELECT origin FROM store").fetchone()
            except BaseException:
                connection.close()
                raise
        return cls(file, connection, str(origin))

    def record(self, kind: LessonKind, signature: str, remedy: str, held: bool) -> None:
        """Counts one try of a remedy. The signature is normalised. ValueError for an unknown kind."""
        self._check(kind)
        with self._use() as connection, transaction(connection):
            connection.execute(
                "INSERT INTO lesson (origin, kind, signature, remedy, tried, held, last_seen)"
                " VALUES (?, ?, ?, ?, 1, ?, ?) ON CONFLICT DO UPDATE SET tried = tried + 1,"
                " held = held + excluded.held, last_seen = max(last_seen, excluded.last_seen)",
                (self._origin, kind, normalise(signature), remedy, int(held), _now()),
            )

    def recall(self, kind: LessonKind, signature: str) -> list[Lesson]:
        """What was tried on this signature, the most trusted first (`Lesson.trust`); [] for nothing."""
        self._check(kind)
        return self._lessons("WHERE kind = ? AND signature = ?", (kind, normalise(signature)))

    def near(self, kind: LessonKind, signature: str, most: int = 60) -> list[Lesson]:
        """What was tried on signatures that are written much like this one, the likest first (BM25 over runs of three
        letters); [] for nothing. The signature itself may be among them."""
        self._check(kind)
        text = normalise(signature)
        parts = sorted({text[i : i + 3] for i in range(len(text) - 2)})
        if not parts:
            return []
        wanted = " OR ".join('"' + part.replace('"', '""') + '"' for part in parts)
        with self._use() as connection:
            rows = connection.execute(
                "SELECT signature FROM lesson_text WHERE lesson_text MATCH ? AND kind = ? ORDER BY bm25(lesson_text), signature LIMIT ?",
                (wanted, kind, most),
            ).fetchall()
        return [lesson for (found,) in dict.fromkeys(rows) for lesson in self.recall(kind, found)]

    def lessons(self, kind: LessonKind | None = None) -> list[Lesson]:
        """All lessons, of one kind or of all, the most trusted first."""
        if kind is None:
            return self._lessons("", ())
        self._check(kind)
        return self._lessons("WHERE kind = ?", (kind,))

    def forget(self, kind: LessonKind | None = None, signature: str | None = None, remedy: str | None = None) -> int:
        """Removes the lessons that agree with all that is given (nothing given: all); returns how many."""
        given = {
            "kind": kind,
            "signature": None if signature is None else normalise(signature),
            "remedy": remedy,
        }
        where = [(f"{column} = ?", value) for column, value in given.items() if value is not None]
        condition = f" WHERE {' AND '.join(part for part, _ in where)}" if where else ""
        values = [value for _, value in where]
        with self._use() as connection, transaction(connection):
            (gone,) = connection.execute(
                f"SELECT count(*) FROM (SELECT DISTINCT kind, signature, remedy FROM lesson{condition})",
                values,
            ).fetchone()
            connection.execute(f"DELETE FROM lesson{condition}", values)
        return int(gone)

    def export_lessons(self, kinds: Collection[str] = LESSON_KINDS) -> str:
        """The lessons of some kinds as a JSON document that `import_lessons` takes, here or elsewhere."""
        with self._use() as connection:
            rows = connection.execute(
                "SELECT origin, kind, signature, remedy, tried, held, last_seen FROM lesson"
                " ORDER BY kind, signature, remedy, origin"
            ).fetchall()
        names = list(_Exported.model_fields)
        lessons = [dict(zip(names, row, strict=True)) for row in rows]
        lessons = [lesson for lesson in lessons if lesson["kind"] in kinds]
        return json.dumps({"packhorse_experience": _FORMAT, "lessons": lessons}, indent=1) + "\n"

    def import_lessons(self, document: str | bytes) -> int:
        """Takes in an exported document; returns how many lessons it added or moved on.

        Counts of one store never shrink and never add to themselves, so the same file twice changes nothing.
        All or nothing; raises WorkspaceError for a document that isn't one.
        """
        try:
            found = _ExportedFile.model_validate_json(document)
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(str(step) for step in first["loc"])
            raise WorkspaceError(
                f"this is no exported experience: {first['msg']}" + (f" at {place}" if place else "")
            ) from None
        if found.packhorse_experience > _FORMAT:
            raise WorkspaceError("this experience was exported by a newer version", advice="upgrade packhorse")
        if any(lesson.held > lesson.tried for lesson in found.lessons):
            raise WorkspaceError("this is no exported experience: a remedy held more often than it was tried")
        changed = 0
        with self._use() as connection, transaction(connection):
            for lesson in found.lessons:
                changed += self._take_in(connection, lesson)
        return changed

    def close(self) -> None:
        """Ends the use of the file. Safe to call twice."""
        with self._thread, translated(self.file, SCHEMA):
            self._connection.close()

    def __enter__(self) -> ExperienceStore:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _take_in(self, connection: sqlite3.Connection, lesson: _Exported) -> int:
        at = lesson.last_seen if lesson.last_seen.tzinfo else lesson.last_seen.replace(tzinfo=UTC)
        return connection.execute(
            "INSERT INTO lesson (origin, kind, signature, remedy, tried, held, last_seen)"
            " VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET tried = excluded.tried,"
            " held = excluded.held, last_seen = excluded.last_seen WHERE excluded.tried > tried",
            (
                lesson.origin,
                lesson.kind,
                normalise(lesson.signature),
                lesson.remedy,
                lesson.tried,
                lesson.held,
                at.astimezone(UTC).isoformat(timespec="microseconds"),
            ),
        ).rowcount

    def _lessons(self, where: str, values: tuple[str, ...]) -> list[Lesson]:
        with self._use() as connection:
            rows = connection.execute(
                "SELECT kind, signature, remedy, sum(tried), sum(held), max(last_seen) FROM lesson"
                f" {where} GROUP BY kind, signature, remedy",
                values,
            ).fetchall()
        found = [
            Lesson(kind, signature, remedy, tried, held, datetime.fromisoformat(seen))
            for kind, signature, remedy, tried, held, seen in rows
        ]
        return sorted(found, key=lambda each: (-each.trust, -each.tried, each.kind, each.signature, each.remedy))

    @contextmanager
    def _use(self) -> Iterator[sqlite3.Connection]:
        with self._thread, translated(self.file, SCHEMA):
            yield self._connection

    @staticmethod
    def _check(kind: str) -> None:
        if kind not in LESSON_KINDS:
            raise ValueError(f"a lesson's kind is one of {', '.join(LESSON_KINDS)}, not {kind!r}")


def _keep_lessons_by_origin(connection: sqlite3.Connection) -> None:
    connection.execute("CREATE TABLE store (origin TEXT NOT NULL)")
    connection.execute("INSERT INTO store VALUES (?)", (uuid.uuid4().hex,))
    connection.execute(
        "CREATE TABLE lesson (origin TEXT NOT NULL, kind TEXT NOT NULL, signature TEXT NOT NULL,"
        " remedy TEXT NOT NULL, tried INTEGER NOT NULL, held INTEGER NOT NULL, last_seen TEXT NOT NULL,"
        " PRIMARY KEY (kind, signature, remedy, origin)) WITHOUT ROWID"
    )


def _find_by_likeness(connection: sqlite3.Connection) -> None:
    """The signatures once more, to be searched; triggers keep them with the lessons."""
    connection.execute(
        "CREATE VIRTUAL TABLE lesson_text USING fts5(signature, kind UNINDEXED, tokenize = 'trigram case_sensitive 1')"
    )
    connection.execute("INSERT INTO lesson_text (signature, kind) SELECT DISTINCT signature, kind FROM lesson")
    there = "EXISTS (SELECT 1 FROM lesson WHERE kind = old.kind AND signature = old.signature)"
    connection.execute(
        "CREATE TRIGGER lesson_added AFTER INSERT ON lesson"
        " WHEN 1 = (SELECT count(*) FROM lesson WHERE kind = new.kind AND signature = new.signature)"
        " BEGIN INSERT INTO lesson_text (signature, kind) VALUES (new.signature, new.kind); END"
    )
    connection.execute(
        f"CREATE TRIGGER lesson_removed AFTER DELETE ON lesson WHEN NOT {there}"
        " BEGIN DELETE FROM lesson_text WHERE kind = old.kind AND signature = old.signature; END"
    )


SCHEMA = Schema("experience", 0x50414345, (_keep_lessons_by_origin, _find_by_likeness))
"""The store's schema; "PACE" in the header of the file."""


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="microseconds")
