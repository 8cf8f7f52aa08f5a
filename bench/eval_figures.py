"""What results of scenarios come to: one row of figures a setting, each with an interval.

Figures are means over families, so that a family with many scenarios counts once; intervals are the middle 95 % of
means over families drawn again with replacement (a bootstrap, seeded), since decisions of one family are not independent.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bench.evaluate import Result

_DRAWS = 2000


@dataclass(frozen=True)
class Figure:
    """A mean over families with its 95 % interval; `low` and `high` are None where there is one family alone."""

    value: float
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Measure:
    """How a figure is made: `of` over `out_of`, summed within a family; `shown` formats it."""

    name: str
    of: Callable[[Result], float]
    out_of: Callable[[Result], float]
    shown: str = "{:.0%}"


def _fields(r: Result) -> int:
    return r.right + r.near + r.wrong + r.open + r.missing


MEASURES: tuple[Measure, ...] = (
    Measure("completed", lambda r: r.completed, lambda r: 1),
    Measure("rows exact", lambda r: r.exact_rows, lambda r: 1, "{:.1%}"),
    Measure("value F1", lambda r: r.value_f1, lambda r: 1, "{:.3f}"),
    Measure("fields right alone", lambda r: r.right, _fields),
    Measure("silent errors per 100 decisions", lambda r: r.wrong + r.extra, lambda r: (r.decided + r.asked) / 100, "{:.2f}"),
    Measure("rows astray per 1,000 rows", lambda r: r.strayed, lambda r: r.rows / 1000, "{:.1f}"),
    Measure("left out in silence per 100 decisions", lambda r: r.missing, lambda r: (r.decided + r.asked) / 100, "{:.2f}"),
    Measure("questions per 100 decisions", lambda r: r.asked, lambda r: (r.decided + r.asked) / 100, "{:.1f}"),
    Measure("of them needed", lambda r: r.needed, lambda r: r.asked),
    Measure("faults made good", lambda r: r.recovered, lambda r: r.faults),
    Measure("questions for each of the first job", lambda r: r.asked, lambda r: r.asked_before, "{:.2f}"),
    Measure("model calls for each of the first job", lambda r: r.calls, lambda r: r.calls_before, "{:.2f}"),
    Measure("model calls per 1,000 rows", lambda r: r.calls, lambda r: r.rows / 1000, "{:.1f}"),
    Measure("model tokens per 1,000 rows", lambda r: r.tokens, lambda r: r.rows / 1000, "{:.0f}"),
    Measure("of those read from the prefix cache", lambda r: r.cached_tokens, lambda r: r.prompt_tokens),
    Measure("model seconds per task", lambda r: r.model_seconds, lambda r: 1, "{:.1f}"),
)  # fmt: skip


def figures(results: Sequence[Result]) -> dict[str, Figure | None]:
    """All measures over the results of one setting, by name; None where there is nothing to measure."""
    return {measure.name: figure(results, measure) for measure in MEASURES}


def figure(results: Sequence[Result], measure: Measure) -> Figure | None:
    """One measure; None where no family has anything to measure."""
    sums: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
    for result in results:
        sums[result.family][0] += measure.of(result)
        sums[result.family][1] += measure.out_of(result)
    families = [of / out_of for of, out_of in sums.values() if out_of]
    if not families:
        return None
    mean = sum(families) / len(families)
    if len(families) == 1:
        return Figure(mean, None, None)
    draw = random.Random(1)
    means = sorted(sum(draw.choices(families, k=len(families))) / len(families) for _ in range(_DRAWS))
    return Figure(mean, means[int(0.025 * _DRAWS)], means[int(0.975 * _DRAWS) - 1])


def by_rung(results: Sequence[Result]) -> dict[str, tuple[int, int]]:
    """Right and wrong decisions on fields by rung, over all results."""
    out: dict[str, tuple[int, int]] = {}
    for result in results:
        for rung, (right, wrong) in result.rungs.items():
            had = out.get(rung, (0, 0))
            out[rung] = had[0] + right, had[1] + wrong
    return out
