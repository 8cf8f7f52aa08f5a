"""Each decision of a draft held against the gold plan: what was decided by which rung, how sure it was, and whether it was right.

Of questions that were left to a person, it is the answer that the evidence favours that is judged, as sure as its weight:
so that a table of how often what was called so likely was right covers all that had candidates.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from agent.kinds_apart import entity_name
from agent.questions import Question
from bench.gold_person import NONE, GoldPerson
from bench.plan_score import Place, PlanScore
from workspace.events import DecisionMade

SURE = (0.0, 0.5, 0.8, 0.9, 0.95)
"""Where the rows of the table begin."""

_FIELDS = ("field", "required")
_ASKED_PERSON = ("entity", "kinds", "filter", "zone", "country")


@dataclass(frozen=True)
class Judged:
    """One decision of a `kind`. `rung` is `ask` where a person was asked: then it is the favoured answer that was `right`
    or not, and `sure` its weight."""

    kind: str
    rung: str
    sure: float
    right: bool


def judge(
    scored: PlanScore, made: Sequence[DecisionMade], asked: Sequence[Question], person: GoldPerson
) -> list[Judged]:
    """All decisions and questions of a draft that can be judged. A mapping that is near is left out."""
    subjects = _verdicts(scored)
    gold = {f"{name}.{c}" for name, entities in person.by_table.items() for e in entities for c in e.fields}
    found = []
    for decision in made:
        right: bool | None = None
        if decision.kind in _FIELDS:
            right = subjects.get(decision.subject)
            if right is None and decision.choice is None:
                right = decision.subject not in gold
        elif decision.kind in _ASKED_PERSON:
            right = _as_person(decision, person)
        if right is not None:
            found.append(Judged("field" if decision.kind in _FIELDS else decision.kind, decision.rung, decision.confidence, right))  # fmt: skip
    for question in asked:
        best = max((float(c["weight"]) for c in question.candidates), default=None)
        if best is not None and question.kind not in ("values", "format"):
            kind = "field" if question.kind in _FIELDS else question.kind
            found.append(Judged(kind, "ask", best, person.forced_is_right(question)))
    return found


def by_rung(judged: Iterable[Judged]) -> dict[str, tuple[int, int]]:
    """Right and wrong decisions on fields by rung, of those that nobody was asked about."""
    out: dict[str, tuple[int, int]] = {}
    for each in judged:
        if each.kind == "field" and each.rung != "ask":
            right, wrong = out.get(each.rung, (0, 0))
            out[each.rung] = right + each.right, wrong + (not each.right)
    return dict(sorted(out.items()))


def reliability(judged: Iterable[Judged]) -> list[tuple[str, float, int, int, int, int]]:
    """Rows of (kind, sure from, decided, of them right, left to a person, of them the favoured answer right)."""
    rows: dict[tuple[str, float], list[int]] = {}
    for each in judged:
        counts = rows.setdefault((each.kind, max(level for level in SURE if each.sure >= level)), [0, 0, 0, 0])
        first = 2 if each.rung == "ask" else 0
        counts[first] += 1
        counts[first + 1] += each.right
    return [(kind, sure, counts[0], counts[1], counts[2], counts[3]) for (kind, sure), counts in sorted(rows.items())]


def _verdicts(scored: PlanScore) -> dict[str, bool]:
    """By subject of a decision, whether the field is mapped as it should be; near ones are left out."""

    def names(place: Place) -> tuple[str, str]:
        table, to, column = place
        return f"{table}.{column}", f"{entity_name(table, to)}.{column}"

    right = {name: True for place in scored.right for name in names(place)}
    mistaken = [*(p for p, _, _ in scored.wrong), *(p for p, _ in scored.extra), *scored.missing]
    return right | {name: False for place in mistaken for name in names(place)}


def _as_person(decision: DecisionMade, person: GoldPerson) -> bool | None:
    """Whether a person who knows the gold plan would have answered so; None where nobody could say."""
    question = Question(
        decision.id, decision.kind, decision.subject, "", tuple(decision.candidates), {}, (), 0
    )  # fmt: skip
    if decision.kind == "filter" and not question.candidates:
        return None
    wanted = person.answer(question)
    return None if wanted is None else str(wanted) == str(NONE if decision.choice is None else decision.choice)
