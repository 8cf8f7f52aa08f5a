"""MigrationBench: each scenario's gold plan gives its gold output, and what is measured can be bad as well as good."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import agent.job
from agent.job import run_job
from agent.job_request import JobRequest
from agent.models.protocol import NONE_OF_THESE, Match, Prompt
from bench.ablation import REFUSED, without
from bench.eval_compare import compare
from bench.eval_curve import chart, points
from bench.eval_curve import table as curve_table
from bench.eval_families import table
from bench.eval_figures import MEASURES, figure, figures
from bench.eval_matchers import Task, by_family, by_names, recall, tasks
from bench.eval_runs import cells, read_results, run_cells, setting
from bench.evaluate import Result
from bench.gold_kinds import answer_kinds, told_kinds
from bench.oracle import ERRORS, OracleModel, Quality
from bench.renamed import renamed
from bench.scenarios import Scenario, scenarios, splits
from bench.scenarios.maker import Maker
from bench.score import score
from engine.plan import EntityPlan
from sample_data.servers import PostgresServer
from tests.cli_runner import migrate
from workspace.errors import UsageError
from workspace.signature import column_pattern


@pytest.mark.parametrize("scenario", scenarios(), ids=lambda s: s.name)
def test_the_gold_plan_gives_the_gold_output(scenario: Scenario, postgres: PostgresServer, tmp_path: Path) -> None:
    maker = Maker(scenario, tmp_path, seed=2)
    scenario.records().make(maker, **scenario.options)
    maker.close()
    for fault in {"new_value", "source_drift"} & scenario.fault.keys():
        maker.change(scenario.fault[fault])
    database = postgres.new_database()
    database.run(scenario.file("target.sql").read_text(encoding="utf-8"))
    database.run(scenario.fault.get("new_constraint", "SELECT 1"))
    source = f"sqlite:///{tmp_path / 'source.db'}"
    outcome = run_job(
        JobRequest(
            source, database.socket_dsn, plan_path=scenario.file("gold.yaml"), job="gold", yes=True, base=tmp_path,
            tolerate=0.5,  # what no plan can read is for quarantine, and one scenario is full of it
        )
    )  # fmt: skip
    assert outcome.verification is not None
    assert outcome.verification.ok
    found = score(database.socket_dsn, tmp_path / "truth")
    assert found.perfect, found.report()
    postgres.drop(database)


def test_rows_are_the_same_for_the_same_seed_alone(tmp_path: Path) -> None:
    (scenario,) = scenarios("hubspot/portal")
    written = []
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        maker = Maker(scenario, tmp_path / name, seed)
        scenario.records().make(maker, **scenario.options)
        maker.close()
        written.append((tmp_path / name / "source.db").read_bytes())
    assert written[0] == written[1] != written[2]


def test_every_family_has_one_split() -> None:
    assert {s.family for s in scenarios()} == set(splits())


def test_a_value_that_nobody_foresaw_is_asked_about_and_its_rows_come_in(tmp_path: Path) -> None:
    (result,) = run_cells(cells(scenarios("hubspot/new_stage"), [setting("none", None, 0.9)], 1), None)
    assert (result.completed, result.recovered, result.wrong, result.extra) == (True, 1, 0, 0), result.notes
    assert result.needed < result.asked


def test_a_job_that_was_killed_counts_as_made_good_where_its_output_is_right(tmp_path: Path) -> None:
    (result,) = run_cells(cells(scenarios("hubspot/killed"), [setting("none", None, 0.9)], 1), None)
    assert not any("before it could be killed" in note for note in result.notes)
    assert (result.faults, result.recovered, result.completed) == (1, 1, True), result.notes


def test_a_decider_that_is_always_wrong_and_sure_of_it_shows_in_the_figures(tmp_path: Path) -> None:
    (result,) = run_cells(cells(scenarios("hubspot/portal"), [setting(None, "0,overconfident", 0.9)], 1), None)
    assert result.calls > 0
    assert result.wrong + result.extra > 0
    assert result.rungs["choose"][1] > 0
    assert not result.completed


def test_a_second_job_has_the_experience_of_the_first_and_asks_less(tmp_path: Path) -> None:
    """Over columns of other names; without experience it asks more than the first."""
    found = {}
    for ablated in (None, "experience"):
        chosen = setting(None, "0.99", 0.9, ablated, second=True)
        (found[ablated],) = run_cells(cells(scenarios("hubspot/portal"), [chosen], 1), None)
    learnt, bare = found[None], found["experience"]
    assert learnt.setting == "oracle 0.99 independent, second job"
    assert (learnt.completed, learnt.wrong, learnt.extra) == (True, 0, 0), learnt.notes
    assert learnt.calls * 2 <= learnt.calls_before < bare.calls
    assert learnt.rungs["experience"][0] > 10
    assert learnt.rungs["experience"][1] == 0
    assert "experience" not in bare.rungs


def test_more_than_half_of_the_columns_are_renamed_and_the_right_plan_with_them(tmp_path: Path) -> None:
    (scenario,) = scenarios("zoho/export")
    schema = {"Contacts": ["Record Id", "Account Name.id", "Phone", "Mailing Country", "Email", "Mobile"]}
    other = renamed(scenario, schema)
    names = other.names["Contacts"]
    assert len(names) == 4
    assert all(column_pattern(before) != column_pattern(after) for before, after in names.items())
    (before, after) = (plan.entities["Contacts"].fields["phone"].expression for plan in (scenario.gold(), other.gold()))
    for old, new in names.items():
        before = before.replace(f'"{old}"', f'"{new}"')
    assert after.casefold() == before.casefold()
    assert other.names != renamed(scenario, schema, 2).names


@pytest.mark.parametrize(("scenario", "why"), [("suitecrm/instance", "by a SELECT"), ("hubspot/killed", "its faults")])
def test_a_second_job_that_cannot_be_made_is_refused_in_a_line(scenario: str, why: str, tmp_path: Path) -> None:
    done = migrate("eval", scenario, "--second-job", "--model", "none", cwd=tmp_path)
    assert done.code == 2
    assert why in done.err
    assert "Traceback" not in done.err


def test_without_the_ladder_the_rules_decide_nothing_and_a_bad_model_everything(tmp_path: Path) -> None:
    bare = setting(None, "0,overconfident", 0.9, "ladder")
    (result,) = run_cells(cells(scenarios("hubspot/portal"), [bare], 1), None)
    assert set(result.rungs) <= {"choose", "ask"}
    assert (result.right, result.completed) == (0, False)
    assert result.missing > 20  # sure of the wrong table, or of none: its fields are left out and nobody is asked
    assert result.setting == "oracle 0 overconfident without ladder"


@pytest.mark.parametrize(
    ("model", "parts", "word"),
    [
        *[("none", part, f"{part} can.t be switched off") for part in REFUSED],
        ("none", "ladder", "there is none"),
        ("none", "luck", "luck"),
        ("none", ",", "names no part"),
    ],
)
def test_what_can_not_be_switched_off_is_refused_by_name(model: str, parts: str, word: str) -> None:
    with pytest.raises(UsageError, match=word):
        setting(model, None, 0.9, parts)


def test_without_experience_a_job_opens_no_store() -> None:
    assert agent.job._experience() is not None
    with without(frozenset({"experience"})):
        assert agent.job._experience() is None


def test_the_oracle_knows_tables_and_values_too_where_it_is_right() -> None:
    (scenario,) = scenarios("zoho/export")
    oracle = OracleModel(scenario, {}, Quality(1.0))

    def said(question: str, data: str, *options: str) -> str:
        return options[oracle.choose(Prompt("", question, data), options).index]

    table = "Which table of the target do the 1,075 rows of Deals go to?"
    assert said(table, "", "company", "deal", NONE_OF_THESE) == "deal"
    value = "Which label means the same as the value? Field Deals.phase."
    assert said(value, "Qualification", "won", "qualifying", NONE_OF_THESE) == "qualifying"
    assert said(value, "no such stage", "won", "qualifying", NONE_OF_THESE) == NONE_OF_THESE


@pytest.mark.parametrize(
    ("scenario", "field", "offered", "wanted"),
    [
        ("zoho/export", "contact_person.mobile", ["Phone", "Mobile", "Mailing Country"], "Mobile"),  # phone(x, country)
        ("zoho/export", "contact_person.company_id", ["id", "Account Name.id"], "Account Name.id"),  # a dot in the name
        ("suitecrm/instance", "calls.contact_id", ["parent_type", "parent_id"], "parent_id"),  # CASE ... THEN parent_id
        (
            "suitecrm/instance", "calls.duration_minutes",
            ["duration_minutes", "duration_hours * 60 + duration_minutes"], "duration_hours * 60 + duration_minutes",
        ),
        ("suitecrm/instance", "calls.duration_minutes", ["duration_minutes", "duration_hours"], NONE_OF_THESE),
        ("hubspot/portal", "users.name", ["firstname", "firstname + lastname", "lastname"], "firstname + lastname"),
    ],
)  # fmt: skip
def test_the_oracle_knows_what_a_value_is_made_of(scenario: str, field: str, offered: list[str], wanted: str) -> None:
    (found,) = scenarios(scenario)
    oracle = OracleModel(found, {"Contacts": ["id", "Account Name.id", "Mobile"]}, Quality(1.0))
    options = [*offered, NONE_OF_THESE]
    assert options[oracle.choose(Prompt("", "", match=Match(field)), options).index] == wanted


def test_the_curve_has_a_point_a_quality_and_leaves_other_settings_out() -> None:
    results = [
        _result("a/one", setting="oracle 0.9 near"),
        _result("b/one", setting="oracle 0.9 near", completed=False, wrong=1),
        _result("a/one", setting="rules"),
        _result("a/one", setting="oracle 0.9 near without ladder"),
    ]
    found = points(results)
    assert [(p.errors, p.right, p.count, p.figures["completed"]) for p in found] == [
        ("rules", 0.0, 1, 1.0), ("near", 0.9, 2, 0.5)
    ]  # fmt: skip
    assert curve_table(found).splitlines()[3].startswith("| near | 0.9 | 2 | 50% | 5.00 |")
    assert chart(found).count("<circle") == 3  # a point in each panel


def test_a_matcher_is_scored_by_as_many_pairs_as_there_are_right_ones() -> None:
    task = Task("a", {"Phone": ["1"], "Fax": ["2"], "E Mail": ["x"]}, ["phone", "email", "fax_no"],
                frozenset({("Phone", "phone"), ("E Mail", "email")}))  # fmt: skip
    ranked = by_names(task)
    assert ranked[0] == ("Phone", "phone")
    assert len(ranked) == len({s for s, _ in ranked}) == len({t for _, t in ranked}) == 3
    assert recall(task, [("Phone", "phone"), ("Fax", "fax_no"), ("E Mail", "email")]) == 0.5
    other = Task("b", {}, [], frozenset({("a", "a")}))
    assert by_family([task, other], [[], [("a", "a")]]) == {"a": 0.0, "b": 1.0}


def test_right_pairs_are_those_of_the_gold_plan_that_draw_on_one_column(tmp_path: Path) -> None:
    (scenario,) = scenarios("hubspot/portal")
    found = tasks(scenario, tmp_path)
    assert {t.family for t in found} == {"hubspot"}
    assert len(found) == len(scenario.gold().entities)
    assert all(t.right and {s for s, _ in t.right} <= set(t.source) for t in found)
    assert all({column for _, column in t.right} <= set(t.target) for t in found)


def _result(scenario: str = "a/one", **told: object) -> Result:
    family = scenario.split("/")[0]
    made = Result(
        scenario,
        family,
        "train",
        "rules",
        completed=True,
        outcome="done",
        right=9,
        open=1,
        decided=9,
        asked=1,
        rows=100,
    )
    return replace(made, **told)  # type: ignore[arg-type]


def test_figures_are_means_over_families_with_intervals_over_families() -> None:
    results = [_result("a/one"), _result("a/two"), _result("a/three"), _result("b/one", completed=False)]
    found = figure(results, MEASURES[0])
    assert found is not None
    assert (found.value, found.low, found.high) == (0.5, 0.0, 1.0)
    assert figures(results)["faults made good"] is None
    assert figures(results[:3])["completed"].low is None  # type: ignore[union-attr]


def test_the_table_by_family_sums_what_its_scenarios_came_to() -> None:
    rows = table(
        [
            _result("b/one", split="dev"),
            _result("a/one"),
            _result("a/two", completed=False, wrong=2, strayed=3, missing=1),
        ]
    )
    assert rows.splitlines()[2:] == [
        "| a | train | 1 of 2 | 0.0% | 18 of 23 | 5 | 3 | 1 | 2 | 0 |",
        "| b | dev | 1 of 1 | 0.0% | 9 of 10 | 0 | 0 | 0 | 1 | 0 |",
    ]


TOLD = [
    ("SELECT * FROM p WHERE kind = 'C'", None, "SELECT * FROM p WHERE kind = 'P'", None, "kind: C=firms; P=people"),
    ("p", "is_firm = 1 AND deleted = 0", "p", "is_firm = 0 AND deleted = 0", "is_firm: 1=firms; 0=people"),
    ("p", {"other kind": "kind IS NULL"}, "p", "kind = 'P'", "kind: P=people; (empty)=firms"),
    ("p", None, "p", None, ""),
]


@pytest.mark.parametrize(("firms", "where", "people", "also", "wanted"), TOLD)
def test_a_person_who_knows_the_gold_plan_tells_the_kinds_in_a_table(
    firms: str, where: object, people: str, also: object, wanted: str
) -> None:
    entities = [
        EntityPlan.model_validate({"from": source, "to": to, "where": condition, "key": "id"})
        for source, to, condition in ((firms, "firms", where), (people, "people", also))
    ]
    assert told_kinds(entities) == wanted
    wrong = "kind: C=people; P=firms"
    if wanted:
        assert answer_kinds([wrong, wanted], entities) == wanted
    else:
        assert answer_kinds([wrong], entities) == "none"


def test_a_run_that_was_ended_goes_on_in_its_file(tmp_path: Path) -> None:
    file = tmp_path / "results.jsonl"
    wanted = cells(scenarios("hubspot/portal"), [setting("none", None, 0.9)], 1)
    (first,) = run_cells(wanted, file)
    with file.open("a", encoding="utf-8") as out:
        out.write('{"repeat": 2, "scenario": "hub')  # killed while it wrote
    (again,) = run_cells(wanted, file)
    assert again == first
    assert len(list(read_results(file))) == 1
    file.write_text("a letter\n", encoding="utf-8")
    with pytest.raises(UsageError) as error:
        list(run_cells(wanted, file))
    assert error.value.where == f"{file}:1"


def test_a_comparison_names_what_is_better_and_worse() -> None:
    before = [_result("a/one"), _result("a/two"), _result("a/three", wrong=2), _result("b/one")]
    after = [_result("a/one", completed=False), _result("a/two", wrong=1), _result("a/three"), _result("c/one")]
    found = compare(before, after)
    assert [m.scenario for m in found.moved if m.worse] == ["a/one", "a/two"]
    assert [m.scenario for m in found.moved if m.better] == ["a/three"]
    assert found.only == ("b/one", "c/one")


@pytest.mark.parametrize("text", ["1.5", "often", "0.9,sometimes", "-1", "nan"])
def test_an_oracle_without_a_share_is_refused_in_a_line(text: str) -> None:
    with pytest.raises(UsageError):
        Quality.parse(text)


def test_an_oracle_says_how_it_errs() -> None:
    assert [Quality.parse(f"0.9,{errors}").errors for errors in ERRORS] == list(ERRORS)


def test_the_command_lists_scenarios_and_refuses_others(tmp_path: Path) -> None:
    listed = migrate("eval", "--list", "--json", cwd=tmp_path)
    assert {"name": "hubspot/portal", "split": "train", "faults": []} in listed.json["scenarios"]
    migrate("eval", "nobody/nothing", cwd=tmp_path).refused("PH-101", "no such scenario", "nobody/nothing")
