"""How a server stands, as far as a job minds: its version, its clock, its encoding, whether it is a copy that lags, how
much it holds, and what of its tables slows or surprises a load. Asked in small SELECTs; changes nothing.

What a user may not ask is left out, never an error: rights are told of elsewhere.
"""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from connectors.dsn import Dsn
from connectors.protocols import Source
from workspace.errors import PackhorseError

Rows = list[tuple[object, ...]]


@dataclass(frozen=True)
class Condition:
    """What was found. `clock` is the server's minus this machine's, in seconds, give or take `clock_give`; None where it
    has no clock of its own. `version` is the number (major, minor), () for files. `odd_tables` are tables whose text isn't in the server's full
    Unicode, with their encoding. `lag` is how many seconds the server is behind the one that it copies; None where it copies none, or
    nobody can say, which `replica` tells apart: "" (it copies none), "runs", or why it doesn't. `read_only` where it takes no rows.
    `bytes` is what its tables take, None where that isn't known. `unindexed` are foreign keys without an index: table, columns. `triggers` by table, where the catalogue doesn't tell them."""

    product: str
    version: tuple[int, ...] = ()
    clock: float | None = None
    clock_give: float = 0.0
    encoding: str = ""
    collation: str = ""
    odd_tables: dict[str, str] = field(default_factory=dict)
    replica: str = ""
    lag: float | None = None
    read_only: bool = False
    bytes: int | None = None
    unindexed: tuple[tuple[str, tuple[str, ...]], ...] = ()
    triggers: dict[str, tuple[str, ...]] = field(default_factory=dict)


def condition(source: Source, dsn: Dsn) -> Condition:
    """How the system behind an open source stands; any system can be opened as one."""
    if source.dialect == "postgres":
        return _postgres(source)
    if source.dialect == "mysql":
        return _mysql(source)
    if source.dialect == "sqlite":
        return _sqlite(source)
    return Condition("files", bytes=None if dsn.path is None else _files(Path(dsn.path)))


