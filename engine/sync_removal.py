"""Rows that the source has no longer, or that the plan excludes now, taken out of the target or marked there: a batch of a
generation that holds no row, in one transaction.

Only what the job itself inserted goes; all else stays and is listed, so that taking the job back stays true.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from connectors.protocols import LedgerRow, RowsRefusedError
from connectors.records import OVER, KeptEdit, StayingRow, SyncCounts
from connectors.target import Target
from engine.check import CheckedEntity
from engine.faults import fault_point
from engine.generation import Deletes
from engine.loaded import loaded_entity
from engine.refusing import load_refusing
from engine.transaction import batch_transaction
from workspace.events import PartStaged


@dataclass
class _Gone:
    """How many rows were deleted or marked, and those that stay."""

    count: int = 0
    stay: list[StayingRow] = field(default_factory=list)


def commit_removal(
    target: Target,
    entity: CheckedEntity,
    written: CheckedEntity,
    part: PartStaged,
    over: pa.Table,
    deletes: Deletes,
    version: int,
) -> LedgerRow | None:
    """Takes the part's rows (`over`, as `over_path` says) out of the target; the ledger's row, in which nothing is read.
    None when the ledger has it already. `written` is the entity as the rows in the target were written, by which an
    edit is told.

    Keeps the invariant that a row of the stage counts as gone if and only if its row in the target is.
    """
    row = LedgerRow(entity.name, part.part, 1, "", "", version)
    with batch_transaction(target, partial(target.take, row), "sync ") as taken:
        if not taken:
            return None
        fault_point("sync ledger taken")
        done = _leave(target, entity, written, over, deletes)
        fault_point("sync rows in")
        staying = pa.array([each.old_id for each in done.stay], pa.string())
        gone = over.filter(pc.and_(over["gone"], pc.invert(pc.is_in(over["key"], staying))))
        target.supersede(entity.name, part.part, pa.table([gone[c].cast(pa.string()) for c in OVER.names], OVER.names))
        ask = entity.plan.edited == "ask"
        left_out = set(over.filter(pc.is_null(over["n"]))["key"].to_pylist())
        kept = [
            KeptEdit(each.old_id, each.new_id, f"({_why(each, left_out)}: {each.reason})", ask and each.edited)
            for each in done.stay
        ]
        target.note_kept(loaded_entity(entity), part.part, over["key"].to_pylist(), kept)
        counts = SyncCounts(asked=sum(each.asked for each in kept), stayed=len(kept))
        target.note_sync(
            entity.name,
            part.part,
            replace(counts, deleted=done.count) if deletes == "delete" else replace(counts, marked=done.count),
        )
        target.settle(row)
    return row


def _why(row: StayingRow, left_out: set[str]) -> str:
    return "left out by the plan" if row.old_id in left_out else "gone from the source"


def _leave(target: Target, entity: CheckedEntity, written: CheckedEntity, over: pa.Table, deletes: Deletes) -> _Gone:
    keys = over["key"].unique()
    rows = pa.table({"_ph_n": pa.array(range(len(keys)), pa.int64()), "_ph_key": keys})
    done, refused = _Gone(), list[tuple[int, RowsRefusedError]]()
    loaded, edited = loaded_entity(written), entity.plan.edited == "overwrite"
    marker = entity.target.column(entity.plan.deleted.column) if entity.plan.deleted is not None else None

    def leave(slice_: pa.Table) -> None:
        some = slice_["_ph_key"].to_pylist()
        with target.savepoint():
            if deletes == "delete":
                count, stay = target.remove_rows(loaded, some, edited=edited)
            else:
                assert marker is not None
                count, stay = target.mark_rows(loaded, marker, some, edited=edited)
        done.count += count
        done.stay += stay

    load_refusing(rows, leave, refused)
    texts = keys.to_pylist()
    done.stay += [StayingRow(texts[n], "", f"the target refuses: {e.code} {e.constraint}".rstrip()) for n, e in refused]
    return done
