"""Rows that the target's unique keys can't hold side by side, found over the whole stage before the load.

The row with the lowest source key wins, whatever order batches commit in; the others are quarantined with
the key of the row they collide with. Keys that the target already holds lose to what is there.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import sqlglot
from psycopg import sql as pgsql
from sqlglot import exp

from connectors.postgres import PostgresTarget
from connectors.postgres_schema import SCHEMA
from connectors.protocols import UniqueKey
from engine.check import CheckedEntity
from engine.compile import LOADED
from engine.expressions import identifier, literal
from engine.stage import read_parts
from engine.transform import execute

SOURCE_KEY = "source key"
"""The `index` of rows that lost because another row has the same source key."""

SCHEMA_OF_LOSERS = pa.schema(
    [("_ph_n", pa.int64()), ("index", pa.string()), ("field", pa.string()), ("detail", pa.string())]
)


@dataclass(frozen=True)
class Comparison:
    """A unique key as DuckDB compares it over transformed columns: one expression a key part."""

    key: UniqueKey
    parts: tuple[str, ...]
    where: str | None


def comparisons(entity: CheckedEntity) -> list[Comparison]:
    """The unique keys of the target that can be compared before the load. The others (expressions that DuckDB
    can't repeat, columns the plan doesn't fill, deferred columns) are left to the target itself."""
    written = set(entity.written) - {f.column.name for f in entity.deferred}
    if entity.plan.id == "sequence" and entity.id_column is not None:
        written.discard(entity.id_column.name)
    found = []
    for key in entity.target.unique_keys:
        if not set(key.columns) <= written:
            continue
        try:
            parts = tuple(_translated(part, key, entity) for part in key.expressions)
            where = _translated(key.where, key, entity) if key.where else None
        except (ValueError, sqlglot.errors.SqlglotError):
            continue
        found.append(Comparison(key, parts, where))
    return found


_PLAIN = (exp.Lower, exp.Upper, exp.Trim, exp.Coalesce, exp.Concat, exp.DPipe, exp.Paren, exp.Literal, exp.Identifier,
          exp.Column, exp.Is, exp.Not, exp.Null, exp.And, exp.Or, exp.EQ, exp.NEQ, exp.Boolean, exp.Cast, exp.DataType)  # fmt: skip


def _translated(text: str, key: UniqueKey, entity: CheckedEntity) -> str:
    """A PostgreSQL index expression over transformed text columns. ValueError where it can't be repeated."""
    if text in key.columns:
        column = entity.target.column(text)
        return identifier(text) if column is None or column.exact else f"lower({identifier(text)})"
    tree = sqlglot.parse_one(text, read="postgres")
    for node in tree.walk():
        if not isinstance(node, _PLAIN):
            raise ValueError(text)
        if isinstance(node, exp.Cast) and not node.to.is_type("text", "varchar"):
            raise ValueError(text)
        if isinstance(node, exp.Column) and entity.target.column(node.name) is None:
            raise ValueError(text)
    return tree.sql("duckdb", identify=True)


def find_collisions(
    duck: duckdb.DuckDBPyConnection, entity: CheckedEntity, transformed: list[Path], out: Path, held: dict[str, Path]
) -> int:
    """Writes the losers (SCHEMA_OF_LOSERS) to `out`; how many there are.

    `transformed` are the entity's transformed parts, at least one; `held` gives, by index name, a Parquet of keys that
    the target holds already (k0, k1, …, deleted), as `held_keys` writes it.
    """
    checks = comparisons(entity)
    as_id = f", _ph_id AS {identifier(entity.id_column.name)}" if entity.id_column else ""
    rows = f"(SELECT *{as_id} FROM {read_parts(transformed)} WHERE _ph_outcome = {LOADED})"
    losers: dict[int, tuple[str, str, str]] = {}
    contested: dict[int, list[tuple[int, str, str]]] = {}
    if not _keyed_for_sure(entity):
        for n, _, group_number in execute(
            duck,
            f"SELECT _ph_n, _ph_key, min(_ph_n) OVER w AS g FROM {rows} WINDOW w AS (PARTITION BY _ph_key) QUALIFY count(*) OVER w > 1",
        ):
            if n != group_number:
                losers[n] = (SOURCE_KEY, ", ".join(entity.plan.key), "another row has the same source key")
    for number, check in enumerate(checks):
        if not entity.plan.key and check.key.primary:
            continue
        keys = ", ".join(f"{part} AS k{i}" for i, part in enumerate(check.parts))
        present = _present("", check)
        where = f"WHERE {check.where}" if check.where else ""
        keyed = f"(SELECT _ph_n, _ph_key, {keys} FROM {rows} AS r {where})"
        if path := held.get(check.key.name):
            same = " AND ".join(f"h.k{i} IS NOT DISTINCT FROM t.k{i}" for i in range(len(check.parts)))
            for n, deleted in execute(
                duck,
                f"SELECT t._ph_n, h.deleted FROM {keyed} t JOIN read_parquet({literal(str(path))}) h ON {same} WHERE {_present('t.', check)}",
            ):
                if check.key.primary and entity.plan.write == "upsert" and deleted != "true":
                    continue
                what = (
                    "held by a row that is marked as deleted"
                    if deleted == "true"
                    else "held by a row already in the target"
                )
                losers.setdefault(n, (check.key.name, ", ".join(check.key.columns), what))
        group = ", ".join(f"k{i}" for i in range(len(check.parts)))
        for n, key_text, group_number in execute(
            duck,
            f"SELECT _ph_n, _ph_key, g FROM (SELECT _ph_n, _ph_key, min(_ph_n) OVER w AS g, count(*) OVER w AS c "
            f"FROM {keyed} WHERE {present} WINDOW w AS (PARTITION BY {group})) WHERE c > 1 ORDER BY 1",
        ):
            contested.setdefault(n, []).append((number, f"{number}:{group_number}", key_text))
    taken: dict[str, str] = {}
    for n in sorted(contested):
        if n in losers:
            continue
        clash = next(((number, taken[g]) for number, g, _ in contested[n] if g in taken), None)
        if clash is not None:
            key = checks[clash[0]].key
            losers[n] = (key.name, ", ".join(key.columns), f"collides with source key {clash[1]}")
            continue
        for _, g, key_text in contested[n]:
            taken[g] = key_text
    table = pa.table(
        {
            "_ph_n": list(losers),
            "index": [v[0] for v in losers.values()],
            "field": [v[1] for v in losers.values()],
            "detail": [v[2] for v in losers.values()],
        },
        schema=SCHEMA_OF_LOSERS,
    )
    pq.write_table(table, out)
    return len(losers)


