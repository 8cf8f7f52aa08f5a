"""Takes our records of a job out of the target once it is signed off: exported first, then removed in one transaction.

Nothing is removed before the export is durable and counted against the target. Decides nothing else, and touches no
row of the customer's.
"""

from __future__ import annotations

import csv
import io
import json
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import pyarrow as pa
import pyarrow.parquet as pq

from connectors.records import EXPORTED_COLUMNS
from connectors.target import Target
from engine.faults import fault_point
from engine.quarantine import quarantined_rows
from engine.quarantine_cells import cell_of, value_of
from engine.stage import sync_folder
from engine.transaction import batch_transaction
from workspace.disk import disk_errors
from workspace.errors import InterruptedJobError, JobFailedError, UsageError
from workspace.events import CrosswalkExported, JobCleanedUp, JobFinished
from workspace.log import Workspace
from workspace.paths import JobPaths
from workspace.progress import Progress
from workspace.state import state_at

_SCHEMA = pa.schema([(name, pa.string()) for name in EXPORTED_COLUMNS])
_SUFFIXES = (".parquet", ".csv")


@dataclass(frozen=True)
class Records:
    """What the target has of a job: crosswalk rows that it owns, by entity, rows in quarantine, and the other jobs in
    our schema. `gone` where an earlier command took them out and was killed before it could say so: then the counts
    are those of its export."""

    rows: Mapping[str, int]
    quarantined: int
    other_jobs: tuple[str, ...]
    gone: bool = False


@dataclass(frozen=True)
class Cleaned:
    """What was done: where the crosswalk and the quarantine (None: nothing was in it) were exported to, how many rows,
    by entity, and whether our schema went too."""

    crosswalk: str
    rows: Mapping[str, int]
    quarantine: str | None
    schema_gone: bool


