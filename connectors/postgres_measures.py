"""What room a PostgreSQL target's rows take, what it wrote to its log, and how far away it is. Reads only."""

from __future__ import annotations

import time
from collections.abc import Sequence
from statistics import median

from psycopg import sql

from connectors.measures import Room, Way
from connectors.postgres_cleanup import PostgresCleanup
from connectors.postgres_rows import name_of
from connectors.protocols import Table

_PROBES = 7
_PROBE_BYTES = 1_000_000


class PostgresMeasures(PostgresCleanup):
    """Measures of one target, through its session."""

    def room(self, tables: Sequence[Table]) -> Room:
        """The room that tables and our own records take now, and how much was written to the server's log so far."""
        sizes = {}
        for table in tables:
            ((rows, indexes),) = self.read(
                sql.SQL(
                    "SELECT coalesce(sum(pg_table_size(p.relid)), pg_table_size(t)), coalesce(sum(pg_indexes_size(p.relid)), pg_indexes_size(t)) "
                    "FROM (SELECT {}::regclass AS t) o LEFT JOIN LATERAL pg_partition_tree(t) p ON true GROUP BY t"
                ).format(sql.Literal(name_of(table).as_string()))
            )
            sizes[table.name] = (int(rows), int(indexes))
        own = self.read(
            "SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
            "WHERE n.nspname = %s AND c.relkind = 'r'",
            [self.schema],
        )
        log = self.read(
            "SELECT CASE WHEN pg_is_in_recovery() THEN 0 ELSE pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0') END"
        )
        return Room(sizes, int(own[0][0]), int(log[0][0]))

    def way(self) -> Way:
        """How long a question takes there and back, and how fast bytes go there: nothing is written."""
        trips, sends = [], []
        probe = "x" * _PROBE_BYTES
        for _ in range(_PROBES):
            started = time.perf_counter()
            self.read("SELECT 1")
            trips.append(time.perf_counter() - started)
        for _ in range(3):
            started = time.perf_counter()
            self.read("SELECT octet_length(%s::text)", [probe])
            sends.append(time.perf_counter() - started)
        trip = median(trips)
        return Way(trip, _PROBE_BYTES / max(median(sends) - trip, 1e-6))
