"""The report as a workbook: a sheet for each table, texts as texts and numbers as numbers."""

from __future__ import annotations

from typing import IO, Any

from cli.views.report.sheet import Cell, moment
from cli.views.report.sheets import sheets, verdict
from engine.quarantine_cells import text_cell
from engine.report import Report

_WIDTHS = {"made of": 60, "why": 60, "what failed": 60, "question": 70, "what": 70, "by": 40, "because": 40}


def workbook(report: Report, out: IO[bytes], *, show_values: bool = False) -> None:
    """Writes an .xlsx file."""
    from openpyxl import Workbook
    from openpyxl.utils import get_column_letter

    book = Workbook(write_only=True)
    first = book.create_sheet("Report")
    for name, text in (
        ("job", report.job), ("verdict", verdict(report)), ("from", report.source), ("to", report.target),
        ("begun", moment(report.started_at)), ("last step", moment(report.last_at)),
        ("state", report.outcome or "not finished"),
    ):  # fmt: skip
        first.append([text_cell(first, name), text_cell(first, text)])
    for each in sheets(report, show_values=show_values):
        sheet = book.create_sheet(each.title[:31])
        sheet.freeze_panes = "A2"
        for place, heading in enumerate(each.headings, 1):
            sheet.column_dimensions[get_column_letter(place)].width = _WIDTHS.get(heading, 18)
        sheet.append([text_cell(sheet, heading) for heading in each.headings])
        for row in (*each.rows, *([each.total] if each.total else [])):
            sheet.append([_cell(sheet, cell) for cell in row])
    book.save(out)


def _cell(sheet: Any, cell: Cell) -> Any:
    return cell if isinstance(cell, int | float) else text_cell(sheet, cell)
