"""`migrate jobs`: the jobs under this folder and how far each is."""

from __future__ import annotations

from typing import Any

from cli.options import AsJson, here
from cli.views import jobs as view
from cli.views.output import on_stdout, print_json
from workspace.errors import PackhorseError
from workspace.lock import lock_holder
from workspace.log import Workspace
from workspace.paths import JobPaths, list_jobs
from workspace.state import state_at


def jobs(as_json: AsJson = False) -> int:
    """List the jobs under this folder, the newest last.

    JSON: `jobs`, a list of objects with `job`, `source`, `target`, `state` (running, paused, done, failed, waiting,
    interrupted, stopped, undone, cleaned up, purged, drafted, previewed, declined, unreadable), `phase`, `started_at`, `last_at`, `read`, `loaded`, `quarantined`,
    `questions`, `exit_code`, `error`.
    """
    base = here()
    found = [_summary(JobPaths(base, job)) for job in list_jobs(base)]
    if as_json:
        print_json({"jobs": found})
    else:
        view.show(on_stdout(), found)
    return 0


def _summary(paths: JobPaths) -> dict[str, Any]:
    """A job in one object, JSON values. A workspace that can't be read gives its `error`."""
    holder = lock_holder(paths)
    try:
        with Workspace.open(paths) as workspace:
            state = state_at(workspace)
    except PackhorseError as error:
        return {"job": paths.job, "state": "unreadable", "error": error.what}
    progress = state.progress.to_dict()
    counts = state.progress.counts
    return {
        "job": paths.job,
        "source": state.belief.source,
        "target": state.belief.target,
        "state": view.job_state(state.progress, holder),
        "running": holder,
        "phase": state.progress.phase,
        "started_at": progress["started_at"],
        "last_at": progress["last_at"],
        "read": counts.read,
        "loaded": counts.loaded,
        "quarantined": counts.quarantined,
        "questions": len(state.progress.open_questions),
        "exit_code": state.progress.exit_code,
        "error": None,
    }
