"""`migrate undo`: takes back what a job wrote, and nothing of anybody else's."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from cli.options import AsJson, Job, TargetSsh, here
from cli.person import at_hand
from cli.signals import StopFlag, stop_on_signals
from cli.systems import GivenTarget, given_again, job_target
from cli.views import undo as view
from cli.views.live import LiveView
from cli.views.output import on_stderr, on_stdout, print_json
from workspace.errors import InterruptedJobError, PackhorseError, UsageError
from workspace.events import Interrupted, JobFinished
from workspace.lock import JobLock
from workspace.log import Workspace
from workspace.paths import JobPaths, find_job
from workspace.state import state_at

if TYPE_CHECKING:
    from engine.undo import Undo

ROWS_STAY = 3

Batch = Annotated[
    str | None,
    typer.Option("--batch", metavar="ENTITY:N", help="This batch alone; the job is not over then."),
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Take back without asking; needed where there is no terminal.")]


def undo(
    job: Job = None,
    batch: Batch = None,
    target: GivenTarget = None,
    target_ssh: TargetSsh = None,
    yes: Yes = False,
    as_json: AsJson = False,
) -> int:
    """Take back what a job wrote: rows that it inserted go, rows that it changed hold again what they held.

    Shows what it would do and asks once. Rows that were changed in the target since, that a later job wrote too, or
    that rows of others refer to are not touched but listed; the exit code is 3 then. Interrupted or killed, the same
    command goes on. A job that was taken back is over: a new one loads anew.

    JSON: `job`, `batch` (or null), `deleted`, `restored`, `refused` (counts of rows), `kept` (rows that stay, by
    entity and reason), `kept_rows`, a list of the first of them with `entity`, `key`, `id`, `reason`, and `exit_code`.
    """
    paths = find_job(here(), job)
    only = _batch(batch)
    target = given_again(paths, "target", target, target_ssh)
    with (
        stop_on_signals() as stop,
        LiveView(on_stderr(), "undo") as live,
        _opened(paths, target, only, live, stop) as (undoing, workspace),
    ):
        foreseen = undoing.foresee()
        live.pause()
        if not foreseen.nothing:
            view.show_foreseen(on_stderr(), foreseen)
            if not yes and not _agreed(paths.job, batch, stop):
                on_stderr().print("nothing was taken back")
                return InterruptedJobError.exit_code
        live.go_on()
        with _ending(workspace, whole=only is None):
            outcome = undoing.run()
            code = ROWS_STAY if outcome.refused else 0
            if only is None:
                workspace.record(JobFinished("undone", code))
    if as_json:
        print_json({"job": paths.job, "batch": batch, **outcome.to_dict(), "exit_code": code})
    else:
        view.show(on_stdout(), paths.job, batch, outcome, nothing=foreseen.nothing)
    return code


def _batch(text: str | None) -> tuple[str, int] | None:
    """The entity and the number of `--batch`."""
    if text is None:
        return None
    entity, colon, number = text.rpartition(":")
    if not colon or not entity or not number.isdecimal() or len(number) > 9:
        raise UsageError(
            f"{text!r} is no batch", where="--batch", advice="an entity and a number, as in --batch contacts:3"
        )
    return entity, int(number)


def _agreed(job: str, batch: str | None, stop: StopFlag) -> bool:
    """Asks once. UsageError where nobody is there to ask."""
    if not at_hand():
        raise UsageError(
            "nothing was taken back: there is no terminal to ask on",
            where=f"job {job}",
            advice="say --yes where that is what you want",
        )
    what = f"batch {batch}" if batch else "all of it"
    on_stderr().print(f"\ntake back {what}? [y/N] ", end="")
    return sys.stdin.readline().strip().lower() in ("y", "yes") and not stop()


@contextmanager
def _opened(
    paths: JobPaths, target: str | None, batch: tuple[str, int] | None, live: LiveView, stop: StopFlag
) -> Iterator[tuple[Undo, Workspace]]:
    """The job locked, its log open for writing, its target connected; the source isn't needed."""
    from engine.check import check_loaded
    from engine.pilot import refuse_while_the_job_stands
    from engine.plan import parse_plan
    from engine.undo import Undo

    with Workspace.open(paths) as workspace:
        belief = state_at(workspace).belief
    if not belief.plan:
        raise UsageError(f"job {paths.job!r} has no plan yet, so nothing of it was loaded")
    plan = parse_plan(belief.plan, f"plan version {belief.plan_version} of {paths.job}")
    with (
        JobLock(paths),
        Workspace.open(paths, write=True) as workspace,
        job_target(target, belief) as system,
    ):
        checked = check_loaded(plan, system.catalogue())
        refuse_while_the_job_stands(workspace, system, checked)
        yield Undo(paths, workspace, system, checked, batch=batch, progress=live, stop=stop), workspace


@contextmanager
def _ending(workspace: Workspace, *, whole: bool) -> Iterator[None]:
    """Records how taking a whole job back ended; of one batch, the job stays what it was."""
    try:
        yield
    except InterruptedJobError as error:
        if whole:
            workspace.record(Interrupted("SIGINT"), JobFinished("interrupted", error.exit_code))
        raise
    except PackhorseError as error:
        if whole:
            workspace.record(JobFinished(f"failed: {error.what}"[:200], error.exit_code))
        raise
