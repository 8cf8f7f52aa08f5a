"""Value maps: a source's picklist values onto a target's labels.

A rule takes what is equal, a usual synonym or plainly contained; experience what a person said before; the
model what it was measured to be good enough for. What is left is one question with all of its values, and
until it is answered rows with such a value wait in quarantine: none is given a label by guess.
"""

from __future__ import annotations

import html
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace

from agent.ladder import Ladder
from agent.matter import Decision, Matter, Option
from agent.models.protocol import Price
from agent.profile import ColumnProfile
from agent.value_lexicon import Hit, label_for, label_words, normal
from workspace.experience_store import ExperienceStore
from workspace.signature import normalise, value_map_signature

_FEW = 4  # words; a value of more could tell a model what to say, and its answer has to stand without them
_SHOWN = 80  # characters of a value in its question
_TRUSTED = 0.25  # a lesson's lower bound: held at least once and never failed


@dataclass(frozen=True)
class ValueMap:
    """The map as decided; `unsure` are values with their counts that wait for a person; `direct` is True where
    every value is a label as it stands and no map is needed."""

    values: dict[str, str | None]
    unsure: dict[str, int]
    direct: bool
    covered: float  # of the rows in the sample with a value
    price: Price


def decide_values(
    ladder: Ladder,
    experience: ExperienceStore | None,
    subject: str,
    column: str,
    profile: ColumnProfile,
    labels: tuple[str, ...],
) -> ValueMap:
    """The value map of one field. Asks one question for all values that nobody could place."""
    escaped = "entities" in profile.undo  # the expression undoes them before the map looks
    counts = {html.unescape(v) if escaped else v: n for v, n in profile.top}
    return place_values(ladder, experience, subject, column, counts, labels, {})


def place_values(
    ladder: Ladder,
    experience: ExperienceStore | None,
    subject: str,
    column: str,
    counts: Mapping[str, int],
    labels: tuple[str, ...],
    known: Mapping[str, str | None],
) -> ValueMap:
    """A value map over these values (with the rows that hold each) and those that are `known` to be right."""
    values: dict[str, str | None] = dict(known)
    unsure: dict[str, tuple[int, Hit]] = {}
    rungs: dict[str, str] = dict.fromkeys(known, "rule")
    answered = _answered(ladder, f"values:{subject}", labels)
    learnt = _learnt(experience, column, labels)
    chosen, left = _chosen_before(ladder, subject, labels), _left_before(ladder, subject, labels)
    paid, asking = Price(), Price()  # for values that were placed, and for those that are asked about
    for value, count in counts.items():
        if value in known:
            continue
        hit = label_for(value, labels)
        if value in answered:
            if answered[value] != "quarantine":
                values[value], rungs[value] = (None if answered[value] == "null" else answered[value]), "ask"
        elif hit.sure and hit.label is not None:
            values[value], rungs[value] = hit.label, "rule"
        elif value in learnt:
            values[value], rungs[value] = learnt[value], "experience"
        elif value in chosen:
            values[value], rungs[value] = chosen[value], "choose"
        elif value[:_SHOWN] in left:
            unsure[value] = (count, hit)
        else:
            label, cost = _chosen(ladder, subject, value, hit, labels)
            if label is not None:
                values[value], rungs[value], paid = label, "choose", paid + cost
            else:
                unsure[value], asking = (count, hit), asking + cost
    _remember(ladder, experience, f"value_map:{subject}", column, labels, values, rungs)
    total = sum(counts.values())
    covered = sum(n for v, n in counts.items() if v in values) / total if total else 1.0
    direct = not unsure and all(v == label for v, label in values.items())
    matter = _matter(subject, labels, unsure)
    _record(ladder, matter, values, rungs, covered, paid, value_map_signature(column, list(labels)))
    if unsure:
        before = len(ladder.answers_to(matter.id))
        ladder.ask(matter, asking)
        if len(ladder.answers_to(matter.id)) > before:
            return place_values(ladder, experience, subject, column, counts, labels, known)  # a person was at hand
    return ValueMap(values, {v: n for v, (n, _) in unsure.items()}, direct, covered, paid + asking)


def _remember(
    ladder: Ladder, experience: ExperienceStore | None, id_: str, column: str, labels: tuple[str, ...],
    values: dict[str, str | None], rungs: dict[str, str],
) -> None:  # fmt: skip
    """What a person said about values is a lesson, recorded once an answer."""
    said = {v: label for v, label in values.items() if rungs[v] == "ask" and label is not None}
    made = ladder.made(id_)
    known = json.loads(str(made.choice)) if made is not None and made.choice is not None else {}
    if experience is None or not said or all(known.get(v) == label for v, label in said.items()):
        return
    remedy = json.dumps(dict(sorted(said.items())), ensure_ascii=False)
    experience.record("value_map", value_map_signature(column, list(labels)), remedy, True)


