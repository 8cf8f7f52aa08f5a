"""Taking back, for a person: what would be done by entity, what was done, and the rows that stay."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console

from cli.views.table import Heading, number, show_table
from cli.views.text import one_line, visible

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from connectors.records import KeptRow
    from engine.undo import UndoOutcome, UndoPreview


def show_foreseen(console: Console, foreseen: UndoPreview) -> None:
    """A row an entity, newest first; then the rows that stay, and what will be slow."""
    headings = [
        Heading("entity"), Heading("in"), number("batches"), number("delete"), number("restore"), number("stay"),
        number("quarantined"),
    ]  # fmt: skip
    rows: list[list[object]] = [
        [e.entity, e.target, e.batches, e.delete, e.restore, sum(e.kept.values()), e.quarantined]
        for e in reversed(foreseen.entities)
    ]
    sums = [sum(int(str(row[i])) for row in rows) for i in range(2, 7)]
    show_table(console, headings, rows, total=["all", "", *sums])
    _show_kept(console, {e.entity: e.kept for e in foreseen.entities}, foreseen.kept_rows)
    for line in foreseen.slow:
        console.print(f"slow: {one_line(line)}")


def show(console: Console, job: str, batch: str | None, outcome: UndoOutcome, *, nothing: bool) -> None:
    """What was done, then the rows that stay."""
    what = f"{job}, batch {visible(batch)}" if batch else job
    if nothing:
        console.print(f"{what}: nothing of it is left in the target")
        return
    _show_kept(console, outcome.kept, outcome.kept_rows)
    done = f"{outcome.deleted:,} rows deleted, {outcome.restored:,} restored"
    if outcome.refused:
        console.print(f"{what}: {done}, {outcome.refused:,} STAY", style="bold yellow")
        console.print(f"  migrate undo {job} tries those again")
    else:
        console.print(f"{what}: taken back: {done}", style="green")


def _show_kept(console: Console, kept: Mapping[str, Mapping[str, int]], rows: Sequence[KeptRow]) -> None:
    """Counts by entity and reason, then the first rows by key."""
    for entity, reasons in kept.items():
        for reason, count in reasons.items():
            console.print(f"  {count:>9,} rows of {visible(entity)} stay: {one_line(reason)}")
    if rows:
        console.print("\nrows that stay, the first of them", style="bold")
        headings = [Heading("entity"), Heading("key"), Heading("id"), Heading("reason", wrap=True)]
        show_table(console, headings, [[row.entity, "|".join(row.key), row.id, row.reason] for row in rows])
