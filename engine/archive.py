"""Rows that a plan leaves out on purpose, kept whole where it names an archive: Parquet, one file a batch, each row as
it was read, with its source key and the condition that held it back.

What is written follows from the stage and the plan alone, so doing it again gives the same file. It is people's
records: for their owner alone. Never deletes a file that isn't a batch's own.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Iterable
from pathlib import Path

import duckdb
import pyarrow.parquet as pq

from engine.check import CheckedEntity
from engine.compile import key_sql, left_out_sql, stage_columns
from engine.expressions import Compiler
from engine.plan import Plan
from engine.query import EXCLUDED, literal
from engine.stage import sync_folder
from engine.transform import fetch
from workspace.disk import disk_errors
from workspace.errors import DiskFullError, UsageError

KEY, REASON = "_ph_key", "_ph_reason"
"""What an archive has besides the source's columns, which none of these may be called, and `_ph_n`, the row's number in
the stage."""


def reasons_in(out: Path) -> dict[str, int]:
    """How many rows a transformed file left out, by reason; empty where it isn't there any more."""
    if not out.is_file():
        return {}
    found = pq.read_table(out, columns=["_ph_outcome", REASON], filters=[("_ph_outcome", "=", EXCLUDED)])
    return dict(Counter(found[REASON].to_pylist()))


class Archive:
    """The archive of one job: `archive:` of its plan, the job's name, the entity's name."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @staticmethod
    def of(plan: Plan, job: str) -> Archive | None:
        """The archive that the plan names; None where it names none."""
        return Archive(Path(plan.archive) / job) if plan.archive else None

    def make(self) -> None:
        """Makes the folder, so that a job finds out before a row moves. UsageError where it can't be."""
        self._make(self._folder)

    def file(self, entity: str, batch: int, step: int = 1) -> Path:
        """Where rows of a batch lie; those that a retry left out, by the step of its ledger."""
        return (
            self._folder / entity / (f"part-{batch:05d}.parquet" if step == 1 else f"part-{batch:05d}-{step}.parquet")
        )

    def keep(
        self, duck: duckdb.DuckDBPyConnection, entity: CheckedEntity, staged: Path, batch: int, step: int = 1
    ) -> None:
        """Writes the rows of a staged file that the plan leaves out, whole and durable, in the place of what an earlier
        try wrote; no file where there are none."""
        if not entity.plan.conditions:
            return
        file = self.file(entity.name, batch, step)
        compiler = Compiler(stage_columns(entity))
        why = left_out_sql(entity.plan.conditions, compiler, entity.name)
        source = f"read_parquet({literal(str(staged))})"
        hoisted = [name for level in compiler.hoists.levels for name in level.values()]
        left = f" EXCLUDE ({', '.join(hoisted)})" if hoisted else ""
        for level in compiler.hoists.levels:
            calls = ", ".join(f"{call} AS {name}" for call, name in level.items())
            source = f"(SELECT *, {calls} FROM {source})"
        rows = fetch(
            duck,
            f"SELECT *{left} FROM (SELECT *, {key_sql(entity)} AS {KEY}, {why} AS {REASON} "
            f"FROM {source}) WHERE {REASON} IS NOT NULL ORDER BY _ph_n",
        )
        if not rows.num_rows:
            file.unlink(missing_ok=True)
            return
        self._make(file.parent)
        temporary = file.with_suffix(".writing")
        with disk_errors():
            temporary.unlink(missing_ok=True)
            with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as whole:
                pq.write_table(rows, whole, compression="zstd")
                whole.flush()
                os.fsync(whole.fileno())
            temporary.rename(file)
            sync_folder(file.parent)

    def counted(self, entity: str, files: Iterable[tuple[int, int]], over: Collection[int]) -> Counter[str]:
        """How many rows these batches and steps of an entity have here, by reason, read from the files: without the
        rows `over`, by their number in the stage, and none of those without a file."""
        found: Counter[str] = Counter()
        for batch, step in files:
            file = self.file(entity, batch, step)
            if file.is_file():
                rows = pq.read_table(file, columns=["_ph_n", REASON]).to_pylist()
                found.update(row[REASON] for row in rows if row["_ph_n"] not in over)
        return found

    def _make(self, folder: Path) -> None:
        """Makes a folder and those above it that are missing, for their owner alone."""
        missing = [each for each in (folder, *folder.parents) if not each.exists()]
        try:
            with disk_errors():
                for each in reversed(missing):
                    each.mkdir(mode=0o700)
        except DiskFullError:
            raise
        except FileExistsError:
            if not folder.is_dir():
                raise
        except OSError as error:
            raise UsageError(
                f"the archive can't be made: {error.strerror}", where=str(folder),
                advice="say another `archive:` in the plan, or make the folder",
            ) from None  # fmt: skip
        if not folder.is_dir() or not os.access(folder, os.W_OK):
            raise UsageError(
                "the archive is no folder that can be written to", where=str(folder),
                advice="say another `archive:` in the plan",
            )  # fmt: skip
