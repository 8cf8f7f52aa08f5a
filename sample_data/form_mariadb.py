"""The sample as a MariaDB database, filled by LOAD DATA LOCAL.

The session allows the zero dates, half dates and impossible dates that such servers hold. Anything else
that the server would change on the way in is an error here: the truth would no longer be true.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
from sqlalchemy.engine import make_url

from .lines import tab_lines
from .tables import SOURCE_TABLES, create_statements


def _connect(url: str) -> Any:
    import MySQLdb

    parts = make_url(url)
    given = {
        "host": parts.host,
        "port": parts.port,
        "user": parts.username,
        "password": parts.password,
        "unix_socket": parts.query.get("unix_socket"),
    }
    return MySQLdb.connect(
        **{name: value for name, value in given.items() if value is not None},
        database=parts.database,
        charset="utf8mb4",
        local_infile=True,
        autocommit=True,
    )


def write_mariadb(url: str, batches: Iterable[tuple[str, pa.Table]]) -> None:
    """Writes the batches to the database of an SQLAlchemy URL; tables of the same names are replaced.

    RuntimeError where the server changes a value; errors of the driver as they are.
    """
    connection = _connect(url)
    try:
        cursor = connection.cursor()
        cursor.execute(
            "SET sql_mode = 'ALLOW_INVALID_DATES,NO_AUTO_VALUE_ON_ZERO', unique_checks = 0, foreign_key_checks = 0"
        )
        later: list[str] = []
        for table in SOURCE_TABLES:
            cursor.execute(f"DROP TABLE IF EXISTS `{table.name}`")
            create, *indexes = create_statements(table, "mariadb")
            cursor.execute(create)
            later.extend(indexes)
        kinds = {table.name: table.columns for table in SOURCE_TABLES}
        with tempfile.TemporaryDirectory(prefix="sample-") as folder:
            for name, batch in batches:
                _load(cursor, Path(folder) / "rows", name, kinds[name], batch)
        for index in later:
            cursor.execute(index)
    finally:
        connection.close()


def _load(cursor: Any, path: Path, name: str, kinds: dict[str, str], batch: pa.Table) -> None:
    path.write_bytes(tab_lines(batch))
    columns = ", ".join(f"@{c}" if kinds[c] == "bit" else f"`{c}`" for c in batch.column_names)
    bits = ", ".join(f"`{c}` = CAST(@{c} AS UNSIGNED)" for c in batch.column_names if kinds[c] == "bit")
    cursor.execute(
        f"LOAD DATA LOCAL INFILE '{path}' INTO TABLE `{name}` CHARACTER SET utf8mb4 "
        f"FIELDS TERMINATED BY '\\t' ESCAPED BY '\\\\' LINES TERMINATED BY '\\n' ({columns})"
        + (f" SET {bits}" if bits else "")
    )
    cursor.execute("SHOW WARNINGS LIMIT 1")
    warning = cursor.fetchone()
    if warning:
        raise RuntimeError(f"MariaDB changed rows of {name} on the way in: {warning[2]}")
