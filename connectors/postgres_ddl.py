"""An empty copy of a PostgreSQL database: its own DDL by pg_dump, and what of it the other server can't have.

Reads the database that is copied and writes nothing in it. What can't be made in the copy is listed, never an error:
whoever needs a table that is missing says so.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql

from connectors.copy_of_target import Difference
from connectors.dsn import Dsn
from connectors.postgres_connection import connect
from connectors.postgres_programs import not_dumped, run_program
from connectors.protocols import Catalogue, Table
from connectors.scratch import ScratchServer
from workspace.errors import CatalogueError, JobFailedError, UsageError

MOST_ROWS_COPIED = 1_000_000
"""Rows of a table that is only referred to; a larger one is not copied."""
_LEFT_OUT = ("--no-owner", "--no-privileges", "--no-tablespaces")
_LATER_OPTION = re.compile(rb"ALTER TABLE ONLY [^\n]* ALTER COLUMN [^\n]* SET \([^\n]*pg_attver=[^\n]*\);\n")
"""A column's option that servers of autumn 2026 on keep for themselves, and that a server or a pg_dump from before
doesn't know. It stands in the same entry of the dump as its CREATE TABLE, which would fail with it."""
_PLACE = "rehearsal"
"""The name of the database in the scratch server."""

_SCHEMAS_OF_SERVER = "n.nspname NOT LIKE 'pg\\_%%' AND n.nspname <> 'information_schema' AND n.nspname <> ALL(%(ours)s)"


def make_database(original: Dsn, server: ScratchServer) -> tuple[Dsn, list[Difference]]:
    """An empty database in a server of our own, with the encoding, collation, settings and search path that the
    original's user finds there; how to log in to it, and where it differs. The user has the original's name."""
    with connect(original) as there:
        facts = there.execute(
            "SELECT pg_encoding_to_char(encoding), datcollate, datctype, to_jsonb(d) ->> 'datlocprovider', "
            "coalesce(to_jsonb(d) ->> 'datlocale', to_jsonb(d) ->> 'daticulocale'), current_user "
            "FROM pg_database d WHERE datname = current_database()"
        ).fetchone()
        settings = there.execute(
            "SELECT split_part(c, '=', 1), substr(c, strpos(c, '=') + 1) FROM pg_db_role_setting s, unnest(setconfig) c "
            "WHERE setdatabase IN (0, (SELECT oid FROM pg_database WHERE datname = current_database())) "
            "AND setrole IN (0, (SELECT oid FROM pg_roles WHERE rolname = current_user)) ORDER BY setrole, setdatabase"
        ).fetchall()
    assert facts is not None
    encoding, collate, ctype, provider, locale, user = facts
    differences = []
    server.make_user(user)
    with server.connect() as here:
        why = _create(here, encoding, _locale(provider, collate, ctype, locale))
        if why:
            differences.append(Difference(f"collation {locale or collate} of the database", why))
    with server.connect(_PLACE) as here:
        for name, value in settings:
            try:
                here.execute("SELECT set_config(%s, %s, false)", [name, value])
                here.execute(
                    sql.SQL("ALTER DATABASE {} SET {} FROM CURRENT").format(
                        sql.Identifier(_PLACE), sql.SQL(".").join(map(sql.Identifier, name.split(".")))
                    )
                )
            except psycopg.Error as error:
                differences.append(Difference(f"setting {name}", _line(error)))
    return with_path(original, server.dsn(_PLACE, user)), differences


def with_path(original: Dsn, place: Dsn) -> Dsn:
    """`place` with the search path that the original's user has, unless it names its own: tables then go by the same
    names."""
    with connect(original) as there:
        found = there.execute(
            "SELECT string_agg(quote_ident(s), ', ' ORDER BY n) FROM unnest(current_schemas(false)) WITH ORDINALITY u(s, n)"
        ).fetchone()
    path = found[0] if found else None
    return replace(place, parameters={**({"schema": path} if path else {}), **place.parameters})


