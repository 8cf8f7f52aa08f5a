"""An edit of a plan until it is agreed to: the editor, the checks, what differs, the question; and again."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from cli.editor import edited
from cli.views import plan as view
from cli.views.errors import show_error
from cli.views.output import on_stderr, on_stdout
from workspace.disk import disk_errors
from workspace.errors import InterruptedJobError, PackhorseError

if TYPE_CHECKING:
    from engine.plan import Plan


@dataclass
class Draft:
    """What is being edited: its place, the text that it began with, and the plan that this says; None for no plan."""

    file: Path
    text: str
    plan: Plan | None


def agreed(draft: Draft, check: Callable[[Plan], list[str]], question: str) -> str | None:
    """The text that was edited, passes the checks and was agreed to; None for none. What was typed stays in the draft's
    file until it is kept."""
    from engine.plan import parse_plan
    from engine.plan_difference import plan_difference
    from engine.plan_place import line_of

    with disk_errors():
        draft.file.parent.mkdir(mode=0o700, exist_ok=True)
        with os.fdopen(os.open(draft.file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as out:
            out.write(draft.text)
    console = on_stderr()
    while True:
        text = edited(draft.file)
        if text == draft.text:
            return None
        try:
            changed = parse_plan(text, draft.file.name)
            notes = check(changed)
        except PackhorseError as error:
            line = line_of(text, error.where)
            where = f"{draft.file.name}:{line}: {error.where}" if line else error.where
            show_error(console, error.code, error.what, where, error.advice, error.details)
            if _ask("edit again? [Y/n]") not in ("", "y", "yes"):
                return None
            continue
        if draft.plan is not None:
            items = plan_difference(draft.plan, changed).items
            if items:
                view.show_items(console, items)
            else:
                console.print("comments and layout alone: the plans say the same")
        for note in notes:
            console.print(note, style="yellow")
        answer = _ask(f"{question} [y/N, e to edit again]")
        if answer != "e":
            return text if answer in ("y", "yes") else None


def _ask(question: str) -> str:
    on_stderr().print(f"{question} ", end="")
    line = sys.stdin.readline()
    return line.strip().lower() if line else "n"


def nothing_kept(draft: Draft) -> int:
    """Says that nothing was kept, and where what was typed lies; the exit code of a command that was declined."""
    typed = draft.file.read_text(encoding="utf-8", errors="replace") if draft.file.exists() else draft.text
    if typed == draft.text:
        draft.file.unlink(missing_ok=True)
        on_stdout().print("nothing was changed")
        return 0
    on_stdout().print(f"nothing was kept; what you typed lies in {draft.file}")
    return InterruptedJobError.exit_code
