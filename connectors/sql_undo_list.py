"""Which rows of a job can be taken back in a target reached through SQLAlchemy, and what keeps the others.

The list stands in a DuckDB of our own, filled from what the target has: no statement of the target's has to join it,
which not each of them could. It says what to do; what is done, and whether a row may still go, is looked up again in
the batch's own transaction with its rows locked.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import sqlalchemy as sa

from connectors.protocols import Catalogue, ForeignKey, RowsRefusedError, Table
from connectors.records import KeptRow, LoadedEntity, SlowKey
from connectors.sql_schema import CROSSWALK, HELD_BEFORE
from connectors.sql_undo_found import Written, referrers

if TYPE_CHECKING:
    from connectors.sql_target import SqlTarget

CHANGED = "changed in the target since"
GONE = "gone from the target"
_AT_ONCE = 500
_CREATE = """
CREATE OR REPLACE SEQUENCE numbers;
CREATE OR REPLACE TABLE undo (n BIGINT, entity VARCHAR, batch INTEGER, old_id VARCHAR, new_id VARCHAR, act VARCHAR,
    held VARCHAR, reason VARCHAR, round INTEGER DEFAULT 0);
CREATE OR REPLACE TABLE pairs (key INTEGER, entity VARCHAR, referred VARCHAR, referring VARCHAR, points VARCHAR, pointed VARCHAR)
"""
_OWN = f"""
INSERT INTO undo SELECT nextval('numbers'), $entity, CAST(batch AS INTEGER), old_id, new_id,
    CASE WHEN merged = 't' THEN 'unmerge' WHEN returned = '1' THEN 'return' WHEN held IS NOT NULL THEN 'restore' ELSE 'delete' END, held,
    coalesce('the job ' || later || ' wrote it later', CASE
      WHEN merged = 't' OR returned = '1' AND held IS NULL THEN NULL
      WHEN found_hash IS NULL THEN CASE WHEN returned = '1' OR held IS NOT NULL THEN '{GONE}' END
      WHEN found_hash <> target_hash OR found_reference IS DISTINCT FROM reference_hash THEN '{CHANGED}' END), 0
  FROM incoming
"""
_REFERRING = f"""
INSERT INTO undo SELECT nextval('numbers'), $entity, CAST(batch AS INTEGER), old_id, new_id, 'refer', held,
    coalesce('the job ' || later || ' wrote it later', CASE WHEN found_hash IS NULL THEN '{GONE}'
      WHEN found_reference IS DISTINCT FROM reference_hash THEN '{CHANGED}' END), 0
  FROM incoming
"""
_TAKEN_OVER = """
INSERT INTO undo SELECT nextval('numbers'), $entity, CAST(batch AS INTEGER), old_id, new_id, 'later', NULL,
    'the job ' || later || ' wrote it later', 0 FROM incoming
"""
_SHARED = """
UPDATE undo u SET reason = 'the job ' || i.job || ' holds it too' FROM incoming i
 WHERE u.entity = $entity AND u.reason IS NULL AND u.new_id = i.new_id AND u.act <> 'unmerge'
   AND (u.act = 'delete' OR i.later = '1')
"""
_MERGED_INTO = """
UPDATE undo u SET reason = 'other rows were merged into it' FROM incoming i
 WHERE u.entity = $entity AND u.reason IS NULL AND u.act = 'delete' AND u.new_id = i.new_id
   AND NOT EXISTS (SELECT 1 FROM undo g WHERE g.entity = $entity AND g.act = 'unmerge' AND g.old_id = i.old_id)
"""
_CHANGED_MEANWHILE = f"""
UPDATE undo u SET reason = '{CHANGED}' FROM incoming i
 WHERE u.entity = $entity AND u.old_id = i.old_id AND u.reason IS NULL AND list_contains($acts, u.act)
   AND NOT (u.act = 'return' AND u.held IS NULL) AND NOT (i.found_hash IS NULL AND u.act = 'delete')
   AND (i.found_hash IS DISTINCT FROM i.target_hash AND u.act <> 'refer'
        OR i.found_reference IS DISTINCT FROM i.reference_hash)
