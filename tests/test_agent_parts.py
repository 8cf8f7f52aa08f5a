"""The smaller parts: actions and their preconditions, trials, proposals, formats, countries, views."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pyarrow as pa
import pytest

from agent.actions import AddEntity, HoldEntity, MapField, SetOtherwise, SetValueMap, SetWhere
from agent.draft import draft
from agent.loop import Loop, last_plan
from agent.models.scripted import ScriptedModel
from agent.profile import ColumnProfile, profile_values
from agent.propose import date_forms, propose
from agent.questions import answer_question, open_questions
from agent.trial import Bench
from connectors.dsn import open_source
from connectors.protocols import Catalogue, Column, Kind, Table, UniqueKey
from engine.plan import Plan
from workspace.errors import ExpressionError, UsageError
from workspace.events import DecisionMade, FeedbackGiven, QuestionAnswered, QuestionAsked
from workspace.log import Workspace
from workspace.paths import JobPaths

TARGET = Catalogue(
    "postgres",
    {
        "people": Table(
            "people",
            (
                Column("id", "uuid", Kind.UUID, nullable=False),
                Column("name", "text", Kind.TEXT, nullable=False),
                Column("birthday", "date", Kind.DATE),
                Column("phone", "text", Kind.TEXT),
            ),
            ("id",),
            unique_keys=(UniqueKey("people_pkey", ("id",), ("id",), primary=True),),
        )
    },
)
PEOPLE = AddEntity("people", {"from": "contacts", "to": "people", "key": ["id"], "id": "uuid5"})


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace.open(JobPaths(tmp_path, "parts"), write=True)


@pytest.fixture
def loop(workspace: Workspace) -> Loop:
    loop = Loop(workspace, Plan(version=1, entities={}), TARGET)
    loop.know_columns({"people": frozenset({"id", "nm", "dob"})})
    return loop


REFUSED = [
    (MapField("people", "name", {"from": "nm"}), "no entity people"),
    (AddEntity("x", {"from": "contacts", "to": "nowhere", "key": ["id"]}), "no table nowhere"),
    (HoldEntity("people", ("q",)), "no entity people"),
]
REFUSED_LATER = [
    (PEOPLE, "already"),
    (MapField("people", "nam", {"from": "nm"}), "no column nam"),
    (MapField("people", "name", {"from": "password"}, ("password",)), "no column password"),
    (MapField("people", "name", {"from": "nm", "map": "m"}, ("nm",)), "no value map m"),
    (SetOtherwise("people", "name", "null"), "takes no NULL"),
    (SetOtherwise("people", "phone", "null"), "no field phone"),
]


@pytest.mark.parametrize(("action", "why"), REFUSED)
def test_an_action_out_of_place_is_refused_with_a_reason(loop: Loop, action: object, why: str) -> None:
    feedback = loop.act(action)  # type: ignore[arg-type]
    assert feedback.outcome == "refused"
    assert why in feedback.attend[0]
    assert loop.plan.entities == {}


@pytest.mark.parametrize(("action", "why"), REFUSED_LATER)
def test_an_edit_that_names_what_is_not_there_is_refused(loop: Loop, action: object, why: str) -> None:
    loop.act(PEOPLE)
    loop.act(MapField("people", "name", {"from": "nm"}, ("nm",)))
    before = loop.plan
    feedback = loop.act(action)  # type: ignore[arg-type]
    assert feedback.outcome == "refused"
    assert why in feedback.attend[0]
    assert loop.plan == before
    assert loop.act(action).attend == ()  # type: ignore[arg-type]


def test_each_action_is_in_the_log_with_its_feedback(loop: Loop, workspace: Workspace) -> None:
    loop.act(PEOPLE)
    loop.act(MapField("people", "nothing", {"from": "nm"}))
    loop.flush()
    found = [e.event for e in workspace.events(types=[FeedbackGiven]) if isinstance(e.event, FeedbackGiven)]
    assert [f.outcome for f in found] == ["done", "refused"]
    assert found[1].failed[0]["signature"] == "map_field: the target has no column nothing"


def test_a_plan_that_did_not_change_gets_no_new_version(loop: Loop, workspace: Workspace) -> None:
    loop.act(PEOPLE)
    loop.act(MapField("people", "name", {"from": "nm"}, ("nm",)))
    assert loop.keep_version("rule", "first").version == 1
    assert loop.keep_version("rule", "again").version == 1
    loop.act(SetWhere("people", "nm <> ''"))
    loop.act(SetValueMap("m", {"a": "b"}))
    assert loop.keep_version("rule", "changed").version == 2
    kept = last_plan(workspace)
    assert kept is not None
    assert kept.version == 2
    assert kept.entities["people"].where == "nm <> ''"


def test_holding_an_entity_takes_the_references_to_it_along(loop: Loop) -> None:
    loop.act(PEOPLE)
    loop.act(AddEntity("other", {"from": "x", "to": "people", "key": ["id"]}))
    loop.know_columns({"other": frozenset({"nm", "boss"})})
    loop.act(MapField("other", "name", {"from": "nm"}, ("nm",)))
    loop.act(MapField("other", "phone", {"from": "boss", "ref": "people"}, ("boss",)))
    loop.act(HoldEntity("people", ("field:people.name",)))
    assert set(loop.plan.entities) == {"other"}
    assert set(loop.plan.entities["other"].fields) == {"name"}


def test_a_trial_counts_what_arrives_and_shows_only_shapes() -> None:
    sample = pa.table({"dob": ["1984-02-29", "31.12.1999", None, "", "Müller 7"]})
    with Bench() as bench:
        trial = bench.try_out("dob", TARGET.tables["people"].columns[2], sample)
        refused = bench.try_out("(select 1)", TARGET.tables["people"].columns[2], sample)
    assert (trial.filled, trial.arrived) == (3, 1)
    assert dict(trial.failures) == {"cast date: '99.99.9999'": 1, "cast date: 'Aa+ 9'": 1}
    assert refused.refused
    assert refused.share == 0


def _profile(*values: str) -> ColumnProfile:
    column = Column("dob", "text", Kind.TEXT)
    return profile_values(column, values, rows=len(values), nulls=0, blanks=0, distinct=len(set(values)), capped=False)


def test_one_form_of_date_that_takes_all_values_is_found_and_two_are_told_apart() -> None:
    assert list(date_forms(_profile("31.12.1999", "01.02.1980"))) == ["%d.%m.%Y"]
    both = date_forms(_profile("01/02/1980", "03/04/1981"))
    assert {"%d/%m/%Y", "%m/%d/%Y"} <= set(both)
    assert date_forms(_profile("anything", "at all")) == {}


def test_a_proposal_counts_only_after_it_passed_and_failures_go_back_to_the_model() -> None:
    sample = pa.table({"dob": ["1999|12|31", "1980|02|01"]})
    profile = _profile("1999|12|31", "1980|02|01")
    model = ScriptedModel(["strptime(dob, '%Y/%m/%d')", "strptime(dob, '%Y|%m|%d')"])
    with Bench() as bench:
        found, trial, price = propose(model, bench, TARGET.tables["people"].columns[2], ["dob"], profile, sample)
    assert found == "strptime(dob, '%Y|%m|%d')"
    assert trial.share == 1
    assert price.calls == 2
    assert "failed" in model.asked[1][0].question
    with Bench() as bench:
        found, _, _ = propose(
            ScriptedModel(["trim(dob)"] * 2), bench, TARGET.tables["people"].columns[2], ["dob"], profile, sample
        )
    assert found is None


def _source(folder: Path, dates: list[str], phones: list[str]) -> str:
    file = folder / "small.db"
    connection = sqlite3.connect(file)
    connection.execute(
        "CREATE TABLE contacts(id VARCHAR(36) PRIMARY KEY, name TEXT, birthday VARCHAR(20), phone VARCHAR(40))"
    )
    rows = [
        (f"{i:08x}-0000-4000-8000-000000000000", f"Person {i}", d, p)
        for i, (d, p) in enumerate(zip(dates, phones, strict=True))
    ]
    connection.executemany("INSERT INTO contacts VALUES (?, ?, ?, ?)", rows)
    connection.commit()
    return f"sqlite:///{file}"


def _drafted(dsn: str, workspace: Workspace, **options: object) -> Plan:
    source = open_source(dsn)
    made = draft(source, TARGET, workspace, **options)  # type: ignore[arg-type]
    source.close()
    return made.plan


PHONES = ["+49 30 901820", "+44 20 7946 0018"] * 20


def test_dates_in_one_usual_form_are_read_by_it(tmp_path: Path, workspace: Workspace) -> None:
    plan = _drafted(
        _source(tmp_path, [f"{d:02}.06.1980" for d in range(1, 29)] + ["31.12.1999"] * 12, PHONES), workspace
    )
    assert plan.entities["contacts"].fields["birthday"].sql == "strptime(nullif(trim(birthday), ''), '%d.%m.%Y')"


def test_dates_whose_day_and_month_may_be_exchanged_are_asked_about(tmp_path: Path, workspace: Workspace) -> None:
    dsn = _source(tmp_path, [f"{d:02}/06/1980" for d in range(1, 11)] * 4, PHONES)
    plan = _drafted(dsn, workspace)
    assert "birthday" not in plan.entities["contacts"].fields
    (question,) = [q for q in open_questions(workspace) if q.kind == "format"]
    assert {c["label"] for c in question.candidates} == {"%d/%m/%Y", "%m/%d/%Y"}
    american = next(str(i) for i, c in enumerate(question.candidates, 1) if c["label"] == "%m/%d/%Y")
    answer_question(workspace, question.id, american)
    assert "%m/%d/%Y" in str(_drafted(dsn, workspace).entities["contacts"].fields["birthday"].sql)


def test_the_model_reads_dates_that_no_usual_form_takes(tmp_path: Path, workspace: Workspace) -> None:
    dsn = _source(tmp_path, [f"1980.{m}.{d}" for m in range(1, 11) for d in range(1, 5)], PHONES)
    model = ScriptedModel(["strptime(birthday, '%Y.%m.%d')"])
    plan = _drafted(dsn, workspace, model=model)
    assert plan.entities["contacts"].fields["birthday"].sql == "strptime(birthday, '%Y.%m.%d')"
    made = [e.event for e in workspace.events(types=[DecisionMade]) if isinstance(e.event, DecisionMade)]
    assert [(m.rung, m.calls) for m in made if m.kind == "format"] == [("propose", 1)]


def test_numbers_without_a_country_wait_for_one(tmp_path: Path, workspace: Workspace) -> None:
    dsn = _source(tmp_path, ["1980-06-01"] * 40, ["030 901820", "089 1234567"] * 20)
    assert "phone" not in _drafted(dsn, workspace).entities["contacts"].fields
    with pytest.raises(UsageError, match="no country"):
        answer_question(workspace, "country:contacts.phone", "Germoney")
    answer_question(workspace, "country:contacts.phone", "DE")
    assert _drafted(dsn, workspace).entities["contacts"].fields["phone"].sql == "phone(phone, 'DE')"


def test_a_person_may_answer_with_an_expression(tmp_path: Path, workspace: Workspace) -> None:
    dsn = _source(tmp_path, [f"{d:02}/06/1980" for d in range(1, 11)] * 4, PHONES)
    _drafted(dsn, workspace)
    with pytest.raises(ExpressionError):
        answer_question(workspace, "format:contacts.birthday", "sql: strptime(birthday")
    answer_question(workspace, "format:contacts.birthday", "sql: strptime(birthday, '%m/%d/%Y')")
    assert _drafted(dsn, workspace).entities["contacts"].fields["birthday"].sql == "strptime(birthday, '%m/%d/%Y')"


def test_a_remedy_that_was_chosen_stays_in_the_plan_that_is_drafted_again(tmp_path: Path, workspace: Workspace) -> None:
    dsn = _source(tmp_path, ["1980-06-01"] * 40, PHONES)
    assert _drafted(dsn, workspace).entities["contacts"].fields["phone"].otherwise == "quarantine"
    workspace.record(QuestionAnswered(id="remedy:contacts.phone", answer="null"))
    assert _drafted(dsn, workspace).entities["contacts"].fields["phone"].otherwise == "null"


def test_a_person_at_hand_is_asked_at_once(tmp_path: Path, workspace: Workspace) -> None:
    asked: list[str] = []

    def person(question: QuestionAsked) -> object:
        asked.append(question.id)
        return "DE" if question.kind == "country" else None

    dsn = _source(tmp_path, ["1980-06-01"] * 40, ["030 901820", "089 1234567"] * 20)
    plan = _drafted(dsn, workspace, person=person)
    assert asked == ["country:contacts.phone"]
    assert plan.entities["contacts"].fields["phone"].sql == "phone(phone, 'DE')"
    assert not open_questions(workspace)
