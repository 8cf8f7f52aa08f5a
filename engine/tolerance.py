"""Whether a load goes on with so many rows in quarantine: judged after each batch, since a plan that sends every fifth
row there is better mended after the first thousands than after the last.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from math import sqrt

from connectors.protocols import LedgerRow
from engine.context import Context
from engine.stager import completed_stage
from workspace.errors import QuarantinedTooManyError
from workspace.log import Workspace
from workspace.state import state_at

SURE = 3.09
"""How sure it is that an entity's rows still to come are as bad: so many standard deviations, 999 times in 1,000 where
bad rows come by chance."""
ENOUGH = 0.1
"""The share of an entity's rows from which it is projected: what is oldest is often worst, and comes first."""
MOST_SHOWN = 5


class Tolerance:
    """What a load has in quarantine so far, and what that comes to at its end. Call `after_batch` with each batch."""

    def __init__(self, ctx: Context, tolerate: float, judge: Callable[[LedgerRow], None]) -> None:
        """`tolerate` is a share of the job's rows below 1, else rows; `judge` is called with each batch too."""
        self._ctx, self._tolerate, self._judge = ctx, tolerate, judge
        self._rows = {entity.name: self._expected(entity.name) for entity in ctx.checked.entities}
        entities = state_at(ctx.workspace).progress.entities
        self._read = Counter({name: entity.counts.read for name, entity in entities.items()})
        self._held = Counter({name: entity.counts.quarantined - entity.dropped for name, entity in entities.items()})

    def after_batch(self, row: LedgerRow) -> None:
        """Takes up a batch that is committed and in the log, so that stopping loses nothing. QuarantinedTooManyError
        where what is tolerated is passed, or surely will be."""
        self._judge(row)
        if row.step == 1:
            self._read[row.entity] += row.read
            self._held[row.entity] += row.quarantined
            self.check()

    def check(self) -> None:
        """QuarantinedTooManyError where what is tolerated is passed, or surely will be. Never once all rows are read:
        there is nothing to stop any more, and the job's end tells."""
        held = sum(self._held.values())
        if all(self._read[name] >= rows for name, rows in self._rows.items()):
            return
        if self._tolerate >= 1:
            if held > self._tolerate:
                raise self._too_many(f"{held:,} rows are in quarantine, and {int(self._tolerate):,} are tolerated")
            return
        total = sum(max(self._rows[name], self._read[name]) for name in self._rows)
        coming = sum(projected(self._held[name], self._read[name], self._rows[name]) for name in self._rows)
        if coming > self._tolerate * total:
            raise self._too_many(
                f"{held:,} of {sum(self._read.values()):,} rows read are in quarantine: more than {self._tolerate:.4g} "
                f"of all {total:,} will be"
            )

    def _expected(self, entity: str) -> int:
        """How many rows the entity has: in its stage, where that is whole, else as the source counts them now."""
        staged = completed_stage(self._ctx.workspace, entity)
        if staged is not None:
            return staged.rows
        return self._ctx.source.count(self._ctx.checked.entity(entity).plan.from_)

    def _too_many(self, what: str) -> QuarantinedTooManyError:
        job = self._ctx.paths.job
        return QuarantinedTooManyError(
            what, where=f"job {job}",
            advice=f"`migrate quarantine list {job}` shows all; `migrate resume {job} --tolerate SHARE|ROWS` goes on all the same",
            details=clusters(self._ctx.workspace),
        )  # fmt: skip


def projected(held: int, read: int, rows: int) -> float:
    """How many rows of an entity will be in quarantine at the least, when `held` of the first `read` are and it has
    `rows`: the lower end of Wilson's interval, from ENOUGH of the rows on; before that, those that are there."""
    if held == 0 or read < ENOUGH * rows:
        return held
    share, square = held / read, SURE * SURE / read
    low = (share + square / 2 - SURE * sqrt((share * (1 - share) + square / 4) / read)) / (1 + square)
    return held + max(0.0, low) * max(0, rows - read)


def clusters(workspace: Workspace) -> tuple[str, ...]:
    """The largest clusters in the quarantine, one a line with its rows."""
    found = [
        (-failure.open, name, signature)
        for name, entity in state_at(workspace).progress.entities.items()
        for signature, failure in entity.failures.items()
        if failure.open
    ]
    return tuple(f"{-count:,} {name}: {signature}" for count, name, signature in sorted(found)[:MOST_SHOWN])
