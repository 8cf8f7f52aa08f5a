"""The demo's PostgreSQL: in the demo's folder, on a socket of its own and no network address.

It goes on running after the process that started it, so that the records can be looked at.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from urllib.parse import quote

import psycopg

from connectors.embedded import CLUSTER, as_roots_user, lend, postgres_binaries

from .server import ServerError


@dataclass(frozen=True)
class DemoServer:
    """A server in `folder`, started by whoever needs it and ended by nobody here. `start` raises ServerError."""

    folder: Path

    @property
    def data(self) -> Path:
        """The data directory."""
        return self.folder / "data"

    @property
    def socket_folder(self) -> Path:
        """Where the socket lies: a short path, since a socket's may have about 100 bytes."""
        mark = sha256(str(self.folder.resolve()).encode()).hexdigest()[:8]
        return Path("/tmp" if os.name == "posix" else tempfile.gettempdir()) / f"packhorse-demo-{mark}"

    @property
    def binaries(self) -> Path:
        """Where the wheel's programs lie."""
        return postgres_binaries()

    @property
    def pid(self) -> int:
        """The server's process id; 0 where it doesn't run."""
        try:
            return int((self.data / "postmaster.pid").read_text().splitlines()[0])
        except (OSError, ValueError, IndexError):
            return 0

    def dsn(self, database: str) -> str:
        """The DSN of a database; without a password, since the socket is for its owner alone."""
        return f"postgresql://postgres@/{database}?host={quote(str(self.socket_folder))}"

    def start(self) -> None:
        """Starts the server, made where it is missing; one that runs already is used again."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self.socket_folder.mkdir(mode=0o700, exist_ok=True)
        if os.geteuid() != 0 and self.socket_folder.stat().st_uid != os.geteuid():
            raise ServerError(f"the socket's folder {self.socket_folder} belongs to another user")
        lend(self.folder, self.socket_folder)
        if not (self.data / "PG_VERSION").exists():
            shutil.rmtree(self.data, ignore_errors=True)
            self._run("initdb", "-D", str(self.data), "-U", "postgres", "--auth=trust", *CLUSTER)
        if self._status() == 0:
            return
        settings = f"-k {self.socket_folder} -c listen_addresses= -c unix_socket_permissions=0700"
        self._run("pg_ctl", "-D", str(self.data), "-l", str(self.folder / "log"), "-w", "-o", settings, "start")

    def make_database(self, name: str, script: str) -> None:
        """A new database of that name, in the place of one that is there, with the script executed in it."""
        with psycopg.connect(self.dsn("postgres"), autocommit=True) as connection:
            connection.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)'.encode())
            connection.execute(f'CREATE DATABASE "{name}"'.encode())
        with psycopg.connect(self.dsn(name), autocommit=True) as connection:
            connection.execute(script.encode())

    def _status(self) -> int:
        command = [str(self.binaries / "pg_ctl"), "-D", str(self.data), "status"]
        return subprocess.run(command, capture_output=True, check=False, **as_roots_user(self.folder)).returncode

    def _run(self, program: str, *arguments: str) -> None:
        # to a file, not a pipe: the server inherits it and would keep a pipe open
        with tempfile.TemporaryFile("w+") as said:
            done = subprocess.run(
                [str(self.binaries / program), *arguments],
                stdin=subprocess.DEVNULL, stdout=said, stderr=said, start_new_session=True, check=False,
                **as_roots_user(self.folder),
            )  # fmt: skip
            if done.returncode:
                said.seek(0)
                last = (said.read().strip().splitlines() or [f"exit {done.returncode}"])[-1]
                raise ServerError(f"{program}: {last[:200]}")
