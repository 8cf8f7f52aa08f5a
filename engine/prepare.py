"""What stands between the stage and a batch: an entity's parts transformed, its collisions settled.

Shared by the preview, which writes nothing to the target, and by the load.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from connectors.records import CROSSWALK_COLUMNS
from connectors.target import Target
from engine.check import CheckedEntity, CheckedPlan
from engine.collisions import Losers, Settler, held_keys
from engine.compile import compile_entity, stage_columns
from engine.duck import open_duck
from engine.query import LOADED, MERGED, Query, literal, read_parts
from engine.stage import part_path
from engine.transform import Counts, execute, take_up_part, transform_part
from workspace.disk import disk_errors
from workspace.errors import ExpressionError
from workspace.events import PartStaged
from workspace.paths import JobPaths

_CROSSWALK = pa.schema([(name, pa.string()) for name in CROSSWALK_COLUMNS])


@dataclass(frozen=True)
class Settled:
    """A part that is ready to load: staged, transformed, counted, which of its rows lost a collision, and where it
    lies which the target held before (None where nothing is matched), with the part as it was before those were found
    (None: `out` itself)."""

    part: PartStaged
    out: Path
    counts: Counts
    losers: Losers | None
    matched: Path | None = None
    own: Path | None = None


class Preparer:
    """Transforms entities of one plan version in one job's folder. Not for use by two threads."""

    def __init__(
        self, paths: JobPaths, checked: CheckedPlan, name: str = "", duck: duckdb.DuckDBPyConnection | None = None
    ) -> None:
        """`name` keeps apart what must not be taken up by a load; by default the plan version. `duck` is one of
        `open_duck`, where not the usual; it ends with the preparer."""
        self.paths = paths
        self.checked = checked
        self.name = name or f"v{checked.plan.version}"
        self.duck = duck or open_duck(paths)
        self.crosswalks: dict[str, Path] = {}
        self._queries: dict[str, Query] = {}
        self._ready: set[str] = set()

    def close(self) -> None:
        """Ends the DuckDB connection."""
        self.duck.close()

    def folder(self, entity: CheckedEntity) -> Path:
        """Where the entity's transformed parts of this plan version lie."""
        folder = self.paths.transformed / self.name / entity.name
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return folder

    def transform(self, entity: CheckedEntity, part: PartStaged, *, again: bool = False) -> tuple[Path, Counts]:
        """Transforms one part, or takes up what an earlier run of this plan version left, unless `again`."""
        staged, out = self.files(entity, part)
        counts = None if again else take_up_part(self.duck, staged, out)
        return out, self.transform_file(entity, staged, out) if counts is None else counts

    def transform_file(self, entity: CheckedEntity, staged: Path, out: Path) -> Counts:
        """Transforms rows of the entity's stage, which lie in a file of the job's folder."""
        if entity.name not in self._ready:
            for statement in self.query(entity).setup:
                execute(self.duck, statement)
            self._ready.add(entity.name)
        return transform_part(self.duck, self.query(entity), staged, out)

    def files(self, entity: CheckedEntity, part: PartStaged) -> tuple[Path, Path]:
        """A part as it was staged, and where it lies once it is transformed."""
        return part_path(self.paths.stage / entity.name, part.part), part_path(self.folder(entity), part.part)

    def settler(self, entity: CheckedEntity, target: Target, *, ours: bool) -> Settler:
        """What finds the collisions of an entity's parts, from its first. `ours`: our schema is in the target."""
        folder = self.folder(entity)
        return Settler(self.duck, entity, folder, held_keys(target, entity, folder, ours=ours))

    def existing(self, entity: CheckedEntity, target: Target) -> Path | None:
        """The crosswalk that the target has of an entity now, None where it has none. Our schema must be there."""
        if not target.has_crosswalk(entity.name):
            return None
        path = self.folder(entity) / "existing.parquet"
        _write(path, target.crosswalk_rows(entity.name))
        return path

    def take_crosswalk(self, entity: CheckedEntity, target: Target) -> Path:
        """Fetches an entity's crosswalk from the target, for those that refer to it."""
        path = self.folder(entity) / "crosswalk.parquet"
        _write(path, target.crosswalk_rows(entity.name))
        self.crosswalks[entity.name] = path
        return path

    def note_crosswalk(self, entity: CheckedEntity) -> CrosswalkNotes:
        """Where to write down an entity's crosswalk while it is made, for those that refer to it."""
        return CrosswalkNotes(self, entity, self.folder(entity) / "crosswalk.parquet")

    def foresee_crosswalk(self, entity: CheckedEntity, parts: Sequence[Settled], existing: Path | None) -> None:
        """A crosswalk as it would be after a load: for the preview, where nothing is loaded. What earlier jobs
        carried over keeps its id; new ids of a sequence are shown as the row's number."""
        path = self.folder(entity) / "foreseen.parquet"
        nothing = "(SELECT NULL::VARCHAR AS old_id, NULL::VARCHAR AS new_id WHERE false)"
        there = f"read_parquet({literal(str(existing))})" if existing else nothing
        coming = nothing
        merged = "(SELECT NULL::VARCHAR AS old_id, NULL::VARCHAR AS home WHERE false)"
        if parts:
            new_id = "coalesce(t._ph_id, CAST(t._ph_n + 1 AS VARCHAR))"
            losers = [p.losers.path for p in parts if p.losers]
            lost = f"ANTI JOIN {read_parts(losers)} l ON l._ph_n = t._ph_n" if losers else ""
            coming = (
                f"(SELECT t._ph_key AS old_id, {new_id} AS new_id FROM {read_parts(p.out for p in parts)} t "
                f"{lost} WHERE t._ph_outcome = {LOADED})"
            )
            if with_merged := [p.out for p in parts if p.counts.merged]:
                merged = f"(SELECT _ph_key AS old_id, _ph_home AS home FROM {read_parts(with_merged)} WHERE _ph_outcome = {MERGED})"
        execute(
            self.duck,
            f"COPY (WITH own AS (SELECT old_id, coalesce(e.new_id, c.new_id) AS new_id FROM {coming} c FULL JOIN {there} e USING (old_id)) "
            f"SELECT * FROM own UNION ALL SELECT m.old_id, own.new_id FROM {merged} m JOIN own ON own.old_id = m.home "
            f"ANTI JOIN own t ON t.old_id = m.old_id) "
            f"TO {literal(str(path))} (FORMAT parquet)",
        )
        self.crosswalks[entity.name] = path

    def second_pass(self, entity: CheckedEntity) -> Query:
        """The query that fills the entity's deferred references."""
        query = compile_entity(entity, self.checked.plan, self.crosswalks, second_pass=True)
        for statement in query.setup:
            execute(self.duck, statement)
        return query

    def query(self, entity: CheckedEntity) -> Query:
        """The entity's query. The crosswalks of those it refers to must be there."""
        if entity.name not in self._queries:
            self._queries[entity.name] = compile_entity(entity, self.checked.plan, self.crosswalks)
        return self._queries[entity.name]


