"""`migrate inspect`: the workspace of a job, now or as it was at any position of its log."""

from __future__ import annotations

from typing import Annotated

import typer

from cli.options import AsJson, Job, here
from cli.views import inspect as view
from cli.views.output import on_stdout, print_json
from workspace.errors import UsageError
from workspace.events import EVENT_TYPES
from workspace.log import Workspace
from workspace.paths import find_job
from workspace.state import difference, state_at

At = Annotated[int | None, typer.Option("--at", metavar="N", help="The state after event N of the log.")]
Between = Annotated[
    tuple[int, int] | None, typer.Option("--diff", metavar="A B", help="What changed from event A to event B.")
]
OfBelief = Annotated[bool, typer.Option("--belief", help="What is held true, and the decisions on it.")]
OfProgress = Annotated[bool, typer.Option("--progress", help="What is done, failed, open.")]
OfExperience = Annotated[bool, typer.Option("--experience", help="What was learnt, and which remedies held.")]
OfLog = Annotated[bool, typer.Option("--log", help="The events themselves, in order.")]
Types = Annotated[
    list[str] | None, typer.Option("--type", metavar="NAME", help="With --log: only events of this type.")
]


def inspect(
    job: Job = None,
    at: At = None,
    diff: Between = None,
    belief: OfBelief = False,
    progress: OfProgress = False,
    experience: OfExperience = False,
    log: OfLog = False,
    types: Types = None,
    as_json: AsJson = False,
) -> int:
    """Show the workspace of a job: belief, progress and experience, now, at a position, or the difference.

    JSON: `job`, `position` and each of `belief`, `progress`, `experience` that was asked for (all, when none
    was); with --log `events`, a list of `position`, `at`, `type` and the event's fields; with --diff `from`,
    `to`, `appeared`, `changed`, `went`.
    """
    if diff and (at is not None or log):
        raise UsageError("--diff goes with neither --at nor --log", advice="migrate inspect --help")
    unknown = [name for name in types or () if name not in EVENT_TYPES]
    if unknown:
        raise UsageError(f"no event type {unknown[0]!r}", advice=f"one of {', '.join(EVENT_TYPES)}")
    wanted = [name for name, on in (("belief", belief), ("progress", progress), ("experience", experience)) if on]
    paths = find_job(here(), job)
    console = on_stdout()
    with Workspace.open(paths) as workspace:
        if diff:
            found = difference(state_at(workspace, diff[0]), state_at(workspace, diff[1]))
            found = view.only(found, wanted)
            if as_json:
                print_json({"job": paths.job, **found.to_dict()})
            else:
                view.show_difference(console, found)
        elif log:
            entries = workspace.events(stop=at, types=types or None)
            if as_json:
                print_json({"job": paths.job, "events": [view.entry(each) for each in entries]})
            else:
                view.show_log(console, entries)
        else:
            state = state_at(workspace, at)
            if as_json:
                print_json(view.document(paths.job, state, wanted))
            else:
                view.show_state(console, paths.job, state, wanted)
    return 0
