"""SQL over a row of a customer's table in PostgreSQL: its name, what it holds, its hashes, and what finds it.

Builds statements and runs none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from psycopg import sql

from connectors.protocols import Column, Kind, Table, UniqueKey
from connectors.records import LoadedEntity

MERGED = sql.SQL("to_jsonb(x) -> 'merged' IS NOT DISTINCT FROM 'true'::jsonb")
"""Over a crosswalk row x: whether its source row was merged into another's target row. Where an older version made our
schema there is no such column, and none was."""

_HELD_AS_TEXT = (Kind.JSON, Kind.ARRAY, Kind.OTHER)


def name_of(table: Table) -> sql.Identifier:
    """The table's name for a statement, quoted and with its schema."""
    return (
        sql.Identifier(table.schema, table.relation) if table.schema else sql.Identifier(table.relation or table.name)
    )


def held_json(table: Table) -> sql.Composed:
    """What a row of the table, called t, holds, as one jsonb. Kinds that JSON would spell another way (spaces and
    repeated names of a json, bounds of an array, extensions' types) stand in it as their text."""
    whole: list[sql.Composable] = [sql.SQL("to_jsonb(t)")]
    for column in table.columns:
        if column.kind in _HELD_AS_TEXT:
            name = sql.Identifier(column.name)
            whole.append(sql.SQL("jsonb_build_object({}, t.{}::text)").format(sql.Literal(column.name), name))
    return sql.SQL(" || ").join(whole)


def held_value(column: Column, held: sql.Composable) -> sql.Composed:
    """The column's value in a jsonb that `held_json` made, in its own type; NULL where `held` is NULL."""
    return sql.SQL("({} ->> {})::{}").format(held, sql.Literal(column.name), sql.SQL(column.type))


@dataclass(frozen=True)
class FoundRow:
    """SQL over a target row t (all NULL where it is gone): whether it is there, the hash of what it holds, and that of
    its deferred references (NULL where all are)."""

    present: sql.Composed
    hash: sql.Composed
    reference: sql.Composed


def found_row(entity: LoadedEntity) -> FoundRow:
    """The hashes of an entity's rows, computed again from what the target holds now."""
    texts: list[sql.Composable] = []
    for each in entity.hashed:
        name = sql.Identifier(each.column.name)
        if each.deferred:
            texts.append(sql.SQL("chr(30)"))
        elif each.text:
            texts.append(sql.SQL("coalesce(t.{}::text, chr(30))").format(name))
        else:
            texts.append(sql.SQL("CASE WHEN t.{} IS NULL THEN chr(30) ELSE '~' END").format(name))
    deferred = [sql.Identifier(column.name) for column in entity.deferred]
    some = sql.SQL(" OR ").join(sql.SQL("t.{} IS NOT NULL").format(name) for name in deferred)
    listed = sql.SQL(", ").join(sql.SQL("coalesce(t.{}::text, chr(30))").format(name) for name in deferred)
    reference = (
        sql.SQL("CASE WHEN {} THEN md5(concat_ws(chr(31), {})) END").format(some, listed)
        if deferred
        else sql.Composed([sql.SQL("NULL::text")])
    )
    present = sql.SQL("t.{} IS NOT NULL").format(sql.Identifier(entity.identity[0].name))
    hashed = sql.SQL("CASE WHEN {} THEN md5(concat_ws(chr(31), {})) END").format(
        present, sql.SQL(", ").join(texts) if texts else sql.SQL("''")
    )
    return FoundRow(present, hashed, reference)


def same_row(identity: Sequence[Column], row: str = "t", listed: str = "u") -> sql.Composed:
    """The join of a target row with the new_id of a list or crosswalk, in the key's own types, so that an index of
    the target serves."""
    new_id = sql.Identifier(listed, "new_id")
    parts = [
        sql.SQL("{} = {}::{}").format(
            sql.Identifier(row, column.name),
            new_id if len(identity) == 1 else sql.SQL("split_part({}, chr(31), {})").format(new_id, sql.Literal(n)),
            sql.SQL(column.type),
        )
        for n, column in enumerate(identity, 1)
    ]
    return sql.SQL("({})").format(sql.SQL(" AND ").join(parts))


def shown_id(identity: Sequence[Column]) -> sql.Composed:
    """The new_id that the crosswalk would have of a target row t."""
    parts = [sql.SQL("t.{}::text").format(sql.Identifier(column.name)) for column in identity]
    return sql.SQL(" || chr(31) || ").join(parts)


def key_part(part: str, key: UniqueKey, table: Table) -> sql.Composable:
    """A part of a unique key over a row t of the table, as rows are compared by it: text that the server holds to be equal
    is so in lower case."""
    if part in key.columns:
        column = table.column(part)
        name = sql.Identifier("t", part)
        return name if column is None or column.exact else sql.SQL("lower({}::text)").format(name)
    return sql.SQL(part)
