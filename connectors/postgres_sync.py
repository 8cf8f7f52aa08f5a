"""What a sync keeps in the target of a job: rows of the stage that later ones took the place of, and rows that were
edited in the target and stay.

The job and its entities are known. The transaction is the caller's, as for all our records.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple

import pyarrow as pa
from psycopg import sql

from connectors.postgres_rows import found_row, name_of, same_row
from connectors.postgres_undo import PostgresUndone
from connectors.records import KeptEdit, LoadedEntity, SyncCounts

_SUPERSEDE = """
INSERT INTO {schema}.superseded (job_id, entity_id, batch, of_batch, row, outcome)
SELECT {job}, {entity}, {batch}, o.of_batch, o.n, CASE
         WHEN EXISTS (SELECT FROM {schema}.quarantine q WHERE (q.job_id, q.entity_id, q.row) = ({job}, {entity}, o.n)) THEN 'quarantined'
         WHEN coalesce((SELECT r.excluded FROM {schema}.retried r WHERE (r.job_id, r.entity_id, r.row) = ({job}, {entity}, o.n)), o.excluded)
         THEN 'excluded' ELSE 'loaded' END
  FROM {place} o
"""
_FREE = (
    "DELETE FROM {schema}.quarantine q USING {place} o WHERE (q.job_id, q.entity_id, q.row) = ({job}, {entity}, o.n)"
)
_REHASH = """
UPDATE {schema}.crosswalk x SET target_hash = ({hash})::uuid, reference_hash = ({reference})::uuid
  FROM {place} k, {table} t
 WHERE (x.entity_id, x.old_id) = ({entity}, k.old_id) AND {same} RETURNING x.old_id, x.target_hash::text
