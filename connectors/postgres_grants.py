"""The rights that a job needs in PostgreSQL, as a source and as a target; read off the catalogue of privileges."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal

from connectors.grants import Grant, Need, TableUse
from connectors.protocols import Table

Ask = Callable[[str, Sequence[object]], Sequence[tuple[Any, ...]]]
"""Runs a SELECT with its parameters."""

_LACKED = {
    "database": "has_database_privilege(%s, %s::text, p)",
    "schema": "has_schema_privilege(%s, %s::text, p)",
    "table": "has_table_privilege(%s, %s::text, p)",
    "sequence": "has_sequence_privilege(%s, %s::text, p)",
}
_TABLES = "SELECT format('%%I.%%I', n.nspname, c.relname) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND n.nspname = %s ORDER BY 1"
_SEQUENCES = "SELECT format('%%I.%%I', n.nspname, c.relname) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind = 'S' AND n.nspname = %s ORDER BY 1"
_REFERRERS = """
SELECT DISTINCT n.nspname, c.relname FROM pg_constraint f JOIN pg_class c ON c.oid = f.conrelid JOIN pg_namespace n ON n.oid = c.relnamespace
  JOIN pg_class t ON t.oid = f.confrelid JOIN pg_namespace s ON s.oid = t.relnamespace
 WHERE f.contype = 'f' AND (s.nspname, t.relname) = (%s, %s) ORDER BY 1, 2
"""


class _Rights:
    """What one user holds, asked of the server."""

    def __init__(self, ask: Ask, user: str | None) -> None:
        self.ask = ask
        ((name, database, plain),) = ask(
            "SELECT coalesce(%s::text, current_user), current_database(), quote_ident(current_database())", [user]
        )
        self.user, self.database, self.quoted_database = name, database, plain
        self.known = bool(ask("SELECT 1 FROM pg_roles WHERE rolname = %s", [name]))

    def quoted(self, name: str) -> str:
        """The name as it stands in SQL: in quotes only where it needs them."""
        return str(self.ask("SELECT quote_ident(%s)", [name])[0][0])

    def lacked(
        self, kind: Literal["database", "schema", "table", "sequence"], things: Iterable[str], privileges: Sequence[str]
    ) -> tuple[str, ...] | None:
        """Of these privileges, those that the user lacks on one of the things; None where there is no such user."""
        if not self.known:
            return None
        lacks: dict[str, None] = {}
        for thing in things:
            rows = self.ask(
                f"SELECT p FROM unnest(%s::text[]) p WHERE NOT {_LACKED[kind]}", [list(privileges), self.user, thing]
            )
            lacks |= dict.fromkeys(row[0] for row in rows)
        return tuple(p for p in privileges if p in lacks)

    def grant(
        self,
        kind: Literal["database", "schema", "table", "sequence"],
        privileges: Sequence[str],
        on: str,
        things: Iterable[str],
        purpose: str,
        need: Need = "job",
    ) -> Grant:
        """The grant of privileges on something that stands for these things."""
        statement = f"GRANT {', '.join(privileges)} ON {on} TO {self.quoted(self.user)}"
        return Grant(statement, purpose, need, self.lacked(kind, things, privileges))

    def usage(self, schemas: Iterable[str], purpose: str) -> list[Grant]:
        """USAGE of schemas."""
        return [
            self.grant("schema", ["USAGE"], f"SCHEMA {self.quoted(schema)}", [schema], purpose)
            for schema in dict.fromkeys(schemas)
        ]

    def tables(self, schema: str) -> list[str]:
        """All tables and views of a schema, quoted."""
        return [row[0] for row in self.ask(_TABLES, [schema])]

    def sequences(self, schema: str) -> list[str]:
        """All sequences of a schema, quoted."""
        return [row[0] for row in self.ask(_SEQUENCES, [schema])]

    def qualified(self, table: Table) -> str:
        """A table's name as it stands in SQL."""
        return f"{self.quoted(table.schema)}.{self.quoted(table.relation or table.name)}"


def source_grants(ask: Ask, user: str | None, schemas: Sequence[str], tables: Sequence[Table] | None) -> list[Grant]:
    """What reading needs: of these tables, or (None) of all in these schemas."""
    rights = _Rights(ask, user)
    found = [
        rights.grant("database", ["CONNECT"], f"DATABASE {rights.quoted_database}", [rights.database], "to log in")
    ]
    found += rights.usage(schemas if tables is None else [t.schema for t in tables], "to see the tables")
    if tables is None:
        return found + [
            rights.grant("table", ["SELECT"], f"ALL TABLES IN SCHEMA {rights.quoted(s)}", rights.tables(s), "survey and reading", "later")
            for s in schemas
        ]  # fmt: skip
    for table in tables:
        name = rights.qualified(table)
        found.append(rights.grant("table", ["SELECT"], name, [name], "survey and reading"))
        if table.row_security:
            statement = f"ALTER ROLE {rights.quoted(rights.user)} BYPASSRLS"
            found.append(Grant(statement, f"policies on {name} hide rows from this user", "job", ("BYPASSRLS",)))
    return found


