"""A batch's transaction on the target: the one frame in which anything of the customer's is written."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from connectors.target import Target
from engine.faults import fault_point


@contextmanager
def batch_transaction(target: Target, take: Callable[[], bool], place: str = "") -> Iterator[bool]:
    """Within it a batch's rows and all our records of them are written, between `take`, which takes or holds its row of
    the ledger and is given first, and the caller's settling of that row, which comes last.

    The invariant of every load, retry and undo: what is written within is in the target if and only if the ledger's
    row says so, since both commit together or not at all; and of two at one batch, the row lets one in. Yields what
    `take` says; where that is False, nothing may be written, and nothing is. Whatever ends the block early ends the
    transaction without effect. TargetLostError leaves open whether it committed: the ledger tells. `place` is what
    the fault points' names begin with.
    """
    target.begin()
    try:
        taken = take()
        yield taken
        if not taken:
            target.rollback()
            return
        fault_point(f"{place}before commit")
        target.commit()
    except BaseException:
        target.rollback()
        raise
    fault_point(f"{place}after commit")
