"""The plan as a document: what it says wrong is told with line and column, and what it says comes back the same."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.plan import EntityPlan, FieldPlan, Plan, dump_plan, load_plan, parse_plan
from workspace.errors import PlanError

GOOD = """\
version: 3
source: ${LEGACY}
target: ${CLOUD}
entities:
  contacts:
    from: contacts
    to: people
    where: deleted = 0
    key: [id, part]
    id: uuid5
    write: upsert
    deleted: {column: deleted_at, revive: true}
    after: [accounts]
    fields:
      name: {sql: "trim(concat_ws(' ', a, b))", otherwise: null}
      company_id: {from: account, ref: accounts, missing: null}
      state: {from: state, map: states, otherwise: keep}
      active: {default: true}
      note: {default: null}
    unmapped:
      portal: "no counterpart"
  accounts: {from: "SELECT * FROM accounts", to: companies, key: id}
value_maps:
  states: {1: one, no: negative, 1.5: half, null: nothing, yes: true, '0': 0, Ünï: null}
"""


def test_a_whole_plan() -> None:
    plan = parse_plan(GOOD)
    contacts = plan.entities["contacts"]
    assert (plan.version, plan.source, plan.target) == (3, "${LEGACY}", "${CLOUD}")
    assert (contacts.key, contacts.id, contacts.write, contacts.after) == (
        ("id", "part"),
        "uuid5",
        "upsert",
        ("accounts",),
    )
    assert contacts.deleted is not None
    assert (contacts.deleted.column, contacts.deleted.revive) == ("deleted_at", True)
    assert contacts.fields["name"].otherwise == "null"
    assert contacts.fields["company_id"].missing == "null"
    assert contacts.fields["active"].constant
    assert contacts.fields["note"].constant
    assert contacts.fields["note"].default is None
    assert contacts.fields["state"].expression == '"state"'
    assert (plan.entities["accounts"].key, plan.entities["accounts"].is_select, contacts.is_select) == (
        ("id",),
        True,
        False,
    )
    assert list(contacts.fields) == ["name", "company_id", "state", "active", "note"]


def test_keys_of_a_value_map_are_text() -> None:
    """YAML reads numbers and words; the source sends text."""
    states = parse_plan(GOOD).value_maps["states"]
    assert states["1"] == "one"
    assert states["1.5"] == "half"
    assert states[""] == "nothing"
    assert states["0"] == 0
    assert states["Ünï"] is None
    assert all(isinstance(key, str) for key in states)


def test_words_that_yaml_11_took_for_booleans_are_words() -> None:
    states = parse_plan(GOOD).value_maps["states"]
    assert states["no"] == "negative"
    assert states["yes"] is True
    assert parse_plan("entities: {}\nvalue_maps: {m: {on: 'x', off: no, n: y, NO: Norway}}").value_maps["m"] == {
        "on": "x", "off": "no", "n": "y", "NO": "Norway",
    }  # fmt: skip


WRONG = [
    ("", "plan:1:1", "a plan is a mapping"),
    ("- a", "plan:1:1", "a plan is a mapping"),
    ("just text", "plan:1:1", "a plan is a mapping"),
    ("version: 1", "plan:1:1", "entities: the key 'entities' is missing"),
    ("entities:\n  t: {from: a, to: b, key: id, colour: red}", "plan:2:32", "entities.t.colour: unknown key 'colour'"),
    ("entities:\n  t:\n    from: a\n    to: b\n    key: id\n    fields:\n      x: {form: a}", "plan:7:11", "entities.t.fields.x.form: unknown key 'form'"),
    ("entities:\n  t: {from: a, key: id}", "plan:2:3", "entities.t.to: the key 'to' is missing"),
    ("entities:\n  t: {from: a, to: b}", "plan:2:3", "entities.t.key: the key 'key' is missing"),
    ("entities:\n  t: {from: a, to: b, key: id, id: made-up}", "plan:2:32", "entities.t.id: Input should be 'keep', 'uuid5', 'sequence' or 'none'"),
    ("entities:\n  t: {from: a, to: b, key: id, write: replace}", "plan:2:32", "'insert' or 'upsert'"),
    ("entities:\n  t: {from: a, to: b, key: id, fields: {x: {}}}", "plan:2:41", "needs exactly one of from, sql, default"),
    ("entities:\n  t: {from: a, to: b, key: id, fields: {x: {from: a, sql: b}}}", "plan:2:41", "needs exactly one of from, sql, default, has from and sql"),
    ("entities:\n  t: {from: a, to: b, key: id, fields: {x: {from: a, default: b}}}", "plan:2:41", "has from and default"),
    ("entities:\n  t: {from: a, to: b, key: id, fields: {x: {default: 1, map: m}}}", "plan:2:41", "a default takes no map and no ref"),
    ("entities:\n  t: {from: a, to: b, key: id, fields: {x: {from: a, map: m, ref: r}}}", "plan:2:41", "takes a map or a ref, not both"),
    ("entities:\n  t: {from: a, to: b, key: id, fields: {x: {from: a, otherwise: skip}}}", "plan:2:54", "'quarantine', 'null' or 'keep'"),
    ("entities:\n  t: {from: a, to: b, key: id, fields: {x: {from: a, ref: r, missing: keep}}}", "plan:2:62", "'quarantine' or 'null'"),
    ("entities:\n  t: {from: a, to: b, key: id, fields: [x]}", "plan:2:32", "entities.t.fields"),
    ("entities:\n  t: {from: 7, to: b, key: id}", "plan:2:7", "entities.t.from: Input should be a valid string"),
    ("version: 0\nentities: {}", "plan:1:1", "version: Input should be greater than or equal to 1"),
    ("version: soon\nentities: {}", "plan:1:1", "version: Input should be a valid integer"),
    ("entities: {}\nvalue_maps:\n  m: [a]", "plan:3:3", "value_maps.m: Input should be a valid dictionary"),
    ("entities: {}\nvalue_maps: {m: {a: [1]}}", "plan:2:18", "value_maps.m.a"),
    ("entities: {}\nentites: {}", "plan:2:1", "entites: unknown key 'entites'"),
    ("entities:\n  t: {from: a", "plan:2:", "not valid YAML"),
    ("entities:\n\tt: 1", "plan:2:1", "not valid YAML"),
    ("entities:\n  t: 1\n t: 2", "plan:3:2", "not valid YAML"),
    ("entities:\n  a: {from: x, to: y, key: id}\n  a: {from: x, to: y, key: id}", "plan:3:3", "not valid YAML"),
    ("entities: *nowhere", "plan:1:11", "not valid YAML"),
    ("entities: !!python/object/apply:os.system ['true']", "plan:1:", ""),
    ("entities: {}\n---\nentities: {}", "plan:2:1", "not valid YAML"),
    ("entities: \x00", "plan", "not valid YAML"),
]  # fmt: skip
"""Plans that are none, the place that is told, and what is said of it."""


@pytest.mark.parametrize(("text", "where", "what"), WRONG)
def test_what_is_wrong_and_where(text: str, where: str, what: str) -> None:
    with pytest.raises(PlanError) as caught:
        parse_plan(text)
    error = caught.value
    assert error.where.startswith(where), f"{error.where}: {error.what}"
    assert what in error.what
    assert "\n" not in error.what + error.where + error.advice
    assert error.exit_code == 2


def test_a_file_that_is_not_there_or_not_text(tmp_path: Path) -> None:
    for path, what in ((tmp_path / "none.yaml", "no such plan"), (tmp_path, "cannot be read")):
        with pytest.raises(PlanError, match=what) as caught:
            load_plan(path)
        assert caught.value.where == str(path)
    (tmp_path / "latin1.yaml").write_bytes("entities: {ä: 1}".encode("latin-1"))
    with pytest.raises(PlanError, match="cannot be read"):
        load_plan(tmp_path / "latin1.yaml")


def test_a_file_with_a_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "plan.yaml"
    path.write_text(GOOD, encoding="utf-8-sig")
    assert load_plan(path) == parse_plan(GOOD)
    path.write_text("entities:\n  t: {from: a, to: b, key: id, colour: red}", encoding="utf-8")
    with pytest.raises(PlanError) as caught:
        load_plan(path)
    assert caught.value.where == f"{path}:2:32"


def test_written_and_read_again() -> None:
    plan = parse_plan(GOOD)
    assert parse_plan(dump_plan(plan)) == plan
    assert dump_plan(parse_plan(dump_plan(plan))) == dump_plan(plan)


def test_long_texts_that_are_written_as_escapes_come_back() -> None:
    left = {"0¡¡¡¡¡ĀĀ𐀀𐀀\U00018cd6": "¡¡¡Ā𐀀𐀀0 0", "note": "\u202eé 0" * 60}
    plan = Plan(entities={"t": EntityPlan.model_validate({"from": "a", "to": "b", "key": [], "unmapped": left})})
    assert parse_plan(dump_plan(plan)) == plan


NAMES = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=12)
SCALARS = st.one_of(st.none(), st.booleans(), st.integers(-(10**9), 10**9), NAMES)
FIELDS = st.one_of(
    st.builds(lambda c: FieldPlan.model_validate({"from": c}), NAMES),
    st.builds(lambda s: FieldPlan.model_validate({"sql": s}), NAMES),
    st.builds(lambda v: FieldPlan.model_validate({"default": v}), SCALARS),
    st.builds(lambda c, r: FieldPlan.model_validate({"from": c, "ref": r, "missing": "null"}), NAMES, NAMES),
    st.builds(lambda c, m, o: FieldPlan.model_validate({"from": c, "map": m, "otherwise": o}), NAMES, NAMES, st.sampled_from(["quarantine", "null", "keep"])),
)  # fmt: skip
ENTITIES = st.builds(
    lambda f, t, k, i, w, fields, left: EntityPlan(
        **{"from": f, "to": t, "key": k, "id": i, "write": w, "fields": fields, "unmapped": left}
    ),
    NAMES, NAMES, st.lists(NAMES, max_size=3).map(tuple), st.sampled_from(["keep", "uuid5", "sequence", "none"]), st.sampled_from(["insert", "upsert"]),
    st.dictionaries(NAMES, FIELDS, max_size=4), st.dictionaries(NAMES, NAMES, max_size=3),
)  # fmt: skip
PLANS = st.builds(
    lambda v, e, m: Plan(version=v, entities=e, value_maps=m),
    st.integers(1, 99), st.dictionaries(NAMES, ENTITIES, max_size=3), st.dictionaries(NAMES, st.dictionaries(NAMES, SCALARS, max_size=4), max_size=2),
)  # fmt: skip


@given(PLANS)
@settings(max_examples=60, deadline=None)
def test_any_plan_written_and_read_again(plan: Plan) -> None:
    """Whatever names and words it holds - no, null, 1e3, # and : among them - it comes back equal."""
    assert parse_plan(dump_plan(plan)) == plan


@given(st.text(max_size=200))
@settings(max_examples=200, deadline=None)
def test_any_text_is_a_plan_or_one_line(text: str) -> None:
    try:
        parse_plan(text)
    except PlanError as error:
        lines = (error.what + error.where).count("\n")
    else:
        lines = 0
    assert lines == 0