def _chosen_before(ladder: Ladder, subject: str, labels: tuple[str, ...]) -> dict[str, str]:
    """The labels that values were given in this job, as the log has them: what no rule, lesson or answer gives now, the
    model gave then."""
    found: dict[str, str] = {}
    for made in ladder.all_made(f"value_map:{subject}"):
        known = json.loads(str(made.choice)) if made.choice is not None else {}
        found |= {str(value): label for value, label in known.items() if label in labels}
    return found


def _left_before(ladder: Ladder, subject: str, labels: tuple[str, ...]) -> frozenset[str]:
    """The values that the model was asked about in this job and that it left to a person."""
    matter = _matter(subject, labels, {})
    asked = ladder.question(matter.id)
    if asked is None or not ladder.left_open(matter):
        return frozenset()
    return frozenset(str(known["value"]) for known in asked.evidence.get("values", ()))


def _chosen(ladder: Ladder, subject: str, value: str, hit: Hit, labels: tuple[str, ...]) -> tuple[str | None, Price]:
    """The model's word on one value, where it counts for enough; nothing is recorded a value."""
    if hit.label is None or hit.score < 0.45:
        return None, Price()
    options = [Option(hit.label, hit.label, hit.score)]
    options += [Option(label, label, 0.05) for label in labels if label != hit.label][:8]
    matter = Matter(
        "value",
        f"{subject}",
        f"Which label means the same as the value? Field {subject}.",
        tuple(options),
        data=value[:60],
    )
    decision = ladder.says(matter)
    if decision.open or decision.answer is None or len(normal(value).split()) <= _FEW:
        return (None if decision.open else decision.answer), decision.price
    again = ladder.says(replace(matter, data=label_words(value, labels)))
    stands = not again.open and again.answer == decision.answer
    return (decision.answer if stands else None), decision.price + again.price


def _matter(subject: str, labels: tuple[str, ...], unsure: Mapping[str, tuple[int, Hit]]) -> Matter:
    return Matter(
        "values", subject, f"Which of the target's labels do these values of {subject} mean?",
        tuple(Option(label, label, 0.0) for label in labels),
        evidence={
            "values": [
                {"value": v[:_SHOWN], "rows": n, "nearest": hit.label, "why": hit.why}
                for v, (n, hit) in sorted(unsure.items(), key=lambda item: -item[1][0])
            ]
        },
        free=True,
    )  # fmt: skip


def _record(
    ladder: Ladder, matter: Matter, values: dict[str, str | None], rungs: dict[str, str], covered: float, price: Price,
    signature: str,
) -> None:  # fmt: skip
    """One decision a map, as JSON; the highest rung that it took. Recorded again only where it changed."""
    order = ["rule", "experience", "choose", "ask"]
    rung = max((rungs[v] for v in values), key=order.index, default="rule")
    choice = json.dumps(dict(sorted(values.items())), ensure_ascii=False)
    told = replace(matter, kind="value_map", options=())
    made = ladder.made(told.id)
    if made is not None and made.choice == choice:
        return
    by_rung = ", ".join(f"{list(rungs.values()).count(r)} by {r}" for r in order if r in rungs.values())
    chosen = {v: label for v, label in values.items() if rungs[v] == "choose" and label is not None}
    remedy = json.dumps(dict(sorted(chosen.items())), ensure_ascii=False)
    lessons: list[dict[str, object]] = (
        [{"kind": "value_map", "signature": signature, "remedy": remedy}] if chosen else []
    )
    ladder.record(told, Decision(told.id, choice, rung, round(covered, 3), by_rung or "no value", price=price), lessons)  # type: ignore[arg-type]


def _answered(ladder: Ladder, question: str, labels: tuple[str, ...]) -> dict[str, str]:
    """What a person answered, each time the question was put: value -> label, `null` or `quarantine`. What names no
    label is left unanswered."""
    allowed = {*labels, "null", "quarantine"}
    said: dict[str, str] = {}
    for answer in ladder.answers_to(question):
        if isinstance(answer, str):
            try:
                answer = json.loads(answer)
            except ValueError:
                continue
        if isinstance(answer, dict):
            said |= {str(k): "null" if v is None else str(v) for k, v in answer.items()}
    return {k: v for k, v in said.items() if v in allowed}


def _same_labels(a: str, b: str) -> bool:
    """True where two signatures end in the same labels; long ones are cut off."""
    ours, theirs = sorted((a.partition(" to ")[2], b.partition(" to ")[2]), key=len)
    return ours == theirs or (len(ours) > 100 and theirs.startswith(ours))


def _learnt(experience: ExperienceStore | None, column: str, labels: tuple[str, ...]) -> dict[str, str]:
    if experience is None:
        return {}
    out: dict[str, str] = {}
    signature = normalise(value_map_signature(column, list(labels)))
    # the same labels mean the same, whatever the column is called
    near = [each for each in experience.near("value_map", signature) if _same_labels(each.signature, signature)]
    for lesson in [*experience.recall("value_map", signature), *near]:
        if lesson.trust < _TRUSTED:
            continue
        try:
            known = json.loads(lesson.remedy)
        except ValueError:
            continue
        if isinstance(known, dict):
            out.update({str(k): str(v) for k, v in known.items() if v in labels and str(k) not in out})
    return out
