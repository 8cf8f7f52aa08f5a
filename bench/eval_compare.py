"""Two runs of the same scenarios held side by side: what a swap of the model, or of anything else, made better and worse."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from bench.eval_figures import MEASURES, Measure, figure
from bench.evaluate import Result


@dataclass(frozen=True)
class Moved:
    """One scenario before and after, each over its repeats."""

    scenario: str
    completed: tuple[float, float]
    silent_errors: tuple[float, float]
    questions: tuple[float, float]
    value_f1: tuple[float, float]

    @property
    def better(self) -> bool:
        """True where it is completed more often, or as often with fewer silent errors."""
        return self._order < 0

    @property
    def worse(self) -> bool:
        """True where it is completed less often, or as often with more silent errors."""
        return self._order > 0

    @property
    def _order(self) -> float:
        return (self.completed[0] - self.completed[1]) or (self.silent_errors[1] - self.silent_errors[0])


@dataclass(frozen=True)
class Comparison:
    """`figures` are (name, before, after, how it is shown); `moved` holds scenarios that both runs have; `only` names
    those that one has."""

    figures: tuple[tuple[str, float | None, float | None, str], ...]
    moved: tuple[Moved, ...]
    only: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """As JSON values; of the scenarios those that are better or worse."""
        return {
            "figures": {name: [before, after] for name, before, after, _ in self.figures},
            "better": [asdict(m) for m in self.moved if m.better],
            "worse": [asdict(m) for m in self.moved if m.worse],
            "only_in_one": list(self.only),
        }


def compare(before: Sequence[Result], after: Sequence[Result]) -> Comparison:
    """Compares the scenarios that both have."""
    old, new = _by_scenario(before), _by_scenario(after)
    both = sorted(old.keys() & new.keys())
    moved = tuple(
        Moved(
            name,
            (_mean(old[name], "completed"), _mean(new[name], "completed")),
            (_silent(old[name]), _silent(new[name])),
            (_mean(old[name], "asked"), _mean(new[name], "asked")),
            (_mean(old[name], "value_f1"), _mean(new[name], "value_f1")),
        )
        for name in both
    )
    of_both = [[r for name in both for r in side[name]] for side in (old, new)]
    figures = tuple((m.name, _value(of_both[0], m), _value(of_both[1], m), m.shown) for m in MEASURES)
    return Comparison(figures, moved, tuple(sorted(old.keys() ^ new.keys())))


def _by_scenario(results: Sequence[Result]) -> dict[str, list[Result]]:
    found: dict[str, list[Result]] = defaultdict(list)
    for result in results:
        found[result.scenario].append(result)
    return found


def _value(results: Sequence[Result], measure: Measure) -> float | None:
    found = figure(results, measure)
    return None if found is None else found.value


def _mean(results: Sequence[Result], name: str) -> float:
    return sum(float(getattr(r, name)) for r in results) / len(results)


def _silent(results: Sequence[Result]) -> float:
    return sum(r.silent_errors for r in results) / len(results)
