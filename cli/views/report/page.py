"""The report as one HTML file: styles, charts and the few lines of script are inside, and it may fetch nothing."""

from __future__ import annotations

import base64
import hashlib
import re
from importlib.resources import files

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from cli.views.report import charts
from cli.views.report.sheet import Cell, moment
from cli.views.report.sheets import sheets, verdict
from engine.report import Report


def page(report: Report, *, show_values: bool = False) -> str:
    """The HTML text."""
    folder = files("cli.views.report")
    script, style = ((folder / name).read_text("utf-8") for name in ("page.js", "page.css"))
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters["shown"] = _shown
    drawn = {
        "reconciliation": charts.outcomes(report),
        "decisions": charts.decisions(report),
        "timing": charts.rows_over_time(report),
    }
    return environment.from_string((folder / "page.html.j2").read_text("utf-8")).render(
        report=report,
        verdict=verdict(report),
        moment=moment,
        sheets=sheets(report, show_values=show_values),
        charts={name: Markup(_quiet(svg)) for name, svg in drawn.items()},
        script=Markup(script),
        style=Markup(style),
        # what a record value might smuggle in has no hash that is allowed
        policy=f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{_digest(script)}'",
    )


def _digest(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def _quiet(svg: str) -> str:
    """Without the roles and labels that the renderer gives each mark: hundreds, to one who listens."""
    head, rest = svg[: svg.find(">") + 1], svg[svg.find(">") + 1 :]
    return head + re.sub(r' (?:role|aria-[a-z]+|focusable|tabindex)="[^"]*"', "", rest)


def _shown(cell: Cell) -> str:
    return f"{cell:,}" if isinstance(cell, int | float) else cell
