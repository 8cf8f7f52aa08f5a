"""`migrate cleanup`: takes a job's records out of the target once it is signed off."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.options import AsJson, Job, here
from cli.person import at_hand
from cli.signals import StopFlag, stop_on_signals
from cli.systems import GivenTarget, job_target
from cli.views.output import on_stderr, on_stdout, print_json
from cli.views.text import one_line, visible
from workspace.errors import InterruptedJobError, UsageError
from workspace.lock import JobLock
from workspace.log import Workspace
from workspace.paths import find_job
from workspace.state import state_at

if TYPE_CHECKING:
    from engine.cleanup import Records

Export = Annotated[
    Path | None,
    typer.Option(
        "--export",
        metavar="PATH",
        help="Where the crosswalk goes: a .parquet or .csv file; crosswalk.parquet in the job's folder without it.",
    ),
]
Unverified = Annotated[bool, typer.Option("--unverified", help="Also where the job isn't done and verified.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Clean up without asking; needed where there is no terminal.")]


def cleanup(
    job: Job = None,
    export: Export = None,
    unverified: Unverified = False,
    target: GivenTarget = None,
    yes: Yes = False,
    as_json: AsJson = False,
) -> int:
    """Take a job's records out of the target once it is signed off: its ledger, crosswalk and quarantine, and our
    schema with them where no other job has records there. Rows that were loaded stay.

    The crosswalk (entity, old id, new id) is exported first, and counted against the target; rows in quarantine go to a
    file beside it. Asks once. Afterwards the job can't be resumed, verified or taken back. Interrupted or killed, the
    same command goes on.

    JSON: `job`, `crosswalk` (the file), `rows` (in it, by entity), `quarantine` (a file, or null), `schema_gone`.
    """
    from engine.cleanup import Cleanup

    paths = find_job(here(), job)
    with Workspace.open(paths) as workspace:
        belief = state_at(workspace).belief
    with (
        stop_on_signals() as stop,
        JobLock(paths),
        Workspace.open(paths, write=True) as workspace,
        job_target(target, belief) as system,
    ):
        cleaning = Cleanup(paths, workspace, system, unverified=unverified, stop=stop)
        records = cleaning.foresee()
        if not records.gone:
            _show(paths.job, records, system.schema)
            if not yes and not _agreed(paths.job, stop):
                on_stderr().print("nothing was removed")
                return InterruptedJobError.exit_code
        done = cleaning.run(export)
    if as_json:
        print_json({"job": paths.job, "crosswalk": done.crosswalk, "rows": dict(done.rows),
                    "quarantine": done.quarantine, "schema_gone": done.schema_gone})  # fmt: skip
        return 0
    console = on_stdout()
    left = "; the schema went too" if done.schema_gone else ""
    console.print(f"{paths.job}: cleaned up: its records are no longer in the target{left}")
    console.print(f"  {sum(done.rows.values()):,} rows of the crosswalk are in {visible(done.crosswalk, 500)}")
    if done.quarantine:
        console.print(f"  the rows in quarantine are in {visible(done.quarantine, 500)}")
    return 0


def _show(job: str, records: Records, schema: str) -> None:
    console = on_stderr()
    console.print(f"{job}: in the schema {one_line(schema)}", style="bold")
    for entity, rows in records.rows.items():
        console.print(f"  {rows:>12,} rows of the crosswalk of {one_line(entity)}")
    if records.quarantined:
        console.print(f"  {records.quarantined:>12,} rows in quarantine")
    if records.other_jobs:
        console.print(f"  records of other jobs stay: {one_line(', '.join(records.other_jobs))}")


def _agreed(job: str, stop: StopFlag) -> bool:
    """Asks once. UsageError where nobody is there to ask."""
    if not at_hand():
        raise UsageError(
            "nothing was removed: there is no terminal to ask on",
            where=f"job {job}",
            advice="say --yes where that is what you want",
        )
    on_stderr().print("\nexport these records and take them out of the target? [y/N] ", end="")
    return sys.stdin.readline().strip().lower() in ("y", "yes") and not stop()
