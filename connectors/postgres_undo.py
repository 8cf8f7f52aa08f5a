"""What the ledger says of batches that were taken back, and the records of a batch that go with its rows.

The job and its entities are known. The transaction is the caller's, as for all our records.
"""

from __future__ import annotations

from psycopg import sql

from connectors.postgres_quarantine import PostgresQuarantine
from connectors.protocols import LedgerRow
from connectors.records import Undone


class PostgresUndone(PostgresQuarantine):
    """What of the ledger was taken back, through one session."""

    def entities_of_job(self) -> list[str]:
        """The entities that the job's ledger speaks of, by name."""
        rows = self.read(
            f"SELECT DISTINCT e.name FROM {self.ours}.ledger l JOIN {self.ours}.entity e ON e.id = l.entity_id WHERE l.job_id = %s ORDER BY 1",
            [self.job_id],
        )
        return [row[0] for row in rows]

    def undone(self) -> dict[tuple[str, int, int], Undone]:
        """The job's batches that were taken back, by entity, batch and step."""
        rows = self.read(
            f"SELECT e.name, l.batch, l.step, undone_deleted, undone_restored, undone_refused FROM {self.ours}.ledger l "
            f"JOIN {self.ours}.entity e ON e.id = l.entity_id WHERE job_id = %s AND undone_at IS NOT NULL AND step <= 2 "
            f"ORDER BY undone_at, entity_id, batch, step DESC",
            [self.job_id],
        )
        return {tuple(row[:3]): (row[3], row[4], row[5]) for row in rows}

    def unkept_batches(self, entity: str) -> list[int]:
        """The job's batches of an entity that wrote over rows of earlier jobs and did not keep what they held: an
        older version loaded them."""
        rows = self.read(
            f"SELECT l.batch FROM {self.ours}.ledger l LEFT JOIN (SELECT batch, count(replaced) AS n FROM {self.ours}.crosswalk "
            f"WHERE (entity_id, job_id) = (%s, %s) GROUP BY 1) x ON x.batch = l.batch WHERE (l.entity_id, l.job_id, l.step) = (%s, %s, 1) "
            f"AND NOT l.keeps_before AND l.updated > coalesce(x.n, 0)",
            [self.entity_id(entity), self.job_id] * 2,
        )
        return [row[0] for row in rows]

    def hold(self, row: LedgerRow) -> bool:
        """Locks the batch's row of the ledger until the transaction ends: who else takes it back waits. False where
        there is none."""
        found = self.read(
            f"SELECT 1 FROM {self.ours}.ledger WHERE (job_id, entity_id, batch, step) = (%s, %s, %s, %s) FOR UPDATE",
            self._key(row),
        )
        return bool(found)

    def settle_undone(self, row: LedgerRow, deleted: int, restored: int, refused: int) -> Undone:
        """Writes that the batch was taken back: rows deleted and restored count up, `refused` is what stays; all three
        as they stand now. In a first step its rows in quarantine go too, and what was retried of them."""
        if row.step == 1:
            key = sql.SQL(", ").join(map(sql.Literal, self._key(row)[:3]))
            for statement in (
                "DELETE FROM {}.quarantine WHERE (job_id, entity_id, batch) = ({})",
                "DELETE FROM {}.retried WHERE (job_id, entity_id, batch) = ({})",
                "UPDATE {}.ledger SET undone_at = now() WHERE (job_id, entity_id, batch) = ({}) AND step > 2",
            ):
                self.execute(sql.SQL(statement).format(sql.Identifier(self.schema), key))
        found = self.read(
            f"UPDATE {self.ours}.ledger SET undone_at = now(), undone_deleted = undone_deleted + %s, "
            f"undone_restored = undone_restored + %s, undone_refused = %s WHERE (job_id, entity_id, batch, step) = (%s, %s, %s, %s) "
            f"RETURNING undone_deleted, undone_restored, undone_refused",
            [deleted, restored, refused, *self._key(row)],
        )
        return found[0][0], found[0][1], found[0][2]

    def _key(self, row: LedgerRow) -> list[int]:
        return [self.job_id, self.entity_id(row.entity), row.batch, row.step]
