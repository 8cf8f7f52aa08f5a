"""The live view of a running job: phase, entity, rows a second, time left, quarantined, model calls.

Fed by progress callbacks that come often, so each costs next to nothing; a terminal is drawn four times a
second, and where there is none a plain line is printed every few seconds. All of it goes to stderr.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Protocol

from rich.console import Console, ConsoleOptions, RenderResult
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from cli.views.output import is_plain
from cli.views.text import visible

LINE_SECONDS = 3.0
_WINDOW = 10.0  # seconds that the rate is taken over
_AT_MOST = 12  # entities shown; those before are summed up in the first line

Clock = Callable[[], float]


class Step(Protocol):
    """What a callback brings; `engine.context.Progress` is one. Counts are rows."""

    @property
    def phase(self) -> str:
        """survey, match, preview, stage, load, references, verify or done."""

    @property
    def entity(self) -> str:
        """Empty between entities."""

    @property
    def rows_done(self) -> int:
        """Rows of the entity that this phase is done with."""

    @property
    def rows_total(self) -> int | None:
        """None where it isn't known."""

    @property
    def quarantined(self) -> int:
        """Rows of the entity in quarantine so far."""


@dataclass
class Line:
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


class LiveView:
    """A context manager; call it with each step of progress. `model_calls` may be set at any time."""

    def __init__(self, console: Console, title: str, clock: Clock = time.monotonic) -> None:
        self.console = console
        self.title = title
        self.model_calls = 0
        self._clock = clock
        self._began = clock()
        self._lines: dict[tuple[str, str], Line] = {}
        self._current: Line | None = None
        self._printed = self._began
        self._live = None if is_plain(console) else Live(self, console=console, refresh_per_second=4)

    def __enter__(self) -> LiveView:
        if self._live:
            self._live.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live:
            self._live.__exit__(kind, error, trace)
        elif self._current:
            self.console.print(self._plain())

    def pause(self) -> None:
        """Takes the view off the terminal while a person is asked something."""
        if self._live:
            self._live.stop()

    def go_on(self) -> None:
        """Brings the view back."""
        if self._live:
            self._live.start(refresh=True)

    def __call__(self, step: Step) -> None:
        """Takes in a step of progress."""
        now = self._clock()
        self.model_calls = getattr(step, "model_calls", 0) or self.model_calls
        key = (step.phase, step.entity)
        line = self._lines.get(key)
        if line is None:
            line = self._lines[key] = Line(step.phase, step.entity, began=now)
        begun = self._current is not line
        self._current = line
        line.total, line.quarantined = step.rows_total, step.quarantined
        line.note(now, step.rows_done)
        if self._live is None and (begun or now - self._printed >= LINE_SECONDS):
            self._printed = now
            self.console.print(self._plain())

    @property
    def quarantined(self) -> int:
        """Rows in quarantine over all entities."""
        latest = {line.entity: line.quarantined for line in self._lines.values() if line.phase == "load"}
        return sum(latest.values())

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """The view as Rich draws it."""
        phase = self._current.phase if self._current else "starting"
        head = Text.assemble(
            (self.title, "bold"),
            f"   {phase}   {duration(self._clock() - self._began)}   ",
            f"{self.quarantined:,} quarantined   {self.model_calls:,} model calls",
        )
        yield head
        table = Table.grid(padding=(0, 2))
        for justify in ("left", "left", "left", "right", "right", "right"):
            table.add_column(justify="left" if justify == "left" else "right", no_wrap=True)
        for line in list(self._lines.values())[-_AT_MOST:]:
            if line.entity:
                table.add_row(*self._row(line, options.max_width))
        yield table

    def _row(self, line: Line, width: int) -> list[Text | ProgressBar | str]:
        total = line.total if line.total is not None else None
        bar: ProgressBar | str = (
            ProgressBar(total=max(total, 1), completed=max(line.done, 1) if line.done == total else line.done, width=20)
            if total is not None and width >= 90
            else ""
        )
        return [
            Text(line.phase),
            Text(visible(line.entity, 24)),
            bar,
            Text(_rows(line)),
            Text(_speed(line)),
            Text(_left(line) or (f"{line.quarantined:,} quarantined" if line.quarantined else "")),
        ]

    def _plain(self) -> str:
        line = self._current
        assert line is not None
        parts = [f"{line.phase} {visible(line.entity)}".strip(), _rows(line), _speed(line), _left(line)]
        if self.quarantined:
            parts.append(f"{self.quarantined:,} quarantined")
        if self.model_calls:
            parts.append(f"{self.model_calls:,} model calls")
        return "  ".join(part for part in parts if part)


def duration(seconds: float) -> str:
    """`0:42`, `12:05`, `3:01:09`."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def _rows(line: Line) -> str:
    if line.total is None:
        return f"{line.done:,} rows" if line.done else ""
    return f"{line.done:,} / {line.total:,} rows"


def _speed(line: Line) -> str:
    taken = line.ended - line.began
    rate = line.rate() or (line.done / taken if taken > 0 else None)
    return f"{rate:,.0f} rows/s" if rate else ""


def _left(line: Line) -> str:
    left = line.seconds_left()
    return f"{duration(left)} left" if left else ""
