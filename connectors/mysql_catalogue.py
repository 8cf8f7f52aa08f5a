"""What a MySQL or MariaDB database holds, through SQLAlchemy's inspector, and what columns a SELECT gives.

Only metadata is read, never a row.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from typing import Any

from sqlalchemy import create_engine, inspect, types
from sqlalchemy.dialects import mysql
from sqlalchemy.dialects.mysql.base import ischema_names
from sqlalchemy.engine import Inspector
from sqlalchemy.engine.reflection import ObjectKind
from sqlalchemy.exc import SAWarning
from sqlalchemy.pool import NullPool

from connectors.protocols import Column, ForeignKey, Kind, Table, UniqueKey

_BITS = {"TINYINT": 8, "SMALLINT": 16, "MEDIUMINT": 24, "INT": 32, "BIGINT": 64, "YEAR": 16}
_GEOMETRY = ("GEOMETRY", "POINT", "LINESTRING", "POLYGON", "MULTI", "GEOM")
_NAMED = {"UUID": Kind.UUID, "JSON": Kind.JSON, "INET4": Kind.OTHER, "INET6": Kind.OTHER}

# First match counts: some of these classes are subclasses of others.
_KINDS: tuple[tuple[type[types.TypeEngine[Any]], Kind], ...] = (
    (mysql.ENUM, Kind.ENUM),
    (mysql.SET, Kind.TEXT),
    (mysql.YEAR, Kind.INTEGER),
    (types.JSON, Kind.JSON),
    (types.Uuid, Kind.UUID),
    (types.Integer, Kind.INTEGER),
    (types.Float, Kind.FLOAT),
    (types.Numeric, Kind.DECIMAL),
    (mysql.TIMESTAMP, Kind.INSTANT),
    (types.DateTime, Kind.DATETIME),
    (types.Date, Kind.DATE),
    (types.Time, Kind.TIME),
    (types.BINARY, Kind.BINARY),
    (types.VARBINARY, Kind.BINARY),
    (types.String, Kind.TEXT),
)

# The wire's type numbers, for the columns of a SELECT.
_WIRE = {
    0: ("decimal", Kind.DECIMAL, None),
    1: ("tinyint", Kind.INTEGER, 8),
    2: ("smallint", Kind.INTEGER, 16),
    3: ("int", Kind.INTEGER, 32),
    4: ("float", Kind.FLOAT, None),
    5: ("double", Kind.FLOAT, None),
    7: ("timestamp", Kind.INSTANT, None),
    8: ("bigint", Kind.INTEGER, 64),
    9: ("mediumint", Kind.INTEGER, 24),
    10: ("date", Kind.DATE, None),
    11: ("time", Kind.TIME, None),
    12: ("datetime", Kind.DATETIME, None),
    13: ("year", Kind.INTEGER, 16),
    14: ("date", Kind.DATE, None),
    16: ("bit", Kind.INTEGER, 64),
    245: ("json", Kind.JSON, None),
    246: ("decimal", Kind.DECIMAL, None),
    255: ("geometry", Kind.BINARY, None),
}
_NOT_NULL, _UNSIGNED, _ENUM, _SET = 1, 32, 256, 2048
_NO_FIXED_SCALE = 31
_NO_KEY: Any = {"constrained_columns": ()}


def read_tables(
    connect: Callable[[], Any], mariadb: bool, wanted: str | None = None, schema: str | None = None
) -> dict[str, Table]:
    """All tables and views of a schema (None: the connection's own) by name, or only the `wanted` one.

    A table that is not there is not in the answer; neither is a view over what is gone.
    """
    system = "mariadb" if mariadb else "mysql"
    engine = create_engine(f"{system}+mysqldb://", creator=connect, poolclass=NullPool)
    try:
        # SQLAlchemy warns of types and views it cannot read; they are told apart below
        with engine.connect() as connection, warnings.catch_warnings():
            warnings.simplefilter("ignore", SAWarning)
            estimates: dict[str, Any] = {
                row[0]: row[1:]
                for row in connection.exec_driver_sql(
                    "SELECT TABLE_NAME, TABLE_TYPE, TABLE_ROWS, TABLE_COMMENT FROM information_schema.TABLES"
                    " WHERE TABLE_SCHEMA = coalesce(%s, DATABASE())",
                    (schema,),
                )
            }
            spellings: dict[Any, tuple[str, str]] = {
                tuple(row[:2]): (row[2], row[3] or "")
                for row in connection.exec_driver_sql(
                    "SELECT TABLE_NAME, COLUMN_NAME, COLUMN_TYPE, COLLATION_NAME FROM information_schema.COLUMNS"
                    " WHERE TABLE_SCHEMA = coalesce(%s, DATABASE()) ORDER BY TABLE_NAME, ORDINAL_POSITION",
                    (schema,),
                )
            }
            return _tables(inspect(connection), estimates, spellings, wanted, schema)
    finally:
        engine.dispose()


def _tables(
    inspector: Inspector,
    estimates: dict[str, Any],
    spellings: dict[Any, tuple[str, str]],
    wanted: str | None,
    schema: str | None,
) -> dict[str, Table]:
    those: dict[str, Any] = {
        "schema": schema,
        "filter_names": [wanted] if wanted is not None else None,
        "kind": ObjectKind.ANY,
    }
    columns = inspector.get_multi_columns(**those)
    primary = inspector.get_multi_pk_constraint(**those)
    foreign = inspector.get_multi_foreign_keys(**those)
    indexes = inspector.get_multi_indexes(**those)
    tables = {}
    for place, found in columns.items():
        name = place[1]
        kind, rows, comment = estimates.get(name, ("BASE TABLE", None, ""))
        view = "VIEW" in kind
        key = tuple((primary.get(place) or _NO_KEY)["constrained_columns"])
        unique = [UniqueKey("PRIMARY", tuple(map(quote, key)), key, primary=True)] if key else []
        tables[name] = Table(
            name=f"{schema}.{name}" if schema else name,
            columns=_columns(name, [_unescaped(c) for c in found], spellings),
            primary_key=key,
            foreign_keys=tuple(
                ForeignKey(
                    f["name"] or "",
                    tuple(f["constrained_columns"]),
                    f["referred_table"],
                    tuple(f["referred_columns"]),
                )
                for f in foreign.get(place, [])
            ),
            unique_keys=(*unique, *_unique_keys(indexes.get(place, []))),
            rows_estimate=int(rows) if rows is not None and not view else None,
            comment="" if view else comment or "",
            schema=schema or "",
            relation=name,
            view=view,
        )
    return tables


def _columns(table: str, found: list[Any], spellings: dict[Any, tuple[str, str]]) -> tuple[Column, ...]:
    """All columns of a table. SQLAlchemy reads SHOW CREATE TABLE line by line and loses one with a line end in its
    name: of that one the type is known, and no more."""
    reflected = {column["name"] for column in found}
    lost = {}
    for at, name in enumerate(column for held_by, column in spellings if held_by == table):
        if name not in reflected and "\n" in name:
            word = re.split(r"\W", spellings[table, name][0], maxsplit=1)[0].lower()
            lost[at] = {"name": name, "type": ischema_names.get(word, types.NullType)(), "nullable": True}
    for at, column in sorted(lost.items()):
        found.insert(at, column)
    return tuple(_column(c, *spellings.get((table, c["name"]), ("", ""))) for c in found)


def _unescaped(column: Any) -> Any:
    """The column as SQLAlchemy reflects it, by its true name: it leaves a backtick doubled, as SHOW CREATE TABLE has it.

    A name that has two backticks side by side comes as four.
    """
    return {**column, "name": column["name"].replace("``", "`")}


def _unique_keys(indexes: list[Any]) -> list[UniqueKey]:
    """Unique indexes on whole columns; one on a prefix or an expression makes no row itself."""
    found = []
    for index in indexes:
        columns = tuple(index["column_names"])
        prefixed = any("length" in option for option in index.get("dialect_options", {}))
        if index["unique"] and None not in columns and not prefixed:
            found.append(UniqueKey(index["name"], tuple(map(quote, columns)), columns))
    return found


def _column(found: Any, spelled: str, collation: str) -> Column:
    type_ = found["type"]
    name = re.split(r"\W", spelled, maxsplit=1)[0].upper()
    kind = _kind(type_, name)
    length = getattr(type_, "length", None)
    return Column(
        name=found["name"],
        type=name.lower() if name in ("ENUM", "SET") else spelled,
        kind=kind,
        nullable=found["nullable"],
        length=length if "CHAR" in name or "BINARY" in name else None,
        precision=getattr(type_, "precision", None) if kind is Kind.DECIMAL else None,
        scale=getattr(type_, "scale", None) if kind in (Kind.DECIMAL, Kind.FLOAT) else None,
        bits=_BITS.get(name, 64) if kind is Kind.INTEGER else None,
        labels=tuple(getattr(type_, "enums", None) or getattr(type_, "values", None) or ()),
        has_default=found.get("default") is not None or bool(found.get("autoincrement") is True),
        generated=bool(found.get("computed")),
        comment=found.get("comment") or "",
        default=found.get("default"),
        unsigned=bool(getattr(type_, "unsigned", False)),
        collation=collation,
        exact=kind is not Kind.TEXT or collation.endswith("_bin"),
    )


def _kind(type_: types.TypeEngine[Any], name: str) -> Kind:
    if isinstance(type_, mysql.BIT):
        return Kind.BOOLEAN if (type_.length or 1) == 1 else Kind.INTEGER
    if name in _NAMED:
        return _NAMED[name]
    if "BLOB" in name or name.startswith(_GEOMETRY) or isinstance(type_, types.NullType):
        return Kind.BINARY
    return next((kind for class_, kind in _KINDS if isinstance(type_, class_)), Kind.OTHER)


def columns_of_result(result: Any) -> tuple[Column, ...]:
    """The columns of a result that was read with text as str and binary as bytes, which tells them apart."""
    described = zip(result.describe(), result.field_flags(), result.converter, strict=True)
    return tuple(_wire_column(*field) for field in described)


def _wire_column(described: tuple[Any, ...], flags: int, converter: object) -> Column:
    name, number, _, bytes_, _, decimals, _ = described
    type_, kind, bits = _WIRE.get(number, ("varchar", Kind.TEXT, None))
    if kind is Kind.TEXT:
        if converter is bytes:
            type_, kind = "varbinary", Kind.BINARY
        elif flags & _ENUM:
            type_, kind = "enum", Kind.ENUM
        elif flags & _SET:
            type_ = "set"
    if type_ == "bit" and bytes_ == 1:
        kind, bits = Kind.BOOLEAN, None
    fixed = decimals if kind in (Kind.DECIMAL, Kind.FLOAT) and decimals != _NO_FIXED_SCALE else None
    return Column(
        name=name,
        type=type_,
        kind=kind,
        nullable=not flags & _NOT_NULL,
        scale=fixed,
        bits=bits,
        unsigned=kind is Kind.INTEGER and bool(flags & _UNSIGNED),
        exact=kind is not Kind.TEXT,
    )


def quote(identifier: str) -> str:
    """The identifier in backticks."""
    return "`" + identifier.replace("`", "``") + "`"
