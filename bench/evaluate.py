"""One scenario under one setting, from an empty target to a scored one, with a person who knows the right answers.

The job drafts alone first: what it decided then is held against the gold plan. Then the scenario's faults strike, the
job runs, and the person answers what it asks until it is done or nothing more can be answered. Never lets a job see the
gold plan, the truth or another job's experience.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import engine.faults
from agent.job import Deciders, draft_job, run_job
from agent.job_request import JobOutcome, JobRequest
from agent.ladder import AUTONOMY
from agent.questions import Question, answer_question, open_questions
from bench.ablation import without
from bench.gold_person import GoldPerson
from bench.judged import by_rung, judge
from bench.oracle import Quality
from bench.plan_score import PlanScore, base_table, entity_names, score_plan
from bench.scenarios import Scenario
from bench.scenarios.maker import Maker
from bench.score import Score, score
from connectors.dsn import open_source
from engine.plan import Plan
from sample_data.servers import Database, PostgresServer
from workspace.errors import PackhorseError
from workspace.events import DecisionMade
from workspace.log import Workspace
from workspace.paths import JobPaths
from workspace.state import state_at

MOST_ROUNDS = 8
"""How often the job is resumed after answers before it counts as not completed."""


@dataclass(frozen=True)
class Setting:
    """How jobs are run. `model` is as `--model` has it; an oracle of `quality` takes its place. `ablate` names the parts
    that are switched off. With `second`, what is looked at is a second job, which has the experience of a first over
    the same system under other names."""

    name: str
    model: str | None = "none"
    autonomy: float = AUTONOMY
    quality: Quality | None = None
    ablate: frozenset[str] = frozenset()
    second: bool = False


@dataclass(frozen=True)
class Result:
    """What came of one scenario. Fields of the gold plan are `right`, `near`, `wrong`, `open` or `missing` in the
    draft, `extra` where it has none; `rungs` counts (right, wrong) decisions by rung; `decided` are all decisions of
    the draft, `strayed` rows in the end in a table where the gold output has none of that source row, `asked` its questions, of which `needed` ones had a forced answer that was wrong. `value_f1` and
    `exact_rows` are of the target in the end. `faults` and `recovered` count what went wrong on the way and what
    was made good. Of a second job, `calls_before` and `asked_before` are the first one's.
    `judged` holds each decision: kind, rung, how sure, right (`bench.judged`)."""

    scenario: str
    family: str
    split: str
    setting: str
    completed: bool
    outcome: str
    right: int = 0
    near: int = 0
    wrong: int = 0
    open: int = 0
    missing: int = 0
    extra: int = 0
    strayed: int = 0
    rungs: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    decided: int = 0
    asked: int = 0
    needed: int = 0
    answered: int = 0
    value_f1: float = 0.0
    exact_rows: float = 0.0
    rows: int = 0
    faults: int = 0
    recovered: int = 0
    calls: int = 0
    tokens: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    model_seconds: float = 0.0
    seconds: float = 0.0
    notes: tuple[str, ...] = ()
    judged: tuple[tuple[str, str, float, bool], ...] = ()
    calls_before: int = 0
    asked_before: int = 0

    @property
    def silent_errors(self) -> int:
        """Fields that were mapped wrongly with nobody asked, and rows in a table where they have no business."""
        return self.wrong + self.extra + self.strayed

    def to_dict(self) -> dict[str, Any]:
        """As JSON values."""
        return asdict(self)


def evaluate(
    scenario: Scenario,
    setting: Setting,
    server: PostgresServer,
    folder: Path,
    deciders: Deciders | None = None,
    seed: int = 1,
    experience: Path | None = None,
) -> Result:
    """Runs a scenario in an empty folder; what came of it. Lessons are looked up and kept in the folder `experience`,
    or forgotten. Never raises for what the job did wrong."""
    started = time.monotonic()
    maker = Maker(scenario, folder, seed)
    scenario.records().make(maker, **scenario.options)
    maker.close()
    database = server.new_database()
    try:
        database.run(scenario.file("target.sql").read_text(encoding="utf-8"))
        with _own_experience(experience or folder / "experience"), without(setting.ablate):
            return _Evaluation(scenario, setting, database, maker, folder, deciders).run(started)
    finally:
        server.drop(database)


class _Evaluation:
    def __init__(
        self, scenario: Scenario, setting: Setting, database: Database, maker: Maker, folder: Path,
        deciders: Deciders | None,
    ) -> None:  # fmt: skip
        self._scenario, self._setting, self._database, self._maker = scenario, setting, database, maker
        self._folder, self._deciders = folder, deciders
        source = open_source(maker.dsn)
        tables = source.catalogue().tables.items()
        self._schema = {name: [c.name for c in table.columns] for name, table in tables}
        source.close()
        self._person = GoldPerson(scenario, self._schema)
        self._request = JobRequest(
            maker.dsn, database.socket_dsn, job="eval", model=setting.model, autonomy=setting.autonomy, yes=True, base=folder,
        )  # fmt: skip
        self._paths = JobPaths(folder, "eval")
        self._notes: list[str] = []
        self._answered = 0

    def run(self, started: float) -> Result:
        """The whole."""
        try:
            drafted = draft_job(self._request, deciders=self._deciders)
        except PackhorseError as error:
            return self._result(started, f"failed: {error.what}", None, None)
        assert drafted.draft is not None
        waiting = [
            (drafted.draft.whole.entities[e].to, column)
            for e, column in drafted.draft.open_fields
            if e in drafted.draft.whole.entities
        ]
        with Workspace.open(self._paths) as workspace:
            asked = open_questions(workspace)
            made = _decisions(workspace)
        tables = {q.subject for q in asked if q.kind in ("entity", "kinds")}
        for entity in self._person.gold.entities.values():
            if base_table(entity) in tables:  # all of it waits for where the table goes
                waiting += [(entity.to, column) for column in (*entity.fields, "(key)", "(where)")]
        scored = score_plan(drafted.draft.whole, self._person.gold, self._schema, waiting)
        outcome, plan = self._finish()
        return self._result(started, outcome, scored, plan, asked, made)

    def _finish(self) -> tuple[str, Plan | None]:
        """Runs the job with its faults, answering what is asked: how it ended, and the plan it ended with."""
        self._strike_between()
        outcome: JobOutcome | None = None
        to_kill = "kill" in self._scenario.faults
        for _ in range(MOST_ROUNDS):
            if to_kill and self._killed():
                to_kill = False
            try:
                with self._striking():
                    outcome = run_job(self._request, deciders=self._deciders)
                said = outcome.outcome
            except PackhorseError as error:
                said = f"failed: {error.what}" if error.exit_code != 4 else "waiting"
            if not self._answer() or said.startswith("failed"):
                break
        if to_kill:
            self._notes.append("the job ended before it could be killed")
        return said, outcome.plan if outcome is not None else None

    def _answer(self) -> bool:
        """Answers what is open; False where there is nothing to answer or nobody could."""
        with Workspace.open(self._paths) as workspace:
            questions = open_questions(workspace)
        answers = {q.id: (q, a) for q in questions if (a := self._person.answer(q)) is not None}
        with Workspace.open(self._paths, write=True) as workspace:
            for id_, (question, answer) in answers.items():
                try:
                    answer_question(workspace, id_, answer, "person")
                    self._answered += 1
                except PackhorseError as error:
                    self._notes.append(f"{question.id} could not be answered: {error.what}")
        return bool(answers)

    # -- what goes wrong --------------------------------------------------------------------------

    def _strike_between(self) -> None:
        """What changes between the draft and the load."""
        told = self._scenario.fault
        for fault in ("new_value", "source_drift"):
            if fault in self._scenario.faults:
                self._maker.change(told[fault])
        if "new_constraint" in self._scenario.faults:
            self._database.run(told["new_constraint"])

    def _killed(self) -> bool:
        """Runs the job in a process that is killed before its second commit; False where it doesn't come so far."""
        child = multiprocessing.get_context("fork").Process(
            target=_run_until_killed, args=(self._request, self._deciders)
        )
        child.start()
        child.join()
        return child.exitcode == -signal.SIGKILL

    @contextmanager
    def _striking(self) -> Iterator[None]:
        """Cuts the target's connections once, before the second commit, where the scenario says so."""
        if "target_lost" not in self._scenario.faults:
            yield
            return
        passed = Counter[str]()

        def cut(name: str) -> None:
            passed[name] += 1
            if name == "before commit" and passed[name] == 2:
                self._database.run("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()")  # fmt: skip

        engine.faults.hook = cut
        try:
            yield
        finally:
            engine.faults.hook = None

    # -- what came of it --------------------------------------------------------------------------

    def _result(
        self, started: float, outcome: str, scored: PlanScore | None, plan: Plan | None,
        asked: list[Question] | None = None, made: list[DecisionMade] | None = None,
    ) -> Result:  # fmt: skip
        got = self._scored(plan)
        with Workspace.open(self._paths) as workspace:
            spent = state_at(workspace).progress.price  # of questions too, which a model left to a person
        right = got is not None and got.perfect
        faults = len(self._scenario.faults)
        asked, made = asked or [], made or []
        judged = judge(scored, made, asked, self._person) if scored is not None else []
        if got is not None and not right:
            self._notes += got.report().splitlines()
        if scored is not None:
            self._notes += [f"wrong {'.'.join(p[1:])}: wanted {w}, got {g}" for p, w, g in scored.wrong]
            self._notes += [f"extra {'.'.join(p[1:])}: {g}" for p, g in scored.extra]
            self._notes += [f"left out {'.'.join(p[1:])}: nobody was asked" for p in scored.missing]
        return Result(
            self._scenario.name, self._scenario.family, self._scenario.split, self._setting.name,
            completed=outcome == "done" and right, outcome=outcome,
            right=len(scored.right) if scored else 0, near=len(scored.near) if scored else 0,
            wrong=len(scored.wrong) if scored else 0, open=len(scored.open) if scored else 0,
            missing=len(scored.missing) if scored else 0, extra=len(scored.extra) if scored else 0,
            strayed=got.strayed if got else 0,
            rungs=by_rung(judged), judged=tuple((j.kind, j.rung, j.sure, j.right) for j in judged), decided=len(made), asked=len(asked),
            needed=sum(not self._person.forced_is_right(q) for q in asked), answered=self._answered,
            value_f1=got.value_f1 if got else 0.0, exact_rows=got.exact_rows if got else 0.0,
            rows=sum(e.wanted for e in got.entities) if got else 0, faults=faults, recovered=faults if right else 0,
            calls=spent.calls, tokens=spent.prompt_tokens + spent.answer_tokens, prompt_tokens=spent.prompt_tokens,
            cached_tokens=spent.cached_tokens, model_seconds=spent.seconds, seconds=round(time.monotonic() - started, 2),
            notes=tuple(self._notes),
        )  # fmt: skip

    def _scored(self, plan: Plan | None) -> Score | None:
        names = entity_names(plan, self._person.gold) if plan is not None else {}
        return score(self._database.socket_dsn, self._folder / "truth", names)


def _run_until_killed(request: JobRequest, deciders: Deciders | None) -> None:
    passed = Counter[str]()

    def kill(name: str) -> None:
        passed[name] += 1
        if name == "before commit" and passed[name] == 2:
            os.kill(os.getpid(), signal.SIGKILL)

    engine.faults.hook = kill
    with suppress(PackhorseError):
        run_job(request, deciders=deciders)


def _decisions(workspace: Workspace) -> list[DecisionMade]:
    """The decisions as they stand, the latest of each matter."""
    found = {
        e.event.id: e.event for e in workspace.events(types=[DecisionMade]) if isinstance(e.event, DecisionMade)
    }  # fmt: skip
    return list(found.values())


@contextmanager
def _own_experience(folder: Path) -> Iterator[None]:
    """No lessons but those in a folder."""
    before = os.environ.get("PACKHORSE_DATA_HOME")
    os.environ["PACKHORSE_DATA_HOME"] = str(folder)
    try:
        yield
    finally:
        if before is None:
            del os.environ["PACKHORSE_DATA_HOME"]
        else:
            os.environ["PACKHORSE_DATA_HOME"] = before
