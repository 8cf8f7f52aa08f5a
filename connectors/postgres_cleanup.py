"""A job's records taken out of a PostgreSQL target, and our schema with them where no other job has any there.

The transaction is the caller's. Touches no table of the customer's, and nothing of ours that another job needs.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from psycopg import sql

from connectors.postgres_removal import PostgresRemoval
from connectors.postgres_schema import TABLES
from connectors.protocols import TargetLostError
from connectors.records import EXPORTED_COLUMNS
from workspace.errors import CatalogueError, JobFailedError

_OWNED = "FROM {schema}.crosswalk x JOIN {schema}.entity e ON e.id = x.entity_id WHERE x.job_id = {job}"
# A later job over the same entity knows rows that it left as they were by the crosswalk of the job that loaded them.
_REMOVE = """
DELETE FROM {schema}.quarantine WHERE job_id = {job};
DELETE FROM {schema}.retried WHERE job_id = {job};
DELETE FROM {schema}.superseded WHERE job_id = {job};
DELETE FROM {schema}.synced WHERE job_id = {job};
DELETE FROM {schema}.kept WHERE job_id = {job};
DELETE FROM {schema}.marked WHERE job_id = {job};
DELETE FROM {schema}.held_before WHERE job_id = {job};
DELETE FROM {schema}.ledger WHERE job_id = {job};
DELETE FROM {schema}.crosswalk x WHERE x.job_id = {job}
   AND NOT EXISTS (SELECT 1 FROM {schema}.ledger l WHERE l.entity_id = x.entity_id);
UPDATE {schema}.job SET host = NULL, pid = NULL, since = NULL WHERE id = {job};
DELETE FROM {schema}.job j WHERE id = {job} AND NOT EXISTS (SELECT 1 FROM {schema}.crosswalk x WHERE x.job_id = j.id)
   AND NOT EXISTS (SELECT 1 FROM {schema}.held_before b WHERE b.owner_job = j.id)
"""


class PostgresCleanup(PostgresRemoval):
    """What a job has in our schema, all of it, through one session."""

    def cleaned_up(self) -> bool:
        """True where the job's records were taken out, and only rows that other jobs need are left."""
        return bool(self.read(f"SELECT 1 FROM {self.ours}.job WHERE id = %s AND since IS NULL", [self.job_id]))

    def owned_rows(self) -> dict[str, int]:
        """How many crosswalk rows the job owns, by entity."""
        return dict(self.read(self._of_job(f"SELECT e.name, count(*) {_OWNED} GROUP BY 1 ORDER BY 1")))

    def owned_crosswalk(self) -> Iterator[pa.RecordBatch]:
        """The crosswalk rows that the job owns, by entity and old id: EXPORTED_COLUMNS as text."""
        return self.stream(self._of_job(f"SELECT e.name, x.old_id, x.new_id {_OWNED} ORDER BY 1, 2"), EXPORTED_COLUMNS)

    def other_jobs(self) -> list[str]:
        """The other jobs that have records in our schema."""
        rows = self.read(
            f"SELECT name FROM {self.ours}.job WHERE id <> %s AND since IS NOT NULL ORDER BY 1", [self.job_id]
        )
        return [row[0] for row in rows]

    def hold_records(self) -> None:
        """Keeps jobs from beginning, and crosswalks from changing, until the transaction ends."""
        self.execute(
            self._of_job(
                "SET LOCAL lock_timeout = '60s'; SELECT pg_advisory_xact_lock(hashtextextended('packhorse schema', 0)); "
                "LOCK TABLE {schema}.job, {schema}.crosswalk IN SHARE ROW EXCLUSIVE MODE"
            )
        )

    def remove_records(self) -> bool:
        """Deletes all records of the job but what other jobs need. True where our schema went too: no other job had
        anything there, and nothing of others stands in it or hangs on it."""
        alone = not self.other_jobs()
        if alone and self._drop_schema():
            return True
        if alone:
            for table in TABLES:
                self.execute(sql.SQL("DELETE FROM {}").format(sql.Identifier(self.schema, table)))
        else:
            self.execute(self._of_job(_REMOVE))
        return False

    def _drop_schema(self) -> bool:
        """False where something else stands in our schema or hangs on it, or the user doesn't own it."""
        tables = sql.SQL(", ").join(sql.Identifier(self.schema, table) for table in TABLES)
        self.execute(sql.SQL("SAVEPOINT packhorse_cleanup"))
        try:
            self.execute(
                sql.SQL("DROP TABLE {} RESTRICT; DROP SCHEMA {} RESTRICT").format(tables, sql.Identifier(self.schema))
            )
        except TargetLostError:
            raise
        except (CatalogueError, JobFailedError):
            self.execute(sql.SQL("ROLLBACK TO SAVEPOINT packhorse_cleanup"))
            return False
        return True

    def _of_job(self, statement: Any) -> sql.Composed:
        return sql.SQL(statement).format(schema=sql.Identifier(self.schema), job=sql.Literal(self.job_id))
