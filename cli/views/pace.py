"""How fast a phase of one entity goes, and when it will be done; and the words for it."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from cli.views.text import visible

_WINDOW = 10.0  # seconds that the rate is taken over
_MARKS = 512  # measurements kept of one entity
FIRST_BATCH = 1.8
"""How many times as long an entity's first batch takes as the next: nothing is under way yet that it could follow
on. Measured on the sample."""


@dataclass
class Pace:
    """One entity in one phase, as far as it is. Instants are in seconds, on any clock that stands still in a pause."""

    phase: str
    entity: str
    done: int = 0
    total: int | None = None
    quarantined: int = 0
    began: float = 0.0
    ended: float = 0.0
    before: int = 0  # rows that were done when it began
    seen: deque[tuple[float, int]] = field(default_factory=deque)
    marks: list[tuple[float, int]] = field(default_factory=list)

    def note(self, now: float, done: int) -> None:
        """Takes in how many rows are done now."""
        self.done, self.ended = done, now
        self.seen.append((now, done))
        while len(self.seen) > 2 and now - self.seen[0][0] > _WINDOW:
            self.seen.popleft()
        self.marks.append((now, done))
        if len(self.marks) > _MARKS:
            del self.marks[1:-1:2]

    def rate(self) -> float | None:
        """Rows a second over the last ten seconds; None before there are two measurements."""
        if len(self.seen) < 2 or self.seen[-1][0] <= self.seen[0][0]:
            return None
        return (self.seen[-1][1] - self.seen[0][1]) / (self.seen[-1][0] - self.seen[0][0])

    def steady_rate(self) -> float | None:
        """Rows a second, as the rest will go: over the later half of the time so far, ten seconds at least, so that one
        slow batch moves it little. Of the first batch alone, what it comes to once batches follow on one another; None
        before that."""
        if not self.marks:
            return None
        last, done = self.marks[-1]
        start = min(last - _WINDOW, (last + self.marks[0][0]) / 2)
        at, there = next(mark for mark in self.marks if mark[0] >= start)
        if at < last:
            return (done - there) / (last - at) or None
        if last > self.began and done > self.before:
            return (done - self.before) / (last - self.began) * FIRST_BATCH
        return None

    def seconds_left(self, now: float | None = None) -> float | None:
        """Time until this line is done, from the last measurement on; from `now` on, where that is given and the next
        isn't overdue. None where total or rate aren't known."""
        rate = self.steady_rate()
        if self.total is None or not rate:
            return None
        waited = 0.0
        if now is not None and self.done > self.before:
            each = (self.ended - self.began) / len(self.marks)
            waited = min(max(0.0, now - self.ended), each)
        return max(0.0, (self.total - self.done) / rate - waited)


def duration(seconds: float) -> str:
    """`0:42`, `12:05`, `3:01:09`."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def pace_text(pace: Pace, now: float | None = None) -> str:
    """All of it in one line."""
    parts = [f"{pace.phase} {visible(pace.entity)}".strip(), rows_text(pace), speed_text(pace), left_text(pace, now)]
    return "  ".join(part for part in parts if part)


def rows_text(pace: Pace) -> str:
    """`1,200 / 5,000 rows`; empty before the first row."""
    if pace.total is None:
        return f"{pace.done:,} rows" if pace.done else ""
    return f"{pace.done:,} / {pace.total:,} rows"


def speed_text(pace: Pace) -> str:
    """`12,000 rows/s`; empty where it isn't known."""
    taken = pace.ended - pace.began
    rate = pace.rate() or ((pace.done - pace.before) / taken if taken > 0 else None)
    return f"{rate:,.0f} rows/s" if rate else ""


def totals_text(line: str, quarantined: int, model_calls: int = 0) -> str:
    """A line with what counts for the whole job after it."""
    held = f"{quarantined:,} quarantined" if quarantined else ""
    calls = f"{model_calls:,} model calls" if model_calls else ""
    return "  ".join(part for part in (line, held, calls) if part)


def left_text(pace: Pace, now: float | None = None) -> str:
    """`0:12 left`; empty where it isn't known, or when nothing is left."""
    left = pace.seconds_left(now)
    return f"{duration(left)} left" if left else ""
