"""`migrate purge`: takes record values out of a job's files once it is signed off; its accounts stay."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.options import AsJson, Job, here
from cli.person import at_hand
from cli.signals import StopFlag, stop_on_signals
from cli.views import purge as view
from cli.views.output import on_stderr, on_stdout, print_json
from workspace.errors import InterruptedJobError, JobLockedError, PackhorseError, UsageError
from workspace.lock import JobLock, lock_holder
from workspace.log import Workspace
from workspace.paths import JobPaths, find_job, list_jobs
from workspace.state import state_at

if TYPE_CHECKING:
    from engine.purge import Purgeable

OlderThan = Annotated[
    str | None,
    typer.Option("--older-than", metavar="90d|12w", help="All settled jobs here whose last event is older than that."),
]
Unsettled = Annotated[
    bool,
    typer.Option(
        "--unsettled", help="Also where it isn't done and verified, or questions or rows in quarantine are open."
    ),
]
Crosswalk = Annotated[
    bool, typer.Option("--crosswalk", help="Also the crosswalk that `migrate cleanup` put into the job's folder.")
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only show what would go.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Purge without asking; needed where there is no terminal.")]

_AGE = re.compile(r"(\d{1,5})([dw])")
_DAYS = {"d": 1, "w": 7}


def purge(
    job: Job = None,
    older_than: OlderThan = None,
    unsettled: Unsettled = False,
    crosswalk: Crosswalk = False,
    dry_run: DryRun = False,
    yes: Yes = False,
    as_json: AsJson = False,
) -> int:
    """Take record values out of a job's files once it is signed off: its stage, what was made of it, samples, previews,
    the quarantine that `cleanup` exported, and values in its log. Its accounts stay: counts, checksums, decisions, plan
    versions, who did what and when.

    Works on this machine alone; what is in the target is taken out by `migrate cleanup`. Asks once. Afterwards the job
    can't be resumed, verified, retried or synced. Interrupted or killed, the same command goes on.

    JSON: `dry_run`, `jobs`, a list of objects with `job`, `files` and `bytes` (that go, or went), `purged` (now),
    `outside` (places elsewhere that hold records), `stays` (files in the job's folder that aren't its own), `open`
    (why it isn't settled, or empty), `begun` (by an earlier command), `cleaned_up`, `quarantined`; and `left`, the
    jobs left alone, by name, with the reason.
    """
    if job and older_than:
        raise UsageError(
            "a job and --older-than at once", advice="migrate purge JOB, or migrate purge --older-than 90d"
        )
    left: dict[str, str] = {}
    with stop_on_signals() as stop:
        if older_than is None:
            found = [_foreseen(find_job(here(), job), crosswalk)]
            if found[0].open and not unsettled and not found[0].begun and not dry_run:
                _refuse(found[0])
        else:
            found = _old(here(), _age(older_than), crosswalk, unsettled, left)
        todo = [each for each in found if not each.purged]
        if not as_json or not yes:
            view.show_foreseen(on_stderr() if not dry_run or as_json else on_stdout(), found, left)
        if not dry_run and todo and not yes and not _agreed(todo, stop):
            on_stderr().print("nothing was purged")
            return InterruptedJobError.exit_code
        if not dry_run:
            todo = [each for each in todo if _purged(each, crosswalk, unsettled, stop, left, alone=older_than is None)]
    if as_json:
        done = {each.job for each in todo} if not dry_run else set()
        print_json({
            "dry_run": dry_run, "left": left,
            "jobs": [{**each.to_dict(), "purged": each.purged or each.job in done} for each in found],
        })  # fmt: skip
    elif not dry_run:
        view.show_done(on_stdout(), found, todo)
    return 0


def _foreseen(paths: JobPaths, crosswalk: bool) -> Purgeable:
    """What would go of a job. JobLockedError where a process runs it."""
    from engine.purge import Purge

    if holder := lock_holder(paths):
        raise JobLockedError(
            f"job {paths.job!r} is being run by {holder}", where=str(paths.lock),
            advice=f"wait for it; how far it is: migrate status {paths.job}",
        )  # fmt: skip
    with Workspace.open(paths) as workspace:
        return Purge(paths, workspace, crosswalk=crosswalk).foresee()


def _old(base: Path, age: timedelta, crosswalk: bool, unsettled: bool, left: dict[str, str]) -> list[Purgeable]:
    """The jobs whose last event is so old and that are settled; why others as old are left alone goes to `left`."""
    before = datetime.now(UTC) - age
    found = []
    for name in list_jobs(base):
        paths = JobPaths(base, name)
        try:
            with Workspace.open(paths) as workspace:
                last = state_at(workspace).progress.last_at
            if last is None or last > before:
                continue
            each = _foreseen(paths, crosswalk)
        except PackhorseError as error:
            left[name] = error.what
            continue
        if each.open and not unsettled and not each.begun:
            left[name] = each.open
        elif not each.purged:
            found.append(each)
    return found


def _purged(
    each: Purgeable, crosswalk: bool, unsettled: bool, stop: StopFlag, left: dict[str, str], *, alone: bool
) -> bool:
    """Purges a job; False, with the reason in `left`, where that couldn't be and others go on."""
    from engine.purge import Purge

    paths = JobPaths(here(), each.job)
    try:
        with JobLock(paths), Workspace.open(paths, write=True) as workspace:
            Purge(paths, workspace, crosswalk=crosswalk, stop=stop).run(unsettled=unsettled)
    except InterruptedJobError:
        raise
    except PackhorseError as error:
        if alone:
            raise
        left[each.job] = error.what
        on_stderr().print(f"{each.job}: left alone: {error.what}")
        return False
    return True


def _refuse(found: Purgeable) -> None:
    raise UsageError(
        f"the job {found.job} is not settled: {found.open}", where=f"job {found.job}",
        advice="settle it first, or say --unsettled: that can't be done afterwards",
    )  # fmt: skip


def _age(text: str) -> timedelta:
    """`90d` or `12w`. UsageError for anything else."""
    found = _AGE.fullmatch(text.strip())
    if not found:
        raise UsageError(f"{text!r} is no age", where="--older-than", advice="say days or weeks, as in 90d or 12w")
    return timedelta(days=int(found[1]) * _DAYS[found[2]])


def _agreed(todo: Sequence[Purgeable], stop: StopFlag) -> bool:
    """Asks once. UsageError where nobody is there to ask."""
    what = f"job {todo[0].job}" if len(todo) == 1 else f"{len(todo):,} jobs"
    if not at_hand():
        raise UsageError(
            "nothing was purged: there is no terminal to ask on", where=what,
            advice="say --yes where that is what you want",
        )  # fmt: skip
    on_stderr().print(f"\npurge {what}? It can't be taken back. [y/N] ", end="")
    return sys.stdin.readline().strip().lower() in ("y", "yes") and not stop()
