"""Belief: what is held true of both systems and how it is known, and what was decided on it.

A pure fold over the log. It holds tables, columns, claims and decisions, never a row.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from workspace.errors import UsageError
from workspace.events import (
    BeliefHeld,
    DecisionMade,
    JobCleanedUp,
    JobStarted,
    PlanChanged,
    QuarantineTolerated,
    QuestionAnswered,
    TableProfiled,
    event_fields,
)
from workspace.log import Entry


@dataclass(frozen=True)
class Claim:
    """One thing held true; `position` is that of the event that says so."""

    evidence: Mapping[str, Any]
    confidence: float
    position: int

    def to_dict(self) -> dict[str, Any]:
        """As JSON values."""
        return {"evidence": dict(self.evidence), "confidence": self.confidence, "position": self.position}


@dataclass(frozen=True)
class Profile:
    """What the survey found in a table, and the position of the event that holds it."""

    facts: Mapping[str, Any]
    position: int


@dataclass(frozen=True)
class Decision:
    """A decision as it was recorded, and where."""

    made: DecisionMade
    position: int


@dataclass(frozen=True)
class Answer:
    """A person's answer to a question, and where it was recorded."""

    given: QuestionAnswered
    position: int


@dataclass(frozen=True)
class PlanVersion:
    """A version of the plan: who changed it, why, and where in the log its text stands."""

    version: int
    by: str
    why: str
    position: int

    def to_dict(self) -> dict[str, Any]:
        """As JSON values."""
        return {"by": self.by, "why": self.why, "position": self.position}


@dataclass(frozen=True)
class Belief:
    """What is held true at a position of the log.

    `profiles` by (side, table); `claims` by subject, then claim; `decisions` by (kind, subject), the latest
    of each; `answers` by question; `plan` is the YAML of the latest plan version, "" before the first. `cleaned_up` is
    where the crosswalk lies since the job's records were taken out of the target, "" while they are there.
    """

    job: str = ""
    source: str = ""
    target: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    plan: str = ""
    plan_versions: tuple[PlanVersion, ...] = ()
    profiles: Mapping[tuple[str, str], Profile] = field(default_factory=dict)
    claims: Mapping[str, Mapping[str, Claim]] = field(default_factory=dict)
    decisions: Mapping[tuple[str, str], Decision] = field(default_factory=dict)
    answers: Mapping[str, Answer] = field(default_factory=dict)
    cleaned_up: str = ""

    @property
    def plan_version(self) -> int:
        """The latest plan version; 0 before the first."""
        return self.plan_versions[-1].version if self.plan_versions else 0

    def refuse_cleaned_up(self) -> None:
        """UsageError for a job whose records are no longer in the target: nothing can be done with it there."""
        if self.cleaned_up:
            raise UsageError(
                f"the job {self.job} was cleaned up: its records are no longer in the target", where=f"job {self.job}",
                advice=f"its crosswalk is in {self.cleaned_up}; a new job loads anew, without knowing these rows",
            )  # fmt: skip

    def profile(self, side: Literal["source", "target"], table: str) -> Mapping[str, Any] | None:
        """The latest profile of a table, or None."""
        found = self.profiles.get((side, table))
        return found.facts if found else None

    def decided(self, kind: str, subject: str) -> DecisionMade | None:
        """The decision that stands on this subject, or None; a resumed job must not ask for it again."""
        found = self.decisions.get((kind, subject))
        return found.made if found else None

    def apply(self, entry: Entry) -> Belief:
        """The belief after one more event; itself where the event says nothing about belief."""
        position = entry.position
        match entry.event:
            case JobStarted() as started:
                return replace(
                    self,
                    job=started.job,
                    source=started.source,
                    target=started.target,
                    options=started.options,
                )
            case PlanChanged() as changed:
                version = PlanVersion(changed.version, changed.by, changed.why, position)
                return replace(self, plan=changed.plan, plan_versions=(*self.plan_versions, version))
            case TableProfiled() as found:
                profile = Profile(found.profile, position)
                return replace(self, profiles={**self.profiles, (found.side, found.table): profile})
            case BeliefHeld() as held:
                claim = Claim(held.evidence, held.confidence, position)
                of_subject = {**self.claims.get(held.subject, {}), held.claim: claim}
                return replace(self, claims={**self.claims, held.subject: of_subject})
            case DecisionMade() as made:
                decision = Decision(made, position)
                return replace(self, decisions={**self.decisions, (made.kind, made.subject): decision})
            case QuestionAnswered() as answered:
                return replace(self, answers={**self.answers, answered.id: Answer(answered, position)})
            case QuarantineTolerated() as tolerated:
                return replace(self, options={**self.options, "tolerate": tolerated.most})
            case JobCleanedUp() as gone:
                return replace(self, cleaned_up=gone.crosswalk)
            case _:
                return self

    def to_dict(self) -> dict[str, Any]:
        """As JSON values, by name; stable from one version to the next."""
        profiles: dict[str, dict[str, Any]] = {}
        for (side, table), profile in sorted(self.profiles.items()):
            profiles.setdefault(side, {})[table] = dict(profile.facts)
        decisions: dict[str, dict[str, Any]] = {}
        for (kind, subject), decision in sorted(self.decisions.items()):
            shown = {**event_fields(decision.made), "position": decision.position}
            decisions.setdefault(kind, {})[subject] = shown
        return {
            "job": self.job,
            "source": self.source,
            "target": self.target,
            "options": dict(self.options),
            "plan_version": self.plan_version,
            "plan": self.plan,
            "plan_versions": {str(each.version): each.to_dict() for each in self.plan_versions},
            "profiles": profiles,
            "claims": {
                subject: {claim: held.to_dict() for claim, held in sorted(claims.items())}
                for subject, claims in sorted(self.claims.items())
            },
            "decisions": decisions,
            "answers": {
                id_: {"answer": answer.given.answer, "by": answer.given.by, "position": answer.position}
                for id_, answer in sorted(self.answers.items())
            },
            "cleaned_up": self.cleaned_up,
        }


def fold_belief(entries: Iterable[Entry], start: Belief | None = None) -> Belief:
    """The belief after all of the entries, from `start` (None: from nothing)."""
    belief = start or Belief()
    for entry in entries:
        belief = belief.apply(entry)
    return belief
