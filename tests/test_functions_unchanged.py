"""Where DuckDB says that a function leaves a value as it is, the function itself must say so too."""

from __future__ import annotations

from dataclasses import replace

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.expressions import Compiler
from engine.functions import FUNCTIONS
from engine.functions.protocol import Outcome
from engine.functions.register import register

GUARDED = sorted(name for name, function in FUNCTIONS.items() if function.unchanged_when)
TEXTS = st.one_of(
    st.text(max_size=40),
    st.text(alphabet="&;#ax039 umlMÃ¼Â©\x00\n", max_size=30),
    st.text(alphabet=st.characters(max_codepoint=127), max_size=30),
)


@pytest.fixture(scope="module")
def duck() -> duckdb.DuckDBPyConnection:
    return duckdb.connect()


@pytest.mark.parametrize("name", GUARDED)
@given(text=TEXTS)
@settings(max_examples=400, deadline=None)
def test_a_value_that_passes_the_guard_is_unchanged(name: str, text: str, duck: duckdb.DuckDBPyConnection) -> None:
    function = FUNCTIONS[name]
    assert function.unchanged_when
    passes = duck.execute(
        f"SELECT {function.unchanged_when.format('x')} FROM (SELECT $1::VARCHAR AS x)", [text]
    ).fetchall()[0][0]
    found, reason = function.call(text)
    assert isinstance(found, str)
    assert reason is None
    if passes:
        assert found == text


@pytest.mark.parametrize("name", GUARDED)
def test_one_that_fails_gives_a_reason_and_no_value(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(value: str | None) -> Outcome:
        raise ArithmeticError(value)

    monkeypatch.setitem(FUNCTIONS, name, replace(FUNCTIONS[name], call=fails, columns=None))
    duck = duckdb.connect()
    register(duck)
    compiler = Compiler({"x": "VARCHAR"})
    piece = compiler.compile(f"{name}(x)", "fields.x")
    (level,) = [level for level in compiler.hoists.levels if level]
    called = ", ".join(f"{call} AS {column}" for call, column in level.items())
    rows = "(VALUES ('a &amp; Ã¼'), ('plain'), (NULL)) t(x)"
    found = duck.execute(f"SELECT {piece.sql}, {piece.reason} FROM (SELECT *, {called} FROM {rows})").fetchall()
    assert found == [(None, f"function {name}: function failed"), ("plain", None), (None, None)]


def test_some_functions_are_guarded() -> None:
    assert GUARDED == ["html_text", "mojibake"]
