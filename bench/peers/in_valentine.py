"""Run in valentine's own environment: ranks column pairs of two tables by each of its matchers.

Reads from stdin a JSON list of tasks (`source`: columns with their values, `target`: names of columns), writes to stdout
for each matcher and task the pairs [source column, target column], best first, or under `failed` why a matcher did not run.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import pandas as pd
from valentine import valentine_match
from valentine.algorithms import Coma, Cupid, JaccardDistanceMatcher

_MATCHERS = {
    "Coma (names)": lambda: Coma(use_instances=False),
    "Coma (names, values)": lambda: Coma(use_instances=True),
    "Cupid": Cupid,
    "Jaccard (values)": JaccardDistanceMatcher,
}


def main() -> None:
    """Answers the one request on stdin."""
    tasks = json.load(sys.stdin)
    out: dict[str, Any] = {"ranked": {}, "failed": {}}
    for name, made in _MATCHERS.items():
        try:
            out["ranked"][name] = [_ranked(made(), task) for task in tasks]
        except Exception as error:  # a matcher that wants a download, or can't take an empty table
            out["failed"][name] = (
                f"{type(error).__name__}: {str(error).strip().splitlines()[0] if str(error).strip() else ''}"
            )
    json.dump(out, sys.stdout)


def _ranked(matcher: Any, task: dict[str, Any]) -> list[list[str]]:
    frames = [pd.DataFrame(task["source"], dtype=str), pd.DataFrame({c: pd.Series(dtype=str) for c in task["target"]})]
    matches = valentine_match(frames, matcher, df_names=["source", "target"])
    pairs = sorted(matches.items(), key=lambda item: -item[1])
    return [[pair.source_column, pair.target_column] for pair, _ in pairs]


if __name__ == "__main__":
    main()
