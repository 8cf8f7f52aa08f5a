"""Rows of a PostgreSQL target that the source has no longer: deleted, or marked as deleted, where they are the job's own
and nobody else's business.

The transaction is the caller's, and the rows are locked before anything is asked of them.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from psycopg import sql

from connectors.postgres_referrers import Referrer, read_referrers
from connectors.postgres_rows import found_row, name_of, same_row
from connectors.postgres_sync import PostgresSynced
from connectors.protocols import Column, Kind
from connectors.records import LoadedEntity, StayingRow

BEFORE = "it was there before the job"
EDITED = "edited in the target"

_LIST = """
CREATE TEMP TABLE packhorse_leaving ON COMMIT DROP AS
SELECT x.old_id, x.new_id, CASE
         WHEN x.job_id <> {job} OR x.replaced IS NOT NULL OR EXISTS (SELECT FROM {schema}.held_before b
              WHERE (b.entity_id, b.old_id, b.job_id, b.step) = ({entity}, x.old_id, {job}, 1)) THEN {before} END AS reason
  FROM {place} l JOIN {schema}.crosswalk x ON (x.entity_id, x.old_id) = ({entity}, l.old_id)
"""
_LOCK = (
    "SELECT count(*) FROM (SELECT 1 FROM {table} t JOIN pg_temp.packhorse_leaving u ON {same} FOR UPDATE OF t) locked"
)
_KEEP_EDITED = """
UPDATE pg_temp.packhorse_leaving u SET reason = {edited} FROM {table} t, {schema}.crosswalk x
 WHERE u.reason IS NULL AND {same} AND (x.entity_id, x.old_id) = ({entity}, u.old_id)
   AND (({hash})::uuid IS DISTINCT FROM x.target_hash OR ({reference})::uuid IS DISTINCT FROM x.reference_hash)
"""
_KEEP_REFERRED = """
UPDATE pg_temp.packhorse_leaving u SET reason = {reason} FROM {table} t
 WHERE u.reason IS NULL AND {same} AND EXISTS (SELECT 1 FROM {referring} f WHERE {joined} {besides})
"""
_DELETE = "DELETE FROM {table} t USING pg_temp.packhorse_leaving u WHERE u.reason IS NULL AND {same}"
_FORGET = """
DELETE FROM {schema}.crosswalk x USING pg_temp.packhorse_leaving u
 WHERE u.reason IS NULL AND (x.entity_id, x.old_id) = ({entity}, u.old_id)
"""
_MARK = "UPDATE {table} t SET {marker} = {value} FROM pg_temp.packhorse_leaving u WHERE u.reason IS NULL AND {same}"
_NOTE_MARKED = """
INSERT INTO {schema}.marked (job_id, entity_id, old_id) SELECT {job}, {entity}, old_id FROM pg_temp.packhorse_leaving
 WHERE reason IS NULL ON CONFLICT DO NOTHING
"""
_UNMARK = """
UPDATE {table} t SET {marker} = {value} FROM {schema}.crosswalk u, {place} l, {schema}.marked m
 WHERE (u.entity_id, u.old_id) = ({entity}, l.old_id) AND (m.job_id, m.entity_id, m.old_id) = ({job}, {entity}, l.old_id) AND {same}
