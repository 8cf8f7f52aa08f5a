"""What the log holds is not asked of a model again: not what was decided, and not what the model left to a person."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from agent.draft import draft
from agent.job import JobRequest, run_job
from agent.ladder import Ladder
from agent.matter import Matter, Option
from agent.models.protocol import NONE_OF_THESE, Choice, Price, Prompt
from agent.models.scripted import ScriptedModel
from agent.profile import ColumnProfile, profile_values
from agent.questions import answer_question, open_questions
from agent.valuemaps import ValueMap, decide_values, place_values
from cli.views.status import show
from connectors.dsn import open_source, open_target
from connectors.protocols import Column, Kind
from sample_data import CLOUD_SQL, write_sample
from sample_data.servers import Database
from workspace.errors import InterruptedJobError
from workspace.events import DecisionMade, QuestionAsked
from workspace.log import Workspace
from workspace.paths import JobPaths
from workspace.state import state_at

STAGES = ("new", "qualified", "won", "lost")
UNSURE = (0.5, 0.45, 0.05)


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    with Workspace.open(JobPaths(tmp_path, "resume"), write=True) as opened:
        yield opened


def _matter(*weights: float) -> Matter:
    options = tuple(Option(f"column:c{i}", f"c{i}", w, {"names": w}) for i, w in enumerate(weights))
    return Matter("field", "people.mobile", "Which column?", options)


def _asked(workspace: Workspace) -> list[QuestionAsked]:
    return [e.event for e in workspace.events(types=[QuestionAsked]) if isinstance(e.event, QuestionAsked)]


def _left_open(workspace: Workspace) -> None:
    assert Ladder(workspace, model=ScriptedModel([UNSURE])).decide(_matter(0.5, 0.45)).open


def test_a_model_is_not_asked_again_what_it_left_to_a_person(workspace: Workspace) -> None:
    _left_open(workspace)
    for _ in range(2):
        silent = ScriptedModel([])
        assert Ladder(workspace, model=silent).decide(_matter(0.5, 0.45)).open
        assert silent.asked == []
    (asked,) = _asked(workspace)
    assert (asked.model, asked.limit, asked.calls) == ("scripted", 0.9, 1)
    assert "the model says c0" in asked.evidence["model"]
    answer_question(workspace, asked.id, "2")
    assert Ladder(workspace, model=ScriptedModel([])).decide(_matter(0.5, 0.45)).answer == "column:c1"


def test_other_weights_of_the_same_candidates_are_new_evidence(workspace: Workspace) -> None:
    _left_open(workspace)
    model = ScriptedModel(["c0"])
    assert Ladder(workspace, model=model).decide(_matter(0.7, 0.25)).answer == "column:c0"
    assert len(model.asked) == 1


def test_a_candidate_that_came_since_is_new_evidence_and_stands_in_the_question(workspace: Workspace) -> None:
    _left_open(workspace)
    model = ScriptedModel([(0.4, 0.3, 0.25, 0.05)])
    assert Ladder(workspace, model=model).decide(_matter(0.5, 0.45, 0.4)).open
    assert len(model.asked) == 1
    (question,) = open_questions(workspace)
    assert [c["answer"] for c in question.candidates] == ["column:c0", "column:c1", "column:c2"]
    assert Ladder(workspace, model=ScriptedModel([])).decide(_matter(0.5, 0.45, 0.4)).open


def test_another_model_may_be_asked_and_the_same_one_where_less_is_enough(workspace: Workspace) -> None:
    _left_open(workspace)
    other = ScriptedModel([UNSURE], name="other")
    assert Ladder(workspace, model=other).decide(_matter(0.5, 0.45)).open
    assert len(other.asked) == 1
    again = ScriptedModel([UNSURE], name="other")
    assert not Ladder(workspace, model=again, autonomy=0.51).decide(_matter(0.5, 0.45)).open
    assert len(again.asked) == 1


def test_what_a_model_cost_before_it_left_a_question_is_counted_once(workspace: Workspace) -> None:
    _left_open(workspace)
    Ladder(workspace, model=ScriptedModel([])).decide(_matter(0.5, 0.45))
    assert state_at(workspace).progress.rungs["choose"].calls == 1
    assert Ladder(workspace).spent.calls == 1


class Caching(ScriptedModel):
    """Reads 100 tokens a call, 80 of them from its cache."""

    def choose(self, prompt: Prompt, options: Sequence[str]) -> Choice:
        return replace(super().choose(prompt, options), price=Price(calls=1, prompt_tokens=100, cached_tokens=80))


def test_what_came_from_the_cache_is_in_the_log_and_told(workspace: Workspace) -> None:
    Ladder(workspace, model=Caching([UNSURE])).decide(_matter(0.5, 0.45))
    Ladder(workspace, model=Caching(["c0"])).decide(replace(_matter(0.6, 0.5), subject="people.fax"))
    (made,) = [e.event for e in workspace.events(types=[DecisionMade]) if isinstance(e.event, DecisionMade)]
    assert (made.cached_tokens, _asked(workspace)[0].cached_tokens) == (80, 80)
    assert Ladder(workspace).spent.cached_tokens == 160
    shown = StringIO()
    show(Console(file=shown, width=200), "resume", state_at(workspace), None)
    assert "2 model calls, 200 tokens (80% of those read from the prefix cache)" in shown.getvalue()


# -- maps of values -------------------------------------------------------------------------------


def _profile(*values: str) -> ColumnProfile:
    column = Column("sales_stage", "varchar(50)", Kind.TEXT)
    return profile_values(column, values, rows=len(values), nulls=0, blanks=0, distinct=len(set(values)), capped=False)


PLACED, LEFT = "Potential Customer", "ex-partner"  # near to a label, and no rule takes them
KINDS = ("customer", "partner")


def _labels(prompt: Prompt, options: Sequence[str]) -> str:
    return "customer" if "Customer" in prompt.data else NONE_OF_THESE


def _values(workspace: Workspace, model: ScriptedModel, *values: str) -> ValueMap:
    return decide_values(Ladder(workspace, model=model), None, "people.kind", "kind", _profile(*values), KINDS)


def test_values_that_a_model_placed_are_not_asked_about_again(workspace: Workspace) -> None:
    model = ScriptedModel(rule=_labels, sure=0.99, worth=0.99)
    first = _values(workspace, model, *[PLACED] * 3, *[LEFT] * 2)
    assert first.values == {PLACED: "customer"}
    assert set(first.unsure) == {LEFT}
    assert len(model.asked) == 2
    silent = ScriptedModel([], worth=0.99)
    again = _values(workspace, silent, *[PLACED] * 3, *[LEFT] * 2)
    assert (again.values, again.unsure) == (first.values, first.unsure)
    assert silent.asked == []
    assert len(_asked(workspace)) == 1
    assert len(list(workspace.events(types=[DecisionMade]))) == 1
    assert state_at(workspace).progress.rungs["choose"].calls == 2


def test_only_a_value_that_turned_up_since_is_asked_about(workspace: Workspace) -> None:
    _values(workspace, ScriptedModel(rule=_labels, worth=0.99), PLACED, LEFT)
    model = ScriptedModel(rule=_labels, worth=0.99)
    counts = {LEFT: 1, "Potential Partner": 2}
    place_values(Ladder(workspace, model=model), None, "people.kind", "kind", counts, KINDS, {PLACED: "customer"})
    assert [prompt.data for prompt, _ in model.asked] == ["Potential Partner"]
    silent = ScriptedModel([], worth=0.99)
    _values(workspace, silent, PLACED, LEFT)
    place_values(Ladder(workspace, model=silent), None, "people.kind", "kind", counts, KINDS, {PLACED: "customer"})
    assert silent.asked == []


def test_a_label_that_is_gone_is_reason_to_ask_again(workspace: Workspace) -> None:
    _values(workspace, ScriptedModel(rule=_labels, worth=0.99), PLACED)
    model = ScriptedModel(rule=lambda prompt, options: NONE_OF_THESE, worth=0.99)
    made = decide_values(
        Ladder(workspace, model=model), None, "people.kind", "kind", _profile(PLACED), ("customers", "partner")
    )
    assert made.values == {}


# -- whole jobs -----------------------------------------------------------------------------------


def test_an_expression_that_failed_on_the_sample_is_not_proposed_again(tmp_path: Path, workspace: Workspace) -> None:
    with sqlite3.connect(tmp_path / "crm.db") as connection:
        connection.execute("CREATE TABLE people(id INTEGER PRIMARY KEY, last_name TEXT NOT NULL, birthdate TEXT)")
        rows = [(n, f"Berg{'abcdefgh'[n % 8]}", f"{1960 + n}.{n % 12 + 1}.{n % 28 + 1}") for n in range(40)]
        connection.executemany("INSERT INTO people VALUES (?, ?, ?)", rows)
    with sqlite3.connect(tmp_path / "cloud.db") as connection:
        connection.execute("CREATE TABLE people(id INTEGER PRIMARY KEY, last_name TEXT NOT NULL, birthdate DATE)")
    source, target = open_source(f"sqlite:///{tmp_path}/crm.db"), open_target(f"sqlite:///{tmp_path}/cloud.db")
    model = ScriptedModel(rule=lambda prompt, options: 0 if options else "trim(birthdate)")
    first = draft(source, target.catalogue(), workspace, model=model, zone="UTC")
    written = [prompt for prompt, options in model.asked if not options]
    assert len(written) == 2, "once, and once more with what failed"
    (question,) = [q for q in _asked(workspace) if q.kind == "format"]
    assert (question.calls, question.model) == (2, "scripted")
    silent = ScriptedModel([])
    again = draft(source, target.catalogue(), workspace, model=silent, zone="UTC")
    assert silent.asked == []
    assert again.plan == first.plan
    source.close()
    target.close()


@pytest.fixture
def cloud(postgres_database: Database) -> Database:
    postgres_database.run(CLOUD_SQL.read_text(encoding="utf-8"))
    return postgres_database


def _unsure_of_most(prompt: Prompt, options: Sequence[str]) -> tuple[float, ...] | int:
    """Sure of every third question, by its words; torn between two at the others."""
    if sum(map(ord, prompt.question)) % 3 == 0:
        return len(options) - 1
    return (0.5, 0.4, *[0.1] * (len(options) - 2))


@pytest.mark.parametrize("after", [25, 45, None])
def test_a_resumed_job_asks_a_model_nothing_that_is_in_its_log(
    cloud: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, after: int | None
) -> None:
    monkeypatch.setenv("PACKHORSE_DATA_HOME", str(tmp_path / "data"))
    write_sample("sqlite", tmp_path / "crm.db", 200)
    request = JobRequest(
        f"sqlite:///{tmp_path}/crm.db", cloud.socket_dsn, yes=True, job="job", zone="America/New_York", base=tmp_path
    )
    first, second = (ScriptedModel(rule=_unsure_of_most, worth=0.99) for _ in range(2))
    looks = 0

    def stop() -> bool:
        nonlocal looks
        looks += 1
        return after is not None and looks > after

    if after is None:
        run_job(request, deciders=lambda: (first, None))
    else:
        with pytest.raises(InterruptedJobError):
            run_job(request, deciders=lambda: (first, None), stop=stop)
    run_job(request, deciders=lambda: (second, None))
    once = [_told(asked) for asked in first.asked]
    assert once
    assert not {_told(asked) for asked in second.asked} & set(once)
    if after is None:
        assert second.asked == []
    silent = ScriptedModel([])
    run_job(replace(request), deciders=lambda: (silent, None))
    assert silent.asked == []


def _told(asked: tuple[Prompt, tuple[str, ...]]) -> tuple[str, str, tuple[str, ...]]:
    prompt, options = asked
    return prompt.question, prompt.data, options
