"""The way to a server through a host that one may log in to: the system's own ssh, forwarding a port of the loopback address.

An ssh runs as a child while something here is connected through it, is started anew where it fell, and ends with this
process however that does. No shell is involved, nothing is asked, and no argument holds a secret.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Protocol

import psutil

from workspace.errors import ConnectError, DsnError

_WAY = re.compile(
    r"(?:[A-Za-z0-9_][A-Za-z0-9_.-]*@)?([A-Za-z0-9_][A-Za-z0-9_.-]*|\[[0-9A-Fa-f:.]+\])(?::([0-9]{1,5}))?"
)
_HOST = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*|[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*")
_START_SECONDS = 30.0
_OPTIONS = (
    "ExitOnForwardFailure=yes",
    "BatchMode=yes",
    # one that hears nothing for half a minute ends, and another takes its place
    "ServerAliveInterval=10",
    "ServerAliveCountMax=3",
    "ConnectTimeout=10",
    # a connection that is shared with others would outlive this one, and not end with us
    "ControlMaster=no",
    "ControlPath=none",
    "PermitLocalCommand=no",
)


def check_way(way: str) -> str:
    """The way, if it is `host`, `user@host` or either with `:port`. DsnError where it isn't: nothing else may reach ssh."""
    found = _WAY.fullmatch(way)
    if found is None or (found[2] is not None and not 0 < int(found[2]) < 65536):
        raise DsnError(
            f"{way[:100]!r} is no host to go through", where="ssh", advice="write it as user@host or user@host:port"
        )
    return way


def host_of(way: str) -> str:
    """The host alone."""
    found = _WAY.fullmatch(way)
    return found[1].strip("[]") if found else ""


class Tunnel:
    """An ssh through `way` to a port of `host`, as that one calls it. Safe from several threads."""

    def __init__(self, way: str, host: str, port: int) -> None:
        self._way, self._goal = check_way(way), f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        if not _HOST.fullmatch(host):
            raise DsnError(f"{host[:100]!r} is no host that ssh can be told", where=f"ssh {way}")
        self._lock = threading.Lock()
        self._watch: subprocess.Popen[bytes] | None = None
        self._port = 0
        self._said: IO[bytes] | None = None
        self.users = 0

    def port(self) -> int:
        """The port of 127.0.0.1 that leads there; ssh is started where none runs. ConnectError where it can't be."""
        with self._lock:
            if not self._listens():
                self._stop()
                self._start()
            return self._port

    def said(self) -> str:
        """The last that ssh said; empty for nothing."""
        if self._said is None:
            return ""
        self._said.seek(0)
        lines = self._said.read().decode(errors="replace").splitlines()
        told = [line.strip() for line in lines if line.strip() and not line.startswith("Warning:")]
        return told[-1][:200] if told else ""

    def close(self) -> None:
        """Ends ssh. Safe to call twice."""
        with self._lock:
            self._stop()

    def _listens(self) -> bool:
        """True where our ssh itself has the port: another's would be led to whoever sits there."""
        if self._watch is None or self._watch.poll() is not None:
            return False
        try:
            found = psutil.Process(self._watch.pid).children()
            return any(
                each.status == psutil.CONN_LISTEN and each.laddr.port == self._port
                for ssh in found for each in ssh.net_connections("tcp4")
            )  # fmt: skip
        except psutil.Error:
            return False

    def _start(self) -> None:
        program = shutil.which("ssh")
        if program is None:
            raise ConnectError(
                "ssh is not installed here", where=f"ssh {self._way}", advice="apt install openssh-client"
            )
        self._port = _free_port()
        self._said = tempfile.TemporaryFile()  # noqa: SIM115 - read when somebody asks
        self._watch = subprocess.Popen(
            [sys.executable, "-I", "-S", str(Path(__file__).with_name("tunnel_watch.py")), program, *self._arguments()],
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=self._said,
            start_new_session=True,  # Ctrl-C is for the job, which still has a batch to finish
        )  # fmt: skip
        end = time.monotonic() + _START_SECONDS
        while not self._listens():
            if self._watch.poll() is not None or time.monotonic() > end:
                said = self.said()
                self._stop()
                raise ConnectError(
                    f"no way through ssh: {said or 'it said nothing'}",
                    where=f"ssh {self._way}",
                    advice=_advice(said, self._way),
                )
            time.sleep(0.02)

    def _arguments(self) -> list[str]:
        config = os.environ.get("PACKHORSE_SSH_CONFIG")
        host, port = self._way, ""
        if found := re.fullmatch(r"(.*):([0-9]+)", self._way):
            host, port = found[1], found[2]
        return [
            *(("-F", config) if config else ()), "-N", "-T", "-a", "-x",
            "-L", f"127.0.0.1:{self._port}:{self._goal}",
            *(part for option in _OPTIONS for part in ("-o", option)),
            *(("-p", port) if port else ()), "--", host.replace("[", "").replace("]", ""),
        ]  # fmt: skip

    def _stop(self) -> None:
        if self._watch is None:
            return
        assert self._watch.stdin is not None
        self._watch.stdin.close()
        try:
            self._watch.wait(5)
        except subprocess.TimeoutExpired:
            self._watch.kill()
            self._watch.wait()
        self._watch = None


_tunnels: dict[tuple[str, str, int], Tunnel] = {}
_among = threading.Lock()
os.register_at_fork(after_in_child=_tunnels.clear)


def tunnel(way: str, host: str, port: int) -> Tunnel:
    """The one tunnel of this process there."""
    with _among:
        return _tunnels.setdefault((way, host, port), Tunnel(way, host, port))


class Closes(Protocol):
    """What uses a tunnel until it is closed."""

    def close(self) -> None:
        """Ends it."""


def hold(user: Closes, way: str, host: str, port: int) -> None:
    """Keeps the tunnel until `user` is closed, or nobody has it any more; with the last of them it ends."""
    _take((way, host, port))
    let_go = weakref.finalize(user, _let_go, (way, host, port))
    close = user.close

    def closed() -> None:
        close()
        let_go()

    user.close = closed  # type: ignore[method-assign]


@contextmanager
def held(way: str, host: str, port: int) -> Iterator[None]:
    """Keeps the tunnel for the block."""
    _take((way, host, port))
    try:
        yield
    finally:
        _let_go((way, host, port))


def _take(key: tuple[str, str, int]) -> None:
    with _among:
        _tunnels.setdefault(key, Tunnel(*key)).users += 1


def _let_go(key: tuple[str, str, int]) -> None:
    with _among:
        found = _tunnels.get(key)
        if found is None:
            return
        found.users -= 1
        if found.users > 0:
            return
        del _tunnels[key]
    found.close()


def _free_port() -> int:
    with socket.socket() as asked:
        asked.bind(("127.0.0.1", 0))
        return int(asked.getsockname()[1])


def _advice(said: str, way: str) -> str:
    low = said.lower()
    if "permission denied" in low:
        return f"nothing is asked here: give ssh a key without a passphrase, or in an agent; try: ssh -o BatchMode=yes {way}"
    if "host key" in low:
        return "log in by ssh once yourself, and accept the host's key"
    if "resolve" in low or "refused" in low or "timed out" in low or "unreachable" in low:
        return "check the host and the port of ssh"
    return "try the same with ssh itself; PACKHORSE_SSH_CONFIG names another configuration than ~/.ssh/config"
