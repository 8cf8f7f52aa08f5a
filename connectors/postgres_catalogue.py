"""What a PostgreSQL database holds: tables, columns, keys, checks, triggers, in seven queries.

Reads pg_catalog and not information_schema, which hides expression indexes and what belongs to others.
Never reads a row of a user's table and never writes; works from PostgreSQL 10 on, made for 15 to 18.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import psycopg
import sqlglot
from psycopg.rows import namedtuple_row
from sqlglot import exp

from connectors.protocols import Catalogue, Column, ForeignKey, Kind, Table, UniqueKey
from workspace.errors import CatalogueError

_KINDS = {
    "int2": Kind.INTEGER,
    "int4": Kind.INTEGER,
    "int8": Kind.INTEGER,
    "numeric": Kind.DECIMAL,
    "float4": Kind.FLOAT,
    "float8": Kind.FLOAT,
    "bool": Kind.BOOLEAN,
    "text": Kind.TEXT,
    "varchar": Kind.TEXT,
    "bpchar": Kind.TEXT,
    "name": Kind.TEXT,
    "citext": Kind.TEXT,
    "date": Kind.DATE,
    "time": Kind.TIME,
    "timestamp": Kind.DATETIME,
    "timestamptz": Kind.INSTANT,
    "uuid": Kind.UUID,
    "json": Kind.JSON,
    "jsonb": Kind.JSON,
    "bytea": Kind.BINARY,
}
_BITS = {"int2": 16, "int4": 32, "int8": 64}

# Columns that only newer servers have are read through to_jsonb, so that one text serves them all.
_RELATIONS = """
SELECT c.oid, n.nspname AS schema, c.relname AS relation, c.relkind IN ('v', 'm') AS view,
       pg_table_is_visible(c.oid) AS visible, c.reltuples::float8 AS estimate,
       coalesce(obj_description(c.oid, 'pg_class'), '') AS comment,
       has_table_privilege(c.oid, 'SELECT') OR has_any_column_privilege(c.oid, 'SELECT') AS may_select,
       has_table_privilege(c.oid, 'INSERT') AS may_insert,
       has_table_privilege(c.oid, 'UPDATE') AS may_update,
       has_table_privilege(c.oid, 'DELETE') AS may_delete,
       row_security_active(c.oid) AS row_security
  FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
 WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND NOT c.relispartition
   AND n.nspname = ANY(coalesce(%(schemas)s::text[], current_schemas(false)::text[]))
   AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid
                      AND d.deptype = 'e')
 ORDER BY n.nspname, c.relname
"""

_COLUMNS = """
SELECT a.attrelid AS oid, a.attnum AS number, a.attname AS name, format_type(a.atttypid, a.atttypmod) AS type,
       a.atttypid AS type_oid, a.atttypmod AS modifier, a.attnotnull AS required,
       pg_get_expr(d.adbin, d.adrelid) AS default,
       coalesce(to_jsonb(a)->>'attgenerated', '') AS generated,
       a.attidentity::text AS identity,
       CASE WHEN a.attcollation <> t.typcollation THEN l.collname ELSE '' END AS collation,
       coalesce((to_jsonb(l)->>'collisdeterministic')::boolean, true) AS deterministic,
       coalesce(col_description(a.attrelid, a.attnum), '') AS comment,
       CASE WHEN a.attidentity <> '' OR d.oid IS NOT NULL
            THEN pg_get_serial_sequence(a.attrelid::regclass::text, a.attname) END AS sequence
  FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
  LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
  LEFT JOIN pg_collation l ON l.oid = a.attcollation
 WHERE a.attrelid = ANY(%(oids)s) AND a.attnum > 0 AND NOT a.attisdropped
 ORDER BY a.attrelid, a.attnum
