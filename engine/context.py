"""What a run of the engine works with: the two systems, the checked plan, the job's files and its log."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field

from connectors.protocols import LedgerRow, Source
from connectors.target import Target
from engine.check import CheckedPlan
from engine.executors.choice import Choice
from workspace.log import Workspace
from workspace.paths import JobPaths

BATCH_ROWS = 20_000
"""Rows of a part of the stage, and so of a batch."""


MOST_PROCESSES = 4
"""That transform: beyond these the target is what a load waits for."""


def processes_here() -> int:
    """How many processes should transform on this machine; 0 where one core has to do all."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(cores // 2, MOST_PROCESSES)  # the rest is for what reads, sorts and commits, and for the servers


@dataclass(frozen=True)
class Progress:
    """Where a run is, for a person who watches. Counts are rows; `entity` is empty between entities."""

    phase: str
    entity: str = ""
    rows_done: int = 0
    rows_total: int | None = None
    quarantined: int = 0


def _no_stop() -> bool:
    return False


def _no_progress(_: Progress) -> None:
    pass


def _no_judge(_: LedgerRow) -> None:
    pass


@dataclass
class Context:
    """One run. `stop` is polled between batches; `progress` is called often and must be cheap. `after_batch` is called
    with each batch of a load that is committed and in the log; what it raises stops the load.

    `source_identity` and the entity's name are what a row of the crosswalk belongs to. `processes` is how many may
    transform beside this one; `choice` says who loads.
    """

    paths: JobPaths
    workspace: Workspace
    source: Source
    target: Target
    checked: CheckedPlan
    source_identity: str
    progress: Callable[[Progress], None] = _no_progress
    stop: Callable[[], bool] = _no_stop
    batch_rows: int = field(default=BATCH_ROWS)
    processes: int = field(default_factory=processes_here)
    choice: Choice = field(default_factory=Choice)
    after_batch: Callable[[LedgerRow], None] = _no_judge
