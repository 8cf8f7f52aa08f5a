"""Runs a command and measures it from outside: wall, CPU and peak memory of the process and all its descendants.

Nothing is asked of the command, so the same holds for each. Memory is looked at ten times a second: a peak
shorter than that can be missed.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

_BETWEEN = 0.1  # seconds
_LAST = 4000  # bytes of what a command said


@dataclass(frozen=True)
class Measured:
    """What a command took. `peak_bytes` counts a page that processes share once (where the kernel says so).

    `said` is the end of what it wrote to stdout and stderr; `out_of_time` that it was killed for that.
    """

    seconds: float
    cpu_seconds: float
    peak_bytes: int
    code: int
    said: str
    out_of_time: bool = False


def measure(command: Sequence[str], folder: Path, environment: Mapping[str, str], limit: float) -> Measured:
    """Runs a command in a folder to its end, or kills it after `limit` seconds. OSError where it can't be started."""
    # where a shell keeps Python from writing bytecode, each start would compile all anew, and that be measured
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    with tempfile.TemporaryFile() as said:
        started = time.monotonic()
        process = subprocess.Popen(
            command, cwd=folder, env={**inherited, **environment},
            stdin=subprocess.DEVNULL, stdout=said, stderr=said, start_new_session=True,
        )  # fmt: skip
        watch = _Watch(process.pid, started + limit)
        watch.start()
        try:
            # the kernel adds up what descendants took, those that were waited for
            _, status, usage = os.wait4(process.pid, 0)
        except BaseException:
            watch.kill()
            process.wait()
            raise
        finally:
            watch.end()
        seconds = time.monotonic() - started
        process.returncode = os.waitstatus_to_exitcode(status)
        said.seek(max(0, said.seek(0, os.SEEK_END) - _LAST))
        text = said.read().decode("utf-8", "replace").strip()
    cpu = max(usage.ru_utime + usage.ru_stime, watch.cpu_seconds)
    return Measured(seconds, cpu, watch.peak_bytes, process.returncode, text, watch.out_of_time)


class _Watch(threading.Thread):
    """Looks at a process and its descendants until it is ended; kills them when it's late."""

    def __init__(self, pid: int, until: float) -> None:
        super().__init__(name="watch", daemon=True)
        self._root = psutil.Process(pid)
        self._until = until
        self._ended = threading.Event()
        self._cpu: dict[tuple[int, float], float] = {}
        self.peak_bytes = 0
        self.out_of_time = False

    @property
    def cpu_seconds(self) -> float:
        """What each process had used when it was last seen, together."""
        return sum(self._cpu.values())

    def run(self) -> None:
        while not self._ended.is_set():
            self.peak_bytes = max(self.peak_bytes, sum(self._look(p) for p in self._tree()))
            if time.monotonic() > self._until:
                self.out_of_time = True
                self.kill()
            self._ended.wait(_BETWEEN)

    def end(self) -> None:
        """Looks no more."""
        self._ended.set()
        self.join()

    def kill(self) -> None:
        """Kills the process, its descendants and its session; the descendants are gone afterwards."""
        tree = self._tree()
        for process in tree:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._root.pid, signal.SIGKILL)
        psutil.wait_procs(tree[1:], timeout=10)

    def _tree(self) -> list[psutil.Process]:
        with contextlib.suppress(psutil.NoSuchProcess):
            return [self._root, *self._root.children(recursive=True)]
        return []

    def _look(self, process: psutil.Process) -> int:
        try:
            times = process.cpu_times()
            self._cpu[process.pid, process.create_time()] = times.user + times.system
            return _memory(process)
        except (psutil.NoSuchProcess, psutil.AccessDenied, ProcessLookupError):
            return 0


def _memory(process: psutil.Process) -> int:
    """Bytes in memory: a shared page by its share, where Linux says; else the whole resident set."""
    try:
        with open(f"/proc/{process.pid}/smaps_rollup", "rb") as lines:
            for line in lines:
                if line.startswith(b"Pss:"):
                    return int(line.split()[1]) * 1024
    except (FileNotFoundError, PermissionError):
        pass
    return int(process.memory_info().rss)
