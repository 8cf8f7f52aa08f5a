"""Several files as one table: only where the DSN says so; their rows in order, their columns by name."""

from __future__ import annotations

import zipfile
from contextlib import closing
from pathlib import Path
from typing import Any

import openpyxl
import pytest

from connectors.dsn import Dsn, open_source
from workspace.errors import CatalogueError, DsnError


def rows(dsn: str, table: str, key: tuple[str, ...] = (), size: int = 2) -> list[dict[str, Any]]:
    with closing(open_source(dsn)) as source:
        return [row for page in source.pages(table, key, after=None, size=size) for row in page.rows.to_pylist()]


@pytest.fixture
def split(tmp_path: Path) -> Path:
    """Contacts in three files, of which the second has its columns in another order, and the third one more."""
    folder = tmp_path / "export"
    folder.mkdir()
    (folder / "Contacts_1.csv").write_text("id,Name\n1,Ana\n2,Bo\n")
    (folder / "Contacts_2.csv").write_bytes("NAME;id\nMüller;3\n".encode("cp1252"))
    (folder / "Contacts_10.csv").write_text("id,name,fax\n4,Di,99\n")
    (folder / "Accounts.csv").write_text("id\n1\n")
    return folder


WANT = [
    {"id": "1", "Name": "Ana", "fax": None},
    {"id": "2", "Name": "Bo", "fax": None},
    {"id": "3", "Name": "Müller", "fax": None},
    {"id": "4", "Name": "Di", "fax": "99"},
]


def test_files_are_one_table_in_the_order_of_their_numbers(split: Path, tmp_path: Path) -> None:
    export = tmp_path / "export.zip"
    with zipfile.ZipFile(export, "w") as archive:
        for file in split.iterdir():
            archive.write(file, f"deep/{file.name}")
    for dsn in (f"file:///{split}?together=Contacts_*", f"file:///{export}?together=contacts_*"):
        name = dsn.rpartition("=")[2][:-2]
        assert rows(dsn, name) == WANT
        assert rows(dsn, name, ("id",), 3) == WANT
        with closing(open_source(dsn)) as source:
            assert sorted(source.catalogue().tables) == sorted(["Accounts", name])
            assert [note.partition("/Contacts")[2] for note in source.notes] == [
                "_1.csv has no column fax: empty in its rows", "_2.csv has no column fax: empty in its rows",
            ]  # fmt: skip
            (page,) = source.pages(name, (), after=("3",), size=10)  # goes on in the middle
            assert page.rows.to_pylist() == WANT[3:]


def test_the_option_is_repeatable_and_read_back_from_the_masked_dsn(split: Path) -> None:
    (split / "Accounts_2.csv").write_text("id\n2\n")
    dsn = Dsn.parse(f"csv:///{split}?together=Contacts_*&together=Accounts*")
    assert dsn.masked == f"csv:///{split}?together=Contacts_*,Accounts*"
    for text in (dsn.masked, Dsn.parse(dsn.masked).masked):
        with closing(open_source(text)) as source:
            assert sorted(source.catalogue().tables) == ["Accounts", "Contacts"]
    assert dsn.identity == Dsn.parse(str(split)).identity
    named = Dsn.parse("${EXPORT}?together=Contacts_*&together=Accounts*", {"EXPORT": str(split)})
    assert named.masked == dsn.masked


def test_it_is_offered_and_not_done(tmp_path: Path) -> None:
    for name in ("Contacts_1", "Contacts_2", "Contacts_10", "Deals", "Deals (2)", "Deals_lost", "x1", "Contacts_old"):
        (tmp_path / f"{name}.csv").write_text("id,name\n1,a\n" if "_old" not in name else "other\n1\n")
    (tmp_path / "Notes_1.csv").write_text("id\n1\n")
    (tmp_path / "Notes_2.csv").write_text("note\n1\n")
    with closing(open_source(str(tmp_path))) as source:
        assert len(source.catalogue().tables) == 10
        notes = source.notes
    assert [note.partition(" have the same columns")[0] for note in notes] == [
        "Contacts_1, Contacts_2, Contacts_10", "Deals, Deals (2)",
    ]  # fmt: skip
    for note, tables in zip(notes, ({"Contacts": 3}, {"Deals": 2}), strict=True):
        dsn = note.partition("'")[2].rstrip("'")
        with closing(open_source(dsn)) as source:
            assert {name: source.count(name) for name in tables} == tables
            assert "Contacts_old" in source.catalogue().tables


