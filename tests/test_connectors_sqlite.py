"""SQLite as a source: any value in any column arrives as text, and the file is never written to."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from connectors.dsn import open_source
from connectors.protocols import Kind, Source
from workspace.errors import CatalogueError, ConnectError


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "crm?#%41 .db"


@pytest.fixture
def legacy(path: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        yield connection


def read(source: Source, relation: str, key: tuple[str, ...] = (), size: int = 1000) -> list[list[Any]]:
    """All values of a relation, rows as lists."""
    rows = []
    for page in source.pages(relation, key, after=None, size=size):
        rows += [list(row.values()) for row in page.rows.to_pylist()]
    return rows


def open_file(path: Path) -> Source:
    from connectors.dsn import Dsn

    return open_source(Dsn("sqlite", path=path))


@pytest.mark.parametrize(
    ("declared", "stored", "arrives"),
    [
        ("text", "Müller 😀", "Müller 😀"),
        ("text", "left\0right", "left\0right"),
        ("varchar(9)", "longer than it says", "longer than it says"),
        ("text", 5, "5"),
        ("text", b"M\xfcller \x80\x81", "Müller €\x81"),
        ("", b"M\xfcller", "Müller"),
        ("integer", 2**63 - 1, "9223372036854775807"),
        ("int", "abc", "abc"),
        ("int", 3.5, "3.5"),
        ("real", 0.1 + 0.2, "0.30000000000000004"),
        ("real", 1e300, "1.0e+300"),
        ("decimal(10,2)", "1234.50", "1234.5"),
        ("date", "0000-00-00", "0000-00-00"),
        ("datetime", "1970-00-13 00:00:00", "1970-00-13 00:00:00"),
        ("boolean", 1, "1"),
        ("blob", b"\0\xff", b"\0\xff"),
        ("blob", "text", b"text"),
        ("binary(16)", b"0123456789abcdef", b"0123456789abcdef"),
        ("text", None, None),
        ("blob", None, None),
        ("text", "", ""),
    ],
)
def test_values_arrive_as_what_the_file_holds(
    legacy: sqlite3.Connection, path: Path, declared: str, stored: object, arrives: object
) -> None:
    legacy.execute(f"CREATE TABLE t (id integer primary key, v {declared})")
    legacy.execute("INSERT INTO t VALUES (1, ?), (2, NULL)", (stored,))
    with closing(open_file(path)) as source:
        assert read(source, "t", ("id",)) == [["1", arrives], ["2", None]]
        assert read(source, "SELECT v, id FROM t; -- all", ("id",), 1) == [[arrives, "1"], [None, "2"]]


def test_text_that_is_not_utf8_never_stops_a_read(legacy: sqlite3.Connection, path: Path) -> None:
    legacy.execute("CREATE TABLE t (id integer primary key, v text)")
    legacy.execute("INSERT INTO t VALUES (1, CAST(x'4dfc6c6c6572' AS TEXT)), (2, 'Müller')")
    with closing(open_file(path)) as source:
        assert read(source, "t", ("id",)) == [["1", "Müller"], ["2", "Müller"]]
        assert source.query("SELECT v FROM t WHERE id = %s AND 'a%%' LIKE 'a%%'", (1,)) == [("Müller",)]


def test_the_catalogue(legacy: sqlite3.Connection, path: Path) -> None:
    legacy.executescript(
        """
        CREATE TABLE accounts (id char(36) primary key not null, name varchar(80) NOT NULL unique, "odd ""name" int);
        CREATE TABLE contacts (id integer primary key, account_id char(36) references accounts, born date,
            amount decimal(12,2) default 0, photo blob, vip bool, anything, up text generated always as (upper(born)),
            boss_id int references contacts (id), unique (account_id, born));
        CREATE UNIQUE INDEX some ON contacts (vip) WHERE vip;
        CREATE UNIQUE INDEX low ON contacts (lower(born));
        CREATE UNIQUE INDEX born_vip ON contacts (born, vip);
        CREATE TABLE links (a int, b int, primary key (b, a)) WITHOUT ROWID;
        CREATE VIEW grown AS SELECT id, born, 1 + 1 AS two FROM contacts;
        CREATE TABLE gone (a int); CREATE VIEW broken AS SELECT * FROM gone; DROP TABLE gone;
        CREATE VIRTUAL TABLE words USING fts5(body);
        """
    )
    with closing(open_file(path)) as source:
        catalogue = source.catalogue()
    assert catalogue.dialect == "sqlite"
    assert list(catalogue.tables) == ["accounts", "contacts", "grown", "links", "words"]
    contacts = catalogue.tables["contacts"]
    assert {c.name: c.kind for c in contacts.columns} == {
        **{"id": Kind.INTEGER, "account_id": Kind.TEXT, "born": Kind.DATE, "amount": Kind.DECIMAL},
        **{"photo": Kind.BINARY, "vip": Kind.BOOLEAN, "anything": Kind.TEXT, "up": Kind.TEXT, "boss_id": Kind.INTEGER},
    }
    amount = contacts.column("amount")
    assert amount is not None
    assert (amount.type, amount.precision, amount.scale, amount.has_default) == ("decimal(12,2)", 12, 2, True)
    assert [c.name for c in contacts.columns if c.generated] == ["up"]
    assert [key.columns for key in contacts.unique_keys] == [("id",), ("born", "vip"), ("account_id", "born")]
    assert [(key.columns, key.referred_table, key.referred_columns) for key in contacts.foreign_keys] == [
        (("account_id",), "accounts", ("id",)),
        (("boss_id",), "contacts", ("id",)),
    ]
    assert catalogue.tables["accounts"].unique_keys[1].columns == ("name",)
    assert catalogue.tables["links"].primary_key == ("b", "a")
    assert catalogue.tables["grown"].view


def test_all_pages_and_counts_are_of_one_state(legacy: sqlite3.Connection, path: Path) -> None:
    legacy.executescript("PRAGMA journal_mode = WAL; CREATE TABLE t (id int primary key); INSERT INTO t VALUES (1),(2)")
    with closing(open_file(path)) as source:
        stream = source.pages("t", ("id",), after=None, size=1)
        next(stream)
        legacy.execute("INSERT INTO t VALUES (3)")
        assert [page.last_key for page in stream] == [("2",)]
        assert source.count("t") == 2
        assert source.query("SELECT count(*) FROM t") == [(3,)]


def test_the_file_is_not_changed(legacy: sqlite3.Connection, path: Path) -> None:
    legacy.executescript("CREATE TABLE t (id int primary key); INSERT INTO t VALUES (1)")
    legacy.close()
    before = hashlib.sha256(path.read_bytes()).digest()
    with closing(open_file(path)) as source:
        source.catalogue()
        read(source, "SELECT id FROM t")
        with pytest.raises(CatalogueError, match="readonly"):
            source.query("DELETE FROM t")
        for relation in ("SELECT 1; DROP TABLE t", "SELECT 1) AS x; DROP TABLE t; -- "):
            with pytest.raises(CatalogueError, match="not one statement"):
                source.describe(relation)
    assert hashlib.sha256(path.read_bytes()).digest() == before
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_names_that_need_quoting(legacy: sqlite3.Connection, path: Path) -> None:
    legacy.executescript(
        """CREATE TABLE "or""der by 'x' select" ("select" int primary key, "a b" text, "c%s" int);
        INSERT INTO "or""der by 'x' select" VALUES (1, 'q', 2)"""
    )
    with closing(open_file(path)) as source:
        assert read(source, "or\"der by 'x' select", ("select",)) == [["1", "q", "2"]]


def test_what_is_not_there(legacy: sqlite3.Connection, path: Path, tmp_path: Path) -> None:
    legacy.execute("CREATE TABLE t (id int)")
    with closing(open_file(path)) as source:
        for relation, what in [
            ("nothing", "no table nothing"),
            ("SELECT nope FROM t", "nope"),
            ("SELECT FROM", "syntax"),
        ]:
            with pytest.raises(CatalogueError, match=what):
                source.describe(relation)
        with pytest.raises(CatalogueError, match="no column nope"):
            list(source.pages("t", ("nope",), after=None, size=1))
    (tmp_path / "text.db").write_text("no database at all, but long enough to look like one" * 99)
    (tmp_path / "empty.db").touch()
    for name, what in [("missing.db", "no such file"), ("text.db", "not a database")]:
        with pytest.raises(ConnectError, match=what) as raised:
            open_file(tmp_path / name)
        assert raised.value.advice
    assert not (tmp_path / "missing.db").exists()
    with closing(open_file(tmp_path / "empty.db")) as source:
        assert source.catalogue().tables == {}
