"""What a job is asked to do, how it ends, and how it begins in the log."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from agent.draft import Draft
from agent.ladder import AUTONOMY
from agent.models.options import ModelOptions
from connectors.dsn import Dsn, keeps_no_secret
from engine.executors.choice import INLINE, Choice
from engine.load import LoadOutcome
from engine.plan import Plan, load_plan
from engine.preview import Preview
from engine.rehearsal import Rehearsal
from engine.verify import Verification
from workspace.errors import UsageError, WorkspaceError
from workspace.events import BeliefHeld, JobCleanedUp, JobPurged, JobStarted, QuarantineTolerated, UndoStarted
from workspace.log import Workspace
from workspace.paths import JobPaths
from workspace.state import state_at

TOLERATED = 0.1
"""The share of rows that may be in quarantine, unless told otherwise."""


def too_many(read: int, quarantined: int, tolerate: float) -> bool:
    """True where more rows are in quarantine than `tolerate` (see JobRequest) allows."""
    return quarantined > (tolerate * read if tolerate < 1 else tolerate)


_MASK = "***"


@dataclass(frozen=True)
class JobRequest:
    """What to do. `plan` is what `plan_path` held when it was read, where somebody has read it. `zone` is the time zone of the source's clock, where it is known. `tolerate` is how many rows
    may be in quarantine at the end: a share of those read below 1, else a number of rows. `stray` is, in the same
    way, how many rows more than rehearsed may be excluded or in quarantine; None for what was allowed before.
    `ledger_schema` is what our schema in the target is called, where another name than the job's own or the usual one
    is wanted. `choice` says who loads."""

    source_dsn: str
    target_dsn: str
    plan_path: Path | None = None
    plan: Plan | None = None
    job: str | None = None
    model: str | None = None
    autonomy: float = AUTONOMY
    dry_run: bool = False
    yes: bool = False
    tolerate: float = TOLERATED
    zone: str | None = None
    stray: float | None = None
    ledger_schema: str | None = None
    choice: Choice = field(default_factory=Choice)
    model_options: ModelOptions = field(default_factory=ModelOptions)
    base: Path = field(default_factory=Path.cwd)

    @property
    def given(self) -> Plan | None:
        """The plan that somebody gave; None where it is to be drafted. PlanError where its file can't be read."""
        if self.plan is None and self.plan_path is not None:
            return load_plan(self.plan_path)
        return self.plan


@dataclass(frozen=True)
class Step:
    """Where the job is, for a person who watches; `engine.context.Progress` and the model's calls so far. A `note` is a
    line by itself, and moves nothing on."""

    phase: str
    entity: str = ""
    rows_done: int = 0
    rows_total: int | None = None
    quarantined: int = 0
    model_calls: int = 0
    note: str = ""


@dataclass(frozen=True)
class JobOutcome:
    """What became of the job. `outcome` is done, drafted, rehearsed, dry run, declined, waiting or not verified; `held` names the
    entities that wait for a person and their questions; `draft` is the whole draft where the job ended with it."""

    job: str
    outcome: str
    exit_code: int
    plan: Plan
    preview: Preview | None = None
    loaded: LoadOutcome | None = None
    verification: Verification | None = None
    held: dict[str, tuple[str, ...]] = field(default_factory=dict)
    questions: int = 0
    rehearsal: Rehearsal | None = None
    draft: Draft | None = None


class Watch(Protocol):
    """Called often; must be cheap."""

    def __call__(self, step: Step, /) -> None:
        """Takes the step."""


def tell_notes(workspace: Workspace, notes: Sequence[str], progress: Watch) -> None:
    """Tells whoever watches what isn't as one would think of the source, and keeps in the log what isn't there yet."""
    known = state_at(workspace).belief.claims.get("source", {}) if notes else {}
    for note in notes:
        progress(Step("survey", note=note))
        if note not in known:
            workspace.record(BeliefHeld("source", note))


def dsn_again(given: str | None, kept: object, option: str) -> str:
    """The DSN to go on with: the one given now, or the one kept. UsageError where its password was not kept."""
    if given is not None:
        return given
    if not isinstance(kept, str) or _MASK in kept:
        raise UsageError(
            "the job's DSN held a password, which is kept nowhere", where=str(kept or ""),
            advice=f"give it again with {option}, or keep it in a variable and say ${{NAME}}",
        )  # fmt: skip
    return kept


