"""What a job wrote in a target reached through SQLAlchemy, as that target has it now: SELECTs, each a stream of text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
import sqlalchemy as sa

from connectors.protocols import Catalogue, ForeignKey, Table
from connectors.records import LoadedEntity
from connectors.sql_records import as_mark
from connectors.sql_rows import NOTHING, Sql, table_of
from connectors.sql_schema import CROSSWALK, ENTITY, HELD_BEFORE, JOB

if TYPE_CHECKING:
    from connectors.sql_target import SqlTarget

WRITTEN = ("batch", "old_id", "new_id", "returned", "held", "later", "found_hash", "target_hash", "found_reference",
           "reference_hash", "merged")  # fmt: skip
PAIRS = ("referred", "referring", "key", "points")
_JOINED = sa.literal("\x1f")


class Written:
    """The rows that the job known to a target wrote, entity by entity; of one batch where a number is given."""

    def __init__(self, target: SqlTarget) -> None:
        self._target = target

    def own(self, entity: LoadedEntity, batch: int | None = None) -> Iterator[pa.RecordBatch]:
        """The rows that are the job's: as WRITTEN. `returned` is 1 where the row was an earlier job's, `held` what it
        held before, `later` the name of a job that wrote it since."""
        x, t, b = CROSSWALK.alias("x"), table_of(entity.table).alias("t"), HELD_BEFORE.alias("b")
        mine = sa.and_(b.c.entity_id == x.c.entity_id, b.c.old_id == x.c.old_id, b.c.job_id == self._job, b.c.step == 1)
        found = self._target._found(entity, t)
        returned = sa.case((b.c.n.is_not(None), 1), else_=0)
        held = sa.case((b.c.n.is_not(None), b.c.held), else_=x.c.replaced)
        asked = (
            sa.select(
                x.c.batch, x.c.old_id, x.c.new_id, returned, held, self._later(x, sa.func.coalesce(b.c.n, 0)), found.hash,
                x.c.target_hash, found.reference, x.c.reference_hash, as_mark(x.c.merged == 1),
            )
            .select_from(x.outerjoin(t, self._target._same_row(entity.identity, t, x.c.new_id)).outerjoin(b, mine))
            .where(x.c.entity_id == self._id(entity), x.c.job_id == self._job)
        )  # fmt: skip
        return self._target.stream(asked if batch is None else asked.where(x.c.batch == batch), WRITTEN)

    def referring(self, entity: LoadedEntity, batch: int | None = None) -> Iterator[pa.RecordBatch]:
        """Rows of other jobs whose references alone the job filled: as WRITTEN."""
        x, t, b = CROSSWALK.alias("x"), table_of(entity.table).alias("t"), HELD_BEFORE.alias("b")
        found = self._target._found(entity, t)
        joined = b.join(x, sa.and_(x.c.entity_id == b.c.entity_id, x.c.old_id == b.c.old_id))
        asked = (
            sa.select(
                b.c.batch, x.c.old_id, x.c.new_id, sa.literal(1), b.c.held, self._later(x, b.c.n), found.hash,
                x.c.target_hash, found.reference, x.c.reference_hash, as_mark(x.c.merged == 1),
            )
            .select_from(joined.outerjoin(t, self._target._same_row(entity.identity, t, x.c.new_id)))
            .where(b.c.job_id == self._job, b.c.entity_id == self._id(entity), b.c.step == 2, x.c.job_id != self._job)
        )  # fmt: skip
        return self._target.stream(asked if batch is None else asked.where(b.c.batch == batch), WRITTEN)

    def taken_over(self, entity: LoadedEntity) -> Iterator[pa.RecordBatch]:
        """Rows that a later job made its own: batch, old_id, new_id, and its name."""
        x, b = CROSSWALK.alias("x"), HELD_BEFORE.alias("b")
        joined = b.join(x, sa.and_(x.c.entity_id == b.c.entity_id, x.c.old_id == b.c.old_id))
        asked = (
            sa.select(b.c.owner_batch, x.c.old_id, x.c.new_id, JOB.c.name)
            .select_from(joined.join(JOB, JOB.c.id == b.c.job_id))
            .where(
                b.c.owner_job == self._job, b.c.entity_id == self._id(entity), b.c.step == 1, b.c.job_id != self._job,
                x.c.job_id != self._job,
            )
        )  # fmt: skip
        return self._target.stream(asked, ("batch", "old_id", "new_id", "later"))

    def shared(self, entity: LoadedEntity) -> Iterator[pa.RecordBatch]:
        """Ids of the entity's rows that another job holds too, by another entity into the same table: new_id, the
        job's name, and 1 where it is a later job."""
        x, y = CROSSWALK.alias("x"), CROSSWALK.alias("y")
        same = sa.and_(y.c.entity_id == ENTITY.c.id, y.c.new_id == x.c.new_id)
        asked = (
            sa.select(x.c.new_id, JOB.c.name, sa.case((y.c.job_id > self._job, 1), else_=0))
            .select_from(x.join(ENTITY, ENTITY.c.id != x.c.entity_id).join(y, same).join(JOB, JOB.c.id == y.c.job_id))
            .where(x.c.entity_id == self._id(entity), ENTITY.c.target_table == entity.to, y.c.job_id != self._job)
        )
        return self._target.stream(asked, ("new_id", "job", "later"))

    def merged_into(self, entity: LoadedEntity) -> Iterator[pa.RecordBatch]:
        """Rows that were merged into the job's own, by whichever job: new_id, old_id."""
        x, y = CROSSWALK.alias("x"), CROSSWALK.alias("y")
        same = sa.and_(y.c.entity_id == x.c.entity_id, y.c.new_id == x.c.new_id, y.c.merged == 1)
        asked = sa.select(x.c.new_id, y.c.old_id).select_from(x.join(y, same))
        return self._target.stream(
            asked.where(x.c.entity_id == self._id(entity), x.c.job_id == self._job, x.c.merged == 0),
            ("new_id", "old_id"),
        )

    def pairs(
        self,
        entity: LoadedEntity,
        key: ForeignKey,
        table: Table,
        others: Sequence[LoadedEntity],
        batch: int | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """Rows of the job that a row of `table` refers to by a foreign key: as PAIRS. `referring` is that row's new_id
        where `others` were loaded into its table; `key` and `points` are the two sides of the key."""
        x, t, f = CROSSWALK.alias("x"), table_of(entity.table).alias("t"), table_of(table).alias("f")
        joined = sa.and_(*(f.c[a] == t.c[b] for a, b in zip(key.columns, key.referred_columns, strict=True)))
        referring = self._target._shown_id(others[0].identity, f) if others else sa.null()
        asked = (
            sa.select(
                x.c.new_id,
                referring,
                self._all(table, key.columns, f),
                self._all(entity.table, key.referred_columns, t),
            )
            .select_from(x.join(t, self._target._same_row(entity.identity, t, x.c.new_id)).join(f, joined))
            .where(x.c.entity_id == self._id(entity), x.c.job_id == self._job)
        )
        return self._target.stream(asked if batch is None else asked.where(x.c.batch == batch), PAIRS)

    def lock(self, entity: LoadedEntity, batch: int) -> None:
        """Locks the rows of a batch that are the job's, and those whose references it filled."""
        x, t, b = CROSSWALK.alias("x"), table_of(entity.table).alias("t"), HELD_BEFORE.alias("b")
        same = self._target._same_row(entity.identity, t, x.c.new_id)
        own = sa.select(t.c[entity.identity[0].name]).select_from(x.join(t, same))
        mine = own.where(x.c.entity_id == self._id(entity), x.c.job_id == self._job, x.c.batch == batch)
        self._target.read(mine.with_for_update(of=t))
        joined = b.join(x, sa.and_(x.c.entity_id == b.c.entity_id, x.c.old_id == b.c.old_id)).join(t, same)
        referring = sa.select(t.c[entity.identity[0].name]).select_from(joined).where(
            b.c.job_id == self._job, b.c.entity_id == self._id(entity), b.c.step == 2, b.c.batch == batch
        )  # fmt: skip
        self._target.read(referring.with_for_update(of=t))

    @property
    def _job(self) -> int:
        return self._target.job_id

    def _id(self, entity: LoadedEntity) -> int:
        return self._target.entity_id(entity.name)

    def _later(self, x: sa.FromClause, after: Sql) -> Sql:
        held = HELD_BEFORE.alias("l")
        these = sa.and_(held.c.entity_id == x.c.entity_id, held.c.old_id == x.c.old_id, held.c.job_id != self._job)
        return (
            sa.select(JOB.c.name)
            .select_from(held.join(JOB, JOB.c.id == held.c.job_id))
            .where(these, held.c.n > after)
            .order_by(held.c.n)
            .limit(1)
            .correlate_except(held, JOB)
            .scalar_subquery()
        )

    def _all(self, table: Table, names: Sequence[str], row: sa.FromClause) -> Sql:
        shown = []
        for name in names:
            column = table.column(name)
            assert column is not None
            shown.append(sa.func.coalesce(self._target._shown(column, row.c[name]), NOTHING))
        joined: Sql = shown[0]
        for each in shown[1:]:
            joined = joined.concat(_JOINED).concat(each)
        return joined


def referrers(catalogue: Catalogue, entity: LoadedEntity) -> list[tuple[Table, ForeignKey]]:
    """The foreign keys that point at the entity's table, its own included, each with its table."""
    name = (entity.table.relation or entity.table.name).casefold()
    return [
        (table, key)
        for table in catalogue.tables.values()
        for key in table.foreign_keys
        if key.referred_table.casefold() == name
    ]
