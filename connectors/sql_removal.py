"""Rows of a target reached through SQLAlchemy that the source has no longer: deleted, or marked as deleted, where they
are the job's own and nobody else's business.

The transaction is the caller's, and the rows are locked before anything is asked of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import pyarrow as pa
import sqlalchemy as sa

from connectors.protocols import Column, Kind
from connectors.records import LoadedEntity, StayingRow
from connectors.sql_records import AT_ONCE
from connectors.sql_rows import table_of
from connectors.sql_schema import CROSSWALK, HELD_BEFORE, MARKED
from connectors.sql_target import SqlTarget
from connectors.sql_undo_found import referrers

BEFORE = "it was there before the job"
EDITED = "edited in the target"
_SET = {Kind.BOOLEAN: "true", Kind.INTEGER: "1"}
_CLEAR = {Kind.BOOLEAN: "false", Kind.INTEGER: "0"}
_NOW = {Kind.INSTANT: "%Y-%m-%d %H:%M:%S+00", Kind.DATE: "%Y-%m-%d"}


@dataclass
class _Leaving:
    """A row that may leave; `reason` is why it has to stay, or ""."""

    old_id: str
    new_id: str
    reason: str = ""


class SqlRemoval(SqlTarget):
    """Rows that leave, through one session."""

    def remove_rows(self, entity: LoadedEntity, keys: Sequence[str], *, edited: bool) -> tuple[int, list[StayingRow]]:
        """Deletes the rows of these source keys, with their crosswalk: how many; and those that stay, with the reason:
        they were there before the job, somebody edited them (unless `edited`), or a row that stays refers to them."""
        rows = self._leaving(entity, keys, edited=edited)
        self._keep_referred(entity, rows)
        going = [row for row in rows if not row.reason]
        if entity.deferred and going:  # they may refer to each other
            self.restore(entity, entity.deferred, _values(going, [None] * len(entity.deferred)))
        self.delete(entity, [row.new_id for row in going])
        x = CROSSWALK.c
        for start in range(0, len(going), AT_ONCE):
            some = [row.old_id for row in going[start : start + AT_ONCE]]
            these = x.entity_id == self.entity_id(entity.name), x.old_id.in_(some)
            self.execute(sa.delete(CROSSWALK).where(*these))
        return len(going), _staying(rows)

    def mark_rows(
        self, entity: LoadedEntity, marker: Column, keys: Sequence[str], *, edited: bool
    ) -> tuple[int, list[StayingRow]]:
        """Sets the deletion marker in the rows of these source keys, and notes that; those that stay as they are."""
        rows = self._leaving(entity, keys, edited=edited)
        going = [row for row in rows if not row.reason]
        now = datetime.now(UTC).strftime(_NOW.get(marker.kind, "%Y-%m-%d %H:%M:%S"))
        if going:
            self.restore(entity, [marker], _values(going, [_SET.get(marker.kind, now)]))
        key = {"job_id": self.job_id, "entity_id": self.entity_id(entity.name)}
        known = set(self.marked_keys(entity.name))
        noted = [{**key, "old_id": row.old_id} for row in going if row.old_id not in known]
        self.execute(sa.insert(MARKED), noted)
        return len(going), _staying(rows)

    def unmark_rows(self, entity: LoadedEntity, marker: Column, keys: Sequence[str]) -> None:
        """Clears the deletion marker in rows that a sync had set it in, and the note of that."""
        known = set(self.marked_keys(entity.name))
        x = CROSSWALK.c
        back = [key for key in keys if key in known]
        for start in range(0, len(back), AT_ONCE):
            some = back[start : start + AT_ONCE]
            asked = sa.select(x.old_id, x.new_id).where(x.entity_id == self.entity_id(entity.name), x.old_id.in_(some))
            rows = [_Leaving(old, new) for old, new in self.read(asked)]
            if rows:
                self.restore(entity, [marker], _values(rows, [_CLEAR.get(marker.kind)]))
            self.execute(sa.delete(MARKED).where(*self._mine(MARKED, entity.name), MARKED.c.old_id.in_(some)))

    def marked_keys(self, entity: str) -> list[str]:
        """The source keys of rows that a sync has set the deletion marker in."""
        asked = sa.select(MARKED.c.old_id).where(*self._mine(MARKED, entity)).order_by(MARKED.c.old_id)
        return [row[0] for row in self.read(asked)]

    def _leaving(self, entity: LoadedEntity, keys: Sequence[str], *, edited: bool) -> list[_Leaving]:
        """The rows, locked, with a reason for those that stay whatever is done."""
        x, t, b = CROSSWALK.alias("x"), table_of(entity.table).alias("t"), HELD_BEFORE.alias("b")
        found = self._found(entity, t)
        written_over = sa.select(b.c.n).where(
            b.c.entity_id == x.c.entity_id, b.c.old_id == x.c.old_id, b.c.job_id == self.job_id, b.c.step == 1
        )
        before = sa.or_(x.c.job_id != self.job_id, x.c.replaced.is_not(None), written_over.exists())
        asked = sa.select(
            x.c.old_id, x.c.new_id, sa.case((before, 1), else_=0), x.c.target_hash, found.hash, x.c.reference_hash,
            found.reference,
        ).select_from(x.outerjoin(t, self._same_row(entity.identity, t, x.c.new_id)))  # fmt: skip
        rows = []
        for start in range(0, len(keys), AT_ONCE):
            some = list(keys[start : start + AT_ONCE])
            these = x.c.entity_id == self.entity_id(entity.name), x.c.old_id.in_(some)
            # the crosswalk's rows are locked as well: of an outer join MySQL locks what it reads
            for old, new, foreign, noted, now, reference, refers in self.read(asked.where(*these).with_for_update()):
                changed = now is not None and (now != noted or refers != reference)
                reason = BEFORE if foreign else EDITED if changed and not edited else ""
                rows.append(_Leaving(old, new, reason))
        return rows

    def _keep_referred(self, entity: LoadedEntity, rows: list[_Leaving]) -> None:
        """Gives a reason to rows that a row which stays refers to; of the same table, one that goes too doesn't count."""
        by_id = {row.new_id: row for row in rows}
        pairs: list[tuple[str, str | None, str]] = []
        x, t = CROSSWALK.alias("x"), table_of(entity.table).alias("t")
        keys = [row.old_id for row in rows]
        for table, key in referrers(self.catalogue(), entity):
            f = table_of(table).alias("f")
            joined = sa.and_(*(f.c[a] == t.c[b] for a, b in zip(key.columns, key.referred_columns, strict=True)))
            own = (table.schema, table.relation) == (entity.table.schema, entity.table.relation)
            who = self._shown_id(entity.identity, f) if own else sa.null()
            asked = sa.select(x.c.new_id, who).select_from(
                x.join(t, self._same_row(entity.identity, t, x.c.new_id)).join(f, joined)
            )
            name = ".".join(filter(None, (table.schema, table.relation)))
            for start in range(0, len(keys), AT_ONCE):
                some = keys[start : start + AT_ONCE]
                these = x.c.entity_id == self.entity_id(entity.name), x.c.old_id.in_(some)
                pairs += [(referred, by, name) for referred, by in self.read(asked.where(*these))]
        more = True
        while more:
            more = False
            for referred, by, name in pairs:
                goes = by is not None and by in by_id and not by_id[by].reason
                if not goes and not by_id[referred].reason:
                    by_id[referred].reason = f"a row of {name} refers to it"
                    more = True


def _values(rows: Sequence[_Leaving], values: Sequence[str | None]) -> pa.Table:
    """new_id of each row, and the same values for all."""
    columns = {"new_id": pa.array([row.new_id for row in rows], pa.string())}
    same = {f"h{i}": pa.array([value] * len(rows), pa.string()) for i, value in enumerate(values)}
    return pa.table(columns | same)


def _staying(rows: Sequence[_Leaving]) -> list[StayingRow]:
    return sorted(
        (StayingRow(row.old_id, row.new_id, row.reason, row.reason == EDITED) for row in rows if row.reason),
        key=lambda row: row.old_id,
    )