def schema_of(paths: JobPaths, given: str | None) -> str | None:
    """What our schema in the target is called: as the job began with, or as given where it hasn't begun; None for the
    usual name."""
    if not paths.exists():
        return given
    with Workspace.open(paths) as workspace:
        begun = next((e.event for e in workspace.events(types=[JobStarted]) if isinstance(e.event, JobStarted)), None)
    return begun.options.get("ledger_schema") if begun is not None else given


def request_again(
    workspace: Workspace, source_dsn: str | None, target_dsn: str | None, executor: str | None, stage: str | None
) -> JobRequest:
    """What a job was asked to do when it began, to go on with; of what is given now, that. WorkspaceError where it never
    began, UsageError where a DSN has to be given again."""
    paths, belief = workspace.paths, state_at(workspace).belief
    if not belief.job:
        raise WorkspaceError(
            f"the job {paths.job} never began", where=str(paths.folder), advice="migrate run starts one"
        )
    options = belief.options
    target = dsn_again(target_dsn, options.get("target_dsn"), "--target")
    executor = executor or str(options.get("executor", INLINE))
    return JobRequest(
        source_dsn=dsn_again(source_dsn, options.get("source_dsn"), "--source"),
        target_dsn=target,
        job=paths.job,
        model=options.get("model"),
        model_options=ModelOptions.of(options.get("model_options")),
        autonomy=float(options.get("autonomy", AUTONOMY)),
        yes=bool(options.get("yes", False)),
        tolerate=float(options.get("tolerate", TOLERATED)),
        zone=options.get("zone"),
        choice=Choice.of(executor, stage or ("" if executor == INLINE else str(options.get("stage", ""))), target),
        base=paths.base,
    )


def begin_job(workspace: Workspace, request: JobRequest, job: str, source: Dsn, target: Dsn, schema: str) -> None:
    """Records the start once; a job of that name that moves something else is refused, or has its records in another
    schema of the target than the request says."""
    begun = next((e.event for e in workspace.events(types=[JobStarted]) if isinstance(e.event, JobStarted)), None)
    if begun is not None:
        if (begun.options.get("from"), begun.options.get("to")) != (source.identity, target.identity):
            raise UsageError(
                f"the job {job} is of other systems",
                where=str(workspace.paths.folder),
                advice="choose another --job name",
            )
        if request.ledger_schema not in (None, schema):
            raise UsageError(
                f"the job {job} keeps its records in the schema {schema}", where="--ledger-schema",
                advice="leave the option out, or choose another --job name",
            )  # fmt: skip
        refuse_over(workspace)
        if float(state_at(workspace).belief.options.get("tolerate", TOLERATED)) != request.tolerate:
            workspace.record(QuarantineTolerated(request.tolerate))
        return
    options = {
        "source_dsn": _keepable(request.source_dsn, source),
        "target_dsn": _keepable(request.target_dsn, target),
        "from": source.identity,
        "to": target.identity,
        "plan": str(request.plan_path) if request.plan_path else None,
        "model": request.model,
        "model_options": request.model_options.to_dict(),
        "autonomy": request.autonomy,
        "dry_run": request.dry_run,
        "yes": request.yes,
        "tolerate": request.tolerate,
        "zone": request.zone,
        "ledger_schema": schema,
        "executor": request.choice.name,
        "stage": request.choice.place,
    }
    workspace.record(JobStarted(job=job, source=source.masked, target=target.masked, options=options))


def refuse_over(workspace: Workspace) -> None:
    """UsageError for a job that was taken back, or is being, or was purged or cleaned up: it can't go on."""
    if next(workspace.events(types=[JobPurged, JobCleanedUp]), None) is not None:
        state = state_at(workspace)
        state.refuse_purged()
        state.belief.refuse_cleaned_up()
    undone = (e.event for e in workspace.events(types=[UndoStarted]) if isinstance(e.event, UndoStarted))
    if any(event.whole for event in undone):
        job = workspace.paths.job
        raise UsageError(
            f"the job {job} was taken back and is over", where=str(workspace.paths.folder),
            advice=f"a new job loads anew: choose another --job name; `migrate undo {job}` takes back what is left of this one",
        )  # fmt: skip


def _keepable(text: str, dsn: Dsn) -> str:
    """The DSN as it was given where it holds no secret itself, else masked."""
    return text if _MASK not in dsn.masked or keeps_no_secret(text) else dsn.masked
