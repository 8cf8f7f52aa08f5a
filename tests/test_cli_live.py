"""The live view, drawn and as lines, with a clock of our own."""

from __future__ import annotations

import io

from rich.console import Console

from cli.views.live import LiveView
from engine.context import Progress


class Clock:
    """Seconds that pass when told to."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_lines_where_there_is_no_terminal() -> None:
    out, clock = io.StringIO(), Clock()
    with LiveView(Console(file=out, width=200), "crm-to-cloud", clock) as view:
        view(Progress("survey"))
        view(Progress("load", "contacts", 0, 100_000))
        for second in range(1, 9):
            clock.now = float(second)
            view(Progress("load", "contacts", second * 10_000, 100_000, second))
        view.model_calls = 4
        clock.now = 10.0
        view(Progress("load", "contacts", 100_000, 100_000, 10))
    lines = out.getvalue().splitlines()
    assert lines == [
        "survey",
        "load contacts  0 / 100,000 rows",
        "load contacts  30,000 / 100,000 rows  10,000 rows/s  0:07 left  3 quarantined",
        "load contacts  60,000 / 100,000 rows  10,000 rows/s  0:04 left  6 quarantined",
        "load contacts  100,000 / 100,000 rows  10,000 rows/s  10 quarantined  4 model calls",
    ]
    assert "\x1b" not in out.getvalue()


def test_drawn_on_a_terminal_of_80_columns() -> None:
    out, clock = io.StringIO(), Clock()
    console = Console(file=out, force_terminal=True, width=80, height=24, markup=False, color_system=None)
    view = LiveView(console, "job", clock)
    for number in range(30):
        view(Progress("load", f"entity[red]{number}", 5, 10, 1))
        clock.now += 1
    console.print(view)
    drawn = out.getvalue().splitlines()
    assert len(drawn) < 24
    assert all(len(line) <= 80 for line in drawn)
    assert "entity[red]29" in out.getvalue()
    assert "30 quarantined" in drawn[0]


def test_a_second_pass_keeps_what_was_quarantined() -> None:
    view = LiveView(Console(file=io.StringIO()), "job", Clock())
    view(Progress("load", "contacts", 10, 10, 3))
    view(Progress("references", "contacts", 5, 10))
    assert view.quarantined == 3
