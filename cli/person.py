"""Asks the person at the terminal: one question at a time, what they type as it is."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from cli.signals import StopFlag
from cli.views import questions as view
from cli.views.live import LiveView
from cli.views.output import on_stderr

if TYPE_CHECKING:
    from agent.questions import Question

LATER = "later"


def at_hand() -> bool:
    """True where somebody sits before this command: it reads from a terminal and shows to one."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def read_answer(question: Question) -> str | None:
    """What is typed; None for nothing, which lets the question wait."""
    offered = "your own words" if question.free else "a number, or none"
    if question.kind == "entity":
        offered += ", or for rows of several kinds COLUMN: VALUE=TABLE; VALUE=TABLE"
    on_stderr().print(f"answer ({offered}; empty to let it wait; {LATER} for all): ", end="")
    return sys.stdin.readline().strip() or None


class Person:
    """Callable as `run_job` asks: shows the question, takes the live view away meanwhile."""

    def __init__(self, live: LiveView, stop: StopFlag) -> None:
        self._live, self._stop = live, stop
        self._gone = False
        self._asked = 0

    def __call__(self, question: Question) -> str | None:
        """The answer as it was typed, or None to let the question wait."""
        if self._gone or self._stop():
            return None
        self._live.pause()
        self._asked += 1
        view.show_question(on_stderr(), question, str(self._asked))
        answer = read_answer(question)
        self._live.go_on()
        self._gone = answer == LATER
        return None if self._gone else answer
