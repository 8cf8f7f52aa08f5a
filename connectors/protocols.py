"""What the engine asks of a source, and the words for what both systems hold; what it asks of a target is in target.py.

Sources send every value as text, just as the server gives it (binary stays binary): nothing is
interpreted on the way in. A catalogue says what is there; it never holds record values.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol

import pyarrow as pa

from connectors.grants import Grant
from workspace.errors import JobFailedError


class Kind(Enum):
    """The family of a column's type, the same for every system."""

    TEXT = "text"
    INTEGER = "integer"
    DECIMAL = "decimal"
    FLOAT = "float"
    BOOLEAN = "boolean"
    DATE = "date"
    TIME = "time"
    DATETIME = "datetime"  # without a zone
    INSTANT = "instant"  # timestamptz
    UUID = "uuid"
    ENUM = "enum"
    JSON = "json"
    ARRAY = "array"
    BINARY = "binary"
    OTHER = "other"


@dataclass(frozen=True)
class Column:
    """A column as the catalogue has it.

    `type` is the server's own spelling (`varchar(80)`); `length` counts characters; `labels` are an
    enum's (or an array of enums'); `element` is the kind of an array's elements. `generated` columns
    cannot be written. `default` is the server's SQL for it or None; `identity` is "", "always" or
    "by default"; `sequence` is the quoted name of the sequence that fills the column or "". A domain's
    column has its base type's kind and names the domain. `collation` is "" for the database's own;
    `exact` is False where the server holds different text to be equal (another case, accents).
    `padded` text has no blanks at its end (`char(n)`, a domain over it too); `padded` binary has zeros up to its
    length. A `bare` decimal is shown without needless zeros at its end.
    """

    name: str
    type: str
    kind: Kind
    nullable: bool = True
    length: int | None = None
    precision: int | None = None
    scale: int | None = None
    bits: int | None = None  # integers: 16, 32, 64
    labels: tuple[str, ...] = ()
    element: Kind | None = None
    has_default: bool = False
    generated: bool = False
    comment: str = ""
    default: str | None = None
    identity: str = ""
    sequence: str = ""
    domain: str = ""
    unsigned: bool = False
    collation: str = ""
    exact: bool = True
    padded: bool = False
    bare: bool = False


@dataclass(frozen=True)
class ForeignKey:
    """`columns` of this table point at `referred_columns` of `referred_table`.

    A `deferrable` key can be checked at COMMIT; `deferred` says that it is, unless told otherwise.
    """

    name: str
    columns: tuple[str, ...]
    referred_table: str
    referred_columns: tuple[str, ...]
    deferrable: bool = False
    deferred: bool = False


@dataclass(frozen=True)
class UniqueKey:
    """A unique index or constraint, the primary key included.

    `expressions` are in the server's SQL, one per key part: a plain column name or an expression
    such as `lower(email)`. `columns` are the columns they touch. `where` is a partial index's
    predicate or None. `nulls_distinct` is False for NULLS NOT DISTINCT. A `deferrable` key cannot be
    the arbiter of ON CONFLICT.
    """

    name: str
    expressions: tuple[str, ...]
    columns: tuple[str, ...]
    where: str | None = None
    nulls_distinct: bool = True
    primary: bool = False
    deferrable: bool = False


@dataclass(frozen=True)
class Table:
    """A table or view; for a source given as a SELECT, its columns only.

    `name` is what a plan says: qualified (`crm.people`) only where the connection would not find the
    bare name. `schema` and `relation` are the two parts, unquoted, for the SQL (`schema` is "" where
    a system has none). `checks` are conditions in the server's SQL. `privileges` are the verbs the
    user holds (select, insert, update, delete), None where the system does not say. `row_security`
    is True where policies may hide rows from the user. `engine` names what stores the table where that can't take back
    what it wrote, else "".
    """

    name: str
    columns: tuple[Column, ...]
    primary_key: tuple[str, ...] = ()
    foreign_keys: tuple[ForeignKey, ...] = ()
    unique_keys: tuple[UniqueKey, ...] = ()
    checks: tuple[str, ...] = ()
    rows_estimate: int | None = None
    comment: str = ""
    schema: str = ""
    relation: str = ""
    view: bool = False
    triggers: tuple[str, ...] = ()
    privileges: frozenset[str] | None = None
    row_security: bool = False
    engine: str = ""

    def column(self, name: str) -> Column | None:
        """The column of that exact name, or None."""
        return next((c for c in self.columns if c.name == name), None)


@dataclass(frozen=True)
class Catalogue:
    """All tables a connection shows, by name."""

    dialect: str  # sqlglot's name: mysql, postgres, sqlite, duckdb
    tables: dict[str, Table] = field(default_factory=dict)
    server: str = ""  # product and version, for doctor and the log


