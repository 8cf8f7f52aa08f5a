"""SQLite as a target: one file, one writer at a time, each commit on the disk before it is told.

SQLite holds any value in any column and changes some on the way in. So what a column declares is held to before the
load (lengths, types, digits), a text that SQLite would make a number of is refused, and what a row holds is shown as
the text that was loaded by functions that are registered on the connection.
"""

from __future__ import annotations

import hashlib
import math
import os
import re
import sqlite3
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal, InvalidOperation
from typing import Any

import sqlalchemy as sa
from sqlalchemy.pool import NullPool

from connectors.grants import Grant, TableUse
from connectors.protocols import Catalogue, Column, Kind, RowsRefusedError, Table, TargetLostError, UniqueKey
from connectors.sql_removal import SqlRemoval
from connectors.sql_rows import BETWEEN, NOTHING, Sql
from connectors.sql_schema import PREFIX
from connectors.sqlite import SqliteSource, affinity
from workspace.errors import CatalogueError, JobFailedError

_DIGITS = 15
"""Significant digits of a number with a fraction that SQLite keeps as they are."""
_WAIT_SECONDS = 10
_NUMBER = re.compile(r"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*")
_NOT_AS_IT_IS = "user-defined function raised exception"


class SqliteTarget(SqlRemoval):
    """A SQLite file to write to."""

    _begin = "BEGIN IMMEDIATE"

    def _make_engine(self) -> sa.Engine:
        return sa.create_engine("sqlite://", creator=self._open, poolclass=NullPool, isolation_level="AUTOCOMMIT")

    def _open(self) -> sqlite3.Connection:
        path = self._dsn.path
        assert path is not None
        connection = sqlite3.connect(
            f"{path.expanduser().absolute().as_uri()}?mode=rw", uri=True, isolation_level=None, timeout=_WAIT_SECONDS,
            check_same_thread=False,
        )  # fmt: skip
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA synchronous = FULL")
        for name, function in _FUNCTIONS.items():
            connection.create_function(name, -1, function, deterministic=True)
        return connection

    def server(self) -> str:
        """Product and version."""
        return f"SQLite {sqlite3.sqlite_version}"

    def grants(self, uses: Sequence[TableUse] | None, user: str | None = None) -> list[Grant]:
        """The rights that a job needs; see `Target.grants`. They are the system's."""
        path = self._dsn.path
        assert path is not None
        missing = () if os.access(path, os.W_OK) and os.access(path.absolute().parent, os.W_OK) else ("write",)
        return [Grant(f"write permission on {path} and its folder", "loading, and all else", "job", missing)]

    def catalogue(self) -> Catalogue:
        """What is there, our own tables left out. ConnectError."""
        source = SqliteSource(self._dsn)
        try:
            found = source.catalogue()
            texts: dict[str, str] = dict(source.query("SELECT name, coalesce(sql, '') FROM sqlite_master"))  # type: ignore[arg-type]
            loose = source.query(
                "SELECT m.name, i.name FROM sqlite_master m, pragma_index_list(m.name) l, pragma_index_xinfo(l.name) i "
                "WHERE m.type = 'table' AND i.key AND i.coll <> 'BINARY'"
            )
        finally:
            source.close()
        tables = {
            name: _target_table(table, texts.get(name, ""), {str(c) for t, c in loose if t == name})
            for name, table in found.tables.items()
            if not name.startswith(PREFIX)
        }
        return Catalogue("sqlite", tables, found.server)

    def _insert_staged(self, table: Table, columns: Sequence[str], r: sa.TableClause) -> None:
        super()._insert_staged(table, columns, r)
        self._refuse_orphans(table, columns, r)

    def _refuse_orphans(self, table: Table, columns: Sequence[str], r: sa.TableClause) -> None:
        """SQLite looks at deferred foreign keys when all is committed, and tells no row: they are looked at here."""
        for key in table.foreign_keys:
            if key.deferred and set(key.columns) <= set(columns):
                parent = sa.table(key.referred_table, *map(sa.column, key.referred_columns))
                same = [
                    parent.c[there] == self._stored(_typed(table, here), r.c[here])
                    for here, there in zip(key.columns, key.referred_columns, strict=True)
                ]
                lone = sa.select(r.c["_ph_i"]).where(
                    *(r.c[name].is_not(None) for name in key.columns),
                    ~sa.select(sa.literal(1)).select_from(parent).where(*same).exists(),
                )
                if found := self.read(lone.order_by(r.c["_ph_i"]).limit(1)):
                    raise RowsRefusedError(
                        "foreign_key", f"no row of {key.referred_table} is referred to", column=", ".join(key.columns),
                        line=found[0][0],
                    )  # fmt: skip

    # -- values -----------------------------------------------------------------------------------

    def _stored(self, column: Column, text: Sql) -> Sql:
        if column.kind is Kind.INTEGER:
            return sa.cast(text, sa.Integer)
        if column.kind is Kind.BOOLEAN:
            return sa.case((text == "true", 1), (text == "false", 0))
        if column.kind is Kind.BINARY:
            return sa.func.packhorse_bytes(text)
        if column.kind is Kind.FLOAT:
            return sa.func.packhorse_real(text)
        if column.kind is Kind.DECIMAL:
            return sa.func.packhorse_number(text)
        return text if affinity(column) in ("text", "none") else sa.func.packhorse_text(text)

    def _shown(self, column: Column, value: Sql) -> Sql:
        if column.kind is Kind.BOOLEAN:
            return sa.case((value == 1, "true"), (value == 0, "false"), else_=sa.cast(value, sa.Text))
        if column.kind is Kind.BINARY:
            return sa.literal("\\x").concat(sa.func.lower(sa.func.hex(value)))
        if column.kind is Kind.FLOAT:
            return sa.case((value.is_not(None), sa.func.printf("%!.17g", value)))
        if column.kind is Kind.DECIMAL:
            return sa.func.packhorse_decimal(value, -1 if column.precision is None else column.scale or 0)
        return sa.cast(value, sa.Text)

    def _digest(self, texts: Sequence[Sql]) -> Sql:
        return sa.func.packhorse_hash(*texts)

    def _split(self, text: Sql, number: int) -> Sql:
        return sa.func.packhorse_part(text, number)

    # -- errors -----------------------------------------------------------------------------------

    def _told(self, error: Exception) -> Exception:
        message = " ".join(str(error).split())[:300]
        code = getattr(error, "sqlite_errorcode", 0)
        name = getattr(error, "sqlite_errorname", "")
        if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
            return TargetLostError(f"another program writes to the file: {message}", where=self.dsn)
        if isinstance(error, sqlite3.ProgrammingError) and "closed" in message:
            return TargetLostError(message)
        if name == "SQLITE_TOOBIG" or message == _NOT_AS_IT_IS:
            return RowsRefusedError("cast", "SQLite would not keep a value as it is")
        if code & 0xFF == sqlite3.SQLITE_CONSTRAINT:
            return _refused(name, message)
        if name.startswith("SQLITE_READONLY"):
            return CatalogueError(
                f"the file can't be written to: {message}", where=self.dsn, advice="see whose file it is"
            )
        full = name.startswith("SQLITE_FULL")
        advice = "free some space and run `migrate resume`" if full else "mend the cause and run `migrate resume`"
        return JobFailedError(f"SQLite failed: {message}", where=self.dsn, advice=advice)


