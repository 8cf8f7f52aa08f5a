"""Rows as lines of tab-separated text, the form that COPY and LOAD DATA share: \\N is NULL, a backslash escapes."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

_ESCAPES = (("\\", "\\\\"), ("\t", "\\t"), ("\n", "\\n"), ("\r", "\\r"), ("\x00", "\\0"))


def tab_lines(batch: pa.Table) -> bytes:
    """The rows of a table of text columns as lines, without a header."""
    columns = []
    for column in batch.columns:
        for letter, escape in _ESCAPES:
            if pc.any(pc.match_substring(column, letter)).as_py():
                column = pc.replace_substring(column, letter, escape)
        columns.append(pc.fill_null(column, "\\N"))
    lines = pc.binary_join_element_wise(*columns, "\t")
    text = pc.binary_join_element_wise(lines, "", "\n").combine_chunks()
    parts = text.chunks if isinstance(text, pa.ChunkedArray) else [text]
    return b"".join(_octets(part) for part in parts)


def _octets(text: pa.Array) -> bytes:
    """All values of a text array side by side."""
    if not len(text):
        return b""
    _, offsets, data = text.buffers()
    first, last = (memoryview(offsets).cast("i")[text.offset + n] for n in (0, len(text)))
    return bytes(memoryview(data)[first:last])
