"""PostgreSQL as a target: COPY in, and our ledger, crosswalk and quarantine in a schema beside the customer's.

Keeps the promise that a batch is one transaction; what to load and when is the engine's business. Never
changes the customer's schema, never drops or disables a constraint or an index.
"""

from __future__ import annotations

import io
import os
import re
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import psycopg
import pyarrow as pa
import pyarrow.csv
from psycopg import errors, sql

from connectors.dsn import Dsn
from connectors.postgres_catalogue import read_catalogue
from connectors.postgres_connection import connect
from connectors.postgres_schema import SCHEMA, STEPS
from connectors.protocols import Catalogue, Column, Kind, LedgerRow, RowsRefusedError, Table, TargetLostError
from workspace.errors import CatalogueError, ConnectError, JobFailedError, JobLockedError, WorkspaceError

_CSV = pyarrow.csv.WriteOptions(include_header=False, quoting_style="all_valid", batch_size=4096)
CROSSWALK_COLUMNS = ("old_id", "new_id", "source_hash", "target_hash", "reference_hash", "job_id", "batch")
_NOT_DELETED = {Kind.BOOLEAN: "false", Kind.INTEGER: "0"}
_PASSING = ("08", "40", "55P03", "57P01", "57P02", "57P03", "57014", "53300")
_CODES = {
    "23505": "unique",
    "23514": "check",
    "23503": "foreign_key",
    "23502": "required",
    "22001": "length",
    "22003": "range",
    "P0001": "trigger",
}


