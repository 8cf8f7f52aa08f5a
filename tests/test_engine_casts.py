"""Casts: a table of values for each kind of target column, and that PostgreSQL shows what was cast as it was cast.

The canonical text must equal the server's own `::text` after the value went in by COPY, or a checksum could not
be computed again there.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import psycopg
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML

from connectors.dsn import Dsn
from connectors.postgres import PostgresTarget
from connectors.protocols import Column
from engine.casts import cast_to
from engine.compile import is_hashed
from engine.duck import open_duck
from engine.expressions import Piece
from sample_data.servers import Database, PostgresServer
from workspace.errors import PlanError
from workspace.paths import JobPaths

TABLE = """
CREATE TYPE mood AS ENUM ('good', 'bad', 'it''s', ' odd ');
CREATE DOMAIN code AS varchar(5);
CREATE DOMAIN fixed AS char(4);
CREATE DOMAIN second AS timestamp(0);
CREATE TABLE kinds(
  id int PRIMARY KEY, text text, varchar varchar(6), char char(4), code code, fixed fixed, small smallint, int int, big bigint,
  numeric numeric, money numeric(9,2), whole numeric(5,0), fraction numeric(4,4), tiny numeric(2,5), thousands numeric(3,-3), wide numeric(60,20),
  real real, double double precision, bool boolean, date date, stamp timestamp, stamp3 timestamp(3), second second, instant timestamptz,
  instant0 timestamptz(0), time time, time0 time(0), uuid uuid, mood mood, list text[], moods mood[], bytes bytea, json json, jsonb jsonb)
