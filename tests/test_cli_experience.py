"""`migrate experience`: what was learnt, what of it goes out, and what is forgotten."""

from __future__ import annotations

import json
from pathlib import Path

import pexpect
import pytest

from tests.cli_runner import MIGRATE, environment, migrate_here
from workspace.events import ActionTaken, DecisionMade, FeedbackGiven
from workspace.events_questions import QuestionAnswered, QuestionAsked
from workspace.experience_store import ExperienceStore
from workspace.log import Workspace
from workspace.paths import JobPaths

MAP = json.dumps({"Großkunde": "enterprise"}, ensure_ascii=False)
REMEDY = "otherwise: \x1b[31m"


@pytest.fixture(autouse=True)
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A store with a lesson of each kind, one of which never held."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PACKHORSE_DATA_HOME", str(tmp_path / "data-home"))
    with ExperienceStore.open() as made:
        for held in (True, True, True, False):
            made.record("match", "kunden.tel_firma", "customers.phone", held)
        made.record("failure", "born: cast date: '99/99/9999'", REMEDY, False)
        made.record("value_map", "size to enterprise|small", MAP, True)
        return made.file


def test_list_has_the_most_trusted_first_and_nothing_raw() -> None:
    listed = migrate_here("experience", "list")
    lines = listed.out.splitlines()
    assert [line.split()[0] for line in lines] == ["kind", "match", "value_map", "failure"]
    assert "\x1b" not in listed.out
    assert "otherwise: \\x1b[31m" in listed.out
    assert "otherwise: \\x1b[31m" in migrate_here("experience", "show", "born: cast date: '99/99/9999'").out
    told = migrate_here("experience", "list", "--json", "--limit", "1").json
    assert told["lessons"] == 3
    assert [(each["tried"], each["held"]) for each in told["shown"]] == [(4, 3)]
    only = migrate_here("experience", "list", "--kind", "failure", "--json").json
    assert [each["remedy"] for each in only["shown"]] == [REMEDY]


def test_show_finds_by_a_part_and_says_what_is_near() -> None:
    assert "held       3 of 4 times" in migrate_here("experience", "show", "TEL_FIRMA").out
    migrate_here("experience", "show", "kunden.tel_firm9").refused("PH-101", "kunden.tel_firma")


def test_values_go_out_only_when_it_is_said(tmp_path: Path) -> None:
    shown = migrate_here("experience", "export", "-o", "known.json")
    assert "Großkunde" not in (tmp_path / "known.json").read_text(encoding="utf-8")
    assert "goes out: 1 failure, 1 match, in known.json" in shown.err
    assert "stays here: 1 value_map" in shown.err
    assert (tmp_path / "known.json").stat().st_mode & 0o077 == 0
    migrate_here("experience", "export", "--kind", "value_map").refused("PH-101", "--with-values")
    whole = json.loads(migrate_here("experience", "export", "--with-values").out)
    assert [each["remedy"] for each in whole["lessons"] if each["kind"] == "value_map"] == [MAP]


def test_what_goes_out_comes_in_elsewhere_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    migrate_here("experience", "export", "-o", "known.json")
    monkeypatch.setenv("PACKHORSE_DATA_HOME", str(tmp_path / "elsewhere"))
    assert migrate_here("experience", "import", "known.json").out.startswith("2 lessons")
    assert migrate_here("experience", "import", "known.json").out.startswith("0 lessons")
    assert migrate_here("experience", "list", "--json").json["lessons"] == 2


@pytest.mark.parametrize("text", ["{", '{"packhorse_experience": 1, "lessons": [{"kind": "match"}]}', "[]", "\x00"])
def test_what_is_no_experience_is_refused_whole(tmp_path: Path, text: str) -> None:
    (tmp_path / "odd.json").write_text(text)
    migrate_here("experience", "import", "odd.json").refused("PH-401", "odd.json")
    assert migrate_here("experience", "list", "--json").json["lessons"] == 3


def test_files_that_are_not_there() -> None:
    migrate_here("experience", "import", "none.json").refused("PH-101", "none.json")
    migrate_here("experience", "export", "-o", "no/such/folder.json").refused("PH-101", "no/such/folder.json")


