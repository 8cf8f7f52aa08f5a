"""The customer's tables in a target that is reached through SQLAlchemy: rows in and out within the caller's transaction.

Rows come as canonical text into a temporary table of text, and go on by one INSERT ... SELECT or UPDATE, which says for
each column how its text is stored. Never changes the customer's schema.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa
import sqlalchemy as sa

from connectors.dsn import Dsn
from connectors.measures import Room, Way
from connectors.protocols import Catalogue, Column, Kind, Table, UniqueKey
from connectors.records import FOUND_COLUMNS, EditedRow, Fill, Filled, FittingRow, LoadedEntity
from connectors.sql_records import as_json, as_mark
from connectors.sql_rows import BETWEEN, Sql, table_of
from connectors.sql_schema import CROSSWALK, PREFIX
from connectors.sql_sync import SqlSynced
from connectors.sql_undo_list import SqlUndoList
from workspace.errors import UsageError

SCHEMA = PREFIX.rstrip("_")
_SOURCE_KEY = "_ph_key"
_NOT_DELETED = {Kind.BOOLEAN: "false", Kind.INTEGER: "0"}


class SqlTarget(SqlSynced):
    """A connection to one database; implements `connectors.target.Target` but for what each system says itself."""

    _stamps = False
    """True where a column may have itself set to the present instant by each update of its row."""

    def __init__(self, dsn: Dsn, schema: str = SCHEMA) -> None:
        """UsageError for another name of our schema: there is none, and our tables' names begin with `packhorse_`."""
        if schema != SCHEMA:
            raise UsageError(
                f"our tables in {dsn.system} are called {PREFIX}..., and can't be in a schema {schema[:60]!r}",
                where=dsn.masked, advice="leave the schema's name out",
            )  # fmt: skip
        self.schema = schema
        super().__init__(dsn)

    def catalogue(self) -> Catalogue:
        """What is there, our own tables left out. ConnectError."""
        raise NotImplementedError

    def server(self) -> str:
        """Product and version."""
        raise NotImplementedError

    def is_empty(self, table: Table) -> bool:
        """True where the table holds no row."""
        return not self.read(sa.select(sa.literal(1)).select_from(table_of(table)).limit(1))

    # -- a batch ----------------------------------------------------------------------------------

    def next_ids(self, table: Table, column: Column, count: int) -> list[str]:
        """Takes `count` new ids above the highest, as text, in order: until the transaction ends nobody else can."""
        t = table_of(table)
        last = self.read(sa.select(sa.func.max(t.c[column.name])).with_for_update())[0][0] or 0
        return [str(last + n) for n in range(1, count + 1)]

    def insert(self, table: Table, columns: Sequence[str], rows: pa.Table) -> None:
        """Inserts text columns. RowsRefusedError where a row can't enter; nothing entered then."""
        if rows.num_rows:
            self._insert_staged(table, columns, self.stage(rows, columns))

    def _insert_staged(self, table: Table, columns: Sequence[str], r: sa.TableClause) -> None:
        values = [self._stored(_column(table, name), r.c[name]) for name in columns]
        chosen = sa.select(*values).select_from(r).order_by(r.c["_ph_i"])
        self.execute(sa.insert(table_of(table)).from_select(list(columns), chosen))

    def upsert(
        self,
        table: Table,
        columns: Sequence[str],
        identity: Sequence[str],
        rows: pa.Table,
        revived: Column | None = None,
    ) -> dict[tuple[str, ...], str]:
        """Inserts rows, or updates those whose identity the table holds. What the updated rows held before comes
        back as JSON by identity (as text). `revived` is a deletion marker to clear in them."""
        if not rows.num_rows:
            return {}
        t, r = table_of(table), self.stage(rows, columns)
        same = [t.c[name] == self._sought(_column(table, name), r.c[name]) for name in identity]
        shown = [self._shown(column, t.c[column.name]) for column in table.columns]
        asked = sa.select(r.c["_ph_i"], *(r.c[name] for name in identity), *shown).select_from(
            t.join(r, sa.and_(*same))
        )
        names = [column.name for column in table.columns]
        held: dict[tuple[str, ...], str] = {}
        there: set[int] = set()
        for number, *values in self.read(asked.with_for_update(of=t)):
            there.add(number - 1)
            held[tuple(values[: len(identity)])] = as_json(names, values[len(identity) :])
        if there:
            changes = {name: name for name in columns if name not in identity}
            self._update_staged(t, table, same, changes, r, revived)
        missing = rows.take(pa.array([i for i in range(rows.num_rows) if i not in there], pa.int64()))
        self.insert(table, columns, missing)
        return held

    def _update_staged(
        self,
        t: sa.TableClause,
        table: Table,
        same: Sequence[sa.ColumnElement[bool]],
        changes: dict[str, str],
        r: sa.TableClause,
        revived: Column | None = None,
    ) -> int:
        values = {t.c[name]: self._stored(_column(table, name), r.c[staged]) for name, staged in changes.items()}
        for column in table.columns:  # else the server may set them to the present instant by itself
            if self._stamps and column.kind in (Kind.DATETIME, Kind.INSTANT) and t.c[column.name] not in values:
                values[t.c[column.name]] = t.c[column.name]
        if revived is not None:
            cleared = _NOT_DELETED.get(revived.kind)
            values[t.c[revived.name]] = sa.null() if cleared is None else self._stored(revived, sa.literal(cleared))
        return self.execute(sa.update(t).values(values).where(*same)) if values else 0

    def update(self, table: Table, identity: Sequence[str], columns: Sequence[str], rows: pa.Table) -> int:
        """Updates `columns` of rows found by `identity`, both in `rows`; how many were there. What rows of other jobs
        held before is kept, by the source key that `rows` has in _ph_key."""
        if not rows.num_rows:
            return 0
        known = [_SOURCE_KEY] if _SOURCE_KEY in rows.column_names else []
        r, t = self.stage(rows, [*identity, *columns, *known]), table_of(table)
        same = [t.c[name] == self._sought(_column(table, name), r.c[name]) for name in identity]
        if known and self._others_wrote():
            shown = [self._shown(column, t.c[column.name]) for column in table.columns]
            names = [column.name for column in table.columns]
            asked = sa.select(r.c[_SOURCE_KEY], *shown).select_from(t.join(r, sa.and_(*same)))
            self.keep_before({key: as_json(names, values) for key, *values in self.read(asked.with_for_update(of=t))})
        return self._update_staged(t, table, same, {name: name for name in columns}, r)

    def raise_sequence(self, table: Table, column: Column) -> None:
        """Nothing: what numbers the rows goes by the highest there is."""

    def low_sequence(self, table: Table, column: Column) -> tuple[int, int] | None:
        """None: what numbers the rows goes by the highest there is."""
        return None

    def room(self, tables: Sequence[Table]) -> Room:
        """UsageError: what a rehearsal measures is measured in PostgreSQL alone."""
        raise self._not_rehearsed()

    def way(self) -> Way:
        """UsageError, as `room`."""
        raise self._not_rehearsed()

    def _not_rehearsed(self) -> UsageError:
        return UsageError(
            "a rehearsal needs a PostgreSQL target",
            where=self.dsn,
            advice="try the job on a copy of the target instead",
        )

    # -- what it holds ----------------------------------------------------------------------------

    def rows_held(
        self, entity: LoadedEntity, columns: Sequence[Column], marker: Column | None, *, ours: bool
    ) -> Iterator[pa.RecordBatch]:
        """Not to be had here: a plan that matches rows is refused for such a target."""
        raise NotImplementedError

    def fill(
        self, entity: LoadedEntity, rules: Mapping[str, Fill], rows: pa.Table, by: Sequence[Sequence[str]] = ()
    ) -> Filled:
        """Not to be had here: a plan that matches rows is refused for such a target."""
        raise NotImplementedError

    def keep_others_out(self, table: Table) -> None:
        """Not to be had here: a plan that matches rows is refused for such a target."""
        raise NotImplementedError

    def rows_fitting(
        self, entity: LoadedEntity, rules: Sequence[UniqueKey], rows: pa.Table, marker: Column | None
    ) -> list[FittingRow]:
        """Not to be had here: a plan that matches rows is refused for such a target."""
        raise NotImplementedError

    def values_before(
        self, entity: LoadedEntity, keys: Sequence[str], columns: Sequence[Column]
    ) -> dict[str, list[str | None]]:
        """Not to be had here: a plan that matches rows is refused for such a target."""
        raise NotImplementedError

    def keys_held(
        self, table: Table, key: UniqueKey, marker: Column | None, besides: LoadedEntity | None
    ) -> Iterator[pa.RecordBatch]:
        """What the table holds of a unique key on columns: text columns k0, k1, ..., and `deleted`. Rows in the
        crosswalk of `besides` are left out."""
        t = table_of(table)
        parts = [self._compared(_column(table, name), t.c[name]) for name in key.columns]
        deleted: Sql = sa.literal("false")
        if marker is not None:
            shown = self._shown(marker, t.c[marker.name])
            deleted = sa.case((sa.func.coalesce(shown, "0").in_(("false", "0")), "false"), else_="true")
        asked = sa.select(*parts, deleted).select_from(t)
        if besides is not None:
            known = sa.select(CROSSWALK.c.batch).where(
                CROSSWALK.c.entity_id == self.entity_id(besides.name),
                CROSSWALK.c.new_id == self._as_key(self._shown_id(besides.identity, t)),
            )
            asked = asked.where(~known.exists())
        return self.stream(asked, [*(f"k{i}" for i in range(len(parts))), "deleted"])

    def _compared(self, column: Column, value: Sql) -> Sql:
        shown = self._shown(column, value)
        return shown if column.exact else sa.func.lower(shown)

    def found_rows(self, entity: LoadedEntity) -> Iterator[pa.RecordBatch]:
        """The entity's crosswalk beside the hashes of what the target holds now: FOUND_COLUMNS."""
        t, x = table_of(entity.table).alias("t"), CROSSWALK.alias("x")
        found = self._found(entity, t)
        own, merged = as_mark(x.c.job_id == self.job_id), as_mark(x.c.merged == 1)
        asked = (
            sa.select(
                x.c.old_id,
                x.c.new_id,
                x.c.batch,
                x.c.target_hash,
                x.c.reference_hash,
                found.hash,
                found.reference,
                own,
                merged,
                as_mark(x.c.replaced.is_not(None)),
            )
            .select_from(x.outerjoin(t, self._same_row(entity.identity, t, x.c.new_id)))
            .where(x.c.entity_id == self.entity_id(entity.name))
        )
        return self.stream(asked, FOUND_COLUMNS)

    def beside(
        self,
        table: Table,
        identity: Sequence[Column],
        ids: Sequence[str],
        columns: Sequence[Column],
        given: Sequence[Sequence[str | None]],
    ) -> list[list[tuple[str | None, str | None]]]:
        """A few rows found by their id as the crosswalk has it: for each of `columns`, the text that the given value
        becomes once a column of the same type holds it, and the text of what the target holds."""
        if not ids:
            return []
        values = {f"v{i}": pa.array([row[i] for row in given], pa.string()) for i in range(len(columns))}
        r = self.stage(pa.table({"new_id": pa.array(ids, pa.string()), **values}), ["new_id", *values])
        t, b = table_of(table).alias("t"), self._typed(table, columns, r, list(values))
        joined = r.join(b, b.c["_ph_i"] == r.c["_ph_i"]).outerjoin(t, self._same_staged(identity, t, r))
        both = [self._shown(column, row.c[column.name]) for column in columns for row in (b, t)]
        rows = self.read(sa.select(*both).select_from(joined).order_by(r.c["_ph_i"]))
        return [list(zip(row[::2], row[1::2], strict=True)) for row in rows]

    def _typed(
        self, table: Table, columns: Sequence[Column], r: sa.TableClause, staged: Sequence[str]
    ) -> sa.TableClause:
        """A temporary table with columns of the same types, which holds what was staged for them, by `_ph_i`."""
        t, names = table_of(table), [column.name for column in columns]
        like = sa.select(sa.literal_column("0").label("_ph_i"), *(t.c[name] for name in names)).where(sa.false())
        made = str(like.compile(self._engine, compile_kwargs={"literal_binds": True}))
        self.execute(sa.text(f"DROP {self._temporary} TABLE IF EXISTS packhorse_typed"))
        with self._reached():
            self._connection.exec_driver_sql(f"CREATE TEMPORARY TABLE packhorse_typed AS {made}")
        typed = sa.table("packhorse_typed", sa.column("_ph_i"), *map(sa.column, names))
        stored = [self._stored(column, r.c[name]) for column, name in zip(columns, staged, strict=True)]
        self.execute(sa.insert(typed).from_select(["_ph_i", *names], sa.select(r.c["_ph_i"], *stored)))
        return typed

    def edited_rows(
        self, entity: LoadedEntity, columns: Sequence[str], rows: pa.Table, base: pa.Table
    ) -> list[EditedRow]:
        """Locks the rows that are about to be updated, and gives those that hold something else in `columns` than was
        written. Values are compared as the target shows them, so that no other spelling of one passes for an edit."""
        if not rows.num_rows:
            return []
        (identity,) = entity.identity
        listed = [_column(entity.table, name) for name in columns]
        before = {key: (hash_, shown) for key, hash_, shown in self._as_shown(entity, listed, base, "_ph_target_hash")}
        r = self.stage(rows, [identity.name, *columns, _SOURCE_KEY])
        b, t, x = self._typed(entity.table, listed, r, columns), table_of(entity.table).alias("t"), CROSSWALK.alias("x")
        mine = sa.and_(x.c.entity_id == self.entity_id(entity.name), x.c.old_id == self._as_key(r.c[_SOURCE_KEY]))
        same = t.c[identity.name] == self._sought(identity, r.c[identity.name])
        joined = r.join(b, b.c["_ph_i"] == r.c["_ph_i"]).join(t, same).join(x, mine)
        both = [self._shown(column, row.c[column.name]) for row in (t, b) for column in listed]
        asked = sa.select(r.c[_SOURCE_KEY], x.c.target_hash, self._found(entity, t).hash, *both).select_from(joined)
        found = []
        for key, noted, now, *shown in self.read(asked.with_for_update(of=t)):
            held, coming = shown[: len(columns)], shown[len(columns) :]
            hash_, written = before.get(key, ("", ()))
            known = hash_.replace("-", "") == noted
            differs = _differing(columns, held, coming)
            edited = _differing(columns, held, written) if known else differs
            if edited if known else now != noted:
                found.append(EditedRow(key, known, edited, differs))
        return found

    def _as_shown(
        self, entity: LoadedEntity, columns: Sequence[Column], rows: pa.Table, beside: str
    ) -> list[tuple[str, str, tuple[str | None, ...]]]:
        """What columns of the target's types would show of staged rows: by _ph_key, with the text `beside` it."""
        if not rows.num_rows:
            return []
        names = [column.name for column in columns]
        r = self.stage(rows, [*names, _SOURCE_KEY, beside])
        b = self._typed(entity.table, columns, r, names)
        shown = [self._shown(column, b.c[column.name]) for column in columns]
        asked = sa.select(r.c[_SOURCE_KEY], r.c[beside], *shown).select_from(r.join(b, b.c["_ph_i"] == r.c["_ph_i"]))
        return [(key, text, tuple(values)) for key, text, *values in self.read(asked)]

    def dangling(self, table: Table, column: str, referred: Table, id_column: str) -> int:
        """How many rows of `table` hold something in `column` that no row of `referred` has as its id."""
        t, r = table_of(table).alias("t"), table_of(referred).alias("r")
        there = sa.select(sa.literal(1)).select_from(r).where(r.c[id_column] == t.c[column])
        asked = sa.select(sa.func.count()).select_from(t).where(t.c[column].is_not(None), ~there.exists())
        return int(self.read(asked)[0][0])

    # -- taking back ------------------------------------------------------------------------------

    def undo_list(self, entities: Sequence[LoadedEntity], only: tuple[str, int] | None = None) -> SqlUndoList:
        """What can be taken back of the job known, or of one batch (entity, number) of it."""
        return SqlUndoList(self, entities, only, self.catalogue())

    def restore(self, entity: LoadedEntity, columns: Sequence[Column], rows: pa.Table) -> int:
        """Gives rows of the target back what they held: text by column, and new_id, which finds them."""
        changes = {column.name: f"v{i}" for i, column in enumerate(columns)}
        staged = rows.rename_columns(["new_id", *changes.values()])
        r = self.stage(staged, staged.column_names)
        t = table_of(entity.table)
        return self._update_staged(t, entity.table, [self._same_staged(entity.identity, t, r)], changes, r)

    def delete(self, entity: LoadedEntity, new_ids: Sequence[str]) -> None:
        """Deletes rows of the target. RowsRefusedError where something holds one."""
        t = table_of(entity.table)
        found = [
            t.c[c.name] == self._sought(c, sa.bindparam(f"k{n}", type_=sa.Text()))
            for n, c in enumerate(entity.identity)
        ]
        parts = [new_id.split(BETWEEN) if len(found) > 1 else [new_id] for new_id in new_ids]
        self.execute(sa.delete(t).where(*found), [{f"k{n}": text for n, text in enumerate(each)} for each in parts])

    def _same_staged(self, identity: Sequence[Column], t: sa.FromClause, r: sa.TableClause) -> Sql:
        text = r.c["new_id"]
        parts = [text] if len(identity) == 1 else [self._split(text, n + 1) for n in range(len(identity))]
        return sa.and_(*(t.c[c.name] == self._sought(c, part) for c, part in zip(identity, parts, strict=True)))

    def tidy(self, table: Table) -> None:
        """Nothing: no such table grows slow by rows that went."""


def _differing(names: Sequence[str], some: Sequence[str | None], other: Sequence[str | None]) -> frozenset[str]:
    return frozenset(name for name, a, b in zip(names, some, other, strict=True) if a != b)


def _column(table: Table, name: str) -> Column:
    column = table.column(name)
    assert column is not None
    return column
