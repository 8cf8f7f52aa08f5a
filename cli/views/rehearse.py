"""A rehearsal for a person: the rows by outcome, how rows fail, where the copy differs, and what is foreseen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from rich.console import Console

from cli.views.table import Heading, number, show_table
from cli.views.text import one_line, visible

if TYPE_CHECKING:
    from engine.rehearsal import Forecast, Rehearsal

_MOST = 8  # signatures shown of an entity


def show(console: Console, job: str, found: Rehearsal, held: Mapping[str, Sequence[str]]) -> None:
    """All that was found, the verdict last."""
    names = ("read", "loaded", "merged", "excluded", "quarantined", "collisions")
    rows = [[e.entity, e.target, *(getattr(e, name) for name in names)] for e in found.entities]
    sums = [sum(getattr(e, name) for e in found.entities) for name in names]
    show_table(
        console, [Heading("entity"), Heading("to"), *map(number, names)], rows, total=["all", "", *sums]
    )  # fmt: skip
    for entity in found.entities:
        for signature, count in list(entity.signatures.items())[:_MOST]:
            console.print(f"  {count:>9,} to quarantine: {entity.entity}: {visible(signature, 110)}")
        if len(entity.signatures) > _MOST:
            console.print(f"  {'':>9} and {len(entity.signatures) - _MOST} signatures more of {entity.entity}")
    for difference in found.differences:
        console.print(f"not as in the target: {one_line(difference)}", style="yellow")
    for name, questions in held.items():
        console.print(f"{name} was not rehearsed: it waits for {', '.join(questions)}", style="yellow")
    _show_forecast(console, found.forecast, found)
    for problem in found.problems:
        console.print(f"{one_line(problem)}", style="bold red")
    verdict = "NOT RECONCILED" if found.problems else "rehearsed, reconciled"
    console.print(f"{job}: {verdict}; nothing was written to the target", style="bold")
    console.print(f"to load what was rehearsed: migrate resume {job}")


def _show_forecast(console: Console, forecast: Forecast, found: Rehearsal) -> None:
    trip = f"{found.way.trip * 1000:.1f} ms and {found.way.speed / 1e6:,.0f} MB/s away"
    console.print("\nforeseen", style="bold")
    console.print(
        f"  time    {seconds(forecast.seconds)}: load {seconds(forecast.load_seconds)} as rehearsed, {seconds(forecast.way_seconds)} more "
        f"for a target {trip}, verify {seconds(forecast.verify_seconds)}"
    )
    if forecast.read_seconds is not None:
        console.print(f"  reading {seconds(forecast.read_seconds)}, done: the job loads what was read")
    console.print(
        f"  here    {size(forecast.stage_bytes)} of stage, {size(forecast.transformed_bytes)} of transformed parts"
    )
    console.print(
        f"  target  {size(forecast.target_bytes)} of rows and indexes, {size(forecast.record_bytes)} of our records, "
        f"{size(forecast.log_bytes)} written to its log"
    )


def seconds(value: float) -> str:
    """`48 s`, `12 min`, `3 h 05 min`."""
    if value < 90:
        return f"{value:.1f} s" if value < 10 else f"{value:.0f} s"
    minutes = round(value / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60:02} min"


def size(value: int) -> str:
    """Bytes in the unit that reads best, in powers of 1000."""
    for unit in ("B", "kB", "MB", "GB"):
        if abs(value) < 1000:
            return f"{value:,.0f} {unit}" if unit == "B" or value >= 10 else f"{value:.1f} {unit}"
        value = value / 1000  # type: ignore[assignment]
    return f"{value:,.1f} TB"
