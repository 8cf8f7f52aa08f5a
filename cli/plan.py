"""`migrate plan`: the plan as a document: drafted from both systems, or checked against them."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

from cli.options import AsJson
from cli.systems import GivenSource, GivenTarget, opened, plan_dsn
from cli.views import plan as view
from cli.views.output import on_stdout, print_json
from workspace.paths import JobPaths

app = typer.Typer(rich_markup_mode=None, help="The plan as a document: draft it, check it.")

File = Annotated[Path, typer.Argument(metavar="FILE", help="The plan.")]


@app.command("check")
def check(file: File, source: GivenSource = None, target: GivenTarget = None, as_json: AsJson = False) -> int:
    """Hold a plan against both systems; nothing moves. Exits with 2 for the first thing that can't be.

    JSON: `ok`, `plan`, and `entities`, in load order, a list of objects with `entity`, `from`, `to`,
    `fields`, `references`, `deferred` (fields filled in the second pass), `unaccounted` (source columns that
    the plan doesn't speak of).
    """
    from engine.check import check_plan
    from engine.plan import load_plan
    from engine.prepare import try_queries

    plan = load_plan(file)
    dsns = plan_dsn("source", source, plan.source), plan_dsn("target", target, plan.target)
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
