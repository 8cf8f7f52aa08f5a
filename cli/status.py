"""`migrate status`: how far one job is, what waits, and what to do next."""

from __future__ import annotations

from cli.options import AsJson, Job, here
from cli.views import status as view
from cli.views.output import on_stdout, print_json
from workspace.lock import lock_holder
from workspace.log import Workspace
from workspace.paths import find_job
from workspace.state import state_at


def status(job: Job = None, as_json: AsJson = False) -> int:
    """Show how far a job is: its phase, the rows by outcome, open questions, what to attend to.

    JSON: `job`, `state`, `running` (who runs it, or null), `source`, `target`, `position` (of the log),
    `money` (at --price-in and --price-out, or null), and `progress` with `phase`, `entities`, `counts`, `open_questions`, `decisions`, `attend_next`, `verified`,
    `outcome`, `exit_code`.
    """
    paths = find_job(here(), job)
    with Workspace.open(paths) as workspace:
        state = state_at(workspace)
    holder = lock_holder(paths)
    if as_json:
        print_json(view.document(paths.job, state, holder))
    else:
        view.show(on_stdout(), paths.job, state, holder)
    return 0
