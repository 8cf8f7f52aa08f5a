"""How far a model's choice can be believed, as measured by `python -m bench.choose`; nothing here is a guess.

The questions are made up, of eight families of column names; all constants here were fitted on three of them and
all counts are of the other five, which nothing was picked on. A model or a form that isn't here was not
measured, and its word settles nothing alone.

SmolLM2-135M-Instruct (Q4_1), share of right answers among four to seven candidates and "none of these":

    form of the question                                       new field -> old column   n
    parts of the question (`Prompt.match`), `channel`                    70 %           155
    listed by letter, one order                                          12 %            26
    listed by letter, average of three orders                             8 %            26
    nearest by the encoder's vectors                                     26 %           155
    nearest name (rapidfuzz)                                             44 %           155
    parts, name, kind of value and vectors together                      77 %           155

It sees an old column that has no counterpart in 5 of 23 cases, so its word for a candidate is worth something
only where another sign says that there is one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from agent.models.protocol import Match

_SMOLLM2 = "SmolLM2-135M-Instruct"


@dataclass(frozen=True)
class Fit:
    """How scores become probabilities: `none` is added to the score of "none of these", then all are divided
    by `spread`."""

    spread: float
    none: float


@dataclass(frozen=True)
class Level:
    """Of `answers` on held-out questions whose probability was at least `sure`, `right` were right."""

    sure: float
    answers: int
    right: int

    @property
    def share(self) -> float:
        """The share that was right."""
        return self.right / self.answers

    @property
    def at_least(self) -> float:
        """The share that is right with 95 % certainty, given how few were asked."""
        return wilson(self.right, self.answers)


UNFITTED = Fit(1.0, 0.0)
_TO_COLUMN, _TO_FIELD = "new field -> old column", "old column -> new field"
_FITS = {_TO_COLUMN: Fit(1.1, 0.5)}
_LEVELS = {
    _TO_COLUMN: (
        Level(0.5, 110, 94),
        Level(0.7, 81, 75),
        Level(0.8, 67, 64),
        Level(0.9, 48, 47),
        Level(0.95, 35, 35),
    ),
}


def fit_of(model: str, match: Match) -> Fit:
    """The fit for a model, by the name it gives itself, and the direction of the question."""
    return _FITS.get(_direction(match), UNFITTED) if model.startswith(_SMOLLM2) else UNFITTED


def levels_of(model: str, match: Match | None) -> tuple[Level, ...]:
    """What was measured, least sure first; empty for a model or a question that wasn't."""
    if match is None or not model.startswith(_SMOLLM2):
        return ()
    return _LEVELS.get(_direction(match), ())


def trust(model: str, match: Match | None, sure: float) -> float:
    """The probability that an answer given with the probability `sure` is right, on the safe side: the lower
    end of what was measured for answers at least as sure; 0 where nothing was."""
    reached = [level.at_least for level in levels_of(model, match) if sure >= level.sure]
    return max(reached, default=0.0)


def wilson(right: int, count: int) -> float:
    """The lower end of Wilson's interval for a share, 95 % on one side."""
    z = 1.645
    share = right / count
    middle = share + z * z / (2 * count)
    spread = z * math.sqrt(share * (1 - share) / count + z * z / (4 * count * count))
    return (middle - spread) / (1 + z * z / count)


def _direction(match: Match) -> str:
    return _TO_FIELD if match.old_column else _TO_COLUMN
