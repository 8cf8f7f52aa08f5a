"""`migrate quarantine`: the rows that could not be loaded, by cluster and one by one."""

from __future__ import annotations

import csv
import json
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import IO, Annotated

import typer

from cli.options import AsJson, Job, here
from cli.systems import GivenTarget, job_dsn
from cli.views import quarantine as view
from cli.views.output import on_stderr, on_stdout, print_json
from workspace.errors import UsageError
from workspace.log import Workspace
from workspace.paths import JobPaths, find_job
from workspace.state import State, state_at

app = typer.Typer(rich_markup_mode=None, help="The rows that could not be loaded, and why.")

Entity = Annotated[str, typer.Option("--entity", metavar="NAME", help="Only rows of this entity.")]
Signature = Annotated[str, typer.Option("--signature", metavar="TEXT", help="Only rows of this cluster.")]
Limit = Annotated[int, typer.Option("--limit", min=1, metavar="N", help="At most this many rows.")]
Out = Annotated[
    Path | None, typer.Option("-o", "--output", metavar="FILE", help="A .csv or .jsonl file; without it, stdout.")
]


@app.command("list")
def list_clusters(job: Job = None, as_json: AsJson = False) -> int:
    """List the clusters: rows that failed in the same way, most first.

    JSON: `job`, and `clusters`, a list of objects with `entity`, `signature`, `code`, `field`, `count`.
    """
    paths, state = _state(job)
    clusters = view.clusters(state.progress)
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

    JSON: `job`, and `rows`, a list of objects with `entity`, `key`, `field`, `code`, `signature`, `detail`,
    `raw` (the whole source row), `status`.
    """
    from connectors.dsn import open_target
    from engine.quarantine import quarantined_rows

    paths, state = _state(job)
    system = open_target(job_dsn("target", target, state.belief))
    try:
        rows = list(quarantined_rows(system, paths.job, entity=entity, signature=signature, limit=limit))
    finally:
        system.close()
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
    """Write all rows in quarantine to a file, whole: JSON lines, or CSV with the row as JSON."""
    from connectors.dsn import open_target
    from engine.quarantine import quarantined_rows

    if output is not None and output.suffix.lower() not in (".csv", ".jsonl"):
        raise UsageError("export writes .csv and .jsonl files", where=str(output))
    paths, state = _state(job)
    system = open_target(job_dsn("target", target, state.belief))
    try:
        rows = (row.to_dict() for row in quarantined_rows(system, paths.job, entity=entity, signature=signature))
        if output is None:
            count = _write(sys.stdout, rows, as_csv=False)
        else:
            # the rows are people's records: for their owner alone
            with os.fdopen(_made(output), "w", encoding="utf-8", newline="") as out:
                count = _write(out, rows, as_csv=output.suffix.lower() == ".csv")
    finally:
        system.close()
    on_stderr().print(f"{count:,} rows" + (f" in {output}" if output else ""))
    return 0


def _state(job: str | None) -> tuple[JobPaths, State]:
    paths = find_job(here(), job)
    with Workspace.open(paths) as workspace:
        return paths, state_at(workspace)


def _made(output: Path) -> int:
    try:
        return os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    except OSError as error:
        raise UsageError(f"cannot be written: {error.strerror}", where=str(output)) from None


def _write(out: IO[str], rows: Iterable[dict[str, object]], *, as_csv: bool) -> int:
    count = 0
    if not as_csv:
        for row in rows:
            out.write(json.dumps(row, ensure_ascii=out is sys.stdout) + "\n")
            count += 1
        return count
    writer = csv.writer(out)
    for row in rows:
        if not count:
            writer.writerow(row)
        key = "|".join(map(str, row["key"])) if isinstance(row["key"], list) else row["key"]
        writer.writerow([*({**row, "key": key, "raw": json.dumps(row["raw"], ensure_ascii=False)}.values())])
        count += 1
    return count
