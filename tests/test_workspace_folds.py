from __future__ import annotations

import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.workspace_events import entries_of, logs, new_workspace
from workspace import events as ev
from workspace.belief import fold_belief
from workspace.counts import Counts
from workspace.errors import WorkspaceError
from workspace.experience import Tried, fold_experience
from workspace.log import Workspace
from workspace.paths import JobPaths
from workspace.progress import Progress, fold_progress
from workspace.state import State, difference, fold, state_at


@given(logs, st.integers(0, 40))
def test_a_prefix_and_the_rest_fold_to_the_whole(events: list[ev.Event], cut: int) -> None:
    entries = entries_of(events)
    whole = fold(entries)
    assert fold(entries[cut:], fold(entries[:cut])) == whole
    assert fold_belief(entries[cut:], fold_belief(entries[:cut])) == whole.belief
    assert fold_progress(entries[cut:], fold_progress(entries[:cut])) == whole.progress
    assert fold_experience(entries[cut:], fold_experience(entries[:cut])) == whole.experience


@given(logs, st.integers(0, 40))
def test_going_on_from_a_state_leaves_it_as_it_was(events: list[ev.Event], cut: int) -> None:
    entries = entries_of(events)
    prefix = fold(entries[:cut])
    before = prefix.to_dict()
    fold(entries[cut:], prefix)
    assert prefix.to_dict() == before
    assert prefix == fold(entries[:cut])


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(logs, st.data())
def test_the_state_at_n_is_the_fold_of_the_first_n(
    tmp_path_factory: pytest.TempPathFactory, events: list[ev.Event], data: st.DataObject
) -> None:
    base = tmp_path_factory.mktemp("ws")
    with new_workspace(base) as workspace:
        if events:
            assert workspace.record(*events) == len(events)
        kept = list(workspace.events())
        assert [entry.event for entry in kept] == events
        n = data.draw(st.integers(0, len(events)))
        state = state_at(workspace, n)
        assert state == fold(kept[:n])
        assert state.position == n
        assert state.follow(workspace) == state_at(workspace) == fold(kept)


@given(logs)
def test_a_state_is_json_and_differs_from_itself_in_nothing(events: list[ev.Event]) -> None:
    import json

    state = fold(entries_of(events))
    shown = state.to_dict()
    assert json.loads(json.dumps(shown, allow_nan=False)) == shown
    assert difference(state, state).items == ()


@given(logs, st.integers(0, 40))
def test_a_difference_tells_the_whole_way_from_one_state_to_the_other(events: list[ev.Event], cut: int) -> None:
    entries = entries_of(events)
    before, after = fold(entries[:cut]), fold(entries)
    told = before.to_dict()
    for item in difference(before, after).items:
        place: Any = told
        for step in item.path[:-1]:
            place = place[step]
        if item.what == "went":
            del place[item.path[-1]]
        else:
            assert (item.path[-1] in place) == (item.what == "changed")
            place[item.path[-1]] = item.after
    told["position"] = after.position
    assert told == after.to_dict()
    assert str(difference(before, after))


def test_states_apply_events_in_their_order_only() -> None:
    entries = entries_of([ev.PhaseStarted("survey"), ev.PhaseStarted("match")])
    with pytest.raises(ValueError, match="can't follow 0"):
        State().apply(entries[1])


def test_a_position_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with new_workspace(tmp_path) as workspace:
        workspace.record(ev.PhaseStarted("survey"))
        for wrong in (-1, 2):
            with pytest.raises(WorkspaceError, match="no position") as caught:
                state_at(workspace, wrong)
            assert caught.value.advice == "choose one from 0 to 1"


def batch(number: int, *, version: int = 1, step: int = 1, **counts: int) -> ev.BatchCommitted:
    return ev.BatchCommitted("contacts", number, step, version, **counts)  # type: ignore[arg-type]


def progress_of(*events: ev.Event) -> Progress:
    return fold_progress(entries_of(events))


def test_the_equation_adds_up_over_batches() -> None:
    progress = progress_of(
        batch(0, read=10, inserted=7, merged=1, excluded=1, quarantined=1),
        batch(1, read=5, updated=3, unchanged=2),
    )
    assert progress.counts == Counts(15, 7, 3, 2, 1, 1, 1)
    assert progress.counts.missing == 0
    assert len(progress.entities["contacts"].batches) == 2


def test_a_batch_driven_again_takes_the_place_of_its_earlier_self() -> None:
    progress = progress_of(
        batch(0, read=10, inserted=8, quarantined=2),
        ev.QuarantineSeen("contacts", "dob: cast", "cast", "dob", 2, "99", batch=0),
        batch(1, read=10, inserted=9, quarantined=1),
        ev.QuarantineSeen("contacts", "dob: cast", "cast", "dob", 1, "99", batch=1),
        ev.EntityCompleted("contacts"),
        batch(0, version=2, read=10, inserted=9, quarantined=1),
        ev.QuarantineSeen("contacts", "email: enum", "enum", "email", 1, "aa", batch=0),
    )
    contacts = progress.entities["contacts"]
    assert contacts.counts == Counts(read=20, inserted=18, quarantined=2)
    assert {signature: failure.count for signature, failure in contacts.failures.items()} == {
        "dob: cast": 1,
        "email: enum": 1,
    }
    assert contacts.plan_versions == {1: 1, 2: 1}
    assert contacts.completed


