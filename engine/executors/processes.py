"""`local:N`: worker processes on this machine, each with its own connection to the target.

A process that ends early is replaced, and its task given to another: what it had committed the ledger has. Each ends
at once when the job's process does, so that none outlives a job, however that ends.
"""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import sys
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from engine.executors.session import do
from engine.executors.task import Answer, Task
from workspace.errors import JobFailedError

_ROOT = Path(__file__).resolve().parent.parent.parent
_LOST = 3
"""How many workers a task may lose before it's taken for the cause."""


class Processes:
    """An executor of so many processes."""

    def __init__(self, processes: int) -> None:
        self._idle: queue.SimpleQueue[_Process] = queue.SimpleQueue()
        self._processes = {_Process() for _ in range(processes)}
        for process in self._processes:
            self._idle.put(process)
        self._threads = ThreadPoolExecutor(processes, "workers")
        self._lock = threading.Lock()
        self._closing = False

    @property
    def width(self) -> int:
        """The number of processes."""
        return len(self._processes)

    def submit(self, task: Task) -> Future[Answer]:
        """Has the next idle process do the task."""
        return self._threads.submit(self._ask, task)

    def look(self) -> None:
        """Nothing to see: a process that ends shows in its task."""

    def close(self) -> None:
        """Ends the processes; a task under way is broken off, as by a kill."""
        with self._lock:
            self._closing = True
            self._threads.shutdown(wait=False, cancel_futures=True)
            for process in self._processes:
                process.close()
        self._threads.shutdown()

    def _ask(self, task: Task) -> Answer:
        process = self._idle.get()
        try:
            for _ in range(_LOST):
                try:
                    return process.ask(task)
                except (EOFError, OSError):
                    with self._lock:
                        if self._closing:
                            break
                        process.close()
                        self._processes.remove(process)
                        process = _Process()
                        self._processes.add(process)
            raise JobFailedError(
                f"{_LOST} worker processes ended early, one after the other", where=repr(task),
                advice="if memory is short, close what takes it, or give --executor local:N a lower N; then `migrate resume`",
            )  # fmt: skip
        finally:
            self._idle.put(process)


class _Process:
    def __init__(self) -> None:
        self._connection, theirs = Pipe()
        lives, self._alive = os.pipe()
        with theirs:
            self._process = subprocess.Popen(
                # -P: the folder that `migrate` is called in may hold modules of our names
                [sys.executable, "-P", "-m", "engine.executors.processes", str(theirs.fileno()), str(lives)],
                pass_fds=[theirs.fileno(), lives],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                env={**os.environ, "PYTHONPATH": str(_ROOT), "OPENBLAS_NUM_THREADS": "1", "PACKHORSE_FAULT": ""},
            )
        os.close(lives)

    def ask(self, task: Task) -> Answer:
        """EOFError or OSError where the process has ended."""
        self._connection.send(task)
        answer = self._connection.recv()
        assert isinstance(answer, Answer)
        return answer

    def close(self) -> None:
        """Ends the process, in the middle of a task too."""
        with suppress(OSError):
            os.close(self._alive)
        self._process.wait()
        self._connection.close()


def _end_with(pipe: int) -> None:
    """Ends the process when the pipe does, which the job's process holds open while it lives."""
    os.read(pipe, 1)
    os._exit(0)


def _serve(connection: Connection[Any, Any]) -> None:
    while True:
        connection.send(do(connection.recv()))


def main() -> None:
    """What a worker process does, over the pipes whose numbers it is called with, until they end."""
    # Ctrl-C and a service's stop reach the whole group; it's the parent who knows when to end.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    threading.Thread(target=_end_with, args=(int(sys.argv[2]),), daemon=True).start()
    with suppress(EOFError, OSError):
        _serve(Connection(int(sys.argv[1])))


if __name__ == "__main__":
    # Under its own name, so that what is sent is what is expected.
    from engine.executors.processes import main as serve

    serve()
