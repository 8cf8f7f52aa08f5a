"""Prints the table by family of docs/evaluation.md from a file of results: `python -m bench.eval_families rules.jsonl`.

Sums over a family's scenarios. Fields, errors and questions are of the drafts; the rows are those of the targets in the
end, once a person had answered.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from bench.eval_runs import read_results
from bench.evaluate import Result

_HEAD = (
    "| family | split | completed | rows exact | fields right alone | silent errors | of them rows astray | left out in silence | questions | of them needed |\n"
    "|---|---|---|---|---|---|---|---|---|---|"
)
_SPLITS = ("train", "dev", "test")


def table(results: Iterable[Result]) -> str:
    """A Markdown table with a row a family, by split and name."""
    families: dict[tuple[int, str], list[Result]] = defaultdict(list)
    for result in results:
        families[_SPLITS.index(result.split), result.family].append(result)
    return "\n".join([_HEAD, *(_row(families[place]) for place in sorted(families))])


def _row(results: list[Result]) -> str:
    fields = sum(r.right + r.near + r.wrong + r.open + r.missing for r in results)
    exact = sum(r.exact_rows for r in results) / len(results)
    right = sum(r.right for r in results)
    cells = (
        results[0].family, results[0].split, f"{sum(r.completed for r in results)} of {len(results)}", f"{exact:.1%}",
        f"{right} of {fields}", sum(r.silent_errors for r in results), sum(r.strayed for r in results), sum(r.missing for r in results),
        sum(r.asked for r in results), sum(r.needed for r in results),
    )  # fmt: skip
    return f"| {' | '.join(map(str, cells))} |"


if __name__ == "__main__":
    print(table(result for _, result in read_results(Path(sys.argv[1]))))
