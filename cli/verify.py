"""`migrate verify`: does the equation hold, by counts of its own?"""

from __future__ import annotations

from typing import Annotated

import typer

from cli.opened_job import opened_job
from cli.options import AsJson, Job, SourceSsh, TargetSsh, here
from cli.signals import stop_on_signals
from cli.systems import GivenSource, GivenTarget, given_again
from cli.views import verify as view
from cli.views.live import LiveView
from cli.views.output import on_stderr, on_stdout, print_json
from workspace.events import JobFinished
from workspace.paths import find_job

AskSource = Annotated[bool, typer.Option("--ask-source/--no-ask-source", help="Have the source count again too.")]
SampleRows = Annotated[
    int,
    typer.Option("--sample", min=0, metavar="ROWS", help="Rows of each entity to compare field by field; 0 for none."),
]


def verify(
    job: Job = None,
    source: GivenSource = None,
    target: GivenTarget = None,
    source_ssh: SourceSsh = None,
    target_ssh: TargetSsh = None,
    ask_source: AskSource = True,
    sample: SampleRows = 100,
    as_json: AsJson = False,
) -> int:
    """Check that read = loaded + merged + excluded + quarantined, row for row and hash for hash, by counting
    anew in the stage and in the target. Of each entity a sample is transformed anew and compared with the target
    field by field, the same rows each time. Exits with 1 where something doesn't hold.

    JSON: `job`, `ok`, and `entities`, a list of objects with `entity`, `source`, `target`, `read`, `counted`
    (by the source, or null), `loaded`, `merged`, `excluded`, `quarantined` (of which `dropped`), `compared` (rows
    of the sample), `problems`, `notes`, `matched` (of those loaded, rows that the target held before; null where the plan
    matches none).
    """
    from engine.check import check_readable
    from engine.verify import verify as reconcile

    paths = find_job(here(), job)
    source = given_again(paths, "source", source, source_ssh)
    target = given_again(paths, "target", target, target_ssh)
    with (
        stop_on_signals() as stop,
        LiveView(on_stderr(), "verify") as live,
        opened_job(paths, source, target, progress=live, stop=stop, check=check_readable) as context,
    ):
        found = reconcile(context, ask_source=ask_source, sample=sample)
        if not found.ok:
            context.workspace.record(JobFinished("not verified", 1))
    if as_json:
        print_json({"job": paths.job, **found.to_dict()})
    else:
        view.show(on_stdout(), paths.job, found)
    return 0 if found.ok else 1
