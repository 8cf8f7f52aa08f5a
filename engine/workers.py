"""Processes that transform parts beside the one that loads, since Python's own part of a transform keeps one core.

Each opens the job's DuckDB, locked like any, and answers one task at a time over a pipe. It ends when the pipe
does, so that none outlives a job, however that ends. Never writes to the target, the stage or the log.
"""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import sys
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from engine.check import CheckedEntity
from engine.functions.register import add_seconds, seconds_spent
from engine.prepare import Preparer
from engine.transform import Counts
from workspace.errors import JobFailedError, PackhorseError
from workspace.events import PartStaged

_ROOT = Path(__file__).resolve().parent.parent
_WORTH_A_PROCESS = 5_000
"""Rows of a part from which, when there is a second part, processes pay for their start."""


@dataclass(frozen=True)
class _Task:
    entity: str
    part: PartStaged
    crosswalks: Mapping[str, Path]


class Transformers:
    """Transforms parts of a job, in processes of their own once there is enough to do. A context manager.

    Without processes the work is done by `executor`, whose one thread has the preparer's DuckDB to itself.
    """

    def __init__(self, preparer: Preparer, executor: ThreadPoolExecutor, processes: int) -> None:
        self._preparer, self._executor, self._processes = preparer, executor, processes
        self._threads: ThreadPoolExecutor | None = None
        self._idle: queue.SimpleQueue[_Worker] = queue.SimpleQueue()
        self._workers: list[_Worker] = []

    def __enter__(self) -> Transformers:
        return self

    def __exit__(self, *_: object) -> None:
        if self._threads is not None:
            self._threads.shutdown(cancel_futures=True)
        for worker in self._workers:
            worker.close()

    @property
    def ahead(self) -> int:
        """How many parts should be under way at once, so that no process waits."""
        return 2 * len(self._workers) + 1 if self._workers else 2

    def submit(self, entity: CheckedEntity, part: PartStaged) -> Future[tuple[Path, Counts]]:
        """Begins to transform a part; the file and its counts, or what `Preparer.transform` raises."""
        if self._threads is None and self._processes and part.part >= 1 and part.rows >= _WORTH_A_PROCESS:
            self._start()
        if self._threads is None:
            return self._executor.submit(self._preparer.transform, entity, part)
        task = _Task(entity.name, part, dict(self._preparer.crosswalks))
        return self._threads.submit(self._ask, task)

    def _start(self) -> None:
        self._workers = [_Worker(self._preparer) for _ in range(self._processes)]
        for worker in self._workers:
            self._idle.put(worker)
        self._threads = ThreadPoolExecutor(self._processes, "transformers")

    def _ask(self, task: _Task) -> tuple[Path, Counts]:
        worker = self._idle.get()
        try:
            return worker.ask(task)
        finally:
            self._idle.put(worker)


class _Worker:
    def __init__(self, preparer: Preparer) -> None:
        self._connection, theirs = Pipe()
        with theirs:
            self._process = subprocess.Popen(
                # -P: the folder that `migrate` is called in may hold modules of our names
                [sys.executable, "-P", "-m", "engine.workers", str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                env={**os.environ, "PYTHONPATH": str(_ROOT), "OPENBLAS_NUM_THREADS": "1", "PACKHORSE_FAULT": ""},
            )
        self._send((preparer.paths, preparer.checked, preparer.name))

    def ask(self, task: _Task) -> tuple[Path, Counts]:
        self._send(task)
        try:
            answer = self._connection.recv()
        except (EOFError, OSError):
            raise self._gone() from None
        if isinstance(answer, PackhorseError):
            raise answer
        out, counts, seconds = answer
        add_seconds(seconds)
        return out, counts

    def close(self) -> None:
        self._connection.close()
        self._process.wait()

    def _send(self, what: object) -> None:
        try:
            self._connection.send(what)
        except OSError:
            raise self._gone() from None

    def _gone(self) -> JobFailedError:
        return JobFailedError(
            "a process that transforms parts has ended early",
            where=f"process {self._process.pid}",
            advice="if memory is short, close what takes it; then `migrate resume`",
        )


def _serve(connection: Connection[Any, Any]) -> None:
    paths, checked, name = connection.recv()
    preparer = Preparer(paths, checked, name, threads=1)
    spent = seconds_spent()
    while True:
        task = connection.recv()
        preparer.crosswalks = dict(task.crosswalks)
        try:
            out, counts = preparer.transform(checked.entity(task.entity), task.part)
        except PackhorseError as error:
            connection.send(error)
            continue
        before, spent = spent, seconds_spent()
        connection.send((out, counts, {k: s - before.get(k, 0.0) for k, s in spent.items()}))


def main() -> None:
    """What a worker process does, over the pipe whose number it is called with, until that ends."""
    # Ctrl-C and a service's stop reach the whole group; it's the parent who knows when to end.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    with suppress(EOFError, OSError):
        _serve(Connection(int(sys.argv[1])))


if __name__ == "__main__":
    # Under its own name, so that what is sent is what is expected.
    from engine.workers import main as serve

    serve()
