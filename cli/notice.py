"""`--on`: tells somebody who isn't there how a command ended, by a webhook or a command of theirs.

It comes after all is done and recorded: it can't change how the command ends, and it is given up after `SECONDS`. What
is told holds no record value, so neither an error's text.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import threading
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from cli.goals import Goal
from cli.views.status import next_commands
from workspace.errors import InterruptedJobError, PackhorseError, WaitingForPersonError
from workspace.log import Workspace
from workspace.progress import Progress, fold_progress

if TYPE_CHECKING:
    from cli.observed import End

SECONDS = 15.0  # for all that is told of one end, side by side
_TRY_SECONDS = 4.0
_TRIES = 3


def give_notice(end: End, goals: list[Goal]) -> list[str]:
    """Tells those who want to know. Returns what went wrong, a line each; never raises, never takes long."""
    event = _event(end)
    wanted = [goal for goal in goals if event in goal.events]
    if not wanted:
        return []
    body = json.dumps(_document(end, event)).encode("ascii")
    troubles = {id(goal): f"{goal.name} was not told: no answer in {SECONDS:g} seconds" for goal in wanted}

    def tell(goal: Goal) -> None:
        try:
            trouble = _post(goal.url, body) if goal.url else _run(goal.command, body)
        except Exception as error:
            trouble = type(error).__name__
        troubles[id(goal)] = f"{goal.name} was not told: {trouble}" if trouble else ""

    threads = [threading.Thread(target=tell, args=(goal,), daemon=True, name="notice") for goal in wanted]
    for thread in threads:
        thread.start()
    with contextlib.suppress(KeyboardInterrupt):  # whoever presses Ctrl-C now is there
        until = time.monotonic() + SECONDS
        for thread in threads:
            thread.join(max(0.0, until - time.monotonic()))
    return [trouble for trouble in list(troubles.values()) if trouble]


def _event(end: End) -> str:
    """done, question or failure; nothing where a person at the terminal said no."""
    if end.error is None and end.code == InterruptedJobError.exit_code:
        return ""
    if end.code == WaitingForPersonError.exit_code:
        return "question"
    return "done" if end.error is None and end.code in (0, 3) else "failure"


def _document(end: End, event: str) -> dict[str, Any]:
    """What is told, as JSON values; the keys are those of docs/how-to/unattended.md."""
    progress = Progress()
    with contextlib.suppress(PackhorseError):
        if end.paths is not None and end.paths.exists():
            with Workspace.open(end.paths) as workspace:
                progress = fold_progress(workspace.events())
    kind = type(end.error) if isinstance(end.error, PackhorseError) else PackhorseError
    meaning = (kind.__doc__ or "").strip().partition("\n")[0] if end.error is not None else ""
    return {
        "event": event,
        "command": end.verb,
        "job": end.job,
        "exit_code": end.code,
        "error": {"code": kind.code, "meaning": meaning} if end.error is not None else None,
        "counts": progress.counts.to_dict(),
        "questions": len(progress.open_questions),
        "verified": progress.verified,
        "next": _next(end, progress),
        "folder": os.getcwd(),
        "host": socket.gethostname(),
        "at": datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
    }


def _next(end: End, progress: Progress) -> str:
    """The command to type next."""
    if end.paths is None or progress.started_at is None:
        return f"migrate {end.verb} --help" if end.error is not None else ""
    told = next_commands(end.paths.job, progress, None)
    return told[0].partition("  ")[0] if told else f"migrate status {end.paths.job}"


def _post(url: str, body: bytes) -> str:
    """What went wrong, or nothing. Redirects aren't followed; what the server can't mend is not tried again."""
    import httpx
    import stamina
    import stamina.instrumentation

    stamina.instrumentation.set_on_retry_hooks([])

    def again(error: Exception) -> bool:
        if isinstance(error, httpx.HTTPStatusError):
            return error.response.status_code in (408, 425, 429) or error.response.status_code >= 500
        return isinstance(error, httpx.TransportError)

    headers = {"Content-Type": "application/json", "User-Agent": "packhorse"}
    try:
        for attempt in stamina.retry_context(
            on=again, attempts=_TRIES, timeout=SECONDS, wait_initial=0.2, wait_max=1.0
        ):
            with attempt, httpx.Client(timeout=_TRY_SECONDS, follow_redirects=False) as client:
                answer = client.post(url, content=body, headers=headers)
                if answer.is_redirect:
                    return f"the server sends on with {answer.status_code}; give the last URL"
                answer.raise_for_status()
    except httpx.HTTPStatusError as error:
        return f"the server answers {error.response.status_code}"
    except httpx.HTTPError as error:
        return f"no answer: {type(error).__name__}"
    return ""


def _run(command: tuple[str, ...], body: bytes) -> str:
    """What went wrong, or nothing. What the command prints goes to stderr: stdout is the verb's own."""
    # a session of its own: Ctrl-C on this terminal isn't meant for it, and what it started ends with it
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=2, stderr=2, start_new_session=True) as process:
        try:
            process.communicate(body, timeout=SECONDS - 1)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            return f"it took longer than {SECONDS - 1:g} seconds"
    return f"it ended with {process.returncode}" if process.returncode else ""
