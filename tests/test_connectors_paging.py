"""Pages of any size, cut anywhere and gone on from anywhere, give exactly the rows that the server has.

The order is the server's own: it is compared with what a plain driver gives for ORDER BY.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from connectors.dsn import open_source
from connectors.protocols import Source
from sample_data.servers import Database, PostgresServer

Key = tuple[Any, ...]

# Case, accents, padding, what needs quoting, and what one collation holds to be equal and another does not.
LETTERS = st.text("aAäÄbBzZßsS09 '\"\\%_-;`", max_size=4)
WIDE = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=4)
INTS = st.integers(-3, 3)
BIG = st.one_of(st.integers(2**63 - 2, 2**63 - 1), st.integers(2**53 - 2, 2**53 + 2), st.integers(0, 9))

quick = settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def read_on(source: Source, relation: str, key: tuple[str, ...], size: int) -> list[dict[str, Any]]:
    """All rows, each page by a query of its own that goes on after the last."""
    rows: list[dict[str, Any]] = []
    after = None
    while True:
        with closing(source.pages(relation, key, after=after, size=size)) as pages:  # type: ignore[type-var]
            page = next(pages, None)
        if page is None:
            return rows
        assert 0 < page.rows.num_rows <= size
        rows += page.rows.to_pylist()
        after = page.last_key


def read_through(source: Source, relation: str, key: tuple[str, ...], size: int) -> list[dict[str, Any]]:
    """All rows out of one stream, whose pages but the last are full."""
    pages = [page.rows for page in source.pages(relation, key, after=None, size=size)]
    assert all(page.num_rows == size for page in pages[:-1])
    return [row for page in pages for row in page.to_pylist()]


def check(dsn: str, key: tuple[str, ...], order: list[str], size: int) -> None:
    """Both ways of reading give the rows in `order` (of the column `n`, which tells each row apart)."""
    with closing(open_source(dsn)) as source:
        for relation in ("t", "SELECT * FROM t"):
            assert [row["n"] for row in read_through(source, relation, key, size)] == order
            assert [row["n"] for row in read_on(source, relation, key, size)] == order
            assert source.count(relation) == len(order)


MARIADB = {
    "ci": ("k varchar(20) primary key", st.tuples(WIDE)),
    "latin1": ("k varchar(20) character set latin1 primary key", st.tuples(LETTERS)),
    "bin": ("k varchar(20) collate utf8mb4_bin primary key", st.tuples(WIDE)),
    "general": ("k varchar(20) collate utf8mb4_general_ci primary key", st.tuples(LETTERS)),
    "unicode": ("k varchar(20) collate utf8mb4_unicode_520_ci primary key", st.tuples(LETTERS)),
    "no pad": ("k varchar(20) collate utf8mb4_unicode_nopad_ci primary key", st.tuples(WIDE)),
    "char": ("k char(5) collate utf8mb4_general_ci primary key", st.tuples(LETTERS)),
    "composite ci": (
        "k varchar(9) collate utf8mb4_unicode_ci, l varchar(9) collate utf8mb4_general_ci, primary key (k, l)",
        st.tuples(LETTERS, LETTERS),
    ),
    "binary(16)": ("k binary(16) primary key", st.tuples(st.binary(min_size=16, max_size=16))),
    "varbinary": ("k varbinary(9) primary key", st.tuples(st.binary(max_size=4))),
    "unsigned": ("k bigint unsigned primary key", st.tuples(BIG)),
    "decimal": ("k decimal(30,10) primary key", st.tuples(st.decimals(-2, 2, places=9))),
    "datetime": (
        "k datetime primary key",
        st.tuples(st.sampled_from(["0000-00-00 00:00:00", "1970-00-13 00:00:00", "2001-01-01 01:01:01"])),
    ),
    "bit": ("k bit(9) primary key", st.tuples(st.integers(0, 300))),
    "composite": (
        "k int, l varchar(9), m binary(2), primary key (k, l, m)",
        st.tuples(INTS, LETTERS, st.binary(min_size=2, max_size=2)),
    ),
    "enum": ("k enum('z','a','M'), l int, primary key (k, l)", st.tuples(st.sampled_from("zaM"), INTS)),
}


@pytest.mark.parametrize("kind", MARIADB)
def test_mariadb(mariadb_database: Database, kind: str) -> None:
    declared, keys = MARIADB[kind]
    names = {"composite": "klm", "enum": "kl", "composite ci": "kl"}.get(kind, "k")
    mariadb_database.run(f"CREATE TABLE t (n int, {declared})")
    order = ", ".join("CAST(k AS CHAR)" if kind == "enum" and name == "k" else name for name in names)
    connection = mariadb_database.server.connect(mariadb_database.name)
    cursor = connection.cursor()
    cursor.execute("SET sql_mode = ''")

    @quick
    @given(st.lists(keys, max_size=12), st.integers(1, 5))
    def same(rows: list[Key], size: int) -> None:
        cursor.execute("DELETE FROM t")
        marks = ", ".join(["%s"] * (len(names) + 1))
        for n, row in enumerate(rows):
            cursor.execute(f"INSERT IGNORE INTO t VALUES ({marks})", (n, *row))
        cursor.execute(f"SELECT n FROM t ORDER BY {order}")
        check(mariadb_database.dsn, tuple(names), [str(n) for (n,) in cursor.fetchall()], size)

    same()
    connection.close()


def test_mariadb_keys_that_its_collation_holds_equal(mariadb_database: Database) -> None:
    mariadb_database.run(
        "CREATE TABLE t (n int primary key, k varchar(9));"
        "INSERT INTO t VALUES (1,'a'),(2,'A'),(3,'ä'),(4,'b'),(5,'B '),(6,'B'),(7,'c')"
    )
    with closing(open_source(mariadb_database.dsn)) as source:
        for size in (1, 2, 3, 10):
            assert sorted(row["n"] for row in read_on(source, "t", ("k",), size)) == list("1234567")


ICU = """
CREATE COLLATION numeric (provider = icu, locale = 'en-u-kn-true');
CREATE COLLATION ignoring (provider = icu, locale = 'und-u-ks-level1', deterministic = false);
"""
POSTGRES = {
    "text": ("k text primary key", st.tuples(WIDE)),
    "citext": ("k citext primary key", st.tuples(LETTERS)),
    "char": ("k char(5) primary key", st.tuples(LETTERS)),
    "bytea": ("k bytea primary key", st.tuples(st.binary(max_size=4))),
    "bigint": ("k bigint primary key", st.tuples(BIG)),
    "numeric": ("k numeric primary key", st.tuples(st.decimals(-2, 2, places=9))),
    "float": ("k float8 primary key", st.tuples(st.floats(-1, 1))),
    "uuid": ("k uuid primary key", st.tuples(st.uuids())),
    "timestamptz": ("k timestamptz primary key", st.tuples(st.datetimes().map(lambda t: f"{t}+02"))),
    "enum": ("k mood, l int, primary key (k, l)", st.tuples(st.sampled_from("zaM"), INTS)),
    "composite": ("k int, l text, m bytea, primary key (k, l, m)", st.tuples(INTS, WIDE, st.binary(max_size=2))),
}


ICU_KINDS: dict[str, tuple[str, st.SearchStrategy[Key]]] = {
    "icu": ('k text collate "de-x-icu" primary key', st.tuples(WIDE)),
    "icu numeric": ("k text collate numeric primary key", st.tuples(st.text("a0129 ", max_size=4))),
    "ignoring case": ("k text collate ignoring primary key", st.tuples(LETTERS)),
    "composite ignoring": (
        "k text collate ignoring, l text collate numeric, primary key (k, l)",
        st.tuples(LETTERS, LETTERS),
    ),
}


@pytest.mark.parametrize("kind", ICU_KINDS)
def test_postgres_by_icu(system_postgres: PostgresServer, kind: str) -> None:
    database = system_postgres.new_database()
    database.run(ICU)
    names = "kl" if kind == "composite ignoring" else "k"
    pages_of_postgres(database, *ICU_KINDS[kind], names)
    system_postgres.drop(database)


@pytest.mark.parametrize("kind", POSTGRES)
def test_postgres(postgres_database: Database, kind: str) -> None:
    declared, keys = POSTGRES[kind]
    postgres_database.run("CREATE EXTENSION citext; CREATE TYPE mood AS ENUM ('z', 'a', 'M')")
    pages_of_postgres(postgres_database, declared, keys, {"composite": "klm", "enum": "kl"}.get(kind, "k"))


def pages_of_postgres(database: Database, declared: str, keys: st.SearchStrategy[Key], names: str) -> None:
    """The rows of any keys come in the server's own order."""
    database.run(f"CREATE TABLE t (n int, {declared})")
    connection: Any = database.server.connect(database.name)  # type: ignore[attr-defined]

    @quick
    @given(st.lists(keys, max_size=12), st.integers(1, 5))
    def same(rows: list[Key], size: int) -> None:
        connection.execute("DELETE FROM t")
        marks = ", ".join(["%s"] * (len(names) + 1))
        for n, row in enumerate(rows):
            connection.execute(f"INSERT INTO t VALUES ({marks}) ON CONFLICT DO NOTHING", (n, *row))
        order = connection.execute(f"SELECT n FROM t ORDER BY {', '.join(names)}").fetchall()
        check(database.dsn, tuple(names), [str(n) for (n,) in order], size)

    same()
    connection.close()


