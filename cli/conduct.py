"""Conducts a job that `run` or `resume` starts: the live view, the signals, the question before the first row,
and what is told at the end."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from cli.options import here
from cli.person import Person, at_hand
from cli.signals import StopFlag, stop_on_signals
from cli.views import preview as view
from cli.views import status
from cli.views.live import LiveView, Step
from cli.views.output import on_stderr, on_stdout, print_json
from workspace.errors import UsageError
from workspace.log import Workspace
from workspace.paths import find_job
from workspace.state import state_at

if TYPE_CHECKING:
    from agent.job import JobOutcome
    from agent.questions import Question
    from engine.preview import Preview


class Act(Protocol):
    """Runs the job: `run_job` or `resume_job` of agent.job, with what it needs."""

    def __call__(
        self,
        *,
        progress: Callable[[Step], None],
        stop: Callable[[], bool],
        confirm: Callable[[Preview], bool],
        ask: Callable[[Question], str | None] | None,
    ) -> JobOutcome:
        """What became of the job. Raises PackhorseError."""


def conduct(title: str, act: Act, *, yes: bool, as_json: bool) -> int:
    """Runs the job and returns its exit code; tells the end on stdout, all else on stderr."""
    with stop_on_signals() as stop, LiveView(on_stderr(), title) as live:
        person = Person(live, stop) if at_hand() and not yes else None
        outcome = act(progress=live, stop=stop, confirm=_asker(live, stop, person), ask=person)
    if outcome.outcome == "dry run" and outcome.preview is not None:
        tell_preview(outcome, side_by_side=True, as_json=as_json)
        return outcome.exit_code
    paths = find_job(here(), outcome.job)
    with Workspace.open(paths) as workspace:
        state = state_at(workspace)
    if as_json:
        print_json({**status.document(paths.job, state, None), "exit_code": outcome.exit_code})
    else:
        status.show(on_stdout(), paths.job, state, None)
    return outcome.exit_code


def tell_preview(outcome: JobOutcome, *, side_by_side: bool, as_json: bool, only: str = "") -> None:
    """The preview of a dry run, on stdout. UsageError where the entity `only` isn't in it."""
    assert outcome.preview is not None
    refuse_unknown(outcome.preview, only)
    if as_json:
        print_json(_document(outcome))
    else:
        made_of = view.origins(outcome.plan) if side_by_side else None
        view.show(on_stdout(), outcome.job, outcome.preview, made_of, only)


def refuse_unknown(preview: Preview, only: str) -> None:
    """UsageError where the preview hasn't the entity `only`; "" stands for all."""
    names = [entity.entity for entity in preview.entities]
    if only and only not in names:
        raise UsageError(f"the plan has no entity {only!r}", advice=f"it has: {', '.join(names)}")


def _document(outcome: JobOutcome) -> dict[str, Any]:
    assert outcome.preview is not None
    held = {name: list(questions) for name, questions in outcome.held.items()}
    return {"job": outcome.job, **outcome.preview.to_dict(), "held": held, "questions": outcome.questions}


def _asker(live: LiveView, stop: StopFlag, person: Person | None) -> Callable[[Preview], bool]:
    """Asks once before the first row moves; without a terminal, and with --yes, goes on by itself."""

    def confirm(preview: Preview) -> bool:
        if person is None:
            return True
        live.pause()
        view.show_counts(on_stderr(), preview)
        for entity in preview.entities:
            view.show_failures(on_stderr(), entity)
        on_stderr().print("\nmove these rows? [y/N] ", end="")
        answer = sys.stdin.readline().strip().lower()
        live.go_on()
        return answer in ("y", "yes") and not stop()

    return confirm
