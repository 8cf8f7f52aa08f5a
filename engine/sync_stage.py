"""Writes a generation as further parts of the stage: rows that differ, rows that are driven again, and what leaves.

Beside each part lies a file of the rows that it takes the place of. All is durable before anything tells of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from engine.check import CheckedEntity
from engine.compile import key_sql
from engine.context import Context
from engine.generation import Deletes, over_path
from engine.prepare import Preparer
from engine.query import identifier, literal, read_parts
from engine.references import referring_sql
from engine.retried_rows import stage_keys
from engine.stage import part_path, write_durably, write_part
from engine.transform import execute, fetch
from workspace.disk import disk_errors
from workspace.events import GenerationStaged, PartStaged


@dataclass
class EntityRead:
    """What was found of one entity; see GenerationStaged. `pages` hold the rows that were read and `keys` the source
    keys, where those were read apart; `parts` are staged already."""

    entity: CheckedEntity
    before: list[PartStaged]
    pages: list[Path] = field(default_factory=list)
    keys: list[Path] = field(default_factory=list)
    seen: int = 0
    counted: int = 0
    new: int = 0
    changed: int = 0
    again: int = 0
    gone: int | None = None
    snapshot: bool = False
    watermark: str = ""
    parts: list[PartStaged] = field(default_factory=list)
    removals: list[PartStaged] = field(default_factory=list)

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
            self.gone, self.counted, self.watermark, self.snapshot, len(self.removals),
        )  # fmt: skip


def staged_path(ctx: Context, entity: CheckedEntity, part: PartStaged) -> Path:
    """Where a part lies."""
    return part_path(ctx.paths.stage / entity.name, part.part)


def scratch_table(what: str, entity: CheckedEntity) -> str:
    """The quoted name of a table of DuckDB in which the reader keeps something of an entity."""
    return identifier(f"{what}_{entity.name}")


class GenerationStager:
    """Stages what a reader found; works on the tables that it made in DuckDB."""

    def __init__(self, ctx: Context, preparer: Preparer, deletes: Deletes) -> None:
        self._ctx, self._preparer, self._duck, self._deletes = ctx, preparer, preparer.duck, deletes

    def stage(self, found: list[EntityRead]) -> None:
        """Writes what differs as parts, and beside each what it takes the place of."""
        arrived = {read.entity.name: self._arrivals(read) for read in found if self._is_referred_to(read.entity)}
        for read in found:
            self._drive_again(read, arrived)
            self._write(read)

    def stage_again(self, found: list[EntityRead]) -> None:
        """Writes the rows that are to be driven again, and nothing else."""
        for read in found:
            self._write(read)

    def _is_referred_to(self, entity: CheckedEntity) -> bool:
        return any(entity.name in other.references for other in self._ctx.checked.entities)

    def _arrivals(self, read: EntityRead) -> bool:
        """Makes the table `arrivals_`: source keys of the generation that have no row in the target yet. False where
        there are none."""
        entity = read.entity
        existing = self._preparer.existing(entity, self._ctx.target)
        there = f"SELECT old_id FROM read_parquet({literal(str(existing))})" if existing else "SELECT NULL WHERE false"
        name = scratch_table("arrivals", entity)
        execute(
            self._duck,
            f"CREATE OR REPLACE TEMP TABLE {name} AS SELECT DISTINCT lower(trim(key)) AS key FROM {scratch_table('differs', entity)} "
            f"WHERE key NOT IN ({there})",
        )
        return bool(execute(self._duck, f"SELECT count(*) FROM {name}")[0][0])

    def _drive_again(self, read: EntityRead, arrived: dict[str, bool]) -> None:
        """Rows that didn't change but refer to one that arrives: what was missing, or kept them out, may be there. And
        rows that an earlier sync left as they were edited, where the plan may say otherwise now, or marked as deleted, where
        the source has them again."""
        entity = read.entity
        policies = {entity.plan.edited, *(planned.plan.edited for planned in entity.fields)}
        left = [row.old_id for row in self._ctx.target.kept_edits(entity.name) if row.asked or "overwrite" in policies]
        left += self._ctx.target.marked_keys(entity.name)
        self._duck.register("left_view", pa.table({"key": pa.array(left, pa.string())}))
        again, latest = scratch_table("again", entity), scratch_table("latest", entity)
        execute(
            self._duck,
            f"INSERT INTO {again} SELECT n FROM {latest} WHERE wanted AND key IN (SELECT key FROM left_view)",
        )
        self._duck.unregister("left_view")
        for planned in entity.fields:
            if planned.plan.ref is None or not arrived.get(planned.plan.ref) or not read.before:
                continue
            stage = [staged_path(self._ctx, entity, part) for part in read.before]
            arrivals = scratch_table("arrivals", self._ctx.checked.entity(planned.plan.ref))
            execute(self._duck, f"INSERT INTO {again} {referring_sql(entity, planned, stage, arrivals)}")
        execute(
            self._duck,
            f"CREATE OR REPLACE TEMP TABLE {again} AS SELECT DISTINCT n FROM {again} JOIN {latest} USING (n) "
            f"WHERE key NOT IN (SELECT key FROM {scratch_table('differs', entity)}) "
            f"AND (key IN (SELECT key FROM {scratch_table('present', entity)}) OR {read.gone is None})",
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
        self._register_starts(read)
        latest, taken = scratch_table("latest", entity), scratch_table("taken", entity)
        execute(self._duck, f"CREATE OR REPLACE TEMP TABLE {taken} (key VARCHAR)")
        for part in read.parts:
            keys = f"(SELECT {key_sql(entity)} AS key FROM {read_parts([staged_path(self._ctx, entity, part)])})"
            over = fetch(
                self._duck,
                f"SELECT l.n, l.key, s.of_batch, NOT l.wanted AS excluded FROM {latest} l "
                f"ASOF JOIN starts_view s ON l.n >= s.start WHERE l.key IN (SELECT key FROM {keys}) "
                f"AND l.key NOT IN (SELECT key FROM {taken}) ORDER BY l.n",
            )
            execute(self._duck, f"INSERT INTO {taken} SELECT DISTINCT key FROM {keys}")
            with disk_errors():
                write_durably(over_path(self._ctx.paths.stage / entity.name, part.part), over)
        if self._deletes != "keep" and read.before:
            self._write_removals(read)
        self._duck.unregister("starts_view")

    def _register_starts(self, read: EntityRead) -> None:
        """The number of the first row of each part that stood before."""
        numbers = pa.array([part.part for part in read.before], pa.int64())
        starts = pa.array(_starts(read.before), pa.int64())
        self._duck.register("starts_view", pa.table({"of_batch": numbers, "start": starts}))

    def _write_removals(self, read: EntityRead) -> None:
        """Parts without rows that tell what leaves the target: rows that the source has no longer, and those that the
        plan's `where` excludes now. Where they are only marked as deleted, they are read on."""
        entity, latest = read.entity, scratch_table("latest", read.entity)
        present, taken, leaving = (scratch_table(what, entity) for what in ("present", "taken", "leaving"))
        stage_keys(self._ctx, entity, self._duck, [part.part for part in read.parts], "incoming")
        existing = self._preparer.existing(entity, self._ctx.target)
        there = f"SELECT old_id FROM read_parquet({literal(str(existing))})" if existing else "SELECT NULL WHERE false"
        marked = self._ctx.target.marked_keys(entity.name) if self._deletes == "mark" else []
        self._duck.register("marked_view", pa.table({"key": pa.array(marked, pa.string())}))
        gone = f"l.key NOT IN (SELECT key FROM {present})" if read.gone is not None else "false"
        select = (
            f"SELECT l.n, l.key, s.of_batch, NOT l.wanted AS excluded, {self._deletes == 'delete'} AS gone FROM {latest} l "
            f"ASOF JOIN starts_view s ON l.n >= s.start WHERE {gone}"
        )
        unwanted = (
            f"SELECT key FROM incoming WHERE NOT wanted UNION SELECT l.key FROM {latest} l WHERE NOT l.wanted "
            f"AND l.key NOT IN (SELECT key FROM {taken}) AND NOT ({gone})"
        )
        execute(
            self._duck,
            f"CREATE OR REPLACE TEMP TABLE {leaving} AS SELECT * FROM ({select} UNION ALL "
            f"SELECT NULL, key, NULL, NULL, false FROM ({unwanted}) WHERE key IN ({there})) "
            f"WHERE key NOT IN (SELECT key FROM marked_view) AND (gone OR key IN ({there})) ORDER BY key, n",
        )
        self._duck.unregister("marked_view")
        nothing = pq.read_schema(staged_path(self._ctx, entity, read.before[0])).empty_table().drop_columns(["_ph_n"])
        number = read.first + len(read.parts)
        position = read.position + sum(part.rows for part in read.parts)
        (total,) = execute(self._duck, f"SELECT count(*) FROM {leaving}")[0]
        for start in range(0, total, self._ctx.batch_rows):
            rows = fetch(self._duck, f"SELECT * FROM {leaving} LIMIT {self._ctx.batch_rows} OFFSET {start}")
            with disk_errors():
                write_durably(over_path(self._ctx.paths.stage / entity.name, number), rows)
            read.removals.append(write_part(self._ctx.paths, entity, number, nothing, position))
            number += 1

    def _rows(self, read: EntityRead) -> Iterator[pa.Table]:
        """The rows to stage, `batch_rows` at a time: what differs as it was read, then what is driven again."""
        entity = read.entity
        columns = ", ".join(identifier(column.name) for column in entity.source.columns)
        selects = []
        if read.new or read.changed:
            selects.append(
                f"SELECT {columns} FROM {read_parts(read.pages)} WHERE {key_sql(entity)} IN "
                f"(SELECT key FROM {scratch_table('differs', entity)}) ORDER BY _ph_i"
            )
        if read.again:
            selects.append(
                f"SELECT {columns} FROM {read_parts(staged_path(self._ctx, entity, part) for part in read.before)} WHERE _ph_n IN "
                f"(SELECT n FROM {scratch_table('again', entity)}) ORDER BY _ph_n"
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


def _starts(parts: list[PartStaged]) -> list[int]:
    starts, position = [], 0
    for part in parts:
        starts.append(position)
        position += part.rows
    return starts
