"""Hostile texts in a legacy system: what they can do to decisions, to a model's tokens and to what is shown.

Each scenario (tests/cases/agent/hostile.yaml) is drafted three times: with harmless words of the same length in the place of the
text, with the text, and with the text before a model that does as it is told.
"""

from __future__ import annotations

import re
import sqlite3
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from agent.draft import Draft, draft
from agent.models.data_block import neutralise, plain_words
from agent.models.embedded import embedded_model_path
from agent.models.llamacpp import LlamaCpp
from agent.models.protocol import NONE_OF_THESE, Prompt
from agent.models.scripted import ScriptedModel
from agent.questions import open_questions
from cli.drafted import plan_text
from cli.views.text import visible
from connectors.dsn import Dsn, open_source, open_target
from connectors.protocols import Catalogue, Kind
from engine.plan import parse_plan
from tests.cli_runner import migrate_here
from workspace.events import DecisionMade
from workspace.log import Workspace
from workspace.paths import JobPaths

TARGET = """
CREATE TABLE people(id INTEGER PRIMARY KEY, family_name TEXT NOT NULL, email TEXT, description TEXT,
  phone TEXT, status TEXT CHECK (status IN ('new', 'won', 'lost')));
"""
_CASES = Path(__file__).parent / "cases" / "agent" / "hostile.yaml"


