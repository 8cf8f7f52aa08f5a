"""The quarantine of a job in the target, and what the ledger says of rows that left it again.

Functions over a target whose job and entities are known. The transaction is the caller's, as for all our records.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from psycopg import sql

from connectors.postgres_records import PostgresRecords
from connectors.postgres_schema import SCHEMA
from connectors.protocols import LedgerRow
from workspace.errors import JobFailedError

Edits = dict[str, str | None]
"""Values that a person edited, by source column; binary as hexadecimal digits."""

CHANGES = pa.schema(
    [(name, pa.string()) for name in ("row", "outcome", "edited", "field", "code", "signature", "detail")]
)
"""What becomes of rows that are retried: `outcome` is loaded, excluded or stays (then with its new reason)."""


@dataclass(frozen=True)
class HeldRow:
    """A row in quarantine: its batch, its number in the stage, its key, and whether it was dropped."""

    batch: int
    row: int
    key: str
    dropped: bool


@dataclass(frozen=True)
class RetriedRow:
    """A row that left the quarantine: by which step of its batch's ledger, and which plan version."""

    batch: int
    step: int
    row: int
    plan_version: int
    excluded: bool
    edited: Edits


@dataclass(frozen=True)
class Totals:
    """What became of a batch's rows that left the quarantine, over all times; `references` are rows that had some
    filled then. `step` is the last in the ledger."""

    step: int = 0
    plan_version: int = 0
    inserted: int = 0
    updated: int = 0
    unchanged: int = 0
    excluded: int = 0
    references: int = 0

    @property
    def left(self) -> int:
        """Rows that left the quarantine."""
        return self.inserted + self.updated + self.unchanged + self.excluded


def held_rows(records: PostgresRecords, entity: str, signature: str = "", *, dropped: bool = False) -> list[HeldRow]:
    """The entity's open rows in quarantine, of one signature where given; with `dropped`, those too. In the order of
    the stage."""
    rows = records.read(
        f"SELECT batch, row, key, status = 'dropped' FROM {SCHEMA}.quarantine WHERE (job_id, entity_id) = (%s, %s) "
        f"AND (%s = '' OR signature = %s) AND (%s OR status = 'open') ORDER BY row",
        [records.job_id, records.entity_id(entity), signature, signature, dropped],
    )
    return [HeldRow(*row) for row in rows]


def next_step(records: PostgresRecords, entity: str, batch: int) -> int:
    """The step of the ledger that the next retry of the batch takes: odd, from 3 on."""
    (last,) = records.read(
        f"SELECT greatest(max(step), 2) FROM {SCHEMA}.ledger WHERE (job_id, entity_id, batch) = (%s, %s, %s)",
        [records.job_id, records.entity_id(entity), batch],
    )[0]
    return int(last) + 1 + int(last) % 2


def unfilled(records: PostgresRecords, entity: str) -> list[tuple[int, int]]:
    """Batches and steps of rows that left the quarantine and whose deferred references were not looked up yet."""
    return records.read(
        f"SELECT batch, step FROM {SCHEMA}.ledger l WHERE (job_id, entity_id) = (%s, %s) AND step > 2 AND step %% 2 = 1 "
        f"AND to_jsonb(l) ->> 'undone_at' IS NULL AND NOT EXISTS (SELECT 1 FROM {SCHEMA}.ledger f WHERE (f.job_id, f.entity_id, f.batch, f.step) = "
        f"(l.job_id, l.entity_id, l.batch, l.step + 1)) ORDER BY batch, step",
        [records.job_id, records.entity_id(entity)],
    )


def retried_rows(records: PostgresRecords, entity: str) -> list[RetriedRow]:
    """The entity's rows that left the quarantine. None where an older version made our schema."""
    if records.read("SELECT to_regclass(%s) IS NULL", [f"{SCHEMA}.retried"])[0][0]:
        return []
    rows = records.read(
        f"SELECT batch, step, row, plan_version, excluded, edited::text FROM {SCHEMA}.retried "
        f"WHERE (job_id, entity_id) = (%s, %s) ORDER BY row",
        [records.job_id, records.entity_id(entity)],
    )
    return [
        RetriedRow(batch, step, row, version, excluded, json.loads(edited) if edited else {})
        for batch, step, row, version, excluded, edited in rows
    ]


