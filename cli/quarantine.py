"""`migrate quarantine`: the rows that could not be loaded, by cluster and one by one."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated

import typer

from cli.options import AsJson, Job, here
from cli.systems import GivenTarget, job_target
from cli.views import quarantine as view
from cli.views.output import on_stderr, on_stdout, print_json
from cli.views.text import one_line
from workspace.errors import PackhorseError, UsageError
from workspace.log import Workspace
from workspace.paths import JobPaths, find_job
from workspace.state import State, state_at

if TYPE_CHECKING:
    from engine.quarantine import QuarantinedRow

app = typer.Typer(rich_markup_mode=None, help="The rows that could not be loaded: why, and what becomes of them.")

Entity = Annotated[str, typer.Option("--entity", metavar="NAME", help="Only rows of this entity.")]
Signature = Annotated[str, typer.Option("--signature", metavar="TEXT", help="Only rows of this cluster.")]
Limit = Annotated[int, typer.Option("--limit", min=1, metavar="N", help="At most this many rows.")]
Out = Annotated[
    Path | None,
    typer.Option(
        "-o", "--output", metavar="FILE", help="An .xlsx, .csv or .jsonl file; without it, JSON lines on stdout."
    ),
]


@app.command("list")
def list_clusters(job: Job = None, target: GivenTarget = None, as_json: AsJson = False) -> int:
    """List the clusters: rows that failed in the same way, most first, with an example where the target answers.

    JSON: `job`, and `clusters`, a list of objects with `entity`, `signature`, `code`, `field`, `count`, `open`,
    `dropped`, and `example`: null, or `key`, `column` and `value` (the last two null where no column failed).
    """
    paths, state = _state(job)
    clusters = view.clusters(state.progress)
    found = _examples(paths, state, target) if clusters else {}
    for each in clusters:
        each["example"] = found.get((each["entity"], each["signature"]))
    if as_json:
        print_json({"job": paths.job, "clusters": clusters})
    else:
        view.show_clusters(on_stdout(), paths.job, clusters)
    return 0


@app.command("show")
def show(
    job: Job = None,
    entity: Entity = "",
    signature: Signature = "",
    limit: Limit = 20,
    target: GivenTarget = None,
    as_json: AsJson = False,
) -> int:
    """Show rows in quarantine: the key, what failed, and the value that did.

    JSON: `job`, and `rows`, a list of objects with `entity`, `row` (its number in the stage), `key`, `field`, `code`,
    `signature`, `detail`, `raw` (the whole source row), `status` (open or dropped).
    """
    from engine.quarantine import quarantined_rows

    paths, state = _state(job)
    with job_target(target, state.belief) as system:
        rows = list(quarantined_rows(system, paths.job, entity=entity, signature=signature, limit=limit))
    if as_json:
        print_json({"job": paths.job, "rows": [row.to_dict() for row in rows]})
    else:
        view.show_rows(on_stdout(), rows)
    return 0


@app.command("export")
def export(
    job: Job = None,
    output: Out = None,
    entity: Entity = "",
    signature: Signature = "",
    target: GivenTarget = None,
) -> int:
    """Write all rows in quarantine to a file, whole.

    In .xlsx (a sheet an entity) and .csv (one entity), each source column has a column, all as text, to be edited and
    given to `quarantine retry --from`: an empty cell is NULL, `\\u{}` is empty text, and a text that begins like a
    formula has an apostrophe before it. In .jsonl a line is a row as `show --json` has it.
    """
    from engine.quarantine import quarantined_rows
    from engine.quarantine_file import write_csv, write_xlsx

    suffix = output.suffix.lower() if output is not None else ".jsonl"
    if suffix not in (".xlsx", ".csv", ".jsonl"):
        raise UsageError("export writes .xlsx, .csv and .jsonl files", where=str(output))
    paths, state = _state(job)
    with job_target(target, state.belief) as system:
        rows = quarantined_rows(system, paths.job, entity=entity, signature=signature)
        if output is None:
            count = _write_lines(sys.stdout, rows)
        elif suffix == ".xlsx":
            with os.fdopen(_made(output), "wb") as book:
                count = write_xlsx(book, rows)
        else:
            # a sheet program takes a file without the mark for one in an old code page
            encoding = "utf-8-sig" if suffix == ".csv" else "utf-8"
            with os.fdopen(_made(output), "w", encoding=encoding, newline="") as out:
                count = write_csv(out, rows) if suffix == ".csv" else _write_lines(out, rows)
    on_stderr().print(f"{count:,} rows" + (f" in {output}" if output else ""))
    return 0


def _examples(paths: JobPaths, state: State, given: str | None) -> dict[tuple[str, str], dict[str, object]]:
    """A row of each cluster; none, and a line that says why, where the target can't be asked."""
    from engine.plan import parse_plan
    from engine.quarantine import examples, failing_value

    if not state.belief.plan:
        return {}
    try:
        plan = parse_plan(state.belief.plan)
        with job_target(given, state.belief) as system:
            found = examples(system, paths.job)
    except PackhorseError as error:
        on_stderr().print(f"without examples: {one_line(str(error))}")
        return {}
    values = {key: failing_value(row, plan) or (None, None) for key, row in found.items()}
    return {
        key: {"key": list(row.key), "column": values[key][0], "value": values[key][1]} for key, row in found.items()
    }


def _state(job: str | None) -> tuple[JobPaths, State]:
    paths = find_job(here(), job)
    with Workspace.open(paths) as workspace:
        return paths, state_at(workspace)


def _made(output: Path) -> int:
    """The file, made anew: the rows are people's records, for their owner alone."""
    try:
        made = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        os.fchmod(made, 0o600)  # of one that was there, before anything is in it
        return made
    except OSError as error:
        raise UsageError(f"cannot be written: {error.strerror}", where=str(output)) from None


def _write_lines(out: IO[str], rows: Iterable[QuarantinedRow]) -> int:
    count = 0
    for row in rows:
        out.write(json.dumps(row.to_dict(), ensure_ascii=out is sys.stdout) + "\n")
        count += 1
    return count
