"""A target's empty copy to rehearse in: made, filled with what rows refer to, and answering for the keys that the
target itself holds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyarrow as pa

from connectors.copy_of_target import Difference
from connectors.dsn import Dsn
from connectors.postgres import PostgresTarget
from connectors.postgres_ddl import (
    check_empty,
    check_made,
    copy_referred_rows,
    copy_schema,
    differences_of_places,
    make_database,
    with_path,
)
from connectors.protocols import Column, Table, UniqueKey
from connectors.records import LoadedEntity
from connectors.scratch import ScratchServer


class PostgresCopy(PostgresTarget):
    """Rows go into the copy; the unique keys of the target itself count, as if its rows were there too."""

    def __init__(self, dsn: Dsn, original: PostgresTarget, differences: Sequence[Difference]) -> None:
        super().__init__(dsn, original.schema)
        self._original = original
        self.differences = tuple(differences)

    def is_empty(self, table: Table) -> bool:
        """True where the target's table holds no row."""
        return self._original.is_empty(table)

    def keys_held(
        self, table: Table, key: UniqueKey, marker: Column | None, besides: LoadedEntity | None
    ) -> Iterator[pa.RecordBatch]:
        """What the target's table holds of a unique key, without the rows that jobs brought in from the same source."""
        known = besides is not None and self._original.has_schema()
        known = known and self._original.knows_entity(besides.name if besides else "")
        return self._original.keys_held(table, key, marker, besides if known else None)

    def reconnect(self) -> None:
        """New connections to both."""
        self._original.reconnect()
        super().reconnect()


@contextmanager
def empty_copy(
    dsn: Dsn, original: PostgresTarget, filled: Sequence[str], folder: Path, into: Dsn | None
) -> Iterator[PostgresCopy]:
    """An empty copy of the target `original`, whose DSN is `dsn`: in a server of our own that goes with the block, or
    `into` an empty database, which stays. `filled` are the tables that rows will go into; `folder` is for files.

    CatalogueError where one of those can't be made there, UsageError where `into` isn't empty, JobFailedError."""
    catalogue = original.catalogue()
    differences: list[Difference] = []
    with ExitStack() as stack:
        if into is None:
            server = stack.enter_context(ScratchServer(folder / "server"))
            place, differences = make_database(dsn, server)
        else:
            check_empty(into)
            place = with_path(dsn, into)
        differences += differences_of_places(dsn, place)
        differences += copy_schema(dsn, place, folder / "schema.dump", sorted(original.schemas_of_ours()))
        differences += copy_referred_rows(dsn, place, catalogue, filled)
        copy = PostgresCopy(place, original, differences)
        stack.callback(copy.close)
        check_made(differences, copy.catalogue(), catalogue, filled)
        yield copy
