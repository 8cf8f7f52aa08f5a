"""The quarantine of a job in the target, and what the ledger says of rows that left it again.

The job and its entities are known. The transaction is the caller's, as for all our records.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from psycopg import sql

from connectors.postgres_records import PostgresRecords
from connectors.protocols import LedgerRow
from connectors.records import QUARANTINED_COLUMNS, HeldRow, RetriedRow, Totals
from workspace.errors import JobFailedError


class PostgresQuarantine(PostgresRecords):
    """The tables of the quarantine, through one session."""

    def held_rows(self, entity: str, signature: str = "", *, dropped: bool = False) -> list[HeldRow]:
        """The entity's open rows in quarantine, of one signature where given; with `dropped`, those too. In the order of
        the stage."""
        rows = self.read(
            f"SELECT batch, row, key, status = 'dropped' FROM {self.ours}.quarantine WHERE (job_id, entity_id) = (%s, %s) "
            f"AND (%s = '' OR signature = %s) AND (%s OR status = 'open') ORDER BY row",
            [self.job_id, self.entity_id(entity), signature, signature, dropped],
        )
        return [HeldRow(*row) for row in rows]

    def next_step(self, entity: str, batch: int) -> int:
        """The step of the ledger that the next retry of the batch takes: odd, from 3 on."""
        (last,) = self.read(
            f"SELECT greatest(max(step), 2) FROM {self.ours}.ledger WHERE (job_id, entity_id, batch) = (%s, %s, %s)",
            [self.job_id, self.entity_id(entity), batch],
        )[0]
        return int(last) + 1 + int(last) % 2

    def unfilled(self, entity: str) -> list[tuple[int, int]]:
        """Batches and steps of rows that left the quarantine and whose deferred references were not looked up yet."""
        return self.read(
            f"SELECT batch, step FROM {self.ours}.ledger l WHERE (job_id, entity_id) = (%s, %s) AND step > 2 AND step %% 2 = 1 "
            f"AND to_jsonb(l) ->> 'undone_at' IS NULL AND NOT EXISTS (SELECT 1 FROM {self.ours}.ledger f WHERE (f.job_id, f.entity_id, f.batch, f.step) = "
            f"(l.job_id, l.entity_id, l.batch, l.step + 1)) ORDER BY batch, step",
            [self.job_id, self.entity_id(entity)],
        )

    def retried_rows(self, entity: str) -> list[RetriedRow]:
        """The entity's rows that left the quarantine. None where an older version made our schema."""
        if self.read("SELECT to_regclass(%s) IS NULL", [sql.Identifier(self.schema, "retried").as_string()])[0][0]:
            return []
        rows = self.read(
            f"SELECT batch, step, row, plan_version, excluded, edited::text FROM {self.ours}.retried "
            f"WHERE (job_id, entity_id) = (%s, %s) ORDER BY row",
            [self.job_id, self.entity_id(entity)],
        )
        return [
            RetriedRow(batch, step, row, version, excluded, json.loads(edited) if edited else {})
            for batch, step, row, version, excluded, edited in rows
        ]

    def retry_totals(self, entity: str, batch: int | None = None) -> dict[int, Totals]:
        """By batch, for batches that were retried and not taken back; of one batch where given."""
        rows = self.read(
            f"SELECT batch, max(step), max(plan_version), sum(inserted) FILTER (WHERE step %% 2 = 1), sum(updated) FILTER (WHERE step %% 2 = 1), "
            f"sum(unchanged), sum(merged), sum(excluded), sum(updated) FILTER (WHERE step %% 2 = 0) FROM {self.ours}.ledger "
            f"WHERE (job_id, entity_id) = (%s, %s) AND step > 2 AND to_jsonb(ledger) ->> 'undone_at' IS NULL "
            f"AND (%s::int IS NULL OR batch = %s) GROUP BY batch",
            [self.job_id, self.entity_id(entity), batch, batch],
        )
        return {row[0]: Totals(*(int(each or 0) for each in row[1:])) for row in rows}

    def clusters_held(self, entity: str, batch: int | None = None) -> dict[int, list[dict[str, Any]]]:
        """What each batch has in quarantine: signature, code, field, and how many rows are open and dropped."""
        rows = self.read(
            f"SELECT batch, signature, min(code), min(field), count(*) FILTER (WHERE status = 'open'), "
            f"count(*) FILTER (WHERE status = 'dropped') FROM {self.ours}.quarantine WHERE (job_id, entity_id) = (%s, %s) "
            f"AND (%s::int IS NULL OR batch = %s) GROUP BY 1, 2 ORDER BY 1, 2",
            [self.job_id, self.entity_id(entity), batch, batch],
        )
        found: dict[int, list[dict[str, Any]]] = {}
        for number, *cluster in rows:
            found.setdefault(number, []).append(
                dict(zip(("signature", "code", "field", "open", "dropped"), cluster, strict=True))
            )
        return found

    def settle_retry(self, row: LedgerRow, changes: pa.Table) -> None:
        """Takes the rows that are loaded or excluded out of the quarantine and notes them, gives those that stay their new
        reason (rows that `changes` leaves out stay as they are), and settles the ledger's row. `changes` is as CHANGES.

        JobFailedError where a row isn't in quarantine any more: nothing may be taken from it twice.
        """
        columns = ", ".join(f"{name} {'bigint' if name == 'row' else 'text'}" for name in changes.column_names)
        place = self.temporary("packhorse_retried", columns, changes)
        names = {
            "schema": sql.Identifier(self.schema), "place": place, "job": sql.Literal(self.job_id),
            "entity": sql.Literal(self.entity_id(row.entity)), "batch": sql.Literal(row.batch), "step": sql.Literal(row.step),
            "version": sql.Literal(row.plan_version),
        }  # fmt: skip
        left = self.execute(
            sql.SQL(
                "DELETE FROM {schema}.quarantine q USING {place} c WHERE (q.job_id, q.entity_id, q.batch, q.row) = "
                "({job}, {entity}, {batch}, c.row) AND c.outcome <> 'stays'"
            ).format(**names)
        )
        noted = self.execute(
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
        self.execute(
            sql.SQL(
                "UPDATE {schema}.quarantine q SET field = c.field, code = c.code, signature = c.signature, detail = c.detail "
                "FROM {place} c WHERE (q.job_id, q.entity_id, q.batch, q.row) = ({job}, {entity}, {batch}, c.row) AND c.outcome = 'stays'"
            ).format(**names)
        )
        self.settle(row)

    def drop_rows(self, entity: str, signature: str = "") -> dict[int, int]:
        """Marks the entity's open rows as dropped, of one signature where given; how many, by batch."""
        rows = self.read(
            f"WITH d AS (UPDATE {self.ours}.quarantine SET status = 'dropped' WHERE (job_id, entity_id) = (%s, %s) AND status = 'open' "
            f"AND (%s = '' OR signature = %s) RETURNING batch) SELECT batch, count(*) FROM d GROUP BY 1 ORDER BY 1",
            [self.job_id, self.entity_id(entity), signature, signature],
        )
        return {batch: int(count) for batch, count in rows}

    def quarantined_keys(self, entity: str) -> list[tuple[str, int, int, int]]:
        """The source keys in quarantine, with how many rows of each, how many of those are dropped, and the first
        batch of them."""
        return self.read(
            f"SELECT key, count(*)::int, (count(*) FILTER (WHERE status = 'dropped'))::int, min(batch) FROM {self.ours}.quarantine "
            f"WHERE (job_id, entity_id) = (%s, %s) GROUP BY 1",
            [self.job_id, self.entity_id(entity)],
        )

    def quarantined_rows(
        self, entity: str = "", signature: str = "", limit: int | None = None
    ) -> Iterator[pa.RecordBatch]:
        """The job's rows in quarantine by entity and number, of one entity or signature where given."""
        narrowed = sql.SQL(" ").join(
            sql.SQL("AND {} = {}").format(sql.SQL(column), sql.Literal(value))
            for column, value in (("e.name", entity), ("q.signature", signature))
            if value
        )
        limited = sql.SQL("LIMIT {}").format(sql.Literal(limit)) if limit is not None else sql.SQL("")
        return self._quarantined("", narrowed, "", limited)

    def quarantine_examples(self) -> Iterator[pa.RecordBatch]:
        """The first row of each entity and signature, an open one where there is one."""
        first = "DISTINCT ON (e.name, q.signature)"
        return self._quarantined(first, sql.SQL(""), "q.signature, q.status DESC,", sql.SQL(""))

    def _quarantined(
        self, first: str, narrowed: sql.Composable, order: str, limited: sql.Composable
    ) -> Iterator[pa.RecordBatch]:
        statement = sql.SQL(
            "SELECT {first} e.name, q.row, q.key, q.field, q.code, q.signature, q.detail, q.raw, q.status"
            " FROM {schema}.quarantine q JOIN {schema}.entity e ON e.id = q.entity_id"
            " WHERE q.job_id = {job} {narrowed} ORDER BY e.name, {order} q.row {limited}"
        ).format(
            first=sql.SQL(first), order=sql.SQL(order), schema=sql.Identifier(self.schema), job=sql.Literal(self.job_id),
            narrowed=narrowed, limited=limited,
        )  # fmt: skip
        return self.stream(statement, QUARANTINED_COLUMNS)
