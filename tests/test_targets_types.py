"""Values of each type in SQLite and MariaDB: stored as they are, shown again as the text that was loaded, or refused."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest

from connectors.dsn import open_target
from sample_data.servers import Database
from tests.engine_jobs import EngineJob, sqlite_source
from workspace.errors import PlanError

# type, text in the source -> what the driver gives for it, or the reason's code
MARIADB: list[tuple[str, str, Any]] = [
    ("varchar(5)", "Zoë 🐴", "Zoë 🐴"),
    ("varchar(5)", "123456", "length"),
    ("varchar(5) character set latin1", "Zoë", "Zoë"),
    ("varchar(5) character set latin1", "🐴", "cast"),
    ("char(5)", "ab  ", "ab"),
    ("int", "-2147483648", -2147483648),
    ("int", "2147483648", "range"),
    ("tinyint unsigned", "255", 255),
    ("tinyint unsigned", "-1", "range"),
    ("bigint unsigned", "18446744073709551615", 18446744073709551615),
    ("decimal(10,2)", "12.5", "12.50"),
    ("decimal(10,2)", "12.505", "range"),
    ("double", "0.1", 0.1),
    ("tinyint(1)", "true", 1),
    ("tinyint(1)", "2", "cast"),
    ("bit(1)", "t", b"\x01"),
    ("bit(4)", "9", b"\x09"),
    ("date", "2024-02-29", "2024-02-29"),
    ("date", "2023-02-29", "cast"),
    ("datetime", "2024-02-29 23:59:59", "2024-02-29 23:59:59"),
    ("datetime", "2024-02-29 23:59:59.5", "range"),
    ("datetime(6)", "2024-02-29 23:59:59.5", "2024-02-29 23:59:59.500000"),
    ("timestamp(3) null", "2024-02-29 23:59:59.25+02", "2024-02-29 21:59:59.250"),
    ("timestamp null", "1969-01-01 00:00:00+00", "cast"),
    ("time", "23:59:00", "23:59:00"),
    ("enum('new','old')", "old", "old"),
    ("enum('new','old')", "odd", "enum"),
    ("set('a','b','c')", "c,a", "a,c"),
    ("set('a','b','c')", "d", "cast"),
    ("json", '{"a": [1, "é"]}', '{"a": [1, "é"]}'),
    ("json", "{", "check"),
    ("uuid", "018F2C8A-7B1E-7C3D-9E4F-5A6B7C8D9E0F", "018f2c8a-7b1e-7c3d-9e4f-5a6b7c8d9e0f"),
    ("binary(16)", "018F2C8A-7B1E-7C3D-9E4F-5A6B7C8D9E0F", bytes.fromhex("018f2c8a7b1e7c3d9e4f5a6b7c8d9e0f")),
    ("binary(4)", "ab", b"ab\0\0"),
    ("varbinary(4)", "abcde", "length"),
    ("text", "tab\there\\N\nline", "tab\there\\N\nline"),
    ("longtext", "\\", "\\"),
]
SQLITE: list[tuple[str, str, Any]] = [
    ("VARCHAR(5)", "Zoë 🐴", "Zoë 🐴"),
    ("VARCHAR(5)", "123456", "length"),
    ("VARCHAR(5)", "007", "007"),
    ("STRING", "007", "cast"),
    ("STRING", "7", 7),
    ("INTEGER", "9223372036854775807", 9223372036854775807),
    ("INTEGER", "9223372036854775808", "range"),
    ("BOOLEAN", "true", 1),
    ("DECIMAL(10,2)", "12.5", 12.5),
    ("DECIMAL(20,2)", "12345678901234.56", "range"),
    ("NUMERIC", "12.50", 12.5),
    ("NUMERIC", "12345678901234567.89", "cast"),
    ("REAL", "0.1", 0.1),
    ("REAL", "nan", "cast"),
    ("DATE", "2024-02-29", "2024-02-29"),
    ("DATETIME", "2024-02-29 23:59:59.5", "2024-02-29 23:59:59.5"),
    ("TIMESTAMPTZ", "2024-02-29 23:59:59+02", "2024-02-29 21:59:59+00"),
    ("UUID", "018F2C8A-7B1E-7C3D-9E4F-5A6B7C8D9E0F", "018f2c8a-7b1e-7c3d-9e4f-5a6b7c8d9e0f"),
    ("BLOB", "ab", b"ab"),
    ("JSON", '{"a": 1}', '{"a": 1}'),
]


REASONS = {"length", "range", "cast", "check", "enum"}


def _carry(tmp_path: Path, dsn: str, rows: list[tuple[str, str, Any]]) -> dict[int, str]:
    """Loads all values that are taken as one row, and each that isn't as a row of its own; the reasons, by case."""
    good = [i for i, (_, _, wanted) in enumerate(rows) if wanted not in REASONS]
    lines = [(1, {i: rows[i][1] for i in good})]
    lines += [(100 + i, {i: rows[i][1]}) for i in range(len(rows)) if i not in good]
    names = ", ".join(f"v{i} text" for i in range(len(rows)))
    source = sqlite_source(tmp_path / "legacy.db", f"CREATE TABLE s(id int primary key, {names})")
    with sqlite3.connect(tmp_path / "legacy.db") as legacy:
        for key, values in lines:
            legacy.execute(
                f"INSERT INTO s VALUES ({', '.join('?' * (len(rows) + 1))})", [key, *map(values.get, range(len(rows)))]
            )
    legacy.close()
    fields = ", ".join(f"v{i}: {{from: v{i}}}" for i in range(len(rows)))
    plan = f"entities:\n  e: {{from: s, to: t, key: id, fields: {{{fields}}}}}\n"
    job = EngineJob(str(tmp_path), "job", plan, source, dsn)
    job.load()
    verified = job.verified()
    assert verified.ok, [line for each in verified.entities for line in each.problems]
    target = open_target(dsn)
    try:
        target.know("job")
        return {int(r["key"]) - 100: r["code"] for batch in target.quarantined_rows() for r in batch.to_pylist()}
    finally:
        target.close()