def retry_totals(records: PostgresRecords, entity: str, batch: int | None = None) -> dict[int, Totals]:
    """By batch, for batches that were retried and not taken back; of one batch where given."""
    rows = records.read(
        f"SELECT batch, max(step), max(plan_version), sum(inserted) FILTER (WHERE step %% 2 = 1), sum(updated) FILTER (WHERE step %% 2 = 1), "
        f"sum(unchanged), sum(excluded), sum(updated) FILTER (WHERE step %% 2 = 0) FROM {SCHEMA}.ledger "
        f"WHERE (job_id, entity_id) = (%s, %s) AND step > 2 AND to_jsonb(ledger) ->> 'undone_at' IS NULL "
        f"AND (%s::int IS NULL OR batch = %s) GROUP BY batch",
        [records.job_id, records.entity_id(entity), batch, batch],
    )
    return {row[0]: Totals(*(int(each or 0) for each in row[1:])) for row in rows}


def clusters_held(records: PostgresRecords, entity: str, batch: int | None = None) -> dict[int, list[dict[str, Any]]]:
    """What each batch has in quarantine: signature, code, field, and how many rows are open and dropped."""
    rows = records.read(
        f"SELECT batch, signature, min(code), min(field), count(*) FILTER (WHERE status = 'open'), "
        f"count(*) FILTER (WHERE status = 'dropped') FROM {SCHEMA}.quarantine WHERE (job_id, entity_id) = (%s, %s) "
        f"AND (%s::int IS NULL OR batch = %s) GROUP BY 1, 2 ORDER BY 1, 2",
        [records.job_id, records.entity_id(entity), batch, batch],
    )
    found: dict[int, list[dict[str, Any]]] = {}
    for number, *cluster in rows:
        found.setdefault(number, []).append(
            dict(zip(("signature", "code", "field", "open", "dropped"), cluster, strict=True))
        )
    return found


def settle_retry(records: PostgresRecords, row: LedgerRow, changes: pa.Table) -> None:
    """Takes the rows that are loaded or excluded out of the quarantine and notes them, gives those that stay their new
    reason (rows that `changes` leaves out stay as they are), and settles the ledger's row. `changes` is as CHANGES.

    JobFailedError where a row isn't in quarantine any more: nothing may be taken from it twice.
    """
    columns = ", ".join(f"{name} {'bigint' if name == 'row' else 'text'}" for name in changes.column_names)
    place = records.temporary("packhorse_retried", columns, changes)
    names = {
        "schema": sql.Identifier(SCHEMA), "place": place, "job": sql.Literal(records.job_id),
        "entity": sql.Literal(records.entity_id(row.entity)), "batch": sql.Literal(row.batch), "step": sql.Literal(row.step),
        "version": sql.Literal(row.plan_version),
    }  # fmt: skip
    left = records.execute(
        sql.SQL(
            "DELETE FROM {schema}.quarantine q USING {place} c WHERE (q.job_id, q.entity_id, q.batch, q.row) = "
            "({job}, {entity}, {batch}, c.row) AND c.outcome <> 'stays'"
        ).format(**names)
    )
    noted = records.execute(
        sql.SQL(
            "INSERT INTO {schema}.retried (job_id, entity_id, batch, step, row, plan_version, excluded, edited) "
            "SELECT {job}, {entity}, {batch}, {step}, row, {version}, outcome = 'excluded', edited::json FROM {place} "
            "WHERE outcome <> 'stays'"
        ).format(**names)
    )
    if left != noted:
        raise JobFailedError(
            f"{noted - left:,} rows are not in quarantine any more", where=f"{row.entity}, batch {row.batch}",
            advice="run the command again",
        )  # fmt: skip
    records.execute(
        sql.SQL(
            "UPDATE {schema}.quarantine q SET field = c.field, code = c.code, signature = c.signature, detail = c.detail "
            "FROM {place} c WHERE (q.job_id, q.entity_id, q.batch, q.row) = ({job}, {entity}, {batch}, c.row) AND c.outcome = 'stays'"
        ).format(**names)
    )
    records.settle(row)


def drop_rows(records: PostgresRecords, entity: str, signature: str = "") -> dict[int, int]:
    """Marks the entity's open rows as dropped, of one signature where given; how many, by batch."""
    rows = records.read(
        f"WITH d AS (UPDATE {SCHEMA}.quarantine SET status = 'dropped' WHERE (job_id, entity_id) = (%s, %s) AND status = 'open' "
        f"AND (%s = '' OR signature = %s) RETURNING batch) SELECT batch, count(*) FROM d GROUP BY 1 ORDER BY 1",
        [records.job_id, records.entity_id(entity), signature, signature],
    )
    return {batch: int(count) for batch, count in rows}
