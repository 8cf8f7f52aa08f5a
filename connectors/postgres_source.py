"""PostgreSQL as a source: COPY out of one read-only snapshot, parsed by Arrow a page at a time.

No value is interpreted: all come as the text that COPY sends, NULL and '' kept apart, bytea as bytes.
Never writes, and holds no lock but that of a reader.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from typing import Any

import psycopg
import pyarrow as pa
from psycopg import errors, sql

from connectors.dsn import Dsn
from connectors.grants import Grant, all_tables_read
from connectors.postgres_catalogue import plan_name, read_catalogue, read_result_columns
from connectors.postgres_connection import connect
from connectors.postgres_csv import read_rows
from connectors.postgres_grants import source_grants
from connectors.protocols import Catalogue, Kind, Page, Table
from connectors.relation import after_key, from_clause, is_select, not_before, where_lacking
from connectors.rows import Shape, to_text
from workspace.errors import CatalogueError, ConnectError, PackhorseError, SourceLostError

# What a value's text looks like must not hang on the server's or the user's settings, and a long read must
# not end because of them. Where policies would hide rows from us, row_security = off makes that an error.
_SETTINGS = {
    "client_encoding": "UTF8",
    "datestyle": "ISO, YMD",
    "timezone": "UTC",
    "extra_float_digits": "3",
    "bytea_output": "hex",
    "row_security": "off",
    "statement_timeout": "0",
    "idle_in_transaction_session_timeout": "0",
    "idle_session_timeout": "0",
    "transaction_timeout": "0",
}
_GONE = (psycopg.OperationalError, psycopg.InterfaceError)


class PostgresSource:
    """A PostgreSQL database to read from.

    Pages and counts go by one connection in one REPEATABLE READ transaction, begun at the first of them:
    they are of one state. Everything else goes by a second connection. One stream at a time.
    """

    dialect = "postgres"
    notes: tuple[str, ...] = ()
    snapshot = True

    def __init__(self, dsn: Dsn) -> None:
        """Connects. ConnectError where that fails."""
        self.dsn = dsn.masked
        self._dsn = dsn
        self._stream: psycopg.Connection[tuple[Any, ...]] | None = None
        self._streaming = False
        self.answered: int | None = None
        self._asking = self._connect()

    def catalogue(self) -> Catalogue:
        """What is there, on the search_path, views included."""
        self._ask("SELECT 1")
        try:
            return read_catalogue(self._asking)
        except CatalogueError as error:
            error.where = self.dsn
            raise

    def describe(self, relation: str) -> Table:
        """The columns of a table (`name`, or `schema.name`) or of a SELECT."""
        if not is_select(relation):
            schema, name, visible = self._find(relation)
            found = read_catalogue(self._asking, [schema]).tables.get(plan_name(schema, name, visible))
            if found:
                return replace(found, name=relation)
        cursor = self._ask(f"SELECT * FROM {from_clause(relation, self.dialect, self._table)} LIMIT 0")
        assert cursor.pgresult is not None
        columns = read_result_columns(self._asking, cursor.pgresult)
        names = [column.name for column in columns]
        if twice := [name for name in names if names.count(name) > 1]:
            raise CatalogueError(
                f"the SELECT gives two columns the name {twice[0]}", where=self.dsn, advice="name one with AS"
            )
        return Table(name="" if is_select(relation) else relation, columns=columns)

    def count(self, relation: str, lacking: Sequence[str] = ()) -> int:
        """COUNT(*), or of the rows that lack one of some columns, in the state that the pages are of unless a stream
        is under way."""
        counted = f"{from_clause(relation, self.dialect, self._table)}{where_lacking(lacking, self.quote)}"
        query = f"SELECT count(*) FROM {counted}"
        connection = None if self._streaming else self._reading()
        row = self._ask(query, connection=connection).fetchone()
        return int(row[0]) if row else 0

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
        """Pages in key order out of one COPY; see `Source.pages`.

        A row whose key is NULL, in any part, is in no page: compare the rows read with `count`. Where the
        server holds different keys to be equal (citext, some collations), and no unique index forbids such
        pairs, their bytes tell which comes first.
        """
        if self._streaming:
            raise RuntimeError("a source reads one stream at a time")
        table = self.describe(relation)
        named = {column.name: column for column in table.columns}
        if missing := [name for name in key if name not in named]:
            raise CatalogueError(f"there is no column {missing[0]} to be the key", where=self.dsn)
        unique = any(
            set(one.columns) <= set(key) and one.where is None and len(one.expressions) == len(one.columns)
            for one in table.unique_keys
        )
        alike = () if unique else tuple(name for name in key if not named[name].exact)
        columns = [column for column in table.columns if not only or column.name in only]
        shape = Shape.of([c.name for c in columns], [c.kind is Kind.BINARY for c in columns], key)
        with closing(self._copy(self._page_query(relation, shape, alike, after, since), shape, size)) as found:
            yield from found

    def grants(self, relations: Sequence[str] | None, user: str | None = None) -> list[Grant]:
        """The rights that reading needs; see `Source.grants`."""
        if relations is None:
            schemas = [str(row[0]) for row in self.query("SELECT unnest(current_schemas(false))")]
            return source_grants(self.query, user, schemas or ["public"], None)
        tables = [self._named(name) for name in all_tables_read(relations, self.dialect)]
        return source_grants(self.query, user, [], tables)

    def _named(self, relation: str) -> Table:
        schema, name, _ = self._find(relation)
        hidden = self.query(
            "SELECT row_security_active(c.oid) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
            "WHERE (n.nspname, c.relname) = (%s, %s)",
            [schema, name],
        )
        return Table(relation, (), schema=schema, relation=name, row_security=bool(hidden[0][0]))

    def query(self, sql: str, parameters: Sequence[object] = ()) -> list[tuple[object, ...]]:
        """A small SELECT; placeholders are %s, and with parameters a literal % is written %%."""
        return list(self._ask(sql, parameters).fetchall())

    def quote(self, identifier: str) -> str:
        """The identifier in double quotes."""
        return '"' + identifier.replace('"', '""') + '"'

    def close(self) -> None:
        """Ends the connections. Safe to call twice."""
        self._asking.close()
        if self._stream is not None:
            self._stream.close()

    def _connect(self) -> psycopg.Connection[tuple[Any, ...]]:
        connection = connect(self._dsn)
        connection.execute(
            "SELECT set_config(s.name, wanted.value, false)"
            " FROM unnest(%s::text[], %s::text[]) AS wanted(name, value)"
            " JOIN pg_settings s ON lower(s.name) = wanted.name",
            (list(_SETTINGS), list(_SETTINGS.values())),
        )
        connection.execute("SET default_transaction_read_only = on")
        return connection

    def _reading(self) -> psycopg.Connection[tuple[Any, ...]]:
        """The connection that pages and counts go by, in a transaction since its first use."""
        if self._stream is None or self._stream.closed:
            self._stream = self._connect()
            self._stream.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        return self._stream

    def _ask(
        self,
        query: str,
        parameters: Sequence[object] = (),
        connection: psycopg.Connection[tuple[Any, ...]] | None = None,
    ) -> psycopg.Cursor[tuple[Any, ...]]:
        try:
            return (connection or self._asking).execute(_sql(query), tuple(parameters) or None)
        except psycopg.Error as error:
            if connection is not None:
                connection.close()  # its transaction is over; the next read begins another
            elif self._asking.broken or self._asking.closed:
                # a connection that idled through a long load may be gone; a SELECT can be asked again
                self._asking = self._connect()
                return self._ask(query, parameters, self._asking)
            raise self._refused(error) from None

    def _refused(self, error: psycopg.Error) -> PackhorseError:
        message = self._dsn.redact(str(error).partition("\nLINE ")[0])[:300]
        if isinstance(error, errors.InsufficientPrivilege):
            return ConnectError(
                f"the user lacks a privilege: {message}",
                where=self.dsn,
                advice="ask for GRANT SELECT, and for BYPASSRLS where a policy hides rows",
            )
        if isinstance(error, _GONE) and not isinstance(error, errors.QueryCanceled):
            return ConnectError(f"the connection was lost: {message}", where=self.dsn, advice="run it again")
        return CatalogueError(
            f"the server refuses the query: {message}", where=self.dsn, advice="check the query in the plan"
        )

    def _find(self, relation: str) -> tuple[str, str, bool]:
        """Schema, name, and whether the search_path leads there. A name with a dot may be either."""
        cursor = self._ask(
            "SELECT n.nspname, c.relname, pg_table_is_visible(c.oid)"
            " FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
            " WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND"
            " ((c.relname = %s AND pg_table_is_visible(c.oid)) OR n.nspname || '.' || c.relname = %s)"
            " ORDER BY pg_table_is_visible(c.oid) DESC LIMIT 1",
            (relation, relation),
        )
        found = cursor.fetchone()
        if found is None:
            raise CatalogueError(
                f"there is no table {relation}",
                where=self.dsn,
                advice="check its name; a table off the search_path is schema.name",
            )
        return found[0], found[1], found[2]

    def _table(self, relation: str) -> str:
        schema, name, _ = self._find(relation)
        return f"{self.quote(schema)}.{self.quote(name)}"

    def _page_query(
        self,
        relation: str,
        shape: Shape,
        alike: Sequence[str],
        after: tuple[str, ...] | None,
        since: tuple[str, str] | None,
    ) -> str:
        query = (
            f"SELECT {', '.join(map(self.quote, shape.names))} FROM {from_clause(relation, self.dialect, self._table)}"
        )
        if not shape.key:
            return query
        ordered = [self.quote(shape.names[i]) for i in shape.key]
        # concat gives the text that COPY sends, where a cast would cut the spaces off a char(n)
        by = [*ordered, *(f'concat({self.quote(name)}) COLLATE "C"' for name in alike)]
        conditions = [f"{name} IS NOT NULL" for name in ordered]
        if since is not None:
            conditions.append(not_before(self.quote(since[0]), sql.Literal(since[1]).as_string(self._asking)))
        if after is not None:
            # literals and not parameters, which COPY does not take; untyped, so each gets its column's type
            texts = ["\\x" + value if i in shape.binary else value for i, value in zip(shape.key, after, strict=True)]
            literals = [sql.Literal(text).as_string(self._asking) for text in texts]
            literals += [literals[i] for i, n in enumerate(shape.key) if shape.names[n] in alike]
            conditions.append(after_key(by, literals))
        return f"{query} WHERE {' AND '.join(conditions)} ORDER BY {', '.join(by)}"

    def _copy(self, query: str, shape: Shape, size: int) -> Generator[Page, None, None]:
        """Pages of a COPY. The server sends each row as one message, so a page is so many messages."""
        connection = self._reading()
        self._streaming, finished, self.answered = True, False, None
        try:
            cursor = connection.cursor()
            with cursor.copy(_sql(f"COPY ({query}\n) TO STDOUT (FORMAT csv)")) as copy:
                rows: list[Any] = []
                for row in copy:
                    rows.append(row)
                    if len(rows) == size:
                        page, rows = _page(rows, shape), []
                        try:
                            yield page
                        except GeneratorExit:
                            # else the driver reads on to the end of the rows, which may take hours
                            connection.close()
                            raise
                if rows:
                    yield _page(rows, shape)
            finished, self.answered = True, cursor.rowcount
        except psycopg.Error as error:
            if isinstance(error, _GONE):
                raise SourceLostError(
                    f"reading stopped: {self._dsn.redact(str(error))[:200]}",
                    where=self.dsn,
                    advice="`migrate resume` goes on where it stopped",
                ) from None
            raise self._refused(error) from None
        finally:
            self._streaming = False
            if not finished:
                connection.close()


def _page(rows: Sequence[Any], shape: Shape) -> Page:
    """One page out of CSV rows."""
    parsed = read_rows(b"".join(rows), max(map(len, rows)), shape.names, pa.binary())
    columns = [_bytes(column) if i in shape.binary else to_text(column) for i, column in enumerate(parsed.columns)]
    table = pa.table(columns, names=list(shape.names)).combine_chunks()
    last = [table.column(i)[-1].as_py() for i in shape.key]
    return Page(table, tuple(v.hex() if isinstance(v, bytes) else v for v in last))


def _bytes(column: Any) -> Any:
    """bytea's text (`\\x00ff`) as bytes."""
    return pa.array([None if v is None else bytes.fromhex(v[2:].decode()) for v in column.to_pylist()], pa.binary())


def _sql(query: str) -> bytes:
    """The query as psycopg takes one that is no constant."""
    return query.encode()
