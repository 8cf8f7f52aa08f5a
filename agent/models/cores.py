"""How many threads a model should compute with on a machine that does other work too."""

from __future__ import annotations

import os
import time

import psutil


def physical_cores() -> int:
    """Cores this process may use, hyperthreads not counted; at least 1."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(psutil.cpu_count(logical=False) or allowed, allowed))


class IdleCores:
    """The physical cores that other processes leave idle, counted between one call and the next.

    A thread that waits for a core holds up all the others at each of a model's layers: on two busy cores,
    two threads were measured to take several times as long as one.
    """

    def __init__(self) -> None:
        self._cores = physical_cores()
        self._seen = _times()
        self._free = self._cores

    def __call__(self) -> int:
        """The number now, at least 1; the last one again where no time has passed."""
        now = _times()
        wall, busy, own = (new - old for new, old in zip(now, self._seen, strict=True))
        if wall >= 0.1:
            self._seen = now
            others = max(0.0, busy - own) / wall
            self._free = max(1, min(self._cores, int(self._cores - others + 0.4)))
        return self._free


def _times() -> tuple[float, float, float]:
    """Wall time, the time all cores were busy, the time they were so for this process; in seconds."""
    whole, own = psutil.cpu_times(), psutil.Process().cpu_times()
    parts = ("user", "nice", "system", "irq", "softirq")
    return time.monotonic(), sum(getattr(whole, part, 0.0) for part in parts), own.user + own.system
