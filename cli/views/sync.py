"""A sync, for a person: how far the target lay behind, what changed, what was brought in, and what stays as it was edited."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console

from cli.views.pace import duration
from cli.views.table import Heading, number, show_table
from cli.views.text import one_line, visible

if TYPE_CHECKING:
    from engine.sync_outcome import EntitySynced, SyncOutcome

MOST_SHOWN = 20
_FOUND = ("new", "changed", "again", "gone")
_DONE = ("inserted", "updated", "unchanged", "excluded", "quarantined", "freed", "kept")
_ONLY_SOME = ("deleted", "marked", "stayed")


def show(console: Console, job: str, outcome: SyncOutcome) -> None:
    """A row an entity, the rows that stay as they were edited, then the verdict."""
    columns = [*_FOUND, *(_DONE if outcome.done else ())]
    columns += [name for name in _ONLY_SOME if any(getattr(e, name) for e in outcome.entities)]
    rows = [[e.entity, e.seen, *(getattr(e, name) for name in columns)] for e in outcome.entities]
    sums = [sum(getattr(e, name) or 0 for e in outcome.entities) for name in ("seen", *columns)]
    show_table(console, [Heading("entity"), number("read"), *map(number, columns)], rows, total=["all", *sums])
    for line in _notes(outcome):
        console.print(one_line(line))
    _show_kept(console, outcome)
    behind = f"{duration(outcome.lag)} after the source was last read"
    total = sum(e.new + e.changed for e in outcome.entities)
    if not outcome.done:
        console.print(f"{job}: {total:,} rows changed, {behind}; nothing was written")
    elif outcome.asked:
        console.print(f"{job}: in step, {behind}; {outcome.asked:,} EDITED ROWS WAIT FOR YOU", style="bold yellow")
        console.print(f"  migrate sync {job} --edited keep|overwrite, or --plan with another `edited`, says what holds")
    else:
        console.print(f"{job}: in step, {behind}: {total:,} rows changed", style="green")


def _notes(outcome: SyncOutcome) -> list[str]:
    lines = []
    for each in outcome.entities:
        lines += _note(each)
    lines += [f"{name}: {why}" for name, why in outcome.skipped.items()]
    return lines


def _note(each: EntitySynced) -> list[str]:
    lines = []
    if each.gone and not each.deleted and not each.marked:
        lines.append(f"{each.entity}: {each.gone:,} rows are gone from the source, and stay in the target")
    if not each.snapshot:
        lines.append(
            f"{each.entity}: not read at one instant of the source: another sync brings what changed meanwhile"
        )
    return lines


def _show_kept(console: Console, outcome: SyncOutcome) -> None:
    kept = [(entity, row) for entity, rows in outcome.kept.items() for row in rows]
    if kept:
        console.print("\nrows that stay as they are in the target, in these fields", style="bold")
        headings = [Heading("entity"), Heading("key"), Heading("id"), Heading("fields", wrap=True), Heading("asked")]
        shown = [
            [visible(entity), row.old_id.replace("\x1f", "|"), row.new_id, row.fields, row.asked]
            for entity, row in kept[:MOST_SHOWN]
        ]
        show_table(console, headings, shown)
        if len(kept) > MOST_SHOWN:
            console.print(f"and {len(kept) - MOST_SHOWN:,} more: --json lists all")
