"""MySQL and MariaDB as a target: InnoDB tables, written within transactions in strict mode.

Rows go by LOAD DATA LOCAL into a temporary table of text alone, since LOCAL skips and coerces without a word: what
arrived is counted, and one strict INSERT ... SELECT carries it on. Where client or server doesn't allow LOCAL, rows go
there as parameters instead, which is slower.
"""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import sqlalchemy as sa
from sqlalchemy.dialects.mysql import INTEGER
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.pool import NullPool
from sqlalchemy.sql.functions import FunctionElement

from connectors.dsn import Dsn
from connectors.grants import Grant, TableUse
from connectors.mysql_catalogue import read_tables
from connectors.mysql_connection import LOST, connect_to_write, driver, error_parts
from connectors.mysql_grants import write_grants
from connectors.protocols import Catalogue, Column, Kind, RowsRefusedError, Table, TargetLostError, UniqueKey
from connectors.records import LoadedEntity
from connectors.sql_removal import SqlRemoval
from connectors.sql_rows import BETWEEN, NOTHING, Sql, table_of
from connectors.sql_schema import JOB, PREFIX
from connectors.sql_session import STAGED
from connectors.sql_target import SCHEMA
from workspace.errors import CatalogueError, JobFailedError, JobLockedError

_STATELESS = (
    "SELECT TABLE_NAME, ENGINE FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE() AND ENGINE <> 'InnoDB'"
)
_PASSING = (*LOST, 1040, 1203, 1205, 1213, 1226, 2002, 2003)
_EXACT = "utf8mb4_bin"
_CODES = {
    1062: "unique", 1586: "unique", 1452: "foreign_key", 1216: "foreign_key", 1451: "foreign_key", 1217: "foreign_key",
    1048: "required", 1364: "required", 1406: "length", 1264: "range", 1690: "range", 4025: "check", 3819: "check",
    1265: "cast", 1292: "cast", 1366: "cast", 1411: "cast", 1367: "cast", 3140: "cast", 4038: "cast", 1644: "trigger",
}  # fmt: skip


