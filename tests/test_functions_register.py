"""Domain functions in DuckDB: distinct values only, any shape of input, nothing raised, memory bounded."""

from __future__ import annotations

import random
from collections.abc import Iterator

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.functions import FUNCTIONS
from engine.functions import register as registering
from engine.functions.protocol import DomainFunction, Outcome, Reason
from engine.functions.register import arities, register, udf_name, vectorised


@pytest.fixture
def duck() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        register(connection)
        yield connection


def counting(parameters: int) -> tuple[DomainFunction, list[tuple[str | None, ...]]]:
    calls: list[tuple[str | None, ...]] = []

    def call(*arguments: str | None) -> Outcome:
        calls.append(arguments)
        if "bad" in arguments:
            return None, Reason("not good", soft="soft" in arguments)
        return "|".join("NULL" if a is None else a for a in arguments), None

    names = tuple(f"p{i}" for i in range(parameters))
    return DomainFunction("counted", names, 0, "VARCHAR", call), calls


def test_every_function_and_arity_is_there(duck: duckdb.DuckDBPyConnection) -> None:
    for function in FUNCTIONS.values():
        for arity in arities(function):
            sql = f"SELECT {udf_name(function.name, arity)}({', '.join(['NULL'] * arity)}).r"
            duck.execute(sql).fetchall()
    assert list(arities(FUNCTIONS["phone"])) == [1, 2]
    assert list(arities(FUNCTIONS["local_time"])) == [2]


def test_called_once_a_distinct_value() -> None:
    function, calls = counting(1)
    column = pa.chunked_array([["a", "b", None], ["a", "bad", "b", None]])
    out = vectorised(function, 1)(column).to_pylist()
    assert sorted(calls, key=str) == [("a",), ("b",), ("bad",), (None,)]
    assert [row["v"] for row in out] == ["a", "b", "NULL", "a", None, "b", "NULL"]
    assert [row["r"] for row in out] == [None, None, None, None, "not good", None, None]
    assert [row["soft"] for row in out] == [False] * 7
    vectorised(function, 1)(column)
    assert len(calls) == 4  # remembered from chunk to chunk


def test_called_once_a_distinct_pair() -> None:
    function, calls = counting(2)
    first, second = pa.array(["a", "a", "b", None, "a", "bad"]), pa.array(["x", "y", "x", "x", "x", "soft"])
    out = vectorised(function, 2)(first, second).to_pylist()
    assert len(calls) == 5
    assert [row["v"] for row in out] == ["a|x", "a|y", "b|x", "NULL|x", "a|x", None]
    assert out[-1] == {"v": None, "r": "not good", "soft": True}


values = st.sampled_from([None, "", "a", "b", "bad", "soft", "x" * 300])


@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(values, values, values), max_size=40), st.integers(1, 3))
def test_any_rows_as_one_by_one(rows: list[tuple[str | None, ...]], width: int) -> None:
    function, calls = counting(width)
    cut = [row[:width] for row in rows]
    columns = [pa.array([row[i] for row in cut], pa.string()) for i in range(width)]
    out = vectorised(function, width)(*columns).to_pylist()
    assert len(calls) == len(set(cut))
    for row, got in zip(cut, out, strict=True):
        value, reason = function.call(*row)
        assert got == {"v": value, "r": reason and reason.code, "soft": bool(reason and reason.soft)}


def test_what_a_function_did_not_foresee_is_a_reason_of_its_rows_alone() -> None:
    def call(value: str | None) -> Outcome:
        if value == "boom":
            raise ZeroDivisionError
        return value, None

    function = DomainFunction("broken", ("value",), 0, "VARCHAR", call)
    out = vectorised(function, 1)(pa.array(["a", "boom", "b", "boom"])).to_pylist()
    assert [row["v"] for row in out] == ["a", None, "b", None]
    assert [row["r"] for row in out] == [None, "function failed", None, "function failed"]


def test_memory_is_bounded() -> None:
    function, calls = counting(1)
    over = vectorised(function, 1)
    over(pa.array([str(i) for i in range(registering._REMEMBERED * 2)]))
    remembered = registering._remembering(function.call)
    assert remembered.cache_info().currsize == registering._REMEMBERED  # type: ignore[attr-defined]
    calls.clear()
    over(pa.array(["y" * 1000, "a"]))
    over(pa.array(["y" * 1000, "a"]))
    assert [len(a or "") for (a,) in calls] == [1000, 1, 1000]  # the long one is asked again, not kept


def test_many_chunks_and_threads(duck: duckdb.DuckDBPyConnection) -> None:
    rng = random.Random(4)
    mails = [f"User{rng.randrange(5000)}@Example{rng.randrange(3)}.com" for _ in range(60_000)]
    table = pa.table({"n": range(len(mails)), "mail": mails})
    duck.execute("SET threads = 4").fetchall()
    duck.register("mails", table)
    rows = duck.execute(
        "SELECT n, ph_email_1(mail).v, ph_phone_2('089 123456', CASE WHEN n % 2 = 0 THEN 'DE' END).r FROM mails ORDER BY n"
    ).fetchall()
    assert [row[1] for row in rows] == [m.lower() for m in mails]
    assert {row[2] for row in rows} == {None, "phone number without a country"}


def test_nul_and_long_values_pass(duck: duckdb.DuckDBPyConnection) -> None:
    (row,) = duck.execute(
        "SELECT ph_html_text_1('a' || chr(0) || '&amp;' || repeat('b', 1000000)).v, ph_boolean_1('1' || chr(0)).v"
    ).fetchall()
    assert row[0] == "a\x00&" + "b" * 1_000_000
    assert row[1] is True


def test_an_empty_input_and_a_filtered_one(duck: duckdb.DuckDBPyConnection) -> None:
    assert duck.execute("SELECT ph_email_1(x) FROM (SELECT 'a@b.co' AS x WHERE false)").fetchall() == []
    rows = duck.execute(
        "SELECT i, ph_multiselect_1(x).v FROM (SELECT i, CASE WHEN i % 3 = 0 THEN 'a;b' END AS x FROM range(10) t(i)) "
        "WHERE i % 2 = 0 ORDER BY i"
    ).fetchall()
    assert rows == [(0, ["a", "b"]), (2, []), (4, []), (6, ["a", "b"]), (8, [])]


def test_cursors_share_the_functions(duck: duckdb.DuckDBPyConnection) -> None:
    with duck.cursor() as cursor:
        assert cursor.execute("SELECT ph_country_1('Deutschland').v").fetchall() == [("DE",)]


def test_locked_down_connections_still_call(duck: duckdb.DuckDBPyConnection) -> None:
    """Time zones and countries are read by Python, not by DuckDB: its lock does not concern them."""
    duck.execute("SET enable_external_access = false").fetchall()
    duck.execute("SET lock_configuration = true").fetchall()
    (row,) = duck.execute(
        "SELECT CAST(CAST(ph_local_time_2('2011-04-03 10:00:00', 'Asia/Tokyo').v AS TIMESTAMPTZ) AS TIMESTAMPTZ) "
        "= TIMESTAMPTZ '2011-04-03 01:00:00+00'"
    ).fetchall()
    assert row == (True,)
