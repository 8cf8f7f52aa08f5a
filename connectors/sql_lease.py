"""The lease on a job in a target reached through SQLAlchemy: the job's row says which process has it.

A batch begins by looking at that row, and locks it: it is let in only under the token of the lease that it was to be
written under. A process that is gone, or that began no batch for long on another machine, has its lease taken over.
"""

from __future__ import annotations

import os
import socket
import time
from contextlib import suppress

import psutil
import sqlalchemy as sa

from connectors.dsn import Dsn
from connectors.protocols import LeaseLostError, TargetLostError
from connectors.sql_rows import SqlRows
from connectors.sql_schema import JOB
from workspace.errors import JobLockedError, PackhorseError

_SILENT = 15 * 60 * 1_000_000
_HELD: set[tuple[str, str]] = set()
"""The leases that this process holds: by target and job."""


class SqlLease(SqlRows):
    """The job of a session: leased, joined under another process's lease, or only known."""

    def __init__(self, dsn: Dsn) -> None:
        super().__init__(dsn)
        self._job: tuple[int, str] | None = None
        self._leased = False
        self._token = ""
        self._joined = ""

    def lease(self, job: str, source: str) -> None:
        """Takes the job for this process. A lease that is taken again after a lost connection, with none in between,
        keeps its token. JobLockedError where a process that runs has it, or the job is of another source."""
        host, pid, now = socket.gethostname(), os.getpid(), time.time_ns() // 1_000
        self.begin()
        try:
            self._lock(job)
            asked = sa.select(JOB.c.id, JOB.c.source, JOB.c.host, JOB.c.pid, JOB.c.started, JOB.c.since, JOB.c.beat)
            found = self.read(asked.where(JOB.c.name == job).with_for_update())
            started = _started(pid)
            if not found:
                self.execute(
                    sa.insert(JOB).values(
                        name=job, source=source, host=host, pid=pid, started=started, since=now, beat=now
                    )
                )
                number, token = self.read(sa.select(JOB.c.id).where(JOB.c.name == job))[0][0], now
            else:
                number, of, *holder, since, beat = found[0]
                if of != source:
                    raise JobLockedError(
                        f"the target knows a job {job} of another source, {of}", where=self.dsn,
                        advice="give this one another name with --job",
                    )  # fmt: skip
                if self._is_held(job, holder, beat):
                    raise JobLockedError(
                        f"the job {job} is being run by process {holder[1]} on {holder[0]}", where=self.dsn,
                        advice="wait for it, or stop it there first",
                    )  # fmt: skip
                token = since if str(since) == self._token else now
                self.execute(
                    sa.update(JOB)
                    .where(JOB.c.id == number)
                    .values(host=host, pid=pid, started=started, since=token, beat=now)
                )
            self.commit()
        except BaseException:
            self.rollback()
            raise
        self._job, self._leased, self._token = (number, job), True, str(token)
        _HELD.add((self.identity, job))

    def _lock(self, job: str) -> None:
        """Has the server itself keep others from the job while this connection lives, where it can."""

    def _is_held(self, job: str, holder: list[object], beat: int) -> bool:
        host, pid, started = holder
        if host != socket.gethostname():
            return time.time_ns() // 1_000 - beat < _SILENT
        if (pid, started) == (os.getpid(), _started(os.getpid())):
            return (self.identity, job) in _HELD and not self._leased
        return started is not None and _started(int(str(pid))) == started

    @property
    def lease_token(self) -> str:
        """What others `join` this process's lease by; empty without one."""
        return self._token

    def join(self, job: str, token: str) -> None:
        """Has the batches that `take` begins written under the lease of another process. LeaseLostError where it
        isn't held."""
        if not self.know(job):
            raise LeaseLostError(f"the target knows no job {job}", where=self.dsn)
        self._joined = token

    def know(self, job: str) -> bool:
        """Finds a job to read about, without a lease. False when the target doesn't know it."""
        found = self.read(sa.select(JOB.c.id).where(JOB.c.name == job)) if self.has_schema() else []
        if found:
            self._job = (found[0][0], job)
        return bool(found)

    def has_schema(self) -> bool:
        """True where our tables are there."""
        with self._reached():
            return sa.inspect(self._connection).has_table(JOB.name)

    def source_of_job(self) -> str:
        """The source that the job taken or known is of."""
        return str(self.read(sa.select(JOB.c.source).where(JOB.c.id == self.job_id))[0][0])

    @property
    def job_id(self) -> int:
        """The number of the job taken or known."""
        assert self._job is not None
        return self._job[0]

    def reconnect(self) -> None:
        """A new connection in place of a lost one, with a lease taken again; TargetLostError while there is none."""
        super().reconnect()
        if self._leased and self._job is not None:
            self.lease(self._job[1], self.source_of_job())

    def close(self) -> None:
        """Ends the connection, and with it the lease."""
        if self._leased and self._job is not None:
            _HELD.discard((self.identity, self._job[1]))
            self._leased = False
            mine = JOB.c.id == self._job[0], JOB.c.since == int(self._token)
            with suppress(PackhorseError):  # gone with the connection: then the process's end tells
                self.rollback()
                self.execute(sa.update(JOB).where(*mine).values(pid=None, started=None, beat=0))
        super().close()

    def _under_lease(self) -> None:
        """Keeps the lease's row from changing until the transaction ends, so that no other lease is taken meanwhile.
        LeaseLostError where another process has the job by now, or the one that was joined is gone."""
        asked = sa.select(JOB.c.since, JOB.c.host, JOB.c.pid, JOB.c.started).where(JOB.c.id == self.job_id)
        found = self.read(asked.with_for_update(read=bool(self._joined)))
        ours = bool(found) and str(found[0][0]) == (self._joined or self._token)
        if not ours or (self._joined and not self._lives(*found[0][1:])):
            raise LeaseLostError("the lease on the job, under which this batch was to be written, is gone")
        if not self._joined:
            self.execute(sa.update(JOB).where(JOB.c.id == self.job_id).values(beat=time.time_ns() // 1_000))

    def _lives(self, host: str, pid: int | None, started: int | None) -> bool:
        """True where the process that holds the lease is there, as far as can be seen from here."""
        return pid is not None and (host != socket.gethostname() or _started(pid) == started)

    def keep_lease(self) -> None:
        """Sees that this process still has its lease, on a new connection where the old one was lost."""
        try:
            self.read(sa.select(sa.literal(1)))
        except TargetLostError:
            self.reconnect()


def _started(pid: int) -> int | None:
    """When this machine's process of that number began, in microseconds; None where there is none."""
    try:
        return int(psutil.Process(pid).create_time() * 1_000_000)
    except psutil.Error:
        return None
