"""Rows of the stage as they are, or as a person edited them: by number, a part at a time.

The stage itself never changes; what was edited is laid over what is read.
"""

from __future__ import annotations

import binascii
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from connectors.records import Edits, RetriedRow
from engine.check import CheckedEntity
from engine.compile import key_sql, left_out_sql, stage_columns
from engine.context import Context
from engine.expressions import Compiler
from engine.plan import parse_plan
from engine.query import read_parts
from engine.stage import part_path
from engine.transform import execute
from workspace.disk import disk_errors
from workspace.events import PlanChanged


def stage_rows(folder: Path, part: int, numbers: Collection[int], edits: Mapping[int, Edits]) -> pa.Table:
    """The rows of a part with these numbers, in order, with edited values in the place of theirs."""
    table = pq.read_table(part_path(folder, part))
    table = table.filter(pc.is_in(table["_ph_n"], pa.array(sorted(numbers), pa.int64())))
    places = {n: i for i, n in enumerate(table["_ph_n"].to_pylist())}
    changed: dict[str, dict[int, str | None]] = {}
    for n, values in edits.items():
        if n in places:
            for column, value in values.items():
                changed.setdefault(column, {})[places[n]] = value
    for column, by_place in changed.items():
        index = table.column_names.index(column)
        kind = table.schema.field(column).type
        binary = pa.types.is_binary(kind) or pa.types.is_large_binary(kind)
        values = table[column].to_pylist()
        for place, value in by_place.items():
            values[place] = binascii.unhexlify(value) if binary and value is not None else value
        table = table.set_column(index, pa.field(column, kind), pa.array(values, kind))
    return table


def write_stage_rows(path: Path, table: pa.Table) -> Path:
    """Puts rows where a transform can read them; they can be made again at any time."""
    with disk_errors():
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        pq.write_table(table, path, compression="lz4")
    return path


@dataclass(frozen=True)
class _Group:
    """Rows of parts that one `where` decides about: all of `parts` but those retried, and the `rows` given."""

    parts: list[int]
    rows: list[RetriedRow]


def stage_keys(
    ctx: Context, entity: CheckedEntity, duck: duckdb.DuckDBPyConnection, parts: Sequence[int], name: str
) -> None:
    """Makes the DuckDB table `name` of these parts: each staged row's number, its key, whether it is wanted by the
    `where` of the plan version that moved it, or that retried it with the values that were edited, and which of its
    conditions holds it back (NULL: none). Rows that a later generation took the place of are left out."""
    over = ctx.target.superseded_rows(entity.name)
    retried = [row for row in ctx.target.retried_rows(entity.name) if row.batch in set(parts) and row.row not in over]
    moved = {r.batch: r.plan_version for r in ctx.target.ledger() if r.entity == entity.name and r.step == 1}
    where = _wheres(ctx, entity)
    groups: dict[tuple[tuple[str, str], ...], _Group] = {}

    def group(version: int) -> _Group:
        return groups.setdefault(tuple(where.get(version, entity.plan.conditions).items()), _Group([], []))

    for part in parts:
        group(moved.get(part, -1)).parts.append(part)
    for row in retried:
        group(row.plan_version).rows.append(row)
    execute(duck, f"CREATE OR REPLACE TEMP TABLE {name} (n BIGINT, key VARCHAR, wanted BOOLEAN, why VARCHAR)")
    folder = ctx.paths.stage / entity.name
    left_out = pa.table({"n": pa.array([*over, *(row.row for row in retried)], pa.int64())})
    duck.register("left_out", left_out)
    for conditions, each in groups.items():
        if each.parts:
            source = f"SELECT * FROM {read_parts(part_path(folder, p) for p in each.parts)} WHERE _ph_n NOT IN (SELECT n FROM left_out)"
            execute(duck, f"INSERT INTO {name} {_keys(entity, dict(conditions), source)}")
        for part in sorted({row.batch for row in each.rows}):
            rows = [row for row in each.rows if row.batch == part]
            table = stage_rows(folder, part, [row.row for row in rows], {row.row: row.edited for row in rows})
            duck.register("retried_rows", table)
            execute(duck, f"INSERT INTO {name} {_keys(entity, dict(conditions), 'SELECT * FROM retried_rows')}")
            duck.unregister("retried_rows")
    duck.unregister("left_out")


def _keys(entity: CheckedEntity, conditions: Mapping[str, str], source: str) -> str:
    compiler = Compiler(stage_columns(entity))
    why = left_out_sql(conditions, compiler, entity.name)
    for level in compiler.hoists.levels:
        calls = ", ".join(f"{call} AS {name}" for call, name in level.items())
        source = f"SELECT *, {calls} FROM ({source})"
    return f"SELECT n, key, why IS NULL, why FROM (SELECT _ph_n AS n, {key_sql(entity)} AS key, {why} AS why FROM ({source}))"


def _wheres(ctx: Context, entity: CheckedEntity) -> dict[int, dict[str, str]]:
    """The conditions of the entity's `where` by plan version, as the log has them."""
    found: dict[int, dict[str, str]] = {}
    for entry in ctx.workspace.events(types=[PlanChanged]):
        event = entry.event
        if isinstance(event, PlanChanged):
            plan = parse_plan(event.plan, f"plan version {event.version}")
            if entity.name in plan.entities:
                found[event.version] = plan.entities[entity.name].conditions
    return found
