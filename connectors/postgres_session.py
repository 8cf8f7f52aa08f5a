"""A session with a PostgreSQL target: the connection, its transactions, COPY in and out, and its errors told apart.

Knows no table. Every statement of ours goes through `_reached`, so that the engine meets three errors only.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import psycopg
import pyarrow as pa
from psycopg import sql

from connectors.dsn import Dsn
from connectors.postgres_connection import connect
from connectors.postgres_csv import read_rows, written_rows
from connectors.postgres_errors import NotingCursor, statement_kind, told
from connectors.protocols import RowsRefusedError, TargetLostError
from workspace.errors import ConnectError

_READ_BYTES = 1 << 20


class PostgresSession:
    """A connection to one PostgreSQL database, made again where it was lost."""

    def __init__(self, dsn: Dsn) -> None:
        self._dsn = dsn
        self.dsn = dsn.masked
        self.identity = dsn.identity
        self._connection = self._connect()

    def _connect(self) -> psycopg.Connection[tuple[Any, ...]]:
        connection = connect(self._dsn)
        connection.cursor_factory = NotingCursor
        with connection.cursor() as cursor:
            # What text the server shows for a value must not hang on the user's settings: checksums compare it.
            cursor.execute(
                "SET timezone = 'UTC'; SET datestyle = 'ISO, YMD'; SET intervalstyle = 'iso_8601'; SET bytea_output = 'hex'; SET extra_float_digits = 1"
            )
            cursor.execute("SHOW statement_timeout")
            row = cursor.fetchone()
            self._statement_timeout = str(row[0]) if row else "0"
        return connection

    # -- transactions -----------------------------------------------------------------------------

    def begin(self) -> None:
        """Begins a transaction in which deferrable constraints are checked at once, so that the row is known."""
        with self._reached():
            self._connection.execute("BEGIN; SET CONSTRAINTS ALL IMMEDIATE")

    def commit(self) -> None:
        """Ends the transaction, durably."""
        with self._reached():
            self._connection.execute("COMMIT")

    def rollback(self) -> None:
        """Ends the transaction without effect; safe on a lost connection."""
        try:
            self._connection.execute("ROLLBACK")
        except psycopg.Error:
            self._connection.close()

    @contextmanager
    def savepoint(self) -> Iterator[None]:
        """What happens within is undone when it raises RowsRefusedError."""
        with self._reached():
            self._connection.execute("SAVEPOINT packhorse")
        try:
            yield
        except RowsRefusedError:
            with self._reached():
                self._connection.execute("ROLLBACK TO SAVEPOINT packhorse; RELEASE SAVEPOINT packhorse")
            raise
        with self._reached():
            self._connection.execute("RELEASE SAVEPOINT packhorse")

    # -- reading and COPY -------------------------------------------------------------------------

    def read(self, statement: str | sql.Composed, parameters: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """The rows of a small SELECT. Without parameters a `%` in it is a `%`: a column may be called so."""
        with self._reached(), self._connection.cursor() as cursor:
            cursor.execute(statement, parameters or None)
            return cursor.fetchall()

    def execute(self, statement: sql.SQL | sql.Composed) -> int:
        """Runs a statement, or several; how many rows the last one touched."""
        with self._reached(), self._connection.cursor() as cursor:
            cursor.execute(statement)
            return cursor.rowcount

    def stream(self, statement: sql.Composed, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The rows of a SELECT as batches of text columns called `names`, through COPY; memory stays at a block's size."""
        copied = sql.SQL("COPY ({}) TO STDOUT (FORMAT csv)").format(statement)
        with self._reached(), self._connection.cursor() as cursor, cursor.copy(copied) as copy:
            # one buffer and no list: a million rows held one by one cost more than their parsing
            rows, longest = bytearray(), 0
            while row := copy.read():
                rows += row
                if len(row) > longest:
                    longest = len(row)
                if len(rows) >= _READ_BYTES:
                    yield from read_rows(rows, longest, names, pa.string()).to_batches()
                    rows, longest = bytearray(), 0
            if rows:
                yield from read_rows(rows, longest, names, pa.string()).to_batches()

    def temporary(self, name: str, definition: str, rows: pa.Table) -> sql.Identifier:
        """A temporary table of these text columns, gone at the transaction's end; its name."""
        place = sql.Identifier("pg_temp", name)
        self.execute(sql.SQL("DROP TABLE IF EXISTS {}").format(place))
        self.execute(
            sql.SQL("CREATE TEMP TABLE {} ({}) ON COMMIT DROP").format(sql.Identifier(name), sql.SQL(definition))
        )
        self._copy(place, rows.column_names, rows)
        return place

    def _copy(self, name: sql.Composable, columns: Sequence[str], rows: pa.Table) -> None:
        statement = sql.SQL("COPY {} ({}) FROM STDIN (FORMAT csv)").format(
            name, sql.SQL(", ").join(map(sql.Identifier, columns))
        )
        rows = rows.select(list(columns))
        with self._reached(), self._connection.cursor() as cursor, cursor.copy(statement) as copy:
            for start in range(0, rows.num_rows, 8192):
                copy.write(written_rows(rows.slice(start, 8192)))

    # -- the connection ---------------------------------------------------------------------------

    def reconnect(self) -> None:
        """A new connection in place of a lost one; TargetLostError while there is none."""
        self._connection.close()
        try:
            self._connection = self._connect()
        except ConnectError as error:
            raise TargetLostError(error.what) from None

    def close(self) -> None:
        """Ends the connection. Safe to call twice."""
        self._connection.close()

    @contextmanager
    def _reached(self) -> Iterator[None]:
        """Turns psycopg's errors into the three that the engine knows: rows refused, lost, failed."""
        try:
            yield
        except psycopg.Error as error:
            connection = self._connection
            raise told(
                error, self.dsn, lost=connection.closed or connection.broken, kind=statement_kind(connection),
                timeout=self._statement_timeout,
            ) from None  # fmt: skip
