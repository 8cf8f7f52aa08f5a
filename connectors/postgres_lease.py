"""The lease on a job in a PostgreSQL target: one process has the job, and others may write batches under its lease.

The lease is an advisory lock, which the server ends with the connection that holds it, and the instant in the job's
row, its token. Never let a batch in under a token that another lease has replaced.
"""

from __future__ import annotations

import os
import socket

from connectors.dsn import Dsn
from connectors.postgres_prepare import PostgresPrepared
from connectors.postgres_schema import SCHEMA
from connectors.protocols import LeaseLostError, TargetLostError
from workspace.errors import JobLockedError

_KEY = "hashtextextended('packhorse job ' || %s, 0)"


class PostgresLease(PostgresPrepared):
    """The job of a session: leased, joined under another process's lease, or only known."""

    def __init__(self, dsn: Dsn, schema: str = SCHEMA) -> None:
        super().__init__(dsn, schema)
        self._job: tuple[int, str] | None = None
        self._leased = False
        self._token = ""
        self._joined = ""

    def lease(self, job: str, source: str) -> None:
        """Takes the job until this connection ends: an advisory lock, and a row that says who has it.

        When it returns, no batch is under way that another lease let in, and none can begin: those hold the row.
        A lease that is taken again after a lost connection, with none in between, keeps its token.
        """
        host, pid = socket.gethostname(), os.getpid()
        with self._reached(), self._connection.cursor() as cursor:
            cursor.execute(f"SELECT pg_try_advisory_lock({_KEY})", [self._lock_of(job)])
            got = cursor.fetchone()
            if got is None or not got[0]:
                cursor.execute(f"SELECT host, pid, since::text FROM {self.ours}.job WHERE name = %s", [job])
                holder = cursor.fetchone()
                who = f"process {holder[1]} on {holder[0]}, since {holder[2]}" if holder else "another process"
                # our own lost connection, or that of a process that was killed: the server is about to end it
                ends = holder and holder[0] == host and (self._leased if holder[1] == pid else not _runs(holder[1]))
                if not ends:
                    raise JobLockedError(
                        f"the job {job} is being run by {who}",
                        where=self.dsn,
                        advice="wait for it, or stop it there first",
                    )
                with self._connection.transaction():
                    cursor.execute("SET LOCAL lock_timeout = '10s'")
                    cursor.execute(f"SELECT pg_advisory_lock({_KEY})", [self._lock_of(job)])
            with self._connection.transaction():
                cursor.execute("SET LOCAL lock_timeout = '60s'")
                cursor.execute(
                    f"INSERT INTO {self.ours}.job (name, source, host, pid, since) VALUES (%s, %s, %s, %s, clock_timestamp()) "
                    f"ON CONFLICT (name) DO UPDATE SET host = excluded.host, pid = excluded.pid, "
                    f"since = CASE WHEN job.since::text = %s THEN job.since ELSE excluded.since END "
                    f"RETURNING id, source, since::text",
                    [job, source, host, pid, self._token],
                )
                row = cursor.fetchone()
            assert row is not None
            if row[1] != source:
                raise JobLockedError(
                    f"the target knows a job {job} of another source, {row[1]}",
                    where=self.dsn,
                    advice="give this one another name with --job",
                )
            self._job, self._leased, self._token = (row[0], job), True, row[2]

    def _lock_of(self, job: str) -> str:
        """What the lock of a job is called after: jobs of one name in two schemas are two."""
        return job if self.schema == SCHEMA else f"{job} in {self.schema}"

    @property
    def lease_token(self) -> str:
        """What others `join` this process's lease by; empty without one. A lost lease may come back with another."""
        return self._token

    def keep_lease(self) -> None:
        """Sees that this process still has its lease, on a new connection where the old one was lost."""
        try:
            self.read("SELECT 1")
        except TargetLostError:
            self.reconnect()

    def join(self, job: str, token: str) -> None:
        """Has the batches that `take` begins written under the lease of another process. LeaseLostError where it
        isn't held, or not in this database."""
        if not self.know(job):
            raise LeaseLostError(f"the target knows no job {job}", where=self.dsn)
        self._joined = token

    def know(self, job: str) -> bool:
        """Finds a job to read about, without a lease. False when the target doesn't know it."""
        if not self.has_schema():
            return False
        with self._reached(), self._connection.cursor() as cursor:
            cursor.execute(f"SELECT id FROM {self.ours}.job WHERE name = %s", [job])
            row = cursor.fetchone()
        if row is not None:
            self._job = (row[0], job)
        return row is not None

    def source_of_job(self) -> str:
        """The source that the job taken or known is of."""
        return str(self.read(f"SELECT source FROM {self.ours}.job WHERE id = %s", [self.job_id])[0][0])

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

    def _hold(self) -> None:
        """Keeps the joined lease's row from changing until the transaction ends, so that no other lease is taken
        meanwhile. LeaseLostError where its holder is gone or another has the job."""
        if not self._joined:
            return
        assert self._job is not None
        held = self.read(
            f"SELECT since::text, EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 1 AND granted "
            f"AND mode = 'ExclusiveLock' AND database = (SELECT oid FROM pg_database WHERE datname = current_database()) "
            f"AND (classid::bigint << 32 | objid::bigint) = {_KEY}) FROM {self.ours}.job WHERE id = %s FOR SHARE",
            [self._lock_of(self._job[1]), self._job[0]],
        )
        if held != [(self._joined, True)]:
            raise LeaseLostError("the lease on the job, under which this batch was to be written, is gone")


def _runs(pid: int) -> bool:
    """True where this machine has a process of that number."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
