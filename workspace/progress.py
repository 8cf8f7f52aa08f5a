"""Progress: the phases, entities and batches; what is done, failed and open, and what to attend to next.

A pure fold over the log. It holds counts per entity, batch and signature, never a row.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from workspace.counts import Counts
from workspace.entity import EntityProgress
from workspace.events import (
    BatchCommitted,
    BatchRetried,
    BatchSynced,
    BatchUndone,
    DecisionMade,
    EntityCompleted,
    Event,
    FeedbackGiven,
    Interrupted,
    JobFinished,
    JobPaused,
    JobPurged,
    JobStarted,
    JobWentOn,
    PartStaged,
    PhaseStarted,
    PlanChanged,
    QuarantineRetried,
    QuarantineSeen,
    QuestionAnswered,
    QuestionAsked,
    RetryMade,
    RowsDropped,
    RowsExpected,
    RowsMatched,
    StageCompleted,
    SyncStarted,
    UndoStarted,
    Verified,
    event_fields,
)
from workspace.log import Entry

_ATTEND_AT_MOST = 12


@dataclass(frozen=True)
class Price:
    """What decisions cost: how many there were, model calls, tokens (of those read, so many were served from the model's
    prefix cache), seconds."""

    decisions: int = 0
    calls: int = 0
    prompt_tokens: int = 0
    answer_tokens: int = 0
    seconds: float = 0.0
    cached_tokens: int = 0

    @property
    def cached_share(self) -> float | None:
        """The share of the tokens read that the prefix cache served; None where a model read none."""
        return self.cached_tokens / self.prompt_tokens if self.prompt_tokens else None

    def with_calls(self, made: DecisionMade | QuestionAsked) -> Price:
        """The price with what a decision cost, or a model that left its question to a person."""
        return Price(
            self.decisions + isinstance(made, DecisionMade),
            self.calls + made.calls,
            self.prompt_tokens + made.prompt_tokens,
            self.answer_tokens + made.answer_tokens,
            self.seconds + made.seconds,
            self.cached_tokens + made.cached_tokens,
        )

    def to_dict(self) -> dict[str, Any]:
        """As JSON values."""
        return {
            "decisions": self.decisions,
            "calls": self.calls,
            "prompt_tokens": self.prompt_tokens,
            "cached_tokens": self.cached_tokens,
            "answer_tokens": self.answer_tokens,
            "seconds": round(self.seconds, 3),
        }


@dataclass(frozen=True)
class Attempts:
    """How often something was tried again, and its last error."""

    count: int
    error: str


@dataclass(frozen=True)
class Progress:
    """How far the job is at a position of the log.

    `phases` gives when each was last begun, in the order they were first begun; `open_questions` by id, in
    the order they were asked; `rungs` the price of decisions by rung; `attempts` by what was tried;
    `verified` is None before a verification and after a batch that came later; `outcome` and `exit_code` are
    those of the last command that ended by itself, None while one runs or after it was killed. `taken_back` from
    when all that the job wrote began to be taken back: such a job can't go on. `paused_at` is since when it waits because somebody asked it
    to, None while it doesn't, and `paused_process` the process that does. `purged_at` is since when record values are gone
    from its files, None while they are there: such a job can't go on either.
    """

    started_at: datetime | None = None
    last_at: datetime | None = None
    phase: str = ""
    phases: Mapping[str, datetime] = field(default_factory=dict)
    plan_version: int = 0
    entities: Mapping[str, EntityProgress] = field(default_factory=dict)
    open_questions: Mapping[str, QuestionAsked] = field(default_factory=dict)
    questions_answered: int = 0
    rungs: Mapping[str, Price] = field(default_factory=dict)
    attempts: Mapping[str, Attempts] = field(default_factory=dict)
    attend: tuple[str, ...] = ()
    verified: bool | None = None
    verification: Mapping[str, Any] = field(default_factory=dict)
    interrupted: str = ""
    outcome: str | None = None
    exit_code: int | None = None
    taken_back: bool = False
    paused_at: datetime | None = None
    paused_process: str = ""
    purged_at: datetime | None = None

    @property
    def counts(self) -> Counts:
        """The equation over all entities."""
        return sum((entity.counts for entity in self.entities.values()), Counts())

    @property
    def price(self) -> Price:
        """The price of all decisions."""
        rungs = self.rungs.values()
        return Price(
            sum(p.decisions for p in rungs), sum(p.calls for p in rungs), sum(p.prompt_tokens for p in rungs),
            sum(p.answer_tokens for p in rungs), sum(p.seconds for p in rungs), sum(p.cached_tokens for p in rungs),
        )  # fmt: skip

    @property
    def held_entities(self) -> frozenset[str]:
        """The entities that wait for an answer."""
        return frozenset(held for question in self.open_questions.values() for held in question.holds)

    @property
    def attend_next(self) -> list[str]:
        """What to look at next, the most pressing first; a line each, at most 12."""
        lines: list[str] = []
        if self.verified is False:
            lines.append("verification failed")
        for name, entity in self.entities.items():
            if entity.counts.missing:
                lines.append(f"{name}: {entity.counts.missing} rows read without an outcome")
        lines += [
            f"question {id_}: {question.text} (holds {', '.join(question.holds)})"
            for id_, question in self.open_questions.items()
            if question.holds
        ]
        lines += self.attend
        lines += [
            f"{name}: {failure.open} rows in quarantine, {signature}"
            for failure, name, signature in sorted(
                (
                    (failure, name, signature)
                    for name, entity in self.entities.items()
                    for signature, failure in entity.failures.items()
                    if failure.open
                ),
                key=lambda found: (-found[0].open, found[1], found[2]),
            )
        ]
        lines += [
            f"question {id_}: {question.text}" for id_, question in self.open_questions.items() if not question.holds
        ]
        return list(dict.fromkeys(lines))[:_ATTEND_AT_MOST]

    def apply(self, entry: Entry) -> Progress:
        """The progress after one more event."""
        return replace(self, last_at=entry.at)._with(entry.event, entry.at)

    def _with(self, event: Event, at: datetime) -> Progress:
        match event:
            case JobStarted():
                return replace(self, started_at=self.started_at or at, **_RUNNING)
            case PlanChanged():
                return replace(self, plan_version=event.version)
            case PhaseStarted():
                return replace(self, phase=event.phase, phases={**self.phases, event.phase: at}, **_RUNNING)
            case BatchCommitted():  # what was verified before it is no longer all there is
                moved = replace(self, verified=None, verification={})
                return moved._with_entity(event.entity, event)
            case UndoStarted() if event.whole:
                phases = {**self.phases, "undo": at}
                return replace(self, phase="undo", phases=phases, taken_back=True, **_RUNNING)
            case QuarantineRetried():
                return replace(self, phase="retry", phases={**self.phases, "retry": at})
            case SyncStarted():
                return replace(self, phase="sync", phases={**self.phases, "sync": at})
            case BatchUndone() | BatchRetried() | BatchSynced():
                return replace(self, verified=None, verification={})._with_entity(event.entity, event)
            case (
                RowsExpected()
                | PartStaged()
                | StageCompleted()
                | RowsMatched()
                | QuarantineSeen()
                | RowsDropped()
                | EntityCompleted()
            ):
                return self._with_entity(event.entity, event)
            case QuestionAsked():
                rungs = dict(self.rungs)
                if event.calls:  # spent, though it decided nothing
                    rungs["choose"] = rungs.get("choose", Price()).with_calls(event)
                return replace(self, open_questions={**self.open_questions, event.id: event}, rungs=rungs)
            case QuestionAnswered() if event.id in self.open_questions:
                still = {id_: asked for id_, asked in self.open_questions.items() if id_ != event.id}
                return replace(self, open_questions=still, questions_answered=self.questions_answered + 1)
            case DecisionMade():
                price = self.rungs.get(event.rung, Price()).with_calls(event)
                return replace(self, rungs={**self.rungs, event.rung: price})
            case FeedbackGiven():
                return replace(self, attend=tuple(event.attend))
            case RetryMade():
                known = self.attempts.get(event.what)
                attempts = Attempts((known.count if known else 0) + 1, event.error)
                return replace(self, attempts={**self.attempts, event.what: attempts})
            case Interrupted():
                return replace(self, interrupted=event.signal)
            case Verified():
                return replace(self, verified=event.ok, verification=event.details)
            case JobFinished():
                return replace(self, outcome=event.outcome, exit_code=event.exit_code, paused_at=None)
            case JobPaused():
                return replace(self, paused_at=at, paused_process=event.process)
            case JobWentOn():
                return replace(self, paused_at=None)
            case JobPurged():
                return replace(self, purged_at=self.purged_at or at)
            case _:
                return self

    def _with_entity(self, name: str, event: Event) -> Progress:
        entity = self.entities.get(name, EntityProgress()).apply(event)
        return replace(self, entities={**self.entities, name: entity})

    def to_dict(self) -> dict[str, Any]:
        """As JSON values, by name; stable from one version to the next."""
        return {
            "started_at": _text(self.started_at),
            "last_at": _text(self.last_at),
            "phase": self.phase,
            "phases": {phase: _text(at) for phase, at in self.phases.items()},
            "plan_version": self.plan_version,
            "entities": {name: entity.to_dict() for name, entity in self.entities.items()},
            "counts": self.counts.to_dict(),
            "open_questions": {id_: event_fields(asked) for id_, asked in self.open_questions.items()},
            "questions_answered": self.questions_answered,
            "held_entities": sorted(self.held_entities),
            "decisions": {rung: price.to_dict() for rung, price in sorted(self.rungs.items())},
            "attempts": {
                what: {"count": tried.count, "error": tried.error} for what, tried in sorted(self.attempts.items())
            },
            "attend_next": self.attend_next,
            "verified": self.verified,
            "verification": dict(self.verification),
            "interrupted": self.interrupted,
            "outcome": self.outcome,
            "exit_code": self.exit_code,
            "taken_back": self.taken_back,
            "paused_at": _text(self.paused_at),
            "purged_at": _text(self.purged_at),
        }


_RUNNING: dict[str, Any] = {"outcome": None, "exit_code": None, "interrupted": "", "paused_at": None}


def _text(at: datetime | None) -> str | None:
    return at.isoformat(timespec="milliseconds") if at else None


def fold_progress(entries: Iterable[Entry], start: Progress | None = None) -> Progress:
    """The progress after all of the entries, from `start` (None: from nothing)."""
    progress = start or Progress()
    for entry in entries:
        progress = progress.apply(entry)
    return progress
