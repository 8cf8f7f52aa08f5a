"""PostgreSQL as a target: the customer's tables, written by COPY within the caller's transaction.

What to load and when is the engine's business; our own records are in postgres_records. Never changes the
customer's schema, never drops or disables a constraint or an index.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress

import pyarrow as pa
from psycopg import sql

from connectors.grants import Grant, TableUse
from connectors.postgres_catalogue import read_catalogue
from connectors.postgres_grants import target_grants
from connectors.postgres_match import (
    before_statement,
    fill_statement,
    filled_statement,
    fits_statement,
    fitting_statement,
    held_statement,
    lock_statement,
    locked_statement,
    same_row_of,
    strayed_statement,
)  # fmt: skip
from connectors.postgres_measures import PostgresMeasures
from connectors.postgres_rows import MERGED, found_row, held_json, key_part, name_of, same_row, shown_id
from connectors.postgres_undo_list import PostgresUndoList
from connectors.protocols import Catalogue, Column, Kind, Table, TargetLostError, UniqueKey
from connectors.records import FIT, FOUND_COLUMNS, EditedRow, Fill, Filled, FilledRow, FittingRow, LoadedEntity
from workspace.errors import JobFailedError

_NOT_DELETED = {Kind.BOOLEAN: "false", Kind.INTEGER: "0"}

_SOURCE_KEY = "_ph_key"

_LOCK_WAIT = "3s"
"""How long a lock on a whole table is waited for, and with it all who want to write there after us."""

_EDITED = """
SELECT key, known, edited, differs FROM (
  SELECT r.{key} AS key, b.{key} IS NOT NULL AS known, array_remove(ARRAY[{edited}]::text[], NULL) AS edited,
         array_remove(ARRAY[{differs}]::text[], NULL) AS differs, ({hash})::uuid IS DISTINCT FROM x.target_hash AS other
    FROM pg_temp.packhorse_rows r JOIN {table} t ON t.{id} = r.{id}
    JOIN {crosswalk} x ON (x.entity_id, x.old_id) = ({entity}, r.{key})
    LEFT JOIN pg_temp.packhorse_base b ON b.{key} = r.{key} AND b._ph_target_hash::uuid = x.target_hash
     FOR UPDATE OF t) found
 WHERE CASE WHEN known THEN edited <> ARRAY[]::text[] ELSE other END
