"""The DuckDB that files are taken into, in a folder for temporary files: locked to what it may read, and frugal.

DuckDB fills the memory that it is given with what it has read, so that a source would take the more the longer it is.
It is given little, and only for what can't be done with that is it opened again with much.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

import duckdb
import pyarrow as pa

from connectors.sized import of_size

_LEAST_MEMORY, _MEMORY_A_COLUMN, _MOST_MEMORY = 40, 1, 1000
"""Megabytes; a column holds some while rows are written."""
_Done = TypeVar("_Done")


class FileStore:
    """Reads files of the folders `readable` and nothing else, and writes into `folder`. `widest` is how many columns a
    table has at most."""

    def __init__(self, folder: Path, readable: Sequence[Path], widest: int) -> None:
        """duckdb.Error where the folder has no room."""
        self._folder, self._readable = folder, readable
        self._memory = min(_LEAST_MEMORY + _MEMORY_A_COLUMN * widest, _MOST_MEMORY)
        self._connection = self._open()

    def cursor(self) -> duckdb.DuckDBPyConnection:
        """A cursor of its own: DuckDB allows one open result each."""
        return self._connection.cursor()

    def with_room(self, work: Callable[[], _Done]) -> _Done:
        """What the work gives, done again with more memory where it lacks that."""
        try:
            return work()
        except duckdb.OutOfMemoryException:
            if not self._grow():
                raise
            return work()

    def stream(self, sql: str, names: Sequence[str], size: int, key: Sequence[str]) -> Iterator[pa.Table]:
        """The tables of a SELECT's rows; begun again with more memory where it ends before the first for lack of it."""
        begun = False
        while True:
            try:
                with self.cursor() as cursor:
                    for table in of_size(cursor.sql(sql).to_arrow_reader(size), names, size, key):
                        begun = True
                        yield table
                return
            except duckdb.OutOfMemoryException:
                if begun or not self._grow():
                    raise

    def close(self) -> None:
        """Ends it. Safe to call twice."""
        self._connection.close()

    def _grow(self) -> bool:
        """Opens DuckDB again with as much memory as it may ever have; False where it has that. No result may be open."""
        if self._memory == _MOST_MEMORY:
            return False
        self._connection.close()
        self._memory = _MOST_MEMORY
        self._connection = self._open()
        return True

    def _open(self) -> duckdb.DuckDBPyConnection:
        connection = duckdb.connect(
            str(self._folder / "tables.db"),
            config={
                "memory_limit": f"{self._memory}MB",
                "threads": "1",
                "temp_directory": str(self._folder / "spill"),
                "autoinstall_known_extensions": "false",
                "autoload_known_extensions": "false",
            },
        )
        connection.execute("SET enable_progress_bar = false")
        allowed = ", ".join(quoted(f"{path}/") for path in self._readable)
        connection.execute(f"SET allowed_directories = [{allowed}]")
        connection.execute("SET enable_external_access = false")
        connection.execute("SET lock_configuration = true")
        return connection


def quoted(value: str) -> str:
    """A text as SQL has it."""
    return "'" + value.replace("'", "''") + "'"
