"""The live view of a running job: phase, entity, rows a second, time left, quarantined, model calls.

Fed by progress callbacks that come often, so each costs next to nothing; a terminal is drawn four times a
second, and where there is none a plain line is printed every few seconds. All of it goes to stderr.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from types import TracebackType
from typing import Protocol

from rich.console import Console, ConsoleOptions, RenderResult
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from cli.views.output import is_plain
from cli.views.pace import Pace, duration, left_text, pace_text, rows_text, speed_text, totals_text
from cli.views.text import one_line, visible

LINE_SECONDS = 3.0
_BY_TABLE = ("survey", "match", "verify", "again", "paused")
_AT_MOST = 14  # entities shown, the latest; a terminal of 24 lines holds them

Clock = Callable[[], float]


class Step(Protocol):
    """What a callback brings; `engine.context.Progress` is one. Counts are rows."""

    @property
    def phase(self) -> str:
        """survey, match, preview, stage, load, references, verify, paused or done."""

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


class LiveView:
    """A context manager; call it with each step of progress. `model_calls` may be set at any time."""

    def __init__(self, console: Console, title: str, clock: Clock = time.monotonic) -> None:
        self.console = console
        self.title = title
        self.model_calls = 0
        self._clock = clock
        self._began = self._printed = clock()
        self._phase, self._note = "", ""
        self._paces: dict[str, Pace] = {}  # by entity, in its latest phase
        self._quarantined: dict[str, int] = {}
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
        if note := getattr(step, "note", ""):
            self.console.print(f"note: {one_line(note)}", markup=False, highlight=False)
            return
        self.model_calls = max(self.model_calls, getattr(step, "model_calls", 0))
        if step.quarantined:
            self._quarantined[step.entity] = step.quarantined
        begun = step.phase != self._phase
        self._phase, self._note = step.phase, ""
        ended = False
        if step.phase in _BY_TABLE:  # counts tables, not rows
            of = f" {step.rows_done} of {step.rows_total}" if step.rows_total else ""
            self._note = f"{visible(step.entity)}{of}"
            line = f"{step.phase} {self._note}".strip()
        else:
            pace = self._pace(step, now)
            ended = pace.total is not None and pace.done >= pace.total
            line = pace_text(pace)
        if self._live is None and (begun or ended or now - self._printed >= LINE_SECONDS):
            self._printed = now
            self.console.print(totals_text(line, self.quarantined, self.model_calls))

    def _pace(self, step: Step, now: float) -> Pace:
        pace = self._paces.get(step.entity)
        if pace is None or pace.phase != step.phase:
            # the first batch of a load is on its way from the moment that its rows are read
            began = pace.began if pace is not None and (pace.phase, step.phase) == ("stage", "load") else now
            pace = self._paces[step.entity] = Pace(step.phase, step.entity, began=began)
        pace.total = step.rows_total
        pace.note(now, step.rows_done)
        return pace

    @property
    def quarantined(self) -> int:
        """Rows in quarantine over all entities."""
        return sum(self._quarantined.values())

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """The view as Rich draws it."""
        yield Text.assemble(
            (self.title, "bold"),
            f"   {self._phase} {self._note}".rstrip() + f"   {duration(self._clock() - self._began)}   ",
            f"{self.quarantined:,} quarantined   {self.model_calls:,} model calls",
        )
        table = Table.grid(padding=(0, 2))
        for right in (False, False, False, True, True, True):
            table.add_column(justify="right" if right else "left", no_wrap=True)
        for pace in list(self._paces.values())[-_AT_MOST:]:
            if pace.entity:
                table.add_row(*self._row(pace, options.max_width))
        yield table

    def _row(self, pace: Pace, width: int) -> list[Text | ProgressBar | str]:
        bar: ProgressBar | str = ""
        if pace.total is not None and width >= 90:
            bar = ProgressBar(total=max(pace.total, 1), completed=pace.done if pace.total else 1, width=20)
        held = self._quarantined.get(pace.entity)
        return [
            Text(visible(pace.entity, 24), style="bold" if pace.done != pace.total else ""),
            Text(pace.phase, style="dim"),
            bar,
            Text(rows_text(pace)),
            Text(speed_text(pace)),
            Text(left_text(pace, self._clock()) or (f"{held:,} quarantined" if held else "")),
        ]
