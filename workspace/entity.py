"""How far one entity is: what stands in its stage, which batches are committed, what became of the rows.

Part of the progress fold. Quarantine is kept by signature, never by row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from workspace.counts import Batch, Counts, Numbered, batch_of
from workspace.events import (
    BatchCommitted,
    BatchRetried,
    BatchSynced,
    BatchUndone,
    EntityCompleted,
    Event,
    PartStaged,
    QuarantineSeen,
    RowsDropped,
    RowsExpected,
    RowsMatched,
    StageCompleted,
)


@dataclass(frozen=True)
class Failure:
    """Rows in quarantine under one signature, `dropped` of them given up. `example` is masked."""

    code: str
    field: str
    count: int
    example: str
    dropped: int = 0

    @property
    def open(self) -> int:
        """Rows that nobody gave up."""
        return self.count - self.dropped

    def to_dict(self) -> dict[str, Any]:
        """As JSON values."""
        shown = {"code": self.code, "field": self.field, "count": self.count}
        return {**shown, "open": self.open, "dropped": self.dropped, "example": self.example}


@dataclass(frozen=True)
class EntityProgress:
    """One entity. `counts` are those of the equation; `filled` counts references filled in the second pass;
    `plan_versions` how many batches each plan version moved. Of a batch that was taken back, which `undone` has,
    only the rows that stay count: they are loaded. `kept` counts rows that syncs left as they were edited in the target,
    `to_match` those that were found before the load to be one with a row of the target (None where the plan matches none);
    `expected` is about how many rows will be read, as the source counted them before (None where it didn't)."""

    staged_rows: int = 0
    staged_bytes: int = 0
    parts: Numbered[tuple[int, int]] = field(default_factory=Numbered)  # rows, bytes
    stage_completed: bool = False
    snapshot: bool = False
    batches: Numbered[Batch] = field(default_factory=Numbered)
    second_pass: Numbered[Batch] = field(default_factory=Numbered)
    counts: Counts = field(default_factory=Counts)
    filled: int = 0
    seconds: float = 0.0
    recovered: int = 0
    plan_versions: Mapping[int, int] = field(default_factory=dict)
    failures: Mapping[str, Failure] = field(default_factory=dict)
    completed: bool = False
    undone: Numbered[BatchUndone] = field(default_factory=Numbered)
    kept: int = 0
    to_match: int | None = None
    expected: int | None = None

    @property
    def rows_to_read(self) -> int | None:
        """How many rows there are to carry over: those of the stage once it is whole, before that about as many as the
        source counted; None where neither is known."""
        return self.staged_rows if self.stage_completed else self.expected

    @property
    def matched(self) -> int | None:
        """Rows that are one with a row which the target held before: of those loaded so far, and before any is, as was
        decided; None where the plan matches none."""
        counted = [batch.matched for _, batch in self.batches]
        known = [count for count in counted if count is not None]
        return self.to_match if not counted or len(known) < len(counted) else sum(known)

    @property
    def dropped(self) -> int:
        """Rows in quarantine that a person gave up."""
        return sum(failure.dropped for failure in self.failures.values())

    @property
    def excluded_by(self) -> dict[str, int]:
        """Rows left out, by the condition that held them back; those that a retry left out are counted as that."""
        found: dict[str, int] = {}
        for _, batch in self.batches:
            retried = (("left out by a retry", batch.retried.excluded),) if batch.retried.excluded else ()
            for reason, count in (*batch.excluded_by, *retried):
                found[reason] = found.get(reason, 0) + count
        return found

    def apply(self, event: Event) -> EntityProgress:
        """The entity after one more event of it."""
        match event:
            case PartStaged():
                return self._with_part(event)
            case StageCompleted():
                return replace(self, stage_completed=True, snapshot=event.snapshot)
            case BatchCommitted(step=1):
                return self._with_batch(event)
            case BatchCommitted():
                return self._with_second_pass(event)
            case BatchUndone(step=1):
                return self._without_batch(event)
            case BatchUndone():
                return self._without_second_pass(event)
            case BatchRetried():
                return self._with_retry(event)
            case BatchSynced():
                return self._with_sync(event)
            case RowsDropped():
                return self._with_clusters(event.batch, event.clusters)
            case QuarantineSeen():
                return self._with_failure(event)
            case RowsMatched():
                return replace(self, to_match=event.matched)
            case RowsExpected():
                return replace(self, expected=event.rows)
            case EntityCompleted():
                return replace(self, completed=True)
            case _:
                return self

    def _with_part(self, event: PartStaged) -> EntityProgress:
        rows, size = self.parts.get(event.part) or (0, 0)
        return replace(
            self,
            parts=self.parts.put(event.part, (event.rows, event.bytes)),
            staged_rows=self.staged_rows - rows + event.rows,
            staged_bytes=self.staged_bytes - size + event.bytes,
        )

    def _with_batch(self, event: BatchCommitted) -> EntityProgress:
        earlier, batch = self.batches.get(event.batch), batch_of(event)
        versions = dict(self.plan_versions)
        failures = dict(self.failures)
        counts = self.counts + batch.counts
        if earlier is not None:
            counts -= earlier.counts
            _count(versions, earlier.plan_version, -1)
            _take_all(failures, earlier)
        _count(versions, batch.plan_version, 1)
        return replace(
            self,
            batches=self.batches.put(event.batch, batch),
            counts=counts,
            seconds=self.seconds + batch.seconds,
            recovered=self.recovered + batch.recovered,
            plan_versions=versions,
            failures=failures,
            completed=self.completed and earlier is not None,
        )

    def _with_second_pass(self, event: BatchCommitted) -> EntityProgress:
        earlier, batch = self.second_pass.get(event.batch), batch_of(event)
        return replace(
            self,
            second_pass=self.second_pass.put(event.batch, batch),
            filled=self.filled + batch.counts.updated - (earlier.counts.updated if earlier else 0),
            seconds=self.seconds + batch.seconds,
            recovered=self.recovered + batch.recovered,
        )

    def _without_batch(self, event: BatchUndone) -> EntityProgress:
        batch = self.batches.get(event.batch)
        undone = replace(self, undone=self.undone.put(event.batch, event))
        if batch is None:
            return undone
        failures = dict(self.failures)
        _take_all(failures, batch)
        left = Counts(read=event.refused, inserted=event.refused)
        return replace(
            undone,
            batches=self.batches.put(
                event.batch,
                Batch(left, batch.plan_version, batch.seconds, batch.recovered, matched=batch.matched and 0),
            ),
            counts=self.counts - batch.counts + left,
            filled=self.filled - batch.references,
            failures=failures,
        )

    def _without_second_pass(self, event: BatchUndone) -> EntityProgress:
        batch = self.second_pass.get(event.batch)
        if batch is None:
            return self
        left = Counts(updated=event.refused)
        return replace(
            self,
            second_pass=self.second_pass.put(event.batch, replace(batch, counts=left)),
            filled=self.filled - batch.counts.updated + left.updated,
        )

    def _with_retry(self, event: BatchRetried) -> EntityProgress:
        batch = self.batches.get(event.batch)
        if batch is None:
            return self
        left = event.inserted + event.updated + event.unchanged + event.merged + event.excluded
        moved = Counts(0, event.inserted, event.updated, event.unchanged, event.merged, event.excluded, -left)
        change, filled = moved - batch.retried, event.references - batch.references
        batch = replace(batch, counts=batch.counts + change, retried=moved, references=event.references)
        return replace(
            self,
            batches=self.batches.put(event.batch, batch),
            counts=self.counts + change,
            filled=self.filled + filled,
            seconds=self.seconds + event.seconds,
        )._with_clusters(event.batch, event.clusters)

    def _with_sync(self, event: BatchSynced) -> EntityProgress:
        """With the rows that a batch's rows took the place of, out of its counts: of loaded ones, rows that were
        updated first, then those left as they were."""
        batch = self.batches.get(event.batch)
        if batch is None:
            return self
        updated = min(event.loaded, batch.counts.updated)
        unchanged = min(event.loaded - updated, batch.counts.unchanged)
        read = event.loaded + event.excluded + event.quarantined
        gone = Counts(
            read, event.loaded - updated - unchanged, updated, unchanged, 0, event.excluded, event.quarantined
        )
        batches = self.batches.put(event.batch, replace(batch, counts=batch.counts - gone))
        synced = replace(self, batches=batches, counts=self.counts - gone, kept=self.kept + event.kept)
        for each in event.clusters:
            synced = synced._with_clusters(each["batch"], each["clusters"])
        return synced

    def _with_clusters(self, number: int, clusters: Sequence[Mapping[str, Any]]) -> EntityProgress:
        """With what a batch has in quarantine now, in the place of what it had."""
        batch = self.batches.get(number)
        if batch is None:
            return self
        failures = dict(self.failures)
        _take_all(failures, batch)
        for each in clusters:
            known = failures.get(each["signature"], Failure(each["code"], each["field"], 0, ""))
            failures[each["signature"]] = replace(
                known, count=known.count + each["open"] + each["dropped"], dropped=known.dropped + each["dropped"]
            )
        batch = replace(
            batch,
            signatures=tuple((each["signature"], each["open"] + each["dropped"]) for each in clusters),
            dropped=tuple((each["signature"], each["dropped"]) for each in clusters if each["dropped"]),
        )
        return replace(self, batches=self.batches.put(number, batch), failures=failures)

    def _with_failure(self, event: QuarantineSeen) -> EntityProgress:
        failures = dict(self.failures)
        known = failures.get(event.signature)
        dropped = known.dropped if known else 0
        failures[event.signature] = Failure(
            event.code, event.field, (known.count if known else 0) + event.count, event.example, dropped
        )
        batches = self.batches
        batch = batches.get(event.batch) if event.batch is not None else None
        if batch is not None and event.batch is not None:
            seen = (*batch.signatures, (event.signature, event.count))
            batches = batches.put(event.batch, replace(batch, signatures=seen))
        return replace(self, failures=failures, batches=batches)

    def to_dict(self) -> dict[str, Any]:
        """As JSON values. Batches and parts are counted, not listed."""
        return {
            "stage": {
                "rows": self.staged_rows,
                "parts": len(self.parts),
                "bytes": self.staged_bytes,
                "completed": self.stage_completed,
                "snapshot": self.snapshot,
                "expected": self.expected,
            },
            "batches": len(self.batches),
            "second_pass": len(self.second_pass),
            "counts": self.counts.to_dict(),
            "excluded_by": self.excluded_by,
            "references_filled": self.filled,
            "matched": self.matched,
            "seconds": round(self.seconds, 3),
            "recovered": self.recovered,
            "plan_versions": {str(version): self.plan_versions[version] for version in sorted(self.plan_versions)},
            "failures": {
                signature: failure.to_dict()
                for signature, failure in sorted(self.failures.items(), key=lambda pair: (-pair[1].count, pair[0]))
            },
            "quarantine": {"open": self.counts.quarantined - self.dropped, "dropped": self.dropped},
            "retried": {
                name: sum(getattr(batch.retried, name) for _, batch in self.batches)
                for name in ("inserted", "updated", "unchanged", "merged", "excluded")
            },
            "completed": self.completed,
            "undone": {
                "batches": len(self.undone),
                **{
                    name: sum(getattr(event, name) for _, event in self.undone)
                    for name in ("deleted", "restored", "refused")
                },
            },
        }


def _count(numbers: dict[int, int], key: int, by: int) -> None:
    left = numbers.get(key, 0) + by
    if left:
        numbers[key] = left
    else:
        numbers.pop(key, None)


def _take_all(failures: dict[str, Failure], batch: Batch) -> None:
    for signature, count in batch.dropped:
        if signature in failures:
            known = failures[signature]
            failures[signature] = replace(known, dropped=max(0, known.dropped - count))
    for signature, count in batch.signatures:
        _take(failures, signature, count)


def _take(failures: dict[str, Failure], signature: str, count: int) -> None:
    known = failures.get(signature)
    if known is None:
        return
    if known.count > count:
        failures[signature] = replace(known, count=known.count - count)
    else:
        del failures[signature]