@dataclass(frozen=True)
class Page:
    """Rows in key order: all columns as text (or binary), and the key of the last row as text."""

    rows: pa.Table
    last_key: tuple[str, ...]


class Source(Protocol):
    """A system that records are read from. Never written to."""

    dsn: str  # masked
    dialect: str
    snapshot: bool  # True where pages() reads one consistent state
    answered: int | None  # rows of the last stream, once it was read to its end, as the server or the driver counts
    # them (and not what made pages of them); None where they don't
    notes: tuple[str, ...]  # lines for a person: what was left out when it was opened, or isn't as one would think

    def catalogue(self) -> Catalogue:
        """What is there. Raises ConnectError, CatalogueError."""
        ...

    def describe(self, relation: str) -> Table:
        """The columns of a table's name or of a SELECT in the source's dialect.

        CatalogueError when there is no such table or the SELECT does not run."""
        ...

    def count(self, relation: str, lacking: Sequence[str] = ()) -> int:
        """COUNT(*) of a table or SELECT, by the server: of its rows in which one of the columns `lacking` is NULL,
        where any are named."""
        ...

    def pages(
        self,
        relation: str,
        key: Sequence[str],
        *,
        after: tuple[str, ...] | None,
        size: int,
        since: tuple[str, str] | None = None,
        only: Sequence[str] = (),
    ) -> Iterator[Page]:
        """All rows in key order after `after` (None: from the start), `size` rows a page, every
        column as text or binary. Ordered and compared by the server's own collation; never OFFSET.
        An empty `key` reads the whole in the server's order in one go (cannot go on in the middle).
        `since`, a column and a value, leaves out rows whose column is less than that; those where it is NULL
        come. `only` names the columns to read, the key's among them; empty for all.

        A binary key's text is its bytes in hex. A row whose key is NULL, in any part, is in no page:
        the caller compares the rows read with `count`. One stream at a time; `close()` on the iterator
        ends one early. CatalogueError before the first row, SourceLostError in the middle.
        """
        ...

    def grants(self, relations: Sequence[str] | None, user: str | None = None) -> list[Grant]:
        """The rights that reading these relations needs, or (None) all tables; and which of them `user` lacks, by
        default the user of this connection. CatalogueError where there is no such table."""
        ...

    def query(self, sql: str, parameters: Sequence[object] = ()) -> list[tuple[object, ...]]:
        """A small SELECT of the survey, rows as the driver gives them. Identifiers must be quoted
        with `quote`; values go in `parameters` as %s."""
        ...

    def quote(self, identifier: str) -> str:
        """The identifier quoted for this dialect."""
        ...

    def close(self) -> None:
        """Ends the connection. Safe to call twice."""
        ...


@dataclass(frozen=True)
class LedgerRow:
    """One batch as the target's ledger has it. `step` 1 moved rows, 2 filled deferred references.

    Counts are rows; read = inserted + updated + unchanged + merged + excluded + quarantined in step 1.
    `checksum` is the sum, over the batch's loaded rows, of the last 60 bits of each row's target hash. `undone`
    where the batch was taken back since; the counts are still those of the load. Of the updated and unchanged, `matched`
    are one with a row that the target held before: None where the plan matches none, or an older version counted none.
    """

    entity: str
    batch: int
    step: int
    key_low: str
    key_high: str
    plan_version: int
    read: int = 0
    inserted: int = 0
    updated: int = 0
    unchanged: int = 0
    merged: int = 0
    excluded: int = 0
    quarantined: int = 0
    checksum: int = 0
    undone: bool = False
    matched: int | None = None


class RowsRefusedError(Exception):
    """The target refused rows for what they hold: a constraint, a type, a trigger.

    `code` is the product's reason code, `constraint` and `column` are names or "", `line` is the refused
    row's place in what was sent, from 1, or None where the target doesn't say; `message` is one line.
    """

    def __init__(
        self, code: str, message: str, *, constraint: str = "", column: str = "", line: int | None = None
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.constraint = constraint
        self.column = column
        self.line = line


class TargetLostError(JobFailedError):
    """The connection or the server is gone, or something that passes stood in the way (deadlock, time-out,
    too many connections): what was not committed isn't there, and trying again may work."""

    def __init__(
        self, what: str, *, where: str = "", advice: str = "see that the target answers, then give the command again"
    ) -> None:
        super().__init__(what, where=where, advice=advice)


class TargetBusyError(TargetLostError):
    """The target answers, and something that may pass stood in the way: a deadlock, a lock, a time-out. `what` says what
    it did with which kind of statement, `advice` what helps where that lasts."""


class LeaseLostError(TargetLostError):
    """The lease under which a process writes batches isn't held by the process that has the job: it is gone, or it
    lost its connection and is about to take the lease again."""
