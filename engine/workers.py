"""Processes that transform parts beside the one that loads, since Python's own part of a transform keeps one core.

Each opens the job's DuckDB, locked like any, and answers one task at a time over a pipe. It ends at once when the
job's process does, in the middle of a task too, so that none outlives a job, however that ends. Never writes to the target, the stage or the log.
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
from dataclasses import dataclass
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from engine.duck import open_duck
from engine.functions.register import add_seconds, seconds_spent
from engine.query import Query
from engine.transform import Counts, execute, take_up_part, transform_part
from workspace.errors import JobFailedError, PackhorseError
from workspace.paths import JobPaths

_ROOT = Path(__file__).resolve().parent.parent
_WORTH_A_PROCESS = 5_000
"""Rows of a part from which, when others follow, processes pay for their start."""


@dataclass(frozen=True)
class Task:
    """What to do: an entity's query over a staged part, into a file. What an earlier run
    left there is taken up."""

    entity: str
    query: Query
    staged: Path
    out: Path


class Workers:
    """The processes of one job. A context manager; they are started by the first task."""

    def __init__(self, paths: JobPaths, processes: int) -> None:
        self._paths, self._processes = paths, processes
        self._threads: ThreadPoolExecutor | None = None
        self._idle: queue.SimpleQueue[_Worker] = queue.SimpleQueue()
        self._workers: list[_Worker] = []

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *_: object) -> None:
        if self._threads is not None:
            self._threads.shutdown(cancel_futures=True)
        for worker in self._workers:
            worker.close()

    def pay_for(self, rows: int, expected: int) -> bool:
        """True where it is worth to have processes transform a part of so many rows of an entity of so many."""
        return bool(self._workers) or (self._processes > 0 and expected > rows >= _WORTH_A_PROCESS)

    @property
    def ahead(self) -> int:
        """How many parts should be under way at once, so that no process waits."""
        return 2 * len(self._workers) + 1 if self._workers else 2

    def submit(self, task: Task) -> Future[tuple[Path, Counts]]:
        """Begins to transform a part; the file and its counts, or what `transform_part` raises."""
        if self._threads is None:
            self._start()
        assert self._threads is not None
        return self._threads.submit(self._ask, task)

    def _start(self) -> None:
        self._workers = [_Worker(self._paths) for _ in range(self._processes)]
        for worker in self._workers:
            self._idle.put(worker)
        self._threads = ThreadPoolExecutor(self._processes, "transformers")

    def _ask(self, task: Task) -> tuple[Path, Counts]:
        worker = self._idle.get()
        try:
            return worker.ask(task)
        finally:
            self._idle.put(worker)


class _Worker:
    def __init__(self, paths: JobPaths) -> None:
        self._connection, theirs = Pipe()
        lives, self._alive = os.pipe()
        with theirs:
            self._process = subprocess.Popen(
                # -P: the folder that `migrate` is called in may hold modules of our names
                [sys.executable, "-P", "-m", "engine.workers", str(theirs.fileno()), str(lives)],
                pass_fds=[theirs.fileno(), lives],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                env={**os.environ, "PYTHONPATH": str(_ROOT), "OPENBLAS_NUM_THREADS": "1", "PACKHORSE_FAULT": ""},
            )
        os.close(lives)
        self._known: str | None = None
        self._send(paths)

    def ask(self, task: Task) -> tuple[Path, Counts]:
        # a query is long, and the same for all parts of its entity
        self._send((task.entity, None if self._known == task.entity else task.query, task.staged, task.out))
        self._known = task.entity
        try:
            answer = self._connection.recv()
        except (EOFError, OSError):
            raise self._gone() from None
        if isinstance(answer, PackhorseError):
            raise answer
        counts, seconds = answer
        add_seconds(seconds)
        return task.out, counts

    def close(self) -> None:
        self._connection.close()
        self._process.wait()
        os.close(self._alive)

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
    duck = open_duck(connection.recv(), memory="160MB", threads=1)
    query: Query | None = None
    spent = seconds_spent()
    while True:
        _, new, staged, out = connection.recv()
        try:
            if new is not None:
                query = new
                for statement in new.setup:
                    execute(duck, statement)
            assert query is not None
            counts = take_up_part(duck, staged, out) or transform_part(duck, query, staged, out)
        except PackhorseError as error:
            connection.send(error)
            continue
        before, spent = spent, seconds_spent()
        connection.send((counts, {k: s - before.get(k, 0.0) for k, s in spent.items()}))


def _end_with(pipe: int) -> None:
    """Ends the process when the pipe does, which the job's process holds open while it lives. What a task still
    wrote after that would be newer than what the job, when it goes on, has staged anew."""
    os.read(pipe, 1)
    os._exit(0)


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
    from engine.workers import main as serve

    serve()
