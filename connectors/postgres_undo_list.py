"""A batch's rows taken back in PostgreSQL, with their crosswalk: deleted, or given back what they held.

The transaction is the caller's, and the rows are locked. Rows that turn out to have changed, that something refers to
by now, or that the target refuses to give up stay, with a reason in the list.
"""

from __future__ import annotations

from collections.abc import Callable

from psycopg import sql

from connectors.postgres_rows import found_row, held_value, name_of, same_row
from connectors.postgres_undo_rows import ROWS, PostgresUndoRows
from connectors.protocols import RowsRefusedError
from connectors.records import LoadedEntity

_WRITTEN = ("delete", "restore", "return")
_REFERRED = (*_WRITTEN, "refer")

_RESTORE = """
UPDATE {table} t SET {pairs} FROM {rows} u WHERE {batch} AND u.n BETWEEN {low} AND {high} AND u.act = ANY({acts})
   AND (u.held IS NOT NULL OR u.act = 'delete') AND {same} {differ}
"""
_DELETE = "DELETE FROM {table} t USING {rows} u WHERE {batch} AND u.n BETWEEN {low} AND {high} AND u.act = 'delete' AND {same}"
_STILL_THERE = """
UPDATE {rows} u SET reason = 'the target did not let it go' FROM {table} t WHERE {batch} AND u.act = 'delete' AND {same}
"""
_FORGET = """
DELETE FROM {schema}.crosswalk x USING {rows} u WHERE {batch} AND u.act IN ('delete', 'restore', 'unmerge')
   AND (x.entity_id, x.old_id, x.job_id) = (u.entity_id, u.old_id, {job})
"""
_GIVE_BACK = """
UPDATE {schema}.crosswalk x SET job_id = b.owner_job, batch = b.owner_batch, source_hash = b.source_hash,
       target_hash = b.target_hash, reference_hash = b.reference_hash
  FROM {rows} u JOIN {schema}.held_before b ON (b.entity_id, b.old_id, b.job_id, b.step) = (u.entity_id, u.old_id, {job}, 1)
 WHERE {batch} AND u.act = 'return' AND (x.entity_id, x.old_id, x.job_id) = (u.entity_id, u.old_id, {job})
"""
_GIVE_REFERENCES_BACK = """
UPDATE {schema}.crosswalk x SET reference_hash = b.reference_hash
  FROM {rows} u JOIN {schema}.held_before b ON (b.entity_id, b.old_id, b.job_id, b.step) = (u.entity_id, u.old_id, {job}, 2)
 WHERE {batch} AND u.act = 'refer' AND (x.entity_id, x.old_id) = (u.entity_id, u.old_id)
"""
_NOTE_REFERENCES = """
UPDATE {schema}.crosswalk x SET reference_hash = ({reference})::uuid FROM {rows} u JOIN {table} t ON {same}
 WHERE {batch} AND u.act <> 'refer' AND (x.entity_id, x.old_id) = (u.entity_id, u.old_id)
   AND x.reference_hash IS DISTINCT FROM ({reference})::uuid
"""
_NOT_BEFORE = """
DELETE FROM {schema}.held_before b USING {rows} u WHERE {batch} AND u.act = {act}
   AND (b.entity_id, b.old_id, b.job_id, b.step) = (u.entity_id, u.old_id, {job}, {step})
"""
_DONE = "DELETE FROM {rows} u WHERE {batch} AND u.act = ANY({acts})"


class PostgresUndoList(PostgresUndoRows):
    """The rows of one job, or of one batch of it; implements `connectors.undo_list.UndoList`."""

    def take_back_rows(self, entity: str, batch: int) -> tuple[int, int]:
        """Takes back the rows of a locked batch that can go: how many were deleted and restored."""
        return _Batch(self, self.loaded(entity), batch).rows()

    def take_back_references(self, entity: str, batch: int) -> tuple[int, int]:
        """The same of what the batch's second pass filled."""
        return _Batch(self, self.loaded(entity), batch).references()


