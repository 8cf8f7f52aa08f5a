"""The questions that wait for a person: what is open, and how an answer gets into the log.

An answer is recorded and nothing else; the plan changes when the job goes on (`migrate resume`).
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from agent.countries import check_country
from agent.kinds import read_kinds
from agent.matter import EXPRESSIONS, NONE, SQL
from agent.zones import check_zone
from engine.syntax import parse_expression
from workspace.errors import UsageError
from workspace.events import DecisionMade, JobPurged, QuestionAnswered, QuestionAsked
from workspace.log import Workspace
from workspace.state import state_at


def _pairs(text: str) -> dict[str, str]:
    """`{"Finance": "banking"}` or `Finance=banking; Press=other` as a map. UsageError for anything else."""
    if text.lstrip().startswith("{"):
        try:
            return {str(k): str(v) for k, v in json.loads(text).items()}
        except ValueError:
            raise UsageError("the answer is not valid JSON", advice="write value=label; value=label") from None
    pairs = [p.partition("=") for p in text.split(";") if p.strip()]
    if not pairs or any(not equals for _, equals, _ in pairs):
        raise UsageError("not a list of values with labels", advice="write value=label; value=label")
    return {value.strip(): label.strip() for value, _, label in pairs}


@dataclass(frozen=True)
class Question:
    """One open question. `candidates` carry answer, label, weight and evidence; `holds` is what waits for it."""

    id: str
    kind: str
    subject: str
    text: str
    candidates: tuple[dict[str, Any], ...]
    evidence: dict[str, Any]
    holds: tuple[str, ...]
    position: int

    @property
    def free(self) -> bool:
        """True where an answer may be text of one's own (a time zone, a map of values, a constant)."""
        if self.kind == "format":
            return not self.candidates
        return self.kind in ("zone", "values", "required", "key", "country", "kinds")


def open_questions(workspace: Workspace) -> list[Question]:
    """All questions without an answer or a later decision, those that hold most first."""
    asked: dict[str, Question] = {}
    for entry in workspace.events(types=[QuestionAsked, QuestionAnswered, DecisionMade]):
        event = entry.event
        if isinstance(event, QuestionAsked):
            asked[event.id] = question_of(event, entry.position)
        elif isinstance(event, (QuestionAnswered, DecisionMade)):
            asked.pop(event.id, None)
    return sorted(asked.values(), key=lambda q: (-len(q.holds), q.position))


def question_of(event: QuestionAsked, position: int = 0) -> Question:
    """The question that an event of the log asks."""
    return Question(
        event.id,
        event.kind,
        event.subject,
        event.text,
        tuple(event.candidates),
        event.evidence,
        tuple(event.holds),
        position,
    )


def read_answer(found: Question, answer: Any) -> Any:
    """What a person's answer comes to, as it is recorded: a candidate's `answer`, `none`, `sql:` and an expression,
    a map of values, kinds of record, or text. Raises UsageError or ExpressionError for what is no answer to that question."""
    if (
        isinstance(answer, str)
        and answer.isdigit()
        and 1 <= int(answer) <= len(found.candidates)
        and found.kind != "values"
    ):
        answer = found.candidates[int(answer) - 1]["answer"]
    allowed = {c["answer"] for c in found.candidates} | {NONE}
    if found.kind == "values" and isinstance(answer, str):
        answer = _pairs(answer)
    if found.kind == "zone" and not check_zone(str(answer)):
        raise UsageError(f"no time zone {answer!r}", advice="name it as America/New_York or Europe/Berlin, or UTC")
    if found.kind == "country" and not check_country(str(answer)):
        raise UsageError(f"no country {answer!r}", advice="name it by its two letters, such as US or DE")
    several = found.kind == "kinds" or (found.kind == "entity" and isinstance(answer, str) and "=" in answer)
    if several and answer not in allowed:
        read_kinds(str(answer))
        return answer
    expression = isinstance(answer, str) and answer.startswith(SQL) and found.kind in EXPRESSIONS
    if expression:
        parse_expression(str(answer).removeprefix(SQL).strip(), found.subject)
    elif not found.free and answer not in allowed:
        shown = ", ".join(sorted(map(str, allowed)))
        raise UsageError(f"{answer!r} is no answer to {found.id}", advice=f"answer one of: {shown}")
    return answer


def answer_question(workspace: Workspace, question: str, answer: Any, by: str = "person") -> Question:
    """Records an answer: a candidate's `answer`, its number from 1, `none`, an expression after `sql:` for a
    field, or text where the question is free.

    Returns the question. Raises UsageError where there is no such open question or the answer is none of those;
    ExpressionError for an expression that does not parse."""
    if next(workspace.events(types=[JobPurged]), None) is not None:
        state_at(workspace).refuse_purged()
    waiting = open_questions(workspace)
    named = [q for q in waiting if q.id == question] or [q for q in waiting if q.subject == question]
    found = named[0] if named else None
    if found is None:
        raise UsageError(f"no open question {question!r}", advice="`migrate answer` lists those there are")
    answer = read_answer(found, answer)
    workspace.record(QuestionAnswered(id=found.id, answer=answer, by=by))
    return found
