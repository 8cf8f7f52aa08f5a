"""COPY's CSV: the rows that a PostgreSQL server sends as Arrow columns, and Arrow columns as what it takes.

A quoted nothing is '', an unquoted one NULL.
"""

from __future__ import annotations

import io
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.csv

_SMALLEST_BLOCK = 1 << 20
_WRITTEN = pyarrow.csv.WriteOptions(include_header=False, quoting_style="all_valid", batch_size=4096)


def read_rows(rows: bytes | bytearray, longest: int, names: Sequence[str], kind: pa.DataType) -> pa.Table:
    """Rows as COPY sends them, at least one and none of more than `longest` bytes, as a table of columns of one `kind`."""
    # Arrow owns the buffer: its threads let go of it late, and one that has to let go of a Python object after the
    # interpreter's end aborts the process.
    owned = pa.BufferOutputStream()
    owned.write(rows)
    return pyarrow.csv.read_csv(
        pa.BufferReader(owned.getvalue()),
        # a row must fit into a block
        read_options=pyarrow.csv.ReadOptions(column_names=list(names), block_size=max(_SMALLEST_BLOCK, 2 * longest)),
        parse_options=pyarrow.csv.ParseOptions(newlines_in_values=True, ignore_empty_lines=False),
        convert_options=pyarrow.csv.ConvertOptions(
            column_types=dict.fromkeys(names, kind),
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    )


def written_rows(rows: pa.Table) -> memoryview:
    """The rows as COPY takes them."""
    out = io.BytesIO()
    pyarrow.csv.write_csv(rows, out, _WRITTEN)
    return out.getbuffer()
