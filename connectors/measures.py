"""What is measured of a target: the room that rows take in it, and how far away it is."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Room:
    """Bytes on the target's disk: by table, of its rows and of its indexes; of our own records; and how many the
    server has written to its log, whoever made it write, since it was made."""

    tables: dict[str, tuple[int, int]]
    records: int
    log: int


@dataclass(frozen=True)
class Way:
    """How far away a target is: seconds that a question takes there and back, bytes a second that go there."""

    trip: float
    speed: float
