"""`migrate rehearse`: the whole job, beside the target and not in it, and what the real night will bring."""

from __future__ import annotations

from typing import Annotated

import typer

from cli.deciding import model_options
from cli.options import (
    Adapter,
    AllowRemote,
    AsJson,
    Autonomy,
    LedgerSchema,
    Model,
    ModelSeconds,
    PlanFile,
    PriceIn,
    PriceOut,
    SendValues,
    Source,
    SourceSsh,
    Target,
    TargetSsh,
    Think,
    Tolerate,
    here,
)
from cli.person import Person, at_hand
from cli.run import JobName, Zone
from cli.signals import stop_on_signals
from cli.systems import by_ssh
from cli.views import rehearse as view
from cli.views.live import LiveView
from cli.views.output import on_stderr, on_stdout, print_json

Into = Annotated[
    str | None,
    typer.Option(
        "--into",
        metavar="DSN",
        help="An empty PostgreSQL database to rehearse in, which stays to be looked at; without it, in a server of our"
        " own that goes with the command.",
    ),
]


def rehearse(
    source: Source,
    target: Target,
    plan: PlanFile = None,
    job: JobName = None,
    into: Into = None,
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
    as_json: AsJson = False,
) -> int:
    """Carry the whole job out into an empty copy of the target, verify it, and say what the real night will bring.

    The copy is made from the target's own schema, with its constraints, types, triggers and functions; keys of rows
    that are in the target already count. The target is only read. `migrate run` of the same job then loads what was read
    here, and stops where it strays from what was rehearsed. Exits as that job would.

    JSON: `job`, `plan_version`, `entities` (a list of objects with `entity`, `source`, `target`, `read`, `loaded`, `merged`,
    `excluded`, `quarantined`, `collisions`, `signatures`, `rows_bytes`, `index_bytes`), `problems`, `differences` (between the
    copy and the target), `seconds` by phase, `way` (`trip` in seconds, `speed` in bytes a second), `forecast` (`read_seconds`, or
    null, `load_seconds`, `way_seconds`, `verify_seconds`, `seconds`, `stage_bytes`, `transformed_bytes`, `target_bytes`,
    `record_bytes`, `log_bytes`), `held`, `questions` and `exit_code`.
    """
    from agent.job import JobRequest
    from agent.rehearse import rehearse_job

    source, target = by_ssh(source, source_ssh, target, target_ssh)
    options = model_options(
        model, adapter=adapter, think=think, allow_remote=allow_remote, send_values=send_values, price_in=price_in,
        price_out=price_out, model_seconds=model_seconds,
    )  # fmt: skip
    request = JobRequest(
        source_dsn=source, target_dsn=target, plan_path=plan, job=job, model=model, model_options=options, autonomy=autonomy, tolerate=tolerate,
        zone=zone, ledger_schema=ledger_schema, base=here(),
    )  # fmt: skip
    with stop_on_signals() as stop, LiveView(on_stderr(), job or "migrate rehearse") as live:
        person = Person(live, stop) if at_hand() else None
        outcome = rehearse_job(request, into, progress=live, stop=stop, ask=person)
    assert outcome.rehearsal is not None
    held = {name: list(questions) for name, questions in outcome.held.items()}
    if as_json:
        more = {"held": held, "questions": outcome.questions, "exit_code": outcome.exit_code}
        print_json({"job": outcome.job, **outcome.rehearsal.to_dict(), **more})
    else:
        view.show(on_stdout(), outcome.job, outcome.rehearsal, held)
    return outcome.exit_code
