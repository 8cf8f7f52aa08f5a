"""What a model sees is bounded in tokens in a job of 12 tables or 400, by choosing whole items: no value is masked."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from agent.draft import draft
from agent.ladder import Budget, Ladder
from agent.matter import Matter, Option
from agent.models.counting import Count, counter_of, estimated
from agent.models.data_block import data_block, neutralise, plain_words
from agent.models.embedded import embedded_model_path
from agent.models.llamacpp import LlamaCpp
from agent.models.masked import masked
from agent.models.native import token_counter
from agent.models.pairs import branches
from agent.models.protocol import NONE_OF_THESE, Match, Prompt
from agent.models.scripted import ScriptedModel
from agent.view import QUESTION_TOKENS, VIEW_TOKENS, question_view, shortened, tokens_of, values_within, view
from bench.scenarios import scenarios
from bench.views import seen
from connectors.dsn import open_source, open_target
from sample_data.servers import PostgresServer
from workspace.events import BeliefHeld, LessonLearnt, QuestionAsked
from workspace.log import Workspace
from workspace.paths import JobPaths
from workspace.state import state_at

SCRIPTS = [
    "a remark that somebody wrote down after a long talk on the telephone",
    "客户在电话里说了很多话然后我们把所有的内容都记录在这里以便以后查看",
    "заметка, которую кто-то записал после долгого разговора по телефону",
    "ملاحظة كتبها شخص ما بعد محادثة طويلة على الهاتف مع العميل",
    "सभी ग्राहकों के साथ फ़ोन पर हुई लंबी बातचीत के बाद लिखी गई टिप्पणी",
    "หมายเหตุที่มีคนเขียนไว้หลังจากคุยโทรศัพท์เป็นเวลานานกับลูกค้า",
    "고객과 전화로 긴 통화를 한 뒤에 누군가가 적어 둔 메모입니다",
]
PLACED = [
    "accounts", "contacts", "leads", "campaigns", "notes", "tasks", "calls", "meetings", "products", "invoices", "documents", "users",
]  # fmt: skip
LONG = "of_the_person_who_was_called_by_the_second_office_in_the_old_system"


@pytest.fixture(scope="module")
def count() -> Count:
    return token_counter(embedded_model_path())


def _source(file: Path, tables: int, wide: int) -> None:
    """Twelve tables that have a place in the target, and others beside them; all have columns that could be the description,
    with long names, in many scripts, and dates that nobody can read."""
    with sqlite3.connect(file) as connection:
        for number in range(tables):
            name = PLACED[number] if number < 12 else f"archive_{number}_{LONG}"[:63]
            odd = [SCRIPTS[(number + n) % len(SCRIPTS)].replace(" ", "_")[:50] for n in range(3)]
            texts = ["comments", "remarks", f"notes_{LONG}", *(f"remarks {text}" for text in odd)]
            filler = [f"extra_{n}_{LONG}"[:63] for n in range(wide)]
            columns = ["last_name", "email", "born", *texts, *filler]
            quoted = ", ".join(f'"{column}" TEXT' for column in columns)
            connection.execute(f'CREATE TABLE "{name}"(id INTEGER PRIMARY KEY, {quoted})')
            rows = [
                (
                    n, f"Berg{'abcdefgh'[n % 8]}", f"a{n}@b.example", f"{1960 + n}.{n % 12 + 1}.{n % 28 + 1}",
                    *(f"{SCRIPTS[(n + k) % len(SCRIPTS)]} {n} " * 40 for k in range(len(texts))), *[None] * wide,
                )
                for n in range(14)
            ]  # fmt: skip
            places = ", ".join("?" * (len(columns) + 1))
            connection.executemany(f'INSERT INTO "{name}" VALUES ({places})', rows)


def _target(file: Path) -> None:
    with sqlite3.connect(file) as connection:
        for name in PLACED:
            connection.execute(
                f"CREATE TABLE {name}(id INTEGER PRIMARY KEY, last_name TEXT NOT NULL, email TEXT, born DATE,"
                " description TEXT, remarks_of_the_person_who_was_called_by_the_second_office TEXT)"
            )


def _torn(prompt: Prompt, options: Sequence[str]) -> tuple[float, ...] | str:
    return tuple(1 / len(options) for _ in options) if options else "trim(born)"


@pytest.mark.parametrize(("tables", "wide"), [(12, 6), (400, 12)])
def test_every_view_of_a_job_is_within_its_room(tmp_path: Path, count: Count, tables: int, wide: int) -> None:
    _source(tmp_path / "crm.db", tables, wide)
    _target(tmp_path / "cloud.db")
    source, target = open_source(f"sqlite:///{tmp_path}/crm.db"), open_target(f"sqlite:///{tmp_path}/cloud.db")
    model = ScriptedModel(rule=_torn, worth=0.99)
    with Workspace.open(JobPaths(tmp_path, "j"), write=True) as workspace:
        draft(source, target.catalogue(), workspace, model=model, zone="UTC", budget=Budget(calls=5_000))
    source.close()
    target.close()
    choices = [(prompt, options) for prompt, options in model.asked if options]
    written = [prompt for prompt, options in model.asked if not options]
    assert len(choices) >= 12
    assert all(tokens_of(prompt, options, count) <= QUESTION_TOKENS for prompt, options in choices)
    assert len(written) >= 12
    assert all(_whole(prompt, count) <= VIEW_TOKENS for prompt in written)


@pytest.mark.parametrize(
    "name", ["hubspot/portal", "salesforce/export", "zoho/export", "access_german/office", "suitecrm/instance"]
)
def test_the_right_candidate_is_in_the_view(name: str, postgres: PostgresServer) -> None:
    scenario = next(each for each in scenarios("train", "dev") if each.name == name)
    found = seen(scenario, postgres)
    assert found.known >= 30
    assert found.present >= 0.99 * found.known, found.hidden
    assert found.largest <= QUESTION_TOKENS


def _whole(prompt: Prompt, count: Count) -> int:
    return count("\n".join([plain_words(prompt.system), plain_words(prompt.question), data_block(prompt.data)]))


def test_nothing_is_shown_otherwise_where_there_is_room(count: Count) -> None:
    match = Match("people.mobile", values={"tel": ["555-0101", "555-0102", "555-0103"], "fax": ["555-0900"]})
    options = [Option("column:tel", "tel", 0.6), Option("column:fax", "fax", 0.3)]
    matter = Matter("field", "people.mobile", "Which column is it?", tuple(options), match=match)
    prompt, labels = question_view(matter, options, count)
    assert prompt.question == "Which column is it?"
    assert labels == ["tel", "fax", NONE_OF_THESE]
    assert prompt.data == "tel: 555-0101 | 555-0102 | 555-0103; fax: 555-0900"
    assert prompt.match == match


@pytest.mark.parametrize("text", SCRIPTS)
@pytest.mark.parametrize("repeat", [1, 8])
def test_a_question_of_any_script_and_length_is_within_its_room(text: str, repeat: int, count: Count) -> None:
    name = " ".join([text] * repeat)
    options = [Option(f"column:{n}", f"{n} {name}", 0.9 - n / 10) for n in range(7)]
    values = {option.label: [f"{n} {name}" for n in range(3)] for option in options}
    matter = Matter(
        "field", f"people.{name}", f"New column: {name} (text). Which column of {name} does it come from?", tuple(options),
        match=Match(f"people.{name}", values=values), brief=f"New column: {name}. From which column of {name}?",
    )  # fmt: skip
    prompt, labels = question_view(matter, options, count)
    assert tokens_of(prompt, labels, count) <= QUESTION_TOKENS
    assert labels[0].startswith("0")
    assert len(labels) >= 4, "the best of them, by the ends of their names"
    assert len(set(labels)) == len(labels)
    assert prompt.match is not None
    _, ways = branches(prompt.match, labels)
    assert all(count("".join(way)) <= QUESTION_TOKENS for way in ways)


@pytest.mark.parametrize("text", SCRIPTS)
def test_a_value_that_is_shown_is_shown_as_it_is(text: str, count: Count) -> None:
    options = [Option("column:remarks", "remarks", 0.5), Option("column:comments", "comments", 0.4)]
    match = Match("people.description", values={"remarks": [text, text + "2"], "comments": ["call back on day 1"]})
    matter = Matter("field", "people.description", "Which column does it come from?", tuple(options), match=match)
    prompt, _ = question_view(matter, options, count)
    assert text[:40] in prompt.data or count(text[:40]) > 85
    assert prompt.data
    asked = Matter("value", "people.kind", "Which label means the same as the value?", tuple(options), data=text[:60])
    prompt, labels = question_view(asked, options, count)
    assert prompt.data
    assert text.startswith(prompt.data)
    assert tokens_of(prompt, labels, count) <= QUESTION_TOKENS


def test_the_best_options_are_shown_and_none_of_these_settles_nothing_where_others_are_not(
    tmp_path: Path, count: Count
) -> None:
    options = [Option(f"column:{n}", f"{n} {SCRIPTS[n % 7]}", 0.9 - n / 10) for n in range(7)]
    matter = Matter("field", "people.note", " ".join(SCRIPTS[:3]), tuple(options))
    _, labels = question_view(matter, options, count)
    assert 2 < len(labels) < 8
    assert [label[0] for label in labels[:-1]] == [str(n) for n in range(len(labels) - 1)]
    with Workspace.open(JobPaths(tmp_path, "j"), write=True) as workspace:
        model = ScriptedModel(rule=lambda prompt, options: len(options) - 1, sure=0.999, worth=0.999)
        unsure = [replace(option, weight=0.1) for option in options]
        assert Ladder(workspace, model=model).decide(replace(matter, options=tuple(unsure), none_weight=0.8)).open
        few = replace(matter, subject="people.fax", options=tuple(unsure[:2]), none_weight=0.8)
        assert not Ladder(workspace, model=model).decide(few).open
        assert len(model.asked) == 4, "each once more with plain names"


def test_names_are_cut_by_their_middle_and_only_where_they_have_to_be(count: Count) -> None:
    assert shortened("short", 10, count) == "short"
    cut = shortened("beginning " + "and so on " * 50 + "end", 12, count)
    assert cut.startswith("beginning")
    assert cut.endswith("end")
    assert count(cut) <= 12


def test_values_are_left_out_whole(count: Count) -> None:
    shown = values_within(["a" * 30, SCRIPTS[4], "b1"], 40, count)
    assert shown == f"{'a' * 30} | b1"


def test_a_masked_prompt_shows_the_shapes_of_no_more_values_than_were_chosen(count: Count) -> None:
    options = [Option(f"column:c{n}", f"c{n}", 0.5) for n in range(7)]
    values = {option.label: [f"{text} {option.label}" for text in SCRIPTS[:3]] for option in options}
    matter = Matter("field", "p.q", "Which?", tuple(options), match=Match("p.q", values=values))
    prompt, _ = question_view(matter, options, count)
    hidden = masked(prompt).data
    assert hidden.count(" | ") + hidden.count("; ") == prompt.data.count(" | ") + prompt.data.count("; ")
    assert "remark" not in hidden


def test_an_estimate_is_never_below_what_the_embedded_tokenizer_counts(count: Count) -> None:
    for text in [*SCRIPTS, "", "x", LONG, "2004-05-06 07:08:09", "{}[]()<>|'\";--", "🐎" * 20, "a" * 500]:
        assert count(text) <= estimated(text) <= len(text.encode()), text
    assert counter_of(ScriptedModel()) is estimated


def test_a_view_shows_what_bears_on_the_question_and_leaves_the_rest_out_whole(tmp_path: Path, count: Count) -> None:
    with Workspace.open(JobPaths(tmp_path, "j"), write=True) as workspace:
        workspace.record(
            *(BeliefHeld(f"table_{n}.born", "holds dates", {"share": 0.9, "example": "SECRET"}) for n in range(2_000)),
            *(
                QuestionAsked(f"format:table_{n}.born", "format", f"table_{n}.born", "Which form?")
                for n in range(2_000)
            ),
            LessonLearnt("table_7.born: cast date", "null", True),
        )
        state = state_at(workspace)
    question = "the form of table_7.born"
    shown = view(state, "carry the records over", question, ["propose", "ask"], [f"map {n}" for n in range(900)], count)
    assert count(shown) <= VIEW_TOKENS
    lines = dict(line.split(" ", 1) for line in shown.splitlines())
    assert lines["KNOWN"].startswith("table_7.born holds dates (1.00, share 0.9)")
    assert "SECRET" not in shown
    assert lines["LEARNT"] == "table_7.born: cast date: null held 1 of 1"
    assert "format:table_7.born" in shown
    assert "2000 in all" in shown
    assert "map 899" in lines["CHANGED"]
    assert lines["QUESTION"] == question
    assert list(lines)[:2] == ["GOAL", "ACTIONS"], "what changes least comes first"


@pytest.mark.parametrize("text", SCRIPTS)
def test_a_view_is_bounded_however_much_there_is_to_say(text: str, tmp_path: Path, count: Count) -> None:
    with Workspace.open(JobPaths(tmp_path, "j"), write=True) as workspace:
        workspace.record(*(BeliefHeld(f"question {text} {n}", text * 5) for n in range(200)))
        state = state_at(workspace)
    shown = view(state, text * 500, f"question {text * 500}", [text * 90] * 50, [text * 50] * 90, count)
    assert count(shown) <= VIEW_TOKENS


def test_the_embedded_model_reads_no_more_than_its_view() -> None:
    model = LlamaCpp(embedded_model_path(), context=2048, threads=1)
    options = [Option(f"column:{n}", f"{n} {SCRIPTS[n]}", 0.9 - n / 10) for n in range(7)]
    values = {option.label: [text * 2 for text in SCRIPTS[:3]] for option in options}
    match = Match("people.description", values=values)
    matter = Matter("field", "people.description", "Which column?", tuple(options), match=match)
    prompt, labels = question_view(matter, options, counter_of(model))
    for asked in (prompt, replace(prompt, match=None)):
        price = model.choose(asked, labels).price
        assert price.prompt_tokens <= VIEW_TOKENS
    assert model.count_tokens(neutralise(prompt.question)) == token_counter(embedded_model_path())(prompt.question)
    model.close()
