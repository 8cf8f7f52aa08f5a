"""Getting through what passes: a lost target, a deadlock, a want of connections; and stopping when asked to."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

import stamina
import stamina.instrumentation

from connectors.protocols import RowsRefusedError, TargetBusyError, TargetLostError
from engine.context import Context, Progress
from workspace.errors import InterruptedJobError, JobFailedError
from workspace.events import JobPaused, JobWentOn, RetryMade
from workspace.lock import this_process
from workspace.pause import pause_asked, who_paused

stamina.instrumentation.set_on_retry_hooks([])

T = TypeVar("T")
RETRY_SECONDS = 120.0
"""How long a lost target is waited for before the job stops, resumable."""
PAUSE_SECONDS = 0.2
"""How soon a paused job sees that it may go on."""
GO_ON = "migrate watch --go-on"


def persist(
    ctx: Context,
    what: str,
    act: Callable[[], T],
    again: str = "migrate resume",
    mend: Callable[[], None] | None = None,
) -> T:
    """Does it, again after a lost connection or what passes; each try is in the log. Never retries the rest.

    `mend` is done before each new try; by default the target is connected anew."""
    attempt_number = 0
    try:
        for attempt in stamina.retry_context(
            on=TargetLostError, attempts=None, timeout=RETRY_SECONDS, wait_initial=0.2, wait_max=5.0
        ):
            with attempt:
                attempt_number += 1
                if attempt_number > 1:
                    stop_if_asked(ctx)
                    (mend or ctx.target.reconnect)()
                try:
                    return act()
                except TargetLostError as error:
                    ctx.workspace.record(RetryMade(what, attempt_number, str(error)[:200]))
                    ctx.progress(Progress("again", f"{what}, try {attempt_number}: {str(error)[:80]}"))
                    raise
    except TargetLostError as error:
        raise given_up(error, attempt_number, ctx.target.dsn, again) from None
    except RowsRefusedError as error:
        raise JobFailedError(
            f"the target refused our own records: {error.message}",
            where=what,
            advice=f"report this; `{again}` goes on",
        ) from None
    raise AssertionError("unreachable")


def wait_while_paused(ctx: Context) -> None:
    """Returns once nobody wants the job to wait, or when it was asked to stop. Called between batches only, so that
    what is done is done, and no transaction is open meanwhile."""
    if not pause_asked(ctx.paths):
        return
    ctx.workspace.record(JobPaused(who_paused(ctx.paths), this_process()))
    ctx.progress(Progress("paused", f"by {who_paused(ctx.paths) or 'somebody'}; to go on: {GO_ON} {ctx.paths.job}"))
    while pause_asked(ctx.paths):
        if ctx.stop():
            return
        time.sleep(PAUSE_SECONDS)
    ctx.workspace.record(JobWentOn())


def given_up(error: TargetLostError, tries: int, dsn: str, again: str) -> JobFailedError:
    """What ends the job when trying again didn't help, told as what it is; `again` is the command that goes on."""
    if isinstance(error, TargetBusyError):
        return JobFailedError(
            f"{error.what}, {tries} times in a row", where=dsn, advice=f"{error.advice}; then `{again}`"
        )
    return JobFailedError(f"the target is gone: {error}", where=dsn, advice=f"when it is back: `{again}`")


def stop_if_asked(ctx: Context, again: str = "migrate resume") -> None:
    """Waits while somebody wants the job to; InterruptedJobError where it was asked to stop, and `again` goes on."""
    wait_while_paused(ctx)
    if ctx.stop():
        raise InterruptedJobError(
            "interrupted; what was committed stays",
            where=f"job {ctx.paths.job}",
            advice=f"{again} {ctx.paths.job}",
        )