def target_grants(
    ask: Ask, user: str | None, schemas: Sequence[str], tables: Sequence[tuple[Table, TableUse]] | None, ours: str
) -> list[Grant]:
    """What writing needs: to these tables, or (None) to all in these schemas. `ours` is the schema of our records."""
    rights = _Rights(ask, user)
    database = f"DATABASE {rights.quoted_database}"
    updates = tables is None or any(use.updates for _, use in tables)
    found = [
        rights.grant("database", ["CONNECT"], database, [rights.database], "to log in"),
        rights.grant(
            "database", ["TEMPORARY"], database, [rights.database],
            "references filled in a second pass, updates, retries, undo", "job" if updates and tables is not None else "later",
        ),
        *rights.usage(schemas if tables is None else [t.schema for t, _ in tables], "to see the tables"),
    ]  # fmt: skip
    if tables is None:
        for schema in schemas:
            everything, places = f"ALL TABLES IN SCHEMA {rights.quoted(schema)}", rights.tables(schema)
            found += [
                rights.grant("table", ["SELECT", "INSERT", "UPDATE"], everything, places, "loading, references, updates, verifying", "later"),
                rights.grant("table", ["DELETE"], everything, places, "migrate undo, and nothing else", "undo"),
                rights.grant(
                    "sequence", ["SELECT", "UPDATE"], f"ALL SEQUENCES IN SCHEMA {rights.quoted(schema)}", rights.sequences(schema),
                    "new ids, and setting sequences above the ids that were loaded", "later",
                ),
            ]  # fmt: skip
    else:
        for table, use in tables:
            found += _of_table(rights, table, use)
        found += _of_referrers(rights, [table for table, _ in tables])
    return [*found, *_of_ours(rights, ours)]


def _of_table(rights: _Rights, table: Table, use: TableUse) -> list[Grant]:
    name = rights.qualified(table)
    first = ["SELECT", "INSERT", *(["UPDATE"] if use.updates else [])]
    found = [rights.grant("table", first, name, [name], "loading and verifying")]
    if not use.updates:
        purpose = "a later job's changes to rows of an earlier one, and undo"
        found.append(rights.grant("table", ["UPDATE"], name, [name], purpose, "later"))
    found.append(rights.grant("table", ["DELETE"], name, [name], "migrate undo, and nothing else", "undo"))
    for column in table.columns:
        if not column.sequence:
            continue
        sequence = f"SEQUENCE {column.sequence}"
        if column.name in table.primary_key and len(table.primary_key) == 1:
            purpose = "new ids" if use.draws else "setting it above the ids that were loaded"
            found.append(rights.grant("sequence", ["SELECT", "UPDATE"], sequence, [column.sequence], purpose))
        elif column.name not in use.columns and not column.identity:
            found.append(
                rights.grant("sequence", ["USAGE"], sequence, [column.sequence], f"the default of {column.name}")
            )
    return found


def _of_referrers(rights: _Rights, tables: Sequence[Table]) -> list[Grant]:
    """Tables outside the plan that refer to its rows: undo has to see whether one does."""
    planned = {(table.schema, table.relation or table.name) for table in tables}
    others = dict.fromkeys(
        (schema, name)
        for table in tables
        for schema, name in rights.ask(_REFERRERS, [table.schema, table.relation or table.name])
        if (schema, name) not in planned
    )
    found = []
    for schema, name in others:
        place = f"{rights.quoted(schema)}.{rights.quoted(name)}"
        purpose = "migrate undo: whether its rows refer to what would go"
        found.append(rights.grant("table", ["SELECT"], place, [place], purpose, "undo"))
    return found


def _of_ours(rights: _Rights, ours: str) -> list[Grant]:
    """The schema of our records: made by the job, made beforehand, or there already."""
    name, user = rights.quoted(ours), rights.quoted(rights.user)
    purpose = f"ledger, crosswalk, quarantine; with CREATE ON DATABASE {rights.quoted_database} a job makes it itself"
    made = f"CREATE SCHEMA {name} AUTHORIZATION {user}"
    rows = rights.ask("SELECT nspowner::regrole::text FROM pg_namespace WHERE nspname = %s", [ours])
    if not rows:
        lacked = rights.lacked("database", [rights.database], ["CREATE"])
        missing = None if lacked is None else (("the schema",) if lacked else ())
        return [
            Grant(made, purpose, "job", missing),
            Grant(f"COMMENT ON SCHEMA {name} IS 'packhorse 0'", "says whose it is", "job", missing),
        ]
    if not rights.known:
        return [Grant(f"ALTER SCHEMA {name} OWNER TO {user}", purpose, "job", None)]
    owns = rights.ask(
        "SELECT pg_has_role(%s, nspowner, 'USAGE') FROM pg_namespace WHERE nspname = %s", [rights.user, ours]
    )
    if owns[0][0]:
        return [Grant(made, purpose)]
    everything = f"ALL TABLES IN SCHEMA {name}"
    return [
        *rights.usage([ours], purpose),
        rights.grant("table", ["SELECT", "INSERT", "UPDATE", "DELETE"], everything, rights.tables(ours), purpose),
    ]
