"""MySQL and MariaDB as a source, by mysqlclient, streaming the bytes that the server sends.

No value is interpreted: zero dates, unsigned and odd numbers come as their text, BIT as digits, binary as
it is, and text of any table's character set as UTF-8. Never writes, never locks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from sqlalchemy.exc import SQLAlchemyError

from connectors.dsn import Dsn
from connectors.grants import Grant, all_tables_read
from connectors.mysql_catalogue import columns_of_result, quote, read_tables
from connectors.mysql_connection import LOST, connect, connect_error, driver, error_parts, query_error, server_name
from connectors.mysql_grants import read_grants
from connectors.protocols import Catalogue, Column, Kind, Page, Table
from connectors.relation import after_key, from_clause, is_select, not_before, where_lacking
from connectors.rows import Shape, pages
from workspace.errors import CatalogueError, ConnectError, PackhorseError, SourceLostError

_NUMBER = re.compile(r"-?\d+(\.\d+)?([eE][-+]?\d+)?")
_NUMBERS = (Kind.INTEGER, Kind.DECIMAL, Kind.FLOAT, Kind.BOOLEAN)


class MysqlSource:
    """A MySQL or MariaDB database to read from.

    Pages and counts go by one connection in one read-only transaction, begun at the first of them: they
    are of one state, as far as the storage engine has states (`snapshot` is False where MyISAM or the like
    is among the tables). Everything else goes by a second connection. One stream at a time.
    """

    dialect = "mysql"
    notes: tuple[str, ...] = ()

    def __init__(self, dsn: Dsn) -> None:
        """Connects. ConnectError where that fails, UsageError where the driver is missing."""
        self.dsn = dsn.masked
        self._dsn = dsn
        self._module = driver()
        self._stream: Any = None
        self._unread: Any = None
        self._streaming = False
        self.answered: int | None = None
        self._asking = self._connect_to_ask()
        version, stateless = self.query(
            "SELECT VERSION(), (SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE()"
            " AND TABLE_TYPE = 'BASE TABLE' AND ENGINE NOT IN ('InnoDB', 'ROCKSDB', 'TokuDB'))"
        )[0]
        self.server = server_name(str(version))
        self.snapshot = stateless == 0

    def catalogue(self) -> Catalogue:
        """What is there, views included. CatalogueError where the server does not tell."""
        return Catalogue("mysql", self._tables(), self.server)

    def describe(self, relation: str) -> Table:
        """The columns of a table (`name`, or `database.name`) or of a SELECT."""
        if is_select(relation):
            return Table(name="", columns=self._columns_of_select(relation))
        schema, name = self._split(relation)
        found = self._tables(name, schema)
        if not found:
            # the server says best why: no such table, or no privilege
            self.query(f"SELECT 1 FROM {self._table(relation)} LIMIT 0")
            raise CatalogueError(f"{relation} cannot be described", where=self.dsn)
        return next(iter(found.values()))

    def count(self, relation: str, lacking: Sequence[str] = ()) -> int:
        """COUNT(*), or of the rows that lack one of some columns, in the state that the pages are of unless a stream
        is under way."""
        sql = f"SELECT COUNT(*) FROM {from_clause(relation, self.dialect, self._table)}{where_lacking(lacking, quote)}"
        if self._streaming:
            return int(str(self.query(sql)[0][0]))
        connection = self._reading()
        try:
            connection.query(sql.encode())
            return int(connection.store_result().fetch_row()[0][0])
        except self._module.Error as error:
            if error_parts(error)[0] in LOST:
                self._stream = None
            raise query_error(self._dsn, error) from None

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

        A row whose key is NULL, in any part, is in no page: compare the rows read with `count`. Where the
        server holds keys to be equal that differ in case or accents, and no unique index forbids such
        pairs, their bytes tell which comes first.
        """
        if self._streaming:
            raise RuntimeError("a source reads one stream at a time")
        table = self.describe(relation)
        named = {column.name: column for column in table.columns}
        if missing := [name for name in key if name not in named]:
            raise CatalogueError(f"there is no column {missing[0]} to be the key", where=self.dsn)
        unique = any(set(one.columns) <= set(key) for one in table.unique_keys)
        ordered = [named[name] for name in key]
        alike = [] if unique else [column for column in ordered if not column.exact]
        bound = None if since is None else (named[since[0]], since[1])
        columns = [column for column in table.columns if not only or column.name in only]
        sql = self._page_query(relation, columns, ordered, alike, after, bound)
        shape = Shape.of(
            [c.name for c in columns],
            [c.kind is Kind.BINARY for c in columns],
            key,
            [_is_single(c) for c in columns],
        )
        try:
            yield from pages(self._rows(sql), shape, size)
        except self._module.Error as error:
            raise self._stream_error(error) from None
        finally:
            self._end_stream()

    def grants(self, relations: Sequence[str] | None, user: str | None = None) -> list[Grant]:
        """The rights that reading needs; see `Source.grants`."""
        tables = None
        if relations is not None:
            tables = []
            for relation in all_tables_read(relations, self.dialect):
                schema, name = self._split(relation)
                tables.append(f"{quote(schema or self._dsn.database)}.{quote(name)}")
        return read_grants(self.query, self._readable, user, self._dsn.database, tables)

    def _readable(self, table: str) -> bool:
        try:
            self.query(f"SELECT * FROM {table} LIMIT 0")
        except ConnectError:
            return False
        return True

    def query(self, sql: str, parameters: Sequence[object] = ()) -> list[tuple[object, ...]]:
        """A small SELECT; placeholders are %s, and with parameters a literal % is written %%.

        Numbers come as int, float or Decimal, all else as str or bytes: a date is its text.
        """
        for attempt in (1, 2):
            cursor = self._asking.cursor()
            try:
                cursor.execute(sql, tuple(parameters) or None)
                return list(cursor.fetchall())
            except self._module.Error as error:
                # a connection that idled through a long load may be gone; a SELECT can be asked again
                if attempt == 2 or error_parts(error)[0] not in LOST:
                    raise query_error(self._dsn, error) from None
                self._asking = self._connect_to_ask()
        raise AssertionError

    def quote(self, identifier: str) -> str:
        """The identifier in backticks."""
        return quote(identifier)

    def close(self) -> None:
        """Ends the connections. Safe to call twice."""
        for connection in (self._asking, self._stream):
            if connection is not None and connection.open:
                connection.close()
        self._stream = None

    def _connect_to_ask(self) -> Any:
        from MySQLdb.constants import FIELD_TYPE
        from MySQLdb.converters import conversions

        dates = (FIELD_TYPE.DATE, FIELD_TYPE.DATETIME, FIELD_TYPE.TIMESTAMP, FIELD_TYPE.TIME)
        bits = {FIELD_TYPE.BIT: lambda value: int.from_bytes(value, "big")}
        return connect(self._dsn, conv={**conversions, **dict.fromkeys(dates, str), **bits}, use_unicode=True)

    def _reading(self) -> Any:
        """The connection that pages and counts go by, in a transaction since its first use."""
        if self._stream is None:
            self._stream = connect(self._dsn, conv={}, use_unicode=False)
            self._stream.query(b"START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY")
        return self._stream

    def _rows(self, sql: str) -> Any:
        """A function that fetches so many next rows of the query, as bytes."""
        connection = self._reading()
        self._streaming, self.answered = True, None
        try:
            connection.query(sql.encode())
            result = self._unread = connection.use_result()
        except self._module.Error as error:
            raise query_error(self._dsn, error) from None
        done = False

        def fetch(size: int) -> Sequence[Any]:
            nonlocal done
            rows: Sequence[Any] = () if done else result.fetch_row(size)
            done = len(rows) < size
            if done and self._streaming:
                self._streaming, self.answered = False, int(result.num_rows())
            return rows

        return fetch

    def _end_stream(self) -> None:
        """Leaves no half-read result: the driver reads on to its end, which may be hours of rows, when a result goes
        before its connection."""
        if self._streaming and self._stream is not None:
            self._streaming = False
            self._stream.close()
            self._stream = None
        self._unread = None

    def _stream_error(self, error: Exception) -> PackhorseError:
        number, message = error_parts(error)
        return SourceLostError(
            f"reading stopped: {self._dsn.redact(message)[:200]} ({number})",
            where=self.dsn,
            advice="`migrate resume` goes on where it stopped",
        )

    def _page_query(
        self,
        relation: str,
        columns: Sequence[Column],
        key: Sequence[Column],
        alike: Sequence[Column],
        after: tuple[str, ...] | None,
        since: tuple[Column, str] | None,
    ) -> str:
        sql = f"SELECT {', '.join(_as_text(column) for column in columns)} FROM {from_clause(relation, self.dialect, self._table)}"
        if not key:
            return sql
        ordered = [*map(_comparable, key), *map(_bytes_of, alike)]
        conditions = [f"{quote(column.name)} IS NOT NULL" for column in key if column.nullable]
        if since is not None:
            conditions.append(not_before(_comparable(since[0]), _literal(*since)))
        if after is not None:
            place = dict(zip((column.name for column in key), after, strict=True))
            literals = [_literal(column, place[column.name]) for column in key]
            literals += [f"x'{place[column.name].encode().hex()}'" for column in alike]
            conditions.append(after_key(ordered, literals))
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        return f"{sql}{where} ORDER BY {', '.join(ordered)}"

    def _columns_of_select(self, relation: str) -> tuple[Column, ...]:
        self.query("SELECT 1")  # makes the connection anew where it was lost
        try:
            self._asking.query(f"SELECT * FROM {from_clause(relation, self.dialect, self._table)} LIMIT 0".encode())
            return columns_of_result(self._asking.store_result())
        except self._module.Error as error:
            raise query_error(self._dsn, error) from None

    def _tables(self, wanted: str | None = None, schema: str | None = None) -> dict[str, Table]:
        try:
            return read_tables(self._connect_to_ask, "MariaDB" in self.server, wanted, schema)
        except SQLAlchemyError as error:
            cause = getattr(error, "orig", None)
            if isinstance(cause, self._module.Error):
                raise query_error(self._dsn, cause) from None
            raise CatalogueError(
                f"the catalogue cannot be read: {self._dsn.redact(str(error))[:200]}", where=self.dsn
            ) from None
        except self._module.Error as error:
            raise connect_error(self._dsn, error) from None

    def _split(self, relation: str) -> tuple[str | None, str]:
        """The schema, None for the connection's own, and the table: a name with a dot may be either."""
        if "." not in relation or self.query(
            "SELECT 1 FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = %s",
            (relation,),
        ):
            return None, relation
        schema, _, name = relation.partition(".")
        return schema, name

    def _table(self, relation: str) -> str:
        schema, name = self._split(relation)
        return f"{quote(schema)}.{quote(name)}" if schema else quote(name)


