"""The quarantine of a job in a target reached through SQLAlchemy, what the ledger says of rows that left it again, and
of batches that were taken back.

The job and its entities are known. The transaction is the caller's, as for all our records.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import sqlalchemy as sa

from connectors.protocols import LedgerRow
from connectors.records import QUARANTINED_COLUMNS, HeldRow, RetriedRow, Totals, Undone
from connectors.sql_records import AT_ONCE, SqlRecords
from connectors.sql_schema import ENTITY, LEDGER, QUARANTINE, RETRIED
from workspace.errors import JobFailedError

_Q, _L, _R = QUARANTINE.c, LEDGER.c, RETRIED.c


class SqlQuarantine(SqlRecords):
    """The tables of the quarantine, through one session."""

    def _mine(self, table: sa.Table, entity: str) -> list[sa.ColumnElement[bool]]:
        return [table.c.job_id == self.job_id, table.c.entity_id == self.entity_id(entity)]

    def clusters(self, entity: str, batch: int) -> list[tuple[str, str, str, int]]:
        """What a batch of the job put in quarantine: signature, code, field, how many rows."""
        cluster = (_Q.signature, _Q.code, _Q.field)
        asked = sa.select(*cluster, sa.func.count()).where(*self._mine(QUARANTINE, entity), _Q.batch == batch)
        return [(row[0], row[1], row[2], int(row[3])) for row in self.read(asked.group_by(*cluster).order_by(*cluster))]

    def quarantined_keys(self, entity: str) -> list[tuple[str, int, int, int]]:
        """The source keys in quarantine, with how many rows of each, how many of those are dropped, and the first
        batch of them."""
        asked = sa.select(_Q.key, sa.func.count(), _count(_Q.status == "dropped"), sa.func.min(_Q.batch)).where(
            *self._mine(QUARANTINE, entity)
        )
        return [
            (key, int(rows), int(dropped), batch) for key, rows, dropped, batch in self.read(asked.group_by(_Q.key))
        ]

    def quarantined_rows(
        self, entity: str = "", signature: str = "", limit: int | None = None
    ) -> Iterator[pa.RecordBatch]:
        """The job's rows in quarantine by entity and number, of one entity or signature where given."""
        narrowed = [ENTITY.c.name == entity] if entity else []
        if signature:
            narrowed.append(_Q.signature == signature)
        asked = sa.select(ENTITY.c.name, *(_Q[name] for name in QUARANTINED_COLUMNS[1:]))
        asked = asked.select_from(QUARANTINE.join(ENTITY, ENTITY.c.id == _Q.entity_id))
        asked = asked.where(_Q.job_id == self.job_id, *narrowed).order_by(ENTITY.c.name, _Q.row).limit(limit)
        return self.stream(asked, QUARANTINED_COLUMNS)

    def quarantine_examples(self) -> Iterator[pa.RecordBatch]:
        """The first row of each entity and signature, an open one where there is one."""
        place = sa.func.row_number().over(
            partition_by=(_Q.entity_id, _Q.signature), order_by=(_Q.status.desc(), _Q.row)
        )
        ranked = sa.select(
            ENTITY.c.name.label("entity"), *(_Q[name] for name in QUARANTINED_COLUMNS[1:]), place.label("p")
        )
        ranked = ranked.select_from(QUARANTINE.join(ENTITY, ENTITY.c.id == _Q.entity_id)).where(
            _Q.job_id == self.job_id
        )
        first = ranked.subquery("ranked")
        asked = sa.select(*(first.c[name] for name in QUARANTINED_COLUMNS)).where(first.c.p == 1)
        return self.stream(asked.order_by(first.c.entity, first.c.row), QUARANTINED_COLUMNS)

    def held_rows(self, entity: str, signature: str = "", *, dropped: bool = False) -> list[HeldRow]:
        """The entity's open rows in quarantine, of one signature where given; with `dropped`, those too. In the order
        of the stage."""
        asked = sa.select(_Q.batch, _Q.row, _Q.key, _Q.status).where(*self._mine(QUARANTINE, entity))
        if signature:
            asked = asked.where(_Q.signature == signature)
        if not dropped:
            asked = asked.where(_Q.status == "open")
        return [
            HeldRow(batch, row, key, status == "dropped")
            for batch, row, key, status in self.read(asked.order_by(_Q.row))
        ]

    def clusters_held(self, entity: str, batch: int | None = None) -> dict[int, list[dict[str, Any]]]:
        """What each batch has in quarantine: signature, code, field, and how many rows are open and dropped."""
        asked = sa.select(
            _Q.batch, _Q.signature, sa.func.min(_Q.code), sa.func.min(_Q.field), _count(_Q.status == "open"),
            _count(_Q.status == "dropped"),
        ).where(*self._mine(QUARANTINE, entity))  # fmt: skip
        if batch is not None:
            asked = asked.where(_Q.batch == batch)
        found: dict[int, list[dict[str, Any]]] = {}
        for number, signature, code, field, open_, dropped in self.read(
            asked.group_by(_Q.batch, _Q.signature).order_by(_Q.batch, _Q.signature)
        ):
            cluster = {
                "signature": signature,
                "code": code,
                "field": field,
                "open": int(open_),
                "dropped": int(dropped),
            }
            found.setdefault(number, []).append(cluster)
        return found

    def drop_rows(self, entity: str, signature: str = "") -> dict[int, int]:
        """Marks the entity's open rows as dropped, of one signature where given; how many, by batch."""
        these = [*self._mine(QUARANTINE, entity), _Q.status == "open"]
        if signature:
            these.append(_Q.signature == signature)
        # locked first: what is counted is what is dropped
        self.read(sa.select(_Q.row).where(*these).with_for_update())
        counted = sa.select(_Q.batch, sa.func.count()).where(*these).group_by(_Q.batch).order_by(_Q.batch)
        dropped = {batch: int(count) for batch, count in self.read(counted)}
        self.execute(sa.update(QUARANTINE).where(*these).values(status="dropped"))
        return dropped

    # -- rows that left it ------------------------------------------------------------------------

    def next_step(self, entity: str, batch: int) -> int:
        """The step of the ledger that the next retry of the batch takes: odd, from 3 on."""
        asked = sa.select(sa.func.max(_L.step)).where(*self._mine(LEDGER, entity), _L.batch == batch)
        last = max(self.read(asked)[0][0] or 0, 2)
        return int(last) + 1 + int(last) % 2

    def unfilled(self, entity: str) -> list[tuple[int, int]]:
        """Batches and steps of rows that left the quarantine and whose deferred references were not looked up yet."""
        asked = sa.select(_L.batch, _L.step).where(*self._mine(LEDGER, entity), _L.step > 2, _L.undone_at.is_(None))
        steps = {(batch, step) for batch, step in self.read(asked)}
        return sorted((batch, step) for batch, step in steps if step % 2 and (batch, step + 1) not in steps)

    def retried_rows(self, entity: str) -> list[RetriedRow]:
        """The entity's rows that left the quarantine."""
        asked = sa.select(_R.batch, _R.step, _R.row, _R.plan_version, _R.excluded, _R.edited)
        return [
            RetriedRow(batch, step, row, version, bool(excluded), json.loads(edited) if edited else {})
            for batch, step, row, version, excluded, edited in self.read(
                asked.where(*self._mine(RETRIED, entity)).order_by(_R.row)
            )
        ]

    def retry_totals(self, entity: str, batch: int | None = None) -> dict[int, Totals]:
        """By batch, for batches that were retried and not taken back; of one batch where given."""
        rows = _L.step % 2 == 1
        asked = sa.select(
            _L.batch, sa.func.max(_L.step), sa.func.max(_L.plan_version), _sum(rows, _L.inserted), _sum(rows, _L.updated),
            sa.func.sum(_L.unchanged), sa.func.sum(_L.merged), sa.func.sum(_L.excluded), _sum(sa.not_(rows), _L.updated),
        ).where(*self._mine(LEDGER, entity), _L.step > 2, _L.undone_at.is_(None))  # fmt: skip
        if batch is not None:
            asked = asked.where(_L.batch == batch)
        return {row[0]: Totals(*(int(each or 0) for each in row[1:])) for row in self.read(asked.group_by(_L.batch))}

    def settle_retry(self, row: LedgerRow, changes: pa.Table) -> None:
        """Takes the rows that are loaded or excluded out of the quarantine and notes them, gives those that stay their
        new reason, and settles the ledger's row. JobFailedError where a row isn't in quarantine any more."""
        listed = changes.to_pylist()
        gone = [each for each in listed if each["outcome"] != "stays"]
        numbers = [int(each["row"]) for each in gone]
        mine = [*self._mine(QUARANTINE, row.entity), _Q.batch == row.batch]
        left = 0
        for start in range(0, len(numbers), AT_ONCE):
            left += self.execute(sa.delete(QUARANTINE).where(*mine, _Q.row.in_(numbers[start : start + AT_ONCE])))
        if left != len(gone):
            raise JobFailedError(
                f"{len(gone) - left:,} rows are not in quarantine any more", where=f"{row.entity}, batch {row.batch}",
                advice="run the command again",
            )  # fmt: skip
        key = {"job_id": self.job_id, "entity_id": self.entity_id(row.entity), "batch": row.batch, "step": row.step}
        noted = [
            {
                **key, "row": int(each["row"]), "plan_version": row.plan_version,
                "excluded": int(each["outcome"] == "excluded"), "edited": each["edited"],
            }
            for each in gone
        ]  # fmt: skip
        self.execute(sa.insert(RETRIED), noted)
        names = ("field", "code", "signature", "detail")
        again = sa.update(QUARANTINE).where(*mine, _Q.row == sa.bindparam("n"))
        self.execute(
            again.values(**{name: sa.bindparam(f"v_{name}") for name in names}),
            [
                {"n": int(each["row"]), **{f"v_{name}": each[name] for name in names}}
                for each in listed
                if each["outcome"] == "stays"
            ],
        )
        self.settle(row)

    # -- batches that were taken back -------------------------------------------------------------

    def undone(self) -> dict[tuple[str, int, int], Undone]:
        """The job's batches that were taken back, by entity, batch and step."""
        counts = (_L.undone_deleted, _L.undone_restored, _L.undone_refused)
        asked = sa.select(ENTITY.c.name, _L.batch, _L.step, *counts).select_from(
            LEDGER.join(ENTITY, ENTITY.c.id == _L.entity_id)
        )
        asked = asked.where(_L.job_id == self.job_id, _L.undone_at.is_not(None), _L.step <= 2)
        ordered = asked.order_by(_L.undone_at, _L.entity_id, _L.batch, _L.step.desc())
        return {(row[0], row[1], row[2]): (row[3], row[4], row[5]) for row in self.read(ordered)}

    def hold(self, row: LedgerRow) -> bool:
        """Locks the batch's row of the ledger until the transaction ends: who else takes it back waits. False where
        there is none."""
        self._under_lease()
        return bool(self.read(sa.select(_L.step).where(*self._is(row)).with_for_update()))

    def settle_undone(self, row: LedgerRow, deleted: int, restored: int, refused: int) -> Undone:
        """Writes that the batch was taken back: rows deleted and restored count up, `refused` is what stays; all three
        as they stand now. In a first step its rows in quarantine go too, and what was retried of them."""
        now = time.time_ns() // 1_000
        if row.step == 1:
            for table in (QUARANTINE, RETRIED):
                self.execute(sa.delete(table).where(*self._mine(table, row.entity), table.c.batch == row.batch))
            later = [*self._mine(LEDGER, row.entity), _L.batch == row.batch, _L.step > 2]
            self.execute(sa.update(LEDGER).where(*later).values(undone_at=now))
        self.execute(
            sa.update(LEDGER)
            .where(*self._is(row))
            .values(
                undone_at=now, undone_deleted=_L.undone_deleted + deleted, undone_restored=_L.undone_restored + restored,
                undone_refused=refused,
            )
        )  # fmt: skip
        counts = sa.select(_L.undone_deleted, _L.undone_restored, _L.undone_refused).where(*self._is(row))
        found = self.read(counts)[0]
        return found[0], found[1], found[2]


def _count(condition: sa.ColumnElement[bool]) -> sa.ColumnElement[int]:
    return sa.func.sum(sa.case((condition, 1), else_=0))


def _sum(condition: sa.ColumnElement[bool], value: sa.ColumnElement[int]) -> sa.ColumnElement[int]:
    return sa.func.sum(sa.case((condition, value), else_=0))
