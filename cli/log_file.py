"""`--log-file`: a JSON line for each event of the job, appended as it is recorded, for whoever gathers logs.

The file is its owner's alone. A line is written after its event is durable, so a kill may come between the two: the
next command that writes to the file begins with the lines that are missing. A line that can't be written never stops
the job.
"""

from __future__ import annotations

import contextlib
import json
import os
import stat
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import structlog

from cli.log_lines import level, level_of, shown
from workspace.errors import PackhorseError, UsageError
from workspace.events import PhaseStarted
from workspace.log import Entry, Workspace
from workspace.paths import JobPaths, RehearsalPaths

_TAIL = 1 << 20  # bytes of the file that are searched for the job's last line
_Log = tuple[str, bool]  # a job, and whether it is its rehearsal


class LogFile:
    """A listener that writes. UsageError where the file can't be one."""

    def __init__(self, name: str) -> None:
        self.trouble = ""
        self._file = _opened(name)
        self._logger = structlog.wrap_logger(
            structlog.BytesLogger(self._file), processors=[structlog.processors.JSONRenderer(serializer=_line)]
        )
        self._last = _last_positions(self._file, name)
        self._phases: dict[_Log, str] = {}
        self._job: str | None = None

    def __call__(self, paths: JobPaths, entries: Sequence[Entry]) -> None:
        """Writes the entries, after those that an earlier process left out."""
        log = (paths.job, isinstance(paths, RehearsalPaths))
        try:
            if log not in self._phases:
                entries = [*self._before(paths, log, entries[0].position), *entries]
            for entry in entries:
                self._write(log, entry)
        except (OSError, PackhorseError) as error:
            self.trouble = str(error)

    def end(self, code: int, error: BaseException | None) -> None:
        """The last line: how the command ended, and its error by its code, whose text may hold a value."""
        about: dict[str, Any] = {"exit_code": code}
        if error is not None:
            kind = type(error) if isinstance(error, PackhorseError) else PackhorseError
            about |= {"code": kind.code, "error": (kind.__doc__ or "").strip().partition("\n")[0]}
        try:
            self._put(level_of(code), "command_ended", datetime.now(UTC), job=self._job, **about)
        except OSError as problem:
            self.trouble = str(problem)

    def close(self) -> None:
        """Closes the file."""
        with contextlib.suppress(OSError):
            self._file.close()

    def _before(self, paths: JobPaths, log: _Log, position: int) -> list[Entry]:
        """The entries that the file lacks: after its last of this log, where it has one, and before `position`."""
        self._phases[log] = ""
        if position == 1:
            return []
        last = self._last.get(log)
        with Workspace.open(paths) as workspace:
            for entry in workspace.events(stop=last or position - 1, types=[PhaseStarted]):
                self._phases[log] = getattr(entry.event, "phase", "")
            return list(workspace.events(start=last + 1, stop=position - 1)) if last is not None else []

    def _write(self, log: _Log, entry: Entry) -> None:
        if isinstance(entry.event, PhaseStarted):
            self._phases[log] = entry.event.phase
        about = {"job": log[0], "phase": self._phases[log], "position": entry.position}
        if log[1]:
            about["rehearsal"] = True
        self._job = log[0]
        self._put(level(entry.event), entry.event.type, entry.at, **{**shown(entry.event), **about})

    def _put(self, level: str, event: str, at: datetime, **about: Any) -> None:
        stamp = at.isoformat(timespec="microseconds").replace("+00:00", "Z")
        self._logger.msg(event, **{"timestamp": stamp, "level": level, **about})


def _line(document: dict[str, Any], **how: Any) -> bytes:
    """Time, level and event first, as people read them."""
    first = {name: document.pop(name) for name in ("timestamp", "level", "event")}
    return json.dumps({**first, **document}, **how).encode("ascii")


def _opened(name: str) -> Any:
    if name == "-":
        raise UsageError(
            "a log file has a name", where="--log-file -", advice="stdout and stderr are for results and progress"
        )
    path = Path(name).expanduser()
    try:
        number = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK, 0o600)
        file = os.fdopen(number, "ab", buffering=0)
        if not stat.S_ISREG(os.fstat(number).st_mode):
            file.close()
            raise UsageError("a log file is a regular file", where=f"--log-file {name}")
        os.fchmod(number, 0o600)
    except OSError as error:
        raise UsageError(f"can't write the log file: {error.strerror}", where=f"--log-file {name}") from None
    return file


def _last_positions(file: Any, name: str) -> dict[_Log, int]:
    """The last position of each log in the end of the file; a line that a kill cut off is ended."""
    size = os.fstat(file.fileno()).st_size
    found: dict[_Log, int] = {}
    with Path(name).expanduser().open("rb") as reader:
        reader.seek(max(0, size - _TAIL))
        text = reader.read()
    if text and not text.endswith(b"\n"):
        file.write(b"\n")
    for line in text.split(b"\n"):
        with contextlib.suppress(ValueError, KeyError, TypeError):
            document = json.loads(line)
            found[document["job"], bool(document.get("rehearsal"))] = int(document["position"])
    return found
