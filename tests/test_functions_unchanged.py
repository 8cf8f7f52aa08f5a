"""Where DuckDB says that a function leaves a value as it is, the function itself must say so too."""

from __future__ import annotations

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.functions import FUNCTIONS

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
    if passes:
        assert function.call(text) == (text, None)


def test_some_functions_are_guarded() -> None:
    assert GUARDED == ["html_text", "mojibake"]
