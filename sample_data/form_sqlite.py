"""The sample as a SQLite file."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa

from .tables import SOURCE_TABLES, create_statements


def write_sqlite(path: Path, batches: Iterable[tuple[str, pa.Table]]) -> None:
    """Writes the batches to a new SQLite file; one that is there is replaced."""
    path.parent.mkdir(parents=True, exist_ok=True)
    for file in (path, path.with_name(path.name + "-wal"), path.with_name(path.name + "-journal")):
        file.unlink(missing_ok=True)
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        connection.execute("PRAGMA journal_mode=OFF")
        connection.execute("PRAGMA synchronous=OFF")
        connection.execute("PRAGMA cache_size=-100000")
        connection.execute("PRAGMA page_size=16384")
        later: list[str] = []
        for table in SOURCE_TABLES:
            create, *indexes = create_statements(table, "sqlite")
            connection.execute(create)
            later.extend(indexes)
        connection.execute("BEGIN")
        for name, batch in batches:
            marks = ", ".join("?" * batch.num_columns)
            columns = [column.to_numpy().tolist() for column in batch.columns]
            connection.executemany(f'INSERT INTO "{name}" VALUES ({marks})', zip(*columns, strict=True))
        for index in later:
            connection.execute(index)
        connection.execute("COMMIT")
    finally:
        connection.close()
