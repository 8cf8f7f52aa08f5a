"""How fast a phase of one entity goes, and when it will be done; and the words for it."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from cli.views.text import visible

_WINDOW = 10.0  # seconds that the rate is taken over


@dataclass
class Pace:
    """One entity in one phase, as far as it is."""

    phase: str
    entity: str
    done: int = 0
    total: int | None = None
    quarantined: int = 0
    began: float = 0.0
    ended: float = 0.0
    seen: deque[tuple[float, int]] = field(default_factory=deque)

    def note(self, now: float, done: int) -> None:
        """Takes in how many rows are done now."""
        self.done, self.ended = done, now
        self.seen.append((now, done))
        while len(self.seen) > 2 and now - self.seen[0][0] > _WINDOW:
            self.seen.popleft()

    def rate(self) -> float | None:
        """Rows a second over the last ten seconds; None before there are two measurements."""
        if len(self.seen) < 2 or self.seen[-1][0] <= self.seen[0][0]:
            return None
        return (self.seen[-1][1] - self.seen[0][1]) / (self.seen[-1][0] - self.seen[0][0])

    def seconds_left(self) -> float | None:
        """Time until this line is done; None where total or rate aren't known."""
        rate = self.rate()
        if self.total is None or not rate:
            return None
        return max(0.0, (self.total - self.done) / rate)


def duration(seconds: float) -> str:
    """`0:42`, `12:05`, `3:01:09`."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def pace_text(pace: Pace) -> str:
    """All of it in one line."""
    parts = [f"{pace.phase} {visible(pace.entity)}".strip(), rows_text(pace), speed_text(pace), left_text(pace)]
    return "  ".join(part for part in parts if part)


def rows_text(pace: Pace) -> str:
    """`1,200 / 5,000 rows`; empty before the first row."""
    if pace.total is None:
        return f"{pace.done:,} rows" if pace.done else ""
    return f"{pace.done:,} / {pace.total:,} rows"


def speed_text(pace: Pace) -> str:
    """`12,000 rows/s`; empty where it isn't known."""
    taken = pace.ended - pace.began
    rate = pace.rate() or (pace.done / taken if taken > 0 else None)
    return f"{rate:,.0f} rows/s" if rate else ""


def left_text(pace: Pace) -> str:
    """`0:12 left`; empty where it isn't known, or when nothing is left."""
    left = pace.seconds_left()
    return f"{duration(left)} left" if left else ""
