"""A job's records taken out of a target reached through SQLAlchemy, and our tables with them where no other job has
anything there.

The transaction is the caller's. Touches no table of the customer's, and nothing of ours that another job needs.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import sqlalchemy as sa

from connectors.records import EXPORTED_COLUMNS
from connectors.sql_quarantine import SqlQuarantine
from connectors.sql_schema import (
    CROSSWALK,
    ENTITY,
    HELD_BEFORE,
    JOB,
    KEPT,
    LEDGER,
    MARKED,
    METADATA,
    QUARANTINE,
    RETRIED,
    SUPERSEDED,
    SYNCED,
)

_OF_JOBS = (QUARANTINE, RETRIED, HELD_BEFORE, SUPERSEDED, SYNCED, KEPT, MARKED, LEDGER)

_X = CROSSWALK.c


class SqlCleanup(SqlQuarantine):
    """What a job has in our tables, all of it, through one session."""

    _drops_in_transactions = True
    """False where a DROP TABLE ends the transaction: then our tables are emptied and stay."""

    def cleaned_up(self) -> bool:
        """True where the job's records were taken out, and only rows that other jobs need are left."""
        return bool(self.read(sa.select(JOB.c.id).where(JOB.c.id == self.job_id, JOB.c.since.is_(None))))

    def owned_rows(self) -> dict[str, int]:
        """How many crosswalk rows the job owns, by entity."""
        asked = sa.select(ENTITY.c.name, sa.func.count()).select_from(
            CROSSWALK.join(ENTITY, ENTITY.c.id == _X.entity_id)
        )
        asked = asked.where(_X.job_id == self.job_id).group_by(ENTITY.c.name).order_by(ENTITY.c.name)
        return {name: int(rows) for name, rows in self.read(asked)}

    def owned_crosswalk(self) -> Iterator[pa.RecordBatch]:
        """The crosswalk rows that the job owns, by entity and old id: EXPORTED_COLUMNS as text."""
        asked = sa.select(ENTITY.c.name, _X.old_id, _X.new_id)
        asked = asked.select_from(CROSSWALK.join(ENTITY, ENTITY.c.id == _X.entity_id))
        return self.stream(asked.where(_X.job_id == self.job_id).order_by(ENTITY.c.name, _X.old_id), EXPORTED_COLUMNS)

    def other_jobs(self) -> list[str]:
        """The other jobs that have records in our tables."""
        asked = sa.select(JOB.c.name).where(JOB.c.id != self.job_id, JOB.c.since.is_not(None))
        return sorted(row[0] for row in self.read(asked))

    def hold_records(self) -> None:
        """Keeps jobs from beginning, and batches from being written, until the transaction ends: each looks at the
        row of its job first."""
        self.read(sa.select(JOB.c.id).with_for_update())

    def remove_records(self) -> bool:
        """Deletes all records of the job but what other jobs need. True where our tables went too: no other job had
        anything there."""
        if not self.other_jobs():
            if self._drops_in_transactions:
                with self._reached():
                    METADATA.drop_all(self._connection)
                return True
            for table in (*_OF_JOBS, CROSSWALK, ENTITY, JOB):
                self.execute(sa.delete(table))
            return False
        for table in _OF_JOBS:
            self.execute(sa.delete(table).where(table.c.job_id == self.job_id))
        # A later job over the same entity knows rows that it left as they were by the crosswalk of the job that loaded them.
        needed = [row[0] for row in self.read(sa.select(LEDGER.c.entity_id).distinct())]
        self.execute(sa.delete(CROSSWALK).where(_X.job_id == self.job_id, _X.entity_id.not_in(needed)))
        self.execute(
            sa.update(JOB).where(JOB.c.id == self.job_id).values(host=None, pid=None, started=None, since=None)
        )
        left = sa.select(_X.batch).where(_X.job_id == self.job_id).limit(1)
        owned = sa.select(HELD_BEFORE.c.batch).where(HELD_BEFORE.c.owner_job == self.job_id).limit(1)
        if not self.read(left) and not self.read(owned):
            self.execute(sa.delete(JOB).where(JOB.c.id == self.job_id))
        return False
