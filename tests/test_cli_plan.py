"""`migrate plan explain` and `diff`: the story of a field as the log has it, and what differs between two plans."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli_runner import migrate_here
from tests.plain_job import write_job

SOURCE = """
CREATE TABLE contacts (id INTEGER PRIMARY KEY, last_name TEXT, email_address TEXT, kind TEXT);
INSERT INTO contacts VALUES (1, 'Lee', 'lee@example.com', 'x'), (2, 'Ray', 'ray@example.com', 'y'), (3, 'Ng', 'no mail', 'x');
"""
TARGET = "CREATE TABLE people (id INTEGER PRIMARY KEY, last_name TEXT, email TEXT, rating INTEGER);"
PLAN = """\
version: 1
entities:
  contacts: {from: contacts, to: people, key: id, fields: {last_name: {from: last_name}, email: {sql: email(email_address)}, rating: {default: 3}}}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PACKHORSE_DATA_HOME", str(tmp_path / "data-home"))
    write_job(tmp_path, SOURCE, TARGET, PLAN)
    return tmp_path


def test_a_field_that_was_decided_tells_by_whom_and_why(folder: Path) -> None:
    made = migrate_here(
        "plan", "draft", "sqlite:///legacy.db", "sqlite:///cloud.db", "--job", "j", "--model", "none", "-o", "d.yaml"
    )
    assert made.code == 0, made
    story = migrate_here("plan", "explain", "contacts.last_name", "--json").json
    assert story["says"] == {"from": "last_name"}
    decided = [each for each in story["chapters"] if each["kind"] == "field"]
    assert [(each["what"], each["rung"]) for each in decided] == [("column:last_name", "rule")]
    assert decided[0]["candidates"][0]["label"] == "last_name"
    shown = migrate_here("plan", "explain", "contacts.last_name").out
    assert "field, by rule, 0.9" in shown
    assert "because names" in shown
    # a third of the addresses are none: that was asked, and leaves the column out until it is answered
    asked = migrate_here("plan", "explain", "contacts.email", "--json").json
    assert asked["says"] is None
    assert [each["kind"] for each in asked["chapters"]] == ["question"]


def test_a_field_tells_which_rows_failed_by_it(folder: Path) -> None:
    run = migrate_here(
        "run",
        "sqlite:///legacy.db",
        "sqlite:///cloud.db",
        "--plan",
        "plan.yaml",
        "--job",
        "k",
        "--yes",
        "--tolerate",
        "3",
    )
    assert run.code == 0, run
    told = migrate_here("plan", "explain", "contacts.email", "--job", "k")
    assert "nobody decided it in this job: it stood in the plan that was given" in told.out
    assert "1 rows in quarantine: email: function email" in told.out
    migrate_here("plan", "explain", "contacts.nope").refused(
        "PH-101", "the plan has no field 'contacts.nope'", "contacts.last_name"
    )
    assert migrate_here("plan", "diff", "1", "plan.yaml").out == "the plans say the same\n"
    migrate_here("plan", "diff", "1", "7").refused("PH-201", "no plan version 7", "it has 1")


def test_only_what_plans_say_makes_a_difference(folder: Path) -> None:
    other = PLAN.replace("version: 1", "# another hand\nversion: 9").replace("{from: last_name}", '{from: "last_name"}')
    Path("same.yaml").write_text(other)
    assert migrate_here("plan", "diff", "plan.yaml", "same.yaml", "--json").json["same"]
    changed = other.replace("rating: {default: 3}", "rating: {default: 4}").replace(
        "email(email_address)", "lower(email_address)"
    )
    Path("new.yaml").write_text(changed)
    told = migrate_here("plan", "diff", "plan.yaml", "new.yaml")
    assert told.out.splitlines() == [
        "~ entities.contacts.fields.email.sql: email(email_address) -> lower(email_address)",
        "~ entities.contacts.fields.rating.default: 3 -> 4 (+1)",
    ]
