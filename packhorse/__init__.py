"""Packhorse from Python: load a plan, preview it, run it.

What `migrate preview --plan` and `migrate run --plan --yes` do, for those who would rather script. A job lies where the
command looks for it, so `migrate status`, `quarantine`, `verify` and `undo` work on one that a script ran. Never prints,
asks, or changes what the process does with signals and warnings. While `preview` and `run` work, the process's umask is
077: what a job writes is for its owner alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from agent.job import JobRequest, Step, run_job
from agent.job_request import TOLERATED, JobOutcome
from engine.executors.choice import INLINE, Choice
from engine.merge_preview import Duplicates
from engine.plan import Plan as _Document
from engine.plan import load_plan as _read
from engine.preview import Cluster, EntityPreview, Preview, RowShown
from engine.tolerance import clusters
from engine.verify import EntityVerified
from workspace.disk import owner_only
from workspace.errors import (
    CatalogueError,
    ConnectError,
    DsnError,
    InterruptedJobError,
    JobFailedError,
    JobLockedError,
    PackhorseError,
    PlanError,
    QuarantinedTooManyError,
    UsageError,
    WorkspaceError,
)
from workspace.log import Workspace
from workspace.paths import JobPaths

__all__ = [
    "CatalogueError",
    "Cluster",
    "ConnectError",
    "DsnError",
    "Duplicates",
    "EntityPreview",
    "EntityVerified",
    "InterruptedJobError",
    "JobFailedError",
    "JobLockedError",
    "Outcome",
    "PackhorseError",
    "Plan",
    "PlanError",
    "PlannedEntity",
    "Preview",
    "QuarantinedTooManyError",
    "RowShown",
    "Step",
    "UsageError",
    "WorkspaceError",
    "load_plan",
    "preview",
    "run",
]


@dataclass(frozen=True)
class PlannedEntity:
    """One kind of record: from a table or SELECT of the source to a table of the target, whose columns `fields` are
    filled."""

    name: str
    source: str
    target: str
    fields: tuple[str, ...]


@dataclass(frozen=True)
class Plan:
    """A plan as it was when it was loaded; what becomes of its file later changes nothing. `source` and `target` are
    the DSNs that it names, or empty; `entities` are in the file's order."""

    file: Path
    version: int
    source: str
    target: str
    entities: tuple[PlannedEntity, ...]
    _document: _Document = field(repr=False)


@dataclass(frozen=True)
class Outcome:
    """A job that is done, and reconciled by counts of its own. Of each entity, and so in all, read = loaded + merged +
    excluded + quarantined, in rows. `moved` is False where an earlier run had left nothing to do."""

    job: str
    moved: bool
    entities: tuple[EntityVerified, ...]

    @property
    def read(self) -> int:
        """Rows read of all entities."""
        return sum(entity.read for entity in self.entities)

    @property
    def loaded(self) -> int:
        """Of those, rows that are in the target: inserted, updated, or there unchanged."""
        return sum(entity.loaded for entity in self.entities)

    @property
    def merged(self) -> int:
        """Of those, rows that became one with another."""
        return sum(entity.merged for entity in self.entities)

    @property
    def excluded(self) -> int:
        """Of those, rows that the plan's `where` holds back."""
        return sum(entity.excluded for entity in self.entities)

    @property
    def quarantined(self) -> int:
        """Of those, rows that wait in quarantine or were dropped from it."""
        return sum(entity.quarantined for entity in self.entities)


def load_plan(file: str | Path) -> Plan:
    """Loads a plan. PlanError, with line and column, where it is none; it is held against the two systems by `preview`
    and `run`, before anything moves."""
    document = _read(Path(file))
    entities = tuple(
        PlannedEntity(name, entity.from_, entity.to, tuple(entity.fields))
        for name, entity in document.entities.items()
    )  # fmt: skip
    return Plan(Path(file), document.version, document.source, document.target, entities, document)


