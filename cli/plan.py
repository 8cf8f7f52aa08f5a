"""`migrate plan`: the plan as a document: drafted from both systems, checked against them, compared, explained."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import typer

from cli.deciding import model_options
from cli.drafted import plan_text
from cli.options import (
    Adapter,
    AllowRemote,
    AsJson,
    Autonomy,
    LedgerSchema,
    Model,
    ModelSeconds,
    PriceIn,
    PriceOut,
    SendValues,
    Source,
    Target,
    Think,
    here,
)
from cli.run import JobName, Zone
from cli.signals import stop_on_signals
from cli.systems import GivenSource, GivenTarget, opened
from cli.views import plan as view
from cli.views.live import LiveView
from cli.views.output import on_stderr, on_stdout, print_json
from workspace.errors import UsageError
from workspace.log import Workspace
from workspace.paths import JobPaths, find_job

if TYPE_CHECKING:
    from engine.plan import Plan

app = typer.Typer(rich_markup_mode=None, help="The plan as a document: draft it, check it, compare it, explain it.")

File = Annotated[Path, typer.Argument(metavar="FILE", help="The plan.")]


AJob = Annotated[str | None, typer.Option("--job", metavar="NAME", help="The job; the newest without it.")]
Out = Annotated[
    Path | None, typer.Option("-o", "--output", metavar="FILE", help="Where to write it; without it, stdout.")
]
Force = Annotated[bool, typer.Option("--force", help="Write over a file that is there.")]


@app.command("draft")
def draft(
    source: Source,
    target: Target,
    output: Out = None,
    job: JobName = None,
    model: Model = None,
    adapter: Adapter = None,
    think: Think = False,
    allow_remote: AllowRemote = False,
    send_values: SendValues = False,
    price_in: PriceIn = 0.0,
    price_out: PriceOut = 0.0,
    model_seconds: ModelSeconds = 300.0,
    autonomy: Autonomy = 0.9,
    zone: Zone = None,
    ledger_schema: LedgerSchema = None,
    force: Force = False,
) -> int:
    """Survey both systems and draft a plan; no row is read into a stage, and nothing is written to the target.

    What was decided and what is left for a person stay in the job, and `migrate run --job` goes on with them.
    """
    from agent.job import JobRequest, draft_job
    from agent.questions import open_questions

    if output is not None and output.exists() and not force:
        raise UsageError("there is a file of that name", where=str(output), advice="choose another, or --force")
    options = model_options(
        model, adapter=adapter, think=think, allow_remote=allow_remote, send_values=send_values, price_in=price_in,
        price_out=price_out, model_seconds=model_seconds,
    )  # fmt: skip
    request = JobRequest(
        source,
        target,
        job=job,
        model=model,
        model_options=options,
        autonomy=autonomy,
        zone=zone,
        ledger_schema=ledger_schema,
        base=here(),
    )
    with stop_on_signals() as stop, LiveView(on_stderr(), "migrate plan draft") as live:
        outcome = draft_job(request, progress=live, stop=stop)
    with Workspace.open(JobPaths(here(), outcome.job)) as workspace:
        questions = open_questions(workspace)
    text = plan_text(outcome.plan, source, target, outcome.job, questions)
    if output is None:
        print(text, end="")
    else:
        try:
            output.write_text(text, encoding="utf-8")
        except OSError as error:
            raise UsageError(f"cannot be written: {error.strerror}", where=str(output)) from None
    view.show_draft(on_stderr(), outcome.job, outcome.plan, outcome.held, len(questions), output)
    return 0


@app.command("check")
def check(file: File, source: GivenSource = None, target: GivenTarget = None, as_json: AsJson = False) -> int:
    """Hold a plan against both systems; nothing moves. Exits with 2 for the first thing that can't be.

    JSON: `ok`, `plan`, and `entities`, in load order, a list of objects with `entity`, `from`, `to`, `key`,
    `fields`, `references`, `deferred` (fields filled in the second pass), `unaccounted` (source columns that
    the plan doesn't speak of).
    """
    from engine.check import check_plan
    from engine.plan import load_plan
    from engine.prepare import try_queries

    plan = load_plan(file)
    dsns = plan.dsn("source", source), plan.dsn("target", target)
    with opened(*dsns) as (from_system, to_system):
        checked = check_plan(plan, from_system, to_system.catalogue())
    with TemporaryDirectory(prefix="packhorse-") as folder:
        try_queries(JobPaths(Path(folder), "check").create(), checked)
    entities = view.entities(checked.entities)
    if as_json:
        print_json({"ok": True, "plan": str(file), "entities": entities})
    else:
        view.show_entities(on_stdout(), entities)
    return 0


@app.command("explain")
def explain(
    field: Annotated[str, typer.Argument(metavar="ENTITY.COLUMN", help="A field: the target's column, of an entity.")],
    job: AJob = None,
    as_json: AsJson = False,
) -> int:
    """Tell the story of one field, from the job's log: what the plan says, who decided it out of which candidates, on
    what evidence and at what price, what was asked and answered, and which rows failed by it.

    JSON: `job`, `entity`, `column`, `plan_version`, `says` (null where the column is left out), `value_map`,
    `chapters` (objects with `at`, `position`, `kind`, `what`, `rung`, `sure`, `why`, `candidates`, `calls`, `tokens`,
    `seconds`), `failed` (rows by signature).
    """
    from engine.field_story import field_story

    with Workspace.open(find_job(here(), job)) as workspace:
        story = field_story(workspace, field)
    if as_json:
        print_json(story.to_dict())
    else:
        view.show_story(on_stdout(), story)
    return 0


@app.command("diff")
def diff(
    before: Annotated[str, typer.Argument(metavar="A", help="A plan's file, or the number of a version of the job's.")],
    after: Annotated[str, typer.Argument(metavar="B", help="The other.")],
    job: AJob = None,
    as_json: AsJson = False,
) -> int:
    """Show what differs between two plans, field by field: a file, or a version of a job's plan.

    How they are written (comments, order, quotes) makes no difference. JSON: `same`, and `appeared`, `changed` and
    `went`, lists of objects with `path`, `before`, `after`.
    """
    from engine.plan import plan_document
    from workspace.difference import Difference, compare

    old, new = (plan_document(_plan(each, job)) for each in (before, after))
    for document in (old, new):
        document.pop("version", None)
    found = Difference(0, 0, tuple(compare(old, new)))
    if as_json:
        told = found.to_dict()
        print_json({"same": not found.items, **{kind: told[kind] for kind in ("appeared", "changed", "went")}})
    elif not found.items:
        on_stdout().print("the plans say the same")
    else:
        view.show_items(on_stdout(), found.items)
    return 0


def _plan(named: str, job: str | None) -> Plan:
    from engine.field_story import plan_of_version
    from engine.plan import load_plan

    if not named.isdigit():
        return load_plan(Path(named))
    with Workspace.open(find_job(here(), job)) as workspace:
        return plan_of_version(workspace, int(named))
