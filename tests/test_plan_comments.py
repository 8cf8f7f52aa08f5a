"""Comments in a plan: a plan is the same plan with them and without, whatever names, texts and values hold; what they
tell is out of the log, and no record value is in it.
"""

from __future__ import annotations

import sqlite3
from itertools import takewhile
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from agent.questions import Question
from cli.drafted import commented
from cli.plan_comments import comments_of, with_comments
from engine.field_evidence import FieldEvidence, field_evidence
from engine.plan import EntityPlan, FieldPlan, Plan, dump_plan, parse_plan
from tests.cli_runner import migrate_here
from tests.engine_jobs import sqlite_source
from workspace.events import DecisionMade, JobStarted, PlanChanged, TableProfiled
from workspace.log import Workspace
from workspace.paths import JobPaths

NASTY = [
    "# no comment", "a\nb", "a\r\nentities: {}", "\x85next", "\u2028line", "\u2029", "\ufeff", "\x00", "\x1b[2J", "\t", "- ", "? ", ": ",
    "key: value", "'", '"', "{", "}]", "&anchor", "*alias", "!tag", "---", "...", "%YAML 1.1", "نام", "שם", "名前", "\u202eevil", "😀",
    "\ue000", "\u200d", "null", "yes", "1", "", " ", "a" * 200, "x\n  - y", "fields", "entities", "\ud7ff", "\ufffd",
]  # fmt: skip

texts = st.one_of(st.sampled_from(NASTY), st.text(st.characters(exclude_categories=["Cs"]), max_size=30))
names = texts.filter(bool)
fields = st.one_of(
    st.builds(lambda c: FieldPlan.model_validate({"from": c}), names),
    st.builds(lambda s: FieldPlan.model_validate({"sql": s}), texts),
    st.builds(lambda s: FieldPlan.model_validate({"default": s}), texts),
)
entities = st.builds(
    lambda made, unmapped: EntityPlan.model_validate(
        {
            "from": "contacts",
            "to": "people",
            "key": "id",
            "fields": made,
            **({"unmapped": unmapped} if unmapped else {}),
        }
    ),
    st.dictionaries(names, fields, max_size=4),
    st.dictionaries(names, texts, max_size=2),
)
plans = st.builds(
    lambda made, values: Plan(version=1, entities=made, value_maps={"m": values} if values else {}),
    st.dictionaries(names, entities, max_size=3),
    st.dictionaries(texts, texts, max_size=3),
)


def question(subject: str, text: str, kind: str = "field") -> Question:
    candidates = ({"answer": text, "label": text, "weight": 0.4}, {"answer": "b", "label": None, "weight": None})
    return Question("id", kind, subject, text, candidates, {"type": text}, (text,), 1)


@settings(max_examples=150, deadline=None)
@given(plan=plans, said=texts, subject=texts)
@example(plan=Plan(version=1, entities={}), said="a\nb", subject="a.b")
def test_a_plan_is_the_same_with_comments_and_without(plan: Plan, said: str, subject: str) -> None:
    asked = [question(subject, said), question(said, subject, "zone")]
    evidence = {}
    for name, entity in plan.entities.items():
        asked += [question(name, said, "entity"), question(f"{name}.{subject}", said)]
        for column in entity.fields:
            asked.append(question(f"{name}.{column}", said, "values"))
            evidence[name, column] = FieldEvidence("rule", 0.9, (said, 0.5), {said: "ask"}, (said, subject))
    text = commented(plan, f"Drafted by {said}", said, asked, evidence)
    bare = dump_plan(plan)
    assert parse_plan(text) == parse_plan(bare)
    left = iter(text.split("\n"))
    for line in bare.split("\n"):  # nothing but comments was added, above its lines
        assert all(
            more == "" or more.lstrip(" ").startswith("# ") for more in takewhile(lambda t, at=line: t != at, left)
        )
    assert text.count("ask:") >= len(asked)


