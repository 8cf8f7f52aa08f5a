"""The reconciliation for a person: the equation by entity, what doesn't hold, and what is worth knowing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console

from cli.views.table import Heading, number, show_table
from cli.views.text import one_line

if TYPE_CHECKING:
    from engine.verify import Verification


def show(console: Console, job: str, found: Verification) -> None:
    """The table, then the verdict. Rows among the loaded that were there before are a column where a plan matches any."""
    matches = [e.matched for e in found.entities if e.matched is not None]
    headings = [
        Heading("entity"), Heading("to"), number("counted"), number("read"), number("loaded"), number("merged"),
        number("excluded"), number("quarantined"), *([number("matched")] if matches else []), Heading("holds"),
    ]  # fmt: skip
    rows = [
        [
            e.entity, e.target, e.counted, e.read, e.loaded, e.merged, e.excluded, e.quarantined,
            *([e.matched] if matches else []), not e.problems,
        ]
        for e in found.entities
    ]  # fmt: skip
    sums = [
        sum(getattr(e, name) for e in found.entities)
        for name in ("read", "loaded", "merged", "excluded", "quarantined")
    ]
    if matches:
        sums.append(sum(matches))
    show_table(console, headings, rows, total=["all", "", None, *sums, found.ok])
    for entity in found.entities:
        for problem in entity.problems:
            console.print(f"{entity.entity or job}: {one_line(problem)}", style="bold red")
        left_out = [
            f"{count:,} {one_line(reason)}" for reason, count in entity.excluded_by.items() if reason != "where"
        ]
        if left_out:
            console.print(f"{entity.entity}: excluded: {', '.join(left_out)}")
        if entity.dropped:
            console.print(f"{entity.entity}: {entity.dropped:,} of the quarantined rows were dropped")
        for note in entity.notes:
            console.print(f"{entity.entity}: {one_line(note)}")
    compared = [f"{entity.compared:,} of {entity.entity}" for entity in found.entities if entity.compared]
    if compared:
        console.print(f"compared field by field: {', '.join(compared)}")
    if found.ok:
        console.print(f"{job}: reconciled: read = loaded + merged + excluded + quarantined", style="green")
    else:
        console.print(f"{job}: NOT RECONCILED", style="bold red")