@dataclass(frozen=True)
class Hostile:
    """One scenario of the file."""

    name: str
    text: str
    stands: str
    obeys: str
    word: str
    repeat: int = 1

    @property
    def whole(self) -> str:
        text = (self.text * self.repeat).strip()
        return f"remarks {text}" if self.stands == "column" else text  # a name that says nothing is no candidate at all

    @property
    def harmless(self) -> str:
        """Words of the same length; a picklist's keep the labels that they name, since those are evidence."""
        kept = re.search(r"won or lost", self.text)
        words = ("quiet grey stone " * (len(self.whole) // 16 + 1))[: len(self.whole)].strip()
        if self.stands == "column":
            words = ("γκρίζα πέτρα " * len(self.whole))[: len(self.whole)]  # names are read in words of Latin letters
        before = f"{kept[0]} " if kept else "remarks " if self.stands == "column" else ""
        return f"{before}{words}"[: len(self.whole)].strip()


SCENARIOS = [Hostile(**case) for case in YAML(typ="safe").load(_CASES)]
by_name = pytest.mark.parametrize("hostile", SCENARIOS, ids=lambda hostile: hostile.name)


@dataclass(frozen=True)
class Drafted:
    """What came of a draft: the decisions by id, the plan, and what the model was asked."""

    draft: Draft
    decisions: dict[str, tuple[object, str]]
    asked: list[tuple[Prompt, tuple[str, ...]]]
    text: str
    questions: int


def _source(folder: Path, stands: str, text: str) -> Path:
    """A CRM of one table and two columns that could be the description, so that a model is asked which."""
    file = folder / "crm.db"
    table = text if stands == "table" else "contacts"
    column = text if stands == "column" else "remarks"
    quoted = ['"' + name.replace('"', '""') + '"' for name in (table, column)]
    with sqlite3.connect(file) as connection:
        connection.execute(
            f"CREATE TABLE {quoted[0]}(id INTEGER PRIMARY KEY, last_name TEXT NOT NULL, email TEXT, comments TEXT,"
            f" {quoted[1]} TEXT, phone_home TEXT, status TEXT)"
        )
        rows = [
            (
                n, f"Berg{'abcdefgh'[n % 8]}", f"a{n}@b.example", f"call back on day {n}",
                text if stands == "value" else f"was out on day {n}", f"+1 555 01{n:02}",
                text if stands == "picklist" and n % 4 == 0 else ("won", "lost", "new")[n % 3],
            )
            for n in range(24)
        ]  # fmt: skip
        connection.executemany(f"INSERT INTO {quoted[0]} VALUES (?, ?, ?, ?, ?, ?, ?)", rows)
    connection.close()
    return file


def _target(folder: Path) -> Path:
    file = folder / "cloud.db"
    with sqlite3.connect(file) as connection:
        connection.executescript(TARGET)
    connection.close()
    return file


def _drafted(folder: Path, hostile: Hostile, text: str, *, obeys: bool) -> Drafted:
    """A plan drafted with a model that names the likeliest option, but for one that obeys the text where it sees it."""
    folder.mkdir()
    source = open_source(Dsn.parse(f"sqlite:///{_source(folder, hostile.stands, text)}"))
    target = open_target(Dsn.parse(f"sqlite:///{_target(folder)}"), "packhorse")

    def rule(prompt: Prompt, options: Sequence[str]) -> int:
        if obeys and hostile.word in _read(prompt, options):
            return _ordered(hostile, options)
        return len(options) - 1 if prompt.match is None and "label" in prompt.question else 0

    model = ScriptedModel(rule=rule)
    with Workspace.open(JobPaths(folder, "j"), write=True) as workspace:
        found = draft(source, _with_labels(target.catalogue()), workspace, model=model, zone="UTC")
        made = [e.event for e in workspace.events(types=[DecisionMade])]
        decisions = {
            _same(e.id, text): (_same(e.choice, text), e.rung) for e in made if isinstance(e, DecisionMade)
        }  # fmt: skip
        questions = open_questions(workspace)
        written = plan_text(found.whole, "sqlite:///crm.db", "sqlite:///cloud.db", "j", questions)
    source.close()
    target.close()
    return Drafted(found, decisions, model.asked, written, len(questions))


def _with_labels(catalogue: Catalogue) -> Catalogue:
    """The catalogue as a server with enumerations gives it: SQLite doesn't tell a CHECK's labels."""
    table = catalogue.tables["people"]
    columns = tuple(
        replace(c, kind=Kind.ENUM, labels=("new", "won", "lost")) if c.name == "status" else c for c in table.columns
    )
    return replace(catalogue, tables={**catalogue.tables, "people": replace(table, columns=columns)})


def _read(prompt: Prompt, options: Sequence[str]) -> str:
    """All that a model reads of a prompt, as its adapters hand it over."""
    return "\n".join([plain_words(prompt.question), neutralise(prompt.data), *map(neutralise, options)])


def _ordered(hostile: Hostile, options: Sequence[str]) -> int:
    column = hostile.whole if hostile.stands == "column" else "remarks"
    if hostile.obeys == "this" and column in options:
        return list(options).index(column)
    if hostile.obeys == "none":
        return list(options).index(NONE_OF_THESE)
    return 0 if hostile.obeys == "first" else len(options) - 2


def _same(value: object, text: str) -> object:
    """A name in a decision, whatever it was."""
    return value.replace(text, "TEXT") if isinstance(value, str) else value


def _fields(drafted: Drafted, text: str) -> dict[str, Any]:
    """What each field of the plan is made from."""
    quoted = text.replace('"', '""')
    return {
        column: _same(_same(field.expression, quoted), text)
        for entity in drafted.draft.whole.entities.values()
        for column, field in entity.fields.items()
    }


@by_name
def test_a_hostile_text_decides_nothing(hostile: Hostile, tmp_path: Path) -> None:
    harmless = _drafted(tmp_path / "harmless", hostile, hostile.harmless, obeys=False)
    plain = _drafted(tmp_path / "plain", hostile, hostile.whole, obeys=False)
    obeyed = _drafted(tmp_path / "obeyed", hostile, hostile.whole, obeys=True)
    assert any(hostile.word in _read(*asked) for asked in obeyed.asked), "the text has to stand in a prompt"
    assert _comparable(plain, hostile.whole) == _comparable(harmless, hostile.harmless)
    wanted, found = harmless.decisions, obeyed.decisions
    for matter, decision in found.items():
        if not matter.startswith("value_map:"):
            assert decision == wanted[matter], "a text may cost a question, never turn a decision"
    fields, harmless_fields = _fields(obeyed, hostile.whole), _fields(harmless, hostile.harmless)
    assert {c: harmless_fields[c] for c in fields} == fields
    assert _maps(obeyed, hostile.whole) == _maps(harmless, hostile.harmless)
    assert len(wanted) - len(found) <= 1


def _comparable(drafted: Drafted, text: str) -> tuple[object, ...]:
    decisions = {k: v for k, v in drafted.decisions.items() if not k.startswith("value_map:")}
    return decisions, _fields(drafted, text), _maps(drafted, text), drafted.questions


def _maps(drafted: Drafted, text: str) -> dict[object, object]:
    maps = drafted.draft.whole.value_maps.values()
    return {_same(value, text): label for value_map in maps for value, label in value_map.items()}


@by_name
def test_a_drafted_plan_shows_a_hostile_text_and_reads_back(hostile: Hostile, tmp_path: Path) -> None:
    drafted = _drafted(tmp_path / "plain", hostile, hostile.whole, obeys=False)
    _harmless_on_a_terminal(drafted.text)
    assert parse_plan(drafted.text).entities == drafted.draft.whole.entities


@pytest.mark.parametrize("stands", ["value", "column", "table"])
def test_commands_send_nothing_raw_to_a_terminal(stands: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "\x1b[2J\x1b]0;owned\x07\x9b31m\u202e<b>[red]=1+1"
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PACKHORSE_DATA_HOME", str(tmp_path / "data-home"))
    _source(tmp_path, stands, text)
    _target(tmp_path)
    dsns = ("sqlite:///crm.db", "sqlite:///cloud.db")
    shown = []
    for arguments in (
        ("plan", "draft", *dsns, "--job", "j", "--model", "none", "--zone", "UTC"),
        ("answer", "j"), ("inspect", "j"), ("inspect", "j", "--log"), ("status", "j"), ("jobs",), ("inspect", "j", "--json"),
        ("plan", "draft", *dsns, "--job", "j", "--model", "none", "--zone", "UTC", "-o", "plan.yaml"),
        ("plan", "check", "plan.yaml"), ("preview", "--plan", "plan.yaml"),
    ):  # fmt: skip
        result = migrate_here(*arguments)
        assert "Traceback" not in result.err
        assert "unexpected" not in result.err, result
        _harmless_on_a_terminal(result.out + result.err)
        shown.append(result.out + result.err)
    if stands != "value":
        assert any(visible("\x1b[2J") in each or "\\e[2J" in each for each in shown), (
            "the text has to be shown somewhere"
        )


def _harmless_on_a_terminal(text: str) -> None:
    steering = {
        c for c in text if unicodedata.category(c) in ("Cc", "Cf", "Zl", "Zp", "Co") and c not in "\n\u200c\u200d"
    }
    assert not steering


@pytest.fixture(scope="module")
def model() -> Iterator[LlamaCpp]:
    opened = LlamaCpp(embedded_model_path(), context=512, threads=1)
    yield opened
    opened.close()


@by_name
def test_no_control_token_comes_of_a_hostile_text(hostile: Hostile, model: LlamaCpp) -> None:
    clean = _control_tokens(model, Prompt("System", "Which?", "word"))
    for prompt in (
        Prompt("System", "Which?", hostile.whole),
        Prompt("System", f"Which, {hostile.whole[:120]}?", "word"),
        Prompt(f"System {hostile.whole[:120]}", "Which?", "word"),
    ):
        assert _control_tokens(model, prompt) == clean
    said = plain_words(hostile.whole[:400])
    assert not set(model.weights.tokens(said, special=True)) & set(model.weights.special), (
        "a server parses them out of text"
    )
    assert not re.search(r"\[/?\w+\]|<|«|»", said)


def _control_tokens(model: LlamaCpp, prompt: Prompt) -> list[int]:
    return [token for token in model._tokens(prompt, 64) if token in model.weights.special]
