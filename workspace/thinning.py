"""What stays of an event once its job is purged: what was counted, decided, done, by whom and when; no record's value.

Each type of event stands in one of two lists, so that whoever adds a type has to say which. What a plan says stays
(value maps, conditions, constants): it is what the customer signed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from workspace import events as ev
from workspace.signature import normalise

WITHOUT_VALUES: frozenset[type[ev.Event]] = frozenset(
    {
        ev.JobStarted, ev.PlanChanged, ev.PhaseStarted, ev.BeliefHeld, ev.ActionTaken, ev.StageCompleted,
        ev.DuplicatesFound, ev.RowsMatched, ev.BatchCommitted, ev.WorkSpread, ev.EntityCompleted, ev.Interrupted,
        ev.LessonLearnt, ev.UndoStarted, ev.BatchUndone, ev.QuarantineRetried, ev.BatchRetried, ev.RowsDropped,
        ev.QuarantineTolerated, ev.CrosswalkExported, ev.JobCleanedUp, ev.JobPurged, ev.SyncStarted,
        ev.GenerationStaged, ev.BatchSynced, ev.SyncCompleted, ev.Rehearsed, ev.StrayAllowed, ev.Piloted,
        ev.RowsExpected, ev.JobPaused, ev.JobWentOn,
    }
)  # fmt: skip
"""Events that stay as they are."""

_FAILED = "failed: "
_HELD_BACK = "quarantine"  # the answer for a value that no label was given


def thinned(event: ev.Event) -> ev.Event:
    """The event without record values; itself where it holds none. Doing it twice changes nothing."""
    thin = THINNED.get(type(event))
    return event if thin is None else thin(event)


def _profile(event: ev.TableProfiled) -> ev.Event:
    columns = event.profile.get("columns")
    if not isinstance(columns, Mapping):
        return event
    kept = {name: _column(facts) for name, facts in columns.items()}
    return replace(event, profile={**event.profile, "columns": kept})


def _column(facts: Any) -> Any:
    if not isinstance(facts, Mapping):
        return facts
    return {name: [] if name in ("top", "range", "shapes") else fact for name, fact in facts.items()}


def _decision(event: ev.DecisionMade) -> ev.Event:
    return replace(event, candidates=[])


def _question(event: ev.QuestionAsked) -> ev.Event:
    return replace(event, candidates=[], evidence={})


def _answer(event: ev.QuestionAnswered) -> ev.Event:
    """Values that got a label are in the plan's value map; those that got none are nobody's account."""
    answer = event.answer
    if isinstance(answer, str) and answer.startswith("{"):
        try:
            answer = json.loads(answer)
        except ValueError:
            return event
    if not isinstance(answer, dict):
        return event
    return replace(event, answer={value: label for value, label in answer.items() if label != _HELD_BACK})


def _feedback(event: ev.FeedbackGiven) -> ev.Event:
    return replace(event, failed=[{k: v for k, v in each.items() if k != "example"} for each in event.failed])


def _part(event: ev.PartStaged) -> ev.Event:
    return replace(event, key_low=None, key_high=None)


def _seen(event: ev.QuarantineSeen) -> ev.Event:
    return replace(event, example="")


def _retry(event: ev.RetryMade) -> ev.Event:
    return replace(event, error=normalise(event.error))


def _finished(event: ev.JobFinished) -> ev.Event:
    if not event.outcome.startswith(_FAILED):
        return event
    return replace(event, outcome=_FAILED + normalise(event.outcome.removeprefix(_FAILED)))


def _verified(event: ev.Verified) -> ev.Event:
    """Problems name source keys: how many there were stays."""
    entities = event.details.get("entities")
    if not isinstance(entities, list):
        return event
    return replace(event, details={**event.details, "entities": [_entity_verified(each) for each in entities]})


def _entity_verified(found: Any) -> Any:
    if not isinstance(found, dict) or not found.get("problems"):
        return found
    problems = found["problems"]
    count = len(problems) if isinstance(problems, list) else 1
    if count == 1 and isinstance(problems, list) and str(problems[0]).endswith(_PURGED):
        return found
    return {**found, "problems": [f"{count:,} {_PURGED}"]}


_PURGED = "problems, purged with the values that they named"

THINNED: Mapping[type[ev.Event], Callable[[Any], ev.Event]] = {
    ev.TableProfiled: _profile,
    ev.DecisionMade: _decision,
    ev.QuestionAsked: _question,
    ev.QuestionAnswered: _answer,
    ev.FeedbackGiven: _feedback,
    ev.PartStaged: _part,
    ev.QuarantineSeen: _seen,
    ev.RetryMade: _retry,
    ev.Verified: _verified,
    ev.JobFinished: _finished,
}
"""Events that may hold values, and what is left of them."""
