"""`migrate quarantine retry` and `drop`: drive rows that could not be loaded once more, or give them up."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from cli.opened_job import opened_job
from cli.options import AsJson, Job, here
from cli.person import at_hand
from cli.quarantine import Entity, Signature
from cli.signals import stop_on_signals
from cli.systems import GivenSource, GivenTarget, job_target
from cli.views import quarantine as view
from cli.views.live import LiveView
from cli.views.output import on_stderr, on_stdout, print_json
from workspace.errors import InterruptedJobError, UsageError
from workspace.lock import JobLock
from workspace.log import Workspace
from workspace.paths import JobPaths, find_job
from workspace.state import state_at

PlanFile = Annotated[
    Path | None,
    typer.Option("--plan", metavar="FILE", help="An edited plan: the job's next version, for these rows alone."),
]
EditedFile = Annotated[
    Path | None,
    typer.Option("--from", metavar="FILE", help="An exported .xlsx or .csv file, edited: its rows, with its values."),
]
Dropped = Annotated[bool, typer.Option("--dropped", help="Dropped rows too.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Drop without asking; needed where there is no terminal.")]


def retry(
    job: Job = None,
    entity: Entity = "",
    signature: Signature = "",
    plan: PlanFile = None,
    edited: EditedFile = None,
    dropped: Dropped = False,
    source: GivenSource = None,
    target: GivenTarget = None,
    as_json: AsJson = False,
) -> int:
    """Drive open rows of the quarantine once more, and nothing else: as the stage has them, by the job's plan.

    Rows that pass are loaded and leave the quarantine, rows that the plan excludes now too; the others stay, with
    their new reason. A plan may change fields, value maps and `where`; rows loaded before keep what they have.
    Interrupted or killed, the same command goes on.

    JSON: `job`, `plan_version`, `changed` (fields that the plan says otherwise, by entity), `entities`, a list of
    objects with `entity`, `driven`, `inserted`, `updated`, `unchanged`, `merged`, `excluded`, `stay`, `references`; and `open`
    and `dropped`, the rows in quarantine now.
    """
    from engine.plan import load_plan
    from engine.retry import Retry
    from engine.retry_plan import check_next

    if edited is not None and signature:
        raise UsageError("--from says which rows to drive", where="--signature", advice="leave one of them out")
    paths = find_job(here(), job)
    given = load_plan(plan) if plan is not None else None
    with (
        stop_on_signals() as stop,
        LiveView(on_stderr(), "retry") as live,
        opened_job(paths, source, target, progress=live, stop=stop) as context,
    ):
        checked = check_next(context, given) if given is not None else None
        retrying = Retry(context, entity=entity, signature=signature, dropped=dropped, checked=checked)
        if edited is not None:
            retrying.take_edited(edited)
        outcome = retrying.run()
    left = _left(paths)
    if as_json:
        print_json({"job": paths.job, **outcome.to_dict(), "open": left.open, "dropped": left.dropped})
    else:
        view.show_retried(on_stdout(), paths.job, outcome, left)
    return 0


def drop(
    job: Job = None,
    entity: Entity = "",
    signature: Signature = "",
    target: GivenTarget = None,
    yes: Yes = False,
    as_json: AsJson = False,
) -> int:
    """Give up open rows of the quarantine: they stay recorded and counted, as dropped. Asks once.

    A dropped row is driven again by `retry --dropped` alone.

    JSON: `job`, `rows` (dropped by this command), `open` and `dropped` (rows in quarantine now).
    """
    from engine.plan import parse_plan
    from engine.quarantine import drop as give_up
    from engine.quarantine import droppable

    paths = find_job(here(), job)
    with Workspace.open(paths) as workspace:
        belief = state_at(workspace).belief
    if not belief.plan:
        raise UsageError(f"job {paths.job!r} has no plan yet, so nothing of it was loaded")
    plan = parse_plan(belief.plan, f"plan version {belief.plan_version} of {paths.job}")
    with (
        stop_on_signals() as stop,
        JobLock(paths),
        Workspace.open(paths, write=True) as workspace,
        job_target(target, belief) as system,
    ):
        found = droppable(paths, workspace, system, plan, entity, signature)
        if found.rows and not yes and (not _agreed(paths, found.rows) or stop()):
            on_stderr().print("nothing was dropped")
            return InterruptedJobError.exit_code
        rows = give_up(found) if found.rows else 0
    left = _left(paths)
    if as_json:
        print_json({"job": paths.job, "rows": rows, "open": left.open, "dropped": left.dropped})
    else:
        on_stdout().print(
            f"{paths.job}: {rows:,} rows dropped; {left.open:,} open in quarantine, {left.dropped:,} dropped"
        )
    return 0


def _agreed(paths: JobPaths, rows: int) -> bool:
    """Asks once. UsageError where nobody is there to ask."""
    if not at_hand():
        raise UsageError(
            f"{rows:,} rows would be dropped, and there is no terminal to ask on",
            where=f"job {paths.job}",
            advice="say --yes where that is what you want",
        )
    on_stderr().print(f"drop {rows:,} rows? [y/N] ", end="")
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _left(paths: JobPaths) -> view.Left:
    with Workspace.open(paths) as workspace:
        return view.Left.of(state_at(workspace).progress)
