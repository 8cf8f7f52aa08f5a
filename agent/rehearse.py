"""The rehearsal of a job: planned as the job will be, staged as the job will be, and carried out beside the target."""

from __future__ import annotations

from collections.abc import Callable

from agent.job import Ask, Run, opened_run
from agent.job_request import JobOutcome, JobRequest, Watch, too_many
from agent.plan_versions import begun_entities
from agent.questions import open_questions
from connectors.dsn import Dsn, check_copy, open_copy
from engine.plan import Plan
from engine.prepare import try_queries
from engine.rehearsal import Rehearsal, rehearsal_folder, rehearse, stage_all
from workspace.errors import UsageError, WaitingForPersonError
from workspace.events import PhaseStarted

QUARANTINED, NOT_VERIFIED = 3, 1


def rehearse_job(
    request: JobRequest,
    into: str | None = None,
    *,
    progress: Watch = lambda step: None,
    stop: Callable[[], bool] = lambda: False,
    ask: Ask | None = None,
) -> JobOutcome:
    """Rehearses a job: all that it will do, into an empty copy of the target, which is only read.

    The copy is in a server of our own, or in the empty database `into` (a DSN). `outcome` is rehearsed; `run_job` of
    the same name takes up the stage and keeps to what was rehearsed. Raises as `run_job` does."""
    given = request.given
    place = Dsn.parse(into) if into is not None else None
    check_copy(Dsn.parse(request.target_dsn), place)
    with opened_run(request, progress, stop, lambda preview: False, ask) as run:
        return run.ended(lambda: _rehearse(run, given, place))


def _rehearse(run: Run, given: Plan | None, place: Dsn | None) -> JobOutcome:
    if begun_entities(run.workspace):
        raise UsageError(
            f"the job {run.paths.job} has begun to move rows", where=str(run.paths.folder),
            advice="rehearse a job before it runs, or another with another --job name",
        )  # fmt: skip
    run.workspace.record(PhaseStarted("rehearse"))
    drafted, checked = run.checked(given)
    held = drafted.held if drafted is not None else {}
    ctx = run.context(checked)
    if drafted is None:
        try_queries(run.paths, checked)
    stage_all(ctx)
    shown = None
    if drafted is not None:  # what the preview finds may change a plan of ours, as it would in the job itself
        shown, checked = run.previewed(checked, True)
        ctx = run.context(checked)
    filled = [entity.target.name for entity in checked.entities]
    run.workspace.record(PhaseStarted("rehearse"))
    with (
        rehearsal_folder(ctx) as folder,
        open_copy(Dsn.parse(run.request.target_dsn), run.target, filled, folder, place) as copy,
    ):
        found = rehearse(ctx, copy)
    questions = len(open_questions(run.workspace))
    return JobOutcome(
        run.paths.job, "rehearsed", _exit_code(run.request, found, bool(held)), checked.plan, shown, held=held,
        questions=questions, rehearsal=found,
    )  # fmt: skip


def _exit_code(request: JobRequest, found: Rehearsal, held: bool) -> int:
    """What the job itself would exit with."""
    if found.problems:
        return NOT_VERIFIED
    if held:
        return WaitingForPersonError.exit_code
    return QUARANTINED if too_many(found.read, found.quarantined, request.tolerate) else 0
