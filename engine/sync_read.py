"""Reads a generation: what the source holds otherwise than the stage, as further parts of it.

The source is read by pages into scratch files, and compared with the stage by source key and checksum. Parts are durable
before anything tells of them, and the log is told of all entities at once; until then, reading begins anew. Writes
nothing to the target.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from connectors.relation import about
from engine.check import CheckedEntity
from engine.compile import key_sql, source_hash_sql, stage_columns
from engine.context import Context, Progress
from engine.expressions import Compiler
from engine.generation import over_path
from engine.prepare import Preparer
from engine.query import identifier, literal, read_parts
from engine.retried_rows import stage_keys
from engine.stage import part_path, write_durably, write_part
from engine.stager import count_read, recorded_parts
from engine.transform import execute, fetch
from workspace.disk import disk_errors
from workspace.errors import InterruptedJobError, PlanError
from workspace.events import GenerationStaged, PartStaged


@dataclass
class EntityRead:
    """What was found of one entity; see GenerationStaged. `parts` are those that are staged already."""

    entity: CheckedEntity
    before: list[PartStaged]
    pages: list[Path] = field(default_factory=list)
    seen: int = 0
    counted: int = 0
    new: int = 0
    changed: int = 0
    again: int = 0
    gone: int | None = None
    snapshot: bool = False
    watermark: str = ""
    parts: list[PartStaged] = field(default_factory=list)

    @property
    def first(self) -> int:
        """The number of the first part of this generation."""
        return self.before[-1].part + 1 if self.before else 0

    @property
    def position(self) -> int:
        """The number of its first row."""
        return sum(part.rows for part in self.before)

    def event(self, generation: int) -> GenerationStaged:
        """As the log is told."""
        rows = sum(part.rows for part in self.parts)
        return GenerationStaged(
            self.entity.name, generation, self.first, len(self.parts), rows, self.seen, self.new, self.changed, self.again,
            self.gone, self.counted, self.watermark, self.snapshot,
        )  # fmt: skip


class GenerationReader:
    """Reads all entities of a job, then compares them. A context manager: the scratch files go with it."""

    def __init__(self, ctx: Context, number: int) -> None:
        """The job's entities must be known to the target."""
        self._ctx = ctx
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
        """Reads every entity that has a key, one after the other, and finds what differs. PlanError where the source's
        columns are not the stage's any more."""
        found = []
        for entity in self._ctx.checked.entities:
            if entity.plan.key:
                read = EntityRead(entity, recorded_parts(self._ctx.workspace, entity.name))
                self._check_columns(read)
                self._read_pages(read)
                found.append(read)
        for read in found:
            self._compare(read)
        return found

    def stage(self, found: list[EntityRead]) -> None:
        """Writes what differs as parts, and beside each what it takes the place of."""
        arrived = {read.entity.name: self._arrivals(read) for read in found if self._is_referred_to(read.entity)}
        for read in found:
            self._drive_again(read, arrived)
            self._write(read)

    # -- reading ----------------------------------------------------------------------------------

    def _check_columns(self, read: EntityRead) -> None:
        """The checksum of a row is over its columns: with others, each row would seem changed."""
        if not read.before:
            return
        staged = pq.read_schema(self._path(read.entity, read.before[0])).names
        now = [column.name for column in read.entity.source.columns]
        if sorted(staged) != sorted([*now, "_ph_n"]):
            other = sorted({*staged, "_ph_n"} ^ {*now, "_ph_n"})
            raise PlanError(
                f"the source's columns changed since the job read them: {', '.join(other)[:200]}",
                where=f"entities.{read.entity.name}.from",
                advice="a new job over the same systems reads them anew, and loads nothing twice",
            )

    def _read_pages(self, read: EntityRead) -> None:
        ctx, entity = self._ctx, read.entity
        expected = ctx.source.count(about(entity.plan.from_, ctx.source.dialect))
        read.snapshot = ctx.source.snapshot
        folder = self._scratch / entity.name
        with disk_errors():
            folder.mkdir(mode=0o700)
        for page in ctx.source.pages(entity.plan.from_, entity.plan.key, after=None, size=ctx.batch_rows):
            if ctx.stop():
                raise InterruptedJobError(
                    "interrupted while reading; nothing was brought in", where=f"job {ctx.paths.job}",
                    advice=f"migrate sync {ctx.paths.job}",
                )  # fmt: skip
            rows = page.rows.num_rows
            numbers = pa.array(range(read.seen, read.seen + rows), pa.int64())
            path = folder / f"page-{len(read.pages):05d}.parquet"
            with disk_errors():
                pq.write_table(page.rows.append_column("_ph_i", numbers), path, compression="lz4")
            read.pages.append(path)
            read.seen += rows
            ctx.progress(Progress("stage", entity.name, read.seen, max(expected, read.seen)))
        read.counted = count_read(ctx.source, entity, whole=True)

    # -- comparing --------------------------------------------------------------------------------

    def _compare(self, read: EntityRead) -> None:
        """Makes the tables `latest_` (what the stage holds of each key now) and `differs_` (keys whose rows the source
        has otherwise), and counts."""
        entity, name = read.entity, read.entity.name
        latest, differs, seen = (
            self._table("latest", entity),
            self._table("differs", entity),
            self._table("seen", entity),
        )
        key, hash_ = key_sql(entity), source_hash_sql(entity)
        execute(
            self._duck, f"CREATE OR REPLACE TEMP TABLE {latest} (n BIGINT, key VARCHAR, hash VARCHAR, wanted BOOLEAN)"
        )
        if read.before:
            stage_keys(self._ctx, entity, self._duck, [part.part for part in read.before], "staged")
            files = read_parts(self._path(entity, part) for part in read.before)
            execute(
                self._duck,
                f"INSERT INTO {latest} SELECT s.n, s.key, h.hash, s.wanted FROM staged s JOIN "
                f"(SELECT _ph_n AS n, {hash_} AS hash FROM {files}) h USING (n)",
            )
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
        (read.gone,) = execute(
            self._duck, f"SELECT count(*) FROM {latest} WHERE key NOT IN (SELECT key FROM {seen})"
        )[0]  # fmt: skip
        execute(self._duck, f"CREATE OR REPLACE TEMP TABLE {self._table('again', entity)} (n BIGINT)")
        self._ctx.progress(Progress("sync", name))

    def _is_referred_to(self, entity: CheckedEntity) -> bool:
        return any(entity.name in other.references for other in self._ctx.checked.entities)

    def _arrivals(self, read: EntityRead) -> bool:
        """Makes the table `arrivals_`: source keys of the generation that have no row in the target yet. False where
        there are none."""
        entity = read.entity
        existing = self._preparer.existing(entity, self._ctx.target)
        there = f"SELECT old_id FROM read_parquet({literal(str(existing))})" if existing else "SELECT NULL WHERE false"
        name = self._table("arrivals", entity)
        execute(
            self._duck,
            f"CREATE OR REPLACE TEMP TABLE {name} AS SELECT DISTINCT lower(trim(key)) AS key FROM {self._table('differs', entity)} "
            f"WHERE key NOT IN ({there})",
        )
        return bool(execute(self._duck, f"SELECT count(*) FROM {name}")[0][0])

    def _drive_again(self, read: EntityRead, arrived: dict[str, bool]) -> None:
        """Rows that didn't change but refer to one that arrives: what was missing, or kept them out, may be there. And
        rows that an earlier sync left as they were edited, where the plan may say otherwise now."""
        entity = read.entity
        policies = {entity.plan.edited, *(planned.plan.edited for planned in entity.fields)}
        left = [row.old_id for row in self._ctx.target.kept_edits(entity.name) if row.asked or "overwrite" in policies]
        self._duck.register("left_view", pa.table({"key": pa.array(left, pa.string())}))
        again, latest = self._table("again", entity), self._table("latest", entity)
        execute(self._duck, f"INSERT INTO {again} SELECT n FROM {latest} WHERE key IN (SELECT key FROM left_view)")
        self._duck.unregister("left_view")
        for planned in entity.fields:
            if planned.plan.ref is None or not arrived.get(planned.plan.ref) or not read.before:
                continue
            compiler = Compiler(stage_columns(entity))
            piece = compiler.compile(planned.plan.expression, planned.where)
            text = f"lower(hex({piece.sql}))" if piece.type == "BLOB" else f"CAST({piece.sql} AS VARCHAR)"
            source = f"SELECT * FROM {read_parts(self._path(entity, part) for part in read.before)}"
            for level in compiler.hoists.levels:
                calls = ", ".join(f"{call} AS {name}" for call, name in level.items())
                source = f"SELECT *, {calls} FROM ({source})"
            arrivals = self._table("arrivals", self._ctx.checked.entity(planned.plan.ref))
            execute(
                self._duck,
                f"INSERT INTO {again} SELECT _ph_n FROM ({source}) WHERE lower(trim({text})) IN (SELECT key FROM {arrivals})",
            )
        execute(
            self._duck,
            f"CREATE OR REPLACE TEMP TABLE {again} AS SELECT DISTINCT n FROM {again} JOIN {latest} USING (n) "
            f"WHERE key NOT IN (SELECT key FROM {self._table('differs', entity)}) "
            f"AND (key IN (SELECT key FROM {self._table('seen', entity)}) OR {read.gone is None})",
        )
        (read.again,) = execute(self._duck, f"SELECT count(*) FROM {again}")[0]

    # -- writing ----------------------------------------------------------------------------------

    def _write(self, read: EntityRead) -> None:
        entity = read.entity
        number, position = read.first, read.position
        with disk_errors():
            (self._ctx.paths.stage / entity.name).mkdir(mode=0o700, exist_ok=True)
        for table in self._rows(read):
            part = write_part(self._ctx.paths, entity, number, table, position)
            read.parts.append(part)
            number, position = number + 1, position + part.rows
        if not read.parts:
            return
        starts = [(part.part, position) for part, position in zip(read.before, _starts(read.before), strict=True)]
        self._duck.register(
            "starts_view",
            pa.table({"of_batch": pa.array([n for n, _ in starts], pa.int64()), "start": pa.array([s for _, s in starts], pa.int64())}),
        )  # fmt: skip
        taken = self._table("taken", entity)
        execute(self._duck, f"CREATE OR REPLACE TEMP TABLE {taken} (key VARCHAR)")
        for part in read.parts:
            keys = f"(SELECT {key_sql(entity)} AS key FROM {read_parts([self._path(entity, part)])})"
            over = fetch(
                self._duck,
                f"SELECT l.n, l.key, s.of_batch, NOT l.wanted AS excluded FROM {self._table('latest', entity)} l "
                f"ASOF JOIN starts_view s ON l.n >= s.start WHERE l.key IN (SELECT key FROM {keys}) "
                f"AND l.key NOT IN (SELECT key FROM {taken}) ORDER BY l.n",
            )
            execute(self._duck, f"INSERT INTO {taken} SELECT DISTINCT key FROM {keys}")
            with disk_errors():
                write_durably(over_path(self._ctx.paths.stage / entity.name, part.part), over)
        self._duck.unregister("starts_view")

    def _rows(self, read: EntityRead) -> Iterator[pa.Table]:
        """The rows to stage, `batch_rows` at a time: what differs as it was read, then what is driven again."""
        entity = read.entity
        columns = ", ".join(identifier(column.name) for column in entity.source.columns)
        selects = []
        if read.new or read.changed:
            selects.append(
                f"SELECT {columns} FROM {read_parts(read.pages)} WHERE {key_sql(entity)} IN "
                f"(SELECT key FROM {self._table('differs', entity)}) ORDER BY _ph_i"
            )
        if read.again:
            selects.append(
                f"SELECT {columns} FROM {read_parts(self._path(entity, part) for part in read.before)} WHERE _ph_n IN "
                f"(SELECT n FROM {self._table('again', entity)}) ORDER BY _ph_n"
            )
        for select in selects:
            reader = self._duck.sql(select).to_arrow_reader(self._ctx.batch_rows)
            held: list[pa.RecordBatch] = []
            for batch in reader:
                held.append(batch)
                if sum(each.num_rows for each in held) >= self._ctx.batch_rows:
                    table = pa.Table.from_batches(held)
                    yield table.slice(0, self._ctx.batch_rows)
                    held = table.slice(self._ctx.batch_rows).to_batches()
            if sum(each.num_rows for each in held):
                yield pa.Table.from_batches(held)

    def _path(self, entity: CheckedEntity, part: PartStaged) -> Path:
        return part_path(self._ctx.paths.stage / entity.name, part.part)

    def _table(self, what: str, entity: CheckedEntity) -> str:
        return identifier(f"{what}_{entity.name}")


def _starts(parts: list[PartStaged]) -> list[int]:
    starts, position = [], 0
    for part in parts:
        starts.append(position)
        position += part.rows
    return starts
