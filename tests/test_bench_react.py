"""The bare model in a chat: what it may do, and how that is scored."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.models.protocol import Prompt
from agent.models.scripted import ScriptedModel
from bench.react import MOST_TURNS, Chat, chat
from bench.scenarios import scenarios

OLD = {"Contacts": {"Account Name.id": ["7"], "Phone": ["030 1", "030 2", "030 3", "030 4"]}}
NEW = {"people": ["phone", "fax"]}


def test_each_action_is_answered() -> None:
    held = Chat(OLD, NEW)
    assert held.observe("old tables") == "Contacts"
    assert held.observe("new columns people") == "phone, fax"
    assert held.observe("values Contacts.Phone") == "030 1; 030 2; 030 3"
    assert held.observe("map people.phone = Contacts.Phone") == "mapped"
    assert held.observe("map people.fax = Contacts.Account Name.id") == "mapped"
    assert held.observe("map people.fax = Contacts.Fax") == "no such action, table or column"
    assert held.mapped == {
        ("people", "phone"): ("Contacts", "Phone"),
        ("people", "fax"): ("Contacts", "Account Name.id"),
    }
    assert held.useless == 1


@pytest.mark.parametrize(
    ("answers", "ended", "turns"),
    [
        (["old tables", "done"], "done", 2),
        (["old tables"] * 9, "in circles", 4),
        (["old tables", "new tables"] * MOST_TURNS, "out of turns", MOST_TURNS),
        ([], "failed: the script has no answer", 0),
    ],
)
def test_a_chat_ends(answers: list[str], ended: str, turns: int) -> None:
    held = Chat(OLD, NEW)
    assert held.run(ScriptedModel(answers)).startswith(ended)
    assert held.turns == turns


def test_what_was_said_is_the_next_prompt() -> None:
    model = ScriptedModel(["old tables", "done"])
    Chat(OLD, NEW).run(model)
    assert "> old tables\nContacts" in model.asked[1][0].question


def test_mappings_are_scored_by_the_gold_plan(tmp_path: Path) -> None:
    (scenario,) = scenarios("zoho/export")
    said = iter([
        "map contact_person.mobile = Contacts.Mobile",  # beside its country in the gold plan
        "map contact_person.phone = Contacts.Mailing Country",
        "map contact_person.surname = Contacts.Last Name",
        "map deal.deal_id = Deals.Record Id",  # no field of the gold plan
        "done",
    ])  # fmt: skip

    def next_line(prompt: Prompt, options: object) -> str:
        return next(said)

    found = chat(scenario, ScriptedModel(rule=next_line), tmp_path)
    assert (found.right, found.wrong, found.ended) == (2, 2, "done")
    fields = sum(not field.constant for entity in scenario.gold().entities.values() for field in entity.fields.values())
    assert found.left_out == fields - 3