class MysqlTarget(SqlRemoval):
    """A MySQL or MariaDB database to write to."""

    _begin = "START TRANSACTION"
    _temporary = "TEMPORARY"
    _text_type = "LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin"
    _mark = "%s"
    _drops_in_transactions = False
    _stamps = True

    def __init__(self, dsn: Dsn, schema: str = SCHEMA) -> None:
        """Connects. ConnectError; UsageError where the driver is missing."""
        super().__init__(dsn, schema)
        version, allowed = self.read(sa.text("SELECT VERSION(), @@local_infile"))[0]
        self._mariadb = "MariaDB" in str(version)
        self._version = f"{'MariaDB' if self._mariadb else 'MySQL'} {str(version).partition('-')[0]}"
        self._local = bool(int(allowed)) and dsn.parameters.get("local_infile", "1") != "0"

    def _make_engine(self) -> sa.Engine:
        driver()
        return sa.create_engine(
            "mysql+mysqldb://",
            creator=lambda: connect_to_write(self._dsn),
            poolclass=NullPool,
            isolation_level="AUTOCOMMIT",
        )

    def server(self) -> str:
        """Product and version, and whether rows have to go by the slower road."""
        slower = "" if self._local else ", LOCAL INFILE is not allowed: rows go as parameters, which is slower"
        return self._version + slower

    def grants(self, uses: Sequence[TableUse] | None, user: str | None = None) -> list[Grant]:
        """The rights that a job needs; see `Target.grants`. All of one database, since our tables lie there too."""
        return write_grants(
            lambda statement: self.read(sa.text(statement.replace(":", "\\:"))), user, self._dsn.database
        )

    def catalogue(self) -> Catalogue:
        """What is there, our own tables left out."""
        with self._reached():
            found = read_tables(lambda: connect_to_write(self._dsn), self._mariadb)
        engines = {str(name): str(engine) for name, engine in self.read(sa.text(_STATELESS))}
        tables = {
            name: _target_table(table, engines.get(name, ""))
            for name, table in found.items()
            if not name.startswith(PREFIX)
        }
        return Catalogue("mysql", tables, self.server())

    # -- the lease --------------------------------------------------------------------------------

    def _lock(self, job: str) -> None:
        """Holds a named lock, which the server ends with the connection."""
        name = self._lock_of(job)
        get = "SELECT GET_LOCK(:name, :seconds)"
        if self.read(sa.text(get).bindparams(name=name, seconds=0))[0][0] == 1:
            return
        found = self.read(sa.select(JOB.c.host, JOB.c.pid, JOB.c.started, JOB.c.beat).where(JOB.c.name == job))
        # our own lost connection, or that of a process that was killed: the server is about to end it
        ends = found and not super()._is_held(job, list(found[0][:3]), found[0][3] or 0)
        if ends and self.read(sa.text(get).bindparams(name=name, seconds=10))[0][0] == 1:
            return
        who = f"process {found[0][1]} on {found[0][0]}" if found else "another process"
        raise JobLockedError(
            f"the job {job} is being run by {who}", where=self.dsn, advice="wait for it, or stop it there first"
        )

    def _is_held(self, job: str, holder: list[object], beat: int) -> bool:
        """False: who holds the named lock has the job."""
        return False

    def _lock_of(self, job: str) -> str:
        return "packhorse " + hashlib.md5(f"{self._dsn.database}\x1f{job}".encode()).hexdigest()

    def _lives(self, host: str, pid: int | None, started: int | None) -> bool:
        assert self._job is not None
        held = sa.text("SELECT IS_USED_LOCK(:name)").bindparams(name=self._lock_of(self._job[1]))
        return self.read(held)[0][0] is not None

    # -- rows in ----------------------------------------------------------------------------------

    def _fill(self, table: str, names: Sequence[str], columns: Sequence[Any]) -> None:
        if not self._local or table != STAGED:
            return super()._fill(table, names, columns)
        rows = len(columns[0])
        lines = _lines(columns)
        quoted = self._engine.dialect.identifier_preparer.quote
        with _as_file(lines) as path, self._reached():
            self._connection.exec_driver_sql(
                f"LOAD DATA LOCAL INFILE '{path}' INTO TABLE {quoted(table)} CHARACTER SET utf8mb4 "
                rf"FIELDS TERMINATED BY '\t' ESCAPED BY '\\' LINES TERMINATED BY '\n' ({', '.join(map(quoted, names))})"
            )
        arrived = self.read(sa.select(sa.func.count()).select_from(sa.table(table)))[0][0]
        if arrived != rows:
            raise JobFailedError(
                f"{rows:,} rows were sent and {arrived:,} arrived", where=self.dsn,
                advice="say `?local_infile=0` in the target's DSN and run `migrate resume`",
            )  # fmt: skip
        return None

    def _put(self, table: sa.Table, rows: pa.Table) -> None:
        """Inserts rows of text into a table of ours, by the same road as the customer's."""
        if not rows.num_rows:
            return
        names = rows.column_names
        r = self.stage(rows, names)
        values = [r.c[name] for name in names]
        self.execute(sa.insert(table).from_select(names, sa.select(*values).select_from(r).order_by(r.c["_ph_i"])))

    def delete(self, entity: LoadedEntity, new_ids: Sequence[str]) -> None:
        """Deletes rows of the target by one statement: each by itself would take a way to the server and back."""
        if new_ids:
            r, t = self.stage(pa.table({"new_id": pa.array(new_ids, pa.string())}), ["new_id"]), table_of(entity.table)
            self.execute(sa.delete(t).where(self._same_staged(entity.identity, t, r)))

    # -- values -----------------------------------------------------------------------------------

    def _stored(self, column: Column, text: Sql) -> Sql:
        if column.kind is Kind.BOOLEAN:
            return sa.case((text == "true", 1), (text == "false", 0))
        if column.kind is Kind.BINARY:
            return sa.func.unhex(sa.func.substr(text, 3))
        if column.kind is Kind.UUID and column.type.startswith("binary"):
            return sa.func.unhex(sa.func.replace(text, "-", ""))
        if column.kind is Kind.INSTANT:
            return sa.func.replace(text, "+00", "")
        if column.kind is Kind.INTEGER and column.type.startswith("bit"):
            return sa.cast(text, INTEGER(unsigned=True))
        return text

    def _sought(self, column: Column, text: Sql) -> Sql:
        if column.kind is Kind.INTEGER:
            return sa.cast(text, INTEGER(unsigned=True) if column.unsigned else sa.BigInteger())
        if column.kind is Kind.DECIMAL:
            return sa.cast(text, sa.Numeric(65, 30))
        if column.collation and column.kind in (Kind.TEXT, Kind.ENUM):
            return sa.collate(_Convert(text, column.collation.partition("_")[0]), column.collation)
        return self._stored(column, text)

    def _shown(self, column: Column, value: Sql) -> Sql:
        if column.kind is Kind.BOOLEAN:
            return sa.case((value + 0 == 1, "true"), (value + 0 == 0, "false"), else_=sa.cast(value + 0, sa.CHAR))
        if column.kind is Kind.BINARY:
            return sa.func.concat("\\x", sa.func.lower(sa.func.hex(value)))
        if column.kind is Kind.UUID and column.type.startswith("binary"):
            shown: Sql = sa.func.hex(value)
            for place in (9, 14, 19, 24):
                shown = sa.func.insert(shown, place, 0, "-")
            return sa.func.lower(shown)
        if column.kind is Kind.INTEGER and column.type.startswith("bit"):
            return sa.cast(value + 0, sa.CHAR)
        if column.kind is Kind.FLOAT:
            return sa.cast(value + sa.literal_column("0e0"), sa.CHAR)
        if column.kind in (Kind.DATETIME, Kind.INSTANT):
            shown = sa.cast(value, sa.CHAR)
            if column.precision:  # as many digits as the column has: those that say something are shown
                shown = sa.func.regexp_replace(shown, "[.]?0+$", "", type_=sa.Text())
            return sa.func.concat(shown, "+00") if column.kind is Kind.INSTANT else shown
        return _Convert(value, "utf8mb4") if column.kind in (Kind.TEXT, Kind.JSON) else sa.cast(value, sa.CHAR)

    def _digest(self, texts: Sequence[Sql]) -> Sql:
        exact = [sa.collate(sa.func.coalesce(text, NOTHING), _EXACT) for text in texts]
        return sa.func.md5(sa.func.concat_ws(BETWEEN, *exact))

    def _split(self, text: Sql, number: int) -> Sql:
        return sa.func.substring_index(sa.func.substring_index(text, BETWEEN, number), BETWEEN, -1, type_=sa.Text())

    def _text(self, key: Sql) -> Sql:
        return sa.collate(_Convert(key, "utf8mb4"), _EXACT)

    def _as_key(self, text: Sql) -> Sql:
        return sa.cast(text, sa.BINARY)

    # -- errors -----------------------------------------------------------------------------------

    def _told(self, error: Exception) -> Exception:
        number, said = error_parts(error)
        message = " ".join(said.split())[:300]
        if number in _PASSING or not number:
            return TargetLostError(message, where=self.dsn)
        if number in _CODES:
            return _refused(number, message)
        if number in (1044, 1142, 1143, 1227, 1370):
            return CatalogueError(
                f"the target refuses: {message}",
                where=self.dsn,
                advice="grant the user of the target DSN what it needs",
            )
        full = number in (1021, 1114, 1041)
        advice = "free some space on the target and" if full else "mend the cause and"
        return JobFailedError(f"the target failed: {message}", where=self.dsn, advice=f"{advice} run `migrate resume`")


