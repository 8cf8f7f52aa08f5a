"""What stays of an event once its job is purged."""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.workspace_events import EVENTS
from workspace import events as ev
from workspace.log import Workspace
from workspace.paths import JobPaths
from workspace.thinning import THINNED, WITHOUT_VALUES, thinned

CASES: list[tuple[ev.Event, ev.Event]] = [
    (
        ev.PartStaged("contacts", 0, 5, ("ann@x",), ("zoe@x",), "ab", 9),
        ev.PartStaged("contacts", 0, 5, None, None, "ab", 9),
    ),
    (ev.QuarantineSeen("c", "f: cast", "cast", "f", 3, "Ann"), ev.QuarantineSeen("c", "f: cast", "cast", "f", 3)),
    (
        ev.TableProfiled(
            "source", "c", {"rows": 9, "columns": {"n": {"nulls": 1, "top": [["Ann", 9]], "range": ["A", "Z"]}}}
        ),
        ev.TableProfiled("source", "c", {"rows": 9, "columns": {"n": {"nulls": 1, "top": [], "range": []}}}),
    ),
    (ev.TableProfiled("target", "c", {"columns": ["n"]}), ev.TableProfiled("target", "c", {"columns": ["n"]})),
    (
        ev.QuestionAsked("q", "values", "c.n", "Which?", [{"answer": "x"}], {"values": [{"value": "Ann"}]}, ["c"]),
        ev.QuestionAsked("q", "values", "c.n", "Which?", [], {}, ["c"]),
    ),
    (ev.QuestionAnswered("q", {"Ann": "quarantine", "Boss": "lead"}), ev.QuestionAnswered("q", {"Boss": "lead"})),
    (ev.QuestionAnswered("q", '{"Ann": "quarantine"}'), ev.QuestionAnswered("q", {})),
    (ev.QuestionAnswered("q", "{broken"), ev.QuestionAnswered("q", "{broken")),
    (
        ev.DecisionMade("d", "field", "c.n", "column:n", "rule", 1.0, [{"evidence": {"sample": "Ann"}}], "names"),
        ev.DecisionMade("d", "field", "c.n", "column:n", "rule", 1.0, [], "names"),
    ),
    (
        ev.FeedbackGiven("preview", "partly", {"rows": 2}, [{"signature": "s", "count": 2, "example": "Ann"}]),
        ev.FeedbackGiven("preview", "partly", {"rows": 2}, [{"signature": "s", "count": 2}]),
    ),
    (ev.RetryMade("a batch", 1, "lost 'Ann' 77"), ev.RetryMade("a batch", 1, "lost 'Aaa' 9")),
    (ev.JobFinished("failed: no 'Ann'", 1), ev.JobFinished("failed: no 'Aaa'", 1)),
    (ev.JobFinished("done", 0), ev.JobFinished("done", 0)),
    (
        ev.Verified(False, {"entities": [{"entity": "c", "read": 3, "problems": ["source key Ann", "source key Bo"]}]}),
        ev.Verified(
            False,
            {
                "entities": [
                    {"entity": "c", "read": 3, "problems": ["2 problems, purged with the values that they named"]}
                ]
            },
        ),
    ),
]


def test_each_type_says_whether_it_holds_values() -> None:
    assert WITHOUT_VALUES | set(THINNED) == set(ev.EVENT_TYPES.values())
    assert not WITHOUT_VALUES & set(THINNED)


@pytest.mark.parametrize(("event", "left"), CASES, ids=lambda each: each.type)
def test_what_is_left(event: ev.Event, left: ev.Event) -> None:
    assert thinned(event) == left


def test_each_that_holds_values_has_a_case() -> None:
    assert {type(event) for event, left in CASES if event != left} == set(THINNED)


@given(st.one_of(*EVENTS.values()))
def test_twice_is_once(event: ev.Event) -> None:
    once = thinned(event)
    assert type(once) is type(event)
    assert thinned(once) == once


def test_the_file_forgets(tmp_path: Path) -> None:
    """Also what lay in pages that are free, and in the WAL."""
    paths = JobPaths(tmp_path, "j")
    with Workspace.open(paths, write=True) as workspace:
        for part in range(3000):
            workspace.record(ev.PartStaged("c", part, 1, (f"Zqxlow{part:05d}" * 9,), (f"Zqxhigh{part:05d}",), "ab", 1))
        before = list(workspace.events())
        assert workspace.thin(thinned, lambda changed: [ev.JobPurged(events=changed)]) == 3000
        workspace.forget()
        for file in paths.folder.iterdir():  # while it is open: closing it would take the WAL away
            assert not file.is_file() or b"Zqx" not in file.read_bytes(), file
        after = list(workspace.events())
    assert [(e.position, e.at, e.event) for e in after[:-1]] == [(e.position, e.at, thinned(e.event)) for e in before]
    assert after[-1].event == ev.JobPurged(events=3000)
    for file in paths.folder.iterdir():
        if file.is_file():
            assert b"Zqx" not in file.read_bytes(), file
    with sqlite3.connect(paths.database) as connection:
        for change in ("DELETE FROM event", "UPDATE event SET type = ''"):
            with pytest.raises(sqlite3.IntegrityError, match="append-only"):
                connection.execute(change)
    connection.close()


def test_all_of_it_or_nothing(tmp_path: Path) -> None:
    with Workspace.open(JobPaths(tmp_path, "j"), write=True) as workspace:
        for part in range(3):
            workspace.record(ev.PartStaged("c", part, 1, ("a",), ("b",), "ab", 1))
        before = list(workspace.events())

        def breaks(event: ev.Event) -> ev.Event:
            assert isinstance(event, ev.PartStaged)
            if event.part == 2:
                raise OSError(5, "disk")
            return replace(event, key_low=None)

        with pytest.raises(Exception, match="disk"):
            workspace.thin(breaks, lambda changed: [])
        assert list(workspace.events()) == before