def test_postgres_keys_that_citext_holds_equal(postgres_database: Database) -> None:
    postgres_database.run(
        "CREATE EXTENSION citext; CREATE TABLE t (n int primary key, k citext);"
        "INSERT INTO t VALUES (1,'a'),(2,'A'),(3,'b'),(4,'B'),(5,'c')"
    )
    with closing(open_source(postgres_database.dsn)) as source:
        for size in (1, 2, 3, 10):
            assert sorted(row["n"] for row in read_on(source, "t", ("k",), size)) == list("12345")


SQLITE = {
    "integer": ("k integer primary key", st.tuples(st.integers(-(2**63), 2**63 - 1)), "k"),
    "text": ("k text primary key not null", st.tuples(WIDE), "k"),
    "nocase": ("k text collate nocase primary key not null", st.tuples(LETTERS), "k"),
    "varchar of numbers": ("k varchar(9) primary key not null", st.tuples(INTS), "k"),
    "int of anything": ("k int primary key not null", st.tuples(st.one_of(INTS, LETTERS)), "k"),
    "rtrim": ("k text collate rtrim primary key not null", st.tuples(LETTERS), "k"),
    "composite nocase": (
        "k text collate nocase, l text collate rtrim, primary key (k, l)",
        st.tuples(LETTERS, LETTERS),
        "k, l",
    ),
    "real": ("k real primary key not null", st.tuples(st.floats(-1, 1)), "k"),
    "blob": ("k blob primary key not null", st.tuples(st.binary(max_size=4)), "k"),
    "no type": ("k primary key not null", st.tuples(st.one_of(INTS, LETTERS)), "CAST(k AS TEXT)"),
    "composite": (
        "k int, l text, m blob, primary key (k, l, m)",
        st.tuples(INTS, WIDE, st.binary(max_size=2)),
        "k, l, m",
    ),
}