"""


class PostgresTarget(PostgresMeasures):
    """A connection to one PostgreSQL database; implements `connectors.target.Target`."""

    # -- what is there ----------------------------------------------------------------------------

    def catalogue(self) -> Catalogue:
        """What is there, schemas of ours left out. CatalogueError where one of our schema's name is somebody else's."""
        ours = self.schemas_of_ours()
        with self._reached():
            found = read_catalogue(self._connection)
        tables = {name: table for name, table in found.tables.items() if table.schema not in ours}
        return Catalogue(found.dialect, tables, found.server)

    def server(self) -> str:
        """Product and version."""
        return f"PostgreSQL {self._connection.info.parameter_status('server_version') or ''}".strip()

    def grants(self, uses: Sequence[TableUse] | None, user: str | None = None) -> list[Grant]:
        """The rights that a job needs; see `Target.grants`."""
        if uses is None:
            visible = self.read("SELECT unnest(current_schemas(false))::text")
            schemas = [row[0] for row in visible if row[0] not in self.schemas_of_ours()] or ["public"]
            return target_grants(self.read, user, schemas, None, self.schema)
        there = self.catalogue().tables
        tables = [(there[use.table], use) for use in uses if use.table in there]
        return target_grants(self.read, user, [], tables, self.schema)

    def is_empty(self, table: Table) -> bool:
        """True where the table holds no row."""
        return not self.read(sql.SQL("SELECT 1 FROM {} LIMIT 1").format(name_of(table)))

    def beside(
        self,
        table: Table,
        identity: Sequence[Column],
        ids: Sequence[str],
        columns: Sequence[Column],
        given: Sequence[Sequence[str | None]],
    ) -> list[list[tuple[str | None, str | None]]]:
        """A few rows found by their id as the crosswalk has it: for each of `columns`, the text that the given value
        becomes in the column's type and the text of what the target holds. A row that isn't there holds NULLs.
        RowsRefusedError where a given value is none of the column's type."""
        if not ids:
            return []
        names = [sql.Identifier(column.name) for column in columns]
        cast = [
            sql.SQL("(r.v ->> {})::{}::text").format(sql.Literal(i), sql.SQL(column.type))
            for i, column in enumerate(columns, 1)
        ]
        if len(identity) == 1:  # in its own type, so that its index serves
            key = sql.SQL("t.{} = (r.v ->> 0)::{}").format(sql.Identifier(identity[0].name), sql.SQL(identity[0].type))
        else:
            parts = [sql.SQL("t.{}::text").format(sql.Identifier(column.name)) for column in identity]
            key = sql.SQL("{} = (r.v ->> 0)").format(sql.SQL(" || chr(31) || ").join(parts))
        rows = self.read(
            sql.SQL(
                "SELECT ARRAY[{}]::text[], ARRAY[{}]::text[] FROM jsonb_array_elements({}::jsonb) WITH ORDINALITY AS r(v, n) "
                "LEFT JOIN {} t ON {} ORDER BY r.n"
            ).format(
                sql.SQL(", ").join(cast),
                sql.SQL(", ").join(sql.SQL("t.{}::text").format(name) for name in names),
                # no parameter: a column may have a % in its name
                sql.Literal(json.dumps([[id_, *values] for id_, values in zip(ids, given, strict=True)])),
                name_of(table),
                key,
            )
        )
        return [list(zip(*row, strict=True)) for row in rows]

    # -- a batch ----------------------------------------------------------------------------------

    def next_ids(self, table: Table, column: Column, count: int) -> list[str]:
        """Takes `count` values of a column's sequence, as text, in order."""
        with self._reached(), self._connection.cursor() as cursor:
            cursor.execute("SELECT nextval(%s::regclass)::text FROM generate_series(1, %s)", [column.sequence, count])
            return [row[0] for row in cursor]

    def insert(self, table: Table, columns: Sequence[str], rows: pa.Table) -> None:
        """COPY of text columns into a table. RowsRefusedError where a row can't enter; nothing entered then."""
        self._copy(name_of(table), columns, rows)

    def stand_by(
        self,
        table: Table,
        columns: Sequence[str],
        rows: pa.Table,
        extra: Sequence[str] = (),
        name: str = "packhorse_rows",
    ) -> None:
        """COPY of the rows into a temporary table of that name with the table's own column types; `extra` are columns
        of text."""
        place = sql.Identifier("pg_temp", name)
        with self._reached(), self._connection.cursor() as cursor:
            cursor.execute(sql.SQL("DROP TABLE IF EXISTS {}").format(place))
            listed = sql.SQL(", ").join([*map(sql.Identifier, columns)])
            tail = sql.SQL("").join(sql.SQL(", NULL::text AS {}").format(sql.Identifier(e)) for e in extra)
            cursor.execute(
                sql.SQL("CREATE TEMP TABLE {} ON COMMIT DROP AS SELECT {}{} FROM {} WHERE false").format(
                    sql.Identifier(name), listed, tail, name_of(table)
                )
            )
        self._copy(place, [*columns, *extra], rows)

    def upsert(
        self,
        table: Table,
        columns: Sequence[str],
        identity: Sequence[str],
        rows: pa.Table,
        revived: Column | None = None,
    ) -> dict[tuple[str, ...], str]:
        """Inserts rows, or updates those whose identity the table holds. What the updated rows held before comes
        back as JSON by identity (as text). `revived` is a deletion marker to clear in them. RowsRefusedError
        as for `insert`."""
        self.stand_by(table, columns, rows)
        name = name_of(table)
        same = sql.SQL(" AND ").join(sql.SQL("t.{0} = r.{0}").format(sql.Identifier(c)) for c in identity)
        changes = [sql.SQL("{0} = excluded.{0}").format(sql.Identifier(c)) for c in columns if c not in identity]
        if revived is not None:
            changes.append(
                sql.SQL("{} = {}").format(sql.Identifier(revived.name), sql.SQL(_NOT_DELETED.get(revived.kind, "NULL")))
            )
        action = sql.SQL("UPDATE SET {}").format(sql.SQL(", ").join(changes)) if changes else sql.SQL("NOTHING")
        listed = sql.SQL(", ").join(map(sql.Identifier, columns))
        with self._reached(), self._connection.cursor() as cursor:
            cursor.execute(
                sql.SQL(
                    "SELECT ARRAY[{}], ({})::text FROM {} t JOIN pg_temp.packhorse_rows r ON {} FOR UPDATE OF t"
                ).format(
                    sql.SQL(", ").join(sql.SQL("t.{}::text").format(sql.Identifier(c)) for c in identity),
                    held_json(table),
                    name,
                    same,
                )
            )
            replaced = {tuple(row[0]): row[1] for row in cursor}
            cursor.execute(
                sql.SQL(
                    "INSERT INTO {} ({}) OVERRIDING SYSTEM VALUE SELECT {} FROM pg_temp.packhorse_rows ON CONFLICT ({}) DO {}"
                ).format(name, listed, listed, sql.SQL(", ").join(map(sql.Identifier, identity)), action)
            )
        return replaced

    def update(self, table: Table, identity: Sequence[str], columns: Sequence[str], rows: pa.Table) -> int:
        """Updates `columns` of rows found by `identity`, both in `rows`; how many were there. What rows of other
        jobs held before is kept, by the source key that `rows` has in _ph_key."""
        known = [_SOURCE_KEY] if _SOURCE_KEY in rows.column_names else []
        self.stand_by(table, [*identity, *columns], rows, known)
        same = sql.SQL(" AND ").join(sql.SQL("t.{0} = r.{0}").format(sql.Identifier(name)) for name in identity)
        if known:
            found = sql.SQL("(pg_temp.packhorse_rows r JOIN {} t ON {})").format(name_of(table), same)
            self._keep_before(found, _SOURCE_KEY, held_json(table))
        pairs = sql.SQL(", ").join(sql.SQL("{0} = r.{0}").format(sql.Identifier(c)) for c in columns)
        with self._reached(), self._connection.cursor() as cursor:
            cursor.execute(
                sql.SQL("UPDATE {} t SET {} FROM pg_temp.packhorse_rows r WHERE {}").format(name_of(table), pairs, same)
            )
            return cursor.rowcount

    def fill(
        self, entity: LoadedEntity, rules: Mapping[str, Fill], rows: pa.Table, by: Sequence[Sequence[str]] = ()
    ) -> Filled:
        """Locks rows found by their id, and fills columns of them as `rules` say; see `Target.fill`."""
        identity = [column.name for column in entity.identity]
        self.stand_by(entity.table, [*identity, *rules], rows, [_SOURCE_KEY, *([FIT] if by else [])])
        held = {key: before for key, before, *_ in self.read(locked_statement(entity, _SOURCE_KEY))}
        if by:  # once they are locked: nobody changes them now
            self.execute(strayed_statement(entity, by))
        found = sql.SQL("(pg_temp.packhorse_rows r JOIN {} t ON {})").format(name_of(entity.table), same_row_of(entity))
        self._keep_before(found, _SOURCE_KEY, held_json(entity.table))
        changed = self.execute(fill_statement(entity, rules)) if rules else 0
        now = self.read(filled_statement(entity, _SOURCE_KEY))
        return Filled({key: FilledRow(held[key], hash_, reference) for key, _, hash_, reference in now}, changed)

    def keep_others_out(self, table: Table) -> None:
        """Locks the table against others who write; see `Target.keep_others_out`."""
        # a lock that is waited for holds up all who come after it: not for long, unless the user's own setting says so
        brief = self.read("SHOW lock_timeout") == [("0",)]
        if brief:
            self.execute(sql.SQL("SET LOCAL lock_timeout = {}").format(sql.Literal(_LOCK_WAIT)))
        self.execute(lock_statement(table))
        if brief:
            self.execute(sql.SQL("SET LOCAL lock_timeout = 0"))

    def rows_fitting(
        self, entity: LoadedEntity, rules: Sequence[UniqueKey], rows: pa.Table, marker: Column | None
    ) -> list[FittingRow]:
        """Which rows fit what others put in the table; see `Target.rows_fitting`."""
        columns = list(dict.fromkeys(column for rule in rules for column in rule.columns))
        self.stand_by(entity.table, columns, rows, ["_ph_n"])
        self.execute(sql.SQL("DROP TABLE IF EXISTS pg_temp.packhorse_fits"))
        if not self.execute(fits_statement(entity, rules, marker)):
            return []
        ours = self.schema, self.job_id, self.entity_id(entity.name)
        return [FittingRow(*row) for row in self.read(fitting_statement(entity, ours))]

    def values_before(
        self, entity: LoadedEntity, keys: Sequence[str], columns: Sequence[Column]
    ) -> dict[str, list[str | None]]:
        """What rows that were there before held then; see `Target.values_before`."""
        ours = self.schema, self.job_id, self.entity_id(entity.name)
        return dict(self.read(before_statement(ours, keys, columns)))

    def edited_rows(
        self, entity: LoadedEntity, columns: Sequence[str], rows: pa.Table, base: pa.Table
    ) -> list[EditedRow]:
        """Locks the rows that are about to be updated, and gives those that hold something else in `columns` than was
        written. Values are compared as the server shows them, so that no other spelling of one passes for an edit."""
        (identity,) = (column.name for column in entity.identity)
        self.stand_by(entity.table, [identity, *columns], base, [_SOURCE_KEY, "_ph_target_hash"], "packhorse_base")
        self.stand_by(entity.table, [identity, *columns], rows, [_SOURCE_KEY])
        other = sql.SQL("CASE WHEN t.{0}::text IS DISTINCT FROM {1}.{0}::text THEN {2} END")

        def listed(than: str) -> sql.Composable:
            return sql.SQL(", ").join(
                other.format(sql.Identifier(c), sql.Identifier(than), sql.Literal(c)) for c in columns
            )

        found = self.read(
            sql.SQL(_EDITED).format(
                key=sql.Identifier(_SOURCE_KEY), id=sql.Identifier(identity), edited=listed("b"), differs=listed("r"),
                hash=found_row(entity).hash, table=name_of(entity.table), entity=sql.Literal(self.entity_id(entity.name)),
                crosswalk=sql.Identifier(self.schema, "crosswalk"),
            )
        )  # fmt: skip
        return [
            EditedRow(key, known, frozenset(edited if known else differs), frozenset(differs))
            for key, known, edited, differs in found
        ]

    def raise_sequence(self, table: Table, column: Column) -> None:
        """Sets a column's sequence above its highest value; never lowers it."""
        with self._reached():
            self._connection.execute(
                sql.SQL(
                    "SELECT setval({seq}::regclass, greatest((SELECT max({col}) FROM {table}), (SELECT last_value FROM {name}))) "
                    "WHERE (SELECT max({col}) FROM {table}) IS NOT NULL AND (SELECT max({col}) FROM {table}) > (SELECT last_value FROM {name})"
                ).format(
                    seq=sql.Literal(column.sequence),
                    col=sql.Identifier(column.name),
                    table=name_of(table),
                    name=sql.SQL(column.sequence),
                )
            )

    # -- what it holds ----------------------------------------------------------------------------

    def keys_held(
        self, table: Table, key: UniqueKey, marker: Column | None, besides: LoadedEntity | None
    ) -> Iterator[pa.RecordBatch]:
        """What the table holds of a unique key: text columns k0, k1, ..., and `deleted`. Rows in the crosswalk of
        `besides` are left out."""
        parts = [sql.SQL("({})::text").format(key_part(part, key, table)) for part in key.expressions]
        deleted: sql.Composable = sql.SQL("'false'::text")
        if marker is not None:
            deleted = sql.SQL("(t.{0} IS NOT NULL AND t.{0}::text NOT IN ('false', '0'))::text").format(
                sql.Identifier(marker.name)
            )
        conditions: list[sql.Composable] = [sql.SQL(f"({key.where})")] if key.where else []
        if besides is not None:
            conditions.append(
                sql.SQL("NOT EXISTS (SELECT 1 FROM {} x WHERE x.entity_id = {} AND x.new_id = {})").format(
                    sql.Identifier(self.schema, "crosswalk"),
                    sql.Literal(self.entity_id(besides.name)),
                    shown_id(besides.identity),
                )
            )
        statement = sql.SQL("SELECT {}, {} FROM {} t {}").format(
            sql.SQL(", ").join(parts),
            deleted,
            name_of(table),
            sql.SQL("WHERE ") + sql.SQL(" AND ").join(conditions) if conditions else sql.SQL(""),
        )
        return self.stream(statement, [*(f"k{i}" for i in range(len(parts))), "deleted"])

    def rows_held(
        self, entity: LoadedEntity, columns: Sequence[Column], marker: Column | None, *, ours: bool
    ) -> Iterator[pa.RecordBatch]:
        """What the entity's table held before the job; see `Target.rows_held`."""
        records = None
        if ours:
            records = self.schema, self._job[0] if self._job else -1, self._entities.get(entity.name, -1)
        names = ["_ph_held", "_ph_owner", *(column.name for column in columns)]
        return self.stream(held_statement(entity, columns, marker, records), names)

    def found_rows(self, entity: LoadedEntity) -> Iterator[pa.RecordBatch]:
        """The entity's crosswalk beside the hashes of what the target holds now: FOUND_COLUMNS."""
        found = found_row(entity)
        statement = sql.SQL(
            "SELECT x.old_id, x.new_id, x.batch, replace(x.target_hash::text, '-', ''), replace(x.reference_hash::text, '-', ''), "
            "{}, {}, x.job_id = {}, {}, x.replaced IS NOT NULL FROM {} x LEFT JOIN {} t ON {} WHERE x.entity_id = {}"
        ).format(
            found.hash,
            found.reference,
            sql.Literal(self.job_id),
            MERGED,
            sql.Identifier(self.schema, "crosswalk"),
            name_of(entity.table),
            same_row(entity.identity, "t", "x"),
            sql.Literal(self.entity_id(entity.name)),
        )
        return self.stream(statement, FOUND_COLUMNS)

    def dangling(self, table: Table, column: str, referred: Table, id_column: str) -> int:
        """How many rows of `table` hold something in `column` that no row of `referred` has as its id."""
        statement = sql.SQL(
            "SELECT count(*) FROM {} t WHERE t.{} IS NOT NULL AND NOT EXISTS (SELECT 1 FROM {} r WHERE r.{} = t.{})"
        ).format(
            name_of(table),
            sql.Identifier(column),
            name_of(referred),
            sql.Identifier(id_column),
            sql.Identifier(column),
        )
        return int(self.read(statement)[0][0])

    def low_sequence(self, table: Table, column: Column) -> tuple[int, int] | None:
        """Where a column's sequence stands below its highest value: the two; None where it doesn't."""
        statement = sql.SQL("SELECT (SELECT max({}) FROM {}), (SELECT last_value FROM {})").format(
            sql.Identifier(column.name), name_of(table), sql.SQL(column.sequence)
        )
        highest, last = self.read(statement)[0]
        return (last, highest) if highest is not None and last < highest else None

    # -- taking back ------------------------------------------------------------------------------

    def undo_list(self, entities: Sequence[LoadedEntity], only: tuple[str, int] | None = None) -> PostgresUndoList:
        """What can be taken back of the job known, or of one batch (entity, number) of it."""
        return PostgresUndoList(self, entities, only)

    def tidy(self, table: Table) -> None:
        """Vacuums the table. Without the right to, the target leaves it out."""
        with suppress(TargetLostError, JobFailedError):
            self.execute(sql.SQL("VACUUM {}").format(name_of(table)))