"""


@pytest.fixture(scope="module")
def duck(tmp_path_factory: pytest.TempPathFactory) -> Iterator[duckdb.DuckDBPyConnection]:
    connection = open_duck(JobPaths(tmp_path_factory.mktemp("job"), "job").create())
    yield connection
    connection.close()


@pytest.fixture(scope="module")
def database(postgres: PostgresServer) -> Iterator[Database]:
    database = postgres.new_database()
    database.run(TABLE)
    yield database
    postgres.drop(database)


@pytest.fixture(scope="module")
def target(database: Database) -> Iterator[PostgresTarget]:
    target = PostgresTarget(Dsn.parse(database.socket_dsn))
    yield target
    target.close()


@pytest.fixture(scope="module")
def columns(target: PostgresTarget) -> dict[str, Column]:
    return {c.name: c for c in target.catalogue().tables["kinds"].columns}


def cast(
    duck: duckdb.DuckDBPyConnection, column: Column, values: list[Any], type_: str = "VARCHAR"
) -> list[tuple[str | None, str | None, str | None]]:
    """Value, reason and change of each."""
    found = cast_to(column, Piece("v", None, type_), "f")
    duck.register("given_view", pa.table({"n": list(range(len(values))), "v": pa.array(values, ARROW[type_])}))
    rows = duck.execute(
        f"SELECT {found.value}, {found.reason or 'NULL'}, {found.change or 'NULL'} FROM given_view ORDER BY n"
    ).fetchall()
    duck.unregister("given_view")
    return [(row[0], row[1], row[2]) for row in rows]


ARROW = {"VARCHAR": pa.string(), "BLOB": pa.binary(), "VARCHAR[]": pa.list_(pa.string()), "BOOLEAN": pa.bool_()}
CASES = YAML(typ="safe").load(
    (Path(__file__).parent / "cases" / "expressions" / "casts.yaml").read_text(encoding="utf-8")
)


@pytest.mark.parametrize("name", CASES)
def test_table(name: str, duck: duckdb.DuckDBPyConnection, columns: dict[str, Column]) -> None:
    cases = CASES[name]
    given_ = [case["in"] for case in cases]
    type_ = "VARCHAR[]" if any(isinstance(value, list) for value in given_) else "VARCHAR"
    for case, (value, reason, change) in zip(cases, cast(duck, columns[name], given_, type_), strict=True):
        if "reason" in case:
            assert reason == case["reason"], case
        else:
            assert (reason, value) == (None, case["out"]), case
        assert change == case.get("change"), case


def test_every_kind_has_a_table(columns: dict[str, Column]) -> None:
    assert set(CASES) | {"id"} == set(columns)


def test_what_can_never_go_there_is_refused(columns: dict[str, Column]) -> None:
    for column, type_ in (
        ("text", "VARCHAR[]"),
        ("list", "VARCHAR"),
        ("int", "BLOB"),
        ("text", "BLOB"),
        ("date", "BLOB"),
    ):
        with pytest.raises(PlanError) as caught:
            cast_to(columns[column], Piece("v", None, type_), "entities.t.fields.x")
        assert caught.value.where == "entities.t.fields.x"


DIGITS = st.text("0123456789", min_size=1, max_size=22)
SIGN = st.sampled_from(["", "-", "+"])
NUMBERS = st.one_of(
    st.builds("{}{}".format, SIGN, DIGITS),
    st.builds("{}{}.{}".format, SIGN, DIGITS, DIGITS),
    st.builds("{}.{}".format, SIGN, DIGITS),
    st.builds("{}{}.".format, SIGN, DIGITS),
    st.builds("{}{}.{}e{}".format, SIGN, st.text("0123456789", min_size=1, max_size=9), st.text("0123456789", max_size=9), st.integers(-30, 30)),
    st.integers(-(2**70), 2**70).map(str),
    st.decimals(allow_nan=False, allow_infinity=False, places=3, min_value=-10000, max_value=10000).map(str),
    st.sampled_from(["", " ", "NaN", "inf", "1e99", "-0", "-0.0", "00", ".", "-", "1e", "٣", "1_000", "0x1F", "1,5"]),
)  # fmt: skip
DAYS = st.one_of(
    st.dates().map(str),
    st.builds("{:04d}-{:02d}-{:02d}".format, st.integers(0, 9999), st.integers(0, 13), st.integers(0, 32)),
    st.sampled_from(["", " ", "0000-00-00", "infinity", "today", "2011-4-3", "20110403", "10000-01-01", "0044-03-15 BC", " 2011-04-03 "]),
)  # fmt: skip
FRACTIONS = st.one_of(st.just(""), st.text("0123456789", min_size=1, max_size=9).map(".{}".format))
MOMENTS = st.one_of(
    st.datetimes().map(str),
    st.builds("{}{}{}{}{}".format, DAYS, st.sampled_from([" ", "T", "  "]),
              st.builds("{:02d}:{:02d}:{:02d}".format, st.integers(0, 25), st.integers(0, 60), st.integers(0, 61)), FRACTIONS,
              st.sampled_from(["", "", "Z", "+00", "+05:30", "-0330", "+15", "+16", "+99:99", " UTC"])),
    DAYS,
)  # fmt: skip
STRANGE = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
LISTS = st.lists(st.one_of(st.none(), STRANGE, st.sampled_from(["", "NULL", "null", '"', "\\", "{}", ",", " ", "a b", "\v", "\t", "\u00a0", "\u2028", "\x1c", "\x85"])), max_size=4)  # fmt: skip
GIVEN: dict[str, Any] = {
    "text": STRANGE, "varchar": STRANGE, "char": STRANGE, "code": STRANGE, "fixed": STRANGE, "small": NUMBERS, "int": NUMBERS, "big": NUMBERS, "numeric": NUMBERS,
    "money": NUMBERS, "whole": NUMBERS, "fraction": NUMBERS, "tiny": NUMBERS, "thousands": NUMBERS, "wide": NUMBERS, "date": DAYS, "stamp": MOMENTS, "stamp3": MOMENTS,
    "second": MOMENTS, "instant": MOMENTS, "instant0": MOMENTS, "bool": st.sampled_from(["1", "0", "true", "FALSE", "t", "F", "yes", "", " ", "2", " 1 ", "01"]),
    "uuid": st.one_of(st.uuids().map(str), st.uuids().map(lambda u: u.hex.upper()), st.uuids().map("{{{}}}".format), STRANGE),
    "mood": st.sampled_from(["good", " good ", "Good", "", "it's", " odd ", "odd", "x"]), "list": LISTS,
    "moods": st.lists(st.sampled_from(["good", "it's", " odd "]), max_size=3),
}  # fmt: skip


@pytest.mark.parametrize("name", GIVEN)
def test_postgresql_shows_what_was_cast(
    name: str, duck: duckdb.DuckDBPyConnection, target: PostgresTarget, database: Database, columns: dict[str, Column]
) -> None:
    column = columns[name]
    assert is_hashed(column)
    type_ = "VARCHAR[]" if name in ("list", "moods") else "VARCHAR"

    @given(st.lists(GIVEN[name], min_size=40, max_size=100))
    @settings(max_examples=5, deadline=None, suppress_health_check=list(HealthCheck), database=None)
    def prove(values: list[Any]) -> None:
        taken = [
            value for value, reason, _ in cast(duck, column, values, type_) if reason is None and value is not None
        ]
        ids = pa.array([str(n) for n in range(len(taken))])
        target.begin()
        try:
            target.insert(table, ["id", name], pa.table({"id": ids, name: pa.array(taken, pa.string())}))
            found = target.read(f'SELECT "{name}"::text, md5("{name}"::text) FROM kinds ORDER BY id')
        finally:
            target.rollback()
        assert found == [(value, hashlib.md5(value.encode()).hexdigest()) for value in taken]

    table = target.catalogue().tables["kinds"]
    prove()


@given(st.lists(st.binary(max_size=20), min_size=1, max_size=50))
@settings(max_examples=10, deadline=None, database=None)
def test_binary(duck: duckdb.DuckDBPyConnection, columns: dict[str, Column], values: list[bytes]) -> None:
    expected = [("\\x" + value.hex(), None, None) for value in values]
    assert cast(duck, columns["bytes"], values, "BLOB") == expected


def test_booleans_are_numbers_too(duck: duckdb.DuckDBPyConnection, columns: dict[str, Column]) -> None:
    for name, wanted in (("int", ["1", "0", None]), ("bool", ["true", "false", None]), ("numeric", ["1", "0", None])):
        assert [value for value, _, _ in cast(duck, columns[name], [True, False, None], "BOOLEAN")] == wanted


@given(st.lists(STRANGE, min_size=30, max_size=60))
@settings(max_examples=3, deadline=None, suppress_health_check=list(HealthCheck), database=None)
def test_no_text_makes_a_cast_fail(
    duck: duckdb.DuckDBPyConnection, columns: dict[str, Column], values: list[str]
) -> None:
    """Every kind answers any text with a value or a reason, and never with an exception."""
    for name, column in columns.items():
        if name not in ("list", "moods"):
            for value, reason, _ in cast(duck, column, values):
                assert reason is None or isinstance(reason, str)
                assert value is None or isinstance(value, str)


def test_the_session_hides_nothing(database: Database, target: PostgresTarget) -> None:
    """Whatever the user's own settings are, a checksum sees the same text."""
    with psycopg.connect(database.socket_dsn, autocommit=True) as connection:
        connection.execute(
            f"ALTER DATABASE {database.name} SET datestyle = 'SQL, DMY'; ALTER DATABASE {database.name} SET timezone = 'Asia/Kolkata'; "
            f"ALTER DATABASE {database.name} SET bytea_output = 'escape'; ALTER DATABASE {database.name} SET extra_float_digits = 0"
        )
    other = PostgresTarget(Dsn.parse(database.socket_dsn))
    statement = "SELECT DATE '2011-04-03'::text, TIMESTAMPTZ '2011-04-03 10:00:00+00'::text, '\\x00'::bytea::text, 0.1::float8::text"
    try:
        assert other.read(statement) == target.read(statement)
        assert other.read(statement)[0][:3] == ("2011-04-03", "2011-04-03 10:00:00+00", "\\x00")
    finally:
        other.close()
