"""Our own records in a target reached through SQLAlchemy: jobs, entities, the ledger, the crosswalk; written and read.

Touches the tables of sql_schema and no other. What is written here commits with the customer's rows or not at all: the
transaction is the caller's.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import sqlalchemy as sa

from connectors.dsn import Dsn
from connectors.protocols import LedgerRow
from connectors.records import CROSSWALK_COLUMNS
from connectors.sql_lease import SqlLease
from connectors.sql_schema import CROSSWALK, ENTITY, HELD_BEFORE, LEDGER, QUARANTINE, SCHEMA_VERSION, STEPS
from workspace.errors import WorkspaceError

_COUNTS = ("read", "inserted", "updated", "unchanged", "merged", "excluded", "quarantined")
_SETTLED = ("inserted", "updated", "unchanged", "merged", "excluded", "quarantined")
AT_ONCE = 500


class SqlRecords(SqlLease):
    """Our own tables, through one session."""

    def __init__(self, dsn: Dsn) -> None:
        super().__init__(dsn)
        self._entities: dict[str, int] = {}
        self._names: dict[int, str] = {}
        self._batch: tuple[str, int, int] | None = None

    def prepare(self) -> None:
        """Makes our tables where they are missing. A maker that is killed leaves some, and the next makes the rest:
        each is made where it isn't there, and the version is noted last."""
        with self._reached():
            SCHEMA_VERSION.create(self._connection, checkfirst=True)
            found = self._connection.execute(sa.select(sa.func.max(SCHEMA_VERSION.c.version))).scalar() or 0
            if found > len(STEPS):
                raise WorkspaceError(
                    "a newer version of Packhorse made the ledger in this target", where=self.dsn,
                    advice="upgrade packhorse",
                )  # fmt: skip
            for number, step in enumerate(STEPS[found:], found + 1):
                step(self._connection)
                self._connection.execute(sa.insert(SCHEMA_VERSION).values(version=number))

    # -- entities ---------------------------------------------------------------------------------

    def register_entity(self, source: str, entity: str, table: str) -> int:
        """The number of an entity of that source in our records, the same each time."""
        if not self.know_entity(source, entity, table):
            self.execute(sa.insert(ENTITY).values(source=source, name=entity, target_table=table))
            self.know_entity(source, entity, table)
        return self._entities[entity]

    def know_entity(self, source: str, entity: str, table: str) -> bool:
        """Finds an entity's number without writing. False when our records don't have it."""
        these = (ENTITY.c.source == source, ENTITY.c.name == entity, ENTITY.c.target_table == table)
        rows = self.read(sa.select(sa.func.min(ENTITY.c.id)).where(*these))
        number = rows[0][0]
        if number is not None:
            self._entities[entity] = number
            self._names[number] = entity
        return number is not None

    def knows_entity(self, entity: str) -> bool:
        """True for an entity registered or found."""
        return entity in self._entities

    def entity_id(self, entity: str) -> int:
        """The number of a registered entity."""
        return self._entities[entity]

    def entities_of_job(self) -> list[str]:
        """The entities that the job's ledger speaks of, by name."""
        joined = LEDGER.join(ENTITY, ENTITY.c.id == LEDGER.c.entity_id)
        asked = sa.select(ENTITY.c.name).select_from(joined).where(LEDGER.c.job_id == self.job_id).distinct()
        return sorted(row[0] for row in self.read(asked))

    # -- the ledger -------------------------------------------------------------------------------

    def ledger(self) -> list[LedgerRow]:
        """The job's ledger for the entities registered, oldest first, without what was retried since."""
        columns = [LEDGER.c[name] for name in ("entity_id", "batch", "step", "key_low", "key_high", "plan_version")]
        asked = (
            sa.select(*columns, *(LEDGER.c[name] for name in _COUNTS), LEDGER.c.checksum, LEDGER.c.undone_at)
            .where(LEDGER.c.job_id == self.job_id, LEDGER.c.step <= 2)
            .order_by(LEDGER.c.committed_at, LEDGER.c.entity_id, LEDGER.c.batch, LEDGER.c.step)
        )
        return [
            replace(LedgerRow(self._names[row[0]], *row[1:13]), checksum=int(row[13]), undone=row[14] is not None)
            for row in self.read(asked)
            if row[0] in self._names
        ]

    def take(self, row: LedgerRow) -> bool:
        """Puts the batch's row in the ledger, first of all in its transaction. False where it is there already: the
        batch was committed before, by whomever, and must not be loaded again."""
        self._under_lease()
        self.writes_as(row.entity, row.batch, 2 if row.step % 2 == 0 else 1)
        if self.read(sa.select(LEDGER.c.step).where(*self._is(row)).with_for_update()):
            return False
        self.execute(
            sa.insert(LEDGER).values(
                **self._key(row), key_low=row.key_low, key_high=row.key_high, plan_version=row.plan_version,
                **{**dict.fromkeys(_COUNTS, 0), "read": row.read}, checksum="0", committed_at=time.time_ns() // 1_000,
                undone_deleted=0, undone_restored=0, undone_refused=0,
            )
        )  # fmt: skip
        return True

    def writes_as(self, entity: str, batch: int, step: int) -> None:
        """What is written from now on is of that batch and step, where it has to be taken back."""
        self._batch = (entity, batch, step)

    def settle(self, row: LedgerRow) -> None:
        """Writes the batch's final counts in its ledger row, in the same transaction."""
        counts = {name: getattr(row, name) for name in _SETTLED}
        self.execute(sa.update(LEDGER).where(*self._is(row)).values(**counts, checksum=str(row.checksum)))

    def _key(self, row: LedgerRow) -> dict[str, int]:
        return {"job_id": self.job_id, "entity_id": self._entities[row.entity], "batch": row.batch, "step": row.step}

    def _is(self, row: LedgerRow) -> list[sa.ColumnElement[bool]]:
        return [LEDGER.c[name] == value for name, value in self._key(row).items()]

    # -- the crosswalk ----------------------------------------------------------------------------

    def crosswalk(self, entity: str, batch: int, rows: pa.Table) -> None:
        """Writes crosswalk rows: old_id, new_id, source_hash, target_hash, replaced (text columns)."""
        self._put(CROSSWALK, self._numbered(entity, batch, rows))

    def renew_crosswalk(self, entity: str, batch: int, rows: pa.Table) -> None:
        """Renews the hashes of crosswalk rows that are there, and makes them this job's: old_id, source_hash,
        target_hash. What they were before is kept."""
        keys = rows["old_id"].to_pylist()
        self.keep_before(dict.fromkeys(keys))
        self._renew(entity, rows, job_id=self.job_id, batch=batch)

    def note_references(self, entity: str, rows: pa.Table) -> None:
        """Sets the reference hash of crosswalk rows: old_id, reference_hash."""
        self._renew(entity, rows)

    def _renew(self, entity: str, rows: pa.Table, **own: int) -> None:
        if not rows.num_rows:
            return
        names = [name for name in rows.column_names if name != "old_id"]
        r, x = self.stage(rows, rows.column_names), CROSSWALK.c
        same = x.entity_id == self._entities[entity], x.old_id == self._as_key(r.c["old_id"])
        self.execute(sa.update(CROSSWALK).values({**{x[name]: r.c[name] for name in names}, **own}).where(*same))

    def keep_before(self, held: dict[str, str | None]) -> None:
        """Keeps what the batch at hand is about to write over in rows that other jobs own, so that it can be taken
        back: by source key what the row holds, as JSON, and its crosswalk row. What the batch kept already stays."""
        if self._batch is None or not held:
            return
        entity, batch, step = self._batch
        if not self._others_wrote():
            return
        mine = [HELD_BEFORE.c.entity_id == self._entities[entity], HELD_BEFORE.c.job_id == self.job_id]
        (n,) = self.read(sa.select(sa.func.coalesce(sa.func.max(HELD_BEFORE.c.n), 0)))[0]
        keys = list(held)
        for start in range(0, len(keys), AT_ONCE):
            some = keys[start : start + AT_ONCE]
            there = {row[0] for row in self.read(
                sa.select(HELD_BEFORE.c.old_id).where(*mine, HELD_BEFORE.c.step == step, HELD_BEFORE.c.old_id.in_(some))
            )}  # fmt: skip
            x = CROSSWALK.c
            owners = self.read(
                sa.select(x.old_id, x.job_id, x.batch, x.source_hash, x.target_hash, x.reference_hash).where(
                    x.entity_id == self._entities[entity], x.job_id != self.job_id, x.old_id.in_(some)
                )
            )
            rows = []
            for number, (old, owner, owner_batch, source, target, reference) in enumerate(
                (row for row in owners if row[0] not in there), n + 1
            ):
                rows.append(
                    {
                        "entity_id": self._entities[entity], "old_id": old, "job_id": self.job_id, "step": step,
                        "n": number, "batch": batch, "held": held[old], "owner_job": owner, "owner_batch": owner_batch,
                        "source_hash": source, "target_hash": target, "reference_hash": reference,
                    }
                )  # fmt: skip
            self.execute(sa.insert(HELD_BEFORE), rows)
            n += len(rows)
            if step == 2:  # rows whose first step renewed nothing but their hashes
                first = sa.update(HELD_BEFORE).where(
                    *mine, HELD_BEFORE.c.step == 1, HELD_BEFORE.c.held.is_(None),
                    HELD_BEFORE.c.old_id == sa.bindparam("k"),
                )  # fmt: skip
                self.execute(first.values(held=sa.bindparam("v")), [{"k": key, "v": held[key]} for key in some])

    def _others_wrote(self) -> bool:
        """True where another job wrote rows of the entity of the batch at hand."""
        if self._batch is None:
            return False
        others = LEDGER.c.entity_id == self._entities[self._batch[0]], LEDGER.c.job_id != self.job_id
        return bool(self.read(sa.select(LEDGER.c.step).where(*others).limit(1)))

    def crosswalk_rows(self, entity: str) -> Iterator[pa.RecordBatch]:
        """The entity's crosswalk, of every job: CROSSWALK_COLUMNS as text."""
        marks = as_mark(CROSSWALK.c.merged == 1), as_mark(CROSSWALK.c.replaced.is_not(None))
        columns = [*(CROSSWALK.c[name] for name in CROSSWALK_COLUMNS[:-2]), *marks]
        return self.stream(
            sa.select(*columns).where(CROSSWALK.c.entity_id == self._entities[entity]), CROSSWALK_COLUMNS
        )

    def merge_crosswalk(self, entity: str, batch: int, rows: pa.Table) -> pa.Table:
        """Writes the crosswalk of merged rows: old_id, home, source_hash, target_hash (text columns); old_id and new_id of
        those whose home is in the target."""
        x, entity_id = CROSSWALK.c, self._entities[entity]
        listed = rows.to_pylist()
        homes: dict[str, str] = {}
        wanted = list(dict.fromkeys(each["home"] for each in listed))
        for start in range(0, len(wanted), AT_ONCE):
            some = wanted[start : start + AT_ONCE]
            asked = sa.select(x.old_id, x.new_id).where(x.entity_id == entity_id, x.old_id.in_(some))
            homes |= {row[0]: row[1] for row in self.read(asked)}
        written = [
            {
                "entity_id": entity_id, "job_id": self.job_id, "batch": batch, "old_id": each["old_id"],
                "new_id": homes[each["home"]], "source_hash": each["source_hash"], "target_hash": each["target_hash"],
                "merged": 1,
            }
            for each in listed
            if each["home"] in homes
        ]  # fmt: skip
        self.execute(sa.insert(CROSSWALK), written)
        return pa.table({name: pa.array([row[name] for row in written], pa.string()) for name in ("old_id", "new_id")})

    def has_crosswalk(self, entity: str) -> bool:
        """True where the entity's crosswalk holds a row."""
        asked = sa.select(CROSSWALK.c.batch).where(CROSSWALK.c.entity_id == self._entities[entity]).limit(1)
        return bool(self.read(asked))

    # -- quarantine -------------------------------------------------------------------------------

    def quarantine(self, entity: str, batch: int, rows: pa.Table) -> None:
        """Writes quarantine rows: row (its number in the stage), key, field, code, signature, detail, raw (text)."""
        rows = self._numbered(entity, batch, rows)
        self._put(QUARANTINE, rows.append_column("status", pa.repeat(pa.scalar("open"), rows.num_rows)))

    def _put(self, table: sa.Table, rows: pa.Table) -> None:
        """Inserts rows of text into a table of ours."""
        self._fill(table.name, rows.column_names, rows.columns)

    def _numbered(self, entity: str, batch: int, rows: pa.Table) -> pa.Table:
        numbers = {"entity_id": self._entities[entity], "job_id": self.job_id, "batch": batch}
        for name, value in numbers.items():
            rows = rows.append_column(name, pa.repeat(pa.scalar(str(value)), rows.num_rows))
        return rows


def as_mark(condition: sa.ColumnElement[bool]) -> sa.ColumnElement[str]:
    """t or f."""
    return sa.case((condition, "t"), else_="f")


def as_json(names: Sequence[str], values: Sequence[Any]) -> str:
    """What a row holds, as JSON: by column the text that the target shows, or null."""
    return json.dumps(dict(zip(names, values, strict=True)), ensure_ascii=False)