def test_folders_and_sheets_can_be_named(tmp_path: Path) -> None:
    export = tmp_path / "export.zip"
    book = openpyxl.Workbook()
    for title, value in (("Leads 2023", "1"), ("Leads 2024", "2"), ("Other", "3")):
        sheet = book.create_sheet(title)
        sheet.append(["id"])
        sheet.append([value])
    book.save(tmp_path / "book.xlsx")
    with zipfile.ZipFile(export, "w") as archive:
        for year in ("2023", "2024"):
            archive.writestr(f"{year}/Contact.csv", f"id\n{year}\n")
        archive.write(tmp_path / "book.xlsx", "book.xlsx")
    dsn = f"file:///{export}?together=*/Contact.csv&together=Leads *"
    assert rows(dsn, "Contact") == [{"id": "2023"}, {"id": "2024"}]
    assert rows(dsn, "Leads") == [{"id": "1"}, {"id": "2"}]
    assert rows(dsn, "Other") == [{"id": "3"}]


def test_an_error_names_the_line_of_the_very_file(split: Path) -> None:
    (split / "Contacts_2.csv").write_text("id,name\n3,c\n4\n")
    for _ in range(2):
        with pytest.raises(CatalogueError, match="1 fields and the header 2") as raised:
            rows(f"file:///{split}?together=Contacts_*", "Contacts")
        assert raised.value.where == f"{split}/Contacts_2.csv:3"


@pytest.mark.parametrize(
    ("file", "content", "what"),
    [("Contacts_3.csv", "1,2\n3,4\n", "no header"), ("Contacts_3.csv", "other\n1\n", "no column in common"),
     ("Contacts_3.jsonl", '{"id": 1}\n[]\n', "a list")],
)  # fmt: skip
def test_without_one_of_its_files_the_table_cant_be_read(split: Path, file: str, content: str, what: str) -> None:
    (split / file).write_text(content)
    with closing(open_source(f"file:///{split}?together=Contacts_*")) as source:
        assert list(source.catalogue().tables) == ["Accounts"]
        with pytest.raises(CatalogueError, match=what) as raised:
            source.count("Contacts")
        assert file in raised.value.where


def test_what_cant_be_together(split: Path) -> None:
    for option, error, what in [
        ("Leads_*", CatalogueError, "no file is like together=Leads_"),
        ("*", DsnError, "gives the table no name"),
        ("Accounts_*&together=Contacts_*", CatalogueError, "no file is like together=Accounts_"),
        ("Accounts*,Contacts_[12]&together=Acc*", CatalogueError, r"both together=Accounts\* and Acc\* take"),
    ]:
        with pytest.raises(error, match=what):
            open_source(f"file:///{split}?together={option}")
    (split / "Contacts.csv").write_text("id\n1\n")
    with pytest.raises(CatalogueError, match="two files or sheets are the table Contacts"):
        open_source(f"file:///{split}?together=Contacts_*")
    assert [row["id"] for row in rows(f"file:///{split}?together=Contacts*", "Contacts")] == ["1", "1", "2", "3", "4"]


@pytest.mark.parametrize("size", [1, 2, 3, 4, 100])
def test_rows_of_one_key_are_in_one_page_in_the_order_of_the_files(tmp_path: Path, size: int) -> None:
    (tmp_path / "t_1.csv").write_text("id,n\nb,1\na,2\nb,3\nc,4\n")
    (tmp_path / "t_2.csv").write_text("n,id\n5,b\n6,a\n7,d\n8,\n")
    want = [("a", "2"), ("a", "6"), ("b", "1"), ("b", "3"), ("b", "5"), ("c", "4"), ("d", "7")]
    found: list[tuple[str, str]] = []
    with closing(open_source(f"file:///{tmp_path}?together=t_*")) as source:
        after: tuple[str, ...] | None = None
        while True:  # each page is the first after a kill
            page = next(iter(source.pages("t", ("id",), after=after, size=size)), None)
            if page is None:
                break
            after = page.last_key
            found += [(row["id"], row["n"]) for row in page.rows.to_pylist()]
        whole = [
            (row["id"], row["n"])
            for page in source.pages("t", ("id",), after=None, size=size)
            for row in page.rows.to_pylist()
        ]
    assert found == whole == want


def test_many_rows_of_one_key_come_in_the_order_of_the_files_each_time(tmp_path: Path) -> None:
    count = 60_000
    for number in (1, 2):
        lines = (f"{n * 7919 % 11},{number * count + n}" for n in range(count))
        (tmp_path / f"t_{number}.csv").write_text("id,n\n" + "\n".join(lines) + "\n")
    found = [(row["id"], int(row["n"])) for row in rows(f"file:///{tmp_path}?together=t_*", "t", ("id",), 20_000)]
    assert len(found) == 2 * count
    assert found == sorted(found)
