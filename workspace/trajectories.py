"""A job's log as steps to learn from: what was to be decided, what could be, what was decided, and what came of it.

Read from the log and from nothing else. No record's value goes out unless that is asked for: the kinds of matters whose options
are values are left out then, and of an answer in a person's own words it is only said that there was one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from workspace.events import ActionTaken, DecisionMade, FeedbackGiven
from workspace.events_questions import QuestionAnswered, QuestionAsked
from workspace.log import Workspace

WITHOUT_VALUES = frozenset({"field", "required", "format", "zone", "country", "key", "filter"})
"""Kinds of matters whose options are columns, forms and zones, and never values of records."""
OWN_WORDS = "own words"


def trajectories(workspace: Workspace, job: str, *, with_values: bool = False) -> Iterator[dict[str, Any]]:
    """One object a decision of the job, in the order of the log.

    `position`, `kind`, `subject`; `options`, those that were valid (answer, label, weight, evidence); `decision` (None for
    none of them), `rung`, `confidence`, `why` and `price`; `asked`, where a person was; `answer`, what was said in the end,
    by `answered_by`; `right`, whether the decision of a rung before the person is what the person said (None where nobody
    did); `feedback`, the actions that followed until the next decision and their outcome."""
    types = [DecisionMade, QuestionAsked, QuestionAnswered, ActionTaken, FeedbackGiven]
    events = [(entry.position, entry.event) for entry in workspace.events(types=types)]
    answers = {e.id: e for _, e in events if isinstance(e, QuestionAnswered)}
    questions = {e.id: e for _, e in events if isinstance(e, QuestionAsked)}
    step: dict[str, Any] | None = None
    for position, event in events:
        if isinstance(event, DecisionMade):
            if step is not None:
                yield step
            step = None
            if with_values or event.kind in WITHOUT_VALUES:
                step = _step(position, event, questions.get(event.id), answers.get(event.id), job, with_values)
        elif step is not None and isinstance(event, FeedbackGiven):
            failed = [str(each.get("signature", "")) for each in event.failed]
            step["feedback"].append({"action": event.action, "outcome": event.outcome, "failed": failed})
    if step is not None:
        yield step


def _step(
    position: int,
    made: DecisionMade,
    asked: QuestionAsked | None,
    answered: QuestionAnswered | None,
    job: str,
    values: bool,
) -> dict[str, Any]:
    options = [dict(each) for each in made.candidates]
    known = {str(each.get("answer")) for each in options} | {"none"}
    by = None if answered is None else answered.by
    answer = None if answered is None else answered.answer
    right = (
        None if by != "person" or made.rung == "ask" else (made.choice if made.choice is not None else "none") == answer
    )

    def told(text: Any) -> Any:
        return text if values or text is None or str(text) in known else OWN_WORDS

    return {
        "job": job, "position": position, "kind": made.kind, "subject": made.subject,
        "question": "" if asked is None else asked.text, "options": options, "decision": told(made.choice), "rung": made.rung,
        "confidence": made.confidence, "why": made.why,
        "price": {"calls": made.calls, "prompt_tokens": made.prompt_tokens, "cached_tokens": made.cached_tokens,
                  "answer_tokens": made.answer_tokens, "seconds": made.seconds},
        "asked": asked is not None, "answer": told(answer), "answered_by": by, "right": right, "feedback": [],
    }  # fmt: skip