class _Batch:
    """The statements of one batch; each takes the rows of the list that have no reason to stay."""

    def __init__(self, rows: PostgresUndoRows, entity: LoadedEntity, batch: int) -> None:
        self._rows, self._entity, self._number = rows, entity, batch
        self._target = rows.target
        self._names: dict[str, sql.Composable] = {
            "rows": ROWS,
            "schema": sql.Identifier(self._target.schema),
            "table": name_of(entity.table),
            "same": same_row(entity.identity),
            "job": sql.Literal(self._target.job_id),
            "batch": sql.SQL("u.entity_id = {} AND u.batch = {} AND u.reason IS NULL").format(
                sql.Literal(self._target.entity_id(entity.name)), sql.Literal(batch)
            ),
        }

    def rows(self) -> tuple[int, int]:
        """The first step: rows deleted, rows restored."""
        columns = self._entity.restored
        pairs = sql.SQL(", ").join(
            sql.SQL("{} = {}").format(sql.Identifier(c.name), held_value(c, sql.Identifier("u", "held")))
            for c in columns
        )

        def act(low: int, high: int) -> int:
            bounds = {"low": sql.Literal(low), "high": sql.Literal(high)}
            if columns:
                self._run(_RESTORE, pairs=pairs, acts=sql.Literal(["restore", "return"]), differ=sql.SQL(""), **bounds)
            return self._run(_DELETE, **bounds)

        self._rows.recheck(self._entity, self._number, _WRITTEN, going=True)
        self._apply(act, _WRITTEN, going=True)
        self._run(_STILL_THERE)
        self._run(_FORGET)
        self._run(_GIVE_BACK)
        self._run(_NOT_BEFORE, act=sql.Literal("return"), step=sql.Literal(1))
        self._run(_DONE, acts=sql.Literal(["unmerge"]))
        deleted = self._run(_DONE, acts=sql.Literal(["delete"]))
        return deleted, self._run(_DONE, acts=sql.Literal(["restore", "return"]))

    def references(self) -> tuple[int, int]:
        """The second step: no row deleted; rows of earlier jobs whose references are as they were again. Those of
        the job's own rows are emptied, or restored, and count when the rows themselves go."""
        deferred = self._entity.deferred
        values = [held_value(c, sql.Identifier("u", "held")) for c in deferred]
        names = [sql.Identifier(c.name) for c in deferred]
        pairs = sql.SQL(", ").join(
            sql.SQL("{} = {}").format(name, value) for name, value in zip(names, values, strict=True)
        )
        differ = sql.SQL("AND ({}) IS DISTINCT FROM ({})").format(
            sql.SQL(", ").join(sql.SQL("t.{}").format(name) for name in names), sql.SQL(", ").join(values)
        )

        def act(low: int, high: int) -> int:
            acts = sql.Literal(list(_REFERRED))
            return self._run(
                _RESTORE, pairs=pairs, acts=acts, differ=differ, low=sql.Literal(low), high=sql.Literal(high)
            )

        self._rows.recheck(self._entity, self._number, _REFERRED, going=False)
        if deferred:
            self._apply(act, _REFERRED, going=False)
        self._run(_NOTE_REFERENCES, reference=found_row(self._entity).reference)
        self._run(_GIVE_REFERENCES_BACK)
        self._run(_NOT_BEFORE, act=sql.Literal("refer"), step=sql.Literal(2))
        return 0, self._run(_DONE, acts=sql.Literal(["refer"]))

    def _apply(self, act: Callable[[int, int], int], acts: tuple[str, ...], *, going: bool) -> None:
        """Acts on all rows at once; where the target refuses some, finds those, lets them stay, and begins again:
        what they refer to has to stay as well."""
        low, high = self._rows.numbers(self._entity, self._number)
        while True:
            refused: dict[int, str] = {}
            self._target.execute(sql.SQL("SAVEPOINT packhorse_undo"))
            self._refusing(act, low, high, refused)
            if not refused:
                self._target.execute(sql.SQL("RELEASE SAVEPOINT packhorse_undo"))
                return
            self._target.execute(sql.SQL("ROLLBACK TO SAVEPOINT packhorse_undo"))
            self._rows.keep(refused)
            self._rows.recheck(self._entity, self._number, acts, going=going)

    def _refusing(self, act: Callable[[int, int], int], low: int, high: int, refused: dict[int, str]) -> None:
        """Acts on the rows from `low` to `high`, halving them where the target refuses one; what it says of each
        goes to `refused`."""
        pending = [(low, high)]
        while pending:
            first, last = pending.pop()
            try:
                with self._target.savepoint():
                    act(first, last)
            except RowsRefusedError as error:
                if first == last:
                    refused[first] = f"the target refuses: {error.code} {error.constraint}".rstrip()
                    continue
                middle = (first + last) // 2
                pending += [(middle + 1, last), (first, middle)]

    def _run(self, template: str, **names: sql.Composable) -> int:
        return self._target.execute(sql.SQL(template).format(**self._names, **names))