def test_comments_stand_above_what_they_are_about() -> None:
    plan = parse_plan(
        "entities:\n  a: {from: t, to: u, key: id, fields: {x: {from: x}, y: {sql: y}}, unmapped: {z: why}}\n  b: {from: t, to: v, key: id}\n"
    )
    evidence = {
        ("a", "x"): FieldEvidence("rule", 0.97, ("x_2", 0.41), {}, ("Aa+", "9 9")),
        ("a", "y"): FieldEvidence("ask", 1.0, None, {"country": "rule"}, ()),
    }
    asked = [
        question("a.q", "Which?"),
        question("a.y", "Which labels?", "values"),
        question("b", "Where to?", "entity"),
    ]
    text = commented(plan, "Drafted", "j", [*asked, question("gone.w", "?")], evidence)
    lines = [line.rstrip() for line in text.split("\n")]
    assert lines[1] == "# Left for a person (4), each marked ask: with migrate answer j, or by hand."
    assert lines[2].startswith("# ask: gone.w (?) waits for it: ?; out of which column? nearest: ? 0.40, b")
    at = lines.index("      x: {from: x}")
    assert lines[at - 1] == "      # by rule, 0.97 sure; next x_2 0.41; like 'Aa+' '9 9'"
    assert lines[lines.index("    fields:") - 1].startswith("    # ask: q (Which?)")
    at = lines.index('      y: {sql: "y"}')
    assert lines[at - 3 : at] == [
        "      # by a person; country by rule",
        "      # ask: y: Which labels?",
        "      # waiting for it: Which labels?",
    ]
    assert lines[lines.index("  b:") - 2] == "  # ask: b: Where to?"
    assert all(len(line) <= 110 for line in lines)


def test_places_that_the_text_has_not_are_left_out() -> None:
    text = dump_plan(parse_plan("entities: {a: {from: t, to: u, key: id}}"))
    assert (
        with_comments(text, {("entities", "z"): ["no"], ("value_maps", "m"): ["no"], ("version", "x"): ["no"]}) == text
    )


def test_candidates_of_a_question_about_values_are_not_told() -> None:
    plan = parse_plan("entities: {a: {from: t, to: u, key: id, fields: {x: {from: x}}}}")
    said, _ = comments_of(plan, {}, [question("a.x", "secret", "remedy")])
    assert said == {("entities", "a", "fields", "x"): ["ask: x: secret", "     waiting for it: secret"]}


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace.open(JobPaths(tmp_path, "j").create(), write=True)


@pytest.mark.parametrize(
    ("said", "column", "shapes"),
    [
        ("contacts", "first_name", ("Aa+", "AA")),
        ("CONTACTS", "first_name", ()),
        ("SELECT m.id, m.first_name FROM contacts m", "first_name", ("Aa+", "AA")),
        ("SELECT m.*, e.mail FROM contacts m LEFT JOIN mails e ON e.id = m.id", "first_name", ("Aa+", "AA")),
        ("SELECT m.id, e.mail AS address FROM contacts m LEFT JOIN mails e ON e.id = m.id", "address", ("a+@a+.aa",)),
        ("SELECT m.id, j.mail FROM contacts m LEFT JOIN (SELECT x.id, MIN(x.mail) AS mail FROM mails x GROUP BY 1) j ON j.id = m.id", "mail", ("a+@a+.aa",)),
        ("SELECT m.`id`, m.`first_name` FROM `contacts` m", "first_name", ("Aa+", "AA")),
        ("SELECT first_name FROM contacts", "first_name", ("Aa+", "AA")),
        ("SELECT * FROM contacts", "first_name", ("Aa+", "AA")),
        ("SELECT mail FROM contacts, mails", "mail", ()),
        ("SELECT upper(m.first_name) AS n, 1 AS one FROM contacts m", "one", ()),
        ("SELECT m.nothing FROM contacts m", "nothing", ()),
        ("SELECT this is no SQL ((", "first_name", ()),
    ],
)  # fmt: skip
def test_shapes_are_of_the_column_that_a_field_draws_on(
    workspace: Workspace, said: str, column: str, shapes: tuple[str, ...]
) -> None:
    contacts = {"columns": {"id": {"shapes": [["9", 1]]}, "first_name": {"shapes": [["Aa+", 4], ["AA", 2], ["AA", 1]]}}}
    workspace.record(
        JobStarted("j", "sqlite:///a", "sqlite:///b"),
        TableProfiled("source", "contacts", contacts),
        TableProfiled("source", "mails", {"columns": {"mail": {"shapes": [["a+@a+.aa", 3]]}}}),
    )
    fields = {"f": {"sql": f"upper({column})"}, "g": {"default": 1}}
    plan = Plan.model_validate({"entities": {"c": {"from": said, "to": "p", "key": "id", "fields": fields}}})
    found = field_evidence(workspace, plan)
    assert {key: each.shapes for key, each in found.items()} == ({("c", "f"): shapes} if shapes else {})


