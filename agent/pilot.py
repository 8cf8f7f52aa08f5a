"""The pilot of a job: a slice of its rows, closed under references, as a job of its own over the same two systems.

The crosswalk belongs to the source, not to a job: the job itself, run later, finds the pilot's rows as they are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from agent.job import Ask, Run, opened_run, run_job
from agent.job_request import JobOutcome, JobRequest, Watch
from agent.plan_versions import begun_entities
from agent.questions import open_questions
from engine.check import CheckedPlan
from engine.faults import fault_point
from engine.pilot import Share, cut
from engine.plan import Plan, dump_plan
from engine.preview import Preview
from engine.rehearsal import stage_all
from workspace.errors import UsageError
from workspace.events import JobStarted, PhaseStarted, Piloted, PlanChanged
from workspace.lock import JobLock
from workspace.log import Workspace
from workspace.paths import JobPaths, new_job_name


def run_pilot(
    request: JobRequest,
    share: str,
    *,
    progress: Watch = lambda step: None,
    stop: Callable[[], bool] = lambda: False,
    confirm: Callable[[Preview], bool] = lambda preview: True,
    ask: Ask | None = None,
) -> JobOutcome:
    """Plans and stages the job, cuts a slice out of its stage (`1%`, or rows of each entity), and runs that as the job
    NAME-pilot; what became of it. A pilot that is there is gone on with. Raises as `run_job` does."""
    wanted = Share.parse(share)
    job = request.job or new_job_name(request.source_dsn, request.target_dsn)
    pilot = JobPaths(request.base, f"{job}-pilot")
    if not pilot.exists():
        given = request.given
        with opened_run(replace(request, job=job), progress, stop, confirm, ask) as run:
            run.ended(lambda: _cut(run, given, share, wanted, pilot))
    _check_share(pilot, share)
    slice_ = replace(request, job=pilot.job, plan_path=None, plan=None)
    return run_job(slice_, progress=progress, stop=stop, confirm=confirm, ask=ask)


def _cut(run: Run, given: Plan | None, share: str, wanted: Share, pilot: JobPaths) -> JobOutcome:
    if begun_entities(run.workspace):
        raise UsageError(
            f"the job {run.paths.job} has begun to move rows", where=str(run.paths.folder),
            advice="a pilot goes before its job; `migrate resume` goes on with the job",
        )  # fmt: skip
    run.workspace.record(PhaseStarted("pilot"))
    drafted, checked = run.checked(given)
    held = drafted.held if drafted is not None else {}
    stage_all(run.context(checked))
    if drafted is not None:  # what the preview finds may change a plan of ours, as it would in the job itself
        _, checked = run.previewed(checked, True)
    run.workspace.record(PhaseStarted("pilot"))
    pilot.create()
    with JobLock(pilot):
        told = cut(run.context(checked), wanted, pilot)
        fault_point("pilot cut")
        with Workspace.open(pilot, write=True) as workspace:
            # In one piece: a pilot that is half there would read the rest from the source.
            workspace.record(_started(run, pilot, share, checked), _plan(checked), *told)
    run.workspace.record(Piloted(pilot=pilot.job, share=share))
    return JobOutcome(
        run.paths.job, "piloted", 0, checked.plan, held=held, questions=len(open_questions(run.workspace))
    )  # fmt: skip


def _started(run: Run, pilot: JobPaths, share: str, checked: CheckedPlan) -> JobStarted:
    """The start of the job at hand, as its pilot's: over the same systems, by the plan it has now."""
    begun = next(e.event for e in run.workspace.events(types=[JobStarted]) if isinstance(e.event, JobStarted))
    plan = run.paths.plans / f"plan-{checked.plan.version}.yaml"
    more = {"pilot_of": run.paths.job, "pilot": share, "plan": str(plan), "dry_run": False}
    return JobStarted(job=pilot.job, source=begun.source, target=begun.target, options={**begun.options, **more})


def _plan(checked: CheckedPlan) -> PlanChanged:
    return PlanChanged(version=checked.plan.version, plan=dump_plan(checked.plan), by="file", why="the job's own")


def _check_share(pilot: JobPaths, share: str) -> None:
    with Workspace.open(pilot) as workspace:
        begun = next((e.event for e in workspace.events(types=[JobStarted]) if isinstance(e.event, JobStarted)), None)
    kept = begun.options.get("pilot") if begun is not None else None
    if kept != share:
        raise UsageError(
            f"the pilot {pilot.job} is there already, of {kept or 'other rows'}", where=str(pilot.folder),
            advice=f"say --pilot {kept}, or take it back with `migrate undo {pilot.job}` and remove its folder",
        )  # fmt: skip
