"""Repeatable draws: every value is a pure function of seed, stream and row number.

So any row can be made alone, in any order and in chunks of any size, and is always the same. Nothing
here keeps state, and nothing outside it may use another source of chance.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Index = NDArray[np.int64]
Bits = NDArray[np.uint64]
Mask = NDArray[np.bool_]

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_HEX = np.frombuffer(b"0123456789abcdef", dtype=np.uint8)
_HEX_PLACES = np.array([i for i in range(36) if i not in (8, 13, 18, 23)])


@dataclass(frozen=True)
class Draw:
    """Draws for one seed. `stream` names what is drawn; `index` holds row numbers from 0."""

    seed: int

    def bits(self, stream: str, index: Index) -> Bits:
        """64 random bits a row (splitmix64 over the row number, keyed by seed and stream)."""
        digest = hashlib.blake2b(f"{self.seed}\x1f{stream}".encode(), digest_size=8).digest()
        z = (index.astype(np.uint64) + np.uint64(1)) * _GOLDEN + np.frombuffer(digest, dtype=np.uint64)[0]
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        mixed: Bits = z ^ (z >> np.uint64(31))
        return mixed

    def below(self, stream: str, index: Index, limit: int | Index) -> Index:
        """A whole number from 0 up to, not including, `limit` (one for all rows, or one a row)."""
        bound = np.asarray(limit, dtype=np.uint64)
        value: Index = (self.bits(stream, index) % bound).astype(np.int64)
        return value

    def chance(self, stream: str, index: Index, share: float) -> Mask:
        """True for about `share` of the rows."""
        mask: Mask = self.bits(stream, index) < np.uint64(min(int(share * 2**64), 2**64 - 1))
        return mask

    def pick(self, stream: str, index: Index, weights: Sequence[float]) -> Index:
        """Positions into `weights`, each as often as its weight says."""
        edges = np.cumsum(np.asarray(weights, dtype=np.float64))
        value = (self.bits(stream, index) >> np.uint64(11)).astype(np.float64) * (edges[-1] / 2**53)
        place: Index = np.minimum(np.searchsorted(edges, value, side="right"), len(edges) - 1).astype(np.int64)
        return place

    def keys(self, stream: str, index: Index) -> pa.Array:
        """36-character keys such as the legacy system makes, as Arrow text."""
        raw = np.empty((len(index), 2), dtype=">u8")
        raw[:, 0] = self.bits(f"{stream}/key/high", index)
        raw[:, 1] = self.bits(f"{stream}/key/low", index)
        return fixed_text(hyphenated(raw.view(np.uint8).reshape(len(index), 16)))

    def key_order(self, stream: str, index: Index) -> Bits:
        """The leading 64 bits of `keys`: they sort as the keys do."""
        return self.bits(f"{stream}/key/high", index)


def hyphenated(octets: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """16 octets a row as the 36 characters of a UUID's text."""
    digits = np.empty((len(octets), 32), dtype=np.uint8)
    digits[:, 0::2] = _HEX[octets >> 4]
    digits[:, 1::2] = _HEX[octets & 15]
    text = np.full((len(octets), 36), ord("-"), dtype=np.uint8)
    text[:, _HEX_PLACES] = digits
    return text


def fixed_text(octets: NDArray[np.uint8]) -> pa.Array:
    """An Arrow text array out of a matrix of ASCII codes, one row a value."""
    rows, width = octets.shape
    offsets = np.arange(0, (rows + 1) * width, width, dtype=np.int32) if width else np.zeros(rows + 1, np.int32)
    data = pa.py_buffer(np.ascontiguousarray(octets).tobytes())
    return pa.StringArray.from_buffers(rows, pa.py_buffer(offsets.tobytes()), data)


@dataclass(frozen=True)
class Lane:
    """A kind of mess: its share of the rows, and the fewest rows it has however small the table is.

    `paired` lanes hold an even number of rows, each with a partner.
    """

    name: str
    share: float
    floor: int = 2
    paired: bool = False


class Lanes:
    """Kinds of mess over the rows of a table, at most one a row, each in an exact number of rows.

    Rows are permuted by `row -> (a * row + b) mod rows`, and the kinds take neighbouring stretches
    of the permuted numbers; so both directions are arithmetic and nothing is stored.
    """

    def __init__(self, draw: Draw, stream: str, rows: int, lanes: Sequence[Lane]) -> None:
        self.rows = rows
        self.lanes = {lane.name: number for number, lane in enumerate(lanes)}
        counts = []
        for lane in lanes:
            count = max(lane.floor, round(lane.share * rows))
            counts.append(count + count % 2 if lane.paired else count)
        if sum(counts) > rows:
            raise ValueError(f"{rows} rows are too few to hold each kind of mess of {stream}")
        self.edges = np.cumsum([0, *counts])
        first, second = (int(v) for v in draw.bits(f"{stream}/lanes", np.arange(2)))
        self._a = max(1, int(rows * 0.6180339887) + first % max(1, rows // 7))
        while math.gcd(self._a, rows) != 1:
            self._a += 1
        self._b = second % rows

    @cached_property
    def _inverse(self) -> int:
        return pow(self._a, -1, self.rows) if self.rows > 1 else 0

    def _position(self, index: Index) -> Index:
        return (index * self._a + self._b) % self.rows

    def of(self, index: Index) -> Index:
        """The number of each row's lane, or the number of lanes where it has none."""
        return np.searchsorted(self.edges[1:], self._position(index), side="right").astype(np.int64)

    def has(self, index: Index, name: str) -> Mask:
        """True for the rows in that lane."""
        place = self._position(index)
        number = self.lanes[name]
        mask: Mask = (place >= self.edges[number]) & (place < self.edges[number + 1])
        return mask

    def first(self, index: Index, count: int) -> Mask:
        """True for rows that are among the first `count` of their lane."""
        if not self.lanes:
            return np.zeros(len(index), dtype=bool)
        place = self._position(index)
        start = self.edges[np.searchsorted(self.edges[1:-1], place, side="right")]
        mask: Mask = (place < self.edges[-1]) & (place - start < count)
        return mask

    def count(self, name: str) -> int:
        """How many rows are in that lane."""
        number = self.lanes[name]
        return int(self.edges[number + 1] - self.edges[number])

    def leads(self, index: Index, name: str) -> Mask:
        """True for the first row of each pair of a paired lane."""
        even: Mask = (self._position(index) - self.edges[self.lanes[name]]) % 2 == 0
        return self.has(index, name) & even

    def partner(self, index: Index, name: str) -> Index:
        """The other row of the pair, for rows in that paired lane; other rows get themselves."""
        start = int(self.edges[self.lanes[name]])
        other = start + ((self._position(index) - start) ^ 1)
        back = (self._inverse * ((other - self._b) % self.rows)) % self.rows
        return np.where(self.has(index, name), back, index)