def _locale(provider: str | None, collate: str, ctype: str, locale: str | None) -> sql.Composable:
    libc = sql.SQL("LC_COLLATE {} LC_CTYPE {}").format(sql.Literal(collate), sql.Literal(ctype))
    if provider == "i" and locale:
        return sql.SQL("LOCALE_PROVIDER icu ICU_LOCALE {} {}").format(sql.Literal(locale), libc)
    if provider == "b" and locale:
        return sql.SQL("LOCALE_PROVIDER builtin BUILTIN_LOCALE {} {}").format(sql.Literal(locale), libc)
    return sql.SQL("LOCALE_PROVIDER libc {}").format(libc)


def _create(here: psycopg.Connection[Any], encoding: str, wanted: sql.Composable) -> str:
    """Makes the database with that locale, or the nearest that can be had; why it isn't the one wanted, or ""."""
    why = ""
    for locale in (
        wanted,
        sql.SQL("LOCALE_PROVIDER libc LOCALE 'C.UTF-8'"),
        sql.SQL("LOCALE_PROVIDER libc LOCALE 'C'"),
    ):
        try:
            here.execute(
                sql.SQL("CREATE DATABASE {} TEMPLATE template0 ENCODING {} {}").format(
                    sql.Identifier(_PLACE), sql.Literal(encoding), locale
                )
            )
            return why
        except psycopg.Error as error:
            why = why or f"{_line(error)}; text sorts by code points instead"
    raise JobFailedError(f"the scratch server can't hold the encoding {encoding}: {why}", advice="use --into DSN")


def check_empty(place: Dsn) -> None:
    """UsageError where the database of a person's choosing holds relations: what is there stays untouched."""
    with connect(place) as here:
        found = here.execute(
            "SELECT n.nspname || '.' || c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE "
            "c.relkind IN ('r', 'p', 'v', 'm', 'f', 'S') AND n.nspname <> 'information_schema' AND n.nspname NOT LIKE 'pg\\_%' "
            "AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e') "
            "ORDER BY 1 LIMIT 1"
        ).fetchone()
    if found is not None:
        raise UsageError(
            f"the database to rehearse in is not empty: it holds {found[0]}", where=place.masked,
            advice="name an empty database: CREATE DATABASE rehearsal",
        )  # fmt: skip


def differences_of_places(original: Dsn, place: Dsn) -> list[Difference]:
    """Where two databases differ before anything is copied: version, encoding, collation, row-level security."""
    ask = (
        "SELECT current_setting('server_version'), pg_encoding_to_char(encoding), "
        "coalesce(to_jsonb(d) ->> 'datlocale', to_jsonb(d) ->> 'daticulocale', datcollate) "
        "FROM pg_database d WHERE datname = current_database()"
    )
    with connect(original) as there, connect(place) as here:
        theirs, ours = there.execute(ask).fetchone() or (), here.execute(ask).fetchone() or ()
        secured = there.execute(
            "SELECT string_agg(DISTINCT c.oid::regclass::text, ', ') FROM pg_class c WHERE row_security_active(c.oid)"
        ).fetchone()
    names = ("PostgreSQL's version", "encoding of the database", "collation of the database")
    found = [
        Difference(name, f"{mine} here, {their} in the target")
        for name, their, mine in zip(names, theirs, ours, strict=True)
        if their != mine
    ]
    if secured and secured[0]:
        found.append(Difference(f"row-level security of {secured[0]}", "the copy's user passes all policies"))
    return found


