"""The measurement as a drawing: a bar for the time and one for the memory of each contender, in plain SVG."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from bench.results import Outcome

_LEFT, _TIME, _MEMORY, _GAP = 175, 380, 220, 115  # widths: names, bars of time, bars of memory, room for figures
_ROW, _BAR, _TOP = 34, 18, 74
_OURS, _PIPE, _OTHERS, _INK, _FAINT = "#c2571a", "#6b7280", "#9fb3c8", "#1f2933", "#7b8794"
_STYLE = "font-family: system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif"


def chart(outcomes: Sequence[Outcome], contacts: int) -> str:
    """An SVG text. Shorter bars are better; who wasn't measured has none, and says so."""
    width = _LEFT + _TIME + _GAP + _MEMORY + _GAP
    height = _TOP + _ROW * len(outcomes) + 34
    memory = _LEFT + _TIME + _GAP
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img">',
        f"<title>{contacts:,} contacts, MariaDB to PostgreSQL: wall time and peak memory</title>",
        f'<rect width="{width}" height="{height}" fill="white"/>',
        f'<g style="{_STYLE}" font-size="13" fill="{_INK}">',
        f'<text x="16" y="28" font-size="16" font-weight="600">{contacts:,} contacts to PostgreSQL</text>',
        _text(_LEFT, _TOP - 16, "wall, seconds (and times the pipe)", _FAINT),
        _text(memory, _TOP - 16, "peak memory, MB", _FAINT),
    ]
    longest = max((o.seconds for o in outcomes if o.measured), default=1.0)
    largest = max((o.peak_mb for o in outcomes if o.measured), default=1.0)
    for number, outcome in enumerate(outcomes):
        y = _TOP + _ROW * number
        lines.append(f'<text x="{_LEFT - 12}" y="{y + 14}" text-anchor="end">{escape(outcome.contender.name)}</text>')
        if not outcome.measured:
            reason = outcome.reason if len(outcome.reason) < 90 else outcome.reason[:88] + "…"
            lines.append(_text(_LEFT, y + 14, f"not measured: {reason}", _FAINT))
            continue
        ratio = outcome.ratio(outcomes)
        times = f"{outcome.seconds:,.1f}" + (f"  ({ratio:.2f}×)" if ratio else "")
        colour = _colour(outcome.contender.name)
        lines += _bar(_LEFT, y, _TIME * outcome.seconds / longest, times, colour)
        lines += _bar(memory, y, _MEMORY * outcome.peak_mb / largest, f"{outcome.peak_mb:,.0f}", colour)
    note = "The pipe and the other tools copy rows that are clean already; Packhorse cleans, checks and records them."
    lines += [_text(16, height - 14, note, _FAINT), "</g>", "</svg>"]
    return "\n".join(lines) + "\n"


def _colour(name: str) -> str:
    return _OURS if name.startswith("packhorse") else _PIPE if name == "pipe" else _OTHERS


def _bar(x: float, y: float, length: float, figure: str, colour: str) -> list[str]:
    return [
        f'<rect x="{x}" y="{y}" width="{max(length, 1):.1f}" height="{_BAR}" rx="2" fill="{colour}"/>',
        _text(x + length + 8, y + 14, figure, _INK),
    ]


def _text(x: float, y: float, text: str, colour: str) -> str:
    return f'<text x="{x:.1f}" y="{y}" fill="{colour}">{escape(text)}</text>'
