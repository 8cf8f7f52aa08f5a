"""The allow-list of expressions: tables of expressions and what becomes of them, and hostile ones by the dozen."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest
import sqlglot
from hypothesis import given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML

from engine.duck import open_duck
from engine.expressions import ALLOWED_NAMES, Compiler
from engine.query import identifier, literal
from engine.syntax import columns_of, functions_of, parse_expression
from workspace.errors import ExpressionError
from workspace.paths import JobPaths

CASES = Path(__file__).parent / "cases" / "expressions"
COLUMNS = {
    "id": "VARCHAR",
    "a": "VARCHAR",
    "b": "VARCHAR",
    "n": "VARCHAR",
    "d": "VARCHAR",
    "bin": "BLOB",
    "Mixed Name": "VARCHAR",
}
ROW: dict[str, Any] = {"id": "1", "a": " Ana ", "b": "x;y", "n": "12", "d": "2011-04-03", "bin": b"\x00\xff", "Mixed Name": "mm"}  # fmt: skip


def table(name: str) -> list[Any]:
    cases = YAML(typ="safe").load(CASES.joinpath(f"{name}.yaml").read_text(encoding="utf-8"))
    return [pytest.param(case, id=f"{case['sql'][:50]} {case.get('row', '')}") for case in cases]


@pytest.fixture(scope="module")
def duck(tmp_path_factory: pytest.TempPathFactory) -> Iterator[duckdb.DuckDBPyConnection]:
    connection = open_duck(JobPaths(tmp_path_factory.mktemp("job"), "job").create())
    yield connection
    connection.close()


def computed(duck: duckdb.DuckDBPyConnection, sql: str, row: dict[str, Any]) -> tuple[Any, str | None, str]:
    compiler = Compiler(COLUMNS)
    piece = compiler.compile(sql, "f")
    source = ", ".join(f"?::{type_} AS {identifier(name)}" for name, type_ in COLUMNS.items())
    rows = f"(SELECT {source})"
    for level in compiler.hoists.levels:
        if level:
            rows = f"(SELECT *, {', '.join(f'{call} AS {name}' for call, name in level.items())} FROM {rows})"
    values = [{**ROW, **row}[name] for name in COLUMNS]
    found = duck.execute(f"SELECT {piece.sql}, {piece.reason or 'NULL'} FROM {rows}", values).fetchall()[0]
    return found[0], found[1], piece.type


def shown(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.hex()
    return value if value is None or isinstance(value, bool | list) else str(value)


@pytest.mark.parametrize("case", table("values"))
def test_value_or_reason(case: dict[str, Any], duck: duckdb.DuckDBPyConnection) -> None:
    assert set(case) <= {"sql", "row", "value", "reason", "type"}
    value, reason, type_ = computed(duck, case["sql"], case.get("row", {}))
    assert (reason, type_) == (case.get("reason"), case.get("type", "VARCHAR"))
    if "reason" not in case:
        assert shown(value) == case["value"]


@pytest.mark.parametrize("case", table("values"))
def test_nothing_in_never_raises(case: dict[str, Any], duck: duckdb.DuckDBPyConnection) -> None:
    """A row of NULLs, one of blanks and one of words go through every expression of the table."""
    for text in (None, "  ", "9" * 60, "-1e999", "'\0; --"):
        computed(duck, case["sql"], {**dict.fromkeys(COLUMNS, text), "bin": None if text is None else text.encode()})


@pytest.mark.parametrize("case", table("refused"))
def test_refused(case: dict[str, Any]) -> None:
    with pytest.raises(ExpressionError) as caught:
        Compiler(COLUMNS).compile(case["sql"], "entities.t.fields.x")
    assert caught.value.what == case["what"]
    where = f"entities.t.fields.x, position {case['position']}" if "position" in case else "entities.t.fields.x"
    assert caught.value.where == where
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(
    "sql",
    [
        "(" * 5000 + "a" + ")" * 5000,
        " + ".join(["n"] * 5000),
        "lower(" * 1000 + "a" + ")" * 1000,
        "not " * 5000 + "true",
    ],
    ids=["brackets", "sum", "calls", "not"],
)
def test_too_deep(sql: str) -> None:
    with pytest.raises(ExpressionError, match="nested too deeply"):
        Compiler(COLUMNS).compile(sql, "f")


def test_what_the_documentation_lists_is_allowed() -> None:
    """No listed function is refused by name; a wrong number of arguments is another matter."""
    for name in ALLOWED_NAMES:
        tries = [f"{name}({', '.join(arguments)})" for arguments in (["a"], ["n"], ["65"], ["a", "b"], ["a", "1"], ["a", "'x'"], ["n > 1", "a", "b"],
                 ["a", "'x'", "1"], ["a", "5", "'x'"], ["a", "'%Y'"], ["a", "'x'", "'y'"])]  # fmt: skip
        refusals = []
        for sql in tries:
            try:
                Compiler(COLUMNS).compile(sql, "f")
                break
            except ExpressionError as error:
                refusals.append(str(error))
        else:
            pytest.fail(f"{name}: {refusals}")


HARMLESS = {
    "abs", "case", "cast", "ceil", "char", "chr", "coalesce", "concat", "concat_ws", "contains", "decimal", "ends_with", "floor", "greatest", "in", "instr",
    "isinf", "least", "left", "length", "lower", "lpad", "ltrim", "md5", "nullif", "octet_length", "typeof", "regexp_extract", "regexp_full_match", "regexp_matches", "regexp_replace",
    "replace", "reverse", "right", "round", "rpad", "rtrim", "sign", "split_part", "starts_with", "str_split", "strpos", "substring", "suffix", "trim", "trunc",
    "try", "try_cast", "try_strptime", "upper", "varchar", "when", "then", "else", "and", "or", "not", "like", "ilike", "from",
}  # fmt: skip


def called(sql: str) -> set[str]:
    """The functions that a compiled piece calls in DuckDB: each word before a bracket, outside of quotes."""
    bare = re.sub(r"'[^']*'|\"[^\"]*\"", "", sql)
    return {name.lower() for name in re.findall(r"([A-Za-z_][A-Za-z_0-9]*)\s*\(", bare)}


def test_no_function_of_sqlglot_brings_another_of_duckdb() -> None:
    """Whatever sqlglot knows by name - a new version of it too - is refused, or calls what is known as harmless."""
    for name in sqlglot.exp.FUNCTION_BY_NAME:
        for arguments in ("a", "", "a, b", "a, 1", "n", "a, 'x', 1", "n > 1, a, b"):
            try:
                piece = Compiler(COLUMNS).compile(f"{name}({arguments})", "f")
            except ExpressionError:
                continue
            assert called(piece.sql) <= HARMLESS, name
            assert called(piece.reason or "") <= HARMLESS, name


def test_columns_and_functions_of() -> None:
    assert columns_of('lower(a) || "Mixed Name" || a') == ["a", "Mixed Name"]
    assert functions_of("email(lower(a))") == {"email", "lower"}


@given(st.text())
@settings(max_examples=300, deadline=None)
def test_any_text_is_an_expression_or_refused(text: str) -> None:
    try:
        Compiler(COLUMNS).compile(text, "f")
    except ExpressionError as error:
        where = error.where
    else:
        where = "f"
    assert where.startswith("f")


WORDS = st.sampled_from([
    "a", "n", "bin", '"Mixed Name"', "'x'", "''", "1", "-1", "0.5", "null", "true", "(", ")", ",", "+", "-", "*", "/", "//", "%", "||", "=", "<>", "<", "in",
    "and", "or", "not", "is", "like", "between", "case", "when", "then", "else", "end", "cast", "as", "int", "date", "varchar", "::", "lower(", "coalesce(",
    "concat_ws(", "substring(", "round(", "email(", "multiselect(", "if(", "nullif(", "select", "from", ";", "--", "/*", "[", "]", "{", "}", ".", "$1", ":",
])  # fmt: skip


@given(st.lists(WORDS, min_size=1, max_size=14))
@settings(max_examples=500, deadline=None)
def test_words_of_sql_compile_to_nothing_else(words: list[str]) -> None:
    """Whatever compiles calls harmless functions over columns, whatever the words were."""
    text = " ".join(words)
    try:
        compiler = Compiler(COLUMNS)
        piece = compiler.compile(text, "f")
    except ExpressionError:
        return
    assert called(piece.sql) <= HARMLESS
    tree = sqlglot.parse_one(f"SELECT {piece.sql}", read="duckdb")
    assert not list(tree.find_all(sqlglot.exp.Table, sqlglot.exp.Subquery, sqlglot.exp.AggFunc, sqlglot.exp.Star))
    assert len(list(tree.find_all(sqlglot.exp.Select))) == 1
    parse_expression(text, "f")


@given(st.text(min_size=1).filter(lambda s: "\0" not in s))
def test_quoting(duck: duckdb.DuckDBPyConnection, text: str) -> None:
    assert duck.execute(f"SELECT {literal(text)}").fetchall() == [(text,)]
    assert duck.execute(f"SELECT x.{identifier(text)} FROM (SELECT 1 AS {identifier(text)}) x").fetchall() == [(1,)]


def test_quoting_nul(duck: duckdb.DuckDBPyConnection) -> None:
    assert duck.execute(f"SELECT {literal(chr(0) + 'a' + chr(0))}").fetchall() == [("\0a\0",)]
