"""PostgreSQL as a source: values as COPY sends them, one state, what is refused and how."""

from __future__ import annotations

import time
from contextlib import closing
from typing import Any

import pytest
from psycopg import sql

from connectors.dsn import Dsn, open_source
from connectors.postgres import PostgresTarget
from connectors.protocols import Kind, Source
from sample_data.servers import Database, PostgresServer
from workspace.errors import CatalogueError, ConnectError, SourceLostError


def read(source: Source, relation: str, key: tuple[str, ...] = (), size: int = 1000) -> list[list[Any]]:
    """All values of a relation, rows as lists."""
    rows = []
    for page in source.pages(relation, key, after=None, size=size):
        rows += [list(row.values()) for row in page.rows.to_pylist()]
    return rows


@pytest.mark.parametrize(
    ("type_", "values", "want"),
    [
        ("text", [r"E'a\"b,\n\r\nc\\.'", "''", "NULL", "'NULL'", r"E'\\.'", "' x '", "'😀'"], None),
        ("varchar(9)", ["'ä'", "'\"'", "','"], None),
        ("char(4)", ["'ab'"], ["ab  "]),
        ("citext", ["'Ana'"], ["Ana"]),
        ("numeric", ["12345678901234567890.10", "'NaN'", "-0.5"], ["12345678901234567890.10", "NaN", "-0.5"]),
        ("float8", ["0.1::float8 + 0.2", "'Infinity'", "1e300"], ["0.30000000000000004", "Infinity", "1e+300"]),
        ("real", ["1234567.8"], ["1.2345678e+06"]),
        ("boolean", ["true", "false"], ["t", "f"]),
        ("bytea", [r"'\x00ff'", "''", r"'\x5c78'"], [b"\x00\xff", b"", b"\\x"]),
        ("timestamptz", ["'2020-06-01 12:00+02'", "'infinity'"], ["2020-06-01 10:00:00+00", "infinity"]),
        ("timestamp", ["'2020-06-01 12:00:00.5'"], ["2020-06-01 12:00:00.5"]),
        ("date", ["'0044-03-15 BC'", "'2020-12-31'"], ["0044-03-15 BC", "2020-12-31"]),
        ("text[]", ["ARRAY['a', 'b,c', NULL]", "'{}'"], ['{a,"b,c",NULL}', "{}"]),
        ("jsonb", ["'{\"k\": [1, null]}'"], ['{"k": [1, null]}']),
        ("uuid", ["'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'"], ["a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"]),
        ("mood", ["'happy'"], ["happy"]),
    ],
)
def test_values_arrive_as_the_text_that_the_server_has(
    postgres_database: Database, type_: str, values: list[str], want: list[Any] | None
) -> None:
    postgres_database.run("CREATE EXTENSION citext; CREATE TYPE mood AS ENUM ('sad', 'happy')")
    postgres_database.run(f"ALTER DATABASE {postgres_database.name} SET datestyle = 'SQL, DMY'")
    rows = ", ".join(f"({n}, {value})" for n, value in enumerate(values))
    postgres_database.run(f"CREATE TABLE t (id int PRIMARY KEY, v {type_}); INSERT INTO t VALUES {rows}")
    want = want or [value for (value,) in postgres_database.rows("SELECT v FROM t ORDER BY id")]
    with closing(open_source(postgres_database.dsn)) as source:
        for size in (1, 2, 100):
            assert [row[1] for row in read(source, "t", ("id",), size)] == want
        assert [row[0] for row in read(source, "SELECT v FROM t ORDER BY id", (), 3)] == want


def test_a_single_column_of_nothing(postgres_database: Database) -> None:
    postgres_database.run(r"CREATE TABLE t (v text); INSERT INTO t VALUES (NULL), (''), (E'\n'), (E'\\.'), (NULL)")
    with closing(open_source(postgres_database.dsn)) as source:
        assert read(source, "t", (), 2) == [[None], [""], ["\n"], ["\\."], [None]]


def test_a_value_larger_than_a_block(postgres_database: Database) -> None:
    postgres_database.run(
        "CREATE TABLE t (id int, v text); INSERT INTO t VALUES (1, repeat(E'ä\\n\"', 1500000)), (2, 'x')"
    )
    with closing(open_source(postgres_database.dsn)) as source:
        assert [len(row[1]) for row in read(source, "t", ("id",), 10)] == [4500000, 1]


