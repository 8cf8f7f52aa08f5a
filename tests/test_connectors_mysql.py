"""MariaDB as a source: values as sent, one state, what is refused and how."""

from __future__ import annotations

import resource
import sys
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from ruamel.yaml import YAML

from connectors.dsn import open_source
from connectors.protocols import Kind, Source
from sample_data.servers import Database, MariadbServer
from workspace.errors import CatalogueError, ConnectError, DsnError, SourceLostError, UsageError

CASES = YAML(typ="safe").load(Path(__file__).parent / "cases" / "connectors" / "mysql.yaml")


def read(source: Source, relation: str, key: tuple[str, ...] = (), size: int = 1000) -> list[list[Any]]:
    """All values of a relation, rows as lists."""
    rows = []
    for page in source.pages(relation, key, after=None, size=size):
        rows += [list(row.values()) for row in page.rows.to_pylist()]
    return rows


@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_values_arrive_as_the_text_that_the_server_has(mariadb_database: Database, case: dict[str, Any]) -> None:
    mariadb_database.run("SET sql_mode='';" + case["sql"])
    relation = case.get("read", "t")
    with closing(open_source(mariadb_database.dsn)) as source:
        columns = source.describe(relation).columns
        rows = read(source, relation, (columns[0].name,), size=1)
        for row in rows:
            for i, (value, column) in enumerate(zip(row, columns, strict=True)):
                assert isinstance(value, bytes) == (column.kind is Kind.BINARY and value is not None)
                row[i] = f"hex:{value.hex()}" if isinstance(value, bytes) else value
        assert rows == case["want"]
        assert source.count(relation) == len(rows)


def test_the_catalogue(mariadb_database: Database) -> None:
    mariadb_database.run(
        "CREATE TABLE accounts (id char(36) primary key, name varchar(80) NOT NULL COMMENT 'as printed', unique (name))"
        " COMMENT 'companies';"
        "CREATE TABLE contacts (id bigint unsigned auto_increment primary key, account_id char(36), mood enum('so','la''la'),"
        " flag bit(1), nick varchar(20) character set latin1 collate latin1_general_cs, code varchar(9) collate utf8mb4_bin,"
        " amount decimal(12,2) default 0, photo mediumblob, age tinyint unsigned, seen timestamp null,"
        " whole varchar(90) as (concat(nick, code)) virtual, unique (code, age), unique half (nick(5)),"
        " foreign key (account_id) references accounts (id));"
        "CREATE VIEW grown AS SELECT id, age FROM contacts;"
        "CREATE TABLE gone (a int); CREATE VIEW broken AS SELECT * FROM gone; DROP TABLE gone"
    )
    with closing(open_source(mariadb_database.dsn)) as source:
        catalogue = source.catalogue()
        assert catalogue.dialect == "mysql"
        assert catalogue.server.startswith("MariaDB 1")
        assert list(catalogue.tables) == ["accounts", "contacts", "grown"]
        assert source.snapshot
    accounts, contacts = catalogue.tables["accounts"], catalogue.tables["contacts"]
    assert (accounts.comment, accounts.primary_key, accounts.view) == ("companies", ("id",), False)
    name = accounts.column("name")
    assert name is not None
    assert (name.type, name.kind, name.length, name.nullable, name.comment) == (
        *("varchar(80)", Kind.TEXT, 80, False, "as printed"),
    )
    kinds = {c.name: (c.kind, c.bits, c.unsigned, c.exact) for c in contacts.columns}
    assert kinds["id"] == (Kind.INTEGER, 64, True, True)
    assert kinds["age"] == (Kind.INTEGER, 8, True, True)
    assert kinds["flag"] == (Kind.BOOLEAN, None, False, True)
    assert kinds["photo"][0] is Kind.BINARY
    assert kinds["seen"][0] is Kind.INSTANT
    assert kinds["nick"] == (Kind.TEXT, None, False, False)
    assert kinds["code"] == (Kind.TEXT, None, False, True)
    by_name = {c.name: c for c in contacts.columns}
    assert by_name["mood"].labels == ("so", "la'la")
    assert (by_name["amount"].precision, by_name["amount"].scale, by_name["amount"].has_default) == (12, 2, True)
    assert by_name["whole"].generated
    assert {key.columns for key in contacts.unique_keys} == {("id",), ("code", "age")}
    (reference,) = contacts.foreign_keys
    assert (reference.columns, reference.referred_table, reference.referred_columns) == (
        *(("account_id",), "accounts", ("id",)),
    )
    assert catalogue.tables["grown"].view


