"""Both sides of a measurement: the legacy CRM in MariaDB, the same rows as they should arrive, and empty targets.

The clean rows come from what is known of the sample, not from a load, so no peer waits for ours, and what
each one brought over can be held against them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psycopg

from sample_data import CLOUD_SQL, World
from sample_data.form_csv import write_csv
from sample_data.form_mariadb import write_mariadb
from sample_data.form_postgresql import write_postgresql
from sample_data.legacy import source_batches
from sample_data.lines import tab_lines
from sample_data.servers import Database, MariadbServer, PostgresServer
from sample_data.truth import truth_tables

ENTITIES = {"users": "members", "campaigns": "campaigns", "accounts": "companies", "contacts": "people"}
"""What is carried over: entities of the gold plan and the tables that they go to, in the order of references."""
_LATER = "primary_contact_id"  # companies point at people, which come after them: no single pass can fill it
_PEER = "bench"
_TYPES = (
    "SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute WHERE attnum > 0 AND attrelid = '{}'::regclass"
)
_CHECKSUM = "SELECT count(*), coalesce(sum(hashtextextended(ROW({})::text, 0)::numeric), 0)::text FROM {}"


@dataclass(frozen=True)
class CleanTable:
    """Rows that need no converting: in MariaDB as `clean_NAME`, for the target's table NAME.

    `types` are the target's types by column, in order. `count` and `checksum` are what should arrive.
    """

    name: str
    types: Mapping[str, str]
    count: int = 0
    checksum: str = ""

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns in order."""
        return tuple(self.types)


