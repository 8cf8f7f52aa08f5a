"""What a server of either kind is: a folder, a process, how it starts and ends, and the databases in it.

Never ends a process by anything but the id of one that it started.
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

import psutil

START_SECONDS = 60


class NotInstalledError(Exception):
    """A server that this machine does not have; the text says how to get it, in one line."""


class ServerError(RuntimeError):
    """A server that can't be made or started; the text has its own last words."""


@dataclass(frozen=True)
class Database:
    """A database of its own for one user of it."""

    server: Server
    name: str

    @property
    def dsn(self) -> str:
        """Logs in by TCP with a password."""
        return self.server.dsn(self.name)

    @property
    def socket_dsn(self) -> str:
        """Logs in by the socket without one."""
        return self.server.socket_dsn(self.name)

    def run(self, script: str) -> None:
        """Executes one or more statements and commits."""
        self.server.run(script, self.name)

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """The rows of one SELECT, as the driver gives them."""
        return self.server.rows(sql, self.name)


class Server:
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
                raise ServerError(f"the server did not start:\n{self.log[-2000:]}")
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
        """A name that no database of this server has yet."""
        self._databases += 1
        return f"test_{os.getpid()}_{self._databases}"

    def new_database(self) -> Database:
        """An empty database under a name of its own."""
        name = self.new_name()
        self.run(f"CREATE DATABASE {name}")
        return Database(self, name)

    def drop(self, database: Database) -> None:
        """Drops the database, whoever is connected to it."""
        self.run(f"DROP DATABASE IF EXISTS {database.name} {self._drop_option}")

    def dsn(self, database: str, user: str | None = None, password: str | None = None) -> str:
        """The URL that logs in by TCP, as the server's own user where no other is given."""
        raise NotImplementedError

    def socket_dsn(self, database: str) -> str:
        """The URL that logs in by the socket, as the superuser, without a password."""
        raise NotImplementedError

    def run(self, script: str, database: str = "") -> None:
        """Executes one or more statements as the superuser and commits; "" is the server's own database."""
        raise NotImplementedError

    def rows(self, sql: str, database: str = "") -> list[tuple[Any, ...]]:
        """The rows of one SELECT, as the driver gives them."""
        raise NotImplementedError

    _stop_signal = signal.SIGTERM
    _drop_option = ""

    def _command(self) -> list[str]:
        raise NotImplementedError

    def _as_user(self) -> dict[str, Any]:
        return {}

    def _answers(self) -> bool:
        raise NotImplementedError


def ended_well(program: str, done: subprocess.CompletedProcess[str]) -> None:
    """Nothing; ServerError with the last that a program said where it failed."""
    if done.returncode:
        raise ServerError(f"{program} failed: {(done.stdout + done.stderr)[-1000:]}")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: Sequence[Any] = probe.getsockname()
        return int(port[1])