def _present(prefix: str, check: Comparison) -> str:
    if not check.key.nulls_distinct:
        return "true"
    return " AND ".join(f"{prefix}k{i} IS NOT NULL" for i in range(len(check.parts)))


def _keyed_for_sure(entity: CheckedEntity) -> bool:
    """True where the source itself keeps the key unique, or rows are numbered for lack of one."""
    key = set(entity.plan.key)
    declared = [set(entity.source.primary_key), *(set(u.columns) for u in entity.source.unique_keys if not u.where)]
    return not key or any(d and d <= key for d in declared)


def held_keys(target: PostgresTarget, entity: CheckedEntity, folder: Path, *, ours: bool) -> dict[str, Path]:
    """Fetches the keys the target's table holds in rows that are not ours, an index a Parquet file.

    Empty when the table is. `ours`: our schema is there, and rows in the entity's crosswalk are left out.
    """
    if target.is_empty(entity.target):
        return {}
    found: dict[str, Path] = {}
    marker = entity.plan.deleted
    reviving = marker is not None and marker.revive and entity.plan.write == "upsert"
    deleted = (
        pgsql.SQL("({} IS NOT NULL AND {}::text NOT IN ('false', '0'))::text").format(
            pgsql.Identifier(marker.column), pgsql.Identifier(marker.column)
        )
        if marker and not reviving
        else _guessed_marker(entity)
    )
    for check in comparisons(entity):
        names = [f"k{i}" for i in range(len(check.parts))]
        parts = [pgsql.SQL("({})::text").format(_key_part(part, check.key, entity)) for part in check.key.expressions]
        conditions: list[pgsql.Composable] = [pgsql.SQL(f"({check.key.where})")] if check.key.where else []
        if ours and entity.id_column is not None:
            conditions.append(
                pgsql.SQL("NOT EXISTS (SELECT 1 FROM {} x WHERE x.entity_id = {} AND x.new_id = t.{}::text)").format(
                    pgsql.Identifier(SCHEMA, "crosswalk"),
                    pgsql.Literal(target.entity_id(entity.name)),
                    pgsql.Identifier(entity.id_column.name),
                )
            )
        elif ours:
            joined = pgsql.SQL(" || chr(31) || ").join(
                pgsql.SQL("t.{}::text").format(pgsql.Identifier(c)) for c in entity.identity
            )
            conditions.append(
                pgsql.SQL("NOT EXISTS (SELECT 1 FROM {} x WHERE x.entity_id = {} AND x.new_id = {})").format(
                    pgsql.Identifier(SCHEMA, "crosswalk"), pgsql.Literal(target.entity_id(entity.name)), joined
                )
            )
        statement = pgsql.SQL("SELECT {}, {} FROM {} t {}").format(
            pgsql.SQL(", ").join(parts),
            deleted,
            target.name_of(entity.target),
            pgsql.SQL("WHERE ") + pgsql.SQL(" AND ").join(conditions) if conditions else pgsql.SQL(""),
        )
        path = folder / f"held-{len(found)}.parquet"
        names = [*names, "deleted"]
        with pq.ParquetWriter(path, pa.schema([(n, pa.string()) for n in names])) as writer:
            for batch in target.stream(statement, names):
                writer.write_batch(batch)
        found[check.key.name] = path
    return found


def _guessed_marker(entity: CheckedEntity) -> pgsql.Composable:
    """Where the plan names no deletion marker, a column called deleted_at tells; nothing else is guessed."""
    if entity.plan.deleted is None and entity.target.column("deleted_at") is not None:
        return pgsql.SQL("(deleted_at IS NOT NULL)::text")
    return pgsql.SQL("'false'::text")


def _key_part(part: str, key: UniqueKey, entity: CheckedEntity) -> pgsql.Composable:
    if part in key.columns:
        column = entity.target.column(part)
        name = pgsql.Identifier(part)
        return name if column is None or column.exact else pgsql.SQL("lower({}::text)").format(name)
    return pgsql.SQL(part)
