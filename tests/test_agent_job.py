"""The agent drives the real engine: SQLite to PostgreSQL, without a person, with one, interrupted and resumed."""

from __future__ import annotations

import sqlite3
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from agent.draft import draft
from agent.job import JobOutcome, JobRequest, Step, resume_job, run_job
from agent.models.protocol import Prompt
from agent.models.scripted import ScriptedModel
from agent.questions import answer_question, open_questions
from connectors.dsn import open_source, open_target
from engine.plan import load_plan
from sample_data import CLOUD_SQL, write_sample
from sample_data.servers import Database, PostgresServer
from workspace.errors import InterruptedJobError, UsageError, WaitingForPersonError
from workspace.events import ActionTaken, DecisionMade, FeedbackGiven, JobFinished, PlanChanged, QuestionAsked
from workspace.lock import JobLock
from workspace.log import Workspace
from workspace.paths import JobPaths
from workspace.state import state_at

ZONE = "America/New_York"


@pytest.fixture(scope="module")
def crm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("crm") / "crm.db"
    write_sample("sqlite", file, 200)
    return file


@pytest.fixture(autouse=True)
def _own_experience(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PACKHORSE_DATA_HOME", str(tmp_path / "data"))


@pytest.fixture
def cloud(postgres_database: Database) -> Database:
    postgres_database.run(CLOUD_SQL.read_text(encoding="utf-8"))
    return postgres_database


def _request(crm: Path, cloud: Database, base: Path, **other: object) -> JobRequest:
    settings: dict[str, object] = {"model": "none", "yes": True, "job": "job", "zone": ZONE, "base": base, **other}
    return JobRequest(f"sqlite:///{crm}", cloud.socket_dsn, **settings)  # type: ignore[arg-type]


def _workspace(base: Path) -> Workspace:
    return Workspace.open(JobPaths(base, "job"))


def _dump(cloud: Database) -> dict[str, list[tuple[object, ...]]]:
    tables = [t for (t,) in cloud.rows("SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY 1")]
    return {t: cloud.rows(f'SELECT * FROM "{t}" ORDER BY 1, 2') for t in tables}


@pytest.fixture(scope="module")
def undisturbed(
    crm: Path, postgres: PostgresServer, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, list[tuple[object, ...]]]:
    """What a job leaves behind that nobody interrupts."""
    database = postgres.new_database()
    database.run(CLOUD_SQL.read_text(encoding="utf-8"))
    run_job(_request(crm, database, tmp_path_factory.mktemp("undisturbed")))
    return _dump(database)


def test_a_job_without_a_person_moves_what_it_is_sure_of_and_asks_the_rest(
    crm: Path, cloud: Database, tmp_path: Path
) -> None:
    steps: list[Step] = []
    outcome = run_job(_request(crm, cloud, tmp_path), progress=steps.append)
    assert outcome.outcome == "waiting"
    assert outcome.exit_code == 4
    assert outcome.verification is not None
    assert outcome.verification.ok
    assert outcome.loaded is not None
    assert outcome.loaded.inserted > 200
    assert outcome.held
    assert outcome.questions
    assert {"survey", "match", "preview", "stage", "load", "verify"} <= {s.phase for s in steps}
    assert cloud.rows("SELECT count(*) > 100 FROM people WHERE created_at IS NOT NULL") == [(True,)]
    with _workspace(tmp_path) as workspace:
        waiting = {q.id for q in open_questions(workspace)}
        assert {question for questions in outcome.held.values() for question in questions} <= waiting
        finished = [e.event for e in workspace.events(types=[JobFinished])]
        assert len(finished) == 1
        actions = [e.event for e in workspace.events(types=[ActionTaken, FeedbackGiven])]
        assert len([a for a in actions if isinstance(a, ActionTaken)]) * 2 == len(actions)
    assert (tmp_path / ".packhorse/jobs/job/plans/plan-1.yaml").exists()
    load_plan(tmp_path / ".packhorse/jobs/job/plans/plan-1.yaml")


def test_without_the_zone_nothing_moves_and_one_question_says_why(crm: Path, cloud: Database, tmp_path: Path) -> None:
    before = _dump(cloud)
    with pytest.raises(WaitingForPersonError):
        run_job(_request(crm, cloud, tmp_path, zone=None))
    assert _dump(cloud) == before
    with _workspace(tmp_path) as workspace:
        zone = open_questions(workspace)[0]
    assert zone.id == "zone:source"
    assert len(zone.holds) > 5
    assert zone.candidates[0]["answer"] == ZONE
    assert "config.value" in zone.evidence["settings name"]
    assert "too few times" in zone.evidence["why it is asked"]


def test_settings_and_times_that_agree_let_rows_move_without_a_zone(cloud: Database, tmp_path: Path) -> None:
    file = tmp_path / "crm.db"
    write_sample("sqlite", file, 2_000)
    outcome = run_job(_request(file, cloud, tmp_path, zone=None))
    assert outcome.loaded is not None
    assert outcome.verification is not None
    assert outcome.verification.ok
    assert outcome.loaded.inserted > 5_000
    with _workspace(tmp_path) as workspace:
        assert "zone:source" not in {q.id for q in open_questions(workspace)}
        decision = state_at(workspace).belief.decisions["zone", "source"].made
    assert (decision.choice, decision.rung) == (ZONE, "rule")
    assert "config.value" in decision.why
    with sqlite3.connect(file) as connection:
        (entered,) = connection.execute("SELECT max(date_entered) FROM contacts WHERE deleted = 0").fetchone()
    instant = datetime.fromisoformat(entered).replace(tzinfo=ZoneInfo(ZONE)).astimezone(UTC)
    assert cloud.rows("SELECT max(created_at) AT TIME ZONE 'UTC' FROM people") == [(instant.replace(tzinfo=None),)]


def test_answers_let_the_held_entities_go_and_nothing_is_asked_twice(
    crm: Path, cloud: Database, tmp_path: Path
) -> None:
    with pytest.raises(WaitingForPersonError):
        run_job(_request(crm, cloud, tmp_path, zone=None))
    with Workspace.open(JobPaths(tmp_path, "job"), write=True) as workspace:
        with pytest.raises(UsageError, match="no time zone"):
            answer_question(workspace, "zone:source", "New York")
        answer_question(workspace, "zone:source", ZONE)
        asked = [e.event.id for e in workspace.events(types=[QuestionAsked]) if isinstance(e.event, QuestionAsked)]
        for question in open_questions(workspace):
            if question.holds and question.candidates:
                answer_question(workspace, question.id, "1")
    outcome = resume_job("job", base=tmp_path)
    assert outcome.loaded is not None
    assert outcome.loaded.inserted > 500
    assert outcome.verification is not None
    assert outcome.verification.ok
    with _workspace(tmp_path) as workspace:
        again = [e.event.id for e in workspace.events(types=[QuestionAsked]) if isinstance(e.event, QuestionAsked)]
        assert len(again) == len(set(again))
        assert set(asked) <= set(again)
        ids = [e.event.id for e in workspace.events(types=[DecisionMade]) if isinstance(e.event, DecisionMade)]
        assert len([i for i in ids if i.startswith("field:")]) == len({i for i in ids if i.startswith("field:")})
    assert cloud.rows("SELECT count(*) FROM members") != [(0,)]


def test_a_dry_run_writes_nothing_to_the_target(crm: Path, cloud: Database, tmp_path: Path) -> None:
    before = _dump(cloud)
    outcome = run_job(_request(crm, cloud, tmp_path, dry_run=True))
    assert outcome.outcome == "dry run"
    assert outcome.exit_code == 0
    assert outcome.preview is not None
    assert outcome.preview.entities
    assert _dump(cloud) == before
    assert cloud.rows("SELECT count(*) FROM pg_namespace WHERE nspname = 'packhorse'") == [(0,)]


def test_whoever_declines_moves_nothing(crm: Path, cloud: Database, tmp_path: Path) -> None:
    outcome = run_job(_request(crm, cloud, tmp_path, yes=False), confirm=lambda preview: False)
    assert outcome.outcome == "declined"
    assert cloud.rows("SELECT count(*) FROM people") == [(0,)]


def test_a_second_run_of_a_finished_job_moves_nothing(crm: Path, cloud: Database, tmp_path: Path) -> None:
    run_job(_request(crm, cloud, tmp_path))
    before = _dump(cloud)
    again = run_job(_request(crm, cloud, tmp_path))
    assert again.loaded is not None
    assert not again.loaded.moved
    assert _dump(cloud) == before
    with _workspace(tmp_path) as workspace:
        assert len(list(workspace.events(types=[PlanChanged]))) == 1


@pytest.mark.parametrize("after", [3, 25, 45])
def test_an_interrupted_job_ends_like_an_undisturbed_one(
    crm: Path, cloud: Database, undisturbed: dict[str, list[tuple[object, ...]]], tmp_path: Path, after: int
) -> None:
    count = 0

    def stop() -> bool:
        nonlocal count
        count += 1
        return count > after

    with pytest.raises(InterruptedJobError):
        run_job(_request(crm, cloud, tmp_path), stop=stop)
    resume_job("job", base=tmp_path)
    assert _dump(cloud) == undisturbed


def test_a_second_process_on_the_same_job_is_told_so(crm: Path, cloud: Database, tmp_path: Path) -> None:
    from workspace.errors import JobLockedError

    paths = JobPaths(tmp_path, "job").create()
    with JobLock(paths), pytest.raises(JobLockedError):
        run_job(_request(crm, cloud, tmp_path))


def test_a_job_of_other_systems_is_refused(crm: Path, cloud: Database, tmp_path: Path) -> None:
    run_job(_request(crm, cloud, tmp_path, dry_run=True))
    other = tmp_path / "other.db"
    write_sample("sqlite", other, 200, seed=8)
    with pytest.raises(UsageError, match="other systems"):
        run_job(_request(other, cloud, tmp_path))


def test_a_password_is_kept_nowhere_and_asked_for_again(crm: Path, cloud: Database, tmp_path: Path) -> None:
    request = JobRequest(
        f"sqlite:///{crm}", cloud.dsn, model="none", yes=True, job="job", zone=ZONE, base=tmp_path, dry_run=True
    )
    run_job(request)
    secret = cloud.dsn.split(":")[2].split("@")[0]
    for file in (tmp_path / ".packhorse").rglob("*"):
        assert not file.is_file() or secret.encode() not in file.read_bytes(), file
    with pytest.raises(UsageError, match="password"):
        resume_job("job", base=tmp_path)


class Oracle:
    """Answers a `choose` as somebody who knows both systems would; `none of these` otherwise."""

    RIGHT = {
        "members.state": "status", "members.joined_at": "date_entered", "campaigns.channel": "campaign_type",
        "people.acquired_through": "lead_source", "deals.win_probability": "probability", "notes.author_id": "created_by",
        "leads.acquired_through": "lead_source", "leads.estimated_value": "opportunity_amount", "activities.state": "status",
        "tickets.solution": "resolution", "deals.acquired_through": "lead_source", "people.contract_signed_on": "contract_date_c",
    }  # fmt: skip

    def __call__(self, prompt: Prompt, options: object) -> str:
        wanted = next((v for k, v in self.RIGHT.items() if f"{k} (" in prompt.question), None)
        assert isinstance(options, tuple)
        return wanted if wanted is not None and wanted in options else "none of these"


def test_a_scripted_model_drives_the_draft_of_a_real_pair(crm: Path, cloud: Database, tmp_path: Path) -> None:
    model = ScriptedModel(rule=lambda prompt, options: Oracle()(prompt, tuple(options)))
    source, target = open_source(f"sqlite:///{crm}"), open_target(cloud.socket_dsn)
    with Workspace.open(JobPaths(tmp_path, "with"), write=True) as workspace:
        made = draft(source, target.catalogue(), workspace, model=model, zone=ZONE)
        chosen = [
            e.event
            for e in workspace.events(types=[DecisionMade])
            if isinstance(e.event, DecisionMade) and e.event.rung == "choose"
        ]
        questions = len(open_questions(workspace))
    with Workspace.open(JobPaths(tmp_path, "without"), write=True) as workspace:
        draft(source, target.catalogue(), workspace, zone=ZONE)
        assert questions < len(open_questions(workspace))
    source.close()
    target.close()
    assert model.asked
    assert len(chosen) >= 6
    # one call, and one more without the values where the answer settles the matter
    assert all(c.calls in (1, 2) and c.prompt_tokens for c in chosen)
    assert all(c.calls == 2 for c in chosen if c.choice is not None), chosen
    assert made.whole.entities["users"].fields["joined_at"].sql == f"local_time(date_entered, '{ZONE}')"
    assert made.whole.entities["contacts"].fields["acquired_through"].map == "contacts_acquired_through"


def test_the_outcome_names_the_job(crm: Path, cloud: Database, tmp_path: Path) -> None:
    outcome: JobOutcome = run_job(_request(crm, cloud, tmp_path, dry_run=True, job=None))
    assert (tmp_path / ".packhorse" / "jobs" / outcome.job / "workspace.db").exists()
