"""`dask://HOST:PORT`: the workers of a Dask cluster, whoever runs it.

Dask gives the task of a worker that is lost to another; what the lost one had committed the ledger has. Tasks carry
no secret (see task.py), answers are values and never exceptions, so that Dask logs nothing of them.
"""

from __future__ import annotations

import importlib.metadata
import time
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from engine.executors.session import do
from engine.executors.task import Answer, Task
from engine.executors.welcome import Asked, Welcome, welcome
from workspace.errors import ConnectError, JobFailedError, UsageError

if TYPE_CHECKING:
    import distributed

TIMEOUT = 10
"""Seconds in which a scheduler has to answer."""
NO_WORKER_SECONDS = 60.0
"""How long a cluster may be without any worker before the job stops, resumable."""
WIDTH_SECONDS = 5.0
"""How often it is seen who is there."""


class DaskCluster:
    """An executor on a cluster. ConnectError where no scheduler answers."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._client = _connected(address)
        self._held: set[distributed.Future] = set()
        self._width, self._asked, self._some = 0, 0.0, time.monotonic()
        self._count = 0

    @property
    def width(self) -> int:
        """The threads of all workers there are."""
        if time.monotonic() - self._asked > WIDTH_SECONDS:
            self.look()
        return self._width

    def look(self) -> None:
        """Sees who is there. JobFailedError where there has been no worker for long, or the scheduler is gone."""
        now = time.monotonic()
        if now - self._asked <= WIDTH_SECONDS:
            return
        try:
            self._width = sum(self._client.nthreads().values())
        except (OSError, TimeoutError, RuntimeError):
            raise self._gone() from None
        self._asked = time.monotonic()
        if self._width:
            self._some = now
        elif now - self._some > NO_WORKER_SECONDS:
            raise JobFailedError(
                "the Dask cluster has no worker left", where=self._address,
                advice="start some, then `migrate resume`",
            )  # fmt: skip

    def greet(self, asked: Asked) -> dict[str, Welcome]:
        """What each worker has to say before a job begins, by its address."""
        said: dict[str, Any] = self._client.run(welcome, asked, on_error="return")
        wrong = f"the worker runs other code than this one, packhorse {importlib.metadata.version('packhorse')}"
        return {who: what if isinstance(what, Welcome) else Welcome(wrong) for who, what in said.items()}

    def submit(self, task: Task) -> Future[Answer]:
        """Has a worker do the task."""
        self._count += 1
        name = f"packhorse-{type(task).__name__.lower()}-{task.work.run}-{task.part.part}-{self._count}"
        try:
            asked = self._client.submit(do, task, key=name, pure=False)
        except RuntimeError:  # the client has given up on its scheduler
            raise self._gone() from None
        self._held.add(asked)
        answer: Future[Answer] = Future()
        asked.add_done_callback(lambda done: self._answer(done, answer, repr(task)))
        return answer

    def close(self) -> None:
        """Drops what isn't begun, and leaves the cluster to itself."""
        for asked in list(self._held):
            asked.release()
        self._client.close(timeout=TIMEOUT)

    def _answer(self, done: distributed.Future, answer: Future[Answer], what: str) -> None:
        """Hands on what became of a task, in a thread of Dask's."""
        self._held.discard(done)
        if not answer.set_running_or_notify_cancel():
            return
        try:
            if done.status == "finished":
                answer.set_result(done.result())
            elif done.status == "error":
                answer.set_exception(
                    JobFailedError(
                        f"the Dask cluster gave up on a task: {type(done.exception()).__name__}", where=what,
                        advice="see the workers' logs (memory, versions), then `migrate resume`",
                    )
                )  # fmt: skip
            else:
                answer.set_exception(self._gone())
        except Exception:
            answer.set_exception(self._gone())
        finally:
            done.release()

    def _gone(self) -> JobFailedError:
        return JobFailedError(
            "the Dask scheduler is gone", where=self._address,
            advice="what was committed stays; when it is back: `migrate resume`, or with --executor inline",
        )  # fmt: skip


def _connected(address: str) -> distributed.Client:
    try:
        import distributed
    except ImportError:
        raise UsageError(
            "a Dask cluster needs dask.distributed", where=address, advice="pip install 'packhorse[dask]'"
        ) from None
    parts = urlsplit(address)
    way = "tls" if parts.scheme == "dask+tls" else "tcp"
    try:
        return distributed.Client(f"{way}://{parts.netloc}", timeout=TIMEOUT, set_as_default=False, name="packhorse")
    except (OSError, TimeoutError, ValueError, TypeError) as error:
        raise ConnectError(
            f"no Dask scheduler answers: {' '.join(str(error).split())[:150]}", where=address,
            advice="check host and port, and that `dask scheduler` runs there",
        ) from None  # fmt: skip
