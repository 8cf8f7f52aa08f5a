"""Decisions held against the gold plan: which were right, and how sure they were called."""

from __future__ import annotations

from typing import Any

import pytest

from agent.questions import Question
from bench.gold_person import GoldPerson
from bench.judged import Judged, by_rung, judge, reliability
from bench.plan_score import PlanScore
from bench.scenarios import scenarios
from workspace.events import DecisionMade

SCHEMA = {"Contacts": ["Phone", "Mobile", "Email"], "Deals": ["Stage"]}


@pytest.fixture
def person() -> GoldPerson:
    (scenario,) = scenarios("zoho/export")
    return GoldPerson(scenario, SCHEMA)


def _made(kind: str, subject: str, choice: Any, sure: float = 0.97, rung: Any = "rule", *offered: str) -> DecisionMade:
    candidates: list[dict[str, object]] = [{"answer": answer, "weight": 0.5} for answer in offered]
    return DecisionMade(f"{kind}:{subject}", kind, subject, choice, rung, sure, candidates)


def _scored(**places: Any) -> PlanScore:
    empty: dict[str, Any] = dict.fromkeys(("right", "near", "wrong", "open", "missing", "extra"), ())
    return PlanScore(**{**empty, **places})


def test_fields_are_judged_by_the_plan_and_near_ones_not_at_all(person: GoldPerson) -> None:
    to = "contact_person"
    scored = _scored(
        right=(("Contacts", to, "email"),), wrong=((("Contacts", to, "phone"), "", ""),),
        near=((("Contacts", to, "mobile"), "", ""),), missing=(("Contacts", to, "skype"),),
    )  # fmt: skip
    made = [
        _made("field", "Contacts.email", "column:Email"),
        _made("field", "Contacts.phone", "column:Mobile", 0.92, "choose"),
        _made("field", "Contacts.mobile", "column:Mobile"),
        _made("field", "Contacts.skype", None, 0.99),  # the gold plan fills it
        _made("field", "Contacts.no_such_field", None, 0.99, "experience"),
    ]
    assert judge(scored, made, [], person) == [
        Judged("field", "rule", 0.97, True),
        Judged("field", "choose", 0.92, False),
        Judged("field", "rule", 0.99, False),
        Judged("field", "experience", 0.99, True),
    ]


def test_tables_filters_and_zones_are_judged_by_what_a_person_would_say(person: GoldPerson) -> None:
    made = [
        _made("entity", "Deals", "deal", 0.97, "rule", "deal", "company"),
        _made("entity", "Contacts", "company", 0.91, "choose", "contact_person", "company"),
        _made("filter", "Deals", None, 0.96, "rule", "Stage is null"),
        _made("zone", "Deals.created", "Mars/Base"),
        _made("key", "Deals", "Record Id"),
    ]
    found = [(each.kind, each.right) for each in judge(_scored(), made, [], person)]
    assert found == [("entity", True), ("entity", False), ("filter", True), ("zone", False)]


def test_of_a_question_the_favoured_answer_is_judged(person: GoldPerson) -> None:
    candidates = ({"answer": "column:Mobile", "weight": 0.7}, {"answer": "column:Email", "weight": 0.2})
    asked = [
        Question(f"field:Contacts.{name}", "field", f"Contacts.{name}", "", candidates, {}, (), 0)
        for name in ("email", "no_such_field")
    ]
    assert judge(_scored(), [], asked, person) == [Judged("field", "ask", 0.7, False)] * 2


def test_the_table_counts_by_how_sure_a_decision_was_called() -> None:
    judged = [
        Judged("field", "rule", 0.95, True), Judged("field", "choose", 0.99, False), Judged("field", "rule", 0.9, True),
        Judged("field", "ask", 0.9, False), Judged("field", "ask", 0.1, True), Judged("zone", "rule", 0.8, True),
    ]  # fmt: skip
    assert reliability(judged) == [
        ("field", 0.0, 0, 0, 1, 1), ("field", 0.9, 1, 1, 1, 0), ("field", 0.95, 2, 1, 0, 0), ("zone", 0.8, 1, 1, 0, 0),
    ]  # fmt: skip
    assert by_rung(judged) == {"choose": (0, 1), "rule": (2, 0)}
