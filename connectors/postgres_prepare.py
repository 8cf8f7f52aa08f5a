"""Our schema in a PostgreSQL target: made where it is missing, brought up to date, and told from others' schemas.

Never touches a schema that isn't ours, which its comment says.
"""

from __future__ import annotations

import re
from typing import Any

import psycopg
from psycopg import errors, sql

from connectors.dsn import Dsn
from connectors.postgres_schema import SCHEMA, STEPS, checked_name
from connectors.postgres_session import PostgresSession
from workspace.errors import CatalogueError, WorkspaceError

_OURS = re.compile(r"packhorse (\d+)")
"""The comment on a schema of ours: how many of STEPS made it."""


class PostgresPrepared(PostgresSession):
    """A session that knows what our schema is called in its target."""

    def __init__(self, dsn: Dsn, schema: str = SCHEMA) -> None:
        """UsageError for a name that no schema can have."""
        self.schema = checked_name(schema)
        self.ours = sql.Identifier(schema).as_string().replace("%", "%%")
        """Our schema in the text of a statement that is given parameters, be they none: `%` is written twice there."""
        super().__init__(dsn)

    def prepare(self) -> None:
        """Makes our schema where it is missing, under a lock that keeps two makers apart."""
        with self._reached(), self._connection.transaction(), self._connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended('packhorse schema', 0))")
            try:
                done = self._version(cursor)
                if done is None:
                    cursor.execute(f"CREATE SCHEMA {self.ours}", [])
                    done = 0
                if done > len(STEPS):
                    raise WorkspaceError(
                        "a newer version of Packhorse made the ledger in this target",
                        where=self.dsn,
                        advice="upgrade packhorse",
                    )
                for step in STEPS[done:]:
                    for statement in step(self.ours):
                        cursor.execute(statement, [])
                if done < len(STEPS):
                    cursor.execute(f"COMMENT ON SCHEMA {self.ours} IS 'packhorse {len(STEPS)}'", [])
            except errors.InsufficientPrivilege:
                raise CatalogueError(
                    f"the user may not make the schema {self.schema} for the ledger", where=self.dsn,
                    advice=f"GRANT CREATE ON DATABASE {self._connection.info.dbname} TO {self._connection.info.user}",
                ) from None  # fmt: skip

    def has_schema(self) -> bool:
        """True where our tables are there, not where the schema was only made for them. CatalogueError where one of its
        name is somebody else's."""
        with self._reached(), self._connection.cursor() as cursor:
            return bool(self._version(cursor))

    def schemas_of_ours(self) -> frozenset[str]:
        """The schemas in the target that hold records of ours, those of other jobs' included. CatalogueError where one
        of our schema's name is somebody else's."""
        self.has_schema()
        rows = self.read("SELECT nspname, obj_description(oid, 'pg_namespace') FROM pg_namespace")
        return frozenset(name for name, comment in rows if _OURS.fullmatch(comment or ""))

    def _version(self, cursor: psycopg.Cursor[tuple[Any, ...]]) -> int | None:
        """How many of STEPS made our schema; None where it isn't there. CatalogueError for somebody else's."""
        cursor.execute(
            "SELECT obj_description(oid, 'pg_namespace') FROM pg_namespace WHERE nspname = %s", [self.schema]
        )
        row = cursor.fetchone()
        if row is None:
            return None
        found = _OURS.fullmatch(row[0] or "")
        if not found:
            raise CatalogueError(
                f"the target has a schema {self.schema} that is not ours", where=self.dsn,
                advice="name another with --ledger-schema, rename it, or use another database",
            )  # fmt: skip
        return int(found[1])
