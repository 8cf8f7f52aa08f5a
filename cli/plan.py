"""`migrate plan`: the plan as a document: checked against both systems, compared, explained."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import typer

from cli.options import AsJson, here
from cli.plan_draft import draft
from cli.plan_edit import edit
from cli.plan_schema import schema
from cli.systems import GivenSource, GivenTarget, opened
from cli.views import plan as view
from cli.views.output import on_stdout, print_json
from workspace.log import Workspace
from workspace.paths import JobPaths, find_job

if TYPE_CHECKING:
    from engine.plan import Plan

app = typer.Typer(
    rich_markup_mode=None, help="The plan as a document: draft it, check it, edit it, compare it, explain it."
)
app.command("draft")(draft)

File = Annotated[Path, typer.Argument(metavar="FILE", help="The plan.")]


AJob = Annotated[str | None, typer.Option("--job", metavar="NAME", help="The job; the newest without it.")]


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
    from engine.plan_difference import plan_difference

    found = plan_difference(_plan(before, job), _plan(after, job))
    if as_json:
        told = found.to_dict()
        print_json({"same": not found.items, **{kind: told[kind] for kind in ("appeared", "changed", "went")}})
    elif not found.items:
        on_stdout().print("the plans say the same")
    else:
        view.show_items(on_stdout(), found.items)
    return 0


app.command("edit")(edit)
app.command("schema")(schema)


def _plan(named: str, job: str | None) -> Plan:
    from engine.field_story import plan_of_version
    from engine.plan import load_plan

    if not named.isdigit():
        return load_plan(Path(named))
    with Workspace.open(find_job(here(), job)) as workspace:
        return plan_of_version(workspace, int(named))