def _is_single(column: Column) -> bool:
    """Whether it is a FLOAT without a fixed scale, which the server cuts to six digits when it shows it."""
    return column.kind is Kind.FLOAT and column.type.startswith("float") and column.scale is None


def _as_text(column: Column) -> str:
    name = quote(column.name)
    if column.type.startswith("bit"):
        return f"CAST({name} AS UNSIGNED)"
    return f"CAST({name} AS DOUBLE)" if _is_single(column) else name


def _comparable(column: Column) -> str:
    """A key column as it is ordered and compared: itself, so that an index serves, where that is one order."""
    name = quote(column.name)
    if column.type.startswith("bit"):
        return f"CAST({name} AS UNSIGNED)"
    if column.kind is Kind.ENUM or column.type == "set":
        return f"CAST({name} AS CHAR)"  # ordered by number, but compared as text
    return f"CAST({name} AS DOUBLE)" if _is_single(column) else name


def _bytes_of(column: Column) -> str:
    """What sets apart the texts that the column's collation holds to be equal, trailing spaces among them."""
    return f"CAST(CONVERT({quote(column.name)} USING utf8mb4) AS BINARY)"


def _literal(column: Column, value: str) -> str:
    """A key's value as SQL: a number bare, since as text it would be compared as an inexact float."""
    if column.kind is Kind.BINARY:
        return f"x'{bytes.fromhex(value).hex()}'"
    if column.kind in _NUMBERS and _NUMBER.fullmatch(value):
        return value
    return f"_utf8mb4 x'{value.encode().hex()}'"
