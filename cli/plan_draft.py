"""`migrate plan draft`: a plan out of what both systems hold."""

from __future__ import annotations

from cli.deciding import model_options
from cli.drafted import plan_text
from cli.options import (
    Adapter,
    AllowRemote,
    Autonomy,
    LedgerSchema,
    Model,
    ModelSeconds,
    PriceIn,
    PriceOut,
    SendValues,
    Source,
    SourceSsh,
    Target,
    TargetSsh,
    Think,
    here,
)
from cli.plan_schema import Force, Out, schema_line
from cli.run import JobName, Zone
from cli.signals import stop_on_signals
from cli.systems import by_ssh
from cli.views import plan as view
from cli.views.live import LiveView
from cli.views.output import on_stderr
from workspace.errors import UsageError
from workspace.log import Workspace
from workspace.paths import JobPaths


def draft(
    source: Source,
    target: Target,
    output: Out = None,
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
    ledger_schema: LedgerSchema = None,
    source_ssh: SourceSsh = None,
    target_ssh: TargetSsh = None,
    force: Force = False,
) -> int:
    """Survey both systems and draft a plan; no row is read into a stage, and nothing is written to the target.

    What was decided and what is left for a person stay in the job, and `migrate run --job` goes on with them. Comments
    say what each field rests on, and `ask:` where a person has to look; record values are told by their shapes.
    """
    from agent.job import JobRequest, draft_job
    from agent.questions import open_questions
    from engine.field_evidence import field_evidence

    if output is not None and output.exists() and not force:
        raise UsageError("there is a file of that name", where=str(output), advice="choose another, or --force")
    source, target = by_ssh(source, source_ssh, target, target_ssh)
    options = model_options(
        model, adapter=adapter, think=think, allow_remote=allow_remote, send_values=send_values, price_in=price_in,
        price_out=price_out, model_seconds=model_seconds,
    )  # fmt: skip
    request = JobRequest(
        source,
        target,
        job=job,
        model=model,
        model_options=options,
        autonomy=autonomy,
        zone=zone,
        ledger_schema=ledger_schema,
        base=here(),
    )
    with stop_on_signals() as stop, LiveView(on_stderr(), "migrate plan draft") as live:
        outcome = draft_job(request, progress=live, stop=stop)
    with Workspace.open(JobPaths(here(), outcome.job)) as workspace:
        questions, evidence = open_questions(workspace), field_evidence(workspace, outcome.plan)
    text = schema_line(output) + plan_text(outcome.plan, source, target, outcome.job, questions, evidence)
    if output is None:
        print(text, end="")
    else:
        try:
            output.write_text(text, encoding="utf-8")
        except OSError as error:
            raise UsageError(f"cannot be written: {error.strerror}", where=str(output)) from None
    view.show_draft(on_stderr(), outcome.job, outcome.plan, outcome.held, len(questions), output)
    return 0
