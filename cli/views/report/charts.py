"""The report's charts as SVG that needs nothing from anywhere: drawn by Altair, rendered here."""

from __future__ import annotations

import re
from typing import Any

from cli.views.text import one_line
from engine.report import Report

_OUTCOMES = {"loaded": "#1b6b4a", "merged": "#7a5195", "excluded": "#8a8f98", "in quarantine": "#b3541e"}
_INK = "#1f2933"


def outcomes(report: Report) -> str:
    """Rows of each entity by outcome, as shares: an entity of 40 rows is as readable as one of 4 million."""
    rows = [
        {"entity": one_line(e.name), "outcome": outcome, "rows": count, "order": place}
        for e in report.entities
        if e.read
        for place, (outcome, count) in enumerate(
            (("loaded", e.loaded), ("merged", e.merged), ("excluded", e.excluded), ("in quarantine", e.quarantined))
        )
    ]
    return _drawn(
        rows,
        "bar",
        "Rows of each entity by outcome",
        x={"field": "rows", "type": "quantitative", "stack": "normalize", "title": "share of the rows read"},
        y={"field": "entity", "type": "nominal", "sort": None, "title": None},
        color={
            "field": "outcome", "type": "nominal", "title": None, "legend": {"orient": "top"},
            "scale": {"domain": list(_OUTCOMES), "range": list(_OUTCOMES.values())},
        },
        order={"field": "order", "type": "quantitative"},
        height={"step": 20},
    )  # fmt: skip


def rows_over_time(report: Report) -> str:
    """How many rows had an outcome, over the time since the first batch."""
    rows = [{"seconds": seconds, "rows": count} for seconds, count in report.rows_over_time]
    return _drawn(
        rows,
        {"type": "line", "interpolate": "step-after", "color": _OUTCOMES["loaded"], "strokeWidth": 2},
        "Rows with an outcome over time",
        x={"field": "seconds", "type": "quantitative", "title": "seconds since the first batch"},
        y={"field": "rows", "type": "quantitative", "title": "rows"},
        height=180,
    )


def decisions(report: Report) -> str:
    """How many decisions each rung made."""
    rows = [{"rung": each.rung, "decisions": each.decisions} for each in report.rungs]
    return _drawn(
        rows,
        {"type": "bar", "color": "#2b5c8a"},
        "Decisions by rung",
        x={"field": "decisions", "type": "quantitative", "title": "decisions"},
        y={"field": "rung", "type": "nominal", "sort": None, "title": None},
        height={"step": 22},
    )


def _drawn(rows: list[dict[str, Any]], mark: Any, title: str, *, height: Any, **encoding: Any) -> str:
    """An SVG element; "" where there is nothing to draw."""
    if not rows:
        return ""
    import altair
    import vl_convert

    chart = altair.Chart.from_dict(
        {
            "data": {"values": rows},
            "mark": mark,
            "encoding": encoding,
            "width": 620,
            "height": height,
            "background": "white",
            "padding": {"left": 48, "right": 16, "top": 8, "bottom": 8},  # the reader's font may be wider than ours
            "config": {
                "font": "Liberation Sans, Arial, sans-serif",
                "view": {"stroke": None},
                "axis": {"labelColor": _INK, "titleColor": _INK, "titleFontWeight": "normal", "labelLimit": 240},
            },
        }
    )
    svg = str(vl_convert.vegalite_to_svg(chart.to_dict(), vl_version="v6_4"))
    # to a reader who can't see it, one picture with a name: the same numbers stand in the table beside it
    return re.sub(r"<svg ", f'<svg role="img" aria-label="{title}" ', svg, count=1)
