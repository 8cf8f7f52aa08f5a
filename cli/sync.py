"""`migrate sync`: brings in what changed in the source since the job read it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from cli.opened_job import opened_job
from cli.options import AsJson, Job, SourceSsh, TargetSsh, here
from cli.signals import stop_on_signals
from cli.systems import GivenSource, GivenTarget, given_again
from cli.views import sync as view
from cli.views.live import LiveView
from cli.views.output import on_stderr, on_stdout, print_json
from workspace.errors import WaitingForPersonError
from workspace.paths import find_job
from workspace.state import State, state_at

if TYPE_CHECKING:
    from engine.sync_outcome import SyncOutcome

TOO_MANY = 3

DryRun = Annotated[bool, typer.Option("--dry-run", help="Only read and show what changed; write nothing.")]
Gone = Annotated[
    Literal["keep", "delete", "mark"],
    typer.Option(
        "--deletes",
        help="What becomes of rows that are gone from the source: they stay, go, or get the plan's deletion marker.",
    ),
]
Full = Annotated[bool, typer.Option("--full", help="Read all rows, whatever watermarks say.")]
EditedRows = Annotated[
    Literal["keep", "overwrite", "ask"] | None,
    typer.Option(
        "--edited",
        help="For rows that somebody edited in the target, in the place of what the plan's entities say.",
    ),
]


PlanFile = Annotated[
    Path | None,
    typer.Option("--plan", metavar="FILE", help="The job's plan, edited in what it says of `edited` and `watermark`."),
]


def sync(
    job: Job = None,
    deletes: Gone = "keep",
    edited: EditedRows = None,
    full: Full = False,
    plan: PlanFile = None,
    source: GivenSource = None,
    target: GivenTarget = None,
    source_ssh: SourceSsh = None,
    target_ssh: TargetSsh = None,
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> int:
    """Bring in what changed in the source since the job last read it: rows that are new, changed, or mended.

    The source is read again (from its watermark on, where the plan names one) and compared with the stage; what differs
    is a further generation of it and goes over in batches, each once. Rows that somebody edited in the target are not
    written over unless the plan or --edited says so; with `ask`, they are listed and the exit code is 4. Of rows that
    are gone from the source, --deletes takes out or marks only those that the job inserted itself and that nothing in
    the target refers to. Interrupted or killed, the same command goes on.

    JSON: `job`, `generation`, `done` (false for a dry run), `since` (when the generation before was read),
    `lag_seconds` (from then until now), `entities`, a list of objects with `entity`, `seen`, `counted` (in the source),
    `new`, `changed`, `again` (unchanged, driven once more for a row that they refer to), `gone` (or null), `snapshot`,
    and of those brought in `inserted`, `updated`, `unchanged`, `excluded`, `quarantined`, `freed` (from the
    quarantine), `kept`, `asked`, `deleted`, `marked`, `stayed`, `references`; `skipped` (entities left as they are, with the reason), `asked`,
    `kept_rows`, a list of objects with `entity`, `key`, `id`, `fields`, `asked`; and `exit_code`.
    """
    from engine.plan import load_plan
    from engine.sync import Sync
    from engine.sync_outcome import SyncOptions
    from engine.sync_plan import check_policies

    paths = find_job(here(), job)
    source = given_again(paths, "source", source, source_ssh)
    target = given_again(paths, "target", target, target_ssh)
    given = load_plan(plan) if plan is not None else None
    with (
        stop_on_signals() as stop,
        LiveView(on_stderr(), "sync") as live,
        opened_job(paths, source, target, progress=live, stop=stop) as context,
    ):
        checked = check_policies(context, given) if given is not None else None
        syncing = Sync(context, SyncOptions(deletes, full, edited or ""), checked)
        outcome = syncing.foresee() if dry_run else syncing.run()
        code = _code(outcome, state_at(context.workspace))
    if as_json:
        print_json({"job": paths.job, **outcome.to_dict(), "exit_code": code})
    else:
        view.show(on_stdout(), paths.job, outcome)
    return code


def _code(outcome: SyncOutcome, state: State) -> int:
    from agent.job_request import TOLERATED, too_many

    if outcome.asked:
        return WaitingForPersonError.exit_code
    progress, tolerate = state.progress, float(state.belief.options.get("tolerate", TOLERATED))
    left = progress.counts.quarantined - sum(entity.dropped for entity in progress.entities.values())
    return TOO_MANY if outcome.done and too_many(progress.counts.read, left, tolerate) else 0