"""
_FORGET_MARKED = """
DELETE FROM {schema}.marked m USING {place} l WHERE (m.job_id, m.entity_id, m.old_id) = ({job}, {entity}, l.old_id)
"""
_SET = {Kind.BOOLEAN: "true", Kind.INTEGER: "1", Kind.INSTANT: "now()", Kind.DATETIME: "now()", Kind.DATE: "now()"}
_CLEAR = {Kind.BOOLEAN: "false", Kind.INTEGER: "0"}


class PostgresRemoval(PostgresSynced):
    """Rows that leave, through one session."""

    def remove_rows(self, entity: LoadedEntity, keys: Sequence[str], *, edited: bool) -> tuple[int, list[StayingRow]]:
        """Deletes the rows of these source keys, with their crosswalk: how many; and those that stay, with the reason:
        they were there before the job, somebody edited them (unless `edited`), or a row that stays refers to them."""
        names = self._leave(entity, keys, edited=edited)
        referrers = read_referrers(self, entity.table)
        while sum(self.execute(self._keep_referred(entity, each, names)) for each in referrers):
            pass
        deleted = self._run(_DELETE, names)
        self._run(_FORGET, names)
        return deleted, self._staying()

    def mark_rows(
        self, entity: LoadedEntity, marker: Column, keys: Sequence[str], *, edited: bool
    ) -> tuple[int, list[StayingRow]]:
        """Sets the deletion marker in the rows of these source keys, and notes that; those that stay as they are."""
        names = self._leave(entity, keys, edited=edited)
        value = sql.SQL(_SET.get(marker.kind, "now()::text"))
        marked = self._run(_MARK, names | {"marker": sql.Identifier(marker.name), "value": value})
        self._run(_NOTE_MARKED, names)
        return marked, self._staying()

    def unmark_rows(self, entity: LoadedEntity, marker: Column, keys: Sequence[str]) -> None:
        """Clears the deletion marker in rows that a sync had set it in."""
        place = self.temporary("packhorse_back", "old_id text", pa.table({"old_id": pa.array(keys, pa.string())}))
        names = self._names_of(entity) | {"place": place, "marker": sql.Identifier(marker.name)}
        self._run(_UNMARK, names | {"value": sql.SQL(_CLEAR.get(marker.kind, "NULL"))})
        self._run(_FORGET_MARKED, names)

    def marked_keys(self, entity: str) -> list[str]:
        """The source keys of rows that a sync has set the deletion marker in."""
        if not self._knows_syncs():
            return []
        statement = f"SELECT old_id FROM {self.ours}.marked WHERE (job_id, entity_id) = (%s, %s) ORDER BY 1"
        return [row[0] for row in self.read(statement, [self.job_id, self.entity_id(entity)])]

    def _leave(self, entity: LoadedEntity, keys: Sequence[str], *, edited: bool) -> dict[str, sql.Composable]:
        """Lists the rows, locks them, and gives a reason to those that stay whatever is done."""
        place = self.temporary("packhorse_keys", "old_id text", pa.table({"old_id": pa.array(keys, pa.string())}))
        names = self._names_of(entity) | {"place": place}
        self.execute(sql.SQL("DROP TABLE IF EXISTS pg_temp.packhorse_leaving"))
        self._run(_LIST, names)
        self._run(_LOCK, names)
        if not edited:
            self._run(_KEEP_EDITED, names)
        return names

    def _keep_referred(self, entity: LoadedEntity, key: Referrer, names: dict[str, sql.Composable]) -> sql.Composed:
        joined = sql.SQL(" AND ").join(
            sql.SQL("f.{} = t.{}").format(sql.Identifier(c), sql.Identifier(r))
            for c, r in zip(key.columns, key.referred_columns, strict=True)
        )
        besides: sql.Composable = sql.SQL("")
        if (key.schema, key.relation) == (entity.table.schema, entity.table.relation):
            besides = sql.SQL("AND NOT EXISTS (SELECT 1 FROM pg_temp.packhorse_leaving g WHERE g.reason IS NULL AND {})").format(
                same_row(entity.identity, "f", "g")
            )  # fmt: skip
        return sql.SQL(_KEEP_REFERRED).format(
            reason=sql.Literal(f"a row of {key.schema}.{key.relation} refers to it"), referring=key.name, joined=joined,
            besides=besides, **names,
        )  # fmt: skip

    def _staying(self) -> list[StayingRow]:
        rows = self.read(
            "SELECT old_id, new_id, reason FROM pg_temp.packhorse_leaving WHERE reason IS NOT NULL ORDER BY 1"
        )
        return [StayingRow(old, new, reason, reason == EDITED) for old, new, reason in rows]

    def _names_of(self, entity: LoadedEntity) -> dict[str, sql.Composable]:
        found = found_row(entity)
        return {
            "schema": sql.Identifier(self.schema), "job": sql.Literal(self.job_id), "entity": sql.Literal(self.entity_id(entity.name)),
            "table": name_of(entity.table), "same": same_row(entity.identity), "hash": found.hash, "reference": found.reference,
            "before": sql.Literal(BEFORE), "edited": sql.Literal(EDITED),
        }  # fmt: skip

    def _run(self, template: str, names: dict[str, sql.Composable]) -> int:
        return self.execute(sql.SQL(template).format(**names))
