"""The figures of an evaluation for a person: scenarios one by one, then what they come to."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Console

from cli.views.table import Heading, number, show_table
from cli.views.text import one_line

if TYPE_CHECKING:
    from bench.eval_compare import Comparison
    from bench.eval_figures import Figure
    from bench.eval_runs import Cell
    from bench.evaluate import Result
    from bench.scenarios import Scenario

_MOST_NOTES = 5
_TOLD = ("wrong ", "extra ", "left out ")


def listed(console: Console, scenarios: Sequence[Scenario]) -> None:
    """The scenarios, with their split, their faults and what they are about."""
    headings = [Heading("scenario"), Heading("split"), Heading("faults"), Heading("what it is", wrap=True)]
    rows = [[s.name, s.split, ", ".join(s.faults) or "-", one_line(s.text)] for s in scenarios]
    show_table(console, headings, rows)


def progress(console: Console) -> Callable[[int, int, Cell], None]:
    """Says on a line which scenario is run."""

    def tell(done: int, total: int, cell: Cell) -> None:
        console.print(f"{done + 1}/{total} {cell.scenario.name}", style="dim")

    return tell


def show(console: Console, setting: str, results: Sequence[Result]) -> None:
    """A line a scenario, then the figures and the decisions by rung."""
    from bench.eval_figures import MEASURES, by_rung, figures
    from bench.judged import Judged, reliability

    headings = [
        Heading("scenario"), Heading("ended"), Heading("right"), number("rows exact"), number("fields right"), number("silent"),
        number("asked"), number("needed"), number("calls"), number("s"),
    ]  # fmt: skip
    show_table(console, headings, [_line(r) for r in results])
    for result in results:
        for note in [n for n in result.notes if n.startswith(_TOLD)] or result.notes[:_MOST_NOTES]:
            console.print(f"  {result.scenario}: {one_line(note)}", style="dim")
    found, shown = figures(results), {m.name: m.shown for m in MEASURES}
    rows = [[name, _told(shown[name], f), _interval(shown[name], f)] for name, f in found.items()]
    show_table(console, [Heading(setting), number("mean"), Heading("95 % over families")], rows)
    rungs = [[rung, right, wrong] for rung, (right, wrong) in by_rung(results).items()]
    show_table(console, [Heading("rung"), number("right"), number("wrong")], rungs)
    judged = [Judged(*each) for result in results for each in result.judged]
    called = [
        [kind, _called(sure), n or None, _of(right, n), left or None, _of(likely, left)]
        for kind, sure, n, right, left, likely in reliability(judged)
    ]
    headings = [
        Heading("kind"), Heading("called"), number("decided"), number("of them right"), number("left to a person"),
        number("the likeliest right"),
    ]  # fmt: skip
    show_table(console, headings, called)


def show_compared(console: Console, found: Comparison) -> None:
    """What moved between two runs."""
    figures = [
        [name, shown.format(before) if before is not None else None, shown.format(after) if after is not None else None]
        for name, before, after, shown in found.figures
    ]
    show_table(console, [Heading("figure"), number("before"), number("now")], figures)
    rows = [
        ["better" if m.better else "worse", m.scenario, *(f"{a:g} -> {b:g}" for a, b in (m.completed, m.silent_errors, m.questions))]
        for m in found.moved
        if m.better or m.worse
    ]  # fmt: skip
    if rows:
        columns = [Heading(""), Heading("scenario"), Heading("right"), Heading("silent"), Heading("asked")]
        show_table(console, columns, rows)
    else:
        console.print("no scenario is better or worse")
    if found.only:
        console.print(f"in one of the two alone: {', '.join(found.only)}")


def as_document(found: Mapping[str, Figure | None]) -> dict[str, Any]:
    """The figures as JSON values."""
    return {
        name: None if f is None else {"value": f.value, "low": f.low, "high": f.high} for name, f in found.items()
    }  # fmt: skip


def _line(r: Result) -> list[object]:
    fields = r.right + r.near + r.wrong + r.open + r.missing
    return [
        r.scenario, one_line(r.outcome), r.completed, f"{r.exact_rows:.1%}", f"{r.right} of {fields}", r.silent_errors, r.asked, r.needed,
        r.calls, f"{r.seconds:.1f}",
    ]  # fmt: skip


def _called(sure: float) -> str:
    """A row of the table: how sure a decision was called."""
    from bench.judged import SURE

    above = [level for level in SURE if level > sure]
    return f"{sure:g} to {above[0]:g}" if above else f"{sure:g} and more"


def _of(right: int, n: int) -> str | None:
    return f"{right / n:.0%}" if n else None


def _told(shown: str, found: Figure | None) -> str | None:
    return None if found is None else shown.format(found.value)


def _interval(shown: str, found: Figure | None) -> str | None:
    if found is None or found.low is None or found.high is None:
        return None
    return f"{shown.format(found.low)} to {shown.format(found.high)}"
