"""What a sync keeps in a target reached through SQLAlchemy: rows of the stage that later ones took the place of, and
rows that were edited in the target and stay.

The job and its entities are known. The transaction is the caller's, as for all our records.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

import pyarrow as pa
import sqlalchemy as sa

from connectors.records import KeptEdit, LoadedEntity, SyncCounts
from connectors.sql_cleanup import SqlCleanup
from connectors.sql_records import AT_ONCE
from connectors.sql_rows import table_of
from connectors.sql_schema import CROSSWALK, KEPT, QUARANTINE, RETRIED, SUPERSEDED, SYNCED

_S = SUPERSEDED.c


class SqlSynced(SqlCleanup):
    """What later generations of a job's stage did, through one session."""

    def superseded_rows(self, entity: str) -> dict[int, int]:
        """The entity's rows of the stage that are read no longer: number to batch."""
        rows = self.read(sa.select(_S.row, _S.of_batch).where(*self._mine(SUPERSEDED, entity)))
        return {row[0]: row[1] for row in rows}

    def freed_rows(self, entity: str) -> list[int]:
        """The numbers of rows that were in quarantine until later ones took their place."""
        mine = self._mine(SUPERSEDED, entity)
        return [row[0] for row in self.read(sa.select(_S.row).where(*mine, _S.outcome == "quarantined"))]

    def superseded_counts(self, entity: str, batch: int | None = None) -> dict[int, dict[str, int]]:
        """How many rows of each batch are read no longer, by outcome; those alone that `batch` took the place of, where
        given."""
        asked = sa.select(_S.of_batch, _S.outcome, sa.func.count()).where(*self._mine(SUPERSEDED, entity))
        if batch is not None:
            asked = asked.where(_S.batch == batch)
        found: dict[int, dict[str, int]] = {}
        for of_batch, outcome, count in self.read(asked.group_by(_S.of_batch, _S.outcome)):
            found.setdefault(of_batch, {})[outcome] = int(count)
        return found

    def supersede(self, entity: str, batch: int, over: pa.Table) -> None:
        """Notes that these rows (as OVER) are read no longer, and takes them out of the quarantine. The table's key
        lets each be superseded once."""
        key = {"job_id": self.job_id, "entity_id": self.entity_id(entity), "batch": batch}
        listed = over.to_pylist()
        for start in range(0, len(listed), AT_ONCE):
            some = listed[start : start + AT_ONCE]
            numbers = [int(each["n"]) for each in some]
            held, retried = QUARANTINE.c, RETRIED.c
            open_ = {row[0] for row in self.read(
                sa.select(held.row).where(*self._mine(QUARANTINE, entity), held.row.in_(numbers))
            )}  # fmt: skip
            left = {row: bool(excluded) for row, excluded in self.read(
                sa.select(retried.row, retried.excluded).where(*self._mine(RETRIED, entity), retried.row.in_(numbers))
            )}  # fmt: skip
            rows = []
            for each, number in zip(some, numbers, strict=True):
                excluded = left.get(number, str(each["excluded"]).lower() in ("t", "true", "1"))
                outcome = "quarantined" if number in open_ else "excluded" if excluded else "loaded"
                rows.append({**key, "of_batch": int(each["of_batch"]), "row": number, "outcome": outcome})
            self.execute(sa.insert(SUPERSEDED), rows)
            self.execute(sa.delete(QUARANTINE).where(*self._mine(QUARANTINE, entity), held.row.in_(numbers)))

    def rehash(self, entity: LoadedEntity, keys: Sequence[str]) -> dict[str, str]:
        """Takes what the rows of these source keys hold now for what was written; their new checksums, by source key. Rows
        that aren't there are nothing here."""
        x, t = CROSSWALK.c, table_of(entity.table).alias("t")
        found = self._found(entity, t)
        asked = sa.select(x.old_id, found.hash, found.reference)
        asked = asked.select_from(CROSSWALK.join(t, self._same_row(entity.identity, t, x.new_id)))
        mine = x.entity_id == self.entity_id(entity.name)
        statement = sa.update(CROSSWALK).where(mine, x.old_id == sa.bindparam("k"))
        statement = statement.values(target_hash=sa.bindparam("h"), reference_hash=sa.bindparam("r"))
        hashes: dict[str, str] = {}
        for start in range(0, len(keys), AT_ONCE):
            rows = self.read(asked.where(mine, x.old_id.in_(list(keys[start : start + AT_ONCE]))))
            self.execute(statement, [{"k": old, "h": hash_, "r": reference} for old, hash_, reference in rows])
            hashes |= {_plain(old): hash_ for old, hash_, _ in rows}
        return hashes

    def note_kept(self, entity: LoadedEntity, batch: int, looked_at: Sequence[str], kept: Sequence[KeptEdit]) -> None:
        """Notes which of the rows `looked_at` (source keys) stay as they were edited; the others are noted no longer."""
        k = KEPT.c
        for start in range(0, len(looked_at), AT_ONCE):
            some = list(looked_at[start : start + AT_ONCE])
            self.execute(sa.delete(KEPT).where(*self._mine(KEPT, entity.name), k.old_id.in_(some)))
        rows = [
            {
                "job_id": self.job_id, "entity_id": self.entity_id(entity.name), "batch": batch, "old_id": each.old_id,
                "new_id": each.new_id, "fields": each.fields, "asked": int(each.asked),
            }
            for each in kept
        ]  # fmt: skip
        self.execute(sa.insert(KEPT), rows)
        if rows:
            t = table_of(entity.table).alias("t")
            found = sa.select(k.old_id, self._found(entity, t).hash)
            found = found.select_from(KEPT.join(t, self._same_row(entity.identity, t, k.new_id)))
            hashes = self.read(found.where(*self._mine(KEPT, entity.name), k.batch == batch))
            statement = sa.update(KEPT).where(*self._mine(KEPT, entity.name), k.old_id == sa.bindparam("k"))
            self.execute(
                statement.values(edited_hash=sa.bindparam("v")), [{"k": old, "v": hash_} for old, hash_ in hashes]
            )

    def edited_references(self, entity: LoadedEntity, keys: Sequence[str]) -> list[str]:
        """Locks the rows of these source keys, and gives those whose deferred references are not what was filled."""
        x, t = CROSSWALK.c, table_of(entity.table).alias("t")
        asked = sa.select(x.old_id, x.reference_hash, self._found(entity, t).reference)
        asked = asked.select_from(CROSSWALK.join(t, self._same_row(entity.identity, t, x.new_id)))
        found: list[str] = []
        for start in range(0, len(keys), AT_ONCE):
            some = list(keys[start : start + AT_ONCE])
            these = asked.where(x.entity_id == self.entity_id(entity.name), x.old_id.in_(some))
            rows = self.read(these.with_for_update(of=t))
            found += [_plain(old) for old, noted, now in rows if _hash(noted) != _hash(now)]
        return found

    def kept_edits(self, entity: str) -> list[KeptEdit]:
        """The entity's rows that stay as they were edited, by source key."""
        k = KEPT.c
        asked = sa.select(k.old_id, k.new_id, k.fields, k.asked, sa.func.coalesce(k.edited_hash, ""))
        rows = self.read(asked.where(*self._mine(KEPT, entity)).order_by(k.old_id))
        return [KeptEdit(old, new, fields, bool(asks), _plain(hash_)) for old, new, fields, asks, hash_ in rows]

    def note_sync(self, entity: str, batch: int, counts: SyncCounts) -> None:
        """Writes a batch's counts that the ledger has no column for."""
        key = {"job_id": self.job_id, "entity_id": self.entity_id(entity), "batch": batch}
        self.execute(sa.insert(SYNCED).values(**key, **asdict(counts)))

    def sync_counts(self, entity: str, batch: int) -> SyncCounts:
        """What `note_sync` wrote; zeros where it wrote nothing."""
        s = SYNCED.c
        asked = sa.select(s.kept, s.asked, s.deleted, s.marked, s.stayed)
        rows = self.read(asked.where(*self._mine(SYNCED, entity), s.batch == batch))
        return SyncCounts(*rows[0]) if rows else SyncCounts()


def _hash(text: str | bytes | None) -> str:
    return "" if text is None else _plain(text).replace("-", "")


def _plain(text: str | bytes) -> str:
    return text.decode() if isinstance(text, bytes) else text
