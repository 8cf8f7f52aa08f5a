"""JSONL files as a source: what a line holds arrives as text, digit by digit; a line that is no row is one clear error."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from connectors.dsn import open_source
from workspace.errors import CatalogueError, DsnError


def rows(dsn: str | Path, table: str = "t") -> list[dict[str, Any]]:
    with closing(open_source(str(dsn))) as source:
        return [row for page in source.pages(table, (), after=None, size=2) for row in page.rows.to_pylist()]


@pytest.mark.parametrize(
    ("content", "want"),
    [
        ('{"id": 123456789012345678, "n": 1.10}', [{"id": "123456789012345678", "n": "1.10"}]),
        ('{"n": 1E400}\n{"n": -0.0}\n{"n": 12345678901234567890123.456789012345678901}',
         [{"n": "1E400"}, {"n": "-0.0"}, {"n": "12345678901234567890123.456789012345678901"}]),
        ('{"a": "", "b": null, "c": true, "d": false}\n{}', [{"a": "", "b": None, "c": "true", "d": "false"}, dict.fromkeys("abcd")]),
        ('{"a": "007"}\n{"b": "late"}\n{"c": 1, "a": null}',
         [{"a": "007", "b": None, "c": None}, {"a": None, "b": "late", "c": None}, {"a": None, "b": None, "c": "1"}]),
        (r'{"a": "x\ny\r\n\"z\", \\ \u00e9 \ud83d\ude00 \u0000"}', [{"a": 'x\ny\r\n"z", \\ é 😀 \0'}]),
        ('{"a": {"b": 1.50, "c": {"d": [1, "x"]}, "e": null}, "f": [1.0, {"g": "ü"}, []]}',
         [{"a.b": "1.50", "a.c": '{"d": [1, "x"]}', "a.e": None, "f": '[1.0, {"g": "ü"}, []]'}]),
        ('{"a": null}\n{"a": {"b": 1}}', [{"a.b": None}, {"a.b": "1"}]),
        ('{"a": "x"}\n{"a": {"b": 1}}\n{"a": {}}', [{"a": "x", "a.b": None}, {"a": None, "a.b": "1"}, {"a": "{}", "a.b": None}]),
        ('\ufeff{"a": 1}\r\n\r\n  \r\n{"a": 2}\r\n', [{"a": "1"}, {"a": "2"}]),
        ('{"a": 1}\r{"a": 2}\r', [{"a": "1"}, {"a": "2"}]),
        ('{"a": "x\ty", "": 1, "A b,\\"c\\"": 2}', [{"a": "x\ty", "column_2": "1", 'A b,"c"': "2"}]),
        ('{"a": "' + "x" * 3_000_000 + '"}', [{"a": "x" * 3_000_000}]),
    ],
)  # fmt: skip
def test_what_a_line_holds(tmp_path: Path, content: str, want: list[dict[str, Any]]) -> None:
    file = tmp_path / "t.jsonl"
    file.write_bytes(content.encode())
    assert rows(tmp_path) == want
    file.rename(tmp_path / "t.NDJSON")
    assert rows(tmp_path / "t.NDJSON") == want


@pytest.mark.parametrize("encoding", ["cp1252", "utf-16", "utf-16-le", "utf-8-sig"])
def test_encodings_are_found(tmp_path: Path, encoding: str) -> None:
    text = '{"name": "Müller, José, 5 € “x” – Ærø"}\n{"name": "plain"}\n'
    (tmp_path / "t.jsonl").write_bytes(text.encode(encoding))
    assert rows(tmp_path) == [{"name": "Müller, José, 5 € “x” – Ærø"}, {"name": "plain"}]


def test_an_encoding_can_be_named(tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_bytes('{"a": "ä"}\n'.encode("cp850"))
    assert rows(f"file:///{tmp_path}?encoding=cp850") == [{"a": "ä"}]
    with pytest.raises(CatalogueError, match="isn't utf-8") as raised:
        rows(f"file:///{tmp_path}?encoding=utf-8")
    assert raised.value.where == f"{tmp_path}/t.jsonl:1"


def test_nested_values_can_stay_json(tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_text('{"a": {"b": 1.50, "c": [true, null]}, "d": "x"}\n')
    assert rows(f"file:///{tmp_path}?nested=json") == [{"a": '{"b": 1.50, "c": [true, null]}', "d": "x"}]
    for bad, what in [("nested=yes", "can't be 'yes'"), ("nestd=json", "no option 'nestd'")]:
        with pytest.raises(DsnError, match=what):
            open_source(f"file:///{tmp_path}?{bad}")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters(exclude_categories=["Cs"]), max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("pqr"), inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.dictionaries(st.sampled_from(["id", "name", "x y"]), JSON, min_size=1), min_size=1, max_size=6))
def test_whatever_is_json_arrives(tmp_path_factory: pytest.TempPathFactory, written: list[dict[str, Any]]) -> None:
    file = tmp_path_factory.mktemp("files") / "t.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in written))

    def text(value: Any) -> str | None:
        return value if value is None or isinstance(value, str) else json.dumps(value, ensure_ascii=False)

    found = rows(f"file:///{file}?nested=json")
    assert [{k: v for k, v in row.items() if v is not None} for row in found] == [
        {k: text(v) for k, v in row.items() if v is not None} for row in written
    ]


@pytest.mark.parametrize(
    ("content", "line", "what"),
    [
        (b'{"a": 1}\n\n[1, 2]\n', 3, "a list and no object"),
        (b'{"a": 1}\n"x"\n', 2, "a text and no object"),
        (b"7\n", 1, "a number and no object"),
        (b"null\n", 1, "null and no object"),
        (b'[\n{"a": 1}\n]\n', 1, "no JSON"),
        (b'{"a": 1}\n{"a": 1, "b"\n', 2, "no JSON: expecting ':' delimiter at its character 14"),
        (b'{"a": 1}{"a": 2}\n', 1, "no JSON: extra data"),
        (b'{"a": NaN}\n', 1, "NaN is no JSON"),
        (b'{"a": 1, "a": 2}\n', 1, "'a' is there twice"),
        (b'{"o": {"a": 1, "a": 2}}\n', 1, "'a' is there twice"),
        (b'{"a": 1}\n{"A": 2}\n', 2, "two keys are the column 'A'"),
        (b'{"a.b": 1, "a": {"b": 2}}\n', 1, "two keys are the column 'a.b'"),
        (b'{"a": "\\ud800"}\n', 1, "half of a character"),
        (b'{"a": ' + b"[" * 100_000 + b"]" * 100_000 + b"}\n", 1, "too deep"),
        (b'{"a": "' + b"x" * 16_000_000 + b'"}\n', 1, "more than 16,000,000 bytes"),
        (b'{"a": 1}\n{"m": {' + b", ".join(b'"%d": 1' % n for n in range(1500)) + b"}}\n", 2, "more than 1,500 columns"),
        (b'{"a": {}}\n{"a": 1}\n\xff\xfe{"a": 1}\n', 3, "no JSON"),
        (b"{}\n{}\n", None, "no keys"),
    ],
)  # fmt: skip
def test_what_is_no_row_is_named_with_its_line(tmp_path: Path, content: bytes, line: int | None, what: str) -> None:
    file = tmp_path / "t.jsonl"
    file.write_bytes(content)
    with pytest.raises(CatalogueError, match=what) as raised:
        open_source(str(tmp_path))
    assert raised.value.where == (f"{file}:{line}" if line else str(file))
    assert raised.value.exit_code == 2
    assert raised.value.advice


def test_a_bad_file_stops_only_who_reads_it(tmp_path: Path) -> None:
    (tmp_path / "good.jsonl").write_text('{"id": 1}\n')
    (tmp_path / "bad.jsonl").write_text('{"id": 1}\n{"id"\n')
    with closing(open_source(str(tmp_path))) as source:
        catalogue = source.catalogue()
        assert list(catalogue.tables) == ["good"]
        assert catalogue.server.startswith("JSONL by DuckDB")
        (note,) = source.notes
        assert f"{tmp_path}/bad.jsonl:2" in note
        assert source.count("good") == 1
        for relation in ("bad", "SELECT * FROM good JOIN Bad USING (id)"):
            with pytest.raises(CatalogueError, match="no JSON") as raised:
                source.describe(relation)
            assert raised.value.where == f"{tmp_path}/bad.jsonl:2"
