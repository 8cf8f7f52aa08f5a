"""What the engine asks of a target: its catalogue, rows in and out, and our own records beside them.

Methods say what, never how: each system answers in files of its own, and the engine knows no driver and no SQL of
one. All writing happens between `begin` and `commit`, but for what `prepare`, `lease` and `register_entity` note.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

import pyarrow as pa

from connectors.grants import Grant, TableUse
from connectors.measures import Room, Way
from connectors.protocols import Catalogue, Column, LedgerRow, Table, UniqueKey
from connectors.records import HeldRow, LoadedEntity, RetriedRow, Totals, Undone
from connectors.target_generations import LaterGenerations
from connectors.target_matching import RowsThere
from connectors.undo_list import UndoList


class Target(LaterGenerations, RowsThere, Protocol):
    """A system that records are carried into; one connection, for one thread.

    Every method may raise TargetLostError: what was not committed isn't there. What the target refuses for what rows
    hold is RowsRefusedError; all else is one clear error of workspace.errors.
    """

    dsn: str  # masked
    identity: str
    schema: str  # where our records are

    # -- the connection and its transactions ------------------------------------------------------

    def server(self) -> str:
        """Product and version."""
        ...

    def reconnect(self) -> None:
        """A new connection in place of a lost one, with a lease taken again; TargetLostError while there is none."""
        ...

    def begin(self) -> None:
        """Begins a transaction in which constraints are checked at once, so that the row is known."""
        ...

    def commit(self) -> None:
        """Ends it, durably. TargetLostError leaves open whether it did: the ledger knows."""
        ...

    def rollback(self) -> None:
        """Ends it without effect; safe on a lost connection."""
        ...

    def savepoint(self) -> AbstractContextManager[None]:
        """What happens within is undone when it raises RowsRefusedError."""
        ...

    def close(self) -> None:
        """Ends the connection, and with it the lease. Safe to call twice."""
        ...

    # -- the customer's tables --------------------------------------------------------------------

    def catalogue(self) -> Catalogue:
        """What is there, our own records left out. ConnectError."""
        ...

    def grants(self, uses: Sequence[TableUse] | None, user: str | None = None) -> list[Grant]:
        """The rights that a job needs which uses these tables, or (None) any; and which of them `user` lacks, by
        default the user of this connection. Tables that the target doesn't show are left out."""
        ...

    def is_empty(self, table: Table) -> bool:
        """True where the table holds no row."""
        ...

    def keys_held(
        self, table: Table, key: UniqueKey, marker: Column | None, besides: LoadedEntity | None
    ) -> Iterator[pa.RecordBatch]:
        """What the table holds of a unique key: text columns k0, k1, ..., and `deleted`, true where `marker` marks
        the row so. Rows in the crosswalk of `besides` are left out."""
        ...

    def next_ids(self, table: Table, column: Column, count: int) -> list[str]:
        """Takes `count` new ids for a column that has a sequence, as text, in order."""
        ...

    def insert(self, table: Table, columns: Sequence[str], rows: pa.Table) -> None:
        """Inserts text columns. RowsRefusedError where a row can't enter; nothing entered then."""
        ...

    def upsert(
        self,
        table: Table,
        columns: Sequence[str],
        identity: Sequence[str],
        rows: pa.Table,
        revived: Column | None = None,
    ) -> dict[tuple[str, ...], str]:
        """Inserts rows, or updates those whose identity the table holds. What the updated rows held before comes
        back as JSON by identity (as text). `revived` is a deletion marker to clear in them. RowsRefusedError as for
        `insert`."""
        ...

    def update(self, table: Table, identity: Sequence[str], columns: Sequence[str], rows: pa.Table) -> int:
        """Updates `columns` of rows found by `identity`, both in `rows`; how many were there. What rows of other jobs
        held before is kept, by the source key that `rows` has in _ph_key."""
        ...

    def raise_sequence(self, table: Table, column: Column) -> None:
        """Sets a column's sequence above its highest value; never lowers it."""
        ...

    def low_sequence(self, table: Table, column: Column) -> tuple[int, int] | None:
        """Where a column's sequence stands below its highest value: the two; None where it doesn't."""
        ...

    def found_rows(self, entity: LoadedEntity) -> Iterator[pa.RecordBatch]:
        """The entity's crosswalk, of every job, beside the hashes of what the target holds now: FOUND_COLUMNS."""
        ...

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
        ...

    def dangling(self, table: Table, column: str, referred: Table, id_column: str) -> int:
        """How many rows of `table` hold something in `column` that no row of `referred` has as its id."""
        ...

    # -- measures ---------------------------------------------------------------------------------

    def room(self, tables: Sequence[Table]) -> Room:
        """The room that tables and our own records take now, and how much was written to the server's log so far."""
        ...

    def way(self) -> Way:
        """How far away the target is; nothing is written to find out."""
        ...

    # -- the job ----------------------------------------------------------------------------------

    def prepare(self) -> None:
        """Makes the tables for our records where they are missing. CatalogueError without the privilege;
        WorkspaceError where a newer version made them."""
        ...

    def has_schema(self) -> bool:
        """True where our tables are there."""
        ...

    def lease(self, job: str, source: str) -> None:
        """Takes the job for this process until the connection ends. JobLockedError names who has it."""
        ...

    @property
    def lease_token(self) -> str:
        """What others `join` this process's lease by; empty without one. A lost lease may come back with another."""
        ...

    def keep_lease(self) -> None:
        """Sees that this process still has its lease, on a new connection where the old one was lost."""
        ...

    def join(self, job: str, token: str) -> None:
        """Has the batches that `take` begins written under the lease of another process. LeaseLostError where it
        isn't held, or not in this database."""
        ...

    def know(self, job: str) -> bool:
        """Finds a job to read about, without a lease. False when the target doesn't know it."""
        ...

    @property
    def job_id(self) -> int:
        """The number of the job taken or known in our records."""
        ...

    def source_of_job(self) -> str:
        """The source that the job taken or known is of."""
        ...

    def register_entity(self, source: str, entity: str, table: str) -> int:
        """The number of an entity of that source in our records, the same each time."""
        ...

    def know_entity(self, source: str, entity: str, table: str) -> bool:
        """Finds an entity's number without writing. False when our records don't have it."""
        ...

    def knows_entity(self, entity: str) -> bool:
        """True for an entity registered or found."""
        ...

    def entities_of_job(self) -> list[str]:
        """The entities that the job's ledger speaks of, by name."""
        ...

    # -- the ledger -------------------------------------------------------------------------------

    def ledger(self) -> list[LedgerRow]:
        """The job's ledger for the entities registered, oldest first, without what was retried since."""
        ...

    def take(self, row: LedgerRow) -> bool:
        """Puts the batch's row in the ledger, first of all in its transaction. False where it is there already: the
        batch was committed before, by whomever, and must not be loaded again."""
        ...

    def settle(self, row: LedgerRow) -> None:
        """Writes the batch's final counts in its ledger row, in the same transaction."""
        ...

    # -- the crosswalk ----------------------------------------------------------------------------

    def crosswalk(self, entity: str, batch: int, rows: pa.Table) -> None:
        """Writes crosswalk rows: old_id, new_id, source_hash, target_hash, replaced (text columns)."""
        ...

    def renew_crosswalk(self, entity: str, batch: int, rows: pa.Table) -> None:
        """Renews the hashes of crosswalk rows that are there, and makes them this job's: old_id, source_hash,
        target_hash. What they were before is kept."""
        ...

    def note_references(self, entity: str, rows: pa.Table) -> None:
        """Sets the reference hash of crosswalk rows: old_id, reference_hash."""
        ...

    def merge_crosswalk(self, entity: str, batch: int, rows: pa.Table) -> pa.Table:
        """Writes the crosswalk of merged rows, which point at the target row of another: old_id, home (the other's
        source key), source_hash, target_hash (text columns). Gives old_id and new_id of each; those whose home isn't in
        the target are left out."""
        ...

    def has_crosswalk(self, entity: str) -> bool:
        """True where the entity's crosswalk holds a row."""
        ...

    def crosswalk_rows(self, entity: str) -> Iterator[pa.RecordBatch]:
        """The entity's crosswalk, of every job: CROSSWALK_COLUMNS as text."""
        ...

    # -- the quarantine ---------------------------------------------------------------------------

    def quarantine(self, entity: str, batch: int, rows: pa.Table) -> None:
        """Writes quarantine rows: row (its number in the stage), key, field, code, signature, detail, raw (text)."""
        ...

    def clusters(self, entity: str, batch: int) -> list[tuple[str, str, str, int]]:
        """What a batch of the job put in quarantine: signature, code, field, how many rows."""
        ...

    def quarantined_keys(self, entity: str) -> list[tuple[str, int, int, int]]:
        """The source keys in quarantine, with how many rows of each, how many of those are dropped, and the first
        batch of them."""
        ...

    def quarantined_rows(
        self, entity: str = "", signature: str = "", limit: int | None = None
    ) -> Iterator[pa.RecordBatch]:
        """The job's rows in quarantine by entity and number, of one entity or signature where given:
        QUARANTINED_COLUMNS as text."""
        ...

    def quarantine_examples(self) -> Iterator[pa.RecordBatch]:
        """The first row of each entity and signature, an open one where there is one: QUARANTINED_COLUMNS as text."""
        ...

    def held_rows(self, entity: str, signature: str = "", *, dropped: bool = False) -> list[HeldRow]:
        """The entity's open rows in quarantine, of one signature where given; with `dropped`, those too. In the order
        of the stage."""
        ...

    def clusters_held(self, entity: str, batch: int | None = None) -> dict[int, list[dict[str, Any]]]:
        """What each batch has in quarantine: signature, code, field, and how many rows are open and dropped."""
        ...

    def drop_rows(self, entity: str, signature: str = "") -> dict[int, int]:
        """Marks the entity's open rows as dropped, of one signature where given; how many, by batch."""
        ...

    def next_step(self, entity: str, batch: int) -> int:
        """The step of the ledger that the next retry of the batch takes: odd, from 3 on."""
        ...

    def unfilled(self, entity: str) -> list[tuple[int, int]]:
        """Batches and steps of rows that left the quarantine and whose deferred references were not looked up yet."""
        ...

    def retried_rows(self, entity: str) -> list[RetriedRow]:
        """The entity's rows that left the quarantine."""
        ...

    def retry_totals(self, entity: str, batch: int | None = None) -> dict[int, Totals]:
        """By batch, for batches that were retried and not taken back; of one batch where given."""
        ...

    def settle_retry(self, row: LedgerRow, changes: pa.Table) -> None:
        """Takes the rows that are loaded or excluded out of the quarantine and notes them, gives those that stay their
        new reason (rows that `changes` leaves out stay as they are), and settles the ledger's row. `changes` is as
        CHANGES. JobFailedError where a row isn't in quarantine any more: nothing may be taken from it twice."""
        ...

    # -- taking back ------------------------------------------------------------------------------

    def undo_list(self, entities: Sequence[LoadedEntity], only: tuple[str, int] | None = None) -> UndoList:
        """What can be taken back of the job known, or of one batch (entity, number) of it. CatalogueError where the
        user can't see what refers to its rows."""
        ...

    def undone(self) -> Mapping[tuple[str, int, int], Undone]:
        """The job's batches that were taken back, by entity, batch and step."""
        ...

    def hold(self, row: LedgerRow) -> bool:
        """Locks the batch's row of the ledger until the transaction ends: who else takes it back waits. False where
        there is none."""
        ...

    def settle_undone(self, row: LedgerRow, deleted: int, restored: int, refused: int) -> Undone:
        """Writes that the batch was taken back: rows deleted and restored count up, `refused` is what stays; all three
        as they stand now. In a first step its rows in quarantine go too, and what was retried of them."""
        ...

    def tidy(self, table: Table) -> None:
        """Lets the target clear up after rows that went, where that speeds up what follows. Not in a transaction."""
        ...

    # -- cleaning up ------------------------------------------------------------------------------

    def owned_rows(self) -> dict[str, int]:
        """How many crosswalk rows the job owns, by entity."""
        ...

    def owned_crosswalk(self) -> Iterator[pa.RecordBatch]:
        """The crosswalk rows that the job owns, by entity and old id: EXPORTED_COLUMNS as text."""
        ...

    def other_jobs(self) -> list[str]:
        """The other jobs that have records in the target."""
        ...

    def hold_records(self) -> None:
        """Keeps jobs from beginning, and crosswalks from changing, until the transaction ends."""
        ...

    def remove_records(self) -> bool:
        """Deletes all records of the job but what other jobs need. True where the tables for records went too: no other
        job had anything there, and nothing of others hangs on them."""
        ...

    def cleaned_up(self) -> bool:
        """True where the job's records were taken out, and only rows that other jobs need are left."""
        ...
