"""Takes a PostgreSQL target out into files that can be compared: each table as text, and what the engine wrote beside.

Every value is as COPY writes it in UTC with ISO dates. NULL is an unquoted \\N and everything else is
quoted, so that NULL, an empty text and the text "\\N" stay apart.
"""

from __future__ import annotations

import json
from pathlib import Path

import psycopg
from psycopg import sql

CROSSWALK = "packhorse.crosswalk"
QUARANTINE = "packhorse.quarantine"
LEDGER = "packhorse.ledger"
"""Names of the dumps of the engine's own tables; absent where the target has none."""

_ENGINE = {
    CROSSWALK: "SELECT e.name AS entity, e.target_table AS target, x.old_id, x.new_id "
    "FROM packhorse.crosswalk x JOIN packhorse.entity e ON e.id = x.entity_id",
    QUARANTINE: "SELECT e.name AS entity, q.key, q.field, q.code "
    "FROM packhorse.quarantine q JOIN packhorse.entity e ON e.id = q.entity_id WHERE q.status = 'open'",
    LEDGER: "SELECT e.name AS entity, sum(l.read) - coalesce(max(s.rows), 0) AS read, "
    "sum(l.excluded) - coalesce(max(s.excluded), 0) AS excluded, "
    "sum(l.quarantined) - coalesce(max(s.quarantined), 0) AS quarantined, "
    "sum(l.inserted + l.updated + l.unchanged) - coalesce(max(s.loaded), 0) AS loaded "
    "FROM packhorse.ledger l JOIN packhorse.entity e ON e.id = l.entity_id LEFT JOIN (SELECT entity_id, count(*) AS rows, "
    "count(*) FILTER (WHERE outcome = 'excluded') AS excluded, count(*) FILTER (WHERE outcome = 'quarantined') AS quarantined, "
    "count(*) FILTER (WHERE outcome = 'loaded') AS loaded FROM packhorse.superseded GROUP BY 1) s ON s.entity_id = e.id "
    "WHERE l.step % 2 = 1 AND l.undone_at IS NULL GROUP BY e.name",
}

_TABLES = """
    SELECT c.relname, array(
        SELECT a.attname::text FROM pg_index i, unnest(i.indkey) WITH ORDINALITY k (num, place), pg_attribute a
        WHERE i.indrelid = c.oid AND i.indisprimary AND a.attrelid = c.oid AND a.attnum = k.num ORDER BY k.place)
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = 'public' AND c.relkind IN ('r', 'p') AND NOT c.relispartition ORDER BY 1
"""


def take_dumps(target: str, folder: Path) -> Path:
    """Writes a CSV a table of the schema public, and of the engine's schema where it is, into a folder.

    `keys.json` says which columns are each table's primary key. All of it is one state of the database.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with psycopg.connect(target) as connection:
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        connection.read_only = True
        connection.execute("SET timezone = 'UTC'; SET datestyle = 'ISO, YMD'; SET bytea_output = 'hex'")
        keys: dict[str, list[str]] = dict(connection.execute(_TABLES).fetchall())
        for table in keys:
            _dump(
                connection, sql.SQL("SELECT * FROM {}").format(sql.Identifier("public", table)), folder / f"{table}.csv"
            )
        if connection.execute("SELECT to_regclass('packhorse.crosswalk')").fetchone() != (None,):
            for name, query in _ENGINE.items():
                _dump(connection, sql.SQL(query), folder / f"{name}.csv")
    (folder / "keys.json").write_text(json.dumps(keys), encoding="utf-8")
    return folder


def _dump(connection: psycopg.Connection[tuple[object, ...]], query: sql.Composable, path: Path) -> None:
    command = sql.SQL("COPY ({}) TO STDOUT (FORMAT csv, HEADER, NULL '\\N', FORCE_QUOTE *)").format(query)
    with path.open("wb") as out, connection.cursor().copy(command) as copy:
        for block in copy:
            out.write(block)
