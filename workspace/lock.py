"""The lock that lets one process, and no more, write a job.

The kernel holds it, on the open lock file: it goes with the process however that one ends, so there is
nothing to clean up after a crash. The text in the file only tells people who holds it; it must never be
taken for the lock itself, and the file must never be removed (whoever waits on the old file would hold a
lock that nobody else sees).
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import socket
import time
from datetime import UTC, datetime
from types import TracebackType
from weakref import WeakSet

from workspace.errors import JobLockedError, WorkspaceError
from workspace.paths import JobPaths


class JobLock:
    """Context manager: this process alone writes the job until the block ends or the process dies.

    Entering raises JobLockedError, which names the holder, when another process (or another JobLock of
    this one) has it, and WorkspaceError when there is no such job. A forked child doesn't inherit it.
    """

    def __init__(self, paths: JobPaths) -> None:
        self._paths = paths
        self._file: int | None = None

    def __enter__(self) -> JobLock:
        if self._file is not None:
            raise RuntimeError("this JobLock is entered already")
        file = _open(self._paths)
        try:
            _take(file)
        except OSError as error:
            holder = _read_holder(file)
            os.close(file)
            if error.errno in (errno.EWOULDBLOCK, errno.EAGAIN, errno.EACCES):
                raise JobLockedError(
                    f"job {self._paths.job!r} is being run by {_describe(holder)}",
                    where=str(self._paths.lock),
                    advice=f"wait for it; how far it is: migrate status {self._paths.job}",
                ) from None
            raise WorkspaceError(
                f"this file system can't lock files: {error.strerror}",
                where=str(self._paths.lock),
                advice="run migrate in a folder on a local disk",
            ) from error
        self._file = file
        _held.add(self)
        self._sign()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.release()

    def release(self) -> None:
        """Lets go of the lock. Safe to call twice."""
        if self._file is None:
            return
        file, self._file = self._file, None
        _held.discard(self)
        try:
            os.ftruncate(file, 0)
        finally:
            os.close(file)

    def _sign(self) -> None:
        """Writes who holds the lock. A full disk only costs the name in somebody's message."""
        assert self._file is not None
        signature = {**_signature(), "since": datetime.now(UTC).isoformat(timespec="seconds")}
        try:
            os.ftruncate(self._file, 0)
            os.pwrite(self._file, (json.dumps(signature) + "\n").encode(), 0)
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise

    def _leave_to_parent(self) -> None:
        """In a forked child: closes the child's copy, which leaves the parent's lock as it is."""
        if self._file is not None:
            os.close(self._file)
            self._file = None


def _take(file: int) -> None:
    """Takes the lock, or raises OSError. Asks again for half a second: `lock_holder` of another process
    holds it for an instant when it looks, and a process that was killed a moment ago may still be going."""
    for _ in range(9):
        try:
            return fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(0.05)
    return fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def lock_holder(paths: JobPaths) -> str | None:
    """Who runs the job now (`process 4711 on host`), or None when nobody does or there is no such job."""
    try:
        file = os.open(paths.lock, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return _describe(_read_holder(file))
    else:
        return None
    finally:
        os.close(file)


def this_process() -> str:
    """What `lock_holder` says of a job that this process runs: `process 4711 on host`."""
    return _describe(_signature())


def _open(paths: JobPaths) -> int:
    try:
        return os.open(paths.lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except FileNotFoundError:
        raise WorkspaceError(
            f"no job {paths.job!r} here", where=str(paths.folder), advice="migrate jobs lists those there are"
        ) from None
    except OSError as error:
        raise WorkspaceError(f"can't open the job's lock: {error.strerror}", where=str(paths.lock)) from error


def _signature() -> dict[str, object]:
    return {"pid": os.getpid(), "host": socket.gethostname()}


def _read_holder(file: int) -> dict[str, object]:
    try:
        found = json.loads(os.pread(file, 4096, 0) or b"{}")
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _describe(holder: dict[str, object]) -> str:
    pid, host = holder.get("pid"), holder.get("host")
    if not isinstance(pid, int) or not isinstance(host, str):
        return "another process"
    return f"process {pid} on {host}"


_held: WeakSet[JobLock] = WeakSet()


def _after_fork() -> None:
    for lock in list(_held):
        lock._leave_to_parent()
    _held.clear()


os.register_at_fork(after_in_child=_after_fork)