"""

_TYPES = """
WITH RECURSIVE reached(oid) AS (
    SELECT unnest(%(types)s::oid[])
    UNION SELECT unnest(ARRAY[t.typbasetype, t.typelem]) FROM pg_type t JOIN reached r ON r.oid = t.oid
)
SELECT t.oid, t.typname AS name, t.typtype AS type, t.typcategory AS category, t.typelem AS element,
       t.typbasetype AS based_on, t.typtypmod AS modifier, t.typnotnull AS required,
       t.typdefault IS NOT NULL AS has_default, format_type(t.oid, NULL) AS spelling,
       ARRAY(SELECT e.enumlabel::text FROM pg_enum e
              WHERE e.enumtypid = t.oid ORDER BY e.enumsortorder) AS labels
  FROM pg_type t JOIN reached r ON r.oid = t.oid
"""

_UNIQUE_KEYS = """
SELECT i.indrelid AS oid, c.relname AS name, i.indisprimary AS primary, NOT i.indimmediate AS deferrable,
       coalesce((to_jsonb(i)->>'indnullsnotdistinct')::boolean, false) AS nulls_equal,
       pg_get_expr(i.indpred, i.indrelid) AS where,
       ARRAY(SELECT pg_get_indexdef(i.indexrelid, k, false)
               FROM generate_series(1, (to_jsonb(i)->>'indnkeyatts')::int) k ORDER BY k) AS expressions,
       ARRAY(SELECT i.indkey[k - 1]::int
               FROM generate_series(1, (to_jsonb(i)->>'indnkeyatts')::int) k ORDER BY k) AS numbers
  FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
 WHERE i.indrelid = ANY(%(oids)s) AND i.indisunique AND i.indisready
 ORDER BY i.indrelid, i.indisprimary DESC, c.relname
"""

_CONSTRAINTS = """
SELECT c.conrelid AS oid, c.conname AS name, c.contype AS type, c.condeferrable AS deferrable,
       c.condeferred AS deferred, c.conkey AS numbers, c.confkey AS referred_numbers, c.confrelid AS referred,
       pg_get_expr(c.conbin, c.conrelid) AS condition,
       n.nspname AS referred_schema, r.relname AS referred_relation,
       pg_table_is_visible(r.oid) AS referred_visible,
       ARRAY(SELECT a.attname::text FROM unnest(c.confkey) WITH ORDINALITY k(number, place)
               JOIN pg_attribute a ON a.attrelid = c.confrelid AND a.attnum = k.number
              ORDER BY k.place) AS referred_columns
  FROM pg_constraint c
  LEFT JOIN pg_class r ON r.oid = c.confrelid LEFT JOIN pg_namespace n ON n.oid = r.relnamespace
 WHERE c.conrelid = ANY(%(oids)s) AND c.contype IN ('c', 'f')
   AND coalesce((to_jsonb(c)->>'conenforced')::boolean, true)
 ORDER BY c.conrelid, c.conname
"""

_TRIGGERS = """
SELECT tgrelid AS oid, tgname AS name FROM pg_trigger
 WHERE tgrelid = ANY(%(oids)s) AND NOT tgisinternal AND tgenabled <> 'D' ORDER BY tgrelid, tgname
"""


@dataclass(frozen=True)
class _Type:
    """A pg_type row with its domains followed down to the base: what the column's values are."""

    kind: Kind
    name: str
    modifier: int
    labels: tuple[str, ...]
    element: Kind | None
    domain: str
    required: bool
    has_default: bool


def read_catalogue(connection: psycopg.Connection[Any], schemas: Sequence[str] | None = None) -> Catalogue:
    """All tables and views of `schemas`, by default of those on the connection's search_path.

    Partitions and what extensions own are left out. A table's name is qualified (`crm.people`) where
    the search_path does not lead to it. Raises CatalogueError when the server does not let us read
    its catalogue; an empty database gives an empty catalogue.
    """
    try:
        with connection.cursor(row_factory=namedtuple_row) as cursor:
            return _read(cursor, list(schemas) if schemas is not None else None)
    except psycopg.Error as error:
        raise CatalogueError(
            f"the catalogue cannot be read: {' '.join(str(error).split())[:200]}",
            where=connection.info.dbname if not connection.closed else "",
            advice="check that the user may CONNECT to the database and USE its schemas",
        ) from None


