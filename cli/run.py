"""`migrate run`: the whole job: survey, plan, preview, load, verify."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import typer

from cli.conduct import conduct
from cli.deciding import model_options
from cli.options import (
    Adapter,
    AllowRemote,
    AsJson,
    Autonomy,
    Executor,
    LedgerSchema,
    Model,
    ModelSeconds,
    PlanFile,
    PriceIn,
    PriceOut,
    SendValues,
    Source,
    SourceSsh,
    StagePlace,
    Stray,
    Target,
    TargetSsh,
    Think,
    Tolerate,
    Yes,
    here,
)
from cli.systems import by_ssh

JobName = Annotated[
    str | None, typer.Option("--job", metavar="NAME", help="The job's name; one is made up without it.")
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Say what would happen and write nothing to the target.")]
Zone = Annotated[
    str | None,
    typer.Option("--zone", metavar="ZONE", help="The time zone of the source's clock, such as America/New_York."),
]


Pilot = Annotated[
    str | None,
    typer.Option(
        "--pilot",
        metavar="SHARE|ROWS",
        help="Move only so many rows of each entity (1%, or 500), and those that they refer to, as the job NAME-pilot."
        " `migrate resume NAME` then moves the rest, `migrate undo NAME-pilot` takes them back.",
    ),
]


def run(
    source: Source,
    target: Target,
    plan: PlanFile = None,
    job: JobName = None,
    model: Model = None,
    adapter: Adapter = None,
    think: Think = False,
    allow_remote: AllowRemote = False,
    send_values: SendValues = False,
    price_in: PriceIn = 0.0,
    price_out: PriceOut = 0.0,
    model_seconds: ModelSeconds = 300.0,
    autonomy: Autonomy = 0.9,
    zone: Zone = None,
    tolerate: Tolerate = 0.1,
    ledger_schema: LedgerSchema = None,
    source_ssh: SourceSsh = None,
    target_ssh: TargetSsh = None,
    executor: Executor = None,
    stage: StagePlace = None,
    stray: Stray = None,
    pilot: Pilot = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    as_json: AsJson = False,
) -> int:
    """Carry the records over: survey, plan, preview, load, verify.

    On a terminal it asks what only a person can say, shows the preview, and asks once before the first row
    moves; with --yes, and off a terminal, it goes on by itself, and what is unsure waits in `migrate answer`.
    Ctrl-C finishes the batch at hand.

    JSON: what `migrate status --json` gives, with `exit_code`; with --dry-run, what `migrate preview --json`
    gives.
    """
    from agent.job import JobRequest, run_job
    from agent.pilot import run_pilot
    from engine.executors.choice import INLINE, Choice

    source, target = by_ssh(source, source_ssh, target, target_ssh)
    options = model_options(
        model, adapter=adapter, think=think, allow_remote=allow_remote, send_values=send_values, price_in=price_in,
        price_out=price_out, model_seconds=model_seconds,
    )  # fmt: skip
    request = JobRequest(
        source_dsn=source,
        target_dsn=target,
        plan_path=plan,
        job=job,
        model=model,
        model_options=options,
        autonomy=autonomy,
        dry_run=dry_run,
        yes=yes,
        tolerate=tolerate,
        zone=zone,
        ledger_schema=ledger_schema,
        choice=Choice.of(executor or INLINE, stage or "", target),
        stray=stray,
        base=here(),
    )
    act = partial(run_job, request) if pilot is None else partial(run_pilot, request, pilot)
    return conduct(job or "migrate run", act, yes=yes, as_json=as_json)