def _postgres(source: Source) -> Condition:
    number = int(str(_one(source, "SHOW server_version_num") or 0))
    clock, give = _clock(source, "SELECT extract(epoch FROM clock_timestamp())")
    row = _rows(
        source, "SELECT pg_encoding_to_char(encoding), datcollate FROM pg_database WHERE datname = current_database()"
    )
    encoding, collation = map(str, row[0]) if row else ("", "")
    copies = bool(_one(source, "SELECT pg_is_in_recovery()"))
    lag = _number(_one(source, _POSTGRES_LAG)) if copies else None
    return Condition(
        "PostgreSQL", (number // 10000, number % 10000), clock, give, encoding, collation,
        replica=("runs" if lag is not None else "it has brought in nothing yet") if copies else "", lag=lag,
        read_only=copies or _one(source, "SELECT setting FROM pg_settings WHERE name = 'in_hot_standby'") == "on",
        bytes=_whole(_one(source, "SELECT pg_database_size(current_database())")),
        unindexed=tuple((str(t), tuple(str(c).split("\x1f"))) for t, c in _rows(source, _POSTGRES_UNINDEXED)),
    )  # fmt: skip


_POSTGRES_LAG = (
    "SELECT CASE WHEN pg_last_wal_receive_lsn() = pg_last_wal_replay_lsn() THEN 0"
    " ELSE extract(epoch FROM clock_timestamp() - pg_last_xact_replay_timestamp()) END"
)
_POSTGRES_UNINDEXED = (
    "SELECT CASE WHEN pg_table_is_visible(r.oid) THEN r.relname ELSE s.nspname || '.' || r.relname END, (SELECT string_agg(a.attname, chr(31) ORDER BY k.n)"
    " FROM unnest(c.conkey) WITH ORDINALITY AS k(attnum, n) JOIN pg_attribute a ON a.attrelid = c.conrelid AND a.attnum = k.attnum)"
    " FROM pg_constraint c JOIN pg_class r ON r.oid = c.conrelid JOIN pg_namespace s ON s.oid = r.relnamespace"
    " WHERE c.contype = 'f' AND s.nspname NOT IN ('pg_catalog', 'information_schema') AND NOT EXISTS ("
    " SELECT FROM pg_index i WHERE i.indrelid = c.conrelid AND i.indpred IS NULL"
    # the key's columns, in any order, are the first of the index
    " AND (i.indkey::int2[])[0:cardinality(c.conkey) - 1] @> c.conkey) ORDER BY 1, 2"
)


def _mysql(source: Source) -> Condition:
    told = str(_one(source, "SELECT version()") or "")
    found = re.match(r"(\d+)\.(\d+)", told.removeprefix("5.5.5-"))
    clock, give = _clock(source, "SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) / 1000000")
    tables = _rows(
        source,
        "SELECT c.table_name, group_concat(DISTINCT c.character_set_name ORDER BY 1 SEPARATOR ', ')"
        " FROM information_schema.columns c JOIN information_schema.tables t USING (table_schema, table_name)"
        " WHERE c.table_schema = database() AND t.table_type = 'BASE TABLE' AND c.character_set_name <> 'utf8mb4'"
        " GROUP BY c.table_name ORDER BY c.table_name",
    )
    replica, lag = _mysql_replica(source)
    size = _one(source, "SELECT sum(data_length) FROM information_schema.tables WHERE table_schema = database()")
    row = _rows(source, "SELECT @@character_set_database, @@collation_database")
    encoding, collation = map(str, row[0]) if row else ("", "")
    return Condition(
        "MariaDB" if "mariadb" in told.lower() else "MySQL", (int(found[1]), int(found[2])) if found else (), clock, give,
        encoding, collation, {str(table): str(charset) for table, charset in tables}, replica, lag,
        str(_one(source, "SELECT @@global.read_only")) in ("1", "ON"), _whole(size),
        triggers=_triggers(
            source,
            "SELECT event_object_table, trigger_name FROM information_schema.triggers WHERE event_object_schema = database() ORDER BY 1, 2",
        ),
    )  # fmt: skip


def _mysql_replica(source: Source) -> tuple[str, float | None]:
    """Whether it copies another server, and how far behind. The places of a status line are those of MariaDB 10 and 11
    and MySQL 5.7 and 8: both threads at 10 and 11, seconds at 32."""
    for statement in ("SHOW REPLICA STATUS", "SHOW SLAVE STATUS"):
        try:
            rows = source.query(statement)
        except PackhorseError:
            continue
        if not rows:
            return "", None
        reads, applies, seconds = rows[0][10], rows[0][11], rows[0][32]
        if reads == applies == "Yes" and seconds is not None:
            return "runs", _number(seconds)
        return f"its threads are: reading {reads}, applying {applies}", None
    return "", None


def _sqlite(source: Source) -> Condition:
    number = str(_one(source, "SELECT sqlite_version()") or "0.0").split(".")
    size = _one(source, "SELECT c.page_count * s.page_size FROM pragma_page_count() c, pragma_page_size() s")
    indexed = (
        "SELECT i.name FROM pragma_index_list(m.name) i WHERE i.partial = 0 AND (SELECT count(*) FROM pragma_index_info(i.name) x"
        ' JOIN pragma_foreign_key_list(m.name) k ON k."from" = x.name WHERE k.id = f.id AND x.seqno < f.n) = f.n'
    )
    rows = _rows(
        source,
        "SELECT m.name, f.columns FROM sqlite_schema m JOIN ("
        ' SELECT t.name AS of_table, k.id AS id, count(*) AS n, group_concat(k."from", char(31)) AS columns'
        " FROM sqlite_schema t, pragma_foreign_key_list(t.name) k WHERE t.type = 'table' GROUP BY 1, 2) f ON f.of_table = m.name"
        f" WHERE m.type = 'table' AND NOT EXISTS ({indexed})"
        " AND NOT (f.n = 1 AND EXISTS (SELECT 1 FROM pragma_table_info(m.name) p WHERE p.name = f.columns AND p.pk = 1"
        " AND p.type LIKE 'integer')) ORDER BY 1, 2",
    )
    return Condition(
        "SQLite", (int(number[0]), int(number[1])), encoding=str(_one(source, "SELECT encoding FROM pragma_encoding()") or ""),
        bytes=_whole(size), unindexed=tuple((str(t), tuple(str(c).split("\x1f"))) for t, c in rows),
        triggers=_triggers(source, "SELECT tbl_name, name FROM sqlite_schema WHERE type = 'trigger' ORDER BY 1, 2"),
    )  # fmt: skip


def _triggers(source: Source, statement: str) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for table, name in _rows(source, statement):
        found[str(table)] = (*found.get(str(table), ()), str(name))
    return found


def _files(path: Path) -> int | None:
    with suppress(OSError):
        found = [path] if path.is_file() else [each for each in path.rglob("*") if each.is_file()]
        return sum(each.stat().st_size for each in found)
    return None


def _clock(source: Source, statement: str) -> tuple[float | None, float]:
    """The server's clock against ours, in the middle of the quickest of three questions, and half that time."""
    best: tuple[float, float] | None = None
    for _ in range(3):
        before = time.time()
        theirs = _number(_one(source, statement))
        after = time.time()
        if theirs is None:
            return None, 0.0
        found = ((after - before) / 2, theirs - (before + after) / 2)
        best = found if best is None else min(best, found)
    assert best is not None
    return best[1], best[0]


def _rows(source: Source, statement: str, parameters: Sequence[object] = ()) -> Rows:
    """The rows; none where the user may not ask."""
    try:
        return source.query(statement, parameters)
    except PackhorseError:
        return []


def _one(source: Source, statement: str) -> object | None:
    rows = _rows(source, statement)
    return rows[0][0] if rows else None


def _number(value: object | None) -> float | None:
    return None if value is None else float(str(value))


def _whole(value: object | None) -> int | None:
    return None if value is None else int(float(str(value)))
