"""Reads what `bench.choose` stored and says how right each form is, and how far its probabilities can be believed."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agent.models.calibration import wilson
from bench.choose_set import Question, load_questions

EDGES = (0.0, 0.4, 0.6, 0.8, 0.9, 0.95, 0.98, 1.0)
WANTED = 0.98
LEVELS = (0.5, 0.7, 0.8, 0.9, 0.95)
_FEATURES = ("pairs", "names_alike", "encoder", "kinds")
_MODEL = ("pairs", "trained", "letters1", "letters3", "names3", "question")


@dataclass(frozen=True)
class Answer:
    """One question answered: a probability for each option, seconds of one core."""

    question: Question
    shares: NDArray[np.float64]
    work: float

    @property
    def right(self) -> bool:
        """True where the likeliest option is the right one."""
        return int(np.argmax(self.shares)) == self.question.right

    @property
    def ranked_right(self) -> bool:
        """The same with "none of these" left out; only for a question that has a right candidate."""
        return int(np.argmax(self.shares[:-1])) == self.question.right

    @property
    def sure(self) -> float:
        """The probability of the likeliest option."""
        return float(self.shares.max())

    @property
    def silent(self) -> bool:
        """True for a wrong candidate; "none of these" said wrongly costs a question and moves nothing."""
        best = int(np.argmax(self.shares))
        return best != self.question.right and best < len(self.question.candidates)


def print_report(store: Path) -> None:
    """All tables, as text."""
    scores = _read(store)
    for to_field in (False, True):
        questions = load_questions(to_field)
        print(
            f"\n== {'old column -> new field' if to_field else 'new field -> old column'}: {len(questions)} questions"
        )
        found: dict[str, list[Answer]] = {}
        for form in sorted({form for form, direction, _ in scores if direction == to_field}):
            raw = {n: value for (f, d, n), value in scores.items() if (f, d) == (form, to_field)}
            found[form] = [Answer(questions[n], _shares(form, s), work) for n, (s, work) in sorted(raw.items())]
        for form in [name for name in ("pairs", "trained") if name in found]:
            spread, none = fit(found[form])
            print(f"{form}: spread {spread:.2f}, none {none:+.2f} (fitted on the development families)")
            found[f"{form}, fitted"] = [_refit(a, spread, none) for a in found[form]]
        if all(form in found for form in _FEATURES):
            found["combined"] = _combined(questions, scores, to_field)
        for form, answers in found.items():
            _line(form, answers)
        for form in ("pairs, fitted", "trained, fitted", "combined"):
            if form in found:
                _calibration(form, [a for a in found[form] if a.question.held_out])


def measured(store: Path) -> dict[str, dict[str, Any]]:
    """What `agent.models.adapters` keeps of the trained encoder, by direction: `fit`, of the development families, and `levels`
    (sure, answers, right), counted on the others where it named a candidate. ValueError where the store has no answers."""
    out: dict[str, dict[str, Any]] = {}
    scores = _read(store)
    for key, to_field in (("column", False), ("field", True)):
        questions = load_questions(to_field)
        answers = [
            Answer(questions[number], shares, work)
            for (form, direction, number), (shares, work) in sorted(scores.items())
            if (form, direction) == ("trained", to_field)
        ]
        if len(answers) < len(questions):
            raise ValueError(f"{len(answers)} of {len(questions)} questions are answered: run --form trained first")
        spread, none = fit(answers)
        refitted = [_refit(a, spread, none) for a in answers if a.question.held_out]
        named = [a for a in refitted if int(np.argmax(a.shares)) < len(a.question.candidates)]
        over = {limit: [a.right for a in named if a.sure >= limit] for limit in LEVELS}
        levels = [[limit, len(told), sum(told)] for limit, told in over.items() if told]
        out[key] = {"fit": [round(spread, 2), round(none, 2)], "levels": levels}
    return out


def _read(store: Path) -> dict[tuple[str, bool, int], tuple[NDArray[np.float64], float]]:
    found = {}
    for line in store.read_text().splitlines():
        r = json.loads(line)
        found[r["form"], r["to_field"], r["number"]] = (np.array(r["scores"]), r["work"])
    return found


def _shares(form: str, scores: NDArray[np.float64]) -> NDArray[np.float64]:
    if form in _MODEL:
        return scores
    return _softmax(scores * 10)


def _softmax(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    raised = np.exp(scores - scores.max())
    shares: NDArray[np.float64] = raised / raised.sum()
    return shares


def _logs(shares: NDArray[np.float64]) -> NDArray[np.float64]:
    logs: NDArray[np.float64] = np.log(np.maximum(shares, 1e-6))
    return logs


def _refit(answer: Answer, spread: float, none: float) -> Answer:
    scores = _logs(answer.shares)
    scores[-1] += none
    return Answer(answer.question, _softmax(scores / spread), answer.work)


def fit(answers: Sequence[Answer]) -> tuple[float, float]:
    """The spread and the weight of "none of these" under which the right answers of the development families
    are likeliest."""
    known = [a for a in answers if not a.question.held_out]
    grid = [(s, n) for s in np.arange(0.6, 4.01, 0.1) for n in np.arange(-2, 6.01, 0.25)]

    def loss(pair: tuple[float, float]) -> float:
        return -sum(float(_logs(_refit(a, *pair).shares)[a.question.right]) for a in known)

    best = min(grid, key=loss)
    return float(best[0]), float(best[1])


def _combined(
    questions: Sequence[Question],
    scores: dict[tuple[str, bool, int], tuple[NDArray[np.float64], float]],
    to_field: bool,
) -> list[Answer]:
    """A conditional logit over the features, fitted on the development families by gradient descent."""
    rows: list[tuple[Question, NDArray[np.float64]]] = []
    for number, question in enumerate(questions):
        if any((form, to_field, number) not in scores for form in _FEATURES):
            continue
        columns = [scores[form, to_field, number][0] for form in _FEATURES]
        columns[0] = _logs(columns[0])
        last = np.zeros(len(question.options))
        last[-1] = 1.0  # "none of these" has a weight of its own and no other evidence
        table = np.stack([*columns, last], axis=1)
        table[-1, 1:-1] = 0.0
        rows.append((question, table))
    weights = np.zeros(len(_FEATURES) + 1)
    known = [(q, t) for q, t in rows if not q.held_out]
    for _ in range(3000):
        slope = -0.02 * weights
        for question, table in known:
            slope += table[question.right] - _softmax(table @ weights) @ table
        weights += 0.5 * slope / len(known)
    print("combined: " + ", ".join(f"{n} {w:+.2f}" for n, w in zip((*_FEATURES, "none"), weights, strict=True)))
    return [Answer(q, _softmax(t @ weights), 0.0) for q, t in rows]


def _line(form: str, answers: Sequence[Answer]) -> None:
    parts = []
    for name, chosen in (
        ("development", [a for a in answers if not a.question.held_out]),
        ("held out", [a for a in answers if a.question.held_out]),
    ):
        has = [a for a in chosen if a.question.answerable]
        none = [a for a in chosen if not a.question.answerable]
        if has:
            ranked = sum(a.ranked_right for a in has) / len(has)
            right = sum(a.right for a in chosen) / len(chosen)
            gone = f"{sum(a.right for a in none)}/{len(none)}"
            parts.append(f"{name} n={len(chosen)}: right {right:.0%}, ranked first {ranked:.0%}, none seen {gone}")
    work = float(np.median([a.work for a in answers]))
    print(f"{form:14s} {work:5.2f} s  " + " | ".join(parts))


def _calibration(form: str, answers: Sequence[Answer]) -> None:
    print(f"  {form}, held out: said -> was right (answers)")
    bins: dict[int, list[Answer]] = defaultdict(list)
    for answer in answers:
        bins[int(np.searchsorted(EDGES, answer.sure, side="right")) - 1].append(answer)
    for place in sorted(bins):
        inside = bins[place]
        said = sum(a.sure for a in inside) / len(inside)
        low, high = EDGES[min(place, len(EDGES) - 2)], EDGES[min(place + 1, len(EDGES) - 1)]
        print(
            f"    {low:.2f}-{high:.2f}: {said:.2f} -> {sum(a.right for a in inside) / len(inside):.2f} ({len(inside)})"
        )
    for limit in (0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99):
        over = [a for a in answers if a.sure >= limit]
        if over:
            right = sum(a.right for a in over)
            silent = sum(a.silent for a in over)
            print(
                f"    from {limit:.2f}: answers {len(over)} of {len(answers)}, right {right}: {right / len(over):.3f}"
                f" (at least {wilson(right, len(over)):.3f} with 95 %), wrong candidates {silent}"
            )
    limits = sorted({a.sure for a in answers})
    held = [t for t in limits if all(_share(answers, u) >= WANTED for u in limits if u >= t)]
    if held:
        over = [a for a in answers if a.sure >= held[0]]
        print(f"    right in {WANTED:.0%} from {held[0]:.3f}: {len(over)} answers")
    else:
        print(f"    no threshold from which {WANTED:.0%} are right")


def _share(answers: Sequence[Answer], limit: float) -> float:
    over = [a.right for a in answers if a.sure >= limit]
    return sum(over) / len(over)