def test_an_empty_database_is_an_empty_catalogue(mariadb_database: Database) -> None:
    with closing(open_source(mariadb_database.socket_dsn)) as source:
        assert source.catalogue().tables == {}


def test_all_pages_and_counts_are_of_one_state(mariadb_database: Database) -> None:
    mariadb_database.run(
        "CREATE TABLE t (id int primary key); CREATE TABLE u (id int primary key); INSERT INTO t VALUES (1),(2),(3)"
    )
    with closing(open_source(mariadb_database.dsn)) as source:
        stream = source.pages("t", ("id",), after=None, size=1)
        next(stream)
        mariadb_database.run("INSERT INTO t VALUES (4); DELETE FROM t WHERE id = 2; INSERT INTO u VALUES (1)")
        assert [page.last_key for page in stream] == [("2",), ("3",)]
        assert source.count("t") == 3
        assert read(source, "u") == []
        assert source.query("SELECT count(*) FROM t") == [(3,)]  # 1, 3, 4: a survey sees what is there now
        assert source.query("SELECT id FROM t WHERE id > %s AND 'a%%' LIKE 'a%%'", (3,)) == [(4,)]


def test_myisam_is_no_snapshot(mariadb_database: Database) -> None:
    mariadb_database.run("CREATE TABLE t (id int primary key) ENGINE=MyISAM")
    with closing(open_source(mariadb_database.dsn)) as source:
        assert not source.snapshot


def test_nothing_can_be_written(mariadb_database: Database) -> None:
    mariadb_database.run("CREATE TABLE t (id int primary key)")
    with closing(open_source(mariadb_database.dsn)) as source:
        with pytest.raises(CatalogueError, match="READ ONLY"):
            source.query("INSERT INTO t VALUES (1)")
        with pytest.raises((CatalogueError, ConnectError)):
            source.describe("SELECT 1) AS x; DROP TABLE t; -- ")
    assert mariadb_database.rows("SELECT count(*) FROM t") == [(0,)]


def test_a_table_of_another_database(mariadb_database: Database, mariadb: MariadbServer) -> None:
    other = mariadb.new_database()
    other.run("CREATE TABLE t (id int primary key); INSERT INTO t VALUES (7)")
    mariadb_database.run("CREATE TABLE `a.b` (id int primary key); INSERT INTO `a.b` VALUES (8)")
    with closing(open_source(mariadb_database.dsn)) as source:
        assert read(source, f"{other.name}.t", ("id",)) == [["7"]]
        assert read(source, "a.b", ("id",)) == [["8"]]
    mariadb.drop(other)


def test_what_is_refused_is_one_line_that_names_no_password(mariadb_database: Database, mariadb: MariadbServer) -> None:
    name = mariadb_database.name
    mariadb.run("CREATE USER IF NOT EXISTS poor@'%' IDENTIFIED BY 'x'")
    for dsn, what in [
        (mariadb.dsn(name, password="wrong-wrong"), "user or the password"),
        (mariadb.dsn(name, user="nobody"), "user or the password"),
        (mariadb.dsn("not_there"), "no such database"),
        (mariadb.dsn(name, user="poor", password="x"), "may not use this database"),
        ("mysql://u:hushhush@127.0.0.1:1/x", "no server answers"),
        ("mysql://u:hushhush@nowhere.invalid/x", "host is not known"),
        ("mysql:///x?unix_socket=/nowhere/s", "no server answers"),
        (f"{mariadb.dsn(name)}?ssl_mode=REQUIRED", "encrypt"),
    ]:
        with pytest.raises(ConnectError, match=what) as raised:
            open_source(dsn)
        error = raised.value
        text = str(error) + error.advice + repr(error)
        assert "\n" not in text
        assert not any(secret in text for secret in ("wrong-wrong", "hushhush", mariadb.password))
        assert error.advice
    with pytest.raises(DsnError, match="nonsense"):
        open_source(f"{mariadb.dsn(name)}?nonsense=1")