class _Convert(FunctionElement[str]):
    """A text in another character set: CONVERT(... USING ...)."""

    inherit_cache = False
    type = sa.Text()

    def __init__(self, text: Sql, charset: str) -> None:
        super().__init__(text)
        self.charset = charset


@compiles(_Convert)
def _spell_conversion(element: _Convert, compiler: Any, **options: Any) -> str:
    assert element.charset.isalnum()
    return f"CONVERT({compiler.process(element.clauses, **options)} USING {element.charset})"


def _refused(number: int, message: str) -> RowsRefusedError:
    """What the server says, as a reason: the key or constraint, the column, and the row where it names one."""
    column = re.search(r"[Cc]olumn '([^']*)'|Field '([^']*)'|column `(?:[^`]*`\.`)*([^`]*)`", message)
    row = re.search(r"at row (\d+)", message)
    if number in (1062, 1586):
        key = re.search(r"for key '([^']*)'$", message)
        name = key[1].rpartition(".")[2] if key else ""
        return RowsRefusedError("unique", "a row of this key is there already", constraint=name)
    constraint = re.search(r"CONSTRAINT `([^`]*)`|[Cc]onstraint '([^']*)'", message)
    return RowsRefusedError(
        _CODES[number],
        re.sub(r"value: '.*' for column", "value for column", message),
        constraint=next(filter(None, constraint.groups()), "") if constraint else "",
        column=next(filter(None, column.groups()), "") if column else "",
        line=int(row[1]) if row and number in (1265, 1292, 1366, 1406, 1264) else None,
    )