def _read(cursor: psycopg.Cursor[Any], schemas: list[str] | None) -> Catalogue:
    relations = cursor.execute(_RELATIONS, {"schemas": schemas}).fetchall()
    oids = {"oids": [r.oid for r in relations]}
    columns = _by_table(cursor.execute(_COLUMNS, oids))
    types = _types(cursor, {row.type_oid for rows in columns.values() for row in rows})
    unique_keys = _by_table(cursor.execute(_UNIQUE_KEYS, oids))
    constraints = _by_table(cursor.execute(_CONSTRAINTS, oids))
    triggers = _by_table(cursor.execute(_TRIGGERS, oids))
    version = cursor.execute("SELECT current_setting('server_version')").fetchone()
    tables = {}
    for relation in relations:
        oid = relation.oid
        names = {c.number: c.name for c in columns[oid]}
        keys = tuple(_unique_key(row, names) for row in unique_keys[oid])
        table = Table(
            name=plan_name(relation.schema, relation.relation, relation.visible),
            columns=tuple(_column(row, types) for row in columns[oid]),
            primary_key=next((key.columns for key in keys if key.primary), ()),
            foreign_keys=tuple(_foreign_key(row, names) for row in constraints[oid] if row.type == "f"),
            unique_keys=keys,
            checks=tuple(row.condition for row in constraints[oid] if row.type == "c"),
            rows_estimate=int(relation.estimate) if relation.estimate >= 0 and not relation.view else None,
            comment=relation.comment,
            schema=relation.schema,
            relation=relation.relation,
            view=relation.view,
            triggers=tuple(row.name for row in triggers[oid]),
            privileges=frozenset(
                verb for verb in ("select", "insert", "update", "delete") if getattr(relation, f"may_{verb}")
            ),
            row_security=relation.row_security,
        )
        tables[table.name] = table
    return Catalogue(dialect="postgres", tables=tables, server=f"PostgreSQL {version[0] if version else '?'}")


def read_result_columns(connection: psycopg.Connection[Any], result: psycopg.pq.abc.PGresult) -> tuple[Column, ...]:
    """The columns of a query's result. A result says nothing of NOT NULL, defaults and keys."""
    fields = [(result.fname(i) or b"", result.ftype(i), result.fmod(i)) for i in range(result.nfields)]
    with connection.cursor(row_factory=namedtuple_row) as cursor:
        types = _types(cursor, {oid for _, oid, _ in fields})
    columns = []
    for name, oid, modifier in fields:
        base = _resolve(oid, modifier, types)
        length, precision, scale = _measures(base.name, base.modifier)
        columns.append(
            Column(
                name=name.decode(),
                type=types[oid].spelling,
                kind=base.kind,
                length=length,
                precision=precision,
                scale=scale,
                bits=_BITS.get(base.name),
                labels=base.labels,
                element=base.element,
                domain=base.domain,
                exact=base.name != "citext",
                padded=base.name == "bpchar",
            )
        )
    return tuple(columns)


def plan_name(schema: str, relation: str, visible: bool) -> str:
    """What a plan calls a table: the bare name where the search_path leads to it, else `schema.name`."""
    return relation if visible else f"{schema}.{relation}"


def _types(cursor: psycopg.Cursor[Any], oids: set[int]) -> dict[int, Any]:
    return {row.oid: row for row in cursor.execute(_TYPES, {"types": list(oids)})}


def _by_table(rows: Iterable[Any]) -> defaultdict[int, list[Any]]:
    tables: defaultdict[int, list[Any]] = defaultdict(list)
    for row in rows:
        tables[row.oid].append(row)
    return tables


