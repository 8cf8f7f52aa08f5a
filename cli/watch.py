"""`migrate watch`: attaches to a job from another terminal."""

from __future__ import annotations

from typing import Annotated

import typer

from cli.options import Job, here
from cli.systems import GivenTarget
from cli.views.output import is_plain, on_stdout
from workspace.errors import UsageError
from workspace.log import Workspace
from workspace.paths import find_job
from workspace.pause import ask_to_go_on, ask_to_pause

Plain = Annotated[bool, typer.Option("--plain", help="Lines instead of a full screen, on a terminal too.")]
Pause = Annotated[bool, typer.Option("--pause", help="Ask the job to wait after the batch at hand; then end.")]
GoOn = Annotated[bool, typer.Option("--go-on", help="Take the wish to pause back; then end.")]


def watch(
    job: Job = None, plain: Plain = False, pause: Pause = False, go_on: GoOn = False, target: GivenTarget = None
) -> int:
    """Watch a job that another terminal runs, or look at one that has ended: phases, entities with the time left, rows
    a second, quarantine clusters, decisions, questions, the log.

    It reads the job's log and writes nothing, but for what a key asks: p pauses the job between two batches, g lets it
    go on, a answers a question of a job that isn't running. Off a terminal it prints a line every few seconds until
    nobody runs the job, and ends with the job's exit code, 130 where it was killed.
    """
    paths = find_job(here(), job)
    if pause and go_on:
        raise UsageError("--pause and --go-on can't go together", advice="migrate watch --help")
    console = on_stdout()
    if pause or go_on:
        (ask_to_pause if pause else ask_to_go_on)(paths)
        console.print(f"{paths.job}: " + ("waits after the batch at hand" if pause else "goes on"))
        return 0
    from cli.views.watch.followed import Followed

    followed = Followed(paths)
    with Workspace.open(paths) as workspace:
        if plain or is_plain(console):
            from cli.views.watch.lines import ends_with, follow_in_lines

            follow_in_lines(console, followed, workspace)
            return ends_with(followed)
        # a third of a second, which only a screen needs
        from cli.views.watch.app import WatchApp

        app = WatchApp(followed, workspace, target)
        app.run()
        if app.failed is not None:
            raise app.failed
    return 0