class Cleanup:
    """One command's part of taking a job's records out. The job is leased while the connection lives."""

    def __init__(
        self, paths: JobPaths, workspace: Workspace, target: Target, *, unverified: bool = False,
        stop: Callable[[], bool] = lambda: False,
    ) -> None:  # fmt: skip
        """UsageError where the job isn't done and verified (or taken back), unless `unverified`; or where nothing of it
        was loaded. JobLockedError, CatalogueError."""
        self._paths, self._workspace, self._target, self._stop = paths, workspace, target, stop
        events = [e.event for e in workspace.events(types=[CrosswalkExported])]
        self._exported = next((e for e in reversed(events) if isinstance(e, CrosswalkExported)), None)
        known = target.know(paths.job)
        self._gone = self._exported is not None and (not known or target.cleaned_up())
        if self._gone:
            return
        if not known or target.cleaned_up():
            raise UsageError(f"the target holds no records of the job {paths.job}", where=target.dsn)
        progress = state_at(workspace).progress
        self._purged = progress.purged_at is not None
        if not unverified:
            _refuse_open(progress, paths.job)
        target.prepare()
        target.lease(paths.job, target.source_of_job())

    def foresee(self) -> Records:
        """What `run` would take out; writes nothing."""
        if self._gone:
            assert self._exported is not None
            return Records(self._exported.rows, 0, (), gone=True)
        quarantined = sum(1 for _ in quarantined_rows(self._target, self._paths.job))
        return Records(self._target.owned_rows(), quarantined, tuple(self._target.other_jobs()))

    def run(self, export: Path | None = None) -> Cleaned:
        """Exports the crosswalk to `export` (the job's folder without one), then takes the records out.

        The invariant: the records are in the target, or the export is whole and durable and the log says where.
        Killed at any instant, the same command goes on; once they are out, it says so and removes nothing again."""
        if self._gone:
            return self._ended(schema_gone=not self._target.has_schema(), recovered=True)
        place = self._place(export)
        rows, quarantine = self._export(place)
        self._exported = CrosswalkExported(str(place), rows, str(quarantine or ""))
        self._workspace.record(self._exported)
        fault_point("cleanup exported")
        self._stop_if_asked()
        with batch_transaction(self._target, lambda: self._still(rows), "cleanup ") as same:
            schema_gone = same and self._target.remove_records()
        if not same:
            raise JobFailedError(
                "another job changed the crosswalk while it was exported; nothing was removed",
                where=self._target.dsn, advice=f"migrate cleanup {self._paths.job}",
            )  # fmt: skip
        return self._ended(schema_gone=schema_gone, recovered=False)

    def _still(self, rows: Mapping[str, int]) -> bool:
        """True where the target has the rows that were exported; nobody changes them until the transaction ends."""
        self._target.hold_records()
        return self._target.owned_rows() == rows

    def _ended(self, *, schema_gone: bool, recovered: bool) -> Cleaned:
        done = self._exported
        assert done is not None
        self._workspace.record(JobCleanedUp(done.file, schema_gone, recovered), JobFinished("cleaned up", 0))
        return Cleaned(done.file, done.rows, done.quarantine or None, schema_gone)

    def _place(self, export: Path | None) -> Path:
        """Where the export goes. UsageError for a file that is there and isn't an earlier try's."""
        place = (export or self._paths.folder / "crosswalk.parquet").absolute()
        if place.suffix.lower() not in _SUFFIXES:
            raise UsageError("the crosswalk is exported to a .parquet or .csv file", where=str(export))
        ours = export is None or (self._exported is not None and self._exported.file == str(place))
        if place.exists() and not ours:
            raise UsageError("there is a file of that name", where=str(place), advice="choose another --export PATH")
        if not place.parent.is_dir():
            raise UsageError("there is no such folder", where=str(place.parent), advice="make it first")
        return place

    def _export(self, place: Path) -> tuple[dict[str, int], Path | None]:
        """Writes both files, durably, counts what the crosswalk's holds and compares it with the target."""
        try:
            with _whole(place) as out:
                if place.suffix.lower() == ".csv":
                    self._write_csv(out)
                else:
                    with pq.ParquetWriter(out, _SCHEMA, compression="zstd") as writer:
                        for batch in self._target.owned_crosswalk():
                            self._stop_if_asked()
                            writer.write_batch(batch)
            held = place.with_name(f"{place.stem}-quarantine.jsonl")
            count = 0
            if not self._purged:  # its raw rows were to go
                with _whole(held) as out:
                    for row in quarantined_rows(self._target, self._paths.job):
                        out.write(json.dumps(row.to_dict()).encode() + b"\n")
                        count += 1
        except PermissionError as error:
            raise UsageError(f"cannot be written: {error.strerror}", where=str(place)) from None
        if not count:
            held.unlink(missing_ok=True)
        rows = counted(place)
        if rows != self._target.owned_rows():
            raise JobFailedError(
                f"the target has {sum(self._target.owned_rows().values()):,} crosswalk rows of the job, and the export "
                f"{sum(rows.values()):,}; nothing was removed", where=str(place), advice=f"migrate cleanup {self._paths.job}",
            )  # fmt: skip
        return rows, held if count else None

    def _write_csv(self, out: IO[bytes]) -> None:
        # a sheet program takes a file without the mark for one in an old code page
        text = io.TextIOWrapper(out, "utf-8-sig", newline="", write_through=True)
        writer = csv.writer(text)
        writer.writerow(EXPORTED_COLUMNS)
        for batch in self._target.owned_crosswalk():
            self._stop_if_asked()
            for row in batch.to_pylist():
                writer.writerow([cell_of(row[name]) for name in EXPORTED_COLUMNS])
        text.detach()

    def _stop_if_asked(self) -> None:
        if self._stop():
            raise InterruptedJobError(
                "interrupted; nothing was removed from the target", where=f"job {self._paths.job}",
                advice=f"migrate cleanup {self._paths.job}",
            )  # fmt: skip


def counted(place: Path) -> dict[str, int]:
    """How many rows of each entity an exported crosswalk holds, read back from the file."""
    found: Counter[str] = Counter()
    with disk_errors():
        if place.suffix.lower() == ".csv":
            with place.open(encoding="utf-8-sig", newline="") as file:
                found.update(value_of(row["entity"]) or "" for row in csv.DictReader(file))
        else:
            with pq.ParquetFile(place) as file:
                for batch in file.iter_batches(columns=["entity"]):
                    found.update(batch["entity"].to_pylist())
    return dict(found)


@contextmanager
def _whole(place: Path) -> Iterator[IO[bytes]]:
    """A file for its owner alone, which is there whole and durable when the block ends, or not at all."""
    temporary = place.with_name(f".{place.name}.writing")
    with disk_errors():
        temporary.unlink(missing_ok=True)
        with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as out:
            try:
                yield out
                out.flush()
                os.fsync(out.fileno())
            except BaseException:
                temporary.unlink(missing_ok=True)
                raise
        temporary.rename(place)
        sync_folder(place.parent)


def _refuse_open(progress: Progress, job: str) -> None:
    """UsageError unless the job ended, and what it did was verified or taken back."""
    if progress.outcome == "undone" or (progress.outcome == "done" and progress.verified):
        return
    why = "is not done" if progress.outcome != "done" else "is not verified"
    raise UsageError(
        f"the job {job} {why}", where=f"job {job}",
        advice=f"migrate {'resume' if progress.outcome != 'done' else 'verify'} {job}; or say --unverified: it can't go on then",
    )  # fmt: skip
