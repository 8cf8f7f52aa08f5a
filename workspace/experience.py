"""Experience: which failures were met in this job, what was tried on them, and what that did.

A pure fold over the log. Across jobs, `workspace.experience_store` keeps the lessons.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from workspace.events import ActionTaken, Event, FeedbackGiven, LessonLearnt, QuarantineSeen
from workspace.log import Entry


@dataclass(frozen=True)
class Met:
    """A failure signature that was met: rows by entity (a re-driven batch counts again), example masked."""

    code: str
    field: str
    example: str
    rows: Mapping[str, int]

    def to_dict(self) -> dict[str, Any]:
        """As JSON values."""
        return {"code": self.code, "field": self.field, "example": self.example, "rows": dict(self.rows)}


@dataclass(frozen=True)
class Tried:
    """How often a remedy was tried on a signature, and how often it held."""

    tried: int = 0
    held: int = 0

    def to_dict(self) -> dict[str, int]:
        """As JSON values."""
        return {"tried": self.tried, "held": self.held}


@dataclass(frozen=True)
class Experience:
    """What was learnt up to a position of the log.

    `met` by signature; `remedies` by signature, then remedy; `actions` by action, then outcome, how often:
    an action without feedback yet (the job was killed in it) counts under `""`.
    """

    met: Mapping[str, Met] = field(default_factory=dict)
    remedies: Mapping[str, Mapping[str, Tried]] = field(default_factory=dict)
    actions: Mapping[str, Mapping[str, int]] = field(default_factory=dict)

    @property
    def without_remedy(self) -> list[str]:
        """The signatures that no remedy has held for yet, those with most rows first."""
        open_ = [
            signature
            for signature in self.met
            if not any(tried.held for tried in self.remedies.get(signature, {}).values())
        ]
        return sorted(open_, key=lambda signature: (-sum(self.met[signature].rows.values()), signature))

    def apply(self, entry: Entry) -> Experience:
        """The experience after one more event; itself where the event teaches nothing."""
        return self._with(entry.event)

    def _with(self, event: Event) -> Experience:
        match event:
            case QuarantineSeen():
                known = self.met.get(event.signature)
                rows = dict(known.rows) if known else {}
                rows[event.entity] = rows.get(event.entity, 0) + event.count
                met = Met(event.code, event.field, event.example, rows)
                return replace(self, met={**self.met, event.signature: met})
            case LessonLearnt():
                of_signature = self.remedies.get(event.signature, {})
                tried = of_signature.get(event.remedy, Tried())
                tried = Tried(tried.tried + 1, tried.held + event.held)
                remedies = {**self.remedies, event.signature: {**of_signature, event.remedy: tried}}
                return replace(self, remedies=remedies)
            case ActionTaken():
                return self._with_outcomes(event.action, {"": 1})
            case FeedbackGiven():
                pending = self.actions.get(event.action, {}).get("", 0)
                return self._with_outcomes(event.action, {"": -1 if pending else 0, event.outcome: 1})
            case _:
                return self

    def _with_outcomes(self, action: str, change: Mapping[str, int]) -> Experience:
        outcomes = dict(self.actions.get(action, {}))
        for outcome, count in change.items():
            outcomes[outcome] = outcomes.get(outcome, 0) + count
        outcomes = {outcome: count for outcome, count in outcomes.items() if count}
        return replace(self, actions={**self.actions, action: outcomes})

    def to_dict(self) -> dict[str, Any]:
        """As JSON values, by name; stable from one version to the next."""
        return {
            "met": {signature: met.to_dict() for signature, met in sorted(self.met.items())},
            "remedies": {
                signature: {remedy: tried.to_dict() for remedy, tried in sorted(remedies.items())}
                for signature, remedies in sorted(self.remedies.items())
            },
            "without_remedy": self.without_remedy,
            "actions": {action: dict(outcomes) for action, outcomes in sorted(self.actions.items())},
        }


def fold_experience(entries: Iterable[Entry], start: Experience | None = None) -> Experience:
    """The experience after all of the entries, from `start` (None: from nothing)."""
    experience = start or Experience()
    for entry in entries:
        experience = experience.apply(entry)
    return experience
