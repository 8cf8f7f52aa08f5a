"""The report as one HTML file: styles, charts and the few lines of script are inside, and it may fetch nothing."""

from __future__ import annotations

import re

from markupsafe import Markup

from cli.views.report import charts
from cli.views.report.self_contained import render
from cli.views.report.sheet import Cell, moment
from cli.views.report.sheets import sheets, verdict
from engine.report import Report


def page(report: Report, *, show_values: bool = False) -> str:
    """The HTML text."""
    drawn = {
        "reconciliation": charts.outcomes(report),
        "decisions": charts.decisions(report),
        "timing": charts.rows_over_time(report),
    }
    return render(
        "cli.views.report",
        ["cli.views.report"],
        {"shown": _shown},
        report=report,
        verdict=verdict(report),
        moment=moment,
        sheets=sheets(report, show_values=show_values),
        charts={name: Markup(_quiet(svg)) for name, svg in drawn.items()},
    )


def _quiet(svg: str) -> str:
    """Without the roles and labels that the renderer gives each mark: hundreds, to one who listens."""
    head, rest = svg[: svg.find(">") + 1], svg[svg.find(">") + 1 :]
    return head + re.sub(r' (?:role|aria-[a-z]+|focusable|tabindex)="[^"]*"', "", rest)


def _shown(cell: Cell) -> str:
    return f"{cell:,}" if isinstance(cell, int | float) else cell