class CrosswalkNotes:
    """An entity's crosswalk, written down batch by batch as the target takes it. Call `finish` or `drop`."""

    def __init__(self, preparer: Preparer, entity: CheckedEntity, path: Path) -> None:
        self._preparer, self._entity, self._path = preparer, entity, path
        with disk_errors():
            self._writer = pq.ParquetWriter(path, _CROSSWALK, compression="lz4")

    def add(self, rows: pa.Table) -> None:
        """Adds rows that are in the target: old_id, new_id, and replaced where that is among them."""
        nulls = pa.nulls(rows.num_rows, pa.string())
        columns = {name: rows[name] if name in rows.column_names else nulls for name in CROSSWALK_COLUMNS}
        with disk_errors():
            self._writer.write_table(pa.table(columns, schema=_CROSSWALK))

    def finish(self) -> None:
        """Has those that refer to the entity use these notes."""
        with disk_errors():
            self._writer.close()
        self._preparer.crosswalks[self._entity.name] = self._path

    def drop(self) -> None:
        """Throws the notes away: they are not the whole."""
        with suppress(OSError):  # what could not be written isn't missed
            self._writer.close()


def try_queries(paths: JobPaths, checked: CheckedPlan) -> None:
    """Binds each entity's query over one row of NULLs, so that what DuckDB refuses shows before a row is read.

    ExpressionError names the field.
    """
    preparer = Preparer(paths, checked, "check")
    try:
        nothing = paths.temp / "no-crosswalk.parquet"
        pq.write_table(_CROSSWALK.empty_table(), nothing)
        nowhere: Mapping[str, Path] = {e.name: nothing for e in checked.entities}
        for entity in checked.entities:
            for second in (False, True) if entity.deferred else (False,):
                error = _refusal(preparer.duck, entity, checked, nowhere, second)
                if error is not None:
                    alone = (replace(entity, fields=(field,)) for field in entity.fields)
                    guilty = (e for e in alone if _refusal(preparer.duck, e, checked, nowhere, second) is not None)
                    found = next(guilty, None)
                    raise ExpressionError(
                        f"the expression can't be executed: {error[:160]}",
                        where=found.fields[0].where if found else f"entities.{entity.name}.where",
                        advice="mend the expression; `migrate plan check FILE` tries it without moving anything",
                    )
    finally:
        preparer.close()


def _refusal(
    duck: duckdb.DuckDBPyConnection,
    entity: CheckedEntity,
    checked: CheckedPlan,
    nowhere: Mapping[str, Path],
    second: bool,
) -> str | None:
    """DuckDB's words where it refuses the entity's query; None where it takes it."""
    query = compile_entity(entity, checked.plan, nowhere, second_pass=second)
    for statement in query.setup:
        execute(duck, statement)
    try:
        duck.execute(query.over_nothing(stage_columns(entity))).fetchall()
    except duckdb.Error as error:
        return " ".join(str(error).split()).split(" Candidate functions")[0].split(" LINE ")[0]
    return None


def _write(path: Path, batches: Iterable[pa.RecordBatch]) -> None:
    with disk_errors(), pq.ParquetWriter(path, _CROSSWALK) as writer:
        for batch in batches:
            writer.write_batch(batch)
