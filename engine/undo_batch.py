"""One batch taken back, in one transaction on the target: its rows, their crosswalk, its quarantine, its ledger row.

They go together or not at all, so a batch is taken back once however often the process is killed; doing it again
finds nothing left to do.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from connectors.protocols import LedgerRow
from connectors.records import Undone
from connectors.target import Target
from connectors.undo_list import UndoList
from engine.faults import fault_point
from engine.transaction import batch_transaction


@dataclass(frozen=True)
class BatchTakenBack:
    """Rows of a batch deleted and restored this time; `totals` are over all times, as the ledger has them."""

    deleted: int
    restored: int
    totals: Undone


def take_back(target: Target, rows: UndoList, row: LedgerRow) -> BatchTakenBack:
    """Takes back a batch's first step (its rows) or its second (their deferred references), in one transaction.

    Rows that turn out to have changed, that something refers to by now, or that the target refuses to give up stay,
    with a reason in `rows`. TargetLostError leaves open whether it committed: calling again does what is left.
    """
    with batch_transaction(target, partial(target.hold, row), "undo ") as held:
        if not held:
            return BatchTakenBack(0, 0, (0, 0, 0))
        rows.lock(row.entity, row.batch)
        act = rows.take_back_references if row.step == 2 else rows.take_back_rows
        deleted, restored = act(row.entity, row.batch)
        fault_point("undo rows gone")
        totals = target.settle_undone(row, deleted, restored, rows.staying(row.entity, row.batch, row.step))
    return BatchTakenBack(deleted, restored, totals)
