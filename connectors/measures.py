"""What is measured of a system: the room that rows take in a target, how far away it is, and what one meets there."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")


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


@dataclass(frozen=True)
class Reached:
    """What one meets at a system: product and version, how the way there is encrypted ("" where it isn't), seconds to
    connect, seconds that a question takes there and back (None where there is no server)."""

    server: str
    encrypted: str
    connected: float
    trip: float | None = None


def timed(act: Callable[[], T]) -> tuple[float, T]:
    """The seconds that it took, and what it gave."""
    started = time.perf_counter()
    given = act()
    return time.perf_counter() - started, given