def copy_schema(original: Dsn, place: Dsn, file: Path, ours: Sequence[str]) -> list[Difference]:
    """Makes in `place` all that the original's own DDL makes there, our own schemas, `ours`, left out; what it can't have.

    `file` is written on the way. JobFailedError where pg_dump can't be had, is older than the server, or fails."""
    differences = []
    with connect(original) as there:
        hidden_schemas, hidden_tables = _out_of_sight(there, ours)
    for schema in hidden_schemas:
        differences.append(Difference(f"schema {schema}", "the target's user has no USAGE on it"))
    for table in hidden_tables:
        differences.append(Difference(f"table {table}", "the target's user has no SELECT on it"))
    left_out = [*_LEFT_OUT, "--no-publications", "--no-subscriptions", "--no-security-labels"]
    left_out += [f"--exclude-schema={schema}" for schema in [*map(_quoted, ours), *hidden_schemas]]
    left_out += [f"--exclude-table={table}" for table in hidden_tables]
    said = run_program(
        "pg_dump", original, "--schema-only", "--format=custom", "--lock-wait-timeout=30s", f"--file={file}", *left_out
    )
    if said is not None:
        raise not_dumped(said, original)
    _blank_out(file, _LATER_OPTION)
    stood_in = _stand_in_collations(original, place)
    differences += [
        Difference(f"collation {name}", "no ICU here: text is compared by code points instead") for name in stood_in
    ]
    said = run_program("pg_restore", place, *_LEFT_OUT, str(file))
    made = " already exists"
    return differences + [t for t in _troubles(said or "") if not (stood_in and t.why.endswith(made))]


def _blank_out(file: Path, statement: re.Pattern[bytes]) -> None:
    """Puts blanks in the place of the statement in a dump in the custom format, whose entries are texts of a stated
    length and are never compressed. What a column's options say steers the planner alone: no value depends on them."""
    file.write_bytes(statement.sub(lambda found: b" " * len(found[0]), file.read_bytes()))


def _stand_in_collations(original: Dsn, place: Dsn) -> list[str]:
    """Where the copy's server has no ICU, collations of the names that the original's columns and types use, so that
    their tables can be made; those names, quoted."""
    with connect(original) as there, connect(place) as here:
        if _has_icu(here):
            return []
        used = there.execute(
            "SELECT n.nspname, c.collname FROM pg_collation c JOIN pg_namespace n ON n.oid = c.collnamespace WHERE collprovider = 'i' "
            "AND (n.nspname <> 'pg_catalog' OR c.oid IN (SELECT attcollation FROM pg_attribute UNION SELECT typcollation FROM pg_type "
            "UNION SELECT unnest(indcollation) FROM pg_index)) AND n.nspname <> 'information_schema' ORDER BY 1, 2"
        ).fetchall()
        made = []
        for schema, name in used:
            for statement in (
                sql.SQL("CREATE SCHEMA IF NOT EXISTS {}").format(sql.Identifier(schema)),
                sql.SQL("CREATE COLLATION {} (provider = libc, locale = 'C')").format(sql.Identifier(schema, name)),
            ):
                try:
                    here.execute(statement)
                except psycopg.Error:
                    continue  # what needs it tells so itself
            made.append(name if schema == "pg_catalog" else f"{schema}.{name}")
    return made


def _has_icu(here: psycopg.Connection[Any]) -> bool:
    try:
        with here.transaction(force_rollback=True):
            here.execute("CREATE COLLATION packhorse_probe (provider = icu, locale = 'und')")
    except psycopg.errors.FeatureNotSupported:
        return False
    except psycopg.Error:
        return True  # the user may make none, here or in what is restored
    return True


def _out_of_sight(there: psycopg.Connection[Any], ours: Sequence[str]) -> tuple[list[str], list[str]]:
    """Schemas and tables, quoted, that the user may not look at, which pg_dump would fail on."""
    schemas = there.execute(
        f"SELECT quote_ident(nspname) FROM pg_namespace n WHERE {_SCHEMAS_OF_SERVER} AND NOT has_schema_privilege(oid, 'USAGE') ORDER BY 1",
        {"ours": list(ours)},
    ).fetchall()
    tables = there.execute(
        "SELECT format('%%I.%%I', n.nspname, c.relname) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
        f"WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND {_SCHEMAS_OF_SERVER} AND has_schema_privilege(n.oid, 'USAGE') "
        "AND NOT has_table_privilege(c.oid, 'SELECT') ORDER BY 1",
        {"ours": list(ours)},
    ).fetchall()
    return [row[0] for row in schemas], [row[0] for row in tables]


