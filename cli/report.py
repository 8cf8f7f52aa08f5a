"""`migrate report`: a job's account in one file, for the customer to sign."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.opened_job import opened_job
from cli.options import AsJson, Job, here
from cli.signals import stop_on_signals
from cli.systems import GivenSource, GivenTarget
from cli.views.live import LiveView
from cli.views.output import on_stderr, on_stdout, print_json
from cli.written import refuse_place, written
from workspace.errors import UsageError
from workspace.lock import lock_holder
from workspace.log import Workspace
from workspace.paths import JobPaths, find_job
from workspace.state import state_at

if TYPE_CHECKING:
    from engine.report import Report
    from engine.value_changes import ValueChange

_KINDS = (".html", ".md", ".xlsx")

Out = Annotated[
    Path | None,
    typer.Option(
        "-o", "--output", metavar="FILE", help="An .html, .md or .xlsx file; JOB-report.html here without it."
    ),
]
ShowValues = Annotated[
    bool, typer.Option("--show-values", help="Show record values in the examples as they are, not as shapes.")
]
Examples = Annotated[
    bool,
    typer.Option(
        "--examples/--no-examples",
        help="Look through the stage for values that the plan changes; connects to both systems for their catalogues.",
    ),
]


def report(
    job: Job = None,
    output: Out = None,
    show_values: ShowValues = False,
    examples: Examples = True,
    source: GivenSource = None,
    target: GivenTarget = None,
    as_json: AsJson = False,
) -> int:
    """Write the job's account for the customer to sign: what was reconciled, what went where, what was left behind and
    why, the quarantine, values changed, decisions and their price, timing, the last verification.

    One file that needs no network; only its owner can read it. Record values are shown by their shapes. Nothing is
    counted anew: `migrate verify` does that.

    JSON: `job`, `file` (null: with --json one is written only where -o names it), `reconciled`, and what the file
    tells: `entities`, `clusters`, `changes` (null where the stage wasn't looked at, with `why_no_changes`), `rungs`,
    `asked`, `phases`, `rows_over_time`, `verification`, `plan_versions`. Values in `changes` are shapes as well.
    """
    if output is not None and output.suffix.lower() not in _KINDS:
        raise UsageError(f"a report is an {', '.join(_KINDS[:-1])} or {_KINDS[-1]} file", where=str(output))
    if output is not None:
        refuse_place(output, "-o")  # told before the stage is looked through
    paths = find_job(here(), job)
    made = _with_examples(paths, source, target) if examples else _made(paths, "Left out by --no-examples.")
    if output is None and not as_json:
        output = here() / f"{paths.job}-report.html"
    if output is not None:
        _write(made, output, show_values)
    if as_json:
        print_json(_document(made, output, show_values))
    elif output is not None:
        from cli.views.report.sheets import verdict

        on_stdout().print(f"{paths.job}: {verdict(made)}")
        on_stdout().print(f"written to {output}")
    return 0


def _with_examples(paths: JobPaths, source: str | None, target: str | None) -> Report:
    """With what the plan changes in values, where the job is at rest, has a plan and its stage is there."""
    from engine.check import check_readable
    from engine.value_changes import value_changes

    with Workspace.open(paths) as workspace:
        state = state_at(workspace)
    belief = state.belief
    if state.progress.purged_at is not None:
        return _made(paths, f"Not looked at: the job was purged on {state.progress.purged_at:%Y-%m-%d}.")
    if lock_holder(paths):
        return _made(paths, "Not looked at: the job was at work when this report was written.")
    if not belief.plan or belief.cleaned_up:
        return _made(paths, "Not looked at: the job has no plan, or was cleaned up.")
    with (
        stop_on_signals() as stop,
        LiveView(on_stderr(), "report") as live,
        opened_job(paths, source, target, progress=live, stop=stop, check=check_readable) as context,
    ):
        changes = list(value_changes(context))
    return _made(paths, "", changes)


def _made(paths: JobPaths, why_no_changes: str, changes: list[ValueChange] | None = None) -> Report:
    from engine.report import report as account

    with Workspace.open(paths) as workspace:
        return account(workspace, changes, why_no_changes=why_no_changes)


def _write(made: Report, output: Path, show_values: bool) -> None:
    """Writes the file in the kind that its name says."""
    with written(output) as file:
        if output.suffix.lower() == ".xlsx":
            from cli.views.report.workbook import workbook

            workbook(made, file, show_values=show_values)
        elif output.suffix.lower() == ".md":
            from cli.views.report.markdown import markdown

            file.write(markdown(made, show_values=show_values).encode())
        else:
            from cli.views.report.page import page

            file.write(page(made, show_values=show_values).encode())


def _document(made: Report, output: Path | None, show_values: bool) -> dict[str, object]:
    from workspace.signature import shape

    found = {"job": made.job, "file": str(output) if output else None, **made.to_dict()}
    if not show_values:
        for change in found["changes"] or ():
            for kind in change["kinds"]:
                kind.update({side: kind[side] and shape(kind[side]) for side in ("before", "after")})
    return found
