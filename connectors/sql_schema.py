"""Our own tables in a target that is reached through SQLAlchemy: `packhorse_...`, beside the customer's own.

They say what the schema of a PostgreSQL target says (postgres_schema), in types that each database has. Changed only
by adding a step to STEPS; a step never changes once released.
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import mysql

PREFIX = "packhorse_"
METADATA = sa.MetaData()


class Exact(sa.types.TypeDecorator[str]):
    """Text that is told apart byte by byte, whatever the database's collation holds to be equal; it may be a key."""

    impl = sa.String
    cache_ok = True

    def __init__(self, length: int) -> None:
        super().__init__(length)
        self.most = length

    def load_dialect_impl(self, dialect: Any) -> Any:
        """Bytes in MySQL, where each collation pads or folds; text elsewhere."""
        plain = mysql.VARBINARY(self.most) if dialect.name in ("mysql", "mariadb") else sa.Text()
        return dialect.type_descriptor(plain)

    def process_bind_param(self, value: str | None, dialect: Any) -> Any:
        """The value as the database takes it."""
        return value.encode() if value is not None and dialect.name in ("mysql", "mariadb") else value

    def process_result_value(self, value: Any, dialect: Any) -> str | None:
        """The value as text."""
        return value.decode() if isinstance(value, bytes) else value


_LONG = sa.Text().with_variant(mysql.LONGTEXT(), "mysql", "mariadb")


def _table(name: str, *columns: sa.Column[Any], **options: Any) -> sa.Table:
    return sa.Table(
        PREFIX + name, METADATA, *columns, mysql_engine="InnoDB", mysql_charset="utf8mb4", mysql_collate="utf8mb4_bin",
        **options,
    )  # fmt: skip


def _number(name: str, **options: Any) -> sa.Column[int]:
    return sa.Column(name, sa.Integer, nullable=False, autoincrement=False, **options)


SCHEMA_VERSION = _table("schema", _number("version", primary_key=True))

JOB = _table(
    "job",
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("name", Exact(500), nullable=False, unique=True),
    sa.Column("source", _LONG, nullable=False),
    sa.Column("host", _LONG),
    sa.Column("pid", sa.Integer),
    sa.Column("started", sa.BigInteger),
    sa.Column("since", sa.BigInteger),
    sa.Column("beat", sa.BigInteger),
)
"""`since` is the lease's token; `started` tells a process from a later one of the same number; `beat` is when the
holder last began a batch. All three in microseconds."""

ENTITY = _table(
    "entity",
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("source", Exact(1500), nullable=False),
    sa.Column("name", Exact(500), nullable=False),
    sa.Column("target_table", Exact(500), nullable=False),
)

LEDGER = _table(
    "ledger",
    _number("job_id", primary_key=True),
    _number("entity_id", primary_key=True),
    _number("batch", primary_key=True),
    _number("step", primary_key=True),
    sa.Column("key_low", _LONG, nullable=False),
    sa.Column("key_high", _LONG, nullable=False),
    _number("plan_version"),
    *(_number(name) for name in ("read", "inserted", "updated", "unchanged", "merged", "excluded", "quarantined")),
    sa.Column("checksum", Exact(40), nullable=False),
    sa.Column("committed_at", sa.BigInteger, nullable=False),
    sa.Column("undone_at", sa.BigInteger),
    *(_number(name) for name in ("undone_deleted", "undone_restored", "undone_refused")),
)

CROSSWALK = _table(
    "crosswalk",
    _number("entity_id", primary_key=True),
    sa.Column("old_id", Exact(1500), primary_key=True),
    _number("job_id"),
    _number("batch"),
    sa.Column("new_id", Exact(1500), nullable=False),
    sa.Column("source_hash", Exact(36), nullable=False),
    sa.Column("target_hash", Exact(36), nullable=False),
    sa.Column("reference_hash", Exact(36)),
    sa.Column("replaced", _LONG),
    _number("merged", server_default="0"),
)
"""`merged` is 1 where the source row was merged into another's target row, which `new_id` names."""
sa.Index("packhorse_crosswalk_new", CROSSWALK.c.entity_id, CROSSWALK.c.new_id)
sa.Index("packhorse_crosswalk_batch", CROSSWALK.c.entity_id, CROSSWALK.c.job_id, CROSSWALK.c.batch)

QUARANTINE = _table(
    "quarantine",
    _number("job_id", primary_key=True),
    _number("entity_id", primary_key=True),
    sa.Column("row", sa.BigInteger, primary_key=True, autoincrement=False, quote=True),
    _number("batch"),
    sa.Column("key", Exact(1500), nullable=False, quote=True),
    *(sa.Column(name, _LONG, nullable=False) for name in ("field", "code", "signature", "detail", "raw")),
    sa.Column("status", Exact(10), nullable=False),
)

RETRIED = _table(
    "retried",
    _number("job_id", primary_key=True),
    _number("entity_id", primary_key=True),
    sa.Column("row", sa.BigInteger, primary_key=True, autoincrement=False, quote=True),
    *(_number(name) for name in ("batch", "step", "plan_version", "excluded")),
    sa.Column("edited", _LONG),
)

HELD_BEFORE = _table(
    "held_before",
    _number("entity_id", primary_key=True),
    sa.Column("old_id", Exact(1500), primary_key=True),
    _number("job_id", primary_key=True),
    _number("step", primary_key=True),
    sa.Column("n", sa.BigInteger, nullable=False),
    _number("batch"),
    sa.Column("held", _LONG),
    *(_number(name) for name in ("owner_job", "owner_batch")),
    sa.Column("source_hash", Exact(36), nullable=False),
    sa.Column("target_hash", Exact(36), nullable=False),
    sa.Column("reference_hash", Exact(36)),
)
"""One update of a row that another job owned: what it held (NULL where nothing of it was written) and its crosswalk
row then; `n` counts up as they are written."""


SUPERSEDED = _table(
    "superseded",
    _number("job_id", primary_key=True),
    _number("entity_id", primary_key=True),
    sa.Column("row", sa.BigInteger, primary_key=True, autoincrement=False, quote=True),
    *(_number(name) for name in ("batch", "of_batch")),
    sa.Column("outcome", Exact(20), nullable=False),
)
SYNCED = _table(
    "synced",
    *(_number(name, primary_key=True) for name in ("job_id", "entity_id", "batch")),
    *(_number(name) for name in ("kept", "asked", "deleted", "marked", "stayed")),
)
KEPT = _table(
    "kept",
    _number("job_id", primary_key=True),
    _number("entity_id", primary_key=True),
    sa.Column("old_id", Exact(1500), primary_key=True),
    sa.Column("new_id", Exact(1500), nullable=False),
    _number("batch"),
    sa.Column("fields", _LONG, nullable=False),
    _number("asked"),
    sa.Column("edited_hash", Exact(36)),
)
MARKED = _table(
    "marked",
    _number("job_id", primary_key=True),
    _number("entity_id", primary_key=True),
    sa.Column("old_id", Exact(1500), primary_key=True),
)
"""Rows that got the deletion marker from a sync."""


def _create(connection: sa.Connection) -> None:
    METADATA.create_all(connection)


STEPS = (_create,)
"""What makes the tables, in order; their version is how many have been done."""
