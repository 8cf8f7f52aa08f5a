"""What the engine asks of a target about rows that it held before a job: a part of `connectors.target.Target`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

import pyarrow as pa

from connectors.protocols import Column, Table, UniqueKey
from connectors.records import Fill, Filled, FittingRow, LoadedEntity


class RowsThere(Protocol):
    """Rows that a target held before a job, or that others add while it runs: which they are, and what they take over."""

    def rows_held(
        self, entity: LoadedEntity, columns: Sequence[Column], marker: Column | None, *, ours: bool
    ) -> Iterator[pa.RecordBatch]:
        """What the entity's table held before the job, as text: the id as _ph_held, the source key of a row that the
        target held before an earlier job too, as _ph_owner (NULL for the others), then `columns`. Rows that `marker` marks
        as deleted are left out. `ours`: our records are in the target."""
        ...

    def fill(
        self, entity: LoadedEntity, rules: Mapping[str, Fill], rows: pa.Table, by: Sequence[Sequence[str]] = ()
    ) -> Filled:
        """Locks rows found by their id, and fills columns of them as `rules` say, by what they hold at that instant; rows
        that aren't there are left out. So are, where `by` gives rules of columns, those that hold something else in them than
        `rows` says in FIT. What rows of other jobs held is kept, by the source key that `rows` has in _ph_key.
        RowsRefusedError as for `update`."""
        ...

    def keep_others_out(self, table: Table) -> None:
        """Has whoever else writes to the table wait until the transaction ends, and waits first for those who write now;
        reading goes on. To be called first in a transaction, while it holds nothing that they might wait for.
        TargetBusyError where they aren't done within a few seconds."""
        ...

    def rows_fitting(
        self, entity: LoadedEntity, rules: Sequence[UniqueKey], rows: pa.Table, marker: Column | None
    ) -> list[FittingRow]:
        """Which of `rows` (_ph_n, and the columns of the rules) fit rows that the table holds at this instant and that the
        job didn't write, by number: each by the first rule that fits any. Two rows fit where they are equal as the rule's
        key compares them, and nothing is NULL or blank. `marker` as for `rows_held`; our records are in the target.
        RowsRefusedError where a value is none of its column's type."""
        ...

    def values_before(
        self, entity: LoadedEntity, keys: Sequence[str], columns: Sequence[Column]
    ) -> dict[str, list[str | None]]:
        """What rows that the target held before the job, by source key, held in these columns when the job first wrote to
        them, as the target spells it. Keys of other rows are left out."""
        ...