def test_what_a_select_gives(postgres_database: Database) -> None:
    postgres_database.run(
        "CREATE TYPE mood AS ENUM ('sad', 'happy');"
        "CREATE TABLE t (id int PRIMARY KEY, n numeric(9,2), m mood, b bytea, v varchar(7))"
    )
    with closing(open_source(postgres_database.dsn)) as source:
        columns = source.describe("SELECT id, n, m, b, v, ARRAY[1] AS a, id + 1 AS more FROM t;").columns
        assert [(c.name, c.kind) for c in columns] == [
            *(("id", Kind.INTEGER), ("n", Kind.DECIMAL), ("m", Kind.ENUM), ("b", Kind.BINARY)),
            *(("v", Kind.TEXT), ("a", Kind.ARRAY), ("more", Kind.INTEGER)),
        ]
        assert (columns[1].scale, columns[2].labels, columns[4].length) == (2, ("sad", "happy"), 7)
        with pytest.raises(CatalogueError, match="two columns the name id"):
            source.describe("SELECT a.id, b.id FROM t a, t b")


def test_names_that_need_quoting_and_schemas(postgres_database: Database) -> None:
    postgres_database.run(
        "CREATE SCHEMA crm; CREATE TABLE crm.people (id int); INSERT INTO crm.people VALUES (1);"
        'CREATE TABLE "or""der by \'x\'" ("select" int, "a b" text, "c%s" int);'
        "INSERT INTO \"or\"\"der by 'x'\" VALUES (1, 'q', 2);"
        'CREATE TABLE "crm.people" (id int); INSERT INTO "crm.people" VALUES (2);'
        "CREATE TABLE whole (id int PRIMARY KEY) PARTITION BY RANGE (id);"
        "CREATE TABLE part PARTITION OF whole FOR VALUES FROM (1) TO (9); INSERT INTO whole VALUES (3)"
    )
    with closing(open_source(postgres_database.dsn)) as source:
        assert read(source, "or\"der by 'x'", ("select",)) == [["1", "q", "2"]]
        assert read(source, "crm.people") == [["2"]]  # the bare name comes first
        assert read(source, "whole", ("id",)) == read(source, "part", ("id",)) == [["3"]]
    with closing(open_source(f"{postgres_database.dsn}?schema=crm")) as source:
        assert list(source.catalogue().tables) == ["people"]
        assert read(source, "people") == [["1"]]
        assert read(source, "public.whole", ("id",)) == [["3"]]


def test_all_pages_and_counts_are_of_one_state(postgres_database: Database) -> None:
    postgres_database.run("CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t VALUES (1), (2), (3)")
    with closing(open_source(postgres_database.dsn)) as source:
        stream = source.pages("t", ("id",), after=None, size=1)
        next(stream)
        postgres_database.run("INSERT INTO t VALUES (4); DELETE FROM t WHERE id = 2")
        assert [page.last_key for page in stream] == [("2",), ("3",)]
        assert source.count("t") == 3
        assert read(source, "t", ("id",)) == [["1"], ["2"], ["3"]]
        assert source.query("SELECT count(*) FROM t WHERE id > %s AND 'a%%' LIKE 'a%%'", (1,)) == [(2,)]


def test_nothing_can_be_written(postgres_database: Database) -> None:
    postgres_database.run("CREATE TABLE t (id int)")
    with closing(open_source(postgres_database.dsn)) as source:
        with pytest.raises(CatalogueError, match="read-only"):
            source.query("INSERT INTO t VALUES (1)")
        for relation in ("SELECT 1) AS x; DROP TABLE t; -- ", "SELECT 1; DROP TABLE t"):
            for ask in (source.describe, source.count, lambda it: read(source, it)):
                with pytest.raises(CatalogueError, match="not one statement"):
                    ask(relation)
        with pytest.raises(CatalogueError, match=r"read-only|must be at the top level"):
            source.count("WITH gone AS (DELETE FROM t RETURNING *) SELECT * FROM gone")
        assert source.count("t") == 0  # usable after a refusal


def test_rows_that_a_policy_hides_are_an_error_and_not_missing(
    postgres_database: Database, postgres: PostgresServer
) -> None:
    role = f"reader_{postgres_database.name}"
    postgres_database.run(
        f"CREATE TABLE t (id int); CREATE TABLE secret (id int); ALTER TABLE t ENABLE ROW LEVEL SECURITY;"
        f"CREATE ROLE {role} LOGIN PASSWORD 'x'; GRANT SELECT ON t TO {role}"
    )
    with closing(open_source(postgres.dsn(postgres_database.name, user=role, password="x"))) as source:
        for relation, what in [("t", "row-level security"), ("secret", "permission denied")]:
            with pytest.raises(ConnectError, match=what):
                source.count(relation)
            with pytest.raises(ConnectError, match=what):
                read(source, relation)
    postgres_database.run(f"DROP OWNED BY {role}; DROP ROLE {role}")