@dataclass
class Systems:
    """Two servers in a folder, filled once. `clean` are the clean tables in the order of references.

    `legacy` holds the messy tables and the clean ones. What is made here goes with `close`.
    """

    folder: Path
    contacts: int
    seed: int
    clean: tuple[CleanTable, ...] = ()
    forms: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.mariadb = MariadbServer(self.folder / "mariadb")
        # the sample's keys come in no order: with a small buffer pool, filling the tables is all waiting
        self.mariadb.run("SET GLOBAL innodb_buffer_pool_size = 4 * 1024 * 1024 * 1024")
        self.mariadb.run(f"CREATE USER {_PEER}@'%' IDENTIFIED BY '{_PEER}'; GRANT SELECT ON *.* TO {_PEER}@'%'")
        self.postgres = PostgresServer(self.folder / "postgres")
        self.postgres.run(f"CREATE ROLE {_PEER} SUPERUSER LOGIN PASSWORD '{_PEER}'")
        self.legacy = self.mariadb.new_database()
        self._reference = self.new_target()

    @property
    def versions(self) -> dict[str, str]:
        """Both servers' versions by name."""
        return {
            "mariadb": str(self.mariadb.rows("SELECT version()")[0][0]),
            "postgresql": str(self.postgres.rows("SHOW server_version")[0][0]),
        }

    @property
    def reader_dsn(self) -> str:
        """The legacy database for peers: a user with a password that each of them can spell."""
        return self.mariadb.dsn(self.legacy.name, _PEER, _PEER)

    def writer_dsn(self, target: Database) -> str:
        """A target for peers, likewise."""
        return self.postgres.dsn(target.name, _PEER, _PEER)

    def fill(self) -> None:
        """Writes the legacy CRM and the clean tables into MariaDB, and takes the checksums of what should arrive."""
        world = World(self.contacts, self.seed, "mariadb")
        write_mariadb(self.legacy.dsn, source_batches(world, only=tuple(ENTITIES)))
        self.forms["mariadb"] = self.legacy.dsn
        self.clean = tuple(self._fill_clean(world, entity, table) for entity, table in ENTITIES.items())

    def fill_form(self, form: str) -> None:
        """Writes the CRM in another form of the source: `postgresql` or `csv`. Its DSN is then in `forms`."""
        batches = source_batches(World(self.contacts, self.seed, form), only=tuple(ENTITIES))
        if form == "csv":
            write_csv(self.folder / "csv", batches)
            self.forms[form] = str(self.folder / "csv")
        else:
            database = self.postgres.new_database()
            write_postgresql(database.socket_dsn, batches)
            self.forms[form] = database.dsn

    def new_target(self) -> Database:
        """An empty database with the cloud schema: all indexes, foreign keys and checks."""
        database = self.postgres.new_database()
        database.run(CLOUD_SQL.read_text(encoding="utf-8"))
        return database

    def arrived(self, target: Database, place: str) -> tuple[int, bool]:
        """How many rows the four tables hold, and whether they are the rows that should be there.

        `place` is what stands before a table's name: a schema, and what a peer puts before the name.
        """
        rows, same = 0, True
        for table in self.clean:
            count, checksum = self._checksum(target, table, f"{place}{table.name}")
            rows += count
            same = same and (count, checksum) == (table.count, table.checksum)
        return rows, same

    def without_secrets(self, text: str) -> str:
        """The text without what a peer may have quoted of a DSN's login."""
        for secret in (f"{_PEER}:{_PEER}@", self.mariadb.password, quote(self.mariadb.password, safe="")):
            text = text.replace(secret, "***")
        return text

    def settle(self) -> None:
        """Writes out what the last load left in the target's server, so that the next one doesn't pay for it."""
        self.postgres.run("CHECKPOINT")

    def close(self) -> None:
        """Ends both servers and deletes their folders."""
        self.mariadb.remove()
        self.postgres.remove()

    def _fill_clean(self, world: World, entity: str, name: str) -> CleanTable:
        types: dict[str, str] = {}
        for rows in truth_tables(world, entity):
            if not types:
                types = self._make_clean(name, ["id" if c == "_id" else c for c in _carried(rows)])
            self._add_clean(name, tuple(types), tab_lines(rows.select(_carried(rows))))
        table = CleanTable(name, types)
        count, checksum = self._checksum(self._reference, table, f"reference.{name}")
        self._reference.run(f"DROP TABLE reference.{name}")
        return replace(table, count=count, checksum=checksum)

    def _make_clean(self, name: str, columns: list[str]) -> dict[str, str]:
        """Makes the table on both sides; the target's types by column."""
        listed = ", ".join(f"`{c}` text" for c in columns)
        self.legacy.run(f"CREATE TABLE clean_{name} ({listed}) CHARACTER SET utf8mb4")
        self._reference.run(
            f"CREATE SCHEMA IF NOT EXISTS reference; CREATE UNLOGGED TABLE reference.{name} (LIKE {name} INCLUDING DEFAULTS INCLUDING IDENTITY)"
        )
        types = dict(self._reference.rows(_TYPES.format(name)))
        return {column: str(types[column]) for column in columns}

    def _add_clean(self, name: str, columns: tuple[str, ...], lines: bytes) -> None:
        path = self.folder / "clean.tsv"
        path.write_bytes(lines)
        listed = ", ".join(f"`{c}`" for c in columns)
        self.legacy.run(
            f"LOAD DATA LOCAL INFILE '{path}' INTO TABLE clean_{name} CHARACTER SET utf8mb4 "
            f"FIELDS TERMINATED BY '\\t' ESCAPED BY '\\\\' LINES TERMINATED BY '\\n' ({listed})"
        )
        path.unlink()
        command = f"COPY reference.{name} ({', '.join(columns)}) FROM STDIN".encode()
        with psycopg.connect(self._reference.dsn) as connection, connection.cursor().copy(command) as copy:
            copy.write(lines)

    def _checksum(self, database: Database, table: CleanTable, place: str) -> tuple[int, str]:
        # cast, so that the same rows in another DDL of text count as the same
        columns = ", ".join(f'"{column}"::{kind}' for column, kind in table.types.items())
        ((count, checksum),) = database.rows(_CHECKSUM.format(columns, place))
        return int(count), str(checksum)


def _carried(rows: Any) -> list[str]:
    return [column for column in rows.column_names if column not in ("_key", _LATER)]
