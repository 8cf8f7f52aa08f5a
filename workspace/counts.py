"""The counts of the equation, and the batches they come from.

A batch that is re-driven takes the place of its earlier self, so each batch is remembered with its counts
(never a row). Values here are immutable; a change gives a new one that shares what stayed the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Generic, TypeVar

from workspace.events import BatchCommitted

_SHELF = 256  # batches a shelf: a change copies one shelf and the list of shelves, whatever the entity's size

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Counts:
    """Rows by outcome: read = inserted + updated + unchanged + merged + excluded + quarantined."""

    read: int = 0
    inserted: int = 0
    updated: int = 0
    unchanged: int = 0
    merged: int = 0
    excluded: int = 0
    quarantined: int = 0

    @property
    def loaded(self) -> int:
        """Rows that stand in the target: inserted + updated + unchanged."""
        return self.inserted + self.updated + self.unchanged

    @property
    def missing(self) -> int:
        """Rows read that no outcome accounts for; 0 when the equation holds."""
        return self.read - self.loaded - self.merged - self.excluded - self.quarantined

    def __add__(self, other: Counts) -> Counts:
        return Counts(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(Counts)))

    def __sub__(self, other: Counts) -> Counts:
        return Counts(*(getattr(self, f.name) - getattr(other, f.name) for f in fields(Counts)))

    def to_dict(self) -> dict[str, int]:
        """The counts by name, with `loaded` and `missing`."""
        return {**asdict(self), "loaded": self.loaded, "missing": self.missing}


@dataclass(frozen=True, slots=True)
class Batch:
    """A committed batch: its counts, the plan version that moved it, and its failures by signature. Of the counts,
    `retried` are those of rows that left the quarantine later, and `references` how many of them had some filled;
    `dropped` are rows given up, by signature; `excluded_by` those that the load left out, by condition; `matched` those that
    are one with a row which the target held before (None where nobody counted them)."""

    counts: Counts
    plan_version: int
    seconds: float
    recovered: bool
    signatures: tuple[tuple[str, int], ...] = ()
    dropped: tuple[tuple[str, int], ...] = ()
    retried: Counts = Counts()
    references: int = 0
    excluded_by: tuple[tuple[str, int], ...] = ()
    matched: int | None = None


def batch_of(event: BatchCommitted) -> Batch:
    """The batch that the event tells of."""
    counts = Counts(
        event.read,
        event.inserted,
        event.updated,
        event.unchanged,
        event.merged,
        event.excluded,
        event.quarantined,
    )
    left_out = tuple(event.excluded_by.items())
    return Batch(
        counts, event.plan_version, event.seconds, event.recovered, excluded_by=left_out, matched=event.matched
    )


@dataclass(frozen=True)
class Numbered(Generic[T]):
    """Values by number (batches, parts), immutable, cheap to change one at a time."""

    _shelves: Mapping[int, Mapping[int, T]] = field(default_factory=dict)
    _length: int = 0

    def get(self, number: int) -> T | None:
        """The value of that number, or None."""
        return self._shelves.get(number // _SHELF, {}).get(number)

    def put(self, number: int, value: T) -> Numbered[T]:
        """The same with `value` at `number`, in the place of what was there."""
        shelf = self._shelves.get(number // _SHELF, {})
        grown = self._length + (number not in shelf)
        shelves = {**self._shelves, number // _SHELF: {**shelf, number: value}}
        return replace(self, _shelves=shelves, _length=grown)

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[tuple[int, T]]:
        for shelf in sorted(self._shelves):
            yield from sorted(self._shelves[shelf].items(), key=lambda pair: pair[0])
