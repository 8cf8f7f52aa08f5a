"""The DuckDB of the transform: whatever SQL reached it, it stays within the job's folders.

These statements go past the allow-list of expressions, straight to the connection: the second wall.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from agent.trial import Bench
from connectors.dsn import open_source
from engine.duck import open_duck
from engine.query import Query
from engine.workers import Task, Workers
from workspace.errors import JobFailedError, PackhorseError
from workspace.paths import JobPaths


@pytest.fixture
def paths(tmp_path: Path) -> JobPaths:
    return JobPaths(tmp_path / "it's here", "job")


@pytest.fixture
def duck(paths: JobPaths) -> Iterator[duckdb.DuckDBPyConnection]:
    paths.base.mkdir()
    connection = open_duck(paths.create())
    yield connection
    connection.close()


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    file = tmp_path / "outside.csv"
    file.write_text("secret\n1\n")
    return file


def refused(duck: duckdb.DuckDBPyConnection, sql: str) -> None:
    with pytest.raises(duckdb.Error):
        duck.execute(sql).fetchall()


def test_reads_and_writes_its_own_folders(duck: duckdb.DuckDBPyConnection, paths: JobPaths) -> None:
    for folder in (paths.stage, paths.transformed, paths.temp):
        file = str(folder / "x.parquet").replace("'", "''")
        duck.execute(f"COPY (SELECT 1 AS a) TO '{file}' (FORMAT parquet)").fetchall()
        assert duck.execute(f"SELECT a FROM read_parquet('{file}')").fetchall() == [(1,)]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM read_csv('{}')", "SELECT * FROM '{}'", "SELECT * FROM read_text('{}')", "SELECT * FROM read_blob('{}')", "SELECT * FROM glob('{}')",
        "SELECT * FROM sniff_csv('{}')", "SELECT * FROM read_json('{}')", "SELECT * FROM read_parquet('{}')", "COPY (SELECT 1) TO '{}'",
        "COPY (SELECT 1) TO '{}.new' (FORMAT parquet)", "EXPORT DATABASE '{}.folder'", "IMPORT DATABASE '{}'", "ATTACH '{}.db'", "ATTACH '{}' (READ_ONLY)",
        "CREATE TABLE t AS SELECT * FROM read_csv('{}')",
    ],
)  # fmt: skip
def test_no_other_file(sql: str, duck: duckdb.DuckDBPyConnection, outside: Path, tmp_path: Path) -> None:
    before = sorted(tmp_path.rglob("*"))
    refused(duck, sql.format(outside))
    assert sorted(tmp_path.rglob("*")) == before
    assert outside.read_text() == "secret\n1\n"


def test_no_way_around_the_folders(duck: duckdb.DuckDBPyConnection, paths: JobPaths, outside: Path) -> None:
    stage = str(paths.stage).replace("'", "''")
    for path in (
        f"{stage}/../workspace.db",
        f"{stage}/../../../../../outside.csv",
        f"{stage}-other/x.csv",
        "/etc/passwd",
        "file:///etc/passwd",
    ):
        refused(duck, f"SELECT * FROM read_text('{path}')")
        refused(duck, f"COPY (SELECT 1) TO '{path}'")
    assert outside.read_text() == "secret\n1\n"


def test_the_workspace_and_the_plans_are_out_of_reach(duck: duckdb.DuckDBPyConnection, paths: JobPaths) -> None:
    for file in (paths.database, paths.plans / "plan-1.yaml", paths.lock):
        file.write_text("x")
        refused(duck, f"SELECT * FROM read_text('{str(file).replace(chr(39), chr(39) * 2)}')")


@pytest.mark.parametrize(
    "sql",
    [
        "INSTALL httpfs", "LOAD httpfs", "INSTALL spatial FROM community", "LOAD '/tmp/x.duckdb_extension'", "SELECT * FROM read_csv('https://example.com/x.csv')",
        "SELECT * FROM 's3://bucket/x.parquet'", "COPY (SELECT 1) TO 'https://example.com/x.csv'", "ATTACH 'https://example.com/x.db'", "ATTACH 'md:'",
        "ATTACH 'host=127.0.0.1' AS p (TYPE postgres)", "CALL postgres_query('x', 'y')", "SELECT * FROM sqlite_scan('/tmp/x', 't')",
        "CREATE SECRET (TYPE s3)",
    ],
)  # fmt: skip
def test_no_extension_and_no_network(sql: str, duck: duckdb.DuckDBPyConnection) -> None:
    refused(duck, sql)


@pytest.mark.parametrize(
    "sql",
    [
        "SET enable_external_access = true", "SET allowed_directories = ['/']", "SET allowed_paths = ['/etc/passwd']", "SET lock_configuration = false",
        "RESET enable_external_access", "RESET lock_configuration", "SET autoload_known_extensions = true", "SET allow_unsigned_extensions = true", "SET memory_limit = '100GB'",
        "SET threads = 64", "SET temp_directory = '/tmp'", "SET TimeZone = 'Asia/Kolkata'", "SET GLOBAL extension_directory = '/tmp'", "SET SESSION home_directory = '/root'",
        "PRAGMA enable_external_access = true", "PRAGMA memory_limit = '1TB'", "SET file_search_path = '/etc'", "SET log_query_path = '/tmp/x'", "PRAGMA enable_profiling",
        "SET profiling_output = '/tmp/x'",
    ],
)  # fmt: skip
def test_no_setting(sql: str, duck: duckdb.DuckDBPyConnection) -> None:
    refused(duck, sql)


def test_it_knows_nothing_of_the_process(duck: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_DSN", "mysql://crm:secret@db/crm")
    refused(duck, "SELECT getenv('SECRET_DSN')")
    frame = {"secret": [1]}
    assert frame
    refused(duck, "SELECT * FROM frame")
    assert os.environ["SECRET_DSN"]


def test_spills_into_the_job_and_nowhere_else(duck: duckdb.DuckDBPyConnection, paths: JobPaths) -> None:
    settings = dict(duck.execute("SELECT name, value FROM duckdb_settings()").fetchall())
    assert settings["temp_directory"] == str(paths.temp)
    assert settings["enable_external_access"] == "false"
    assert settings["lock_configuration"] == "true"
    assert settings["autoinstall_known_extensions"] == settings["autoload_known_extensions"] == "false"


def test_cursors_are_behind_the_same_wall(duck: duckdb.DuckDBPyConnection, outside: Path) -> None:
    cursor = duck.cursor()
    refused(cursor, f"SELECT * FROM read_csv('{outside}')")
    refused(cursor, "SET lock_configuration = false")


WAYS_OUT = [
    "SELECT * FROM read_csv('{}')", "SELECT * FROM read_text('{}')", "SELECT * FROM glob('{}')", "SELECT * FROM '{}'", "COPY (SELECT 1) TO '{}'",
    "COPY (SELECT 1) TO '{}.new' (FORMAT parquet)", "ATTACH '{}.db'", "EXPORT DATABASE '{}.folder'", "INSTALL httpfs", "LOAD httpfs",
    "SELECT * FROM read_csv('https://example.com/x.csv')", "SET enable_external_access = true", "SET lock_configuration = false",
    "RESET lock_configuration", "PRAGMA enable_profiling", "SET allowed_directories = ['/']", "SELECT getenv('HOME')", "CREATE SECRET (TYPE s3)",
    "SELECT * FROM read_text('{}/../workspace.db')", "SELECT * FROM read_text('/etc/passwd')",
]  # fmt: skip


def test_the_processes_that_transform_are_behind_the_same_wall(paths: JobPaths, outside: Path, tmp_path: Path) -> None:
    paths.base.mkdir()
    paths.create()
    before = sorted(tmp_path.rglob("*"))
    with Workers(paths, 1) as workers:
        for n, sql in enumerate(WAYS_OUT):
            query = Query((sql.format(outside),), ("done AS (SELECT 1 AS _ph_outcome)",), ())
            task = Task(f"e{n}", query, paths.stage / "in", paths.transformed / "out")
            with pytest.raises(JobFailedError, match="the transform failed"):
                workers.submit(task).result(60)
        fine = Query(("SELECT 1",), ("done AS (SELECT a FROM part)",), ())
        missing = Task("fine", fine, paths.stage / "in", paths.transformed / "out")
        with pytest.raises(JobFailedError, match="No files found"):
            workers.submit(missing).result(60)
    assert sorted(tmp_path.rglob("*")) == before
    assert outside.read_text() == "secret\n1\n"


def test_trials_of_an_expression_are_behind_a_wall_without_a_door(outside: Path) -> None:
    with Bench() as bench:
        for sql in WAYS_OUT:
            refused(bench._duck, sql.format(outside))


def test_a_source_of_files_sees_no_others(tmp_path: Path, outside: Path) -> None:
    """A plan's SELECT over CSV files runs in a DuckDB too."""
    folder = tmp_path / "files"
    folder.mkdir()
    (folder / "a.csv").write_text("id,x\n1,y\n")
    source = open_source(str(folder))
    try:
        assert source.count("SELECT * FROM a") == 1
        for sql in WAYS_OUT:
            with pytest.raises(PackhorseError):
                source.count(sql.format(outside))
            with pytest.raises(PackhorseError):
                list(source.pages(sql.format(outside), [], after=None, size=10))
    finally:
        source.close()
    assert sorted(tmp_path.rglob("*")) == [folder, folder / "a.csv", outside]