def _compare(rows: list[tuple[str, str, Any]], held: dict[int, str], found: tuple[Any, ...]) -> None:
    for i, (kind, text, wanted) in enumerate(rows):
        got = held.get(i, found[i])
        assert got == wanted, f"{kind}: {text!r} gave {got!r}"


def test_each_type_of_mariadb(mariadb_database: Database, tmp_path: Path) -> None:
    columns = ", ".join(f"v{i} {kind}" for i, (kind, _, _) in enumerate(MARIADB))
    mariadb_database.run(f"CREATE TABLE t(id int PRIMARY KEY, {columns}) ENGINE=InnoDB")
    held = _carry(tmp_path, mariadb_database.dsn, MARIADB)
    plain = ("int", "tinyint", "bigint", "double", "bit", "binary", "varbinary", "text", "longtext", "varchar", "char")
    shown = []
    for i, (kind, _, _) in enumerate(MARIADB):
        if kind.startswith("timestamp"):
            shown.append(f"CAST(CONVERT_TZ(v{i}, @@session.time_zone, '+00:00') AS CHAR)")
        else:
            shown.append(f"v{i}" if kind.split("(")[0].split(" ")[0] in plain else f"CAST(v{i} AS CHAR)")
    _compare(MARIADB, held, mariadb_database.rows(f"SELECT {', '.join(shown)} FROM t WHERE id = 1")[0])


def test_each_type_of_sqlite(tmp_path: Path) -> None:
    columns = ", ".join(f"v{i} {kind}" for i, (kind, _, _) in enumerate(SQLITE))
    dsn = sqlite_source(tmp_path / "cloud.db", f"CREATE TABLE t(id INTEGER PRIMARY KEY, {columns})")
    held = _carry(tmp_path, dsn, SQLITE)
    connection = sqlite3.connect(tmp_path / "cloud.db")
    names = ", ".join(f"v{i}" for i in range(len(SQLITE)))
    found = connection.execute(f"SELECT {names} FROM t WHERE id = 1").fetchone()
    connection.close()
    _compare(SQLITE, held, found)


def test_a_table_that_cannot_take_back_is_refused(mariadb_database: Database, tmp_path: Path) -> None:
    mariadb_database.run("CREATE TABLE t(id int PRIMARY KEY, v text) ENGINE=MyISAM")
    source = sqlite_source(tmp_path / "legacy.db", "CREATE TABLE s(id int primary key, v text)")
    plan = "entities:\n  e: {from: s, to: t, key: id, fields: {v: {from: v}}}\n"
    with pytest.raises(PlanError, match="MyISAM"):
        EngineJob(str(tmp_path), "job", plan, source, mariadb_database.dsn).load()


def test_without_local_files_rows_go_as_parameters(mariadb_database: Database, tmp_path: Path) -> None:
    """Tabs, backslashes and NULL go by both roads alike; an update leaves a time of change alone that the server would set."""
    mariadb_database.run(
        "CREATE TABLE t(id int PRIMARY KEY, v text, up int, FOREIGN KEY (up) REFERENCES t (id), "
        "changed timestamp NOT NULL DEFAULT '2001-01-01 00:00:00' ON UPDATE CURRENT_TIMESTAMP)"
    )
    rows = "(1, 'tab\there', 2), (2, 'back\\slash', NULL), (3, NULL, 1)"
    source = sqlite_source(
        tmp_path / "legacy.db", f"CREATE TABLE s(id int primary key, v text, up int); INSERT INTO s VALUES {rows}"
    )
    plan = (
        "entities:\n  e: {from: s, to: t, key: id, fields: {v: {from: v}, up: {from: up, ref: e, missing: 'null'}}}\n"
    )
    dsn = f"{mariadb_database.dsn}?local_infile=0"
    target = open_target(dsn)
    assert "LOCAL INFILE is not allowed" in target.server()
    target.close()
    job = EngineJob(str(tmp_path), "job", plan, source, dsn)
    job.load()
    assert job.verified().ok
    found = mariadb_database.rows("SELECT id, v, up, CAST(changed AS CHAR) FROM t ORDER BY id")
    then = "2001-01-01 00:00:00"
    assert found == [(1, "tab\there", 2, then), (2, "back\\slash", None, then), (3, None, 1, then)]
