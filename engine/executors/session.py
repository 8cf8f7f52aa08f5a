"""What a worker does: an entity's tasks, with a DuckDB locked to the job's folder and a connection to the target.

One session a thread, kept from task to task of the same run; it ends when another run's task comes, or when none
came for a while, so that a worker whose job was killed keeps no connection and no record. Writes nothing but
transformed parts and, under the lease of the process that has the job, batches.
"""

from __future__ import annotations

import atexit
import secrets
import shutil
import tempfile
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from connectors.dsn import open_target
from connectors.protocols import RowsRefusedError, TargetLostError
from connectors.target import Target
from engine.batch import batch_rows, commit_batch
from engine.check import CheckedEntity
from engine.collisions import Losers, compared_columns
from engine.duck import open_duck
from engine.executors.place import Place
from engine.executors.task import Answer, Commit, Landed, Task, Transform, Transformed, Work
from engine.faults import fault_point
from engine.prepare import Preparer, Settled
from engine.query import identifier, literal
from engine.transform import Counts, execute
from workspace.errors import ConnectError, JobFailedError, PackhorseError
from workspace.paths import JobPaths

IDLE_SECONDS = 60.0
"""After so long without a task a session ends."""
_MEMORY = "160MB"


class Session:
    """A thread's part in one run of a job."""

    def __init__(self, work: Work) -> None:
        self._work = work
        self._scratch = None if not work.place else Path(tempfile.mkdtemp(prefix="packhorse-"))
        self._paths = JobPaths(self._scratch or Path(work.base), work.job)
        if self._scratch:
            atexit.register(shutil.rmtree, self._scratch, ignore_errors=True)
            self._paths.create()
        self._place = Place(self._paths.folder, work.place, work.run)
        self._target: Target | None = None
        self._preparer: Preparer | None = None
        self._existing: Path | None = None
        self._seconds: dict[str, float] = defaultdict(float)

    def close(self) -> None:
        """Ends the connection and takes away what this session alone had."""
        self._end_entity()
        self._leave_target()
        if self._scratch:
            shutil.rmtree(self._scratch, ignore_errors=True)

    def do(self, task: Task) -> Answer:
        """Does a task of the session's run. What went wrong is in the answer."""
        self._seconds.clear()
        try:
            self._begin_entity(task.work)
            result = self._transform(task) if isinstance(task, Transform) else self._commit(task)
        except PackhorseError as error:
            if isinstance(error, TargetLostError):
                self._leave_target()
            return Answer(error, dict(self._seconds))
        except RowsRefusedError as error:
            return Answer(JobFailedError(f"the target refused our own records: {error.message}", where=repr(task)))
        except Exception as error:  # a bug: one line, as everywhere
            what = f"a worker failed: {type(error).__name__}: {' '.join(str(error).split())[:200]}"
            return Answer(JobFailedError(what, where=repr(task), advice="report this; the job can be resumed"))
        return Answer(result, dict(self._seconds))

    # -- tasks ------------------------------------------------------------------------------------

    def _transform(self, task: Transform) -> Transformed:
        preparer, entity = self._at_hand(), self._entity()
        staged, out = preparer.files(entity, task.part)
        with self._timed("files"):
            self._place.get(self._place.name(staged))
        with self._timed("transform"):
            counts: Counts = preparer.transform(entity, task.part)[1]
            fault_point("after transform")
            keys = out
            if not self._place.shared:
                keys = out.with_name(f"keys-{task.part.part:05d}.parquet")
                listed = ", ".join(identifier(c) for c in compared_columns(entity))
                execute(
                    preparer.duck,
                    f"COPY (SELECT {listed} FROM read_parquet({literal(str(out))})) TO {literal(str(keys))} "
                    f"(FORMAT parquet, COMPRESSION lz4)",
                )
        if self._place.shared:
            return Transformed(self._place.name(out), self._place.name(keys), counts)
        with self._timed("files"):
            # names that no other worker gives, should it be at the same part
            mark = f"-{secrets.token_hex(6)}.parquet"
            told = [self._place.put(f, self._place.name(f.with_suffix("")) + mark) for f in (out, keys)]
            self._drop(staged, out, keys)
        return Transformed(told[0], told[1], counts)

    def _commit(self, task: Commit) -> Landed:
        preparer, entity, part = self._at_hand(), self._entity(), task.part
        staged = preparer.files(entity, part)[0]
        with self._timed("files"):
            out = self._place.get(task.transformed.out)
            self._place.get(self._place.name(staged))
            losers = Losers(self._place.get(task.losers[0]), task.losers[1]) if task.losers else None
        with self._timed("sort"):
            settled = Settled(part, out, task.transformed.counts, losers)
            rows = batch_rows(preparer.duck, self._paths, entity, settled, self._existing)
        with self._timed("target"):
            target = self._joined(task.token)
            version = preparer.checked.plan.version
            did = commit_batch(target, preparer.duck, self._paths, entity, part, rows, version)
        if not self._place.shared:
            self._drop(staged, out, *([losers.path] if losers else []))
        if did is None:
            return Landed(None)
        seen = Counter(zip(*(did.quarantined[c].to_pylist() for c in ("signature", "code", "field")), strict=True))
        return Landed(did.row, tuple((*names, count) for names, count in sorted(seen.items())))

    # -- what they work with ----------------------------------------------------------------------

    def _begin_entity(self, work: Work) -> None:
        if self._preparer is not None and work.entity == self._work.entity:
            return
        self._end_entity()
        with self._timed("files"):
            crosswalks = {entity: self._place.get(name) for entity, name in work.crosswalks}
            self._existing = self._place.get(work.existing) if work.existing else None
        duck = open_duck(self._paths, memory=_MEMORY, threads=1)
        self._preparer = Preparer(self._paths, work.checked, duck=duck)
        self._preparer.crosswalks.update(crosswalks)
        self._work = work

    def _end_entity(self) -> None:
        if self._preparer is not None:
            self._preparer.close()
            self._preparer = None

    def _at_hand(self) -> Preparer:
        assert self._preparer is not None
        return self._preparer

    def _entity(self) -> CheckedEntity:
        return self._work.checked.entity(self._work.entity)

    def _joined(self, token: str) -> Target:
        """The target, under the lease of that token."""
        if self._target is None:
            try:
                self._target = open_target(self._work.target, self._work.schema)
            except ConnectError as error:  # it answered when the job began: it may again
                raise TargetLostError(error.what) from None
        self._target.join(self._work.job, token)
        entity = self._entity()
        self._target.know_entity(self._work.source, entity.name, entity.plan.to)
        return self._target

    def _leave_target(self) -> None:
        if self._target is not None:
            self._target.close()
            self._target = None

    def _drop(self, *files: Path) -> None:
        for file in files:
            file.unlink(missing_ok=True)

    @contextmanager
    def _timed(self, what: str) -> Iterator[None]:
        started = time.monotonic()
        try:
            yield
        finally:
            self._seconds[what] += time.monotonic() - started


class _Kept:
    """A thread's session, and what ends it when it has been of no use for a while."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.session: Session | None = None
        self.run = ""
        self.end: threading.Timer | None = None

    def do(self, task: Task) -> Answer:
        """The task, with a session of its run."""
        with self.lock:
            if self.end is not None:
                self.end.cancel()
            try:
                if self.session is None or self.run != task.work.run:
                    self.drop()
                    self.session, self.run = Session(task.work), task.work.run
                return self.session.do(task)
            except PackhorseError as error:
                return Answer(error)
            finally:
                self.end = threading.Timer(IDLE_SECONDS, self._end)
                self.end.daemon = True
                self.end.start()

    def drop(self) -> None:
        """Ends the session, where there is one. The caller has the lock."""
        if self.session is not None:
            self.session.close()
            self.session = None

    def _end(self) -> None:
        with self.lock:
            if self.end is threading.current_thread():  # else another task has come since
                self.drop()


_local = threading.local()


def do(task: Task) -> Answer:
    """Does a task in this thread, with the session that the thread has for its run. Never raises: what went wrong is
    in the answer."""
    kept: _Kept | None = getattr(_local, "kept", None)
    if kept is None:
        kept = _local.kept = _Kept()
    return kept.do(task)