@pytest.mark.parametrize("kind", SQLITE)
def test_sqlite(tmp_path: Path, kind: str) -> None:
    declared, keys, order = SQLITE[kind]
    path = tmp_path / "crm.db"
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute(f"CREATE TABLE t (n int, {declared})")
    names = tuple({"composite": "klm", "composite nocase": "kl"}.get(kind, "k"))

    @quick
    @given(st.lists(keys, max_size=12), st.integers(1, 5))
    def same(rows: list[Key], size: int) -> None:
        if kind == "no type":  # 1 and '1' are two keys there, and one text
            rows = list({str(row[0]): row for row in rows}.values())
        connection.execute("DELETE FROM t")
        for n, row in enumerate(rows):
            marks = ", ".join("?" * (len(row) + 1))
            connection.execute(f"INSERT OR IGNORE INTO t VALUES ({marks})", (n, *row))
        found = connection.execute(f"SELECT n FROM t ORDER BY {order}").fetchall()
        check(f"sqlite:///{path}", names, [str(n) for (n,) in found], size)

    same()
    connection.close()


EQUALS = {
    "mariadb": ["utf8mb4_general_ci", "utf8mb4_unicode_520_ci", "utf8mb4_unicode_nopad_ci", "latin1_swedish_ci"],
    "system_postgres": ["ignoring"],
    "postgres": ["citext"],
    "sqlite": ["nocase", "rtrim"],
}


