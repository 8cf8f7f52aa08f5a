"""An event of the log as it may leave the job's folder: counts, names of tables and columns, closed words.

No record value: not a key, a sample, a candidate, an answer, an error's text, nor the plan with its value maps. A field
is shown because it is listed here or is a number, never because it wasn't thought of.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from workspace.events import Event, Interrupted, JobFinished, QuarantineSeen, QuestionAsked, RetryMade, Verified

NAMES = frozenset({
    "job", "source", "target", "entity", "side", "table", "field", "phase", "code", "kind", "rung", "by", "action", "signal",
    "process", "executor", "deletes", "edited", "pilot",
})  # fmt: skip
"""Fields of text that hold names, masked DSNs and words of ours."""

LISTS_OF_NAMES = frozenset({"holds", "redriven"})


def shown(event: Event) -> dict[str, Any]:
    """What of the event's fields may be shown, as JSON values."""
    found: dict[str, Any] = {}
    for each in fields(event):  # type: ignore[arg-type]
        value = getattr(event, each.name)
        if isinstance(value, bool | int | float) or (isinstance(value, str) and each.name in NAMES):
            found[each.name] = value
        elif each.name in LISTS_OF_NAMES:
            found[each.name] = list(value)
    if isinstance(event, JobFinished):  # what follows the colon is an error's text
        found["outcome"] = event.outcome.partition(":")[0]
    return found


def level(event: Event) -> str:
    """info, warning or error."""
    match event:
        case Verified() if not event.ok:
            return "error"
        case JobFinished():
            return level_of(event.exit_code)
        case RetryMade() | QuarantineSeen() | QuestionAsked() | Interrupted():
            return "warning"
        case _:
            return "info"


def level_of(exit_code: int) -> str:
    """Of a command that ended with that exit code."""
    return {0: "info", 1: "error", 2: "error"}.get(exit_code, "warning")
