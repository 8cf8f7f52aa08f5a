"""Which foreign keys of a PostgreSQL database point at a table, from wherever: what would stop a row's going, or go
or change with it.

Reads pg_catalog alone; a row of a user's table is never read here.
"""

from __future__ import annotations

from dataclasses import dataclass

from psycopg import sql

from connectors.postgres_session import PostgresSession
from connectors.protocols import Table

_REFERRERS = """
SELECT f.conname, n.nspname, c.relname,
       ARRAY(SELECT a.attname::text FROM unnest(f.conkey) WITH ORDINALITY k(number, place)
               JOIN pg_attribute a ON a.attrelid = f.conrelid AND a.attnum = k.number ORDER BY k.place),
       ARRAY(SELECT a.attname::text FROM unnest(f.confkey) WITH ORDINALITY k(number, place)
               JOIN pg_attribute a ON a.attrelid = f.confrelid AND a.attnum = k.number ORDER BY k.place),
       NOT row_security_active(c.oid) AND has_schema_privilege(n.oid, 'USAGE')
         AND NOT EXISTS (SELECT FROM unnest(f.conkey) k(number) WHERE NOT has_column_privilege(c.oid, k.number, 'SELECT')),
       EXISTS (SELECT FROM pg_index i WHERE i.indrelid = c.oid AND i.indisvalid AND i.indpred IS NULL AND i.indkey[0] = ANY(f.conkey))
  FROM pg_constraint f JOIN pg_class c ON c.oid = f.conrelid JOIN pg_namespace n ON n.oid = c.relnamespace
  JOIN pg_class t ON t.oid = f.confrelid JOIN pg_namespace s ON s.oid = t.relnamespace
 WHERE f.contype = 'f' AND (s.nspname, t.relname) = (%s, %s)
   AND coalesce((to_jsonb(f)->>'conparentid')::oid, 0) = 0
   AND coalesce((to_jsonb(f)->>'conenforced')::boolean, true)
 ORDER BY n.nspname, c.relname, f.conname
"""


@dataclass(frozen=True)
class Referrer:
    """`columns` of the table `schema`.`relation` point at `referred_columns` of the table asked about.

    `readable` is False where the user may not read those columns, or policies may hide rows; `indexed` is False
    where no index begins with one of them, so that each row that goes costs a look through the whole table.
    """

    constraint: str
    schema: str
    relation: str
    columns: tuple[str, ...]
    referred_columns: tuple[str, ...]
    readable: bool
    indexed: bool

    @property
    def name(self) -> sql.Identifier:
        """The table's name for a statement."""
        return sql.Identifier(self.schema, self.relation)


def read_referrers(session: PostgresSession, table: Table) -> list[Referrer]:
    """The foreign keys that point at the table, its own included, in the order of their names."""
    rows = session.read(_REFERRERS, [table.schema, table.relation or table.name])
    return [Referrer(row[0], row[1], row[2], tuple(row[3]), tuple(row[4]), row[5], row[6]) for row in rows]
