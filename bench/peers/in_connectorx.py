"""Runs in connectorx's own environment, so nothing of ours can be imported: MariaDB to Arrow to CSV to COPY.

A stream of batches was as fast as two partitions when both were tried, and holds no whole table.
"""

from __future__ import annotations

import json
import os

import connectorx
import psycopg
import pyarrow as pa
import pyarrow.csv

_BATCH = 10_000


def main() -> None:
    """Copies the tables that the environment names, in their order, in one transaction."""
    given = json.loads(os.environ["PACKHORSE_BENCH"])
    options = pa.csv.WriteOptions(include_header=False)
    with psycopg.connect(given["target"]) as connection:
        for table, columns in given["tables"].items():
            listed = ", ".join(columns)
            batches = connectorx.read_sql(
                given["source"],
                f"SELECT {listed} FROM clean_{table}",
                return_type="arrow_stream",
                batch_size=_BATCH,
            )
            command = f"COPY {table} ({listed}) FROM STDIN (FORMAT csv)"
            with connection.cursor().copy(command.encode()) as copy:
                for batch in batches:
                    lines = pa.BufferOutputStream()
                    pa.csv.write_csv(batch, lines, options)
                    copy.write(memoryview(lines.getvalue()))


if __name__ == "__main__":
    main()
