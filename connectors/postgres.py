"""PostgreSQL as a target: the customer's tables, written by COPY within the caller's transaction.

What to load and when is the engine's business; our own records are in postgres_records. Never changes the
customer's schema, never drops or disables a constraint or an index.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from psycopg import sql

from connectors.postgres_catalogue import read_catalogue
from connectors.postgres_records import PostgresRecords
from connectors.postgres_schema import SCHEMA
from connectors.protocols import Catalogue, Column, Kind, Table

_NOT_DELETED = {Kind.BOOLEAN: "false", Kind.INTEGER: "0"}

_SOURCE_KEY = "_ph_key"
_HELD_AS_TEXT = (Kind.JSON, Kind.ARRAY, Kind.OTHER)


def held_json(table: Table) -> sql.Composed:
    """What a row of the table, called t, holds, as one jsonb. Kinds that JSON would spell another way (spaces and
    repeated names of a json, bounds of an array, extensions' types) stand in it as their text."""
    whole: list[sql.Composable] = [sql.SQL("to_jsonb(t)")]
    for column in table.columns:
        if column.kind in _HELD_AS_TEXT:
            name = sql.Identifier(column.name)
            whole.append(sql.SQL("jsonb_build_object({}, t.{}::text)").format(sql.Literal(column.name), name))
    return sql.SQL(" || ").join(whole)


def held_value(column: Column, held: sql.Composable) -> sql.Composed:
    """The column's value in a jsonb that `held_json` made, in its own type; NULL where `held` is NULL."""
    return sql.SQL("({} ->> {})::{}").format(held, sql.Literal(column.name), sql.SQL(column.type))


class PostgresTarget(PostgresRecords):
    """A connection to one PostgreSQL database; implements `connectors.protocols.Target`."""

    # -- what is there ----------------------------------------------------------------------------

    def catalogue(self) -> Catalogue:
        """What is there, our own schema left out."""
        with self._reached():
            found = read_catalogue(self._connection)
        tables = {name: table for name, table in found.tables.items() if table.schema != SCHEMA}
        return Catalogue(found.dialect, tables, found.server)

    def server(self) -> str:
        """Product and version."""
        return f"PostgreSQL {self._connection.info.parameter_status('server_version') or ''}".strip()

    def is_empty(self, table: Table) -> bool:
        """True where the table holds no row."""
        return not self.read(sql.SQL("SELECT 1 FROM {} LIMIT 1").format(self.name_of(table)))

    def name_of(self, table: Table) -> sql.Identifier:
        """The table's name for a statement, quoted and with its schema."""
        return (
            sql.Identifier(table.schema, table.relation)
            if table.schema
            else sql.Identifier(table.relation or table.name)
        )

    # -- a batch ----------------------------------------------------------------------------------

    def next_ids(self, sequence: str, count: int) -> list[str]:
        """Takes `count` values of a sequence, as text, in order."""
        with self._reached(), self._connection.cursor() as cursor:
            cursor.execute("SELECT nextval(%s::regclass)::text FROM generate_series(1, %s)", [sequence, count])
            return [row[0] for row in cursor]

    def insert(self, table: Table, columns: Sequence[str], rows: pa.Table) -> None:
        """COPY of text columns into a table. RowsRefusedError where a row can't enter; nothing entered then."""
        self._copy(self.name_of(table), columns, rows)

    def stand_by(self, table: Table, columns: Sequence[str], rows: pa.Table, extra: Sequence[str] = ()) -> None:
        """COPY of the rows into a temporary table `packhorse_rows` with the table's own column types."""
        with self._reached(), self._connection.cursor() as cursor:
            cursor.execute("DROP TABLE IF EXISTS pg_temp.packhorse_rows")
            listed = sql.SQL(", ").join([*map(sql.Identifier, columns)])
            tail = sql.SQL("").join(sql.SQL(", NULL::text AS {}").format(sql.Identifier(e)) for e in extra)
            cursor.execute(
                sql.SQL("CREATE TEMP TABLE packhorse_rows ON COMMIT DROP AS SELECT {}{} FROM {} WHERE false").format(
                    listed, tail, self.name_of(table)
                )
            )
        self._copy(sql.Identifier("pg_temp", "packhorse_rows"), [*columns, *extra], rows)

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
        name = self.name_of(table)
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

    def update(self, table: Table, identity: str, columns: Sequence[str], rows: pa.Table) -> int:
        """Updates `columns` of rows found by `identity`, both in `rows`; how many were there. What rows of other
        jobs held before is kept, by the source key that `rows` has in _ph_key."""
        known = [_SOURCE_KEY] if _SOURCE_KEY in rows.column_names else []
        self.stand_by(table, [identity, *columns], rows, known)
        if known:
            same = sql.SQL("t.{0} = r.{0}").format(sql.Identifier(identity))
            found = sql.SQL("(pg_temp.packhorse_rows r JOIN {} t ON {})").format(self.name_of(table), same)
            self._keep_before(found, _SOURCE_KEY, held_json(table))
        pairs = sql.SQL(", ").join(sql.SQL("{0} = r.{0}").format(sql.Identifier(c)) for c in columns)
        with self._reached(), self._connection.cursor() as cursor:
            cursor.execute(
                sql.SQL("UPDATE {} t SET {} FROM pg_temp.packhorse_rows r WHERE t.{} = r.{}").format(
                    self.name_of(table), pairs, sql.Identifier(identity), sql.Identifier(identity)
                )
            )
            return cursor.rowcount

    def raise_sequence(self, table: Table, column: str, sequence: str) -> None:
        """Sets a column's sequence above its highest value; never lowers it."""
        with self._reached():
            self._connection.execute(
                sql.SQL(
                    "SELECT setval({seq}::regclass, greatest((SELECT max({col}) FROM {table}), (SELECT last_value FROM {name}))) "
                    "WHERE (SELECT max({col}) FROM {table}) IS NOT NULL AND (SELECT max({col}) FROM {table}) > (SELECT last_value FROM {name})"
                ).format(
                    seq=sql.Literal(sequence),
                    col=sql.Identifier(column),
                    table=self.name_of(table),
                    name=sql.SQL(sequence),
                )
            )
