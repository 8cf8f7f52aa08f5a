"""`migrate preview`: what would happen, rows side by side; nothing is written to the target."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.conduct import refuse_unknown, tell_preview
from cli.opened_job import opened_job
from cli.options import AsJson, Job, PlanFile, SourceSsh, TargetSsh, here
from cli.signals import StopFlag, stop_on_signals
from cli.systems import GivenSource, GivenTarget, by_ssh, given_again
from cli.views.live import LiveView
from cli.views.output import on_stderr
from cli.written import refuse_place, written
from workspace.errors import UsageError
from workspace.paths import find_job

if TYPE_CHECKING:
    from agent.job import JobOutcome

Rows = Annotated[bool, typer.Option("--rows/--no-rows", help="Show rows side by side.")]

Entity = Annotated[str, typer.Option("--entity", metavar="NAME", help="Show all that is known of this entity.")]

Page = Annotated[
    Path | None,
    typer.Option(
        "--html",
        metavar="FILE",
        help="Write it as one page that needs no network, its rows to be filtered; values as they are.",
    ),
]

_Side = tuple[str | None, str | None]  # the DSN given, and the host to go through


def preview(
    job: Job = None,
    plan: PlanFile = None,
    source: GivenSource = None,
    target: GivenTarget = None,
    source_ssh: SourceSsh = None,
    target_ssh: TargetSsh = None,
    rows: Rows = True,
    entity: Entity = "",
    html: Page = None,
    as_json: AsJson = False,
) -> int:
    """Show what would happen, of a job or of a plan file: rows by outcome, what fails and why, what is left
    behind, rows side by side. Nothing is written to the target.

    With --html as a page: record values are in it, so only its owner can read the file.

    The source is read once, into the stage of the job; `migrate resume` then loads just these rows.

    JSON: `job`, `plan_version`, and `entities`, in load order, a list of objects with `entity`, `source`,
    `target`, `read`, `load`, `unchanged`, `merged`, `excluded`, `quarantined`, `changes`, `clusters`, `collisions`,
    `collisions_total`, `duplicates`, `duplicates_total`, `unmapped`, `unaccounted`, `deferred`, `rows`, `matched` (of those to load or unchanged, rows that the target
    held before); `held` (entities that wait, with their
    questions) and `questions` (how many are open).
    """
    if job and plan:
        raise UsageError("a job and --plan at once", advice="migrate preview JOB, or migrate preview --plan FILE")
    if html is not None:
        refuse_place(html, "--html")
    with stop_on_signals() as stop, LiveView(on_stderr(), "preview") as live:
        if plan:
            outcome = _of_plan(plan, (source, source_ssh), (target, target_ssh), live, stop)
        else:
            outcome = _of_job(job, (source, source_ssh), (target, target_ssh), live, stop)
    if html is not None:
        _write(outcome, html, entity)
    if html is None or as_json:
        tell_preview(outcome, side_by_side=rows, as_json=as_json, only=entity)
    return 0


def _write(outcome: JobOutcome, output: Path, only: str) -> None:
    """Writes the page, for its owner alone."""
    from cli.views.preview_page.page import page

    assert outcome.preview is not None
    refuse_unknown(outcome.preview, only)
    with written(output) as file:
        file.write(page(outcome.job, outcome.preview, outcome.plan, only=only).encode())
    on_stderr().print(f"wrote {output}; nothing was written to the target")


def _of_plan(file: Path, source: _Side, target: _Side, live: LiveView, stop: StopFlag) -> JobOutcome:
    """A new job under the plan, as far as its preview."""
    from agent.job import JobRequest, run_job
    from engine.plan import load_plan

    plan = load_plan(file)
    dsns = by_ssh(plan.dsn("source", source[0]), source[1], plan.dsn("target", target[0]), target[1])
    request = JobRequest(
        source_dsn=dsns[0],
        target_dsn=dsns[1],
        plan_path=file,
        plan=plan,
        dry_run=True,
        base=here(),
    )
    return run_job(request, progress=live, stop=stop)


def _of_job(job: str | None, source: _Side, target: _Side, live: LiveView, stop: StopFlag) -> JobOutcome:
    """A job that is there, under the latest plan of its log."""
    from agent.job import JobOutcome
    from engine.preview import preview as foresee

    paths = find_job(here(), job)
    dsns = given_again(paths, "source", *source), given_again(paths, "target", *target)
    with opened_job(paths, *dsns, progress=live, stop=stop) as context:
        found = foresee(context)
        return JobOutcome(context.paths.job, "dry run", 0, context.checked.plan, found)
