"""Events of what is asked of a person, and answered."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field
from pydantic.dataclasses import dataclass

from workspace.event import CONFIG, Confidence, Count, Event, Facts, FactsList, Json, Seconds, Text, TextList


@dataclass(frozen=True, config=CONFIG)
class QuestionAsked(Event):
    """A question for a person. `holds` names the entities that wait for the answer; the price is that of a `model`
    that was asked before and was not surer than `limit`; where none was, that stays empty."""

    type: ClassVar[str] = "question_asked"
    id: Text
    kind: Text
    subject: Text
    text: Text
    candidates: FactsList = Field(default_factory=list)
    evidence: Facts = Field(default_factory=dict)
    holds: TextList = Field(default_factory=list)
    calls: Count = 0
    prompt_tokens: Count = 0
    answer_tokens: Count = 0
    seconds: Seconds = 0.0
    model: Text = ""
    limit: Confidence = 0.0
    cached_tokens: Count = 0


@dataclass(frozen=True, config=CONFIG)
class QuestionAnswered(Event):
    """The answer to question `id`; `by` names who or what gave it (`person`, `file`, `deferred`)."""

    type: ClassVar[str] = "question_answered"
    id: Text
    answer: Json
    by: Text = "person"
