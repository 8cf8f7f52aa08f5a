"""Small operations on columns of Arrow text that all records are built with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from .draw import Draw, Index, Mask

Text: TypeAlias = "pa.Array"  # of strings
Batch = dict[str, Text]


def pick(values: Sequence[str | None], place: Index) -> Text:
    """The values at those positions."""
    return pc.take(pa.array(values, pa.string()), pa.array(place))


def some(draw: Draw, stream: str, index: Index, values: Sequence[str | None]) -> Text:
    """One of the values a row, all equally often."""
    return pick(values, draw.below(stream, index, len(values)))


def join(separator: str, *parts: Text | str) -> Text:
    """The parts of each row side by side; NULL where a part is NULL.

    (Arrow's own way to leave NULLs out loses the rows in which all parts are NULL.)
    """
    return pc.binary_join_element_wise(*parts, separator)


def numbers_text(value: NDArray[np.int64]) -> Text:
    """Whole numbers as text."""
    return pa.array(value).cast(pa.string())


def cents_text(cents: NDArray[np.int64]) -> Text:
    """Amounts in cents as 1234.50, as a numeric of two places prints."""
    sign = pick(["", "-"], (cents < 0).astype(np.int64))
    whole, rest = np.divmod(np.abs(cents), 100)
    return join("", sign, numbers_text(whole), ".", pc.utf8_lpad(numbers_text(rest), 2, "0"))


def where(mask: Mask, yes: Text | str | None, no: Text | str | None) -> Text:
    """`yes` where the mask is true, `no` elsewhere."""
    chosen = [pa.scalar(v, pa.string()) if v is None or isinstance(v, str) else v for v in (yes, no)]
    return pc.if_else(pa.array(mask), *chosen)


def only(mask: Mask, text: Text) -> Text:
    """The text where the mask is true, NULL elsewhere."""
    return where(mask, text, None)


def put(base: Text, mask: Mask, values: Text) -> Text:
    """`base` with `values`, one for each true row of the mask, in the rows where the mask is true."""
    if not mask.any():
        return base
    return pc.replace_with_mask(base, pa.array(mask), values)


def constant(value: str | None, rows: int) -> Text:
    """The same value in each row."""
    return pa.array([value] * rows, pa.string()) if value is None else pa.repeat(pa.scalar(value), rows)


def present(text: Text) -> Mask:
    """True where there is a value."""
    return np.asarray(pc.is_valid(text).to_numpy(zero_copy_only=False), dtype=bool)


def fill_masks(masks: Sequence[str], which: Index, luck: NDArray[np.uint64]) -> Text:
    """Each row's mask with its # filled by digits of the row's luck."""
    parts: list[Text] = []
    places: list[Index] = []
    for number in np.unique(which):
        rows = np.flatnonzero(which == number)
        mask = masks[int(number)]
        holes = mask.count("#")
        digits = pc.utf8_lpad(pa.array(luck[rows] % np.uint64(10**holes)).cast(pa.string()), max(holes, 1), "0")
        pieces: list[Text | str] = []
        at = 0
        for letter in mask:
            if letter == "#":
                pieces.append(pc.utf8_slice_codeunits(digits, at, at + 1))
                at += 1
            else:
                pieces.append(letter)
        parts.append(join("", *pieces))
        places.append(rows)
    if not parts:
        return pa.array([], pa.string())
    order = np.empty(len(which), dtype=np.int64)
    order[np.concatenate(places)] = np.arange(len(which))
    return pc.take(pa.concat_arrays(parts), pa.array(order))


def runs(rows: int, size: int) -> list[Index]:
    """The row numbers of a table in pieces of at most `size`."""
    return [np.arange(start, min(start + size, rows), dtype=np.int64) for start in range(0, rows, size)]


def stacked(first: Text, second: Text) -> Text:
    """The rows of both, one after the other."""
    flat = [part.combine_chunks() if isinstance(part, pa.ChunkedArray) else part for part in (first, second)]
    return pa.concat_arrays(flat)
