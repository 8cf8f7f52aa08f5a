"""The schema of plans: every plan of this repository is valid by it, and it refuses what the parser refuses, no more."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from cli.plan_schema import schema_line
from engine.plan import Plan, dump_plan, parse_plan
from engine.plan_schema import plan_schema
from engine.plan_texts import TEXTS
from tests.cli_runner import migrate_here
from tests.test_docs import PAGES, blocks
from tests.test_engine_plan import GOOD, PLANS, WRONG
from workspace.errors import PlanError

ROOT = Path(__file__).parent.parent
VALIDATOR = Draft202012Validator(plan_schema())
FILES = [
    *sorted((ROOT / "bench" / "scenarios").glob("*/gold.yaml")),
    *sorted((ROOT / "sample_data").glob("*plan.yaml")),
    ROOT / "cli" / "plan_to_start_from.yaml",
]
SHOWN = [
    pytest.param("\n".join(block.lines), id=f"{page.name}:{block.line}")
    for page in PAGES
    for block in blocks(page)
    if block.language == "yaml" and any(line.startswith("entities:") for line in block.lines)
]
# What the parser alone sees: it compares names with each other, or asks what Python takes for a letter or whole number.
MEANING = re.compile(r"together says where|can't be a condition's name|Input should be a valid integer")


def read(text: str) -> Any:
    """The document as an editor has it: keys are texts."""
    return _texts(YAML(typ="safe").load(text))


def _texts(node: Any) -> Any:
    if isinstance(node, dict):
        return {"" if key is None else str(key): _texts(value) for key, value in node.items()}
    return [_texts(each) for each in node] if isinstance(node, list) else node


def refusal(text: str) -> str | None:
    """What the parser says against a plan; None where it takes it."""
    try:
        parse_plan(text)
    except PlanError as error:
        return error.what
    return None


def test_it_is_a_schema_and_every_key_is_described() -> None:
    Draft202012Validator.check_schema(plan_schema())
    assert plan_schema()["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    parts = {Plan.__name__: plan_schema(), **plan_schema()["$defs"]}
    described = {(name, key) for name, part in parts.items() for key in part["properties"]}
    assert described == {(model.__name__, key) for model, key in TEXTS}
    for part in parts.values():
        assert all(about["description"] and "](" not in about["description"] for about in part["properties"].values())
    for page in re.findall(r"docs/[\w/-]+\.md", json.dumps(plan_schema())):
        assert (ROOT / page).exists(), page


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(ROOT)))
def test_plans_of_the_repository_are_valid(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    assert [error.message for error in VALIDATOR.iter_errors(read(text))] == []
    assert refusal(text) is None


@pytest.mark.parametrize("text", SHOWN)
def test_plans_of_the_manual_are_valid(text: str) -> None:
    assert [error.message for error in VALIDATOR.iter_errors(read(text))] == []
    assert refusal(text) is None


def test_there_were_plans_to_look_at() -> None:
    assert len(FILES) >= 11
    assert len(SHOWN) >= 8


@pytest.mark.parametrize("text", [text for text, _, _ in WRONG])
def test_a_wrong_plan_is_wrong_by_both(text: str) -> None:
    assert refusal(text) is not None
    try:
        document = read(text)
    except YAMLError:
        return  # no schema gets to see it
    assert not VALIDATOR.is_valid(document)


ENTITY = {"from": "a", "to": "b", "key": "id", "fields": {"x": {"from": "a"}}}
ENTITY_PARTS = [
    # what it is for, the entity's keys, whether it is a plan
    ("a key of several columns", {"key": ["a", "b"]}, True),
    ("no key", {"key": []}, True),
    ("a key of numbers", {"key": [1]}, False),
    ("a key that is none", {"key": None}, False),
    ("a watermark by its column", {"watermark": "changed"}, True),
    ("a watermark with its overlap", {"watermark": {"column": "changed", "overlap": 0}}, True),
    ("a watermark without a column", {"watermark": {"overlap": 5}}, False),
    ("an overlap below zero", {"watermark": {"column": "changed", "overlap": -1}}, False),
    ("an overlap as a text", {"watermark": {"column": "changed", "overlap": "60"}}, False),
    ("conditions by name", {"where": {"in force": "a = 1", "v1.2-x_y": "b"}}, True),
    ("no condition", {"where": {}}, False),
    ("a blank condition", {"where": {"a": "  "}}, False),
    ("a condition with a strange name", {"where": {"a=b": "c"}}, False),
    ("a condition whose name begins with a blank", {"where": {" a": "c"}}, False),
    ("a condition whose name is a letter of another script", {"where": {"größer": "c", "в силе": "d"}}, True),
    ("a condition's name that is too long", {"where": {"a" * 61: "c"}}, False),
    ("where is a list", {"where": ["a"]}, False),
    ("after is a text", {"after": "accounts"}, False),
    ("deleted by its column alone", {"deleted": "deleted_at"}, False),
    ("revive as a word", {"deleted": {"column": "d", "revive": "yes"}}, True),
    ("revive as a word in capitals", {"deleted": {"column": "d", "revive": "OFF"}}, True),
    ("revive as a number", {"deleted": {"column": "d", "revive": 1}}, True),
    ("revive as another number", {"deleted": {"column": "d", "revive": 2}}, False),
    ("revive as another word", {"deleted": {"column": "d", "revive": "maybe"}}, False),
    ("the parser's own name of a key", {"fields": {"x": {"from_": "a"}}}, False),
    ("merge by a rule", {"merge": {"same": "email"}}, True),
    ("merge by rules", {"merge": {"same": ["email", ["a", "b"]]}}, True),
    ("merge by nothing", {"merge": {}}, False),
    ("merge by no rule", {"merge": {"same": []}}, False),
    ("merge by an empty rule", {"merge": {"same": [[]]}}, False),
    ("merge by likeness", {"merge": {"by": {"a": "name"}, "block": "b"}}, True),
    ("merge by likeness of an unknown kind", {"merge": {"by": {"a": "sound"}, "block": "b"}}, False),
    ("likeness without a block", {"merge": {"by": {"a": "name"}}}, False),
    ("a block without likeness", {"merge": {"same": "c", "block": "b"}}, False),
    ("an empty block and no likeness", {"merge": {"same": "c", "block": [], "by": {}}}, True),
    ("a threshold of one", {"merge": {"same": "c", "threshold": 1}}, False),
    ("a threshold as a text", {"merge": {"same": "c", "threshold": "0.9"}}, False),
    ("the newest survives", {"merge": {"same": "c", "survivor": {"newest": "u"}, "fields": {"a": "own"}}}, True),
    ("newest and oldest survive", {"merge": {"same": "c", "survivor": {"newest": "u", "oldest": "v"}}}, False),
    ("newest, and oldest is none", {"merge": {"same": "c", "survivor": {"newest": "u", "oldest": None}}}, True),
    ("who survives isn't said", {"merge": {"same": "c", "survivor": {}}}, False),
    ("the tallest survives", {"merge": {"same": "c", "survivor": "tallest"}}, False),
    ("an opt-out that stays", {"merge": {"same": "c", "strictest": {"o": True, "p": "no"}}}, True),
    ("match by a column", {"match": {"by": "email"}}, True),
    ("match by several rules", {"match": {"by": [["a", "b"], "c"], "fill": ["x"], "several": "new"}}, True),
    ("match by nothing", {"match": {"by": []}}, False),
    ("match by an empty rule", {"match": {"by": ["a", []]}}, False),
    ("match without rules", {"match": {"fill": "all"}}, False),
    ("match fills some", {"match": {"by": "a", "fill": "some"}}, False),
    ("a field of nothing", {"fields": {"x": {"from": None}}}, False),
    ("a field of no expression", {"fields": {"x": {"sql": None}}}, False),
    ("a field that is nothing in each row", {"fields": {"x": {"default": None}}}, True),
    ("a default beside an empty map", {"fields": {"x": {"default": 1, "map": None, "ref": ""}}}, True),
    ("a default of several", {"fields": {"x": {"default": [1]}}}, False),
    ("null as YAML has it", {"fields": {"x": {"from": "a", "otherwise": None, "ref": "r", "missing": None}}}, True),
    ("a reason that isn't a text", {"unmapped": {"x": 1}}, False),
    ("a field that is a text", {"fields": {"x": "a"}}, False),
]  # fmt: skip


@pytest.mark.parametrize(("part", "good"), [each[1:] for each in ENTITY_PARTS], ids=[each[0] for each in ENTITY_PARTS])
def test_shapes_that_an_entity_may_have(part: dict[str, Any], good: bool) -> None:
    document = {"entities": {"t": {**ENTITY, **part}}}
    assert (refusal(json.dumps(document)) is None) is good
    assert VALIDATOR.is_valid(document) is good


WORDS = ["", "a", "id", "null", "keep", "quarantine", "newest", "complete", "exact", "yes", "größer", "a b"]
KEYS = sorted({key for _, key in TEXTS} | {"x", "from_", "newest", "a b", "größer"})
VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-2, 3), st.sampled_from([0.5, 0.99, 3.0]), st.sampled_from(WORDS)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(KEYS), inner, max_size=3)),
    max_leaves=5,
)
WHOLE = json.dumps(
    {
        **read(GOOD),
        "entities": {
            **read(GOOD)["entities"],
            "merged": {
                **ENTITY, "where": {"a": "b"}, "watermark": {"column": "c", "overlap": 5},
                "merge": {
                    "same": ["a", ["b", "c"]], "by": {"a": "name"}, "block": ["b"], "threshold": 0.9, "apart": "x",
                    "survivor": {"newest": "u"}, "fields": {"a": "own", "b": {"oldest": "v"}}, "together": [["d", "e"]],
                    "strictest": {"o": True},
                },
                "match": {"by": [["a"], "b"], "fill": ["x"], "several": "new", "strictest": {"o": False}},
            },
        },
    }
)  # fmt: skip


def _places(node: Any) -> list[tuple[Any, Any]]:
    """Every place of a document: what holds it, and its key or number there."""
    keys = node if isinstance(node, dict) else range(len(node)) if isinstance(node, list) else ()
    return [place for key in keys for place in ((node, key), *_places(node[key]))]


@st.composite
def changed_plans(draw: st.DrawFn) -> Any:
    """A plan with everything in it, in which a few places were taken out, exchanged or given a key more."""
    document = json.loads(WHOLE)
    for _ in range(draw(st.integers(1, 3))):
        holder, key = draw(st.sampled_from(_places(document)))
        match draw(st.sampled_from(["out", "other", "more", "renamed"])):
            case "out":
                del holder[key]
            case "other":
                holder[key] = draw(VALUES)
            case "more" if isinstance(holder[key], dict):
                holder[key][draw(st.sampled_from(KEYS))] = draw(VALUES)
            case "renamed" if isinstance(holder, dict):
                holder[draw(st.sampled_from(KEYS))] = holder.pop(key)
    return document


@given(changed_plans())
@example(json.loads(WHOLE))
@settings(max_examples=400, deadline=None)
def test_any_change_of_a_plan_is_judged_alike(document: Any) -> None:
    said = refusal(json.dumps(document, ensure_ascii=False))
    wrong = next(VALIDATOR.iter_errors(document), None)
    if wrong is not None:
        assert said is not None, f"refused by the schema alone: {wrong.message}"
    elif said is not None:
        assert MEANING.search(said), f"refused by the parser alone: {said}"


@given(PLANS)
@settings(max_examples=60, deadline=None)
def test_any_plan_that_is_written_is_valid(plan: Plan) -> None:
    assert [error.message for error in VALIDATOR.iter_errors(read(dump_plan(plan)))] == []


def test_the_command_prints_it_and_keeps_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert migrate_here("plan", "schema").json == plan_schema()
    assert migrate_here("plan", "schema", "-o", "s.json").code == 0
    assert json.loads(Path("s.json").read_text()) == plan_schema()
    Path("s.json").write_text("mine")
    migrate_here("plan", "schema", "-o", "s.json").refused("PH-101", "there is a file of that name", "--force")
    assert Path("s.json").read_text() == "mine"
    assert migrate_here("plan", "schema", "-o", "s.json", "--force").code == 0
    assert json.loads(Path("s.json").read_text()) == plan_schema()
    migrate_here("plan", "schema", "-o", "nowhere/s.json").refused("PH-101", "cannot be written")


def test_the_line_leads_from_the_plan_to_the_schema(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "plans" / "old").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    for plan in (None, Path("p.yaml"), Path("plans/old/p.yaml"), tmp_path / "p.yaml"):
        address = schema_line(plan).removeprefix("# yaml-language-server: $schema=").strip()
        found = (plan.parent if plan else tmp_path) / address
        assert json.loads(found.read_text(encoding="utf-8")) == plan_schema()
    assert (tmp_path / ".packhorse" / ".gitignore").read_text() == "*\n"


def test_no_line_where_there_is_no_address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Editors end an address at a blank; and a plan needs no schema to be written."""
    (tmp_path / "a b").mkdir()
    monkeypatch.chdir(tmp_path / "a b")
    assert schema_line(Path("../p.yaml")) == ""
    assert migrate_here("init", "../p.yaml").code == 0
    assert (tmp_path / "p.yaml").read_text().startswith("# A plan")
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".packhorse").write_text("a file")
    assert schema_line(None) == ""
