"""The report as Markdown, to keep beside the plan in git or to paste into a ticket."""

from __future__ import annotations

import re
from html import escape

from cli.views.report.sheet import Cell, Sheet, moment
from cli.views.report.sheets import sheets, verdict
from engine.report import Report

_SIGNS = re.compile(r"([\\`*_{}\[\]()#+!|~-])")


def markdown(report: Report, *, show_values: bool = False) -> str:
    """The whole text. What stands in a cell is text: no sign in it marks anything up."""
    lines = [
        f"# Migration report: {_cell(report.job)}", "", f"**{_cell(verdict(report))}**", "",
        f"- from {_cell(report.source)}", f"- to {_cell(report.target)}",
        f"- begun {moment(report.started_at)}, last step {moment(report.last_at)}", "",
    ]  # fmt: skip
    for sheet in sheets(report, show_values=show_values):
        lines += _sheet(sheet)
    lines += ["## Sign-off", "", "| for | name | date | signature |", "|---|---|---|---|"]
    lines += ["| who moved the records | | | |", "| who takes them over | | | |", ""]
    return "\n".join(lines)


def _sheet(sheet: Sheet) -> list[str]:
    lines = [f"## {sheet.title}", "", *([_cell(sheet.about), ""] if sheet.about else [])]
    if not sheet.rows:
        return [*lines, _cell(sheet.nothing), ""]
    numbers = [isinstance(cell, int | float) for cell in sheet.rows[0]]
    lines += [_row(sheet.headings), "|" + "|".join("--:" if number else "---" for number in numbers) + "|"]
    lines += [_row(row) for row in (*sheet.rows, *([sheet.total] if sheet.total else []))]
    return [*lines, ""]


def _row(cells: tuple[Cell, ...]) -> str:
    return "| " + " | ".join(map(_cell, cells)) + " |"


def _cell(cell: Cell) -> str:
    if isinstance(cell, int | float):
        return f"{cell:,}"
    return _SIGNS.sub(r"\\\1", escape(cell, quote=False))
