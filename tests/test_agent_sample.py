"""What a draft of the sample comes to beside the gold plan: no silent error, and most of it without a person."""

from __future__ import annotations

import shutil
import sqlite3
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.draft import Draft, draft
from agent.models.open import open_model
from agent.questions import open_questions
from bench.plan_score import PlanScore, score_plan
from connectors.dsn import open_source, open_target
from connectors.protocols import Catalogue, Source
from engine.plan import dump_plan, load_plan
from sample_data import CLOUD_SQL, GOLD_PLAN, write_sample
from sample_data.servers import PostgresServer
from workspace.events import DecisionMade
from workspace.log import Workspace
from workspace.paths import JobPaths

GOLD = load_plan(GOLD_PLAN)
ZONE = "America/New_York"


@pytest.fixture(scope="module")
def cloud(postgres: PostgresServer) -> Catalogue:
    database = postgres.new_database()
    database.run(CLOUD_SQL.read_text(encoding="utf-8"))
    target = open_target(database.socket_dsn)
    catalogue = target.catalogue()
    target.close()
    return catalogue


@pytest.fixture(scope="module")
def legacy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Source]:
    file = tmp_path_factory.mktemp("sample") / "crm.db"
    write_sample("sqlite", file, 2_000)
    source = open_source(f"sqlite:///{file}")
    yield source
    source.close()


def _scored(source: Source, made: Draft) -> PlanScore:
    schema = {name: [c.name for c in table.columns] for name, table in source.catalogue().tables.items()}
    waiting = [(made.whole.entities[entity].to, column) for entity, column in made.open_fields]
    return score_plan(made.whole, GOLD, schema, waiting)


def _decided(score: PlanScore) -> float:
    """The share of the gold plan's fields, keys and filters left out, that were decided and are right."""
    fields = sum(len(e.fields) for e in GOLD.entities.values())
    return sum(not column.startswith("(") for _, _, column in score.right) / fields


def _rungs(workspace: Workspace) -> Counter[str]:
    return Counter(e.event.rung for e in workspace.events(types=[DecisionMade]) if isinstance(e.event, DecisionMade))


@pytest.mark.parametrize("zone", [ZONE, None])
def test_rules_alone_are_never_wrong_in_silence(
    legacy: Source, cloud: Catalogue, tmp_path: Path, zone: str | None
) -> None:
    with Workspace.open(JobPaths(tmp_path, "rules"), write=True) as workspace:
        score = _scored(legacy, draft(legacy, cloud, workspace, zone=zone))
        decided = {
            e.event.id: e.event for e in workspace.events(types=[DecisionMade]) if isinstance(e.event, DecisionMade)
        }
    assert decided["zone:source"].choice == ZONE
    assert decided["zone:source"].rung == ("ask" if zone else "rule")
    assert score.silent_errors == 0, score.report()
    assert _decided(score) >= 0.8
    assert not score.missing, score.report()


def test_times_that_contradict_the_setting_are_asked_about(legacy: Source, cloud: Catalogue, tmp_path: Path) -> None:
    shutil.copy(legacy.dsn.removeprefix("sqlite:///"), tmp_path / "crm.db")
    with sqlite3.connect(tmp_path / "crm.db") as connection:
        connection.execute("UPDATE config SET value = 'Europe/Berlin' WHERE name = 'default_timezone'")
    source = open_source(f"sqlite:///{tmp_path}/crm.db")
    with Workspace.open(JobPaths(tmp_path, "contradicted"), write=True) as workspace:
        made = draft(source, cloud, workspace)
        question = open_questions(workspace)[0]
    source.close()
    assert question.id == "zone:source"
    assert len(question.holds) > 5
    assert question.candidates[0]["answer"] == ZONE
    assert "Europe/Berlin" in question.evidence["settings name"]
    assert "contradict" in question.evidence["why it is asked"]
    assert "Europe/Berlin" not in dump_plan(made.whole)


def test_the_embedded_model_makes_no_error_either(legacy: Source, cloud: Catalogue, tmp_path: Path) -> None:
    model, encoder = open_model(None)
    assert model is not None
    with Workspace.open(JobPaths(tmp_path, "embedded"), write=True) as workspace:
        score = _scored(legacy, draft(legacy, cloud, workspace, model=model, encoder=encoder))
        rungs = _rungs(workspace)
    model.close()
    assert score.silent_errors == 0, score.report()
    assert _decided(score) >= 0.6
    assert rungs["rule"] > 100
