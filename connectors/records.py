"""What is said of loaded rows and of our own records in a target: the words that the engine and each target share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import pyarrow as pa

from connectors.protocols import Column, Table

CROSSWALK_COLUMNS = (
    "old_id", "new_id", "source_hash", "target_hash", "reference_hash", "job_id", "batch", "merged", "replaced",
)  # fmt: skip
"""A row of the crosswalk. `merged` is t where the source row was merged into the target row of another, `replaced` where the
target held the row before, and what it held is kept."""

EXPORTED_COLUMNS = ("entity", "old_id", "new_id")
"""The crosswalk as it is handed out; the parts of a key of several columns are joined with U+001F."""

FOUND_COLUMNS = (
    "old_id",
    "new_id",
    "batch",
    "target_hash",
    "reference_hash",
    "found_hash",
    "found_reference",
    "own",
    "merged",
    "replaced",
)
"""A row of the crosswalk beside what the target holds now. Hashes are 32 hexadecimal digits; `found_hash` is NULL
where the row is gone, `found_reference` where all its deferred references are NULL; `own` is t for the job's own,
`merged` and `replaced` as in the crosswalk."""

QUARANTINED_COLUMNS = ("entity", "row", "key", "field", "code", "signature", "detail", "raw", "status")

CHANGES = pa.schema(
    [(name, pa.string()) for name in ("row", "outcome", "edited", "field", "code", "signature", "detail")]
)
"""What becomes of rows that are retried: `outcome` is loaded, excluded or stays (then with its new reason)."""

OVER = pa.schema([(name, pa.string()) for name in ("n", "of_batch", "excluded")])
"""Rows of the stage that are read no longer: number, batch, and whether the plan excluded them."""

Edits = dict[str, str | None]
"""Values that a person edited, by source column; binary as hexadecimal digits."""

Undone = tuple[int, int, int]
"""Rows of a batch deleted and restored, over all times it was taken back, and rows that stay."""


@dataclass(frozen=True)
class HashedColumn:
    """One column's part in a row's hash: the text that the target shows for it where `text`, else only whether there
    is a value. A `deferred` one counts as NULL: it has a hash of its own."""

    column: Column
    text: bool
    deferred: bool = False


@dataclass(frozen=True)
class LoadedEntity:
    """An entity as it stands in the target: where its rows are, what finds one by the crosswalk's new id (whose parts
    are joined with U+001F), and what its hashes are made of, in order."""

    name: str
    to: str
    table: Table
    identity: tuple[Column, ...]
    hashed: tuple[HashedColumn, ...]
    deferred: tuple[Column, ...]
    restored: tuple[Column, ...]
    """The columns that a row which is taken back gets back."""


FIT = "_ph_fit"
"""The column of rows to fill that says what made them fit: the number of the rule, a colon, and what the target's row held
in the rule's columns, as text, joined with U+001F; NULL for rows that need not fit."""


@dataclass(frozen=True)
class Fill:
    """What a row of the target takes over into a column: the source's value where it holds nothing (`empty`), where the
    source has one (`over`), or not at all (`keep`). A flag that is `strict` on either side stays so, whatever `how` says."""

    how: Literal["empty", "over", "keep"]
    strict: bool | None = None


@dataclass(frozen=True)
class FilledRow:
    """A row of the target that was filled: what it held before, as JSON, and the hashes of what it holds now (32
    hexadecimal digits; `reference_hash` None where all its deferred references are NULL)."""

    held: str
    target_hash: str
    reference_hash: str | None


@dataclass(frozen=True)
class Filled:
    """Rows of the target that were filled, by source key; `changed` of them hold something else now."""

    rows: Mapping[str, FilledRow]
    changed: int


@dataclass(frozen=True)
class FittingRow:
    """A row that fits rows of the target: its number, the number of the rule, how many rows it fits, and of those the
    lowest id, its FIT, and the source key of a row that one is matched with already (None where none is)."""

    n: int
    rule: int
    fits: int
    held: str
    fit: str
    owner: str | None


@dataclass(frozen=True)
class HeldRow:
    """A row in quarantine: its batch, its number in the stage, its key, and whether it was dropped."""

    batch: int
    row: int
    key: str
    dropped: bool


@dataclass(frozen=True)
class RetriedRow:
    """A row that left the quarantine: by which step of its batch's ledger, and which plan version."""

    batch: int
    step: int
    row: int
    plan_version: int
    excluded: bool
    edited: Edits


@dataclass(frozen=True)
class Totals:
    """What became of a batch's rows that left the quarantine, over all times; `references` are rows that had some
    filled then. `step` is the last in the ledger."""

    step: int = 0
    plan_version: int = 0
    inserted: int = 0
    updated: int = 0
    unchanged: int = 0
    merged: int = 0
    excluded: int = 0
    references: int = 0

    @property
    def left(self) -> int:
        """Rows that left the quarantine."""
        return self.inserted + self.updated + self.unchanged + self.merged + self.excluded


@dataclass(frozen=True)
class SlowKey:
    """A foreign key of `table` (schema and relation) to an entity's table without an index on `columns`: for each row
    that goes, the target looks through all of it."""

    entity: str
    table: tuple[str, str]
    columns: tuple[str, ...]


@dataclass(frozen=True)
class KeptRow:
    """A row that stays: its source key, its id in the target, and why."""

    entity: str
    key: tuple[str, ...]
    id: str
    reason: str


@dataclass(frozen=True)
class EditedRow:
    """A row of the target that a person edited: its source key, the columns they edited, and those that hold something
    else than the source says now. Where it isn't `known` what was written, all of the latter count as edited."""

    key: str
    known: bool
    edited: frozenset[str]
    differs: frozenset[str]


@dataclass(frozen=True)
class KeptEdit:
    """A row that stays as it was edited: its source key, its id, the fields that differ from what the source says
    (joined with ', '), and whether a person is to say what holds. `edited_hash` is the checksum of what it held then
    (32 hexadecimal digits, empty until it is noted)."""

    old_id: str
    new_id: str
    fields: str
    asked: bool
    edited_hash: str = ""


@dataclass(frozen=True)
class SyncCounts:
    """Of a sync's batch, rows of the target: edited ones that stay, wholly or in part, of which for `asked` a person is
    to say what holds; and rows that the source has no longer: deleted, marked as deleted, or left there."""

    kept: int = 0
    asked: int = 0
    deleted: int = 0
    marked: int = 0
    stayed: int = 0


@dataclass(frozen=True)
class StayingRow:
    """A row of the target that stays although the source has it no longer: its source key, its id, why, and whether that
    is because somebody edited it."""

    old_id: str
    new_id: str
    reason: str
    edited: bool = False