@pytest.mark.parametrize(("system", "collation"), [(system, each) for system, all_ in EQUALS.items() for each in all_])
def test_keys_that_a_collation_holds_equal(
    request: pytest.FixtureRequest, tmp_path: Path, system: str, collation: str
) -> None:
    """Different texts that the server takes for one key, with no unique index between them: every row, once."""
    execute: Any
    if system == "sqlite":
        dsn, mark = f"sqlite:///{tmp_path / 'crm.db'}", "?"
        execute = sqlite3.connect(tmp_path / "crm.db", isolation_level=None).execute
        execute(f"CREATE TABLE t (n int, k text collate {collation} not null, l int)")
    else:
        server = request.getfixturevalue(system)
        database: Database = server.new_database()
        dsn, mark = database.dsn, "%s"
        connection = server.connect(database.name)
        execute = connection.cursor().execute
        if "postgres" in system:
            database.run(ICU if collation == "ignoring" else "CREATE EXTENSION citext")
        charset = "character set latin1" if collation.startswith("latin1") else ""
        type_ = "citext" if collation == "citext" else f"varchar(9) {charset} collate {collation}"
        execute(f"CREATE TABLE t (n int, k {type_} not null, l int)")

    @quick
    @given(st.lists(LETTERS, unique=True, max_size=12), st.integers(1, 5))
    @example(["", "00", "Aa", "A", ";", "9", "AA", "0", "B"], 1)
    def all_once(keys: list[str], size: int) -> None:
        execute("DELETE FROM t")
        for n, key in enumerate(keys):
            execute(f"INSERT INTO t VALUES ({mark}, {mark}, {mark})", (n, key, n % 2))
        everything = sorted(str(n) for n in range(len(keys)))
        with closing(open_source(dsn)) as source:
            for key_columns in (("k",), ("l", "k"), ("k", "l")):
                assert sorted(row["n"] for row in read_through(source, "t", key_columns, size)) == everything
                assert sorted(row["n"] for row in read_on(source, "t", key_columns, size)) == everything

    all_once()
    if system != "sqlite":
        connection.close()
        server.drop(database)


@quick
@given(st.lists(st.tuples(WIDE, WIDE), unique=True, max_size=12), st.integers(1, 5))
def test_csv(tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, str]], size: int) -> None:
    import csv

    folder = tmp_path_factory.mktemp("files")
    with open(folder / "t.csv", "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, quoting=csv.QUOTE_ALL)
        writer.writerows([("n", "k", "l"), *((n, *row) for n, row in enumerate(rows))])
    order = [str(n) for n in sorted(range(len(rows)), key=lambda n: [text.encode() for text in rows[n]])]
    check(str(folder), ("k", "l"), order, size)
    with closing(open_source(str(folder))) as source:
        in_file = [str(n) for n in range(len(rows))]
        assert [row["n"] for row in read_on(source, "t", (), size)] == in_file
        got = {row["n"]: (row["k"], row["l"]) for row in read_through(source, "t", (), size)}
        assert got == {str(n): row for n, row in enumerate(rows)}


@pytest.fixture(params=["mariadb", "postgres", "sqlite", "csv"])
def keyless(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A DSN of a table with one key that is NULL, in each system."""
    script = "CREATE TABLE t (n int, k varchar(9)); INSERT INTO t VALUES (1,'a'),(2,NULL),(3,'b')"
    if request.param in ("mariadb", "postgres"):
        database: Database = request.getfixturevalue(f"{request.param}_database")
        database.run(script)
        yield database.dsn
    elif request.param == "sqlite":
        with closing(sqlite3.connect(tmp_path / "crm.db")) as connection:
            connection.executescript(script)
        yield f"sqlite:///{tmp_path}/crm.db"
    else:
        (tmp_path / "t.csv").write_text("n,k\n1,a\n2,\n3,b\n")
        yield str(tmp_path)


def test_a_key_that_is_null_is_missed_by_the_count(keyless: str) -> None:
    with closing(open_source(keyless)) as source:
        for relation, size in (("t", 10), ("SELECT * FROM t", 1), ("t", 2)):  # 2: the page is full at the end
            assert [row["n"] for row in read_through(source, relation, ("k",), size)] == ["1", "3"]
            assert source.answered in (2, None)
            assert source.count(relation, ("n", "k")) == 1
        assert [row["n"] for row in read_on(source, "t", ("k",), 1)] == ["1", "3"]
        assert source.count("t") == 3
        assert sorted(row["n"] for row in read_through(source, "t", (), 10)) == ["1", "2", "3"]


def test_a_stream_that_is_left_early_costs_nothing_and_leaves_the_source_usable(keyless: str) -> None:
    with closing(open_source(keyless)) as source:
        for _ in range(2):
            stream = source.pages("t", ("k",), after=None, size=1)
            assert next(stream).last_key == ("a",)
            stream.close()  # type: ignore[attr-defined]
            assert source.answered is None
        assert source.count("t") == 3
