"""CSV files as a source: encodings, delimiters, nothing and NULL; what is malformed is an error with its line."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from connectors.dsn import open_source
from connectors.protocols import Kind, Source
from workspace.errors import CatalogueError, ConnectError, SourceLostError

POLISH = "Zażółć gęślą jaźń; Łódź, Kraków i Wrocław są piękne"
RUSSIAN = "Общество с ограниченной ответственностью, Московская область"


def read(source: Source, relation: str, key: tuple[str, ...] = (), size: int = 1000) -> list[list[Any]]:
    """All values of a relation, rows as lists."""
    rows = []
    for page in source.pages(relation, key, after=None, size=size):
        rows += [list(row.values()) for row in page.rows.to_pylist()]
    return rows


@pytest.mark.parametrize(
    ("content", "want"),
    [
        ('id;name;note\n1;"Müller";"x;y"\n2;;""\n3;"line\nbreak";"q""q"\n', [["1", "Müller", "x;y"], ["2", None, ""], ["3", "line\nbreak", 'q"q']]),
        ("id\tname\n1\ta,b\n", [["1", "a,b"]]),
        ("id|name\n1|a;b\n2|\n", [["1", "a;b"], ["2", None]]),
        ('id,name\r\n1,"a\nb"\r\n2,"a\r\nb"\r\n', [["1", "a\nb"], ["2", "a\r\nb"]]),
        ("id,name\r1,a\r2,b\r", [["1", "a"], ["2", "b"]]),
        ("id,name\n1,a", [["1", "a"]]),
        ('id,name\n1,"a \\"b\\" c"\n2,x\n', [["1", 'a "b" c'], ["2", "x"]]),
        ('name\nx\n\ny, z; w\n""\n', [["x"], [None], ["y, z; w"], [""]]),
        ("id,name\n1,a\0b\n2, x \n", [["1", "a\0b"], ["2", " x "]]),
        ("id,name\n1,NULL\n2,null\n3,0000-00-00\n", [["1", "NULL"], ["2", "null"], ["3", "0000-00-00"]]),
        ("id,name\n1," + "x" * 3_000_000 + "\n", [["1", "x" * 3_000_000]]),
        ("\ufeffid,name\n1,a\n", [["1", "a"]]),
        ("id,name\n", []),
    ],
)  # fmt: skip
def test_what_a_file_holds(tmp_path: Path, content: str, want: list[list[Any]]) -> None:
    (tmp_path / "t.csv").write_bytes(content.encode())
    with closing(open_source(str(tmp_path))) as source:
        assert read(source, "t") == want
        assert read(source, "t", (), size=1) == want
        assert source.count("t") == len(want)
    with closing(open_source(str(tmp_path / "t.csv"))) as source:
        assert read(source, "t") == want


@pytest.mark.parametrize(
    ("encoding", "text"),
    [
        ("cp1252", "Müller, José, 5 € “x” – Ærø"),
        ("utf-8", "Müller 😀"),
        ("utf-8-sig", "Müller 😀"),
        ("utf-16", "Müller 😀"),
        ("utf-16-le", "Müller und Söhne"),
        ("cp1250", POLISH),
        ("cp1251", RUSSIAN),
    ],
)
def test_encodings(tmp_path: Path, encoding: str, text: str) -> None:
    (tmp_path / "t.csv").write_bytes(f'id,name\n1,"{text}"\n2,plain\n'.encode(encoding))
    with closing(open_source(str(tmp_path))) as source:
        assert read(source, "t") == [["1", text], ["2", "plain"]]


def test_a_file_of_two_encodings_is_read_line_by_line(tmp_path: Path) -> None:
    lines = [b"id,name\n", *("1,Müller\n".encode(),) * 3, "2,Müller \x81€\n".encode("cp1252", "replace")]
    lines[-1] = lines[-1].replace(b"?", b"\x81")
    (tmp_path / "t.csv").write_bytes(b"".join(lines))
    with closing(open_source(str(tmp_path))) as source:
        assert read(source, "t") == [*[["1", "Müller"]] * 3, ["2", "Müller \x81€"]]


def test_the_dsn_can_say_encoding_and_delimiter(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes("id:name\n1:ä,b\n".encode("cp850"))
    with closing(open_source(f"csv:///{tmp_path}?encoding=cp850&delimiter=:")) as source:
        assert read(source, "t") == [["1", "ä,b"]]
    with pytest.raises(ConnectError, match="no such encoding"):
        open_source(f"csv:///{tmp_path}?encoding=nonsense")


@pytest.mark.parametrize(("encoding", "bad"), [("utf-8", b"\xfc"), ("cp1250", b"\x81"), ("shift_jis", b"\xfc\xfc")])
def test_what_isnt_in_the_encoding_that_was_named_is_an_error_with_its_line(
    tmp_path: Path, encoding: str, bad: bytes
) -> None:
    (tmp_path / "t.csv").write_bytes(b"id,name\n1,a\n2,b" + bad + b"\n3,c\n")
    with closing(open_source(f"file:///{tmp_path}?encoding={encoding}")) as source:
        with pytest.raises(CatalogueError, match=f"isn't {encoding}") as raised:
            read(source, "t")
        assert raised.value.where == f"{tmp_path}/t.csv:3"


VALUES = st.one_of(st.none(), st.text(st.characters(exclude_categories=["Cs"]), max_size=8))


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.tuples(VALUES, VALUES, VALUES), max_size=20), st.sampled_from(",;\t|"), st.sampled_from(["\n", "\r\n"])
)
def test_whatever_is_quoted_arrives(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str | None, ...]], delimiter: str, end: str
) -> None:
    def cell(value: str | None) -> str:
        return "" if value is None else '"' + value.replace('"', '""') + '"'

    folder = tmp_path_factory.mktemp("files")
    lines = ['"a","b","c"'.replace(",", delimiter), *(delimiter.join(map(cell, row)) for row in rows)]
    (folder / "t.csv").write_bytes("".join(line + end for line in lines).encode())
    with closing(open_source(f"csv:///{folder}?delimiter={'%09' if delimiter == chr(9) else delimiter}")) as source:
        assert read(source, "t", (), 3) == [list(row) for row in rows]


def test_the_catalogue_and_a_select_over_the_files(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("id,name, e-mail ,\n2,Bo,b@x,\n1,Ana,a@x,\n")
    (tmp_path / 'sel"ect x.tsv').write_text("id\torder\n1\t2\n")
    (tmp_path / "empty.csv").touch()
    (tmp_path / ".hidden.csv").write_text("id\n1\n")
    (tmp_path / "notes.txt").write_text("no table")
    with closing(open_source(str(tmp_path))) as source:
        catalogue = source.catalogue()
        assert catalogue.dialect == "duckdb"
        assert list(catalogue.tables) == ["people", 'sel"ect x']
        people = catalogue.tables["people"]
        assert [(c.name, c.kind) for c in people.columns] == [
            (name, Kind.TEXT) for name in ("id", "name", "e-mail", "column_4")
        ]
        select = 'SELECT p.id, upper(p.name) AS name, s."order"::int + 1 AS n FROM people p LEFT JOIN "sel""ect x" s USING (id);'
        assert [c.name for c in source.describe(select).columns] == ["id", "name", "n"]
        assert read(source, select, ("id",), 1) == [["1", "ANA", "3"], ["2", "BO", None]]
        assert source.count(select) == 2
        assert source.query("SELECT name FROM people WHERE id = %s AND 'a%%' LIKE 'a%%'", ("2",)) == [("Bo",)]
        for bad, what in [
            ("nothing", "no file"),
            ("SELECT nope FROM people", "nope"),
            ("SELECT 1; SELECT 2", "not one"),
        ]:
            with pytest.raises(CatalogueError, match=what):
                source.describe(bad)
        with pytest.raises(CatalogueError, match="no column nope"):
            list(source.pages("people", ("nope",), after=None, size=1))


@pytest.mark.parametrize(
    ("content", "line", "what"),
    [
        ("id,name,c\n1,a,b\n2,a\n", 3, "2 fields and the header 3"),
        ("id,name\n1,a\n2,b,c\n", 3, "3 fields and the header 2"),
        ('id,name\n1,"abc\n2,"d"\n', 2, "quote"),
        ("id,name\r\n1,a\r\n2,b\nc,d\r\n", None, "line ends"),
        ("1,ana@example.com\n2,bo@example.com\n", 1, "no header"),
        ("id,ID\n1,2\n", 1, "two columns have the name id"),
        (",,\n1,2,3\n", 1, "no header"),
    ],
)
def test_what_is_malformed_is_named_with_its_line_before_any_row(
    tmp_path: Path, content: str, line: int | None, what: str
) -> None:
    file = tmp_path / "t.csv"
    file.write_bytes(content.encode())
    with pytest.raises(CatalogueError, match=what) as raised, closing(open_source(str(tmp_path))) as source:
        next(source.pages("t", (), after=None, size=1))
    assert raised.value.where == (f"{file}:{line}" if line else str(file))
    assert raised.value.exit_code == 2


def test_what_a_killed_process_left_behind_is_deleted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    (tmp_path / "t.csv").write_text("id\n1\n")
    script = (
        "import os, signal, sys, tempfile; from connectors.dsn import open_source; tempfile.tempdir = sys.argv[1];"
        "source = open_source(sys.argv[1] + '/t.csv'); source.count('t'); os.kill(os.getpid(), signal.SIGKILL)"
    )
    subprocess.run([sys.executable, "-c", script, str(tmp_path)], check=False, cwd=Path(__file__).parent.parent)
    (left,) = tmp_path.glob("packhorse-csv-*")
    with closing(open_source(str(tmp_path / "t.csv"))) as source:
        assert not left.exists()
        assert source.count("t") == 1
    assert not list(tmp_path.glob("packhorse-csv-*"))


def test_two_files_of_one_table(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("id\n1\n")
    (tmp_path / "T.tsv").write_text("id\n1\n")
    with pytest.raises(CatalogueError, match="two files or sheets are the table t"):
        open_source(str(tmp_path))


def test_a_file_that_changes_while_it_is_read(tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    file.write_text("id\n1\n2\n")
    with closing(open_source(str(tmp_path))) as source:
        stream = source.pages("t", ("id",), after=None, size=1)
        next(stream)
        os.utime(file, (1, 1))
        with pytest.raises(SourceLostError, match="changed"):
            list(stream)


def test_nothing_else_is_read_and_nothing_written(tmp_path: Path) -> None:
    folder = tmp_path / "files"
    folder.mkdir()
    (folder / "t.csv").write_text("id\n1\n")
    (tmp_path / "secret.csv").write_text("id\nhush\n")
    with closing(open_source(str(folder))) as source:
        temporary = Path(source._temporary)  # type: ignore[attr-defined]
        for query in [
            f"SELECT * FROM read_csv('{tmp_path}/secret.csv')",
            f"COPY t TO '{folder}/new.csv'",
            "SELECT 1; DROP TABLE t",
            "CREATE TABLE x (a int)",
            "SET enable_external_access = true",
            "INSTALL httpfs",
        ]:
            with pytest.raises(CatalogueError):
                source.query(query)
            with pytest.raises(CatalogueError):
                read(source, query)
        assert temporary.stat().st_mode & 0o077 == 0
    assert [file.name for file in folder.iterdir()] == ["t.csv"]
    assert not temporary.exists()
    source.close()