"""
_FORGET_KEPT = """
DELETE FROM {schema}.kept k USING {place} l WHERE (k.job_id, k.entity_id, k.old_id) = ({job}, {entity}, l.old_id)
"""
_WITH_ID = """
UPDATE {place} k SET new_id = x.new_id FROM {schema}.crosswalk x WHERE k.new_id = '' AND (x.entity_id, x.old_id) = ({entity}, k.old_id)
"""
_NOTE_KEPT = """
INSERT INTO {schema}.kept (job_id, entity_id, batch, old_id, new_id, fields, asked, edited_hash)
SELECT {job}, {entity}, {batch}, k.old_id, k.new_id, k.fields, k.asked, ({hash})::uuid FROM {place} k JOIN {table} t ON {same}
"""


class PostgresSynced(PostgresUndone):
    """What later generations of a job's stage did, through one session."""

    def superseded_rows(self, entity: str) -> dict[int, int]:
        """The entity's rows of the stage that are read no longer: number to batch."""
        if not self._knows_syncs():
            return {}
        statement = f"SELECT row, of_batch FROM {self.ours}.superseded WHERE (job_id, entity_id) = (%s, %s)"
        return dict(self.read(statement, [self.job_id, self.entity_id(entity)]))

    def freed_rows(self, entity: str) -> list[int]:
        """The numbers of rows that were in quarantine until later ones took their place."""
        if not self._knows_syncs():
            return []
        statement = (
            f"SELECT row FROM {self.ours}.superseded WHERE (job_id, entity_id, outcome) = (%s, %s, 'quarantined')"
        )
        return [row[0] for row in self.read(statement, [self.job_id, self.entity_id(entity)])]

    def superseded_counts(self, entity: str, batch: int | None = None) -> dict[int, dict[str, int]]:
        """How many rows of each batch are read no longer, by outcome; those alone that `batch` took the place of, where
        given."""
        if not self._knows_syncs():
            return {}
        rows = self.read(
            f"SELECT of_batch, outcome, count(*)::int FROM {self.ours}.superseded WHERE (job_id, entity_id) = (%s, %s) "
            f"AND (%s::int IS NULL OR batch = %s) GROUP BY 1, 2",
            [self.job_id, self.entity_id(entity), batch, batch],
        )
        found: dict[int, dict[str, int]] = {}
        for of_batch, outcome, count in rows:
            found.setdefault(of_batch, {})[outcome] = count
        return found

    def supersede(self, entity: str, batch: int, over: pa.Table) -> None:
        """Notes that these rows (as OVER) are read no longer, and takes them out of the quarantine. The table's key
        lets each be superseded once."""
        place = self.temporary("packhorse_over", "n bigint, of_batch int, excluded boolean", over)
        names = self._named(entity, batch, place)
        self.execute(sql.SQL(_SUPERSEDE).format(**names))
        self.execute(sql.SQL(_FREE).format(**names))

    def edited_references(self, entity: LoadedEntity, keys: Sequence[str]) -> list[str]:
        """Locks the rows of these source keys, and gives those whose deferred references are not what was filled."""
        place = self.temporary("packhorse_looked_at", "old_id text", _texts(old_id=keys))
        statement = sql.SQL(
            "SELECT x.old_id FROM {place} l JOIN {schema}.crosswalk x ON (x.entity_id, x.old_id) = ({entity}, l.old_id) "
            "JOIN {table} t ON {same} WHERE ({reference})::uuid IS DISTINCT FROM x.reference_hash FOR UPDATE OF t"
        ).format(
            table=name_of(entity.table), same=same_row(entity.identity, "t", "x"), reference=found_row(entity).reference,
            **self._named(entity.name, 0, place),
        )  # fmt: skip
        return [row[0] for row in self.read(statement)]

    def rehash(self, entity: LoadedEntity, keys: Sequence[str]) -> dict[str, str]:
        """Takes what the rows of these source keys hold now for what was written; their new checksums, by source key. Rows
        that aren't there are nothing here."""
        if not keys:
            return {}
        place = self.temporary("packhorse_rehashed", "old_id text", _texts(old_id=keys))
        rows = self.read(
            sql.SQL(_REHASH).format(
                hash=found_row(entity).hash, reference=found_row(entity).reference, table=name_of(entity.table),
                same=same_row(entity.identity, "t", "x"),
                schema=sql.Identifier(self.schema), entity=sql.Literal(self.entity_id(entity.name)), place=place,
            )
        )  # fmt: skip
        return dict(rows)

    def note_kept(self, entity: LoadedEntity, batch: int, looked_at: Sequence[str], kept: Sequence[KeptEdit]) -> None:
        """Notes which of the rows `looked_at` (source keys) stay as they were edited; the others are noted no longer. One
        of `kept` without an id is found by the crosswalk."""
        place = self.temporary("packhorse_looked_at", "old_id text", _texts(old_id=looked_at))
        self.execute(sql.SQL(_FORGET_KEPT).format(**self._named(entity.name, batch, place)))
        if not kept:
            return
        rows = _texts(
            old_id=[k.old_id for k in kept],
            new_id=[k.new_id for k in kept],
            fields=[k.fields for k in kept],
            asked=["t" if k.asked else "f" for k in kept],
        )
        place = self.temporary("packhorse_kept", "old_id text, new_id text, fields text, asked boolean", rows)
        self.execute(sql.SQL(_WITH_ID).format(**self._named(entity.name, batch, place)))
        self.execute(
            sql.SQL(_NOTE_KEPT).format(
                table=name_of(entity.table), same=same_row(entity.identity, "t", "k"), hash=found_row(entity).hash,
                **self._named(entity.name, batch, place),
            )
        )  # fmt: skip

    def kept_edits(self, entity: str) -> list[KeptEdit]:
        """The entity's rows that stay as they were edited, by source key."""
        if not self._knows_syncs():
            return []
        rows = self.read(
            f"SELECT old_id, new_id, fields, asked, replace(edited_hash::text, '-', '') FROM {self.ours}.kept "
            f"WHERE (job_id, entity_id) = (%s, %s) ORDER BY old_id",
            [self.job_id, self.entity_id(entity)],
        )
        return [KeptEdit(*row) for row in rows]

    def note_sync(self, entity: str, batch: int, counts: SyncCounts) -> None:
        """Writes a batch's counts that the ledger has no column for."""
        values = [self.job_id, self.entity_id(entity), batch, *astuple(counts)]
        self.execute(
            sql.SQL(
                "INSERT INTO {} (job_id, entity_id, batch, kept, asked, deleted, marked, stayed) VALUES ({})"
            ).format(sql.Identifier(self.schema, "synced"), sql.SQL(", ").join(map(sql.Literal, values)))
        )

    def sync_counts(self, entity: str, batch: int) -> SyncCounts:
        """What `note_sync` wrote; zeros where it wrote nothing."""
        rows = self.read(
            f"SELECT kept, asked, deleted, marked, stayed FROM {self.ours}.synced WHERE (job_id, entity_id, batch) = (%s, %s, %s)",
            [self.job_id, self.entity_id(entity), batch],
        )
        return SyncCounts(*rows[0]) if rows else SyncCounts()

    def _knows_syncs(self) -> bool:
        """False where an older version made our schema."""
        name = sql.Identifier(self.schema, "superseded").as_string()
        return bool(self.read("SELECT to_regclass(%s) IS NOT NULL", [name])[0][0])

    def _named(self, entity: str, batch: int, place: sql.Identifier) -> dict[str, sql.Composable]:
        return {
            "schema": sql.Identifier(self.schema),
            "job": sql.Literal(self.job_id),
            "entity": sql.Literal(self.entity_id(entity)),
            "batch": sql.Literal(batch),
            "place": place,
        }


def _texts(**columns: Sequence[str]) -> pa.Table:
    return pa.table({name: pa.array(values, pa.string()) for name, values in columns.items()})
