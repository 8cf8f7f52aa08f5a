"""Rows of raw bytes as a driver sends them, turned into Arrow columns of text a page at a time.

The hot path of a read: nothing here looks at single values, except where text turns out not to be UTF-8.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from connectors.protocols import Page

Row = Sequence[bytes | None]

# The five bytes that cp1252 leaves undefined become the control character of that number, as browsers do.
_CP1252 = {byte: bytes([byte]).decode("cp1252", errors="ignore") or chr(byte) for byte in range(0x80, 0xA0)}


@dataclass(frozen=True)
class Shape:
    """The columns of a row in order: `binary` ones stay bytes, all others are text. `key` are positions."""

    names: tuple[str, ...]
    binary: frozenset[int]
    key: tuple[int, ...]

    @classmethod
    def of(cls, names: Sequence[str], binary: Sequence[bool], key: Sequence[str]) -> Shape:
        """The shape of these columns. ValueError where a key column is not among them."""
        return cls(
            tuple(names), frozenset(i for i, b in enumerate(binary) if b), tuple(map(names.index, key))
        )


def pages(fetch: Callable[[int], Sequence[Row]], shape: Shape, size: int) -> Iterator[Page]:
    """Pages of `size` rows until `fetch(size)` gives none. Holds one page at a time."""
    while rows := fetch(size):
        last = rows[-1]
        key = tuple(key_text(last[i], binary=i in shape.binary) for i in shape.key)
        table = to_table(rows, shape)
        del rows, last
        yield Page(table, key)
        del table


def to_table(rows: Sequence[Row], shape: Shape) -> pa.Table:
    """The rows as Arrow columns: string, or binary where the shape says so."""
    columns: list[Any] = []
    for i, values in enumerate(zip(*rows, strict=True)):
        raw = pa.array(values, pa.binary())
        columns.append(raw if i in shape.binary else to_text(raw))
    return pa.Table.from_arrays(columns, names=list(shape.names))


def to_text(raw: pa.Array[Any]) -> pa.Array[Any]:
    """Bytes as text. Never raises: a value that is not UTF-8 is read as cp1252, and no byte is lost."""
    try:
        return raw.cast(pa.string())
    except pa.ArrowInvalid:
        return pa.array([None if v is None else decode(v) for v in raw.to_pylist()], pa.string())


def decode(value: bytes) -> str:
    """One value as text: UTF-8, else cp1252."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value.decode("latin-1").translate(_CP1252)


def key_text(value: bytes | None, *, binary: bool) -> str:
    """A key's value as a page names it: text as it is, binary in hex."""
    if value is None:
        return ""
    return value.hex() if binary else decode(value)
