"""What the engine asks of a target for later generations of a job's stage: a part of `connectors.target.Target`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import pyarrow as pa

from connectors.protocols import Column
from connectors.records import EditedRow, KeptEdit, LoadedEntity, StayingRow, SyncCounts


class LaterGenerations(Protocol):
    """Rows of the stage that others took the place of, rows that were edited in the target, and rows that leave it."""

    def superseded_rows(self, entity: str) -> dict[int, int]:
        """The entity's rows of the stage that are read no longer, since a sync brought others: number to batch."""
        ...

    def freed_rows(self, entity: str) -> list[int]:
        """The numbers of rows that were in quarantine until later ones took their place."""
        ...

    def superseded_counts(self, entity: str, batch: int | None = None) -> dict[int, dict[str, int]]:
        """How many rows of each batch are read no longer, by what had become of them (loaded, excluded, quarantined);
        those alone that `batch` took the place of, where given."""
        ...

    def supersede(self, entity: str, batch: int, over: pa.Table) -> None:
        """Notes that these rows (as OVER) are read no longer, and takes them out of the quarantine. Each once."""
        ...

    def edited_rows(
        self, entity: LoadedEntity, columns: Sequence[str], rows: pa.Table, base: pa.Table
    ) -> list[EditedRow]:
        """Locks the rows that are about to be updated, and gives those that hold something else in `columns` than was
        written. `rows` are as for `update`, with _ph_key. `base` holds what was written before, by _ph_key, with its
        checksum in _ph_target_hash; it counts where that is the crosswalk's."""
        ...

    def edited_references(self, entity: LoadedEntity, keys: Sequence[str]) -> list[str]:
        """Locks the rows of these source keys, and gives those whose deferred references are not what was filled."""
        ...

    def rehash(self, entity: LoadedEntity, keys: Sequence[str]) -> dict[str, str]:
        """Takes what the rows of these source keys hold now for what was written; their new checksums, by source key. Rows
        that aren't there are nothing here."""
        ...

    def note_kept(self, entity: LoadedEntity, batch: int, looked_at: Sequence[str], kept: Sequence[KeptEdit]) -> None:
        """Notes which of the rows `looked_at` (source keys) stay as they were edited, with the checksum of what they hold
        now; the others are noted no longer."""
        ...

    def kept_edits(self, entity: str) -> list[KeptEdit]:
        """The entity's rows that stay as they were edited, by source key."""
        ...

    def note_sync(self, entity: str, batch: int, counts: SyncCounts) -> None:
        """Writes a batch's counts that the ledger has no place for."""
        ...

    def sync_counts(self, entity: str, batch: int) -> SyncCounts:
        """What `note_sync` wrote; zeros where it wrote nothing."""
        ...

    def remove_rows(self, entity: LoadedEntity, keys: Sequence[str], *, edited: bool) -> tuple[int, list[StayingRow]]:
        """Deletes the rows of these source keys, with their crosswalk: how many; and those that stay, with the reason: they were
        there before the job, somebody edited them (unless `edited`), or a row that stays refers to them.
        RowsRefusedError where the target doesn't let one go."""
        ...

    def mark_rows(
        self, entity: LoadedEntity, marker: Column, keys: Sequence[str], *, edited: bool
    ) -> tuple[int, list[StayingRow]]:
        """Sets the deletion marker in the rows of these source keys, and notes that: how many; and those that stay as they are, as
        for `remove_rows`, but for references. RowsRefusedError."""
        ...

    def unmark_rows(self, entity: LoadedEntity, marker: Column, keys: Sequence[str]) -> None:
        """Clears the deletion marker in rows that a sync had set it in, and the note of that."""
        ...

    def marked_keys(self, entity: str) -> list[str]:
        """The source keys of rows that a sync has set the deletion marker in."""
        ...