"""


class SqlUndoList:
    """The rows of one job, or of one batch of it; implements `connectors.undo_list.UndoList`."""

    slow: tuple[SlowKey, ...] = ()

    def __init__(
        self, target: SqlTarget, entities: Sequence[LoadedEntity], only: tuple[str, int] | None, catalogue: Catalogue
    ) -> None:
        """The job must be known to the target, and its entities. `only`: (entity, batch)."""
        self._target, self._only = target, only
        self._entities = {e.name: e for e in entities if target.knows_entity(e.name)}
        self._keys = [(e, *found) for e in self._entities.values() for found in referrers(catalogue, e)]
        self._written = Written(target)
        self._duck = duckdb.connect()

    # -- the list ---------------------------------------------------------------------------------

    def find(self) -> None:
        """Lists what the job wrote, with a reason for each row that has to stay."""
        for statement in _CREATE.split(";"):
            self._duck.execute(statement)
        for entity in self._entities.values():
            if self._only is not None and self._only[0] != entity.name:
                continue
            batch = self._only[1] if self._only else None
            self._take_in(_OWN, entity, self._written.own(entity, batch))
            self._take_in(_REFERRING, entity, self._written.referring(entity, batch))
            self._take_in(_TAKEN_OVER, entity, self._written.taken_over(entity))
            if batch is not None:
                self._duck.execute("DELETE FROM undo WHERE batch <> ?", [batch])
        for entity in self._entities.values():
            self._take_in(_MERGED_INTO, entity, self._written.merged_into(entity))
            self._take_in(_SHARED, entity, self._written.shared(entity))
        for number, (entity, table, key) in enumerate(self._keys):
            self._take_pairs(number, entity, table, key, None)
        if sum(self._keep_referred(number, None) for number in range(len(self._keys))):
            at = 1
            while sum(self._spread(number, at) for number in range(len(self._keys))):
                at += 1

    def _take_in(self, statement: str, entity: LoadedEntity, batches: Iterable[pa.RecordBatch], **more: Any) -> None:
        for batch in batches:
            self._duck.register("incoming", pa.Table.from_batches([batch]))
            self._duck.execute(statement, {"entity": entity.name, **more})
            self._duck.unregister("incoming")

    def going(self) -> dict[tuple[str, int], int]:
        """How many rows can be taken back, by entity and batch; batches without any are left out."""
        rows = self._asked("SELECT entity, batch, count(*) FROM undo WHERE reason IS NULL GROUP BY 1, 2")
        return {(entity, batch): count for entity, batch, count in rows}

    def counts(self) -> list[tuple[str, str, str | None, int]]:
        """Rows by entity, act and reason (None: can be taken back)."""
        return self._asked("SELECT entity, act, reason, count(*) FROM undo GROUP BY 1, 2, 3 ORDER BY 1, 2, 4 DESC, 3")

    def kept(self, most: int) -> list[KeptRow]:
        """The first `most` rows that stay."""
        rows = self._asked(
            f"SELECT entity, old_id, new_id, reason FROM undo WHERE reason IS NOT NULL ORDER BY n LIMIT {most}"
        )
        return [KeptRow(entity, tuple(old.split("\x1f")), new, reason) for entity, old, new, reason in rows]

    def staying(self, entity: str, batch: int, step: int) -> int:
        """How many rows of a batch stay: of the second step, those whose references alone were the job's."""
        acts = "act = 'refer'" if step == 2 else "act <> 'refer'"
        rows = self._asked(
            f"SELECT count(*) FROM undo WHERE entity = ? AND batch = ? AND reason IS NOT NULL AND {acts}", entity, batch
        )
        return int(rows[0][0])

    # -- foreign keys -----------------------------------------------------------------------------

    def _take_pairs(self, number: int, entity: LoadedEntity, table: Table, key: ForeignKey, batch: int | None) -> None:
        statement = "INSERT INTO pairs SELECT $number, $entity, referred, referring, key, points FROM incoming"
        pairs = self._written.pairs(entity, key, table, self._of_table(table), batch)
        self._take_in(statement, entity, pairs, number=number)

    def _of_table(self, table: Table) -> list[LoadedEntity]:
        """The entities that were loaded into a table."""
        place = (table.schema, table.relation)
        return [e for e in self._entities.values() if (e.table.schema, e.table.relation) == place]

    def _keep_referred(self, number: int, batch: int | None) -> int:
        """Keeps the rows that something refers to which doesn't go itself; within a batch, go with it."""
        entity, table, key = self._keys[number]
        stays = ["true"]
        for other in self._of_table(table):
            if batch is None or other.name == entity.name:
                within = "" if batch is None else f"AND g.batch = {batch}"
                stays.append(
                    f"NOT EXISTS (SELECT 1 FROM undo g WHERE g.entity = {_text(other.name)} AND g.reason IS NULL {within} "
                    f"AND g.new_id = p.referring AND (g.act = 'delete' OR {_lets_go(other, key)}))"
                )
        return self._reason(number, 1, " AND ".join(stays), "" if batch is None else f"AND u.batch = {batch}")

    def _spread(self, number: int, at: int) -> int:
        """A row that stays keeps the rows that it refers to."""
        names = ", ".join(_text(other.name) for other in self._of_table(self._keys[number][1]))
        if not names:
            return 0
        stays = (
            f"EXISTS (SELECT 1 FROM undo g WHERE g.entity IN ({names}) AND g.round = {at} AND g.new_id = p.referring)"
        )
        return self._reason(number, at + 1, stays, "")

    def _reason(self, number: int, round_: int, stays: str, within: str) -> int:
        entity, table, key = self._keys[number]
        name = ".".join(filter(None, (table.schema, table.relation)))
        return self._changed(
            f"UPDATE undo u SET reason = {_text(f'a row of {name} refers to it')}, round = {round_} FROM pairs p "
            f"WHERE p.key = {number} AND u.entity = {_text(entity.name)} AND p.referred = u.new_id AND u.reason IS NULL "
            f"AND u.act <> 'refer' AND (u.act = 'delete' OR {_changes(entity, key)}) {within} AND {stays}"
        )

    # -- a batch ----------------------------------------------------------------------------------

    def lock(self, entity: str, batch: int) -> None:
        """Locks a batch's rows until the transaction ends: nobody changes them or refers to them anew."""
        self._written.lock(self._entities[entity], batch)

    def take_back_rows(self, entity: str, batch: int) -> tuple[int, int]:
        """Takes back the rows of a locked batch that can go: how many were deleted and restored."""
        found = self._entities[entity]
        self._recheck(found, batch, ("delete", "restore", "return"))
        self._recheck_referrers(found, batch)
        self._apply(found, batch, self._take_rows)
        acts = self._by_act(entity, batch)
        there = {
            old for each in self._written.own(found, batch) for old, found_hash in _columns(each, "old_id", "found_hash")
            if found_hash is not None
        }  # fmt: skip
        held_back = [old for old in acts.get("delete", []) if old in there]
        self._keep(entity, batch, dict.fromkeys(held_back, "the target did not let it go"))
        acts = self._by_act(entity, batch)
        self._forget(found, [old for act in ("delete", "restore", "unmerge") for old in acts.get(act, [])])
        self._give_back(found, acts.get("return", []), 1)
        self._done(entity, batch, "unmerge")
        return self._done(entity, batch, "delete"), self._done(entity, batch, "restore", "return")

    def take_back_references(self, entity: str, batch: int) -> tuple[int, int]:
        """The same of what the batch's second pass filled."""
        found = self._entities[entity]
        self._recheck(found, batch, ("delete", "restore", "return", "refer"))
        if found.deferred:
            self._apply(found, batch, self._take_references)
        self._note_references(found, batch)
        self._give_back(found, self._by_act(entity, batch).get("refer", []), 2)
        return 0, self._done(entity, batch, "refer")

    def _recheck(self, entity: LoadedEntity, batch: int, acts: Sequence[str]) -> None:
        """Gives a reason to rows of a locked batch that aren't what the job left any more."""
        self._take_in(_CHANGED_MEANWHILE, entity, self._written.own(entity, batch), acts=list(acts))
        if "refer" in acts:
            self._take_in(_CHANGED_MEANWHILE, entity, self._written.referring(entity, batch), acts=["refer"])

    def _recheck_referrers(self, entity: LoadedEntity, batch: int) -> None:
        """Keeps the rows of a locked batch that a row outside of it refers to by now."""
        mine = [number for number, (of, _, _) in enumerate(self._keys) if of.name == entity.name]
        for number in mine:
            self._duck.execute("DELETE FROM pairs WHERE key = ?", [number])
            self._take_pairs(number, *self._keys[number], batch)
        while sum(self._keep_referred(number, batch) for number in mine):
            pass

    def _apply(
        self, entity: LoadedEntity, batch: int, act: Callable[[LoadedEntity, list[tuple[Any, ...]]], None]
    ) -> None:
        """Acts on all rows at once; where the target refuses some, finds those, lets them stay, and begins again:
        what they refer to has to stay as well."""
        while True:
            rows = self._asked(
                "SELECT old_id, new_id, act, held FROM undo WHERE entity = ? AND batch = ? AND reason IS NULL "
                "AND act NOT IN ('later', 'unmerge') ORDER BY n DESC", entity.name, batch,
            )  # fmt: skip
            refused: dict[str, str] = {}
            self._target.execute(sa.text("SAVEPOINT packhorse_undo"))
            pending = [rows] if rows else []
            while pending:
                current = pending.pop()
                try:
                    with self._target.savepoint():
                        act(entity, current)
                except RowsRefusedError as error:
                    if len(current) == 1:
                        refused[current[0][0]] = f"the target refuses: {error.code} {error.constraint}".rstrip()
                        continue
                    half = len(current) // 2
                    pending += [current[half:], current[:half]]
            if not refused:
                self._target.execute(sa.text("RELEASE SAVEPOINT packhorse_undo"))
                return
            self._target.execute(sa.text("ROLLBACK TO SAVEPOINT packhorse_undo"))
            self._keep(entity.name, batch, refused)
            self._recheck_referrers(entity, batch)

    def _take_rows(self, entity: LoadedEntity, rows: list[tuple[Any, ...]]) -> None:
        restored = [(new_id, json.loads(held)) for _, new_id, act, held in rows if held is not None and act != "refer"]
        if restored and entity.restored:
            names = [column.name for column in entity.restored]
            self._target.restore(entity, entity.restored, _table(restored, names))
        if gone := [new_id for _, new_id, act, _ in rows if act == "delete"]:
            self._target.delete(entity, gone)

    def _take_references(self, entity: LoadedEntity, rows: list[tuple[Any, ...]]) -> None:
        names = [column.name for column in entity.deferred]
        back = [
            (new, json.loads(held) if held else {}) for _, new, act, held in rows if held is not None or act == "delete"
        ]
        if back:
            self._target.restore(entity, entity.deferred, _table(back, names))

    def _note_references(self, entity: LoadedEntity, batch: int) -> None:
        """The crosswalk tells what references the job's own rows hold, now that those of the second pass are gone."""
        going = {
            old
            for act, olds in self._by_act(entity.name, batch).items()
            if act not in ("refer", "unmerge")
            for old in olds
        }
        changed = [
            (old, now)
            for each in self._written.own(entity, batch)
            for old, now, noted in _columns(each, "old_id", "found_reference", "reference_hash")
            if old in going and now != noted
        ]
        names = ("old_id", "reference_hash")
        columns = {name: pa.array([row[i] for row in changed], pa.string()) for i, name in enumerate(names)}
        self._target.note_references(entity.name, pa.table(columns))

    # -- our own records --------------------------------------------------------------------------

    def _forget(self, entity: LoadedEntity, olds: Sequence[str]) -> None:
        x = CROSSWALK.c
        mine = x.entity_id == self._target.entity_id(entity.name), x.job_id == self._target.job_id
        for start in range(0, len(olds), _AT_ONCE):
            self._target.execute(sa.delete(CROSSWALK).where(*mine, x.old_id.in_(olds[start : start + _AT_ONCE])))

    def _give_back(self, entity: LoadedEntity, olds: Sequence[str], step: int) -> None:
        """Makes crosswalk rows what they were before the job's first step, or their references before its second."""
        b, x = HELD_BEFORE.c, CROSSWALK.c
        names = ["job_id", "batch", "source_hash", "target_hash", "reference_hash"] if step == 1 else ["reference_hash"]
        held = {"job_id": b.owner_job, "batch": b.owner_batch}
        mine = (
            b.entity_id == self._target.entity_id(entity.name), b.job_id == self._target.job_id, b.step == step,
        )  # fmt: skip
        update = sa.update(CROSSWALK).where(
            x.entity_id == self._target.entity_id(entity.name), x.old_id == sa.bindparam("k")
        )
        update = update.values(**{name: sa.bindparam(f"v_{name}") for name in names})
        for start in range(0, len(olds), _AT_ONCE):
            some = [*mine, b.old_id.in_(olds[start : start + _AT_ONCE])]
            rows = self._target.read(sa.select(b.old_id, *(held.get(name, b[name]) for name in names)).where(*some))
            keys = ["k", *(f"v_{name}" for name in names)]
            self._target.execute(update, [dict(zip(keys, row, strict=True)) for row in rows])
            self._target.execute(sa.delete(HELD_BEFORE).where(*some))

    def _by_act(self, entity: str, batch: int) -> dict[str, list[str]]:
        """The source keys of the batch's rows that go, by act."""
        found: dict[str, list[str]] = {}
        for act, old in self._asked(
            "SELECT act, old_id FROM undo WHERE entity = ? AND batch = ? AND reason IS NULL ORDER BY n", entity, batch
        ):
            found.setdefault(act, []).append(old)
        return found

    def _keep(self, entity: str, batch: int, reasons: dict[str, str]) -> None:
        for old, reason in reasons.items():
            self._duck.execute(
                "UPDATE undo SET reason = ? WHERE entity = ? AND batch = ? AND old_id = ?", [reason, entity, batch, old]
            )

    def _done(self, entity: str, batch: int, *acts: str) -> int:
        listed = ", ".join(map(_text, acts))
        return self._changed(
            f"DELETE FROM undo WHERE entity = {_text(entity)} AND batch = {batch} AND reason IS NULL AND act IN ({listed})"
        )

    def _asked(self, statement: str, *parameters: object) -> list[Any]:
        return self._duck.execute(statement, list(parameters)).fetchall()

    def _changed(self, statement: str) -> int:
        row = self._duck.execute(statement).fetchone()
        return int(row[0]) if row else 0


