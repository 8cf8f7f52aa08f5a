"""Draws how completion and silent errors depend on how good the model is: `python -m bench.eval_curve curve.jsonl -o curve.svg`.

Reads results of `migrate eval --oracle` of any quality, and of rules alone where the file has them. A point is a mean
over families, as in the eval's own table. Prints the points as a Markdown table; never runs a scenario.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.eval_figures import MEASURES, figure
from bench.eval_runs import read_results
from bench.evaluate import Result
from bench.oracle import ERRORS

_COLOURS = {"independent": "#c2571a", "correlated": "#2f6f4f", "near": "#3b6ea5", "overconfident": "#8b1e3f"}
_DASHES = {"independent": "", "correlated": "7 3", "near": "2 3", "overconfident": ""}
_INK, _FAINT = "#1f2933", "#7b8794"
_SHOWN = ("completed", "silent errors per 100 decisions", "rows astray per 1,000 rows", "questions per 100 decisions")
_PANELS = ("completed", "silent errors per 100 decisions", "questions per 100 decisions")
_WIDTH, _HEIGHT, _LEFT, _TOP, _GAP = 230, 200, 60, 70, 70
_STYLE = "font-family: system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif"
_BY_NAME = {measure.name: measure for measure in MEASURES}


@dataclass(frozen=True)
class Point:
    """What models that are `right` so often, and err in one way, came to over `count` results; figures by measure."""

    errors: str
    right: float
    count: int
    figures: dict[str, float]


def points(results: Iterable[Result]) -> list[Point]:
    """The points of all oracles in the results, and of rules alone as `errors="rules"`; other settings are left out."""
    by_setting: dict[str, list[Result]] = defaultdict(list)
    for result in results:
        by_setting[result.setting].append(result)
    out = []
    for setting, of_one in by_setting.items():
        kind, *told = setting.split(" ")
        if kind == "oracle" and len(told) == 2 and told[1] in ERRORS:
            out.append(Point(told[1], float(told[0]), len(of_one), _figures(of_one)))
        elif setting == "rules":
            out.append(Point("rules", 0.0, len(of_one), _figures(of_one)))
    order = ("rules", *ERRORS)
    return sorted(out, key=lambda p: (order.index(p.errors), p.right))


def _figures(results: Sequence[Result]) -> dict[str, float]:
    found = {name: figure(results, _BY_NAME[name]) for name in _SHOWN}
    return {name: f.value for name, f in found.items() if f is not None}


def table(found: Sequence[Point]) -> str:
    """A Markdown table with a row a point."""
    lines = ["| errs | right | scenarios | " + " | ".join(_SHOWN) + " |", "|" + "---|" * (3 + len(_SHOWN))]
    for p in found:
        right = "-" if p.errors == "rules" else f"{p.right:g}"
        cells = [_BY_NAME[n].shown.format(p.figures[n]) if n in p.figures else "-" for n in _SHOWN]
        lines.append(f"| {p.errors} | {right} | {p.count} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def chart(found: Sequence[Point]) -> str:
    """An SVG text: a panel a measure, a line a way of erring, rules alone as a level."""
    width, height = _LEFT + len(_PANELS) * (_WIDTH + _GAP), _TOP + _HEIGHT + 84
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img">',
        "<title>How completion, silent errors and questions depend on how often the model is right</title>",
        f'<rect width="{width}" height="{height}" fill="white"/>',
        f'<g style="{_STYLE}" font-size="12" fill="{_INK}">',
        _text(16, 28, "How good a model the harness needs", size=16),
    ]
    for number, name in enumerate(_PANELS):
        lines += _panel(_LEFT + number * (_WIDTH + _GAP), name, found)
    for number, errors in enumerate(ERRORS):
        x, y = _LEFT + number * 150, height - 18
        lines += [_line([(x, y - 4), (x + 24, y - 4)], errors), _text(x + 30, y, errors)]
    x = _LEFT + len(ERRORS) * 150
    lines += [_level(x, x + 24, height - 22), _text(x + 30, height - 18, "rules alone, no model"), "</g>", "</svg>"]
    return "\n".join(lines) + "\n"


def _panel(left: float, name: str, found: Sequence[Point]) -> list[str]:
    shown = [p for p in found if name in p.figures]
    top = 1.0 if name == "completed" else max([1.0, *(p.figures[name] for p in shown)]) * 1.1
    first = min([0.5, *(p.right for p in shown if p.errors != "rules")])

    def place(right: float, value: float) -> tuple[float, float]:
        across = (right - first) / (1 - first) if first < 1 else 0.0
        return left + across * _WIDTH, _TOP + _HEIGHT * (1 - value / top)

    bottom = _TOP + _HEIGHT
    lines = [
        _text(left, _TOP - 14, name),
        f'<path d="M{left} {_TOP}V{bottom}H{left + _WIDTH}" fill="none" stroke="{_FAINT}"/>',
        _text(left + _WIDTH / 2, bottom + 34, "the model is right with probability", _FAINT, "middle"),
    ]
    for part in (0.0, 0.5, 1.0):
        value, right = top * part, first + (1 - first) * part
        label = f"{value:.0%}" if name == "completed" else f"{value:.1f}"
        lines.append(_text(left - 6, place(first, value)[1] + 4, label, _FAINT, "end"))
        lines.append(_text(place(right, 0)[0], bottom + 16, f"{right:.2g}", _FAINT, "middle"))
    lines += [_level(left, left + _WIDTH, place(first, p.figures[name])[1]) for p in shown if p.errors == "rules"]
    for errors in ERRORS:
        line = [place(p.right, p.figures[name]) for p in shown if p.errors == errors]
        if line:
            lines.append(_line(line, errors))
            lines += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{_COLOURS[errors]}"/>' for x, y in line]
    return lines


def _line(places: Sequence[tuple[float, float]], errors: str) -> str:
    at = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    dashes = f' stroke-dasharray="{_DASHES[errors]}"' if _DASHES[errors] else ""
    return f'<polyline points="{at}" fill="none" stroke="{_COLOURS[errors]}" stroke-width="2"{dashes}/>'


def _level(start: float, end: float, y: float) -> str:
    return f'<line x1="{start}" y1="{y:.1f}" x2="{end}" y2="{y:.1f}" stroke="{_FAINT}" stroke-dasharray="1 3" stroke-width="2"/>'


def _text(x: float, y: float, text: str, colour: str = _INK, anchor: str = "start", size: int = 12) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" fill="{colour}" text-anchor="{anchor}" font-size="{size}">{text}</text>'


def main() -> int:
    """Prints the table and draws the picture."""
    parser = argparse.ArgumentParser(prog="python -m bench.eval_curve", description=__doc__.splitlines()[0])
    parser.add_argument("results", type=Path, nargs="+", help="files of `migrate eval --oracle ... -o FILE`")
    parser.add_argument("-o", "--output", type=Path, help="write the picture here, as SVG")
    told = parser.parse_args()
    missing = [str(path) for path in told.results if not path.is_file()]
    if missing:
        parser.error(f"no such file: {', '.join(missing)}; `migrate eval --oracle 0.9 -o FILE` makes one")
    found = points(r for path in told.results for _, r in read_results(path))
    if not found:
        parser.error("no results of an oracle there; `migrate eval --oracle 0.9 -o FILE` makes some")
    print(table(found))
    if told.output is not None:
        told.output.write_text(chart(found), encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
