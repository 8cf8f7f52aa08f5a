"""What the log is told of a batch that is in the target: its counts, and what it put in quarantine."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from connectors.protocols import LedgerRow
from workspace.events import BatchCommitted, QuarantineSeen


def batch_committed(
    row: LedgerRow, seconds: float, excluded_by: Mapping[str, int] | None = None, *, recovered: bool = False
) -> BatchCommitted:
    """The event of a row of the ledger; `excluded_by` counts its excluded rows by the condition that held them back."""
    return BatchCommitted(
        entity=row.entity, batch=row.batch, step=1 if row.step == 1 else 2, plan_version=row.plan_version, read=row.read, inserted=row.inserted,
        updated=row.updated, unchanged=row.unchanged, merged=row.merged, excluded=row.excluded, quarantined=row.quarantined,
        seconds=seconds, recovered=recovered, excluded_by=dict(excluded_by or {}), matched=row.matched,
    )  # fmt: skip


def quarantine_seen(entity: str, batch: int, seen: Iterable[tuple[str, str, str, int]]) -> list[QuarantineSeen]:
    """One event a signature (signature, code, field, count); the signature's own shape is the example."""
    return [
        QuarantineSeen(entity=entity, signature=signature, code=code, field=field_, count=n, batch=batch)
        for signature, code, field_, n in seen
    ]
