"""A session with a target that is reached through SQLAlchemy: its transactions, rows in and out, its errors told apart.

Transactions are begun and ended by statements of ours, on a connection that commits by itself otherwise. Knows no
table. Every statement goes through `_reached`, so that the engine meets three errors only.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import pyarrow as pa
import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError, ResourceClosedError, SQLAlchemyError

from connectors.dsn import Dsn
from connectors.protocols import RowsRefusedError, TargetLostError
from workspace.errors import ConnectError, JobFailedError

STAGED = "packhorse_rows"
_AT_ONCE = 5_000
_NO_TRANSACTION = "no transaction is active"


class SqlSession:
    """A connection to one database, made again where it was lost. Each system's own class says how it begins, what
    its errors mean and how rows get in fast."""

    _begin = "BEGIN"
    _temporary = ""
    _text_type = "TEXT"
    _mark = "?"

    def __init__(self, dsn: Dsn) -> None:
        """Connects. ConnectError."""
        self._dsn = dsn
        self.dsn = dsn.masked
        self.identity = dsn.identity
        self._engine = self._make_engine()
        self._connection = self._connect()

    def _make_engine(self) -> sa.Engine:
        """The engine whose connections commit each statement by itself."""
        raise NotImplementedError

    def _told(self, error: Exception) -> Exception:
        """A driver's error as RowsRefusedError, TargetLostError or one that ends the job."""
        raise NotImplementedError

    def _connect(self) -> sa.Connection:
        try:
            return self._engine.connect()
        except DBAPIError as error:
            raise ConnectError(
                f"no connection: {self._dsn.redact(str(error.orig))[:200]}", where=self.dsn, advice="check the DSN"
            ) from None

    # -- transactions -----------------------------------------------------------------------------

    def begin(self) -> None:
        """Begins a transaction."""
        self.execute(sa.text(self._begin))

    def commit(self) -> None:
        """Ends the transaction, durably."""
        self.execute(sa.text("COMMIT"))

    def rollback(self) -> None:
        """Ends the transaction without effect; safe on a lost connection, and where there is none."""
        try:
            self._connection.exec_driver_sql("ROLLBACK")
        except SQLAlchemyError as error:
            if _NO_TRANSACTION not in str(error):
                self._disconnect()

    @contextmanager
    def savepoint(self) -> Iterator[None]:
        """What happens within is undone when it raises RowsRefusedError."""
        self.execute(sa.text("SAVEPOINT packhorse"))
        try:
            yield
        except RowsRefusedError:
            self.execute(sa.text("ROLLBACK TO SAVEPOINT packhorse"))
            self.execute(sa.text("RELEASE SAVEPOINT packhorse"))
            raise
        self.execute(sa.text("RELEASE SAVEPOINT packhorse"))

    # -- statements -------------------------------------------------------------------------------

    def read(self, statement: sa.Executable) -> list[tuple[Any, ...]]:
        """The rows of a small SELECT."""
        with self._reached():
            return [tuple(row) for row in self._connection.execute(statement)]

    def execute(self, statement: sa.Executable, parameters: Sequence[dict[str, Any]] | None = None) -> int:
        """Runs a statement, once for each set of `parameters` where given; how many rows it touched."""
        if parameters is not None and not parameters:
            return 0
        with self._reached():
            return int(self._connection.execute(statement, parameters).rowcount)

    def stream(self, statement: sa.Executable, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The rows of a SELECT as batches of text columns called `names`; memory stays at a batch's size."""
        schema = pa.schema([(name, pa.string()) for name in names])
        with self._reached():
            result = self._connection.execute(statement, execution_options={"stream_results": True})
            try:
                while rows := result.fetchmany(_AT_ONCE):
                    columns = [
                        pa.array([None if value is None else str(value) for value in column], pa.string())
                        for column in zip(*rows, strict=True)
                    ]
                    yield pa.RecordBatch.from_arrays(columns, schema=schema)
            finally:
                result.close()

    # -- rows in ----------------------------------------------------------------------------------

    def stage(self, rows: pa.Table, columns: Sequence[str]) -> sa.TableClause:
        """Puts text columns of rows, numbered by `_ph_i` from 1, in a temporary table; the table.

        What stands in it is exactly what was given: all its columns are text, and nothing is converted on the way."""
        self.execute(sa.text(f"DROP {self._temporary} TABLE IF EXISTS {STAGED}"))
        listed = "".join(f", {self._in_text(name)} {self._text_type}" for name in columns)
        self.execute(sa.text(f"CREATE TEMPORARY TABLE {STAGED} (_ph_i INTEGER PRIMARY KEY{listed})"))
        numbers = pa.array(map(str, range(1, rows.num_rows + 1)), pa.string())
        self._fill(STAGED, ["_ph_i", *columns], [numbers, *(rows[name] for name in columns)])
        return sa.table(STAGED, sa.column("_ph_i"), *(sa.column(name, sa.Text()) for name in columns))

    def _in_text(self, name: str) -> str:
        """A name quoted for the text of a statement: its colons are no parameters there, and where the driver wants a
        `%` twice, SQLAlchemy doubles those of the text by itself."""
        dialect = self._engine.dialect
        quoted = dialect.identifier_preparer.quote(name)
        if dialect.paramstyle in ("format", "pyformat"):
            quoted = quoted.replace("%%", "%")
        return quoted.replace(":", "\\:")

    def _fill(self, table: str, names: Sequence[str], columns: Sequence[Any]) -> None:
        """Inserts rows of text by many sets of parameters: the road that every database has."""
        quoted = self._engine.dialect.identifier_preparer.quote
        marks = ", ".join([self._mark] * len(names))
        statement = f"INSERT INTO {quoted(table)} ({', '.join(map(quoted, names))}) VALUES ({marks})"
        rows = list(zip(*(column.to_pylist() for column in columns), strict=True))
        with self._reached():
            for start in range(0, len(rows), _AT_ONCE):
                self._connection.exec_driver_sql(statement, rows[start : start + _AT_ONCE])

    # -- the connection ---------------------------------------------------------------------------

    def reconnect(self) -> None:
        """A new connection in place of a lost one; TargetLostError while there is none."""
        self._disconnect()
        try:
            self._connection = self._connect()
        except ConnectError as error:
            raise TargetLostError(error.what) from None

    def _disconnect(self) -> None:
        with suppress(SQLAlchemyError):
            self._connection.invalidate()
        with suppress(SQLAlchemyError):
            self._connection.close()

    def close(self) -> None:
        """Ends the connection. Safe to call twice."""
        self._disconnect()
        self._engine.dispose()

    @contextmanager
    def _reached(self) -> Iterator[None]:
        """Turns a driver's errors into the three that the engine knows: rows refused, lost, failed."""
        try:
            yield
        except DBAPIError as error:
            raise self._told(error.orig if isinstance(error.orig, Exception) else error) from None
        except ResourceClosedError:
            raise TargetLostError("the connection is closed") from None
        except SQLAlchemyError as error:
            raise JobFailedError(f"the target failed: {' '.join(str(error).split())[:300]}", where=self.dsn) from None
