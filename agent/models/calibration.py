"""How far a model's choice can be believed, as measured by `python -m bench.choose`; nothing here is a guess.

The questions are made up, of eight families of column names; all constants here were fitted on three of them and
all counts are of the other five, which nothing was picked on. A model or a form that isn't here was not
measured, and its word settles nothing alone.

SmolLM2-135M-Instruct (Q4_1): the share of right answers among four to seven candidates and "none of these", on
the held-out families (n questions), and seconds of one core a question:

    form of the question                                        column of a new field   field of an old column
    `channel`, in parts (`Prompt.match`)                         70 %  (155)  1.2 s       59 %  (172)  1.6 s
    `channel`, in words                                          27 %  (11)   7.0 s       -
    `listed`, answered by name, average of three orders          19 %  (26)   2.5 s        4 %  (28)   1.7 s
    listed by letter, one order                                  12 %  (26)   1.2 s       18 %  (28)   0.7 s
    listed by letter, average of three orders                     8 %  (26)   3.6 s       -
    nearest by the encoder's vectors                             26 %  (155)              27 %  (172)
    nearest name (rapidfuzz)                                     44 %  (155)              30 %  (172)
    kind of the sample values alone                              36 %  (155)              24 %  (172)
    in parts, names, kinds and vectors together                  77 %  (155)              60 %  (172)

Where one of the candidates is right, asked in parts it ranks that one first in 80 % and 75 % of the questions. That
none is right it sees in 5 of 23 and 20 of 39: its word for a candidate is worth something only where another sign
says that there is one. From the probability 0.95 on it was right 35 times of 35 (columns) and 15 of 17
(fields); to claim 98 % one would need 149 of 149, so no probability of its own lets it decide alone at 98 %.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from agent.models.adapters import measured
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
_KEY = {_TO_COLUMN: "column", _TO_FIELD: "field"}
_FITS = {_TO_COLUMN: Fit(1.1, 0.5), _TO_FIELD: Fit(1.8, 3.25)}
_LEVELS = {
    _TO_COLUMN: (
        Level(0.5, 110, 94),
        Level(0.7, 81, 75),
        Level(0.8, 67, 64),
        Level(0.9, 48, 47),
        Level(0.95, 35, 35),
    ),
    _TO_FIELD: (
        Level(0.5, 115, 73),
        Level(0.7, 55, 46),
        Level(0.8, 38, 33),
        Level(0.9, 23, 19),
        Level(0.95, 17, 15),
    ),
}


def fit_of(model: str, match: Match) -> Fit:
    """The fit for a model or a trained encoder, by the name it gives itself, and the direction of the question."""
    known = measured(model)
    if known is not None:
        return Fit(*known[_KEY[_direction(match)]]["fit"])
    return _FITS.get(_direction(match), UNFITTED) if model.startswith(_SMOLLM2) else UNFITTED


def levels_of(model: str, match: Match | None) -> tuple[Level, ...]:
    """What was measured, least sure first; empty for a model or a question that wasn't."""
    if match is None:
        return ()
    known = measured(model)
    if known is not None:
        return tuple(Level(*told) for told in known[_KEY[_direction(match)]]["levels"])
    if not model.startswith(_SMOLLM2):
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
