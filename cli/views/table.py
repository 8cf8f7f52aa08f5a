"""Tables: framed on a terminal, plain columns off it. Cells are made safe to print here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from cli.views.output import is_plain
from cli.views.text import visible


@dataclass(frozen=True)
class Heading:
    """A column: `right` for numbers; `wrap` where a terminal may break the cell over several lines."""

    name: str
    right: bool = False
    wrap: bool = False


def number(name: str) -> Heading:
    """A column of numbers."""
    return Heading(name, right=True)


def show_table(
    console: Console,
    headings: Sequence[Heading],
    rows: Sequence[Sequence[object]],
    *,
    total: Sequence[object] | None = None,
    title: str = "",
) -> None:
    """Prints the rows; `total` stands under a line. Numbers get thousands separators; None is a dash."""
    cells = [[cell_text(value) for value in row] for row in rows]
    last = [cell_text(value) for value in total] if total is not None else None
    if title:
        console.print(title, style="bold")
    if is_plain(console):
        _plain(console, headings, cells, last)
        return
    table = Table(box=SIMPLE_HEAD, show_footer=last is not None, pad_edge=False)
    for i, heading in enumerate(headings):
        table.add_column(
            heading.name,
            footer=Text(last[i]) if last else "",
            justify="right" if heading.right else "left",
            no_wrap=not heading.wrap,
            overflow="fold" if heading.wrap else "ellipsis",
        )
    for row in cells:
        table.add_row(*map(Text, row))
    console.print(table)


def cell_text(value: object) -> str:
    """A cell: whole numbers with separators, fractions to one digit, True as yes, None as a dash."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.1f}"
    return visible(value)


def _plain(console: Console, headings: Sequence[Heading], rows: list[list[str]], total: list[str] | None) -> None:
    lines = [[heading.name for heading in headings], *rows, *([total] if total else [])]
    widths = [max(len(line[i]) for line in lines) for i in range(len(headings))]
    for line in lines:
        padded = [
            cell.rjust(width) if heading.right else cell.ljust(width)
            for cell, width, heading in zip(line, widths, headings, strict=True)
        ]
        console.print("  ".join(padded).rstrip())