def _target_table(table: Table, engine: str) -> Table:
    """The table as rows go into it."""
    return replace(
        table,
        columns=tuple(_target_column(table, column) for column in table.columns),
        unique_keys=tuple(
            UniqueKey(key.name, key.columns, key.columns, primary=key.primary) for key in table.unique_keys
        ),
        engine="" if table.view else engine,
    )


def _target_column(table: Table, column: Column) -> Column:
    spelled = column.type
    if spelled == "tinyint(1)":
        column = replace(column, kind=Kind.BOOLEAN, bits=None)
    elif spelled == "binary(16)":
        column = replace(column, kind=Kind.UUID, length=None)
    elif spelled.startswith("binary") or spelled.startswith("char("):
        column = replace(column, padded=True)
    elif spelled == "set":  # which shows its members in an order of its own
        column = replace(column, kind=Kind.OTHER)
    if column.kind in (Kind.DATETIME, Kind.INSTANT, Kind.TIME):
        digits = re.search(r"\((\d)\)", spelled)
        column = replace(column, precision=int(digits[1]) if digits else 0)
    if (
        column.has_default
        and column.kind is Kind.INTEGER
        and table.primary_key == (column.name,)
        and column.default is None
    ):
        column = replace(column, sequence=f"{table.name}.{column.name}")
    return column


def _lines(columns: Sequence[Any]) -> bytes:
    """Rows of text as LOAD DATA reads them: tabs between, \\N for NULL."""
    escaped = []
    for column in columns:
        text = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
        for sign, spelled in (("\\", "\\\\"), ("\t", "\\t"), ("\n", "\\n"), ("\0", "\\0")):
            text = pc.replace_substring(text, sign, spelled)
        escaped.append(pc.fill_null(text, "\\N"))
    lines = pc.binary_join_element_wise(*escaped, "\t") if len(escaped) > 1 else escaped[0]
    return ("\n".join(lines.to_pylist()) + "\n").encode() if len(lines) else b""


@contextmanager
def _as_file(content: bytes) -> Iterator[str]:
    """A file that the driver can read by its path: in memory where the system has such files."""
    if hasattr(os, "memfd_create"):
        number = os.memfd_create("packhorse")
        try:
            with open(number, "wb", closefd=False) as file:
                file.write(content)
            yield f"/proc/self/fd/{number}"
        finally:
            os.close(number)
        return
    with tempfile.NamedTemporaryFile(prefix="packhorse-") as file:
        file.write(content)
        file.flush()
        yield file.name
