"""Events for tests: strategies for each type, and for logs that a job could have written."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from workspace import events as ev
from workspace.log import Entry, Workspace
from workspace.paths import JobPaths

text = st.text(max_size=20)
name = st.sampled_from(["accounts", "contacts", "notes", "x.y", "o'brien", "名"])
signature = st.sampled_from(["birthday: cast date: '99/99/9999'", "email: not an email", "id: unique"])
count = st.integers(0, 50_000)
share = st.floats(0, 1)
seconds = st.floats(0, 1e6)
json = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False) | text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
    max_leaves=6,
)
facts = st.dictionaries(text, json, max_size=3)
facts_list = st.lists(facts, max_size=3)
clusters = st.lists(
    st.fixed_dictionaries({"signature": signature, "code": text, "field": text, "open": count, "dropped": count}),
    max_size=3,
)
question = st.sampled_from(["q1", "q2", "q3"])
action = st.sampled_from(["map_field", "try_remedy", "preview"])
key = st.none() | st.lists(text, min_size=1, max_size=3).map(tuple)


def _made(kind: type[ev.Event], *values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Events of a type with these values, in order: one is built when it is first met, and until then hypothesis can't
    tell what it takes."""
    return st.tuples(*values).map(lambda drawn: kind(*drawn))


EVENTS: dict[type[ev.Event], st.SearchStrategy[Any]] = {
    ev.JobStarted: _made(ev.JobStarted, name, st.just("mysql://u:***@h/db"), text, facts),
    ev.PlanChanged: _made(
        ev.PlanChanged,
        count,
        text,
        st.sampled_from(["rule", "experience", "choose", "propose", "person", "file"]),
        text,
    ),
    ev.RowsExpected: _made(ev.RowsExpected, name, count),
    ev.JobPaused: _made(ev.JobPaused, text),
    ev.JobWentOn: _made(ev.JobWentOn),
    ev.PhaseStarted: _made(ev.PhaseStarted, st.sampled_from(ev.PHASES)),
    ev.TableProfiled: _made(ev.TableProfiled, st.sampled_from(["source", "target"]), name, facts),
    ev.BeliefHeld: _made(ev.BeliefHeld, name, text, facts, share),
    ev.DecisionMade: _made(
        ev.DecisionMade,
        text,
        st.sampled_from(["match", "remedy"]),
        name,
        json,
        st.sampled_from(ev.RUNGS),
        share,
        facts_list,
        text,
        count,
        count,
        count,
        seconds,
    ),
    ev.QuestionAsked: _made(
        ev.QuestionAsked,
        question,
        text,
        name,
        text,
        facts_list,
        facts,
        st.lists(name, max_size=2),
        count,
        count,
        count,
        seconds,
        text,
        share,
        count,
    ),
    ev.QuestionAnswered: _made(ev.QuestionAnswered, question, json, text),
    ev.ActionTaken: _made(ev.ActionTaken, action, facts),
    ev.FeedbackGiven: _made(
        ev.FeedbackGiven,
        action,
        st.sampled_from(["done", "refused"]),
        facts,
        facts_list,
        st.lists(text, max_size=2),
        facts,
    ),
    ev.PartStaged: _made(ev.PartStaged, name, st.integers(0, 600), count, key, key, st.just("ab" * 32), count),
    ev.RowsMatched: _made(ev.RowsMatched, name, count, count, count, count, name),
    ev.DuplicatesFound: _made(ev.DuplicatesFound, name, count, count, count, count, count, name),
    ev.StageCompleted: _made(ev.StageCompleted, name, count, count, st.booleans()),
    ev.BatchCommitted: _made(
        ev.BatchCommitted,
        name,
        st.integers(0, 600),
        st.sampled_from([1, 2]),
        st.integers(1, 3),
        *[count] * 7,
        seconds,
        st.booleans(),
    ),
    ev.QuarantineSeen: _made(
        ev.QuarantineSeen, name, signature, text, text, count, text, st.none() | st.integers(0, 600)
    ),
    ev.EntityCompleted: _made(ev.EntityCompleted, name),
    ev.WorkSpread: _made(ev.WorkSpread, text, count, st.dictionaries(text, seconds, max_size=3)),
    ev.RetryMade: _made(ev.RetryMade, name, count, text),
    ev.Interrupted: _made(ev.Interrupted, st.sampled_from(["SIGINT", "SIGTERM"])),
    ev.Verified: _made(ev.Verified, st.booleans(), facts),
    ev.JobFinished: _made(ev.JobFinished, text, st.integers(0, 130)),
    ev.JobPurged: _made(ev.JobPurged, count, count, count, st.booleans(), text),
    ev.UndoStarted: _made(ev.UndoStarted, st.just("") | name, st.none() | st.integers(0, 600)),
    ev.BatchUndone: _made(
        ev.BatchUndone, name, st.integers(0, 600), st.sampled_from([1, 2]), count, count, count, seconds, st.booleans()
    ),
    ev.QuarantineRetried: _made(
        ev.QuarantineRetried, count, count, st.just("") | name, st.just("") | signature, st.booleans(), facts
    ),
    ev.BatchRetried: _made(
        ev.BatchRetried,
        name,
        st.integers(0, 600),
        count,
        count,
        count,
        count,
        count,
        count,
        count,
        clusters,
        seconds,
        st.booleans(),
        count,
    ),
    ev.RowsDropped: _made(ev.RowsDropped, name, st.integers(0, 600), count, clusters),
    ev.CrosswalkExported: _made(ev.CrosswalkExported, text, st.dictionaries(name, count, max_size=2), text),
    ev.QuarantineTolerated: _made(ev.QuarantineTolerated, st.floats(0, 1000)),
    ev.JobCleanedUp: _made(ev.JobCleanedUp, text, st.booleans(), st.booleans()),
    ev.SyncStarted: _made(
        ev.SyncStarted,
        st.integers(2, 9),
        st.sampled_from(["keep", "delete", "mark"]),
        st.booleans(),
        st.sampled_from(["", "keep", "overwrite", "ask"]),
    ),
    ev.GenerationStaged: _made(
        ev.GenerationStaged, name, st.integers(2, 9), *[count] * 7, st.none() | count, count, text, st.booleans(), count
    ),
    ev.BatchSynced: _made(
        ev.BatchSynced,
        name,
        st.integers(0, 600),
        *[count] * 3,
        st.lists(st.fixed_dictionaries({"batch": st.integers(0, 600), "clusters": clusters}), max_size=2),
        *[count] * 5,
    ),
    ev.SyncCompleted: _made(ev.SyncCompleted, st.integers(2, 9)),
    ev.Rehearsed: _made(ev.Rehearsed, count, facts, facts),
    ev.Piloted: _made(ev.Piloted, text, text),
    ev.StrayAllowed: _made(ev.StrayAllowed, st.floats(0, 1e6)),
    ev.LessonLearnt: _made(ev.LessonLearnt, signature, text, st.booleans()),
}

logs = st.lists(st.one_of(*EVENTS.values()), max_size=40)


def entries_of(events: Sequence[ev.Event]) -> list[Entry]:
    """The events as a log would give them, a second apart."""
    start = datetime(2024, 5, 1, tzinfo=UTC)
    return [Entry(n, start + timedelta(seconds=n), event) for n, event in enumerate(events, 1)]


def new_workspace(base: Path, job: str = "job") -> Workspace:
    """An empty workspace, open to write."""
    return Workspace.open(JobPaths(base, job), write=True)