def preview(
    plan: Plan,
    *,
    job: str,
    source: str | None = None,
    target: str | None = None,
    folder: str | Path = ".",
    ledger_schema: str | None = None,
    progress: Callable[[Step], None] = lambda step: None,
    stop: Callable[[], bool] = lambda: False,
) -> Preview:
    """What `run` with the same arguments would do. Nothing is written to the target.

    The source is read once, into the job's stage, and `run` then loads just these rows. The arguments are those of
    `run`. Raises UsageError and its kin (PlanError, DsnError, ConnectError, CatalogueError, WorkspaceError,
    JobLockedError), JobFailedError where the source is lost, InterruptedJobError when `stop` said so.
    """
    asked = _request(plan, job, source, target, folder, ledger_schema, dry_run=True)
    with owner_only():
        shown = run_job(asked, progress=progress, stop=stop).preview
    assert shown is not None
    return shown


def run(
    plan: Plan,
    *,
    job: str,
    source: str | None = None,
    target: str | None = None,
    folder: str | Path = ".",
    tolerate: float = TOLERATED,
    ledger_schema: str | None = None,
    executor: str = INLINE,
    progress: Callable[[Step], None] = lambda step: None,
    stop: Callable[[], bool] = lambda: False,
) -> Outcome:
    """Moves the records and verifies them. Returns when the job is done and reconciled, and raises for all else.

    Called again with the same `job` it goes on where it stopped, whatever stopped it: no row is lost or there twice.
    An entity whose rows have begun to move keeps the plan it began with.

    `source` and `target` are DSNs as the command takes them (`${NAME}` stands for a variable); without them, those that
    the plan names. The job's files lie in `folder`/.packhorse. `tolerate` is how many rows may be in quarantine: a share
    of those read below 1, else rows. `ledger_schema` is the schema in the target for ledger, crosswalk and quarantine,
    `executor` who loads: `inline`, or `local:N` for N processes. `progress` is called often, in any thread, and has to
    be quick; `stop` is asked between batches.

    Before anything moved: UsageError and its kin (PlanError, DsnError, ConnectError, CatalogueError, WorkspaceError,
    JobLockedError). Later, and what was committed stays: JobFailedError where retrying did not help or what is in the
    target isn't what was moved, QuarantinedTooManyError, InterruptedJobError when `stop` said so.
    """
    asked = _request(
        plan, job, source, target, folder, ledger_schema, dry_run=False, tolerate=tolerate, executor=executor
    )
    with owner_only():
        ended = run_job(asked, progress=progress, stop=stop)
    return _done(asked, ended)


def _request(
    plan: Plan, job: str, source: str | None, target: str | None, folder: str | Path, ledger_schema: str | None, *,
    dry_run: bool, tolerate: float = TOLERATED, executor: str = INLINE,
) -> JobRequest:  # fmt: skip
    to = plan._document.dsn("target", target)
    return JobRequest(
        source_dsn=plan._document.dsn("source", source),
        target_dsn=to,
        plan_path=plan.file,
        plan=plan._document,
        job=job,
        model="none",
        dry_run=dry_run,
        yes=True,
        tolerate=tolerate,
        ledger_schema=ledger_schema,
        choice=Choice.of(executor, "", to),
        base=Path(folder).absolute(),
    )


def _done(asked: JobRequest, ended: JobOutcome) -> Outcome:
    """The outcome of a job that ran to its end. JobFailedError where it wasn't verified, QuarantinedTooManyError."""
    found, loaded, where = ended.verification, ended.loaded, f"job {ended.job}"
    assert found is not None
    assert loaded is not None
    if not found.ok:
        raise JobFailedError(
            "what is in the target isn't what was moved", where=where, advice=f"see `migrate verify {ended.job}`",
            details=tuple(f"{entity.entity}: {line}" for entity in found.entities for line in entity.problems),
        )  # fmt: skip
    outcome = Outcome(ended.job, loaded.moved, found.entities)
    if ended.exit_code:
        with Workspace.open(JobPaths(asked.base, ended.job)) as workspace:
            most = clusters(workspace)
        held = outcome.quarantined - sum(entity.dropped for entity in outcome.entities)
        raise QuarantinedTooManyError(
            f"done, with {held:,} of {outcome.read:,} rows in quarantine: more than tolerated", where=where,
            advice=f"see `migrate quarantine list {ended.job}`, or tolerate more", details=most,
        )  # fmt: skip
    return outcome
