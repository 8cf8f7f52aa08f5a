"""Candidates beside their rivals: how likely each is right, given what else there is on both sides."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from agent.lexicon import Meaning, column_meaning, words
from agent.lexicon_words import PREFERENCE


@dataclass(frozen=True)
class FieldCandidate:
    """One way to fill a target column.

    `answer` names it for good (`column:date_entered`); `plan` is what the plan's field would say; `strength`
    is how well it suits, 0 to 1, and `confidence` how likely it is right given its rivals. `evidence` tells
    why, in figures and words without record values. `needs` are questions that come first (`zone`, `values`).
    `unaided` is the strength without what jobs before taught, None where they taught nothing.
    `selects` is (column, selector, value) where the column points at this table only for that value.
    """

    answer: str
    label: str
    columns: tuple[str, ...]
    plan: dict[str, object]
    strength: float
    confidence: float = 0.0
    evidence: dict[str, object] = field(default_factory=dict)
    needs: tuple[str, ...] = ()
    selects: tuple[str, str, str] | None = None
    unaided: float | None = None


def rank(meaning: Meaning) -> int:
    """The place of a meaning in the order in which several values of a kind are preferred, from 0."""
    return PREFERENCE.index(meaning.place)


def weigh(
    raw: dict[str, list[FieldCandidate]], meanings: Mapping[str, Meaning], alike: Callable[[str, str], float]
) -> dict[str, list[FieldCandidate]]:
    """Confidence from the rivals on both sides.

    A rival that is better placed at another target column, or differs by a place (home, work) that the target
    doesn't ask for and comes later in the usual order, counts less."""
    best_for: dict[str, tuple[float, str]] = {}
    for target, candidates in raw.items():
        for candidate in candidates:
            if candidate.answer not in best_for or candidate.strength > best_for[candidate.answer][0]:
                best_for[candidate.answer] = (candidate.strength, target)
    out: dict[str, list[FieldCandidate]] = {}
    for target, candidates in raw.items():
        wanted = meanings[target]
        ordered = sorted(candidates, key=lambda c: (-c.strength - _order_bonus(c, wanted), c.answer))
        weighed = []
        for index, candidate in enumerate(ordered):
            rivals = [
                r.strength
                * (
                    0.25
                    if _better_elsewhere(r, target, best_for) or _lesser(r, candidate)
                    else 0.6
                    if _yields(r, candidate, wanted)
                    else 1.0
                )
                * (1 - _same_values(r, candidate, alike))
                for r in ordered
                if r is not candidate
            ]
            rival = max(rivals, default=0.0)
            taken = best_for[candidate.answer]
            confidence = candidate.strength
            ratio = rival / candidate.strength
            if ratio > 0.65:
                confidence *= max(0.2, 1 - 1.7 * (ratio - 0.65))
            if taken[1] != target and taken[0] > candidate.strength + 0.02:
                confidence *= 0.6
            weighed.append(
                replace(candidate, confidence=round(max(0.0, min(0.99, confidence)) * (1.0 if index == 0 else 0.8), 3))
            )
        out[target] = weighed
    return out


def _same_values(rival: FieldCandidate, candidate: FieldCandidate, alike: Callable[[str, str], float]) -> float:
    """How far a rival holds the same as the candidate, so that little hangs on which of them is taken; 0 but for
    near copies, and the column with the plainer name is the one to take."""
    if len(rival.columns) != 1 or len(candidate.columns) != 1:
        return 0.0
    if len(words(rival.columns[0])) < len(words(candidate.columns[0])):
        return 0.0
    share = alike(candidate.columns[0], rival.columns[0])
    return share if share >= 0.9 else 0.0


def _lesser(rival: FieldCandidate, candidate: FieldCandidate) -> bool:
    """True for a part of what the candidate puts together, and for a copy made for searching (`email_caps`)."""
    if len(candidate.columns) > 1 and set(rival.columns) < set(candidate.columns):
        return True
    if len(rival.columns) != 1 or len(candidate.columns) != 1:
        return False
    return bool(_COPIES & (set(words(rival.columns[0])) - set(words(candidate.columns[0]))))


_COPIES = frozenset(
    (  # noqa: SIM905
        "caps upper lower uc lc normalized normalised sort search soundex phonetic clean hash ascii"
    ).split()
)


def _better_elsewhere(rival: FieldCandidate, target: str, best_for: dict[str, tuple[float, str]]) -> bool:
    strength, where = best_for[rival.answer]
    return where != target and strength > rival.strength + 0.03


def _order_bonus(candidate: FieldCandidate, wanted: Meaning) -> float:
    """Between equals, the place that is usually meant comes first."""
    if candidate.answer.startswith("joined:"):
        return 0.2
    if wanted.place or len(candidate.columns) != 1:
        return 0.0
    plainer = 0.01 * min(4, len(words(candidate.columns[0])))
    return 0.12 - plainer - 0.02 * rank(column_meaning(candidate.columns[0]))


def _yields(rival: FieldCandidate, candidate: FieldCandidate, wanted: Meaning) -> bool:
    """True where the two differ only in the place, and the usual order prefers the candidate."""
    if len(rival.columns) != 1 or len(candidate.columns) != 1 or wanted.place:
        return False
    ours, theirs = column_meaning(candidate.columns[0]), column_meaning(rival.columns[0])
    return ours.core == theirs.core and ours.numbers <= theirs.numbers and rank(ours) < rank(theirs)