def _refused(name: str, message: str) -> RowsRefusedError:
    said, _, about = message.partition(": ")
    columns = ", ".join(each.rpartition(".")[2] for each in about.split(", "))
    if name in ("SQLITE_CONSTRAINT_UNIQUE", "SQLITE_CONSTRAINT_PRIMARYKEY", "SQLITE_CONSTRAINT_ROWID"):
        return RowsRefusedError(
            "unique", message, constraint=about, column="" if about.startswith("index") else columns
        )
    if name == "SQLITE_CONSTRAINT_NOTNULL":
        return RowsRefusedError("required", message, column=columns)
    if name == "SQLITE_CONSTRAINT_CHECK":
        return RowsRefusedError("check", message, constraint=about)
    if name == "SQLITE_CONSTRAINT_FOREIGNKEY":
        return RowsRefusedError("foreign_key", said)
    if name == "SQLITE_CONSTRAINT_DATATYPE":
        return RowsRefusedError("cast", message, column=message.rpartition(".")[2])
    return RowsRefusedError("trigger" if name == "SQLITE_CONSTRAINT_TRIGGER" else "database", message)


def _target_table(table: Table, text: str, loose: set[str]) -> Table:
    """The table as rows go into it: what fills its key by itself, which numbers it keeps, how it compares."""
    numbered = (
        table.primary_key[0]
        if len(table.primary_key) == 1 and re.search(r"\binteger\b", _declared(table, table.primary_key[0]))
        else ""
    )
    columns = []
    for column in table.columns:
        if column.name == numbered:
            column = replace(column, nullable=False, has_default=True, sequence=f"{table.name}.{column.name}")
        if column.kind is Kind.DECIMAL:
            if column.precision is None:
                column = replace(column, bare=True)
            else:
                column = replace(column, precision=min(column.precision, _DIGITS))
        columns.append(replace(column, exact=column.name not in loose))
    deferred = bool(re.search(r"\bINITIALLY\s+DEFERRED\b", text, re.IGNORECASE))
    return replace(
        table,
        columns=tuple(columns),
        foreign_keys=tuple(replace(key, deferrable=deferred, deferred=deferred) for key in table.foreign_keys),
        unique_keys=tuple(
            UniqueKey(key.name or "primary key", key.columns, key.columns, primary=key.primary)
            for key in table.unique_keys
        ),
    )


