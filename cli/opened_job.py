"""A job opened to work on: locked, its log open for writing, both systems connected, its plan checked."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from cli.systems import job_dsn, opened
from workspace.errors import UsageError
from workspace.events import JobFinished
from workspace.lock import JobLock
from workspace.log import Workspace
from workspace.paths import JobPaths
from workspace.state import state_at

if TYPE_CHECKING:
    from connectors.protocols import Catalogue, Source
    from engine.check import CheckedPlan
    from engine.context import Context
    from engine.plan import Plan

    Check = Callable[[Plan, Source, Catalogue], CheckedPlan]


@contextmanager
def opened_job(
    paths: JobPaths,
    source: str | None,
    target: str | None,
    *,
    progress: Callable[[Any], None],
    stop: Callable[[], bool],
    check: Check | None = None,
) -> Iterator[Context]:
    """The job as the engine works on it, under the latest plan of its log. UsageError where it has none, was
    purged or cleaned up. `check` holds the plan against both systems; as for a load without it."""
    from engine.plan import parse_plan

    with Workspace.open(paths) as workspace:
        state = state_at(workspace)
    belief, before = state.belief, state.progress
    if not belief.plan:
        raise UsageError(f"job {paths.job!r} has no plan yet", advice=f"migrate resume {paths.job} drafts one")
    state.refuse_purged()
    belief.refuse_cleaned_up()
    plan = parse_plan(belief.plan, f"plan version {belief.plan_version} of {paths.job}")
    dsns = job_dsn("source", source, belief), job_dsn("target", target, belief)
    with (
        JobLock(paths),
        Workspace.open(paths, write=True) as workspace,
        _context(paths, workspace, plan, dsns, belief.options.get("ledger_schema"), progress, stop, check) as context,
    ):
        mark = workspace.position
        try:
            yield context
        finally:  # looking at a job leaves it what it was: done, waiting, ...
            ended = any(True for _ in workspace.events(start=mark + 1, types=[JobFinished]))
            if not ended and before.outcome is not None and before.exit_code is not None:
                workspace.record(JobFinished(before.outcome, before.exit_code))


@contextmanager
def _context(
    paths: JobPaths,
    workspace: Workspace,
    plan: Plan,
    dsns: tuple[str, str],
    schema: str | None,
    progress: Callable[[Any], None],
    stop: Callable[[], bool],
    check: Check | None,
) -> Iterator[Context]:
    from connectors.dsn import Dsn
    from engine.check import check_plan
    from engine.context import Context
    from engine.prepare import try_queries

    with opened(*dsns, schema) as (source, target):
        checked = (check or check_plan)(plan, source, target.catalogue())
        try_queries(paths, checked)
        yield Context(paths, workspace, source, target, checked, Dsn.parse(dsns[0]).identity, progress, stop)