def test_the_runner_up_is_the_best_that_was_not_taken(workspace: Workspace) -> None:
    candidates = [
        {"answer": "column:a", "label": "a", "weight": 0.3}, {"answer": "column:b", "label": "b", "weight": 0.95},
        {"answer": "column:c", "label": "c", "weight": 0.31}, {"answer": "column:d", "weight": None},
    ]  # fmt: skip
    workspace.record(
        JobStarted("j", "sqlite:///a", "sqlite:///b"),
        DecisionMade("field:e.f", "field", "e.f", "column:b", "choose", 0.95, candidates),
        DecisionMade("country:e.f", "country", "e.f", "US", "ask", 1.0),
        DecisionMade("value_map:e.f", "value_map", "e.f", "{}", "rule", 1.0),
        PlanChanged(1, "version: 1\nentities: {}\n", "rule"),
    )
    plan = Plan.model_validate(
        {"entities": {"e": {"from": "t", "to": "p", "key": "id", "fields": {"f": {"sql": "b"}}}}}
    )
    found = field_evidence(workspace, plan)["e", "f"]
    assert (found.rung, found.sure, found.next_best) == ("choose", 0.95, ("c", 0.31))
    assert found.beside == {"country": "ask", "value_map": "rule"}


SOURCE = """
CREATE TABLE contacts (id INTEGER PRIMARY KEY, last_name TEXT, email_address TEXT, notes TEXT);
INSERT INTO contacts VALUES (1, 'Wintergreen', 'wintergreen@example.com', 'x'), (2, 'Ray', 'ray@example.com', 'y'), (3, 'Ng', 'no mail', 'x');
"""
TARGET = "CREATE TABLE people (id INTEGER PRIMARY KEY, last_name TEXT, email TEXT, rating INTEGER);"


def test_a_draft_tells_what_its_fields_rest_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PACKHORSE_DATA_HOME", str(tmp_path / "data-home"))
    sqlite_source(tmp_path / "legacy.db", SOURCE)
    with sqlite3.connect(tmp_path / "cloud.db") as connection:
        connection.executescript(TARGET)
    connection.close()
    made = migrate_here(
        "plan", "draft", "sqlite:///legacy.db", "sqlite:///cloud.db", "--job", "j", "--model", "none", "-o", "d.yaml"
    )
    assert made.code == 0, made
    text = Path("d.yaml").read_text()
    lines = text.splitlines()
    at = next(n for n, line in enumerate(lines) if line.startswith("      last_name: "))
    assert lines[at - 1].startswith("      # by rule, 0.9")
    assert "like 'Aa+' 'Aaa' 'Aa'" in lines[at - 1]
    (asked,) = [line for line in lines if "ask: email" in line]
    assert asked == "    # ask: email (text) is left out; out of which column? nearest: email_address 0.83"
    for value in ("Wintergreen", "wintergreen", "ray@", "no mail"):
        assert value not in text
    assert migrate_here("plan", "diff", "1", "d.yaml", "--json").json["changed"] == []
    assert migrate_here("plan", "check", "d.yaml").code == 0
