"""A job followed where there is no terminal: a plain line every few seconds, and how it ended."""

from __future__ import annotations

import time
from collections.abc import Callable

from rich.console import Console

from cli.signals import INTERRUPTED
from cli.views.pace import duration, pace_text, totals_text
from cli.views.status import state_words
from cli.views.watch.followed import Followed
from workspace.log import Workspace

LINE_SECONDS = 5.0
POLL_SECONDS = 0.5
QUIET_SECONDS = 60.0
"""How long a line that says nothing new is left out."""


def follow_in_lines(
    console: Console,
    followed: Followed,
    workspace: Workspace,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Prints a line when a phase begins and every few seconds, until nobody runs the job; then how it ended."""
    printed, shown, phase = -QUIET_SECONDS, "", ""
    while True:
        followed.follow(workspace)
        if followed.over:
            break
        line, now = job_line(followed), clock()
        begun = phase != followed.progress.phase
        due = now - printed >= LINE_SECONDS and (line != shown or now - printed >= QUIET_SECONDS)
        if begun or due:
            console.print(line)
            printed, shown, phase = now, line, followed.progress.phase
        sleep(POLL_SECONDS)
    for line in end_lines(followed):
        console.print(line)


def job_line(followed: Followed) -> str:
    """Where the job is, in one line: the entity under way, or the phase; how long until all rows are loaded."""
    progress = followed.progress
    now = followed.now()
    under_way = [pace for pace in followed.paces() if pace.phase == progress.phase and pace.done != pace.total]
    line = pace_text(under_way[-1], now) if under_way else progress.phase or "begins"
    left = followed.seconds_to_load()
    if left is not None:
        line += f"  {duration(left)} to load all"
    line = totals_text(line, progress.counts.quarantined)
    if progress.open_questions:
        line += f"  {len(progress.open_questions)} questions"
    if followed.word == "paused":
        line += "  paused"
    elif followed.paused:
        line += "  will pause after the batch at hand"
    return line


def end_lines(followed: Followed) -> list[str]:
    """How the job ended, or that it was killed, and the equation."""
    progress, counts = followed.progress, followed.progress.counts
    lines = [f"{followed.paths.job}: {state_words(progress, None)}"]
    if counts.read:
        lines.append(
            f"read {counts.read:,} = loaded {counts.loaded:,} + merged {counts.merged:,} + excluded {counts.excluded:,}"
            f" + quarantined {counts.quarantined:,}" + (f", missing {counts.missing:,}" if counts.missing else "")
        )
    return lines


def ends_with(followed: Followed) -> int:
    """The exit code of the command that ran the job; 130 where it was killed: it goes on when resumed."""
    code = followed.progress.exit_code
    return INTERRUPTED if code is None else code