def test_what_a_plan_names_and_is_not_there(mariadb_database: Database, mariadb: MariadbServer) -> None:
    mariadb_database.run("CREATE TABLE t (id int primary key, a int); CREATE TABLE secret (id int)")
    mariadb.run(
        f"CREATE USER IF NOT EXISTS half@'%' IDENTIFIED BY 'x'; GRANT SELECT ON {mariadb_database.name}.t TO half@'%'"
    )
    with closing(open_source(mariadb.dsn(mariadb_database.name, user="half", password="x"))) as source:
        assert list(source.catalogue().tables) == ["t"]
        for relation, what in [
            ("nothing", "nothing"),
            ("secret", "secret"),
            ("SELECT nope FROM t", "nope"),
            ("SELECT id, id FROM t", "Duplicate column"),
            ("SELECT FROM WHERE", "syntax"),
        ]:
            with pytest.raises((CatalogueError, ConnectError), match=what):
                source.describe(relation)
        with pytest.raises(CatalogueError, match="there is no column nope"):
            list(source.pages("t", ("nope",), after=None, size=1))


def test_a_server_that_dies_in_mid_stream_is_lost_and_its_pages_can_be_gone_on_from(
    mariadb_to_crash: MariadbServer,
) -> None:
    database = mariadb_to_crash.new_database()
    database.run(
        "CREATE TABLE t (id int primary key, v varchar(2000));"
        "INSERT INTO t SELECT seq, REPEAT('x', 2000) FROM seq_1_to_20000"
    )
    source = open_source(database.dsn)
    stream = source.pages("t", ("id",), after=None, size=100)
    last = next(stream).last_key
    mariadb_to_crash.kill()
    done = [last]
    with pytest.raises(SourceLostError) as raised:
        done.extend(page.last_key for page in stream)
    last = done[-1]
    assert raised.value.exit_code == 1
    source.close()
    mariadb_to_crash.start()
    with closing(open_source(database.dsn)) as again:
        rest = sum(page.rows.num_rows for page in again.pages("t", ("id",), after=last, size=1000))
    assert int(last[0]) + rest == 20000


def test_a_survey_survives_a_restart_of_the_server(mariadb_to_crash: MariadbServer) -> None:
    database = mariadb_to_crash.new_database()
    with closing(open_source(database.dsn)) as source:
        mariadb_to_crash.restart()
        assert source.query("SELECT 1") == [(1,)]


def test_a_long_stream_is_held_page_by_page(mariadb_database: Database) -> None:
    mariadb_database.run(
        "CREATE TABLE t (id int primary key, v varchar(500)); INSERT INTO t SELECT seq, REPEAT('x', 500) FROM seq_1_to_400000"
    )
    # a process of its own: the peak of this one tells of all the tests before
    with ProcessPoolExecutor(1, get_context("spawn")) as child:
        rows, read_early, rows_held, grown = child.submit(_read_whole_and_leave_early, mariadb_database.dsn).result()
    assert rows == 400_000
    assert read_early < 20_000_000  # of 200 MB
    assert rows_held < 64 << 20
    assert grown < 120 << 20


def _read_whole_and_leave_early(dsn: str) -> tuple[int, int, int, int]:
    """Rows of a stream read to its end; of one left after a page, the bytes that the server had sent; bytes that rows
    hold; how far the process grew, in bytes."""
    with closing(open_source(dsn)) as source:
        sent = "SELECT VARIABLE_VALUE FROM information_schema.GLOBAL_STATUS WHERE VARIABLE_NAME = 'BYTES_SENT'"
        stream = source.pages("t", ("id",), after=None, size=10)
        next(stream)
        before_leaving = int(source.query(sent)[0][0])
        stream.close()  # type: ignore[attr-defined]
        read_early = int(source.query(sent)[0][0]) - before_leaving
        before = _peak()
        rows = sum(page.rows.num_rows for page in source.pages("t", ("id",), after=None, size=20000))
        return rows, read_early, pa.total_allocated_bytes(), _peak() - before


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def test_a_missing_driver_is_a_clear_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "MySQLdb", None)
    with pytest.raises(UsageError, match="mysqlclient") as raised:
        open_source("mysql://db/crm")
    assert "pip install packhorse[mysql]" in raised.value.advice