def _column(row: Any, types: dict[int, Any]) -> Column:
    base = _resolve(row.type_oid, row.modifier, types)
    length, precision, scale = _measures(base.name, base.modifier)
    return Column(
        name=row.name,
        type=row.type,
        kind=base.kind,
        nullable=not (row.required or base.required),
        length=length,
        precision=precision,
        scale=scale,
        bits=_BITS.get(base.name),
        labels=base.labels,
        element=base.element,
        has_default=bool(row.default or row.identity or base.has_default) and not row.generated,
        generated=bool(row.generated),
        comment=row.comment,
        default=None if row.generated else row.default,
        identity={"a": "always", "d": "by default"}.get(row.identity, ""),
        sequence=row.sequence or _sequence_of(row.default),
        domain=base.domain,
        collation=row.collation or "",
        exact=row.deterministic and base.name != "citext",
        padded=base.name == "bpchar",
    )


def _sequence_of(default: str | None) -> str:
    """The sequence that a default draws from, for a column that uses one without owning it."""
    found = re.fullmatch(r"nextval\('(.+)'::regclass\)", default or "")
    return found[1].replace("''", "'") if found else ""


def _resolve(oid: int, modifier: int, types: dict[int, Any]) -> _Type:
    """The type under a column's type. A domain's own modifier holds, the column has none then."""
    domain, required, has_default = "", False, False
    row = types[oid]
    while row.type == "d":
        domain = domain or row.spelling
        required = required or row.required
        has_default = has_default or row.has_default
        modifier = row.modifier
        row = types[row.based_on]
    labels, element, kind = tuple(row.labels), None, _KINDS.get(row.name, Kind.OTHER)
    if row.category == "A" and row.element:
        inner = _resolve(row.element, modifier, types)
        kind, element, labels = Kind.ARRAY, inner.kind, inner.labels
    elif row.type == "e":
        kind = Kind.ENUM
    return _Type(kind, row.name, modifier, labels, element, domain, required, has_default)


def _measures(name: str, modifier: int) -> tuple[int | None, int | None, int | None]:
    """Length in characters, precision, scale out of a type modifier; None where the type sets none."""
    name = name.removeprefix("_")
    if modifier < 0:
        return (1 if name == "bpchar" else None), None, None
    if name in ("varchar", "bpchar"):
        return modifier - 4, None, None
    if name == "numeric":
        scale = (modifier - 4) & 0x7FF
        return None, (modifier - 4) >> 16 & 0xFFFF, scale - 0x800 if scale > 0x3FF else scale
    if name in ("bit", "varbit"):
        return modifier, None, None
    if name in ("time", "timetz", "timestamp", "timestamptz"):
        return None, modifier, None
    return None, None, None


def _unique_key(row: Any, names: dict[int, str]) -> UniqueKey:
    columns: list[str] = []
    for expression, number in zip(row.expressions, row.numbers, strict=True):
        touched = [names[number]] if number else _touched(expression, names)
        columns += [name for name in touched if name not in columns]
    return UniqueKey(
        name=row.name,
        expressions=tuple(row.expressions),
        columns=tuple(columns),
        where=row.where,
        nulls_distinct=not row.nulls_equal,
        primary=row.primary,
        deferrable=row.deferrable,
    )


def _touched(expression: str, names: dict[int, str]) -> list[str]:
    """The columns in an index expression; all of the table's where it cannot be parsed, which is safe."""
    try:
        tree = sqlglot.parse_one(expression, read="postgres")
    except sqlglot.ParseError:
        return list(names.values())
    known = set(names.values())
    return [c.name for c in tree.find_all(exp.Column) if c.name in known]


def _foreign_key(row: Any, names: dict[int, str]) -> ForeignKey:
    return ForeignKey(
        name=row.name,
        columns=tuple(names[number] for number in row.numbers),
        referred_table=plan_name(row.referred_schema, row.referred_relation, row.referred_visible),
        referred_columns=tuple(row.referred_columns),
        deferrable=row.deferrable,
        deferred=row.deferred,
    )
