"""A PostgreSQL of our own for a rehearsal: on a socket and no network address, in a folder that goes with it.

It lives as long as the process that started it and no longer, however that one ends. Never touches a server that it
did not start.
"""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType

import psycopg
from psycopg import sql

from connectors.dsn import Dsn
from connectors.embedded import CLUSTER, as_roots_user, lend, postgres_binaries
from workspace.errors import JobFailedError

START_SECONDS = 60
_ADMINISTRATOR = "postgres"

# The shell holds the server's life to ours: its own input, which our process keeps open, ends when that does. Then the
# server is ended at once, and what it wrote is removed.
_WATCH = """
exec 3<&0
programs=$1 folder=$2 sockets=$3
shift 3
"$programs/initdb" -D "$folder/data" "$@" </dev/null >"$folder/log" 2>&1 3<&- &&
  {
    "$programs/postgres" -D "$folder/data" -k "$sockets" -c listen_addresses= -c unix_socket_permissions=0700 \\
      </dev/null >"$folder/log" 2>&1 3<&- & server=$!
    { read -r _ <&3; kill -QUIT $server; } 2>/dev/null &
    wait $server
  }
touch "$folder/ended"
read -r _ <&3
rm -rf "$folder" "$sockets"
"""


class ScratchServer:
    """A context manager: the server runs within its block. JobFailedError where it can't be made or started."""

    def __init__(self, folder: Path) -> None:
        """`folder` is for the server alone, made anew; run by root, who may not run PostgreSQL, the server lies in
        the folder for temporary files instead, and belongs to a user without rights."""
        if os.geteuid() == 0:
            folder = Path(tempfile.mkdtemp(prefix="packhorse-rehearsal-"))
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(mode=0o700, parents=True)
        self.folder = folder
        # a short path: a socket's may have about 100 bytes
        self._sockets = Path(tempfile.mkdtemp(prefix="ph-", dir="/tmp"))
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def log(self) -> str:
        """What the server wrote to its log so far."""
        path = self.folder / "log"
        return path.read_text(errors="replace") if path.exists() else ""

    def dsn(self, database: str, user: str = _ADMINISTRATOR) -> Dsn:
        """How to log in, by the socket, without a password."""
        return Dsn("postgres", user=user, database=database, parameters={"host": str(self._sockets)})

    def connect(self, database: str = _ADMINISTRATOR) -> psycopg.Connection[tuple[object, ...]]:
        """A connection of the superuser, in autocommit."""
        return psycopg.connect(host=str(self._sockets), user=_ADMINISTRATOR, dbname=database, autocommit=True)

    def make_user(self, name: str) -> None:
        """A superuser of that name, where there is none: what asks for the user then hears the same name."""
        with self.connect() as connection:
            found = connection.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", [name]).fetchone()
            if found is None:
                connection.execute(sql.SQL("CREATE ROLE {} SUPERUSER LOGIN").format(sql.Identifier(name)))

    def __enter__(self) -> ScratchServer:
        try:
            self._start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Ends the server and removes its folders. Safe to call twice."""
        if self._process is not None:
            assert self._process.stdin is not None
            self._process.stdin.close()
            self._process.wait()
            self._process = None
        for folder in (self.folder, self._sockets):
            shutil.rmtree(folder, ignore_errors=True)

    def _start(self) -> None:
        binaries = postgres_binaries()
        _check_within_reach(binaries)
        lend(self.folder, self._sockets)
        programs = (str(binaries), str(self.folder), str(self._sockets))
        self._process = subprocess.Popen(
            ["/bin/sh", "-c", _WATCH, "sh", *programs, "-U", _ADMINISTRATOR, "--auth=trust", *CLUSTER],
            # a session of its own: a signal to the job's group is for the job, which then ends its server
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
            **as_roots_user(self.folder),
        )  # fmt: skip
        end = time.monotonic() + START_SECONDS
        while True:
            try:
                self.connect().close()
                return
            except psycopg.OperationalError:
                if (self.folder / "ended").exists() or time.monotonic() > end:
                    raise self._failed(self.log.strip()) from None
                time.sleep(0.05)

    def _failed(self, said: str) -> JobFailedError:
        last = (said.splitlines() or ["it said nothing"])[-1]
        return JobFailedError(
            f"the scratch server did not start: {last[:200]}", where=str(self.folder),
            advice="mend the cause, or name a database to rehearse in with --into DSN",
        )  # fmt: skip


def _check_within_reach(binaries: Path) -> None:
    """JobFailedError where root runs this and the programs lie where another user can't come: opening the way there
    is nothing that a rehearsal may do."""
    if os.geteuid() != 0:
        return
    closed = next((p for p in (binaries, *binaries.parents) if not p.stat().st_mode & stat.S_IXOTH), None)
    if closed is not None:
        raise JobFailedError(
            "root may not run PostgreSQL, and other users can't reach its programs", where=str(closed),
            advice="run migrate as another user, or name a database to rehearse in with --into DSN",
        )  # fmt: skip
