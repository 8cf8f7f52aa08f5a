"""Drives rows of the quarantine once more, and nothing else: as the stage has them, by the job's plan or its next
version, or with values that a person edited.

A batch's rows go in one transaction with a ledger row of their own; the log catches up with the target, as it does in
a load. Of rows that were loaded before nothing is touched but references to rows that come in now.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from connectors.protocols import LedgerRow
from connectors.records import Edits, HeldRow
from engine.archive import Archive
from engine.check import CheckedEntity, CheckedPlan
from engine.collisions import Settler, held_keys, keyed_for_sure
from engine.context import Context, Progress
from engine.faults import fault_point
from engine.late_references import LateReferences
from engine.persist import persist
from engine.prepare import Preparer
from engine.quarantine import catch_up, known_job, record_retry
from engine.quarantine_file import read_edited
from engine.references import resolve_in, rows_to_fill
from engine.retried_rows import stage_keys, stage_rows, write_stage_rows
from engine.retry_batch import Selected, commit_references, commit_rows, prepare_rows
from engine.retry_plan import adopt, changed_fields
from engine.stager import recorded_parts
from engine.transform import execute
from workspace.errors import InterruptedJobError, UsageError
from workspace.events import PartStaged, QuarantineRetried

T = TypeVar("T")
EditedRows = Mapping[str, Mapping[int, Edits]]
"""By entity and row number, the rows of a file that a person edited; rows without an edited value too."""


@dataclass(frozen=True)
class EntityRetried:
    """Of one entity: rows driven again, and what became of them; `stay` are still in quarantine, and `references` are
    rows that had references filled, loaded before or now."""

    entity: str
    driven: int = 0
    inserted: int = 0
    updated: int = 0
    unchanged: int = 0
    merged: int = 0
    excluded: int = 0
    stay: int = 0
    references: int = 0


@dataclass(frozen=True)
class RetryOutcome:
    """What was done. `changed` are the fields that the plan version given says otherwise than the one before."""

    plan_version: int
    changed: Mapping[str, list[str]] = field(default_factory=dict)
    entities: tuple[EntityRetried, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """As JSON values."""
        return asdict(self)


class Retry:
    """One command's part of it. The job is leased while the connection lives."""

    def __init__(
        self,
        ctx: Context,
        *,
        entity: str = "",
        signature: str = "",
        dropped: bool = False,
        checked: CheckedPlan | None = None,
        edited: EditedRows | None = None,
    ) -> None:
        """`checked` is the next plan version, as `check_next` gives it; `edited` the only rows to drive, with their
        values. UsageError as `known_job`'s; JobLockedError."""
        self._ctx, self._entity, self._signature, self._dropped = ctx, entity, signature, dropped
        self._checked, self._edited = checked or ctx.checked, edited
        self._again = f"migrate quarantine retry {ctx.paths.job}"
        known_job(ctx.paths, ctx.workspace, ctx.target, ctx.checked.plan, entity)
        if matching := [e.name for e in ctx.checked.entities if e.plan.match is not None]:
            raise UsageError(
                f"the plan matches rows of {matching[0]}, which a retry doesn't do", where=f"job {ctx.paths.job}",
                advice="mend the rows in the source and start a new job: what is loaded stays as it is",
            )  # fmt: skip
        self._done: dict[str, Counter[str]] = {}

    def take_edited(self, path: Path) -> None:
        """Drives the rows of an exported file and no other, with what a person edited in it. UsageError names the
        place of anything else that was changed."""
        self._edited = read_edited(path, self._ctx, entity=self._entity, dropped=self._dropped)

    def run(self) -> RetryOutcome:
        """Drives the rows. InterruptedJobError when `stop` said so between two batches, JobFailedError where retrying
        did not help; either way another command goes on."""
        before = self._ctx.checked.plan
        self._persist("reading the ledger", partial(catch_up, self._ctx.workspace, self._ctx.target, before))
        self._fill_all()
        self._ctx = adopt(self._ctx, self._checked)
        chosen = {
            e.name: self._persist("reading the quarantine", partial(self._chosen, e.name))
            for e in self._ctx.checked.entities
        }
        total = sum(map(len, chosen.values()))
        self._ctx.workspace.record(
            QuarantineRetried(
                self._ctx.checked.plan.version, total, self._entity, self._signature, self._dropped, self._counted()
            )
        )
        fault_point("retry begun")
        preparer = Preparer(self._ctx.paths, self._ctx.checked, f"retry-v{self._ctx.checked.plan.version}")
        try:
            for entity in self._ctx.checked.entities:
                if chosen[entity.name]:
                    self._retry_entity(preparer, entity, chosen[entity.name])
        finally:
            preparer.close()
        fault_point("retry between passes")
        self._fill_all()
        for name, count in LateReferences(self._ctx, "migrate quarantine retry").fill().items():
            self._done.setdefault(name, Counter())["references"] += count
        for entity in self._ctx.checked.entities:
            if chosen[entity.name] and entity.id_column is not None and entity.id_column.sequence:
                raise_ = partial(self._ctx.target.raise_sequence, entity.target, entity.id_column)
                self._persist(f"the sequence of {entity.name}", raise_)
        done = [EntityRetried(name, **counts) for name, counts in self._done.items()]
        return RetryOutcome(self._ctx.checked.plan.version, changed_fields(before, self._ctx.checked.plan), tuple(done))

    def _chosen(self, entity: str) -> list[HeldRow]:
        if self._edited is not None:
            wanted = self._edited.get(entity, {})
            return [row for row in self._ctx.target.held_rows(entity, dropped=self._dropped) if row.row in wanted]
        if self._entity and entity != self._entity:
            return []
        return self._ctx.target.held_rows(entity, self._signature, dropped=self._dropped)

    def _counted(self) -> dict[str, dict[str, int]]:
        """How many values a person edited, by entity and column."""
        found = {}
        for entity, rows in (self._edited or {}).items():
            counts = Counter(column for edits in rows.values() for column in edits)
            if counts:
                found[entity] = dict(sorted(counts.items()))
        return found

    # -- rows -------------------------------------------------------------------------------------

    def _retry_entity(self, preparer: Preparer, entity: CheckedEntity, rows: list[HeldRow]) -> None:
        ctx = self._ctx
        look = partial(self._look, preparer, entity, rows)
        existing, settler, doubled = self._persist(f"reading what stands of {entity.name}", look)
        edits = (self._edited or {}).get(entity.name, {})
        position = driven = 0
        for part in recorded_parts(ctx.workspace, entity.name):
            numbers = tuple(row.row for row in rows if row.batch == part.part)
            if not numbers:
                settler.pass_over(part.rows)
            else:
                self._stop_if_asked()
                selected = Selected(
                    part, position, numbers, {n: edits[n] for n in numbers if edits.get(n)},
                    frozenset(n for n in numbers if n in doubled),
                )  # fmt: skip
                prepared = prepare_rows(preparer, entity, selected, settler, existing)
                step = self._persist("reading the ledger", partial(ctx.target.next_step, entity.name, part.part))
                if archive := Archive.of(ctx.checked.plan, ctx.paths.job):
                    archive.keep(preparer.duck, entity, prepared.staged, part.part, step)
                commit = partial(
                    commit_rows, ctx.target, preparer.duck, ctx.paths, entity, selected, prepared, step,
                    ctx.checked.plan.version,
                )  # fmt: skip
                started = time.monotonic()
                row = self._persist(f"retry of batch {part.part} of {entity.name}", commit)
                self._tell(entity, part.part, row, time.monotonic() - started)
                driven += len(numbers)
                if row is not None:
                    self._count(entity.name, row, len(numbers))
                ctx.progress(Progress("retry", entity.name, driven, len(rows), self._done[entity.name]["stay"]))
            position += part.rows

    def _look(
        self, preparer: Preparer, entity: CheckedEntity, rows: list[HeldRow]
    ) -> tuple[Path | None, Settler, set[int]]:
        """What the target holds that the entity's rows meet: its crosswalk, where it has one; its keys; and rows whose
        source key another row has that did enter."""
        target, folder = self._ctx.target, preparer.folder(entity)
        self._take_crosswalks(preparer, entity, deferred=False)
        existing = preparer.existing(entity, target)
        settler = Settler(preparer.duck, entity, folder, held_keys(target, entity, folder, ours=False))
        return existing, settler, self._doubled(preparer, entity, rows)

    def _count(self, entity: str, row: LedgerRow, driven: int) -> None:
        counts = self._done.setdefault(entity, Counter())
        for name in ("inserted", "updated", "unchanged", "merged", "excluded"):
            counts[name] += getattr(row, name)
        counts["driven"] += driven
        counts["stay"] += driven + row.quarantined

    def _tell(self, entity: CheckedEntity, batch: int, row: LedgerRow | None, seconds: float) -> None:
        """Tells the log what the target has committed; `row` is None where an earlier try did."""
        ctx = self._ctx
        tell = partial(record_retry, ctx.workspace, ctx.target, entity.name, batch, seconds, recovered=row is None)
        self._persist("reading the ledger", tell)
        fault_point("retry after checkpoint")

    def _take_crosswalks(self, preparer: Preparer, entity: CheckedEntity, *, deferred: bool) -> None:
        """Fetches the crosswalks that the entity's references are looked up in, as the target has them now."""
        needed = {f.plan.ref for f in entity.fields if f.plan.ref is not None and f.deferred == deferred}
        for name in sorted(needed | ({entity.name} if deferred else set())):
            preparer.take_crosswalk(self._ctx.checked.entity(name), self._ctx.target)

    def _doubled(self, preparer: Preparer, entity: CheckedEntity, rows: list[HeldRow]) -> set[int]:
        """Rows whose source key another row has that did enter. None where the source keeps its key unique."""
        if keyed_for_sure(entity):
            return set()
        parts = [part.part for part in recorded_parts(self._ctx.workspace, entity.name)]
        stage_keys(self._ctx, entity, preparer.duck, parts, "staged")
        held = {row.row for row in self._ctx.target.held_rows(entity.name, dropped=True)}
        execute(preparer.duck, "CREATE OR REPLACE TEMP TABLE held (n BIGINT)")
        if held:
            execute(preparer.duck, f"INSERT INTO held VALUES {', '.join(f'({n})' for n in held)}")
        found = execute(
            preparer.duck,
            "SELECT s.n FROM staged s WHERE s.n IN (SELECT n FROM held) AND EXISTS (SELECT 1 FROM staged o "
            "WHERE o.key = s.key AND o.n <> s.n AND o.wanted AND o.n NOT IN (SELECT n FROM held))",
        )
        return {n for (n,) in found} & {row.row for row in rows}

    # -- references -------------------------------------------------------------------------------

    def _fill_all(self) -> None:
        """Looks up the deferred references of rows that left the quarantine, by whichever command."""
        for entity in self._ctx.checked.entities:
            unfilled = partial(self._ctx.target.unfilled, entity.name)
            todo = self._persist("reading the ledger", unfilled) if entity.deferred else []
            if todo:
                preparer = Preparer(self._ctx.paths, self._ctx.checked, f"retry-v{self._ctx.checked.plan.version}")
                try:
                    self._fill_entity(preparer, entity, todo)
                finally:
                    preparer.close()

    def _fill_entity(self, preparer: Preparer, entity: CheckedEntity, todo: list[tuple[int, int]]) -> None:
        ctx = self._ctx
        take = partial(self._take_crosswalks, preparer, entity, deferred=True)
        self._persist("reading the crosswalk", take)
        retried = self._persist("reading the quarantine", partial(ctx.target.retried_rows, entity.name))
        left = [row for row in retried if not row.excluded]
        parts: dict[int, PartStaged] = {part.part: part for part in recorded_parts(ctx.workspace, entity.name)}
        for batch, step in todo:
            self._stop_if_asked()
            mine = {row.row: row.edited for row in left if (row.batch, row.step) == (batch, step)}
            table = stage_rows(ctx.paths.stage / entity.name, batch, mine, mine)
            staged = write_stage_rows(preparer.folder(entity) / f"rows-{batch:05d}.parquet", table)
            resolved = resolve_in(preparer, entity, [staged])
            rows, _ = rows_to_fill(preparer, entity, resolved, 0, max(mine, default=0) + 1)
            commit = partial(
                commit_references, ctx.target, entity, parts[batch], rows, step + 1, ctx.checked.plan.version
            )
            started = time.monotonic()
            done = self._persist(f"references of retried rows of batch {batch} of {entity.name}", commit)
            self._tell(entity, batch, None if done is None else done[0], time.monotonic() - started)
            if done is not None:
                self._done.setdefault(entity.name, Counter())["references"] += done[0].updated

    def _persist(self, what: str, act: Callable[[], T]) -> T:
        return persist(self._ctx, what, act, self._again)

    def _stop_if_asked(self) -> None:
        if self._ctx.stop():
            raise InterruptedJobError(
                "interrupted; what was committed stays", where=f"job {self._ctx.paths.job}", advice=self._again
            )
