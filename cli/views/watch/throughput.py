"""Rows a second over the time of a load: what the sparkline is drawn of."""

from __future__ import annotations

from itertools import pairwise


class Throughput:
    """When how many rows were in the target. Instants in seconds, on a clock that only goes on while rows move."""

    def __init__(self) -> None:
        self._marks: list[tuple[float, int]] = []
        self._rows = 0

    def begin(self, now: float) -> None:
        """Rows may move from now on."""
        self._marks.append((now, self._rows))

    def add(self, now: float, rows: int) -> None:
        """A batch of so many rows is committed."""
        self._rows += rows
        self._marks.append((now, self._rows))

    def rates(self, count: int) -> list[float]:
        """Rows a second in each of `count` equal spans from the first instant to the last batch. A batch's rows count
        for the time since the one before. Empty before the first batch."""
        if count < 1 or not self._rows or self._marks[-1][0] <= self._marks[0][0]:
            return []
        start, span = self._marks[0][0], (self._marks[-1][0] - self._marks[0][0]) / count
        edges = [start + span * n for n in range(count + 1)]
        done = self._done_at(edges)
        return [(after - before) / span for before, after in pairwise(done)]

    def _done_at(self, instants: list[float]) -> list[float]:
        """How many rows were done at each of the instants, which are in order."""
        out: list[float] = []
        n = 0
        for at in instants:
            while n + 1 < len(self._marks) - 1 and self._marks[n + 1][0] <= at:
                n += 1
            (t0, r0), (t1, r1) = self._marks[n], self._marks[n + 1]
            share = min(1.0, max(0.0, (at - t0) / (t1 - t0))) if t1 > t0 else 1.0
            out.append(r0 + (r1 - r0) * share)
        return out