class PostgresTarget:
    """A connection to one PostgreSQL database; implements `connectors.protocols.Target`."""

    def __init__(self, dsn: Dsn) -> None:
        self._dsn = dsn
        self.dsn = dsn.masked
        self.identity = dsn.identity
        self._job: tuple[int, str] | None = None
        self._entities: dict[str, int] = {}
        self._names: dict[int, str] = {}
        self._connection = self._connect()

    def _connect(self) -> psycopg.Connection[tuple[Any, ...]]:
        connection = connect(self._dsn)
        with connection.cursor() as cursor:
            # What text the server shows for a value must not hang on the user's settings: checksums compare it.
            cursor.execute(
                "SET timezone = 'UTC'; SET datestyle = 'ISO, YMD'; SET intervalstyle = 'iso_8601'; SET bytea_output = 'hex'; SET extra_float_digits = 1"
            )
        return connection

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

    def prepare(self) -> None:
        """Makes our schema where it is missing, under a lock that keeps two makers apart."""
        with self._reached(), self._connection.transaction(), self._connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended('packhorse schema', 0))")
            cursor.execute("SELECT obj_description(oid, 'pg_namespace') FROM pg_namespace WHERE nspname = %s", [SCHEMA])
            row = cursor.fetchone()
            try:
                done = 0
                if row is None:
                    cursor.execute(f"CREATE SCHEMA {SCHEMA}")
                else:
                    found = re.fullmatch(r"packhorse (\d+)", row[0] or "")
                    if not found:
                        raise CatalogueError(
                            f"the target has a schema {SCHEMA} that is not ours",
                            where=self.dsn,
                            advice="rename it, or use another database",
                        )
                    done = int(found[1])
                if done > len(STEPS):
                    raise WorkspaceError(
                        "a newer version of Packhorse made the ledger in this target",
                        where=self.dsn,
                        advice="upgrade packhorse",
                    )
                for step in STEPS[done:]:
                    for statement in step(SCHEMA):
                        cursor.execute(statement)
                if done < len(STEPS):
                    cursor.execute(f"COMMENT ON SCHEMA {SCHEMA} IS 'packhorse {len(STEPS)}'")
            except errors.InsufficientPrivilege:
                raise CatalogueError(
                    f"the user may not make the schema {SCHEMA} for the ledger", where=self.dsn,
                    advice=f"GRANT CREATE ON DATABASE {self._connection.info.dbname} TO {self._connection.info.user}",
                ) from None  # fmt: skip

    def has_schema(self) -> bool:
        """True where our schema is there."""
        with self._reached(), self._connection.cursor() as cursor:
            cursor.execute("SELECT 1 FROM pg_namespace WHERE nspname = %s", [SCHEMA])
            return cursor.fetchone() is not None

    # -- the job ----------------------------------------------------------------------------------

    def lease(self, job: str, source: str) -> None:
        """Takes the job until this connection ends: an advisory lock, and a row that says who has it."""
        host, pid = socket.gethostname(), os.getpid()
        with self._reached(), self._connection.cursor() as cursor:
            cursor.execute("SELECT pg_try_advisory_lock(hashtextextended('packhorse job ' || %s, 0))", [job])
            got = cursor.fetchone()
            if got is None or not got[0]:
                cursor.execute(f"SELECT host, pid, since::text FROM {SCHEMA}.job WHERE name = %s", [job])
                holder = cursor.fetchone()
                who = f"process {holder[1]} on {holder[0]}, since {holder[2]}" if holder else "another process"
                raise JobLockedError(
                    f"the job {job} is being run by {who}",
                    where=self.dsn,
                    advice="wait for it, or stop it there first",
                )
            cursor.execute(
                f"INSERT INTO {SCHEMA}.job (name, source, host, pid, since) VALUES (%s, %s, %s, %s, now()) "
                f"ON CONFLICT (name) DO UPDATE SET host = excluded.host, pid = excluded.pid, since = excluded.since RETURNING id, source",
                [job, source, host, pid],
            )
            row = cursor.fetchone()
            assert row is not None
            if row[1] != source:
                raise JobLockedError(
                    f"the target knows a job {job} of another source, {row[1]}",
                    where=self.dsn,
                    advice="give this one another name with --job",
                )
            self._job = (row[0], job)

    def know(self, job: str) -> bool:
        """Finds a job to read about, without a lease. False when the target doesn't know it."""
        if not self.has_schema():
            return False
        with self._reached(), self._connection.cursor() as cursor:
            cursor.execute(f"SELECT id FROM {SCHEMA}.job WHERE name = %s", [job])
            row = cursor.fetchone()
        if row is not None:
            self._job = (row[0], job)
        return row is not None

    def register_entity(self, source: str, entity: str, table: str) -> int:
        """The number of an entity of that source in our schema, the same each time."""
        with self._reached(), self._connection.cursor() as cursor:
            cursor.execute(
                f"INSERT INTO {SCHEMA}.entity (source, name, target_table) VALUES (%s, %s, %s) ON CONFLICT DO NOTHING",
                [source, entity, table],
            )
            cursor.execute(
                f"SELECT id FROM {SCHEMA}.entity WHERE (source, name, target_table) = (%s, %s, %s)",
                [source, entity, table],
            )
            row = cursor.fetchone()
        assert row is not None
        self._entities[entity] = row[0]
        self._names[row[0]] = entity
        return int(row[0])

    def know_entity(self, source: str, entity: str, table: str) -> bool:
        """Finds an entity's number without writing. False when our schema doesn't have it."""
        rows = self.read(
            f"SELECT id FROM {SCHEMA}.entity WHERE (source, name, target_table) = (%s, %s, %s)", [source, entity, table]
        )
        if rows:
            self._entities[entity] = rows[0][0]
            self._names[rows[0][0]] = entity
        return bool(rows)

    def ledger(self) -> list[LedgerRow]:
        """All rows of the job's ledger for the entities registered, oldest first."""
        assert self._job is not None
        with self._reached(), self._connection.cursor() as cursor:
            cursor.execute(
                f"SELECT entity_id, batch, step, key_low, key_high, plan_version, read, inserted, updated, unchanged, merged, excluded, "
                f"quarantined, checksum::numeric FROM {SCHEMA}.ledger WHERE job_id = %s ORDER BY committed_at, entity_id, batch, step",
                [self._job[0]],
            )
            return [LedgerRow(self._names[row[0]], *row[1:13]) for row in cursor if row[0] in self._names]

    # -- a batch ----------------------------------------------------------------------------------

    def begin(self) -> None:
        """Begins a transaction in which deferrable constraints are checked at once, so that the row is known."""
        with self._reached():
            self._connection.execute("BEGIN; SET CONSTRAINTS ALL IMMEDIATE")

    def commit(self) -> None:
        """Ends the transaction, durably."""
        with self._reached():
            self._connection.execute("COMMIT")

    def rollback(self) -> None:
        """Ends the transaction without effect; safe on a lost connection."""
        try:
            self._connection.execute("ROLLBACK")
        except psycopg.Error:
            self._connection.close()

    @contextmanager
    def savepoint(self) -> Iterator[None]:
        """What happens within is undone when it raises RowsRefusedError."""
        self._connection.execute("SAVEPOINT packhorse")
        try:
            yield
        except RowsRefusedError:
            with self._reached():
                self._connection.execute("ROLLBACK TO SAVEPOINT packhorse; RELEASE SAVEPOINT packhorse")
            raise
        with self._reached():
            self._connection.execute("RELEASE SAVEPOINT packhorse")

    def take(self, row: LedgerRow) -> bool:
        """Puts the batch's row in the ledger, first of all in its transaction. False where it is there already:
        the batch was committed before, by whomever, and must not be loaded again."""
        assert self._job is not None
        with self._reached(), self._connection.cursor() as cursor:
            cursor.execute(
                f"INSERT INTO {SCHEMA}.ledger (job_id, entity_id, batch, step, key_low, key_high, plan_version, read, inserted, updated, "
                f"unchanged, merged, excluded, quarantined, checksum) VALUES (%s, %s, %s, %s, %s, %s, %s, %s, 0, 0, 0, 0, 0, 0, 0) "
                f"ON CONFLICT DO NOTHING",
                [
                    self._job[0],
                    self._entities[row.entity],
                    row.batch,
                    row.step,
                    row.key_low,
                    row.key_high,
                    row.plan_version,
                    row.read,
                ],
            )
            return cursor.rowcount == 1

    def settle(self, row: LedgerRow) -> None:
        """Writes the batch's final counts in its ledger row, in the same transaction."""
        assert self._job is not None
        with self._reached():
            self._connection.execute(
                f"UPDATE {SCHEMA}.ledger SET inserted = %s, updated = %s, unchanged = %s, merged = %s, excluded = %s, quarantined = %s, checksum = %s "
                f"WHERE (job_id, entity_id, batch, step) = (%s, %s, %s, %s)",
                [row.inserted, row.updated, row.unchanged, row.merged, row.excluded, row.quarantined, row.checksum,
                 self._job[0], self._entities[row.entity], row.batch, row.step],
            )  # fmt: skip

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
                    "SELECT ARRAY[{}], to_jsonb(t)::text FROM {} t JOIN pg_temp.packhorse_rows r ON {} FOR UPDATE OF t"
                ).format(
                    sql.SQL(", ").join(sql.SQL("t.{}::text").format(sql.Identifier(c)) for c in identity),
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
        """Updates `columns` of rows found by `identity`, both in `rows`; how many were there."""
        self.stand_by(table, [identity, *columns], rows)
        pairs = sql.SQL(", ").join(sql.SQL("{0} = r.{0}").format(sql.Identifier(c)) for c in columns)
        with self._reached(), self._connection.cursor() as cursor:
            cursor.execute(
                sql.SQL("UPDATE {} t SET {} FROM pg_temp.packhorse_rows r WHERE t.{} = r.{}").format(
                    self.name_of(table), pairs, sql.Identifier(identity), sql.Identifier(identity)
                )
            )
            return cursor.rowcount

    def crosswalk(self, entity: str, batch: int, rows: pa.Table) -> None:
        """Writes crosswalk rows: old_id, new_id, source_hash, target_hash, replaced (text columns)."""
        assert self._job is not None
        rows = self._numbered(entity, batch, rows)
        self._copy(sql.Identifier(SCHEMA, "crosswalk"), rows.column_names, rows)

    def renew_crosswalk(self, entity: str, batch: int, rows: pa.Table) -> None:
        """Renews the hashes of crosswalk rows that are there: old_id, source_hash, target_hash."""
        self._renew(entity, batch, rows, ("source_hash", "target_hash"), True)

    def note_references(self, entity: str, rows: pa.Table) -> None:
        """Sets the reference hash of crosswalk rows: old_id, reference_hash."""
        self._renew(entity, 0, rows, ("reference_hash",), False)

    def _renew(self, entity: str, batch: int, rows: pa.Table, columns: Sequence[str], own: bool) -> None:
        assert self._job is not None
        with self._reached(), self._connection.cursor() as cursor:
            cursor.execute("DROP TABLE IF EXISTS pg_temp.packhorse_hashes")
            cursor.execute(
                f"CREATE TEMP TABLE packhorse_hashes ON COMMIT DROP AS SELECT old_id, {', '.join(columns)} FROM {SCHEMA}.crosswalk WHERE false"
            )
            self._copy(sql.Identifier("pg_temp", "packhorse_hashes"), ["old_id", *columns], rows)
            mine = f", job_id = {self._job[0]}, batch = {int(batch)}" if own else ""
            cursor.execute(
                f"UPDATE {SCHEMA}.crosswalk x SET {', '.join(f'{c} = h.{c}' for c in columns)}{mine} FROM pg_temp.packhorse_hashes h "
                f"WHERE x.entity_id = %s AND x.old_id = h.old_id",
                [self._entities[entity]],
            )

    def quarantine(self, entity: str, batch: int, rows: pa.Table) -> None:
        """Writes quarantine rows: row (its number in the stage), key, field, code, signature, detail, raw (text columns)."""
        rows = self._numbered(entity, batch, rows)
        self._copy(sql.Identifier(SCHEMA, "quarantine"), rows.column_names, rows)

    def _numbered(self, entity: str, batch: int, rows: pa.Table) -> pa.Table:
        assert self._job is not None
        for name, value in (
            ("entity_id", self._entities[entity]),
            ("job_id", self._job[0]),
            ("batch", batch),
        ):
            rows = rows.append_column(name, pa.repeat(pa.scalar(str(value)), rows.num_rows))
        return rows

    def clusters(self, entity: str, batch: int) -> list[tuple[str, str, str, int]]:
        """What a batch of the job put in quarantine: signature, code, field, how many rows."""
        return self.read(
            f"SELECT signature, code, field, count(*)::int FROM {SCHEMA}.quarantine "
            f"WHERE (job_id, entity_id, batch) = (%s, %s, %s) GROUP BY 1, 2, 3 ORDER BY 1, 2, 3",
            [self.job_id, self._entities[entity], batch],
        )

    # -- reading back -----------------------------------------------------------------------------

    def read(self, statement: str | sql.Composed, parameters: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """The rows of a small SELECT."""
        with self._reached(), self._connection.cursor() as cursor:
            cursor.execute(statement, parameters)
            return cursor.fetchall()

    def stream(self, statement: sql.Composed, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The rows of a SELECT as batches of text columns called `names`, through COPY; memory stays at a block's size."""
        with self._reached(), self._connection.cursor() as cursor:
            # A header line of our own keeps the reader from failing on a SELECT without rows.
            head = (",".join(names) + "\n").encode()
            with cursor.copy(sql.SQL("COPY ({}) TO STDOUT (FORMAT csv)").format(statement)) as copy:
                yield from pyarrow.csv.open_csv(
                    pa.PythonFile(_Blocks(copy, head), mode="r"),
                    parse_options=pyarrow.csv.ParseOptions(newlines_in_values=True),
                    convert_options=pyarrow.csv.ConvertOptions(
                        strings_can_be_null=True,
                        quoted_strings_can_be_null=False,
                        null_values=[""],
                        column_types={name: pa.string() for name in names},
                    ),
                )

    def crosswalk_rows(self, entity: str) -> Iterator[pa.RecordBatch]:
        """The entity's crosswalk, of every job: CROSSWALK_COLUMNS as text."""
        return self.stream(
            sql.SQL("SELECT {} FROM {} WHERE entity_id = {}").format(
                sql.SQL(", ").join(map(sql.Identifier, CROSSWALK_COLUMNS)),
                sql.Identifier(SCHEMA, "crosswalk"),
                sql.Literal(self._entities[entity]),
            ),
            CROSSWALK_COLUMNS,
        )

    def has_crosswalk(self, entity: str) -> bool:
        """True where the entity's crosswalk holds a row."""
        return bool(
            self.read(f"SELECT 1 FROM {SCHEMA}.crosswalk WHERE entity_id = %s LIMIT 1", [self._entities[entity]])
        )

    def is_empty(self, table: Table) -> bool:
        """True where the table holds no row."""
        return not self.read(sql.SQL("SELECT 1 FROM {} LIMIT 1").format(self.name_of(table)))

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

    @property
    def job_id(self) -> int:
        """The number of the job taken or known."""
        assert self._job is not None
        return self._job[0]

    def entity_id(self, entity: str) -> int:
        """The number of a registered entity."""
        return self._entities[entity]

    # -- the connection ---------------------------------------------------------------------------

    def reconnect(self) -> None:
        """A new connection in place of a lost one, with the lease taken again; TargetLostError while there is none."""
        self.close()
        try:
            self._connection = self._connect()
        except ConnectError as error:
            raise TargetLostError(error.what) from None
        if self._job is not None:
            rows = self.read(f"SELECT source FROM {SCHEMA}.job WHERE id = %s", [self._job[0]])
            self.lease(self._job[1], rows[0][0])

    def close(self) -> None:
        """Ends the connection. Safe to call twice."""
        self._connection.close()

    def name_of(self, table: Table) -> sql.Identifier:
        """The table's name for a statement, quoted and with its schema."""
        return (
            sql.Identifier(table.schema, table.relation)
            if table.schema
            else sql.Identifier(table.relation or table.name)
        )

    def _copy(self, name: sql.Composable, columns: Sequence[str], rows: pa.Table) -> None:
        statement = sql.SQL("COPY {} ({}) FROM STDIN (FORMAT csv)").format(
            name, sql.SQL(", ").join(map(sql.Identifier, columns))
        )
        rows = rows.select(list(columns))
        with self._reached(), self._connection.cursor() as cursor, cursor.copy(statement) as copy:
            for start in range(0, rows.num_rows, 8192):
                out = io.BytesIO()
                pyarrow.csv.write_csv(rows.slice(start, 8192), out, _CSV)
                copy.write(out.getbuffer())

    @contextmanager
    def _reached(self) -> Iterator[None]:
        """Turns psycopg's errors into the three that the engine knows: rows refused, lost, failed."""
        try:
            yield
        except psycopg.Error as error:
            raise _told(error, self.dsn, self._connection.closed or self._connection.broken) from None


class _Blocks:
    """A COPY's blocks as a file to read from."""

    closed = False

    def __init__(self, copy: psycopg.Copy, head: bytes) -> None:
        self._copy = copy
        self._left = bytearray(head)
        self._over = False

    def read(self, size: int = -1) -> bytes:
        """`size` bytes, fewer only at the end (the server sends a row at a time: that is too little to parse)."""
        while not self._over and (size < 0 or len(self._left) < size):
            block = self._copy.read()
            if block:
                self._left += block
            else:
                self._over = True
        taken = bytes(self._left if size < 0 else self._left[:size])
        del self._left[: len(taken)]
        return taken

    def readable(self) -> bool:
        """Always."""
        return True

    def close(self) -> None:
        """Nothing to do: the COPY belongs to its cursor."""


def _told(error: psycopg.Error, dsn: str, lost: bool) -> Exception:
    state = error.sqlstate or ""
    message = " ".join((error.diag.message_primary or str(error)).split())[:300]
    if lost or (isinstance(error, psycopg.OperationalError) and not state) or state.startswith(_PASSING):
        return TargetLostError(message)
    if state.startswith(("22", "23")) or state == "P0001":
        line = re.search(r"COPY [^,]+, line (\d+)(?:, column ([^:\n]+):)?", error.diag.context or "")
        return RowsRefusedError(
            _CODES.get(state, "cast" if state.startswith("22") else "database"),
            message,
            constraint=error.diag.constraint_name or "",
            column=error.diag.column_name or (line[2] if line and line[2] else ""),
            line=int(line[1]) if line else None,
        )
    if state == "42501":
        return CatalogueError(
            f"the target refuses: {message}",
            where=dsn,
            advice="grant the user of the target DSN what it needs",
        )
    advice = (
        "free some space on the target and run `migrate resume`"
        if state == "53100"
        else "mend the cause and run `migrate resume`"
    )
    return JobFailedError(f"the target failed: {message}", where=dsn, advice=advice)