def test_forget_takes_just_what_was_said() -> None:
    migrate_here("experience", "forget").refused("PH-101", "--all")
    migrate_here("experience", "forget", "--all", "--kind", "match", "--yes").refused("PH-101")
    migrate_here("experience", "forget", "--signature", "Kunden.Tel_Firma").refused("PH-101", "--yes")
    assert "no lesson" in migrate_here("experience", "forget", "--remedy", "customers", "--yes").out
    assert migrate_here("experience", "list", "--json").json["lessons"] == 3
    assert migrate_here("experience", "forget", "--signature", "Kunden.Tel_Firma", "--yes").out.startswith("1 lessons")
    assert {each["kind"] for each in migrate_here("experience", "list", "--json").json["shown"]} == {
        "value_map",
        "failure",
    }


@pytest.mark.parametrize(("answer", "code", "left"), [("n", 130, 3), ("y", 0, 0)])
def test_forget_asks_once_on_a_terminal(tmp_path: Path, answer: str, code: int, left: int) -> None:
    child = pexpect.spawn(MIGRATE, ["experience", "forget", "--all"], cwd=str(tmp_path), env=environment(
        tmp_path, {"PACKHORSE_DATA_HOME": str(tmp_path / "data-home")}), timeout=60, encoding="utf-8")  # fmt: skip
    child.expect("forget 3 lessons\\? \\[y/N\\]")
    child.sendline(answer)
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == code
    assert migrate_here("experience", "list", "--json").json["lessons"] == left


def _job(folder: Path) -> None:
    """A job that decided a field and a value, took an action that failed, and asked a person about another field."""
    options: list[dict[str, object]] = [
        {"answer": "column:mail", "label": "mail", "weight": 0.6, "evidence": {"names": 0.8}},
        {"answer": "column:mail2", "label": "mail2", "weight": 0.3, "evidence": {}},
    ]
    paths = JobPaths(folder, "moved")
    with Workspace.open(paths, write=True) as log:
        log.record(
            DecisionMade("field:people.email", "field", "people.email", "column:mail", "choose", 0.95, options, calls=1)
        )
        log.record(ActionTaken("map_field", {"sql": "Großkunde"}))
        log.record(FeedbackGiven("map_field", "refused", failed=[{"signature": "email: cast", "count": 3}]))
        log.record(DecisionMade("value:size", "value", "size", "Großkunde", "rule", 0.95))
        log.record(QuestionAsked("field:people.fax", "field", "people.fax", "Which column?", options))
        log.record(QuestionAnswered("field:people.fax", "sql: 'Großkunde'"))
        log.record(DecisionMade("field:people.fax", "field", "people.fax", "sql: 'Großkunde'", "ask", 1.0, options))
        log.record(QuestionAnswered("field:people.email", "column:mail2"))


def test_the_decisions_of_a_job_go_out_without_values(tmp_path: Path) -> None:
    _job(tmp_path)
    shown = migrate_here("experience", "export", "--trajectories", "--job", "moved", "-o", "steps.jsonl")
    assert "2 decisions of moved go out" in shown.err
    text = (tmp_path / "steps.jsonl").read_text(encoding="utf-8")
    assert "Großkunde" not in text
    email, fax = (json.loads(line) for line in text.splitlines())
    assert (email["decision"], email["answer"], email["right"]) == ("column:mail", "column:mail2", False)
    assert email["feedback"] == [{"action": "map_field", "outcome": "refused", "failed": ["email: cast"]}]
    assert [each["answer"] for each in email["options"]] == ["column:mail", "column:mail2"]
    assert (email["price"]["calls"], email["asked"], fax["asked"]) == (1, False, True)
    assert (fax["decision"], fax["right"], fax["question"]) == ("own words", None, "Which column?")
    whole = migrate_here("experience", "export", "--trajectories", "--with-values").out
    assert len(whole.splitlines()) == 3
    assert "Großkunde" in whole
    migrate_here("experience", "export", "--job", "moved").refused("PH-101", "--trajectories")
