"""The same systems, model and log give the same decisions and the same plan; a log is replayed without a model."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from agent.draft import draft
from agent.job import JobRequest, draft_job, run_job
from agent.ladder import Budget
from agent.models.open import open_model
from agent.models.protocol import Choice, Prompt, Text
from agent.models.scripted import ScriptedModel
from connectors.dsn import open_source, open_target
from connectors.protocols import Catalogue, Source
from engine.plan import dump_plan, parse_plan
from sample_data import CLOUD_SQL, write_sample
from sample_data.servers import Database, PostgresServer
from workspace.events import DecisionMade, PlanChanged, QuestionAsked, event_fields
from workspace.log import Workspace
from workspace.paths import JobPaths
from workspace.state import state_at

ZONE = "America/New_York"
DECIDED = [DecisionMade, QuestionAsked, PlanChanged]


@pytest.fixture(scope="module")
def crm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("crm") / "crm.db"
    write_sample("sqlite", file, 200)
    return file


@pytest.fixture
def legacy(crm: Path) -> Iterator[Source]:
    source = open_source(f"sqlite:///{crm}")
    yield source
    source.close()


@pytest.fixture(scope="module")
def database(postgres: PostgresServer) -> Database:
    database = postgres.new_database()
    database.run(CLOUD_SQL.read_text(encoding="utf-8"))
    return database


@pytest.fixture(scope="module")
def cloud(database: Database) -> Catalogue:
    target = open_target(database.socket_dsn)
    catalogue = target.catalogue()
    target.close()
    return catalogue


def _log(workspace: Workspace) -> list[dict[str, Any]]:
    """What was decided, asked and planned, in order; seconds are the clock's and no decision's."""
    events = [{"type": e.event.type, **event_fields(e.event)} for e in workspace.events(types=DECIDED)]
    return [{**event, "seconds": None} for event in events]


def test_the_same_model_decides_the_same_twice(legacy: Source, cloud: Catalogue, tmp_path: Path) -> None:
    told = []
    for name in ("first", "second"):
        model, encoder = open_model("embedded")
        assert model is not None
        with Workspace.open(JobPaths(tmp_path, name), write=True) as workspace:
            unhurried = Budget(seconds=1e9)  # else the clock of a busy machine could end the asking
            made = draft(legacy, cloud, workspace, model=model, encoder=encoder, zone=ZONE, budget=unhurried)
            told.append((dump_plan(made.plan), dump_plan(made.whole), made.held, made.open_fields, _log(workspace)))
        model.close()
    assert told[0] == told[1]
    events = told[0][-1]
    assert any(event.get("calls") for event in events), "the model has to be asked something"
    assert any(event.get("cached_tokens") for event in events), "and its cache to serve some of it"


class Refuses:
    """A model that nobody may ask."""

    name = "scripted"
    worth: float | None = 0.99

    def choose(self, prompt: Prompt, options: Sequence[str]) -> Choice:
        raise AssertionError(f"asked: {prompt.question}")

    def write(self, prompt: Prompt, grammar: str, max_tokens: int = 200) -> Text:
        raise AssertionError(f"asked: {prompt.question}")

    def close(self) -> None:
        """Nothing to free."""


def _often_sure(prompt: Prompt, options: Sequence[str]) -> tuple[float, ...] | int:
    return 0 if len(prompt.question) % 2 else tuple(1 / len(options) for _ in options)


def test_a_finished_job_is_replayed_without_a_model(
    crm: Path, database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PACKHORSE_DATA_HOME", str(tmp_path / "data"))
    settings: dict[str, Any] = {"yes": True, "job": "job", "zone": ZONE, "base": tmp_path}
    request = JobRequest(f"sqlite:///{crm}", database.socket_dsn, **settings)
    model = ScriptedModel(rule=_often_sure, worth=0.99)
    done = run_job(request, deciders=lambda: (model, None))
    assert model.asked
    assert done.loaded is not None
    with Workspace.open(JobPaths(tmp_path, "job")) as workspace:
        folded, before = state_at(workspace).belief, _log(workspace)
    assert parse_plan(folded.plan, "the log") == done.plan
    assert {event["rung"] for event in before if event["type"] == "decision_made"} >= {"rule", "choose"}
    for name, deciders, spec in (("refusing", lambda: (Refuses(), None), None), ("none", None, "none")):
        shutil.copytree(tmp_path / ".packhorse", tmp_path / name / ".packhorse")
        again = draft_job(
            JobRequest(f"sqlite:///{crm}", database.socket_dsn, **{**settings, "base": tmp_path / name, "model": spec}),
            deciders=deciders,
        )
        assert dump_plan(again.plan) == dump_plan(done.plan)
        with Workspace.open(JobPaths(tmp_path / name, "job")) as workspace:
            assert _log(workspace) == before, "nothing is decided, asked or planned anew"
