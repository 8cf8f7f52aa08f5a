"""A stream of Arrow batches cut into tables of a size, such as pages are made of, without parting rows of one key."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa


def of_size(reader: pa.RecordBatchReader, names: Sequence[str], size: int, key: Sequence[str]) -> Iterator[pa.Table]:
    """Tables of `size` rows; the batches may be of any size. One ends earlier, or later, where it would
    part rows of one key: who goes on after that key would never see the rest of them."""
    schema = pa.schema([(name, pa.string()) for name in names])
    held: list[Any] = []
    rows = 0
    for batch in reader:
        held.append(batch)
        rows += batch.num_rows
        while rows > size:
            table = pa.Table.from_batches(held).cast(schema)
            cut = _between_keys(table, key, size)
            if not cut:
                break
            yield table.slice(0, cut).combine_chunks()
            held = table.slice(cut).to_batches()
            rows -= cut
    if rows:
        yield pa.Table.from_batches(held).cast(schema).combine_chunks()


def _between_keys(table: pa.Table, key: Sequence[str], size: int) -> int:
    """Where to cut: before the row `size`, or the nearest place, first before it and then after, where the key changes;
    0 where the table is of one key."""

    def key_at(row: int) -> list[Any]:
        return [table.column(name)[row].as_py() for name in key]

    if not key:
        return size
    here = key_at(size)
    before = next((cut for cut in range(size, 0, -1) if key_at(cut - 1) != here), 0)
    return before or next((cut for cut in range(size + 1, table.num_rows) if key_at(cut) != here), 0)