def test_the_second_pass_counts_references_and_leaves_the_equation_alone() -> None:
    progress = progress_of(
        batch(0, read=4, inserted=4), batch(0, step=2, read=4, updated=3), batch(0, step=2, read=4, updated=2)
    )
    contacts = progress.entities["contacts"]
    assert contacts.counts == Counts(read=4, inserted=4)
    assert contacts.filled == 2


def test_a_part_staged_again_counts_once() -> None:
    part = ev.PartStaged("contacts", 0, 100, ("1",), ("9",), "ab", 10)
    again = ev.PartStaged("contacts", 0, 120, ("1",), ("9",), "cd", 12)
    contacts = progress_of(part, again, ev.StageCompleted("contacts", 120, 1, True)).entities["contacts"]
    assert (contacts.staged_rows, contacts.staged_bytes, len(contacts.parts)) == (120, 12, 1)
    assert contacts.stage_completed
    assert contacts.snapshot


def test_questions_hold_entities_until_they_are_answered() -> None:
    asked = ev.QuestionAsked("q1", "match", "contacts.zone", "Which zone?", holds=["contacts", "notes"])
    progress = progress_of(asked)
    assert progress.held_entities == {"contacts", "notes"}
    assert progress.attend_next == ["question q1: Which zone? (holds contacts, notes)"]
    progress = progress_of(asked, ev.QuestionAnswered("q1", "Europe/Madrid"))
    assert progress.held_entities == frozenset()
    assert progress.open_questions == {}
    assert progress.questions_answered == 1


def test_what_to_attend_to_has_the_most_pressing_first_and_an_end() -> None:
    progress = progress_of(
        ev.QuestionAsked("q1", "match", "x", "Left or right?"),
        batch(0, read=5, inserted=4),
        ev.QuarantineSeen("contacts", "a", "cast", "f", 3),
        ev.QuarantineSeen("contacts", "b", "cast", "f", 9),
        ev.FeedbackGiven("preview", "done", attend=["look at countries"]),
        ev.Verified(False),
    )
    assert progress.attend_next == [
        "verification failed",
        "contacts: 1 rows read without an outcome",
        "look at countries",
        "contacts: 9 rows in quarantine, b",
        "contacts: 3 rows in quarantine, a",
        "question q1: Left or right?",
    ]
    many = progress_of(*[ev.QuarantineSeen("contacts", f"s{n}", "cast", "f", n) for n in range(50)])
    assert len(many.attend_next) == 12


def test_a_batch_after_a_verification_makes_it_void() -> None:
    assert progress_of(ev.Verified(True)).verified is True
    assert progress_of(ev.Verified(True), batch(0, read=1, inserted=1)).verified is None


def test_decisions_are_priced_by_rung() -> None:
    def made(n: int, rung: Any, calls: int) -> ev.DecisionMade:
        return ev.DecisionMade(f"d{n}", "match", f"c{n}", "x", rung, 0.9, calls=calls, seconds=0.5)

    progress = progress_of(made(1, "rule", 0), made(2, "choose", 3), made(3, "choose", 2))
    assert progress.rungs["rule"].decisions == 1
    assert (progress.rungs["choose"].decisions, progress.rungs["choose"].calls) == (2, 5)
    assert progress.rungs["choose"].seconds == 1.0


def test_a_model_that_leaves_the_question_to_a_person_is_paid_all_the_same() -> None:
    asked = ev.QuestionAsked("q", "field", "people.phone", "which?", calls=2, prompt_tokens=90, seconds=0.5)
    spent = progress_of(asked, ev.QuestionAsked("r", "field", "people.fax", "which?")).rungs
    assert {rung: (price.decisions, price.calls, price.prompt_tokens) for rung, price in spent.items()} == {
        "choose": (0, 2, 90)
    }


def test_the_share_of_prompts_that_came_from_the_cache_is_told() -> None:
    made = ev.DecisionMade("d", "match", "c", "x", "choose", 0.9, calls=1, prompt_tokens=100, cached_tokens=60)
    asked = ev.QuestionAsked("q", "field", "p.fax", "which?", calls=1, prompt_tokens=100, cached_tokens=90)
    progress = progress_of(made, asked, ev.DecisionMade("r", "match", "c", "x", "rule", 0.9))
    assert progress.to_dict()["decisions"]["choose"]["cached_tokens"] == 150
    assert progress.price.cached_share == 0.75
    assert progress.rungs["rule"].cached_share is None


def test_a_resumed_job_runs_again() -> None:
    stopped = [ev.PhaseStarted("load"), ev.Interrupted("SIGINT"), ev.JobFinished("interrupted", 130)]
    assert (progress_of(*stopped).interrupted, progress_of(*stopped).exit_code) == ("SIGINT", 130)
    going = progress_of(*stopped, ev.PhaseStarted("load"))
    assert (going.interrupted, going.exit_code, going.outcome) == ("", None, None)


