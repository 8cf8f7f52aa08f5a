"""Each domain function over its table in cases/functions: by itself, and through DuckDB as the engine calls it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pytest
from ruamel.yaml import YAML

from engine.functions import FUNCTIONS
from engine.functions.register import register, udf_name, value_type

CASES = Path(__file__).parent / "cases" / "functions"


def cases(name: str) -> list[dict[str, Any]]:
    table: list[dict[str, Any]] = YAML(typ="safe").load(CASES.joinpath(f"{name}.yaml").read_text(encoding="utf-8"))
    return table


def arguments(case: dict[str, Any]) -> tuple[str | None, ...]:
    given = case["in"]
    return tuple(given) if isinstance(given, list) else (given,)


EVERY = [(name, case) for name in FUNCTIONS for case in cases(name)]


@pytest.mark.parametrize(("name", "case"), EVERY, ids=[f"{name} {str(case['in'])[:60]!r}" for name, case in EVERY])
def test_case(name: str, case: dict[str, Any]) -> None:
    value, reason = FUNCTIONS[name].call(*arguments(case))
    if "reason" in case:
        assert reason is not None
        assert value is None
        assert (reason.code, reason.soft) == (case["reason"], case.get("soft", False))
    else:
        assert (value, reason) == (case["out"], None)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_function_has_a_table_worth_the_name(name: str) -> None:
    assert len(cases(name)) >= 20


@pytest.mark.parametrize("name", FUNCTIONS)
def test_through_duckdb(name: str) -> None:
    """The same outcomes come out of DuckDB, and each value casts to what the function returns without loss."""
    function = FUNCTIONS[name]
    with duckdb.connect() as connection:
        register(connection)
        for arity in {len(arguments(case)) for case in cases(name)}:
            table = [case for case in cases(name) if len(arguments(case)) == arity]
            columns = [f"a{i}" for i in range(arity)]
            connection.execute(f"CREATE TABLE t{arity}(n INT, {', '.join(c + ' VARCHAR' for c in columns)})").fetchall()
            connection.executemany(
                f"INSERT INTO t{arity} VALUES (?{', ?' * arity})",
                [(n, *arguments(case)) for n, case in enumerate(table)],
            ).fetchall()
            rows = connection.execute(
                f"SELECT x.v, x.r, x.soft, TRY_CAST(x.v AS {function.returns}) IS NULL, typeof(x.v) "
                f"FROM (SELECT n, {udf_name(name, arity)}({', '.join(columns)}) AS x FROM t{arity}) ORDER BY n"
            ).fetchall()
            for case, (value, reason, soft, uncast, type_) in zip(table, rows, strict=True):
                assert (value, reason, soft) == (case.get("out"), case.get("reason"), case.get("soft", False)), case
                assert uncast == (value is None), case
                assert type_ == value_type(function)


def test_texts_cast_whole() -> None:
    """A value keeps its meaning, microseconds and last decimal included, when it is cast to the function's type."""
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'").fetchall()
        moment = FUNCTIONS["local_time"].call("2011-04-03 10:00:00.123456", "America/New_York")[0]
        amount = FUNCTIONS["money"].call("-12345678901234567890123456789,123456789")[0]
        (row,) = connection.execute(
            "SELECT CAST(CAST(? AS TIMESTAMPTZ) AS VARCHAR), CAST(CAST(? AS DECIMAL(38,9)) AS VARCHAR)",
            [moment, amount],
        ).fetchall()
        assert row == ("2011-04-03 14:00:00.123456+00", "-12345678901234567890123456789.123456789")
