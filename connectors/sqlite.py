"""SQLite as a source, by the standard library's driver, opened read-only.

A file may hold any value in any column, so types are what the columns declare and values are what is there:
all are read as text, but for columns declared binary. Text that is not UTF-8 (old imports) is read as
cp1252, byte for byte, and never stops a read. The catalogue comes from SQLite's pragmas: SQLAlchemy's
inspector parses the CREATE TABLE text and misses constraints there. Never writes to the file.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator, Sequence
from urllib.parse import quote as url_quote

from connectors.dsn import Dsn
from connectors.grants import Grant
from connectors.protocols import Catalogue, Column, ForeignKey, Kind, Page, Table, UniqueKey
from connectors.relation import after_key, from_clause, is_select, not_before, one_select, where_lacking
from connectors.rows import Shape, decode, pages
from workspace.errors import CatalogueError, ConnectError, SourceLostError

# The first word that a declared type contains decides, as with SQLite's own affinity.
_KINDS = (
    ("BOOL", Kind.BOOLEAN),
    ("TIMESTAMPTZ", Kind.INSTANT),
    ("DATETIME", Kind.DATETIME),
    ("TIMESTAMP", Kind.DATETIME),
    ("DATE", Kind.DATE),
    ("TIME", Kind.TIME),
    ("UUID", Kind.UUID),
    ("GUID", Kind.UUID),
    ("JSON", Kind.JSON),
    ("BLOB", Kind.BINARY),
    ("BINARY", Kind.BINARY),
    ("BYTEA", Kind.BINARY),
    ("INTERVAL", Kind.OTHER),
    ("POINT", Kind.OTHER),
    ("INT", Kind.INTEGER),
    ("SERIAL", Kind.INTEGER),
    ("REAL", Kind.FLOAT),
    ("FLOA", Kind.FLOAT),
    ("DOUB", Kind.FLOAT),
    ("DEC", Kind.DECIMAL),
    ("NUM", Kind.DECIMAL),
    ("MONEY", Kind.DECIMAL),
    ("CURRENCY", Kind.DECIMAL),
)
_SYSTEM_TABLE = "name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"


class SqliteSource:
    """A SQLite file to read from. All pages of one source are of one state of the file.

    That state is held from the first page until `close`: with a file that is not in WAL mode, writers
    wait for so long.
    """

    dialect = "sqlite"
    notes: tuple[str, ...] = ()
    answered: int | None = None
    snapshot = True

    def __init__(self, dsn: Dsn) -> None:
        """Opens the file. ConnectError where it is not there, cannot be read or is no SQLite file."""
        self.dsn = dsn.masked
        self._dsn = dsn
        self._stream: sqlite3.Connection | None = None
        self._asking = self._connect()
        self._asking.text_factory = decode
        try:
            self._asking.execute("SELECT count(*) FROM sqlite_master").fetchone()
        except sqlite3.Error as error:
            self._asking.close()
            raise self._refused(error) from None

    def catalogue(self) -> Catalogue:
        """What is there, views included. CatalogueError where the schema cannot be read."""
        tables = {}
        for name, view in self._names():
            try:
                tables[name] = self._table(name, view)
            except sqlite3.Error as error:
                if view:  # over a table that is gone; nobody can read it
                    continue
                raise CatalogueError(f"{name} cannot be read: {error}", where=self.dsn) from None
        return Catalogue("sqlite", tables, f"SQLite {sqlite3.sqlite_version}")

    def describe(self, relation: str) -> Table:
        """The columns of a table or of a SELECT. An expression's column has no declared type and is text."""
        if is_select(relation):
            return Table(name="", columns=self._columns_of_select(relation))
        for name, view in self._names():
            if name.casefold() == relation.casefold():
                return self._table(name, view)
        raise CatalogueError(
            f"there is no table {relation}", where=self.dsn, advice="`from` names a table or holds a SELECT"
        )

    def count(self, relation: str, lacking: Sequence[str] = ()) -> int:
        """COUNT(*), or of the rows that lack one of some columns, in the state that the pages are of."""
        counted = f"{from_clause(relation, self.dialect, self.quote)}{where_lacking(lacking, self.quote)}"
        rows = self._select(self._reading(), f"SELECT count(*) FROM {counted}")
        return int(rows.fetchone()[0])

    def pages(
        self,
        relation: str,
        key: Sequence[str],
        *,
        after: tuple[str, ...] | None,
        size: int,
        since: tuple[str, str] | None = None,
        only: Sequence[str] = (),
    ) -> Iterator[Page]:
        """Pages in key order by one streaming query; see `Source.pages`.

        A row whose key is NULL, in any part, is in no page: compare the rows read with `count`. A key
        column without a declared type is ordered as text, since text is what `after` can say.
        """
        columns = self.describe(relation).columns
        named = {column.name: column for column in columns}
        missing = [name for name in key if name not in named]
        if missing:
            raise CatalogueError(f"there is no column {missing[0]} to be the key", where=self.dsn)
        alike = [name for name in key if named[name].kind is not Kind.BINARY]
        ordered = [_comparable(named[name], self.quote(name)) for name in key]
        # the column's collation may hold different texts to be equal; SQLite passes over what a unique key makes needless
        ordered += [f"({_as_text(named[name], self.quote(name))}) COLLATE BINARY" for name in alike]
        conditions = [f"{self.quote(name)} IS NOT NULL" for name in key]
        parameters: list[object] = []
        if after is not None and key:
            marks = {name: f"?{i + 1}" for i, name in enumerate(key)}
            conditions.append(after_key(ordered, [marks[name] for name in (*key, *alike)]))
            parameters = [
                bytes.fromhex(value) if named[name].kind is Kind.BINARY else value
                for name, value in zip(key, after, strict=True)
            ]
        if since is not None:
            parameters.append(since[1])
            conditions.append(not_before(_comparable(named[since[0]], self.quote(since[0])), f"?{len(parameters)}"))
        columns = tuple(c for c in columns if not only or c.name in only)
        sql = (
            f"SELECT {', '.join(_as_text(c, self.quote(c.name)) for c in columns)}"
            f" FROM {from_clause(relation, self.dialect, self.quote)}"
            + (f" WHERE {' AND '.join(conditions)} ORDER BY {', '.join(ordered)}" if key else "")
        )
        rows = self._select(self._reading(), sql, parameters)
        shape = Shape.of([c.name for c in columns], [c.kind is Kind.BINARY for c in columns], key)
        try:
            yield from pages(rows.fetchmany, shape, size)
        except sqlite3.Error as error:
            raise SourceLostError(
                f"reading stopped: {error}",
                where=self.dsn,
                advice="`migrate resume` goes on where it stopped",
            ) from None
        finally:
            rows.close()

    def grants(self, relations: Sequence[str] | None, user: str | None = None) -> list[Grant]:
        """The rights that reading needs; see `Source.grants`. They are the system's: this source is open already."""
        return [Grant(f"read permission on {self._dsn.path}", "survey and reading")]

    def query(self, sql: str, parameters: Sequence[object] = ()) -> list[tuple[object, ...]]:
        """A small SELECT; placeholders are %s, and with parameters a literal % is written %%."""
        if parameters:
            sql = sql.replace("%%", "\0").replace("%s", "?").replace("\0", "%")
        return self._select(self._asking, sql, parameters).fetchall()

    def quote(self, identifier: str) -> str:
        """The identifier in double quotes."""
        return '"' + identifier.replace('"', '""') + '"'

    def close(self) -> None:
        """Ends the connections. Safe to call twice."""
        self._asking.close()
        if self._stream:
            self._stream.close()

    def _connect(self) -> sqlite3.Connection:
        path = self._dsn.path
        assert path is not None
        if not path.exists():
            raise ConnectError("no such file", where=self.dsn, advice="check the path in the DSN")
        try:
            # mode=ro and not immutable: another program may be writing to the file
            return sqlite3.connect(
                f"file:{url_quote(str(path.absolute()))}?mode=ro",
                uri=True,
                isolation_level=None,
                check_same_thread=False,
            )
        except sqlite3.Error as error:
            raise self._refused(error) from None

    def _refused(self, error: sqlite3.Error) -> ConnectError:
        advice = {
            "file is not a database": "is it a SQLite file, and not encrypted?",
            "database is locked": "end the program that writes to it, or read a copy",
            "attempt to write a readonly database": "its folder must be writable beside a -wal file",
        }.get(str(error), "check that it is a file that you may read")
        return ConnectError(f"SQLite cannot open the file: {error}", where=self.dsn, advice=advice)

    def _reading(self) -> sqlite3.Connection:
        """The connection that pages and counts go by, in a transaction since its first use."""
        if self._stream is None:
            self._stream = self._connect()
            self._stream.text_factory = bytes
            self._stream.execute("BEGIN")
        return self._stream

    def _select(self, connection: sqlite3.Connection, sql: str, parameters: Sequence[object] = ()) -> sqlite3.Cursor:
        try:
            return connection.execute(sql, tuple(parameters))
        except sqlite3.Error as error:
            raise CatalogueError(f"SQLite refuses the query: {error}", where=self.dsn) from None

    def _names(self) -> list[tuple[str, bool]]:
        """Tables and views by name, each with whether it is a view; no shadow tables of an index."""
        try:
            rows = self._asking.execute(
                f"SELECT name, type = 'view' FROM pragma_table_list"
                f" WHERE schema = 'main' AND type <> 'shadow' AND {_SYSTEM_TABLE} ORDER BY name"
            ).fetchall()
        except sqlite3.OperationalError:  # SQLite before 3.37
            rows = self._asking.execute(
                f"SELECT name, type = 'view' FROM sqlite_master"
                f" WHERE type IN ('table', 'view') AND {_SYSTEM_TABLE} ORDER BY name"
            ).fetchall()
        return [(name, bool(view)) for name, view in rows]

    def _columns(self, name: str, schema: str = "main") -> tuple[Column, ...]:
        rows = self._asking.execute(
            'SELECT name, type, "notnull", dflt_value, pk, hidden FROM pragma_table_xinfo(?, ?)'
            " WHERE hidden <> 1 ORDER BY cid",
            (name, schema),
        ).fetchall()
        return tuple(
            _column(column, declared, bool(required), default, bool(key), hidden in (2, 3))
            for column, declared, required, default, key, hidden in rows
        )

    def _columns_of_select(self, relation: str) -> tuple[Column, ...]:
        """A temporary view, which lies outside the file, shows what each column of a SELECT declares."""
        self._select(self._asking, "DROP VIEW IF EXISTS temp.packhorse_selection")
        self._select(self._asking, f"CREATE TEMP VIEW packhorse_selection AS {one_select(relation, self.dialect)}")
        self._select(self._asking, "SELECT * FROM packhorse_selection LIMIT 0")
        return self._columns("packhorse_selection", "temp")

    def _table(self, name: str, view: bool) -> Table:
        columns = self._columns(name)
        if view:
            return Table(name=name, columns=columns, relation=name, view=True)
        primary = self._primary_key(name)
        return Table(
            name=name,
            columns=columns,
            primary_key=primary,
            foreign_keys=self._foreign_keys(name),
            unique_keys=self._unique_keys(name, primary),
            relation=name,
        )

    def _primary_key(self, name: str) -> tuple[str, ...]:
        sql = "SELECT name FROM pragma_table_info(?) WHERE pk > 0 ORDER BY pk"
        return tuple(column for (column,) in self._asking.execute(sql, (name,)))

    def _foreign_keys(self, name: str) -> tuple[ForeignKey, ...]:
        sql = 'SELECT id, "table", "from", "to" FROM pragma_foreign_key_list(?) ORDER BY id DESC, seq'
        keys: dict[int, list[tuple[str, str, str | None]]] = {}
        for number, *pair in self._asking.execute(sql, (name,)):
            keys.setdefault(number, []).append(tuple(pair))
        return tuple(
            ForeignKey(
                name="",
                columns=tuple(column for _, column, _ in pairs),
                referred_table=pairs[0][0],
                referred_columns=tuple(to for _, _, to in pairs if to) or self._primary_key(pairs[0][0]),
            )
            for pairs in keys.values()
        )

    def _unique_keys(self, name: str, primary: tuple[str, ...]) -> tuple[UniqueKey, ...]:
        """Keys on plain columns; partial indexes and those on expressions say nothing about a source."""
        keys = {"": UniqueKey("", tuple(map(self.quote, primary)), primary, primary=True)} if primary else {}
        sql = (
            "SELECT l.name, i.name FROM pragma_index_list(?) l, pragma_index_info(l.name) i"
            " WHERE l.\"unique\" AND NOT l.partial AND l.origin <> 'pk' ORDER BY l.name, i.seqno"
        )
        found: dict[str, list[str | None]] = {}
        for index, column in self._asking.execute(sql, (name,)):
            found.setdefault(index, []).append(column)
        for index, names in found.items():
            columns = tuple(column for column in names if column is not None)
            if len(columns) == len(names):
                keys[index] = UniqueKey(index, tuple(map(self.quote, columns)), columns)
        return tuple(keys.values())


