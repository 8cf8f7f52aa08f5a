from __future__ import annotations

import json
from pathlib import Path

import pytest

from agent.ladder import Ladder
from agent.profile import ColumnProfile, profile_values, shape
from agent.questions import answer_question, open_questions
from agent.value_lexicon import label_for
from agent.valuemaps import decide_values
from connectors.protocols import Column, Kind
from workspace.errors import UsageError
from workspace.experience_store import ExperienceStore
from workspace.log import Workspace
from workspace.paths import JobPaths
from workspace.signature import value_map_signature

STAGES = ("new", "qualified", "won", "lost")
SURE = [
    ("Closed Won", STAGES, "won"),
    ("05 - Lost", STAGES, "lost"),
    ("Gewonnen", STAGES, "won"),
    ("NEW", STAGES, "new"),
    ("Health Care", ("healthcare", "retail"), "healthcare"),
    ("Commerce de détail", ("healthcare", "retail"), "retail"),
    ("Transport & Logistics", ("logistics", "retail"), "logistics"),
    ("Not Held", ("planned", "done", "cancelled"), "cancelled"),
]
UNSURE = [
    ("Potential Customer", ("customer", "partner")),
    ("not won yet", STAGES),
    ("won or lost", STAGES),
    ("Finance", ("banking", "insurance")),
    ("xyz", STAGES),
    ("", STAGES),
    ("ex-partner", ("customer", "partner")),
]


@pytest.mark.parametrize(("value", "labels", "label"), SURE)
def test_a_usual_wording_finds_its_label(value: str, labels: tuple[str, ...], label: str) -> None:
    hit = label_for(value, labels)
    assert hit.sure
    assert hit.label == label


@pytest.mark.parametrize(("value", "labels"), UNSURE)
def test_what_could_mean_another_thing_is_never_sure(value: str, labels: tuple[str, ...]) -> None:
    assert not label_for(value, labels).sure


def _profile(*values: str) -> ColumnProfile:
    column = Column("sales_stage", "varchar(50)", Kind.TEXT)
    return profile_values(column, values, rows=len(values), nulls=0, blanks=0, distinct=len(set(values)), capped=False)


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace.open(JobPaths(tmp_path, "values"), write=True)


def test_unsure_values_are_one_question_and_its_answer_completes_the_map(workspace: Workspace) -> None:
    profile = _profile(*["Closed Won"] * 5, *["Perception"] * 4, *["Odd"] * 2)
    first = decide_values(Ladder(workspace), None, "deals.stage", "sales_stage", profile, STAGES)
    assert first.values == {"Closed Won": "won"}
    assert set(first.unsure) == {"Perception", "Odd"}
    (question,) = open_questions(workspace)
    assert [v["value"] for v in question.evidence["values"]] == ["Perception", "Odd"]
    answer_question(workspace, question.id, "Perception=qualified; Odd=quarantine")
    second = decide_values(Ladder(workspace), None, "deals.stage", "sales_stage", profile, STAGES)
    assert second.values == {"Closed Won": "won", "Perception": "qualified"}
    assert not open_questions(workspace)


def test_an_answer_that_names_no_label_is_no_answer(workspace: Workspace) -> None:
    profile = _profile(*["Odd"] * 3)
    decide_values(Ladder(workspace), None, "deals.stage", "sales_stage", profile, STAGES)
    with pytest.raises(UsageError):
        answer_question(workspace, "values:deals.stage", "nothing like a map")
    answer_question(workspace, "values:deals.stage", {"Odd": "no such label"})
    again = decide_values(Ladder(workspace), None, "deals.stage", "sales_stage", profile, STAGES)
    assert again.values == {}


def test_a_map_of_an_earlier_job_is_experience(workspace: Workspace, tmp_path: Path) -> None:
    with ExperienceStore.open(tmp_path / "experience.db") as store:
        store.record("value_map", value_map_signature("sales_stage", list(STAGES)), json.dumps({"Odd": "lost"}), True)
        made = decide_values(
            Ladder(workspace), store, "deals.stage", "sales_stage", _profile("Odd", "Odd", "Odd"), STAGES
        )
    assert made.values == {"Odd": "lost"}
    assert not made.unsure


def test_what_a_person_said_about_values_is_a_lesson(workspace: Workspace, tmp_path: Path) -> None:
    profile = _profile("Odd", "Odd", "Odd")
    with ExperienceStore.open(tmp_path / "experience.db") as store:
        decide_values(Ladder(workspace), store, "deals.stage", "sales_stage", profile, STAGES)
        answer_question(workspace, "values:deals.stage", "Odd=won")
        for _ in range(2):
            decide_values(Ladder(workspace), store, "deals.stage", "sales_stage", profile, STAGES)
        (lesson,) = store.lessons("value_map")
    assert lesson.tried == 1
    assert json.loads(lesson.remedy) == {"Odd": "won"}


def test_a_shape_keeps_no_letter_or_digit() -> None:
    assert shape("Müller-09/11") == "Aa+-99/99"
    assert shape("ab1\x00") == "aa9?"