def _columns(batch: pa.RecordBatch, *names: str) -> Iterable[tuple[Any, ...]]:
    return zip(*(batch.column(name).to_pylist() for name in names), strict=True)


def _table(rows: Sequence[tuple[str, dict[str, str | None]]], names: Sequence[str]) -> pa.Table:
    """new_id, and what each row held in the columns of these names."""
    columns = {"new_id": pa.array([new_id for new_id, _ in rows], pa.string())}
    return pa.table(
        columns | {f"h{i}": pa.array([h.get(n) for _, h in rows], pa.string()) for i, n in enumerate(names)}
    )


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def _held(row: str, column: str) -> str:
    """The text that a listed row held in a column; U+001E for NULL."""
    path = _text('$."' + column.replace('"', '\\"') + '"')
    return f"coalesce(json_extract_string({row}.held, {path}), chr(30))"


def _lets_go(other: LoadedEntity, key: ForeignKey) -> str:
    """True where restoring the listed row g makes its table's row refer to something else than now."""
    restored = {column.name for column in other.restored}
    if not set(key.columns) <= restored:
        return "false"
    held = ", ".join(_held("g", column) for column in key.columns)
    return f"(g.held IS NOT NULL AND concat_ws(chr(31), {held}) <> p.points)"


def _changes(entity: LoadedEntity, key: ForeignKey) -> str:
    """True where restoring the listed row u changes what the key refers to in its table's row."""
    restored = {column.name for column in entity.restored}
    if not set(key.referred_columns) & restored:
        return "false"
    held = ", ".join(
        _held("u", column) if column in restored else f"split_part(p.pointed, chr(31), {n})"
        for n, column in enumerate(key.referred_columns, 1)
    )
    return f"(u.held IS NOT NULL AND concat_ws(chr(31), {held}) <> p.pointed)"
