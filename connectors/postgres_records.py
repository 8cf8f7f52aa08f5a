"""Our own records in a PostgreSQL target: jobs, entities, the ledger, the crosswalk, quarantine; written and read.

Touches the tables of postgres_schema and no other. What is written here commits with the customer's rows or not
at all: the transaction is the caller's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pyarrow as pa
from psycopg import sql

from connectors.dsn import Dsn
from connectors.postgres_lease import PostgresLease
from connectors.postgres_rows import MERGED
from connectors.postgres_schema import SCHEMA
from connectors.protocols import LedgerRow
from connectors.records import CROSSWALK_COLUMNS


class PostgresRecords(PostgresLease):
    """The tables of our own schema, through one session."""

    def __init__(self, dsn: Dsn, schema: str = SCHEMA) -> None:
        super().__init__(dsn, schema)
        self._entities: dict[str, int] = {}
        self._names: dict[int, str] = {}
        self._batch: tuple[str, int, int] | None = None

    # -- entities -----------------------------------------------------------------------------------

    def register_entity(self, source: str, entity: str, table: str) -> int:
        """The number of an entity of that source in our schema, the same each time."""
        with self._reached(), self._connection.cursor() as cursor:
            cursor.execute(
                f"INSERT INTO {self.ours}.entity (source, name, target_table) VALUES (%s, %s, %s) ON CONFLICT DO NOTHING",
                [source, entity, table],
            )
            cursor.execute(
                f"SELECT id FROM {self.ours}.entity WHERE (source, name, target_table) = (%s, %s, %s)",
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
            f"SELECT id FROM {self.ours}.entity WHERE (source, name, target_table) = (%s, %s, %s)",
            [source, entity, table],
        )
        if rows:
            self._entities[entity] = rows[0][0]
            self._names[rows[0][0]] = entity
        return bool(rows)

    def knows_entity(self, entity: str) -> bool:
        """True for an entity registered or found."""
        return entity in self._entities

    def entity_id(self, entity: str) -> int:
        """The number of a registered entity."""
        return self._entities[entity]

    # -- the ledger -------------------------------------------------------------------------------

    def ledger(self) -> list[LedgerRow]:
        """The job's ledger for the entities registered, oldest first; what was retried since is in postgres_retry."""
        assert self._job is not None
        with self._reached(), self._connection.cursor() as cursor:
            cursor.execute(
                f"SELECT entity_id, batch, step, key_low, key_high, plan_version, read, inserted, updated, unchanged, merged, excluded, "
                # an older schema, which only reads, has no undone_at and no matched
                f"quarantined, to_jsonb(l) ->> 'undone_at' IS NOT NULL, (to_jsonb(l) ->> 'matched')::int FROM {self.ours}.ledger l WHERE job_id = %s AND step <= 2 "
                f"ORDER BY committed_at, entity_id, batch, step",
                [self._job[0]],
            )
            return [
                replace(LedgerRow(self._names[row[0]], *row[1:13]), undone=row[13], matched=row[14])
                for row in cursor
                if row[0] in self._names
            ]

    def take(self, row: LedgerRow) -> bool:
        """Puts the batch's row in the ledger, first of all in its transaction. False where it is there already:
        the batch was committed before, by whomever, and must not be loaded again. LeaseLostError for one who joined a
        lease that isn't held any more."""
        assert self._job is not None
        self._hold()
        self.writes_as(row.entity, row.batch, 2 if row.step % 2 == 0 else 1)
        with self._reached(), self._connection.cursor() as cursor:
            cursor.execute(
                f"INSERT INTO {self.ours}.ledger (job_id, entity_id, batch, step, key_low, key_high, plan_version, read, inserted, updated, "
                f"unchanged, merged, excluded, quarantined, checksum, keeps_before) "
                f"VALUES (%s, %s, %s, %s, %s, %s, %s, %s, 0, 0, 0, 0, 0, 0, 0, true) "
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

    def writes_as(self, entity: str, batch: int, step: int) -> None:
        """What is written from now on is of that batch and step, where it has to be taken back."""
        self._batch = (entity, batch, step)

    def settle(self, row: LedgerRow) -> None:
        """Writes the batch's final counts in its ledger row, in the same transaction."""
        assert self._job is not None
        with self._reached():
            self._connection.execute(
                f"UPDATE {self.ours}.ledger SET inserted = %s, updated = %s, unchanged = %s, merged = %s, excluded = %s, quarantined = %s, checksum = %s, "
                f"matched = %s WHERE (job_id, entity_id, batch, step) = (%s, %s, %s, %s)",
                [row.inserted, row.updated, row.unchanged, row.merged, row.excluded, row.quarantined, row.checksum,
                 row.matched, self._job[0], self._entities[row.entity], row.batch, row.step],
            )  # fmt: skip

    # -- the crosswalk ----------------------------------------------------------------------------

    def crosswalk(self, entity: str, batch: int, rows: pa.Table) -> None:
        """Writes crosswalk rows: old_id, new_id, source_hash, target_hash, replaced (text columns)."""
        assert self._job is not None
        rows = self._numbered(entity, batch, rows)
        self._copy(sql.Identifier(self.schema, "crosswalk"), rows.column_names, rows)

    def renew_crosswalk(self, entity: str, batch: int, rows: pa.Table) -> None:
        """Renews the hashes of crosswalk rows that are there, and makes them this job's: old_id, source_hash,
        target_hash. What they were before is kept."""
        self._renew(entity, batch, rows, ("source_hash", "target_hash"), True)

    def note_references(self, entity: str, rows: pa.Table) -> None:
        """Sets the reference hash of crosswalk rows: old_id, reference_hash."""
        self._renew(entity, 0, rows, ("reference_hash",), False)

    def _renew(self, entity: str, batch: int, rows: pa.Table, columns: Sequence[str], own: bool) -> None:
        assert self._job is not None
        with self._reached(), self._connection.cursor() as cursor:
            cursor.execute("DROP TABLE IF EXISTS pg_temp.packhorse_hashes")
            cursor.execute(
                f"CREATE TEMP TABLE packhorse_hashes ON COMMIT DROP AS SELECT old_id, {', '.join(columns)} FROM {self.ours}.crosswalk WHERE false",
                [],
            )
            self._copy(sql.Identifier("pg_temp", "packhorse_hashes"), ["old_id", *columns], rows)
            if own:
                self._keep_before(sql.SQL("pg_temp.packhorse_hashes r"), "old_id", sql.SQL("NULL::jsonb"))
            mine = f", job_id = {self._job[0]}, batch = {int(batch)}" if own else ""
            cursor.execute(
                f"UPDATE {self.ours}.crosswalk x SET {', '.join(f'{c} = h.{c}' for c in columns)}{mine} FROM pg_temp.packhorse_hashes h "
                f"WHERE x.entity_id = %s AND x.old_id = h.old_id",
                [self._entities[entity]],
            )

    def _keep_before(self, rows: sql.Composable, key: str, held: sql.Composable) -> None:
        """Keeps what the batch at hand is about to write over in rows that other jobs own, so that it can be taken
        back: `held` of each row of `rows` (called r) whose source key stands in the column `key`, and its
        crosswalk row. What the batch kept of a row already stays."""
        assert self._job is not None
        if self._batch is None:
            return
        entity, batch, step = self._batch
        with self._reached(), self._connection.cursor() as cursor:
            cursor.execute(
                f"SELECT 1 FROM {self.ours}.ledger WHERE entity_id = %s AND job_id <> %s LIMIT 1",
                [self._entities[entity], self._job[0]],
            )
            if cursor.fetchone() is None:
                return
            cursor.execute(
                sql.SQL(
                    "INSERT INTO {schema}.held_before (entity_id, old_id, job_id, batch, step, held, owner_job, owner_batch, "
                    "source_hash, target_hash, reference_hash) "
                    "SELECT x.entity_id, x.old_id, {job}, {batch}, {step}, {held}, x.job_id, x.batch, "
                    "x.source_hash, x.target_hash, x.reference_hash FROM {schema}.crosswalk x JOIN {rows} ON r.{key} = x.old_id "
                    "WHERE x.entity_id = {entity} AND x.job_id <> {job} ON CONFLICT DO NOTHING"
                ).format(
                    schema=sql.Identifier(self.schema), job=sql.Literal(self._job[0]), batch=sql.Literal(batch), step=sql.Literal(step),
                    held=held, rows=rows, key=sql.Identifier(key), entity=sql.Literal(self._entities[entity]),
                )
            )  # fmt: skip
            if step == 2:  # rows whose first step renewed nothing but their hashes
                cursor.execute(
                    sql.SQL(
                        "UPDATE {}.held_before b SET held = {} FROM {} WHERE (b.entity_id, b.job_id, b.step) = ({}, {}, 1) "
                        "AND b.held IS NULL AND b.old_id = r.{}"
                    ).format(
                        sql.Identifier(self.schema), held, rows, sql.Literal(self._entities[entity]), sql.Literal(self._job[0]),
                        sql.Identifier(key),
                    )
                )  # fmt: skip

    def crosswalk_rows(self, entity: str) -> Iterator[pa.RecordBatch]:
        """The entity's crosswalk, of every job: CROSSWALK_COLUMNS as text; `merged` and `replaced` are t or f."""
        return self.stream(
            sql.SQL("SELECT {}, {}, replaced IS NOT NULL FROM {} x WHERE entity_id = {}").format(
                sql.SQL(", ").join(map(sql.Identifier, CROSSWALK_COLUMNS[:-2])),
                MERGED,
                sql.Identifier(self.schema, "crosswalk"),
                sql.Literal(self._entities[entity]),
            ),
            CROSSWALK_COLUMNS,
        )

    def merge_crosswalk(self, entity: str, batch: int, rows: pa.Table) -> pa.Table:
        """Writes the crosswalk of merged rows: old_id, home, source_hash, target_hash (text columns); old_id and new_id of
        those whose home is in the target."""
        columns = ["old_id", "home", "source_hash", "target_hash"]
        place = self.temporary(
            "packhorse_merged", "old_id text, home text, source_hash uuid, target_hash uuid", rows.select(columns)
        )
        written = self.read(
            sql.SQL(
                "INSERT INTO {crosswalk} (entity_id, job_id, batch, old_id, new_id, source_hash, target_hash, merged) "
                "SELECT {entity}, {job}, {batch}, m.old_id, x.new_id, m.source_hash, m.target_hash, true FROM {place} m "
                "JOIN {crosswalk} x ON x.entity_id = {entity} AND x.old_id = m.home RETURNING old_id, new_id"
            ).format(
                crosswalk=sql.Identifier(self.schema, "crosswalk"), entity=sql.Literal(self.entity_id(entity)),
                job=sql.Literal(self.job_id), batch=sql.Literal(batch), place=place,
            )
        )  # fmt: skip
        return pa.table(
            {name: pa.array([row[i] for row in written], pa.string()) for i, name in enumerate(("old_id", "new_id"))}
        )

    def has_crosswalk(self, entity: str) -> bool:
        """True where the entity's crosswalk holds a row."""
        return bool(
            self.read(f"SELECT 1 FROM {self.ours}.crosswalk WHERE entity_id = %s LIMIT 1", [self._entities[entity]])
        )

    # -- quarantine -------------------------------------------------------------------------------

    def quarantine(self, entity: str, batch: int, rows: pa.Table) -> None:
        """Writes quarantine rows: row (its number in the stage), key, field, code, signature, detail, raw (text columns)."""
        rows = self._numbered(entity, batch, rows)
        self._copy(sql.Identifier(self.schema, "quarantine"), rows.column_names, rows)

    def clusters(self, entity: str, batch: int) -> list[tuple[str, str, str, int]]:
        """What a batch of the job put in quarantine: signature, code, field, how many rows."""
        return self.read(
            f"SELECT signature, code, field, count(*)::int FROM {self.ours}.quarantine "
            f"WHERE (job_id, entity_id, batch) = (%s, %s, %s) GROUP BY 1, 2, 3 ORDER BY 1, 2, 3",
            [self.job_id, self._entities[entity], batch],
        )

    def _numbered(self, entity: str, batch: int, rows: pa.Table) -> pa.Table:
        assert self._job is not None
        for name, value in (
            ("entity_id", self._entities[entity]),
            ("job_id", self._job[0]),
            ("batch", batch),
        ):
            rows = rows.append_column(name, pa.repeat(pa.scalar(str(value)), rows.num_rows))
        return rows
