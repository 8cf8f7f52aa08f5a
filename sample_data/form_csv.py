"""The sample as a folder of CSV files, one a table: a header, every value quoted, NULL as nothing at all."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
import pyarrow.csv

from .tables import SOURCE_TABLES


def write_csv(folder: Path, batches: Iterable[tuple[str, pa.Table]]) -> None:
    """Writes the batches to files in a folder, which is made; files of the same names are replaced."""
    folder.mkdir(parents=True, exist_ok=True)
    files: dict[str, pa.csv.CSVWriter] = {}
    try:
        for table in SOURCE_TABLES:
            schema = pa.schema([(column, pa.string()) for column in table.columns])
            files[table.name] = pa.csv.CSVWriter(folder / f"{table.name}.csv", schema)
        for name, batch in batches:
            files[name].write_table(batch)
    finally:
        for file in files.values():
            file.close()