def _declared(table: Table, name: str) -> str:
    return _typed(table, name).type


def _typed(table: Table, name: str) -> Column:
    column = table.column(name)
    assert column is not None
    return column


# -- functions of SQL -----------------------------------------------------------------------------


def _hash(*texts: str | None) -> str:
    return hashlib.md5(BETWEEN.join(NOTHING if text is None else text for text in texts).encode()).hexdigest()


def _part(text: str | None, number: int) -> str | None:
    parts = (text or "").split(BETWEEN)
    return parts[number - 1] if text is not None and number <= len(parts) else None


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else bytes.fromhex(text.removeprefix("\\x"))


def _real(text: str | None) -> float | None:
    number = None if text is None else float(text)
    if number is not None and not math.isfinite(number):
        raise ValueError(text)
    return number


def _number(text: str | None) -> int | float | None:
    """The number as SQLite keeps it; ValueError where that is another."""
    if text is None:
        return None
    exact = Decimal(text)
    if exact == exact.to_integral_value() and abs(exact) < 2**53:
        return int(exact)
    number = float(text)
    if not math.isfinite(number) or Decimal(repr(number)) != exact:
        raise ValueError(text)
    return number


def _decimal(value: Any, scale: int) -> str | None:
    """A number with that many digits after the point; as few as it has where `scale` is below 0."""
    if value is None:
        return None
    try:
        number = Decimal(repr(value) if isinstance(value, float) else str(value))
    except InvalidOperation:
        return str(value)
    text = f"{number:f}" if scale < 0 else f"{number:.{scale}f}"
    if scale < 0 and "." in text:
        text = text.rstrip("0").rstrip(".")
    return text.removeprefix("-") if not number else text


def _text(text: str | None) -> str | None:
    """A text that SQLite keeps, in a column that makes numbers of what looks like one."""
    if text is not None and _NUMBER.fullmatch(text) and str(_number(text)) != text:
        raise ValueError(text)
    return text


_FUNCTIONS: dict[str, Any] = {
    "packhorse_hash": _hash, "packhorse_part": _part, "packhorse_bytes": _bytes, "packhorse_real": _real,
    "packhorse_number": _number, "packhorse_decimal": _decimal, "packhorse_text": _text,
}  # fmt: skip
