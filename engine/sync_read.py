"""Reads a generation: what the source holds otherwise than the stage, as further parts of it.

The source is read by pages into scratch files, and compared with the stage by source key and checksum. Parts are durable
before anything tells of them, and the log is told of all entities at once; until then, reading begins anew. Writes
nothing to the target.
"""

from __future__ import annotations

import shutil
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from connectors.relation import about
from engine.check import CheckedEntity
from engine.compile import key_sql, source_hash_sql
from engine.context import Context, Progress
from engine.generation import Deletes
from engine.persist import persist
from engine.prepare import Preparer
from engine.query import read_parts
from engine.retried_rows import stage_keys
from engine.stager import count_read, recorded_parts
from engine.sync_stage import EntityRead, GenerationStager, scratch_table, staged_path
from engine.transform import execute
from engine.watermark import low_mark
from workspace.disk import disk_errors
from workspace.errors import InterruptedJobError, PlanError


def why_not(entity: CheckedEntity) -> str:
    """Why a sync leaves the entity as it is; empty where it doesn't."""
    if not entity.plan.key:
        return "has no key, so what changed can't be told"
    return ""


class GenerationReader:
    """Reads all entities of a job, then compares them. A context manager: the scratch files go with it."""

    def __init__(self, ctx: Context, number: int, again: str, deletes: Deletes = "keep", *, full: bool = False) -> None:
        """The job's entities must be known to the target. `again` is the command that goes on where the target stays
        away; `deletes` and `full` as in SyncStarted."""
        self._ctx, self._again, self._deletes, self._full = ctx, again, deletes, full
        self._preparer = Preparer(ctx.paths, ctx.checked, f"sync-{number}")
        self._duck = self._preparer.duck
        self._scratch = ctx.paths.temp / f"sync-{number}"

    def __enter__(self) -> GenerationReader:
        shutil.rmtree(self._scratch, ignore_errors=True)
        with disk_errors():
            self._scratch.mkdir(mode=0o700)
        return self

    def __exit__(self, *_: object) -> None:
        self._preparer.close()
        shutil.rmtree(self._scratch, ignore_errors=True)

    def read(self) -> list[EntityRead]:
        """Reads every entity whose changes can be told, one after the other, and finds what differs. PlanError where the source's
        columns are not the stage's any more."""
        found = []
        for entity in self._ctx.checked.entities:
            if why_not(entity) == "":
                read = EntityRead(entity, recorded_parts(self._ctx.workspace, entity.name))
                self._check_columns(read)
                self._take_latest(read)
                self._read_source(read)
                found.append(read)
        for read in found:
            self._compare(read)
        return found

    def stage(self, found: list[EntityRead]) -> None:
        """Writes what differs as parts, and beside each what it takes the place of."""
        GenerationStager(self._ctx, self._preparer, self._deletes).stage(found)

    # -- reading ----------------------------------------------------------------------------------

    def _check_columns(self, read: EntityRead) -> None:
        """The checksum of a row is over its columns: with others, each row would seem changed."""
        if not read.before:
            return
        staged = pq.read_schema(staged_path(self._ctx, read.entity, read.before[0])).names
        now = [column.name for column in read.entity.source.columns]
        if sorted(staged) != sorted([*now, "_ph_n"]):
            other = sorted({*staged, "_ph_n"} ^ {*now, "_ph_n"})
            raise PlanError(
                f"the source's columns changed since the job read them: {', '.join(other)[:200]}",
                where=f"entities.{read.entity.name}.from",
                advice="a new job over the same systems reads them anew, and loads nothing twice",
            )

    def _read_source(self, read: EntityRead) -> None:
        """All rows; with a watermark, those that it says may have changed, and the keys alone where what is gone has to
        be found."""
        source, plan = self._ctx.source, read.entity.plan
        read.snapshot = source.snapshot
        if plan.watermark is not None and not self._full:
            read.watermark = low_mark(
                self._ctx, read.entity, self._duck, read.before, scratch_table("latest", read.entity)
            )
        if not read.watermark:
            read.pages = self._read_pages(read, "page")
            read.counted = count_read(source, read.entity, whole=True)
            return
        assert plan.watermark is not None
        read.pages = self._read_pages(read, "page", since=(plan.watermark.column, read.watermark))
        if self._deletes != "keep":
            read.keys = self._read_pages(read, "key", only=plan.key)
        read.counted = source.count(plan.from_)

    def _read_pages(
        self, read: EntityRead, name: str, *, since: tuple[str, str] | None = None, only: tuple[str, ...] = ()
    ) -> list[Path]:
        ctx, entity = self._ctx, read.entity
        folder = self._scratch / entity.name
        with disk_errors():
            folder.mkdir(mode=0o700, exist_ok=True)
        expected = ctx.source.count(about(entity.plan.from_, ctx.source.dialect)) if since is None else None
        written: list[Path] = []
        seen = 0
        for page in ctx.source.pages(
            entity.plan.from_, entity.plan.key, after=None, size=ctx.batch_rows, since=since, only=only
        ):
            if ctx.stop():
                raise InterruptedJobError(
                    "interrupted while reading; nothing was brought in", where=f"job {ctx.paths.job}",
                    advice=f"migrate sync {ctx.paths.job}",
                )  # fmt: skip
            rows = page.rows.num_rows
            if rows == 0:
                continue
            numbers = pa.array(range(seen, seen + rows), pa.int64())
            path = folder / f"{name}-{len(written):05d}.parquet"
            with disk_errors():
                pq.write_table(page.rows.append_column("_ph_i", numbers), path, compression="lz4")
            written.append(path)
            seen += rows
            ctx.progress(Progress("stage", entity.name, seen, max(expected, seen) if expected is not None else None))
        if not only:
            read.seen = seen
        return written

    # -- comparing --------------------------------------------------------------------------------

    def _take_latest(self, read: EntityRead) -> None:
        """Makes the table `latest_`: what the stage holds of each source key now."""
        entity, latest = read.entity, scratch_table("latest", read.entity)
        execute(
            self._duck, f"CREATE OR REPLACE TEMP TABLE {latest} (n BIGINT, key VARCHAR, hash VARCHAR, wanted BOOLEAN)"
        )
        if read.before:
            parts = [part.part for part in read.before]
            stage = partial(stage_keys, self._ctx, entity, self._duck, parts, "staged")
            persist(self._ctx, "reading the ledger", stage, self._again)
            files = read_parts(staged_path(self._ctx, entity, part) for part in read.before)
            execute(
                self._duck,
                f"INSERT INTO {latest} SELECT s.n, s.key, h.hash, s.wanted FROM staged s JOIN "
                f"(SELECT _ph_n AS n, {source_hash_sql(entity)} AS hash FROM {files}) h USING (n)",
            )

    def _compare(self, read: EntityRead) -> None:
        """Makes the table `differs_`: keys whose rows the source has otherwise; and counts."""
        entity, name = read.entity, read.entity.name
        latest, differs, seen = (scratch_table(what, entity) for what in ("latest", "differs", "seen"))
        key, hash_ = key_sql(entity), source_hash_sql(entity)
        pages = f"SELECT _ph_i AS i, {key} AS key, {hash_} AS hash FROM {read_parts(read.pages)}" if read.pages else (
            "SELECT NULL::BIGINT AS i, NULL::VARCHAR AS key, NULL::VARCHAR AS hash WHERE false"
        )  # fmt: skip
        execute(self._duck, f"CREATE OR REPLACE TEMP TABLE {seen} AS {pages}")
        execute(
            self._duck,
            # by how many there are: a source key need not be unique
            f"CREATE OR REPLACE TEMP TABLE {differs} AS SELECT DISTINCT key FROM "
            f"(SELECT key, hash, count(*) AS now FROM {seen} GROUP BY 1, 2) s FULL JOIN "
            f"(SELECT key, hash, count(*) AS before FROM {latest} GROUP BY 1, 2) l USING (key, hash) "
            f"WHERE now IS DISTINCT FROM before AND key IN (SELECT key FROM {seen})",
        )
        read.new, read.changed = execute(
            self._duck,
            f"SELECT count(*) FILTER (WHERE NOT known), count(*) FILTER (WHERE known) FROM "
            f"(SELECT key IN (SELECT key FROM {latest}) AS known FROM {seen} WHERE key IN (SELECT key FROM {differs}))",
        )[0]
        present = scratch_table("present", entity)
        if read.keys:
            execute(
                self._duck,
                f"CREATE OR REPLACE TEMP TABLE {present} AS SELECT {key} AS key FROM {read_parts(read.keys)}",
            )
        else:
            execute(self._duck, f"CREATE OR REPLACE TEMP TABLE {present} AS SELECT DISTINCT key FROM {seen}")
        if not read.watermark or read.keys:
            (read.gone,) = execute(
                self._duck, f"SELECT count(*) FROM {latest} WHERE key NOT IN (SELECT key FROM {present})"
            )[0]
        execute(self._duck, f"CREATE OR REPLACE TEMP TABLE {scratch_table('again', entity)} (n BIGINT)")
        self._ctx.progress(Progress("sync", name))
