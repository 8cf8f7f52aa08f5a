"""The whole job: survey, match, preview, load, verify; started, or gone on with.

Drives the engine and answers for the exit code. What the log has decided is not decided again; what the
target's ledger has is not moved again; an entity whose rows have begun to move keeps the plan it began with.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

from agent.draft import Draft, draft
from agent.job_request import (
    JobOutcome,
    JobRequest,
    Step,
    Watch,
    begin_job,
    request_again,
    schema_of,
    tell_notes,
    too_many,
)
from agent.ladder import Budget, Ladder
from agent.learnt import learn_decisions
from agent.loop import Loop, last_plan
from agent.models.protocol import Encoder, Model
from agent.plan_edits import edits, with_edits
from agent.plan_versions import began_with_plan, begun_entities, frozen, keep_beside_log
from agent.questions import Question, open_questions, question_of, read_answer
from agent.recovery import finish_redrive, recover
from agent.remedy import Applied, find_remedies
from connectors.dsn import Dsn, open_source, open_target
from connectors.protocols import Catalogue, Source
from connectors.target import Target
from engine.check import CheckedPlan, check_plan
from engine.context import Context, Progress
from engine.course import load_on_course
from engine.generation import open_redrive
from engine.load import LoadOutcome
from engine.plan import Plan
from engine.prepare import try_queries
from engine.preview import Preview, preview
from engine.rehearsal import refuse_unfinished
from engine.verify import Verification, verify
from workspace.errors import (
    CatalogueError,
    InterruptedJobError,
    PackhorseError,
    QuarantinedTooManyError,
    UsageError,
    WaitingForPersonError,
)
from workspace.events import (
    Interrupted,
    JobFinished,
    LessonLearnt,
    PhaseStarted,
    QuestionAsked,
)
from workspace.experience_store import ExperienceStore
from workspace.lock import JobLock
from workspace.log import Workspace
from workspace.paths import JobPaths, find_job, new_job_name
from workspace.state import state_at

__all__ = ["JobOutcome", "JobRequest", "Step", "Watch", "draft_job", "resume_job", "run_job"]

Deciders = Callable[[], "tuple[Model, Encoder | None]"]
"""Opens the model and the encoder; both are closed with the job."""

Ask = Callable[[Question], "str | None"]
"""Asks a person who is at hand: the answer as they typed it, or None to let the question wait."""


def run_job(
    request: JobRequest,
    *,
    progress: Watch = lambda step: None,
    stop: Callable[[], bool] = lambda: False,
    confirm: Callable[[Preview], bool] = lambda preview: True,
    ask: Ask | None = None,
    deciders: Deciders | None = None,
) -> JobOutcome:
    """Runs a job from the start, or goes on with one of the same name.

    `confirm` is asked once before the first row moves; `ask` at once for what would be a question that waits
    (None, or None from it: it waits); `deciders` take the place of the model that the request names. Raises PackhorseError with the exit code to give:
    UsageError and its kin before anything moved, InterruptedJobError when `stop` said so (resumable)."""
    given = request.given
    with opened_run(request, progress, stop, confirm, ask, deciders) as run:
        return run.look(given) if request.dry_run else run.go(given)


def draft_job(
    request: JobRequest,
    *,
    progress: Watch = lambda step: None,
    stop: Callable[[], bool] = lambda: False,
    deciders: Deciders | None = None,
) -> JobOutcome:
    """As far as the plan: surveys and decides, reads no rows into a stage and moves none. What was decided
    is kept in the job, and `run_job` of the same name goes on with it. Raises as `run_job` does."""
    with opened_run(request, progress, stop, lambda preview: False, None, deciders) as run:
        return run.draft()


@contextmanager
def opened_run(
    request: JobRequest,
    progress: Watch,
    stop: Callable[[], bool],
    confirm: Callable[[Preview], bool],
    ask: Ask | None,
    deciders: Deciders | None = None,
) -> Iterator[Run]:
    """Both systems connected, the job locked and begun."""
    source, target = Dsn.parse(request.source_dsn), Dsn.parse(request.target_dsn)
    job = request.job or new_job_name(request.source_dsn, request.target_dsn)
    paths = JobPaths(request.base, job)
    with ExitStack() as stack:
        from_system = open_source(source)
        stack.callback(from_system.close)
        to_system = open_target(target, schema_of(paths, request.ledger_schema))
        stack.callback(to_system.close)
        if not to_system.catalogue().tables:
            raise CatalogueError(
                "the target holds no tables", where=to_system.dsn, advice="create the target's schema first"
            )
        paths.create()
        stack.enter_context(JobLock(paths))
        request.choice.check(paths, to_system.schema)
        workspace = stack.enter_context(Workspace.open(paths, write=True))
        begin_job(workspace, request, job, source, target, to_system.schema)
        run = Run(
            request, paths, workspace, from_system, to_system, source.identity, progress, stop, confirm, ask, deciders
        )  # fmt: skip
        stack.callback(run.close)
        tell_notes(workspace, from_system.notes, progress)
        yield run


def resume_job(
    job: str | None = None,
    *,
    base: Path | None = None,
    source_dsn: str | None = None,
    target_dsn: str | None = None,
    executor: str | None = None,
    stage: str | None = None,
    stray: float | None = None,
    tolerate: float | None = None,
    progress: Watch = lambda step: None,
    stop: Callable[[], bool] = lambda: False,
    confirm: Callable[[Preview], bool] = lambda preview: True,
    ask: Ask | None = None,
) -> JobOutcome:
    """Goes on with a job, the newest without a name. DSNs are needed only where theirs held a password; who
    loads may change from run to run.

    Raises WorkspaceError where there is no such job, UsageError where a DSN has to be given again."""
    paths = find_job(base or Path.cwd(), job)
    with Workspace.open(paths) as workspace:
        refuse_unfinished(workspace)
        request = request_again(workspace, source_dsn, target_dsn, executor, stage)
    request = replace(request, stray=stray, tolerate=request.tolerate if tolerate is None else tolerate)
    return run_job(request, progress=progress, stop=stop, confirm=confirm, ask=ask)


class Run:
    """One process's part of a job."""

    def __init__(
        self, request: JobRequest, paths: JobPaths, workspace: Workspace, source: Source, target: Target,
        identity: str, progress: Watch, stop: Callable[[], bool], confirm: Callable[[Preview], bool], ask: Ask | None,
        deciders: Deciders | None,
    ) -> None:  # fmt: skip
        self.request, self.paths, self.workspace = request, paths, workspace
        self._source, self.target, self._identity = source, target, identity
        self._progress, self._stop, self._confirm, self._ask = progress, stop, confirm, ask
        self._deciders = deciders
        self._catalogue: Catalogue = target.catalogue()
        self._calls = 0
        self._model: Model | None = None
        self._encoder: Encoder | None = None
        self._experience = _experience()
        self._applied: list[Applied] = []

    def close(self) -> None:
        """Frees the model and the store."""
        if self._model is not None:
            self._model.close()
        if self._experience is not None:
            self._experience.close()

    def go(self, given: Plan | None) -> JobOutcome:
        """The phases in order. Records how it ended, whatever way."""
        return self.ended(lambda: self._phases(given))

    def look(self, given: Plan | None) -> JobOutcome:
        """As `go`, of a dry run: a job whose rows have moved is left what it was."""
        before, outcome = state_at(self.workspace).progress, self.go(given)
        if begun_entities(self.workspace) and before.outcome is not None and before.exit_code is not None:
            self.workspace.record(JobFinished(before.outcome, before.exit_code))
        return outcome

    def draft(self) -> JobOutcome:
        """Survey and match alone. Records how it ended, whatever way."""
        return self.ended(self._draft)

    def _draft(self) -> JobOutcome:
        drafted, plan = self._plan(None)
        held = drafted.held if drafted is not None else {}
        return replace(self._end("drafted", 0, plan, held, None), draft=drafted)

    def ended(self, act: Callable[[], JobOutcome]) -> JobOutcome:
        """What `act` gives. Records how it ended, whatever way."""
        try:
            outcome = act()
        except InterruptedJobError:
            self.workspace.record(Interrupted("SIGINT"), JobFinished("interrupted", InterruptedJobError.exit_code))
            raise
        except WaitingForPersonError as error:
            self.workspace.record(JobFinished("waiting", error.exit_code))
            raise
        except QuarantinedTooManyError as error:
            self.workspace.record(JobFinished("too many in quarantine", error.exit_code))
            raise
        except PackhorseError as error:
            self.workspace.record(JobFinished(f"failed: {error.what}"[:200], error.exit_code))
            raise
        self.workspace.record(JobFinished(outcome.outcome, outcome.exit_code))
        return outcome

    def checked(self, given: Plan | None) -> tuple[Draft | None, CheckedPlan]:
        """The plan to go by, checked, and the draft that it comes from. WaitingForPersonError where it is empty."""
        drafted, plan = self._plan(given)
        if not plan.entities:
            raise WaitingForPersonError(
                "nothing can be moved before a person answers",
                where=f"job {self.paths.job}",
                advice=f"migrate answer {self.paths.job}",
            )
        return drafted, check_plan(plan, self._source, self._catalogue)

    def _phases(self, given: Plan | None) -> JobOutcome:
        last = last_plan(self.workspace)
        if last is not None and open_redrive(self.workspace) is not None:
            finish_redrive(self.context(check_plan(last, self._source, self._catalogue)))
        drafted, checked = self.checked(given)
        held = drafted.held if drafted is not None else {}
        begun = begun_entities(self.workspace)
        if drafted is None and not begun:
            try_queries(self.paths, checked)
        shown: Preview | None = None
        if self.request.dry_run or (not begun and (drafted is not None or not self.request.yes)):
            shown, checked = self.previewed(checked, drafted is not None)
        if self.request.dry_run:
            return self._end("dry run", 0, checked.plan, held, shown)
        if not begun and shown is not None and not self._confirm(shown):
            return self._end("declined", InterruptedJobError.exit_code, checked.plan, held, shown)
        # what a drafted plan sends to quarantine is mended first, as far as it can be
        tolerate = self.request.tolerate if drafted is None else math.inf
        loaded = load_on_course(self.context(checked), self.request.stray, tolerate)
        if drafted is not None:
            context, ladder = self.context(checked), self._ladder()
            checked = recover(context, drafted.whole, self._catalogue, ladder, self._experience)
        verified = verify(self.context(checked), ask_source=False)
        self._learn(verified.ok)
        self.workspace.record(PhaseStarted("done"))
        return self._end(*self._verdict(loaded, verified, held), checked.plan, held, shown, loaded, verified)

    # -- the plan ---------------------------------------------------------------------------------

    def _plan(self, given: Plan | None) -> tuple[Draft | None, Plan]:
        """The plan to go by: the one given, the log's where rows have begun to move by a given one, or a draft."""
        last = last_plan(self.workspace)
        if given is not None or (last is not None and began_with_plan(self.workspace)):
            plan = given if given is not None else last
            assert plan is not None
            loop = Loop(self.workspace, self._frozen(plan, last), self._catalogue)
            return None, keep_beside_log(self.paths, loop.keep_version("file", "given"))
        self._open_model()
        edited = partial(with_edits, made=edits(self.workspace))
        drafted = draft(
            self._source, self._catalogue, self.workspace, model=self._model, encoder=self._encoder,
            autonomy=self.request.autonomy, experience=self._experience, zone=self.request.zone,
            watch=self._watch, on_call=self._count, keep=lambda plan: self._frozen(edited(plan), last),
            person=self._person if self._ask is not None else None, budget=self._budget,
        )  # fmt: skip
        drafted = replace(drafted, whole=edited(drafted.whole))
        return drafted, keep_beside_log(self.paths, drafted.plan)

    def _frozen(self, plan: Plan, last: Plan | None) -> Plan:
        return frozen(plan, last, begun_entities(self.workspace))

    # -- the phases -------------------------------------------------------------------------------

    def previewed(self, checked: CheckedPlan, ours: bool) -> tuple[Preview, CheckedPlan]:
        """The preview; of a plan that we drafted again after remedies were found."""
        shown = preview(self.context(checked))
        if not ours:
            return shown, checked
        loop = Loop(self.workspace, checked.plan, self._catalogue)
        ladder = self._ladder()
        self._applied = find_remedies(shown, checked.plan, self._catalogue, ladder, loop, self._experience)
        loop.flush()
        if not self._applied:
            return shown, checked
        plan = keep_beside_log(self.paths, loop.keep_version("rule", "remedies for what the preview found"))
        checked = check_plan(plan, self._source, self._catalogue)
        return preview(self.context(checked)), checked

    def _ladder(self) -> Ladder:
        return Ladder(
            self.workspace, model=self._model, encoder=self._encoder, experience=self._experience,
            autonomy=self.request.autonomy, on_call=self._count, person=self._person if self._ask is not None else None,
            budget=self._budget,
        )  # fmt: skip

    @property
    def _budget(self) -> Budget:
        return Budget(seconds=self.request.model_options.seconds)

    def context(self, checked: CheckedPlan) -> Context:
        return Context(
            self.paths,
            self.workspace,
            self._source,
            self.target,
            checked,
            self._identity,
            self._passed_on,
            self._stop,
            choice=self.request.choice,
        )

    def _passed_on(self, step: Progress) -> None:
        self._progress(Step(step.phase, step.entity, step.rows_done, step.rows_total, step.quarantined, self._calls))

    def _watch(self, phase: str, what: str, done: int, total: int) -> None:
        if self._stop():
            raise InterruptedJobError(
                "interrupted; nothing was written to the target", where=f"job {self.paths.job}",
                advice=f"migrate resume {self.paths.job}",
            )  # fmt: skip
        self._progress(Step(phase, what, done, total, 0, self._calls))

    def _count(self, calls: int) -> None:
        self._calls = calls
        self._progress(Step("match", "", 0, None, 0, calls))

    def _person(self, event: QuestionAsked) -> object:
        """The answer of whoever is at hand, asked again while it is none."""
        question = question_of(event)
        while self._ask is not None and (given := self._ask(question)) is not None:
            try:
                return read_answer(question, given)
            except UsageError as error:
                question = replace(question, text=f"{event.text} ({error.what})")
        return None

    def _open_model(self) -> None:
        if self._model is not None or (self.request.model == "none" and self._deciders is None):
            return
        if self._deciders is not None:
            self._model, self._encoder = self._deciders()
            return
        from agent.models.open import open_model  # loads a native library; not for a job that needs no model

        if self._encoder is None:
            self._model, self._encoder = open_model(self.request.model, self.request.model_options)

    def _learn(self, held: bool) -> None:
        """A remedy that was taken is a lesson, by whether the job was verified with it."""
        for applied in self._applied:
            if self._experience is not None:
                self._experience.record("failure", applied.signature, applied.remedy, held)
            self.workspace.record(LessonLearnt(applied.signature, applied.remedy, held))
        if held and not open_questions(self.workspace):  # a job never decides by what it taught itself
            learn_decisions(self._experience, self.workspace)

    # -- the end ----------------------------------------------------------------------------------

    def _verdict(
        self, loaded: LoadOutcome, verified: Verification, held: dict[str, tuple[str, ...]]
    ) -> tuple[str, int]:
        if not verified.ok:
            return "not verified", 1
        if held:
            return "waiting", WaitingForPersonError.exit_code
        left = sum(entity.quarantined - entity.dropped for entity in verified.entities)
        return ("done", 3 if too_many(loaded.read, left, self.request.tolerate) else 0)

    def _end(
        self, outcome: str, code: int, plan: Plan, held: dict[str, tuple[str, ...]], shown: Preview | None,
        loaded: LoadOutcome | None = None, verified: Verification | None = None,
    ) -> JobOutcome:  # fmt: skip
        questions = len(open_questions(self.workspace))
        return JobOutcome(self.paths.job, outcome, code, plan, shown, loaded, verified, held, questions)


def _experience() -> ExperienceStore | None:
    """The store of lessons, or None where it can't be opened: a job can do without."""
    try:
        return ExperienceStore.open()
    except PackhorseError:
        return None
