"""CSV, TSV, XLSX and JSONL files as a source, a zip of them too: each file or sheet is a table, read by DuckDB, all
values text.

An unquoted nothing is NULL, a quoted one is ''. A file is taken once, whole and strictly, into a DuckDB
file in a temporary folder, so that a malformed line is found before any row moves; DuckDB is locked to
these two folders. Never writes to the source.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import duckdb
import psutil
import sqlglot
from sqlglot import exp

from connectors.csv_files import LONGEST_LINE, CsvFile, has_long_lines, write_utf8
from connectors.dsn import Dsn
from connectors.file_options import FileOptions
from connectors.file_store import FileStore, quoted
from connectors.file_tables import FileTable, find_tables, state_of
from connectors.files_together import offer
from connectors.grants import Grant
from connectors.protocols import Catalogue, Column, Kind, Page, Table
from connectors.relation import after_key, from_clause, is_select, not_before, where_lacking
from workspace.errors import CatalogueError, ConnectError, DiskFullError, SourceLostError

_USUAL_LINE = 2_000_000
_PREFIX = "packhorse-csv-"


class CsvSource:
    """A folder or zip of CSV files, or one file, to read from.

    A SELECT over the files is in DuckDB's dialect. A table read without a key comes in the file's order, and
    can go on in the middle: the place is then the number of rows read. A file that changes once it was
    taken is an error, so all pages are of one state.
    """

    dialect = "duckdb"
    answered: int | None = None
    snapshot = True

    def __init__(self, dsn: Dsn) -> None:
        """Looks at the files. ConnectError where they cannot be read, CatalogueError for one without header."""
        assert dsn.path is not None
        self.dsn = dsn.masked
        self._path = dsn.path.expanduser().resolve()
        self._taken: set[str] = set()
        self._broken: dict[str, CatalogueError] = {}
        self._parameters = dsn.parameters
        options = FileOptions.of(dsn.parameters, self.dsn)
        _sweep()
        self._folder = tempfile.TemporaryDirectory(prefix=f"{_PREFIX}{os.getpid()}-", ignore_cleanup_errors=True)
        self._temporary = Path(self._folder.name)
        self._store: FileStore | None = None
        try:
            self._found = find_tables(self._path, self._temporary, options)
            self._files, self._states = self._found.tables, self._found.states
            self.notes = (
                *self._found.notes,
                *(offer(names, self._with(option)) for names, option in self._found.alike),
            )
            widest = max((len(table.columns) for table in self._files.values()), default=0)
            folder = self._path if self._path.is_dir() else self._path.parent
            self._store = FileStore(self._temporary, (folder, self._temporary), widest)
        except BaseException as error:
            self.close()
            if isinstance(error, LookupError):
                raise ConnectError(
                    f"no such encoding: {dsn.parameters.get('encoding')}", where=self.dsn, advice="try cp1252"
                ) from None
            if isinstance(error, OSError):
                if error.errno == errno.ENOSPC:
                    raise self._no_room(str(error.strerror)) from None
                raise ConnectError(
                    f"cannot be read: {error.strerror}", where=self.dsn, advice="check the path and its rights"
                ) from None
            raise

    def catalogue(self) -> Catalogue:
        """A table for each file, all columns text. No file, no table."""
        tables = {name: self.describe(name) for name in self._files}
        kinds = ", ".join(sorted(self._found.kinds)) or "no files"
        server = f"{kinds} by DuckDB {duckdb.__version__}"
        return Catalogue("duckdb", tables, server)

    def describe(self, relation: str) -> Table:
        """The columns of a file's table or of a SELECT."""
        if is_select(relation):
            described = self._run(f"DESCRIBE SELECT * FROM {self._from(relation)}")
            names = [str(row[0]) for row in described]
            return Table(name="", columns=tuple(map(_column, names)))
        table = self._file(relation)
        return Table(name=table.name, columns=tuple(map(_column, table.columns)), relation=table.name)

    def count(self, relation: str, lacking: Sequence[str] = ()) -> int:
        """COUNT(*) of the file or SELECT, or of its rows that lack one of some columns."""
        rows = self._run(f"SELECT count(*) FROM {self._from(relation)}{where_lacking(lacking, self.quote)}")
        return int(rows[0][0])

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
        """Pages in key order, compared as text by bytes; see `Source.pages`.

        A row whose key is NULL, in any part, is in no page: compare the rows read with `count`.
        """
        names = [column.name for column in self.describe(relation).columns]
        if missing := [name for name in key if name not in names]:
            raise CatalogueError(f"there is no column {missing[0]} to be the key", where=self.dsn)
        names = [name for name in names if not only or name in only]
        texts = ", ".join(f"CAST({self.quote(name)} AS VARCHAR) AS {self.quote(name)}" for name in names)
        sql = f"SELECT {texts} FROM {self._from(relation)}"
        done = 0
        if key:
            ordered = [f"CAST({self.quote(name)} AS VARCHAR)" for name in key]
            conditions = [f"{column} IS NOT NULL" for column in ordered]
            if since is not None:
                conditions.append(not_before(f"CAST({self.quote(since[0])} AS VARCHAR)", quoted(since[1])))
            if after is not None:
                conditions.append(after_key(ordered, [quoted(value) for value in after]))
            # rows of one key come as they stand in their files, each time
            ordered += [] if is_select(relation) else ["rowid"]
            sql += f" WHERE {' AND '.join(conditions)} ORDER BY {', '.join(ordered)}"
        elif after is not None and not is_select(relation):
            done = int(after[0])
            sql += f" WHERE rowid >= {done}"
        self._still_the_same()
        try:
            for table in self._open.stream(sql, names, size, key):
                if key:
                    last = tuple(table.column(name)[-1].as_py() for name in key)
                else:
                    done += table.num_rows
                    last = () if is_select(relation) else (str(done),)
                yield Page(table, last)
        except duckdb.Error as error:
            raise self._failed(error) from None
        self._still_the_same()

    def grants(self, relations: Sequence[str] | None, user: str | None = None) -> list[Grant]:
        """The rights that reading needs; see `Source.grants`. They are the system's: this source is open already."""
        return [Grant(f"read permission on {self._path}", "survey and reading")]

    def query(self, sql: str, parameters: Sequence[object] = ()) -> list[tuple[object, ...]]:
        """A small SELECT; placeholders are %s, and with parameters a literal % is written %%."""
        if parameters:
            sql = sql.replace("%%", "\0").replace("%s", "?").replace("\0", "%")
        self._take_named(sql)
        return list(self._run(sql, parameters))

    def quote(self, identifier: str) -> str:
        """The identifier in double quotes."""
        return '"' + identifier.replace('"', '""') + '"'

    def close(self) -> None:
        """Ends DuckDB and deletes the temporary folder. Safe to call twice."""
        if self._store is not None:
            self._store.close()
        self._folder.cleanup()

    @property
    def _open(self) -> FileStore:
        assert self._store is not None
        return self._store

    def _run(self, sql: str, parameters: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """The rows of a SELECT."""

        def rows() -> list[tuple[Any, ...]]:
            with self._open.cursor() as cursor:
                statements = cursor.extract_statements(sql)
                if len(statements) != 1 or statements[0].type not in _HARMLESS:
                    raise CatalogueError("only one SELECT can be asked of a source", where=self.dsn)
                return cursor.execute(statements[0], list(parameters)).fetchall()

        try:
            return self._open.with_room(rows)
        except duckdb.Error as error:
            raise self._failed(error) from None

    def _failed(self, error: duckdb.Error) -> CatalogueError | DiskFullError:
        message = " ".join(str(error).split("\n\n")[0].split())[:300]
        if "No space left" in str(error) or isinstance(error, duckdb.OutOfMemoryException):
            return self._no_room(message)
        return CatalogueError(f"DuckDB refuses the query: {message}", where=self.dsn)

    def _no_room(self, message: str) -> DiskFullError:
        return DiskFullError(
            f"no room to read the files: {message}", where=str(self._temporary),
            advice="free some space, or set TMPDIR to a folder that has it",
        )  # fmt: skip

    def _file(self, relation: str) -> FileTable:
        name = relation if relation in self._files else Path(relation).stem
        if name not in self._files:
            if aside := self._found.aside.get(name.casefold()):
                raise aside
            raise CatalogueError(
                f"there is no file for the table {relation}", where=self.dsn, advice="it would be named like the table"
            )
        return self._files[name]

    def _from(self, relation: str) -> str:
        """What stands after FROM, with the files taken that it names."""
        if is_select(relation):
            self._take_named(relation)
        return from_clause(relation, self.dialect, lambda name: self._take(self._file(name)))

    def _take_named(self, sql: str) -> None:
        try:
            found = {
                table.name for tree in sqlglot.parse(sql, read="duckdb") if tree for table in tree.find_all(exp.Table)
            }
        except sqlglot.errors.SqlglotError:
            found = set(self._files)
        named = {name.casefold() for name in found}
        if aside := next((error for name, error in self._found.aside.items() if name in named), None):
            raise aside
        for name, table in self._files.items():
            if name.casefold() in named:
                self._take(table)

    def _take(self, table: FileTable) -> str:
        """Reads a table's files into a table of its name, once. CatalogueError names the line that is malformed."""
        name = self.quote(table.name)
        if table.name in self._broken:
            raise self._broken[table.name]
        if table.name not in self._taken:
            for origin in table.origins:
                self._states.setdefault(origin, state_of(origin))
            self._open.cursor().execute(
                f"CREATE TABLE {name} ({', '.join(f'{self.quote(c)} VARCHAR' for c in table.columns)})"
            )
            try:
                for file in table.files:
                    self._read(file, f"{name} ({', '.join(map(self.quote, file.columns))})")
            except BaseException as error:
                if isinstance(error, CatalogueError):
                    self._broken[table.name] = error  # copies are gone: it can't be tried again
                self._open.cursor().execute(f"DROP TABLE {name}")
                raise
            self._taken.add(table.name)
        return name

    def _read(self, file: CsvFile, into: str) -> None:
        readable = file.path
        if file.encoding not in ("utf-8", "utf-8-sig"):
            readable = self._temporary / "in_utf8.csv"
            try:
                write_utf8(file.path, file.encoding, readable, file.place)
            finally:
                self._remove(file.path)
        # a header is passed over, so names stand here: one of `written` has none
        names = file.written or file.columns
        columns = ", ".join(f"c{place}: 'VARCHAR'" for place in range(len(names)))
        selected = ", ".join(f"c{place}" for place, name in enumerate(names) if name)
        padded = "header = false, null_padding = true" if file.written else "header = true"
        # of a header with a line end in it DuckDB would take that for the file's, and give no row
        ends = f", new_line = {quoted(file.line_end)}" if file.line_end else ""
        insert = (
            f"INSERT INTO {into} SELECT {selected} FROM read_csv({quoted(str(readable))}, auto_detect = false,"
            f" {padded}, columns = {{{columns}}}, delim = {quoted(file.delimiter)}, quote = '\"',"
            f" escape = {quoted(file.escape)}, nullstr = '', allow_quoted_nulls = false, parallel = false{ends}"
        )
        try:
            self._insert(insert, readable)
        except duckdb.Error as error:
            raise _malformed(file, error) or self._failed(error) from None
        finally:
            self._remove(readable)

    def _insert(self, insert: str, readable: Path) -> None:
        """Reads with small buffers where no line is long; DuckDB may pass over a last one that is longer than those."""
        for longest in (LONGEST_LINE,) if has_long_lines(readable) else (_USUAL_LINE, LONGEST_LINE):
            sized = f"{insert}, max_line_size = {longest}, buffer_size = {2 * longest})"
            try:
                self._open.with_room(lambda sql=sized: self._open.cursor().execute(sql))  # type: ignore[misc]
                return
            except duckdb.InvalidInputException as error:
                if longest == LONGEST_LINE or "Maximum line size" not in str(error):
                    raise

    def _remove(self, path: Path) -> None:
        """Deletes a copy of our own; not what is the source's."""
        if path.is_relative_to(self._temporary):
            path.unlink(missing_ok=True)

    def _with(self, together: str) -> str:
        """The DSN with a further `together`."""
        parameters = dict(self._parameters)
        parameters["together"] = ",".join(filter(None, (parameters.get("together"), together)))
        return Dsn("csv", path=self._path, parameters=parameters).masked

    def _still_the_same(self) -> None:
        for path, state in self._states.items():
            if not path.exists() or state_of(path) != state:
                raise SourceLostError(
                    "the file changed while it was read", where=str(path), advice="start a new job on the new file"
                )


_HARMLESS = (
    duckdb.StatementType.SELECT,
    duckdb.StatementType.EXPLAIN,
)


def _sweep() -> None:
    """Deletes what killed processes of this user left behind: it holds the customer's records."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*-*"):
        pid = folder.name.removeprefix(_PREFIX).partition("-")[0]
        if pid.isdigit() and not psutil.pid_exists(int(pid)) and folder.stat().st_uid == os.getuid():
            shutil.rmtree(folder, ignore_errors=True)


def _malformed(file: CsvFile, error: duckdb.Error) -> CatalogueError | None:
    message = str(error)
    line = re.search(r"CSV Error on Line: (\d+)", message)
    if not isinstance(error, duckdb.InvalidInputException):
        return None
    fields = re.search(r"Expected Number of Columns: (\d+) Found: (\d+)", message)
    if fields:
        what = f"the line has {fields[2]} fields and the header {fields[1]}"
    elif "unterminated quote" in message:
        what = "a quote is opened and not closed, or stands in the middle of a value"
    elif "Invalid unicode" in message:
        what = f"the line isn't {file.encoding}"
    elif "invalid state" in message:
        what = "the file mixes kinds of line ends, or is no CSV file"
    else:
        what = " ".join(
            re.split(r"\n(?=Possible|\s*Original)", message.replace("Invalid Input Error: ", ""))[0].split()
        )[:200]
    return CatalogueError(
        what,
        where=f"{file.place}:{line[1]}" if line else file.place,
        advice=f"it was read with the delimiter {file.delimiter!r}; export it again with every value quoted",
    )


def _column(name: str) -> Column:
    return Column(name=name, type="text", kind=Kind.TEXT)