def _troubles(said: str) -> Iterable[Difference]:
    """What pg_restore could not make, by the statement's first line, each with the server's own words."""
    why = ""
    for line in said.splitlines():
        if "error: could not execute query: " in line:
            why = line.split("could not execute query: ", 1)[1].removeprefix("ERROR:").strip()
        elif why and line.startswith("Command was: "):
            yield Difference(line.removeprefix("Command was: ").rstrip(" (;")[:200], why[:200])
            why = ""


def copy_referred_rows(original: Dsn, place: Dsn, catalogue: Catalogue, filled: Iterable[str]) -> list[Difference]:
    """Copies the rows of tables that the `filled` ones refer to, over as many foreign keys as there are, and that are
    not filled themselves: what is loaded refers to them. Triggers and keys of the copy don't see them come. What
    could not be copied."""
    differences = []
    with connect(original) as there, connect(place) as here:
        try:
            here.execute("SET session_replication_role = replica")
        except psycopg.Error as error:
            differences.append(Difference("triggers", f"fire for rows of tables that are referred to: {_line(error)}"))
        for table in referred_tables(catalogue, filled):
            why = _copy_rows(there, here, table)
            if why:
                differences.append(Difference(f"rows of {table.name}", why))
    return differences


def referred_tables(catalogue: Catalogue, filled: Iterable[str]) -> list[Table]:
    """Tables that the filled ones refer to, directly or not, and that aren't filled themselves."""
    todo, seen = list(filled), set(filled)
    found = []
    while todo:
        table = catalogue.tables.get(todo.pop())
        for key in table.foreign_keys if table else ():
            referred = catalogue.tables.get(key.referred_table)
            if referred is not None and referred.name not in seen:
                seen.add(referred.name)
                todo.append(referred.name)
                found.append(referred)
    return found


def _copy_rows(there: psycopg.Connection[Any], here: psycopg.Connection[Any], table: Table) -> str:
    """Copies a table's rows; why not, or ""."""
    if table.privileges is not None and "select" not in table.privileges:
        return "the target's user has no SELECT on it"
    name = sql.Identifier(table.schema, table.relation)
    most = sql.Literal(MOST_ROWS_COPIED + 1)
    counted = there.execute(sql.SQL("SELECT count(*) FROM (SELECT FROM {} LIMIT {}) t").format(name, most)).fetchone()
    if counted is not None and counted[0] > MOST_ROWS_COPIED:
        return f"more than {MOST_ROWS_COPIED:,}: not copied, and what refers to them is refused"
    columns = sql.SQL(", ").join(sql.Identifier(c.name) for c in table.columns if not c.generated)
    out = sql.SQL("COPY (SELECT {} FROM {}) TO STDOUT").format(columns, name)
    into = sql.SQL("COPY {} ({}) FROM STDIN").format(name, columns)
    try:
        with (
            there.cursor() as reading,
            here.cursor() as writing,
            reading.copy(out) as rows,
            writing.copy(into) as copy,
        ):
            for block in rows:
                copy.write(block)
    except psycopg.Error as error:
        return _line(error)
    return ""


def check_made(differences: Sequence[Difference], made: Catalogue, wanted: Catalogue, filled: Iterable[str]) -> None:
    """CatalogueError for the first of the `filled` tables that the copy doesn't have, with the reason."""
    for name in filled:
        if name in made.tables or name not in wanted.tables:
            continue
        relation = wanted.tables[name].relation.replace('"', '""')
        why = next(
            (str(d) for d in differences if d.what.startswith(("CREATE TABLE", "table")) and relation in d.what), ""
        )
        raise CatalogueError(
            f"the table {name} can't be made for the rehearsal: {why or 'its DDL is not in the dump'}",
            advice="rehearse where it can: --into DSN of an empty database on a server like the target's",
        )


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _line(error: psycopg.Error) -> str:
    return " ".join((error.diag.message_primary or str(error)).split())[:200]