def _column(name: str, declared: str, required: bool, default: str | None, key: bool, generated: bool) -> Column:
    kind = next((kind for word, kind in _KINDS if word in declared.upper()), Kind.TEXT)
    sizes = [int(n) for n in re.findall(r"\d+", declared.partition("(")[2])]
    return Column(
        name=name,
        type=declared.lower(),
        kind=kind,
        nullable=not (required or (key and declared.upper() == "INTEGER")),
        length=sizes[0] if sizes and kind is Kind.TEXT else None,
        precision=sizes[0] if sizes and kind is Kind.DECIMAL else None,
        scale=(sizes[1] if len(sizes) > 1 else 0) if sizes and kind is Kind.DECIMAL else None,
        bits=64 if kind is Kind.INTEGER else None,
        has_default=default is not None,
        generated=generated,
        default=default,
    )


def affinity(column: Column) -> str:
    """SQLite's own rule for how a column holds and compares values."""
    declared = column.type.upper()
    if "INT" in declared:
        return "integer"
    if any(word in declared for word in ("CHAR", "CLOB", "TEXT")):
        return "text"
    if not declared or "BLOB" in declared:
        return "none"
    return "numeric"


def _as_text(column: Column, quoted: str) -> str:
    if column.kind is Kind.BINARY:
        return f"CAST({quoted} AS BLOB)"
    if affinity(column) == "text":
        return f"CAST({quoted} AS TEXT)"
    # SQLite writes a real with 15 digits; where that is another number, 17 are needed
    return (
        f"CASE WHEN typeof({quoted}) = 'real' AND CAST(CAST({quoted} AS TEXT) AS REAL) <> {quoted}"
        f" THEN printf('%!.17g', {quoted}) ELSE CAST({quoted} AS TEXT) END"
    )


def _comparable(column: Column, quoted: str) -> str:
    """A key column as it is ordered and compared: itself, so that an index serves, unless it has no type."""
    if column.kind is Kind.BINARY:
        return f"CAST({quoted} AS BLOB)"
    return f"CAST({quoted} AS TEXT)" if affinity(column) == "none" else quoted
