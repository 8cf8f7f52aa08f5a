"""PLACEHOLDER"""

from __future__ import annotations

from dataclasses import dataclass

from agent.models.protocol import Match


@dataclass(frozen=True)
class Fit:
    """How scores become probabilities: `none` is added to the score of "none of these", then all are divided by `spread`."""

    spread: float
    none: float


UNFITTED = Fit(1.0, 0.0)


def fit_of(model: str, match: Match) -> Fit:
    """The fit for the direction of the question."""
    return UNFITTED
