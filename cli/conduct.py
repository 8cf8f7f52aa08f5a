"""Conducts a job that `run` or `resume` starts: the live view, the signals, the question before the first row,
and what is told at the end."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from cli.options import here
from cli.signals import StopFlag, stop_on_signals
from cli.views import run as view
from cli.views.live import LiveView
from cli.views.output import on_stderr, on_stdout, print_json
from cli.views.status import document, show
from workspace.lock import lock_holder
from workspace.log import Workspace
from workspace.paths import find_job
from workspace.state import state_at

if TYPE_CHECKING:
    from agent.job import JobOutcome


class Act(Protocol):
    """Runs the job; `agent.job.run_job` with its request."""

    def __call__(
        self, *, progress: Callable[[Any], None], stop: Callable[[], bool], confirm: Callable[[Any], bool]
    ) -> JobOutcome:
        """What became of the job. Raises PackhorseError."""


def conduct(title: str, act: Act, *, yes: bool, as_json: bool) -> int:
    """Runs the job and returns its exit code; tells the end on stdout, all else on stderr."""
    with stop_on_signals() as stop, LiveView(on_stderr(), title) as live:
        outcome = act(progress=live, stop=stop, confirm=_asker(live, stop, yes))
    paths = find_job(here(), outcome.job)
    with Workspace.open(paths) as workspace:
        state = state_at(workspace)
    if as_json:
        print_json({**document(paths.job, state, lock_holder(paths)), "exit_code": outcome.exit_code})
    else:
        show(on_stdout(), paths.job, state, None)
    return outcome.exit_code


def _asker(live: LiveView, stop: StopFlag, yes: bool) -> Callable[[Any], bool]:
    """Asks once before the first row moves; without a terminal, and with --yes, goes on by itself."""

    def confirm(preview: Any) -> bool:
        if yes or not (sys.stdin.isatty() and sys.stderr.isatty()):
            return True
        live.pause()
        view.show_before(on_stderr(), preview)
        on_stderr().print("move these rows? [y/N] ", end="")
        answer = sys.stdin.readline().strip().lower()
        live.go_on()
        return answer in ("y", "yes") and not stop()

    return confirm
