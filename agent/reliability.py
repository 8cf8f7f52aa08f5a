"""What a model's word is worth: how likely each option is after it spoke, given what was likely before.

A model that was measured (`agent.models.calibration`) counts for what was measured. One that was not counts as a
model that is right half of the time. Neither can turn what the evidence all but rules out into a decision.
"""

from __future__ import annotations

from collections.abc import Sequence

from agent.models.calibration import levels_of, trust
from agent.models.protocol import Match, Model

_UNMEASURED = 0.5


def after(
    model: Model, match: Match | None, prior: Sequence[float], exists: float, said: Sequence[float]
) -> list[float]:
    """The probability of each option once the model gave `said`; the last one is "none of these".

    `prior` are the options' probabilities before, `exists` the probability that any of them is right.
    """
    if levels_of(model.name, match):
        return weighed(model.name, match, prior, exists, said)
    accuracy = max(_UNMEASURED if model.worth is None else model.worth, 1 / max(2, len(prior)))
    wrong = (1 - accuracy) / max(1, len(prior) - 1)
    blurred = [p * accuracy + (1 - p) * wrong for p in said]
    joint = [max(p, 1e-6) * b for p, b in zip(prior, blurred, strict=True)]
    return [j / sum(joint) for j in joint]


def could_settle(model: Model, match: Match | None, prior: Sequence[float], exists: float, limit: float) -> bool:
    """True where some answer of the model would make an option likelier than `limit`: else it need not be asked."""
    if len(prior) < 2:
        return False
    best = []
    for index in range(len(prior)):
        said = [1.0 if i == index else 0.0 for i in range(len(prior))]
        best.append(max(after(model, match, prior, exists, said)))
    return max(best) >= limit


def weighed(
    name: str, match: Match | None, prior: Sequence[float], exists: float, said: Sequence[float]
) -> list[float]:
    """The same for a model or an encoder of that name that was measured. A small model tells which candidate it is, and can't tell whether there is one: that stays as the
    evidence has it, a single candidate gains nothing by its word, and that there is none is not its to say."""
    candidates = list(prior[:-1])
    if len(candidates) < 2:
        return [0.0] * len(prior)
    chosen = max(range(len(candidates)), key=lambda i: said[i])
    sure = trust(name, match, said[chosen])
    odds = sure / (1 - sure) * (len(candidates) - 1) if 0 < sure < 1 else 1.0
    raised = [max(p, 1e-6) * (odds if i == chosen else 1.0) for i, p in enumerate(candidates)]
    return [exists * w / sum(raised) for w in raised] + [0.0]
