"""Rows of raw bytes as a driver sends them, turned into Arrow columns of text a page at a time.

The hot path of a read: nothing here looks at single values, except where text turns out not to be UTF-8.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from connectors.protocols import Page

_AT_ONCE = 1000
_MOST_BYTES = 2**30
Row = Sequence[bytes | None]

# The five bytes that cp1252 leaves undefined become the control character of that number, as browsers do.
_CP1252 = {byte: bytes([byte]).decode("cp1252", errors="ignore") or chr(byte) for byte in range(0x80, 0xA0)}


@dataclass(frozen=True)
class Shape:
    """The columns of a row in order: `binary` ones stay bytes, all others are text. `key` are positions.

    `single` are positions of numbers that the server widened from four bytes to eight on our asking;
    they are written with the fewest digits that give the same four bytes.
    """

    names: tuple[str, ...]
    binary: frozenset[int]
    key: tuple[int, ...]
    single: frozenset[int] = frozenset()

    @classmethod
    def of(cls, names: Sequence[str], binary: Sequence[bool], key: Sequence[str], single: Sequence[bool] = ()) -> Shape:
        """The shape of these columns. ValueError where a key column is not among them."""
        return cls(
            tuple(names),
            frozenset(i for i, yes in enumerate(binary) if yes),
            tuple(map(names.index, key)),
            frozenset(i for i, yes in enumerate(single) if yes),
        )


def pages(fetch: Callable[[int], Sequence[Row]], shape: Shape, size: int) -> Iterator[Page]:
    """Pages of `size` rows until `fetch(n)` gives fewer than n. Holds one page at a time.

    Rows are fetched by the thousand and turned to Arrow at once: as Python objects a page of 50,000 would
    leave the processor's cache and wake the garbage collector, which doubles the time.
    """
    more = True
    while more:
        parts: list[list[Any]] = []
        filled, last = 0, None
        while more and filled < size:
            wanted = min(_AT_ONCE, size - filled)
            rows = fetch(wanted)
            more = len(rows) == wanted
            if rows:
                parts.append([pa.array(values, pa.binary()) for values in zip(*rows, strict=True)])
                filled += len(rows)
                last = rows[-1]
        if last is None:
            return
        key = tuple(key_text(last[i], binary=i in shape.binary) for i in shape.key)
        table = _to_table(parts, shape)
        del parts, rows, last
        yield Page(table, key)
        del table


def _to_table(parts: list[list[Any]], shape: Shape) -> pa.Table:
    columns: list[Any] = []
    for i, pieces in enumerate(zip(*parts, strict=True)):
        column: Any = pa.chunked_array(pieces, pa.binary())
        if column.nbytes < _MOST_BYTES:  # what one array of this type may hold
            column = pa.concat_arrays(column.chunks)
        if i not in shape.binary:
            column = to_text(column)
        if i in shape.single:
            column = column.cast(pa.float64()).cast(pa.float32()).cast(pa.string())
        columns.append(column)
    return pa.table(columns, names=list(shape.names))


def to_text(raw: Any) -> Any:
    """Bytes (an Arrow array, chunked or not) as text.

    Never raises: a value that is not UTF-8 is read as cp1252, and no byte is lost.
    """
    try:
        return raw.cast(pa.string())
    except pa.ArrowInvalid:
        return pa.array([None if v is None else decode(v) for v in raw.to_pylist()], pa.string())


def decode(value: bytes) -> str:
    """One value as text: UTF-8, else cp1252."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        return decode_cp1252(value)


def decode_cp1252(value: bytes) -> str:
    """Text in cp1252; each of the five bytes that it leaves undefined is the control character of that number."""
    return value.decode("latin-1").translate(_CP1252)


def key_text(value: bytes | None, *, binary: bool) -> str:
    """A key's value as a page names it: text as it is, binary in hex."""
    if value is None:
        return ""
    return value.hex() if binary else decode(value)