def test_what_is_refused_is_one_line_that_names_no_password(
    postgres_database: Database, postgres: PostgresServer
) -> None:
    for dsn in [
        postgres.dsn(postgres_database.name, password="wrong-wrong"),
        postgres.dsn(postgres_database.name, user="nobody"),
        postgres.dsn("not_there"),
        "postgresql://u:hushhush@127.0.0.1:1/x",
        "postgresql://u:hushhush@nowhere.invalid/x",
        "postgresql:///x?host=/nowhere",
        f"{postgres.dsn(postgres_database.name)}?sslmode=require",
        f"{postgres.dsn(postgres_database.name)}?nonsense=1",
    ]:
        with pytest.raises(ConnectError) as raised:
            open_source(dsn)
        text = str(raised.value) + raised.value.advice + repr(raised.value)
        assert "\n" not in text
        assert not any(secret in text for secret in ("wrong-wrong", "hushhush", postgres.password))
        assert raised.value.advice
    with closing(open_source(postgres_database.dsn)) as source:
        for relation, what in [
            ("nothing", "no table nothing"),
            ("SELECT nope", "nope"),
            ("SELECT FROM WHERE", "syntax"),
        ]:
            with pytest.raises(CatalogueError, match=what) as refused:
                source.describe(relation)
            assert "\n" not in str(refused.value)


def test_a_server_that_dies_in_mid_stream_is_lost_and_its_pages_can_be_gone_on_from(
    postgres_to_crash: PostgresServer,
) -> None:
    database = postgres_to_crash.new_database()
    database.run(
        "CREATE TABLE t (id int PRIMARY KEY, v text);"
        "INSERT INTO t SELECT n, repeat('x', 2000) FROM generate_series(1, 20000) n"
    )
    source = open_source(database.dsn)
    stream = source.pages("t", ("id",), after=None, size=100)
    done = [next(stream).last_key]
    postgres_to_crash.kill()
    with pytest.raises(SourceLostError) as raised:
        done.extend(page.last_key for page in stream)
    assert raised.value.exit_code == 1
    assert "\n" not in str(raised.value)
    postgres_to_crash.start()
    rest = sum(page.rows.num_rows for page in source.pages("t", ("id",), after=done[-1], size=1000))
    assert int(done[-1][0]) + rest == 20000
    source.close()


def test_leaving_a_long_stream_early_does_not_read_it_to_its_end(postgres_database: Database) -> None:
    postgres_database.run(
        "CREATE TABLE t (id int PRIMARY KEY, v text);"
        "INSERT INTO t SELECT n, repeat('x', 500) FROM generate_series(1, 300000) n"
    )
    with closing(open_source(postgres_database.dsn)) as source:
        start = time.monotonic()
        assert sum(page.rows.num_rows for page in source.pages("t", ("id",), after=None, size=20000)) == 300000
        took = time.monotonic() - start
        start = time.monotonic()
        stream = source.pages("t", ("id",), after=None, size=10)
        next(stream)
        stream.close()  # type: ignore[attr-defined]
        assert time.monotonic() - start < took / 3 + 0.5
        assert source.count("t") == 300000


def test_a_target_keeps_null_and_empty_apart_and_a_stream_gives_blocks(postgres_database: Database) -> None:
    target = PostgresTarget(Dsn.parse(postgres_database.dsn))
    text = "CASE i % 3 WHEN 0 THEN NULL WHEN 1 THEN '' ELSE repeat(E'a\\n\"', 400) END"
    query = sql.SQL(f"SELECT {text} FROM generate_series(0, 2999) i ORDER BY i")
    batches = list(target.stream(sql.Composed([query]), ["text"]))
    values = [value for batch in batches for value in batch.column(0).to_pylist()]
    assert values == [(None, "", 'a\n"' * 400)[i % 3] for i in range(3000)]
    assert len(batches) > 1
    assert list(target.stream(sql.Composed([sql.SQL("SELECT 1 WHERE false")]), ["one"])) == []
    target.close()