def test_belief_keeps_the_latest_of_each_and_every_decision() -> None:
    belief = fold_belief(
        entries_of(
            [
                ev.PlanChanged(1, "version: 1\n", "rule", "draft"),
                ev.PlanChanged(2, "version: 2\n", "person", "e-mail moved"),
                ev.BeliefHeld("contacts.a", "is an e-mail", {"share": 0.4}, 0.5),
                ev.BeliefHeld("contacts.a", "is an e-mail", {"share": 0.9}, 0.9),
                ev.BeliefHeld("contacts.a", "is the key", {}, 0.1),
                ev.TableProfiled("source", "contacts", {"rows": 5}),
                ev.DecisionMade("d1", "match", "contacts.a", "people.email", "rule", 1),
            ]
        )
    )
    assert (belief.plan, belief.plan_version) == ("version: 2\n", 2)
    assert [version.by for version in belief.plan_versions] == ["rule", "person"]
    assert belief.claims["contacts.a"]["is an e-mail"].confidence == 0.9
    assert set(belief.claims["contacts.a"]) == {"is an e-mail", "is the key"}
    assert belief.profile("source", "contacts") == {"rows": 5}
    assert belief.profile("target", "contacts") is None
    decided = belief.decided("match", "contacts.a")
    assert decided is not None
    assert decided.choice == "people.email"
    assert belief.decided("match", "contacts.b") is None


def test_experience_knows_what_was_tried_and_what_still_has_no_remedy() -> None:
    experience = fold_experience(
        entries_of(
            [
                ev.QuarantineSeen("contacts", "a", "cast", "f", 3),
                ev.QuarantineSeen("notes", "a", "cast", "f", 4),
                ev.QuarantineSeen("contacts", "b", "cast", "f", 5),
                ev.LessonLearnt("b", "otherwise: null", False),
                ev.LessonLearnt("b", "map", True),
                ev.LessonLearnt("a", "map", False),
                ev.ActionTaken("try_remedy"),
                ev.FeedbackGiven("try_remedy", "done"),
                ev.ActionTaken("try_remedy"),
            ]
        )
    )
    assert experience.met["a"].rows == {"contacts": 3, "notes": 4}
    assert experience.remedies["b"] == {"otherwise: null": Tried(1, 0), "map": Tried(1, 1)}
    assert experience.without_remedy == ["a"]
    assert experience.actions == {"try_remedy": {"done": 1, "": 1}}


def test_a_difference_reads_like_a_report() -> None:
    entries = entries_of(
        [
            ev.PlanChanged(1, "version: 1\na: 1\nb: 2\n", "rule"),
            batch(0, read=10, inserted=10),
            ev.QuestionAsked("q1", "match", "x", "Left?"),
            ev.PlanChanged(2, "version: 2\na: 1\nb: 3\n", "person"),
            batch(1, read=5, inserted=5),
            ev.QuestionAnswered("q1", "left"),
            ev.QuestionAsked("q 2", "match", "x", "Right?"),
        ]
    )
    told = difference(fold(entries[:3]), fold(entries))
    lines = [item.line for item in told.items]
    assert "~ progress.entities.contacts.counts.read: 10 -> 15 (+5)" in lines
    assert any(line.startswith("- progress.open_questions.q1: id=q1, kind=match") for line in lines)
    assert any(line.startswith("+ progress.open_questions[q 2]: id=q 2") for line in lines)
    (plan,) = [item for item in told.items if item.path == ("belief", "plan")]
    assert [line for line in plan.lines if line[0] in "+-"] == ["-version: 1", "+version: 2", "-b: 2", "+b: 3"]
    assert told.to_dict()["from"] == 3
    assert str(difference(fold(entries), fold(entries))) == "from 7 to 7: nothing changed"


def test_memory_of_a_fold_grows_with_batches_and_not_with_rows() -> None:
    def peak(rows: int) -> int:
        events = [
            event
            for n in range(300)
            for event in (
                batch(n, read=rows, inserted=rows - 1, quarantined=1),
                ev.QuarantineSeen("contacts", f"s{n % 5}", "cast", "f", 1, "99", batch=n),
            )
        ]
        entries = entries_of(events)
        tracemalloc.start()
        state = fold(entries)
        taken = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
        assert state.progress.counts.read == 300 * rows
        return taken

    few, many = peak(10), peak(1_000_000)
    assert many < few * 2  # larger numbers take more bytes, a hundred thousand times the rows do not
    assert many < 300 * 1500


def test_a_live_reader_only_applies_the_new_tail(tmp_path: Path) -> None:
    with new_workspace(tmp_path) as writer, Workspace.open(JobPaths(tmp_path, "job")) as reader:
        writer.record(ev.PhaseStarted("survey"))
        state = state_at(reader)
        writer.record(ev.PhaseStarted("match"), batch(0, read=1, inserted=1))
        state = state.follow(reader)
        assert (state.position, state.progress.phase, state.progress.counts.read) == (3, "match", 1)
        assert state.follow(reader) is state
