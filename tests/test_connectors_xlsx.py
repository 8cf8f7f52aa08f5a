"""XLSX files as a source: what a sheet holds arrives as text; what no table can hold is one clear error."""

from __future__ import annotations

import datetime
import re
import tracemalloc
import zipfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import openpyxl
import openpyxl.utils.datetime
import pytest

from connectors import xlsx_files
from connectors.dsn import open_source
from connectors.file_options import FileOptions
from workspace.errors import CatalogueError, DsnError


def read(dsn: str, table: str) -> list[list[Any]]:
    with closing(open_source(dsn)) as source:
        return [list(row.values()) for page in source.pages(table, (), after=None, size=2) for row in page.rows.to_pylist()]  # fmt: skip


def test_values_arrive_as_they_stand(tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    sheet = book.active
    sheet.append(["All customers"])
    sheet.append([])
    sheet.append(["id", 'na"me', "size", "day", "at", ""])
    sheet.append(["007", "a\nb", 12, datetime.date(2020, 1, 2), datetime.datetime(2020, 1, 2, 0, 0), None])
    sheet.append(["001234567890123456", None, 0.1, None, datetime.datetime(2020, 1, 2, 3, 4, 5), True])
    file = tmp_path / "people.xlsx"
    book.save(file)
    want = [
        ["007", "a\nb", "12", "2020-01-02", "2020-01-02 00:00:00", None],
        ["001234567890123456", None, "0.1", None, "2020-01-02 03:04:05", "true"],
    ]
    assert read(str(file), "people") == want
    book.create_sheet("Empty")
    book.create_sheet("Other").append(["a"])
    hidden = book.create_sheet("Hidden")
    hidden.append(["x"])
    hidden.sheet_state = "hidden"
    book.save(file)
    with closing(open_source(str(tmp_path))) as source:
        assert sorted(source.catalogue().tables) == ["Other", "Sheet"]


def _total(sheet: Any) -> None:
    sheet.append(["Total", 3])


def _error(sheet: Any) -> None:
    sheet["B2"] = "#N/A"


def _formula(sheet: Any) -> None:
    sheet["B2"] = "=1+1"


def _rounded(sheet: Any) -> None:
    sheet["B2"] = 123456789012345678


def _merged(sheet: Any) -> None:
    sheet.merge_cells("A2:A3")


def _twice(sheet: Any) -> None:
    sheet["B1"] = "NAME"


@pytest.mark.parametrize(
    ("spoil", "what"),
    [(_total, r"1 rows look like totals and no records \(row 4\)"), (_error, r"an error in B2"), (_formula, "a formula without its value in B2"), (_rounded, r"15 digits, which Excel has rounded: size \(1\)"),
     (_merged, "merged"), (_twice, "two columns")],
)  # fmt: skip
def test_what_is_no_table_is_told(tmp_path: Path, spoil: Callable[[Any], None], what: str) -> None:
    book = openpyxl.Workbook()
    for row in (["name", "size"], ["Ana", 1], ["Bo", 2]):
        book.active.append(row)
    spoil(book.active)
    book.save(tmp_path / "t.xlsx")
    with pytest.raises(CatalogueError, match=what):
        open_source(str(tmp_path))
    if spoil is _total:
        assert read(f"file:///{tmp_path}?totals=keep", "t")[-1] == ["Total", "3"]
        assert read(f"file:///{tmp_path}?totals=drop", "t") == [["Ana", "1"], ["Bo", "2"]]


@pytest.mark.parametrize(
    ("content", "what"), [(b"junk" * 9, "no XLSX"), (bytes.fromhex("d0cf11e0a1b11ae1"), "password")]
)
def test_what_is_no_workbook(tmp_path: Path, content: bytes, what: str) -> None:
    (tmp_path / "t.xlsx").write_bytes(content)
    with pytest.raises(CatalogueError, match=what):
        open_source(str(tmp_path / "t.xlsx"))


def test_a_formula_that_gives_an_empty_text_has_a_value(tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    book.active.append(["id", "note"])
    book.active.append([1, "placeholder"])
    book.active.append([2, "kept"])
    book.save(tmp_path / "plain.xlsx")
    # openpyxl stores no values of formulas; a sheet program writes this for =IF(A2="","","x")
    stored = b'<c r="B2" t="str"><f>IF(A2="","","x")</f><v></v></c>'
    with zipfile.ZipFile(tmp_path / "plain.xlsx") as plain, zipfile.ZipFile(tmp_path / "f.xlsx", "w") as made:
        for name in plain.namelist():
            data = plain.read(name)
            if name == "xl/worksheets/sheet1.xml":
                data, changed = re.subn(rb'<c r="B2"[^>]*>.*?</c>', lambda _: stored, data)
                assert changed == 1
            made.writestr(name, data)
    with closing(open_source(str(tmp_path / "f.xlsx"))) as source:
        assert sorted(source.catalogue().tables) == ["f"]


def notes_of(dsn: str) -> list[str]:
    with closing(open_source(dsn)) as source:
        return list(source.notes)


def saved(path: Path, *rows: list[Any]) -> Any:
    """A workbook of one sheet, to be spoilt and saved again."""
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    book.save(path)
    return book


def test_hidden_sheets_are_told_of_and_can_be_read(tmp_path: Path) -> None:
    file = tmp_path / "people.xlsx"
    book = saved(file, ["id"], ["1"])
    for title, state in (("Old people", "hidden"), ("Secret", "veryHidden"), ("Nothing", "hidden")):
        sheet = book.create_sheet(title)
        sheet.sheet_state = state
        if title != "Nothing":
            sheet.append(["id"])
            sheet.append([title])
    book.save(file)
    assert read(str(file), "people") == [["1"]]
    first, second = notes_of(str(file))
    assert "the hidden sheet Old people" in first
    assert "?sheet=Old people" in first
    assert "Secret" in second
    assert read(f"file:///{file}?sheet=Old people", "people") == [["Old people"]]
    with closing(open_source(f"file:///{file}?sheet=sheet&sheet=sec*")) as source:
        assert sorted(source.catalogue().tables) == ["Secret", "Sheet"]
        assert source.notes == ()
    with pytest.raises(CatalogueError, match="no sheet is named like Sheets") as raised:
        open_source(f"file:///{file}?sheet=Sheets")
    assert "Old people" in raised.value.advice


def test_the_row_of_names_can_be_told(tmp_path: Path) -> None:
    file = tmp_path / "t.xlsx"
    saved(file, ["as", "of", "May"], [], ["id", 2023, None], ["x", "y", "z"], [1, 2, 3])
    assert read(str(file), "t") == [["id", "2023", None], ["x", "y", "z"], ["1", "2", "3"]]
    with closing(open_source(f"file:///{file}?header=3")) as source:
        assert [column.name for column in source.catalogue().tables["t"].columns] == ["id", "2023", "column_3"]
    assert read(f"file:///{file}?header=3", "t") == [["x", "y", "z"], ["1", "2", "3"]]
    for row in (2, 99):
        with pytest.raises(CatalogueError, match=f"row {row}, to be the names', is empty"):
            open_source(f"file:///{file}?header={row}")
    for bad in ("x", "0", "-1", "1048577"):
        with pytest.raises(DsnError, match="the option header can't be"):
            open_source(f"file:///{file}?header={bad}")


def test_totals_among_the_rows(tmp_path: Path) -> None:
    file = tmp_path / "t.xlsx"
    rows = [["Ana", 1], ["Subtotal", 1], ["Bo", 2], ["Total", "the oil company"], ["Zwischensumme:", 2], ["Cy", 3]]
    saved(file, ["name", "size"], *rows)
    with pytest.raises(CatalogueError, match=r"2 rows look like totals and no records \(row 3, row 6\)") as raised:
        open_source(str(file))
    assert "?totals=drop" in raised.value.advice
    assert [row[0] for row in read(f"file:///{file}?totals=drop", "t")] == ["Ana", "Bo", "Total", "Cy"]
    assert len(read(f"file:///{file}?totals=keep", "t")) == 6
    (note,) = notes_of(f"file:///{file}?totals=drop")
    assert "left out: 2 rows look like totals" in note
    assert notes_of(f"file:///{file}?totals=keep") == []


def test_what_is_lost_is_told_with_column_and_count(tmp_path: Path) -> None:
    file = tmp_path / "t.xlsx"
    saved(file, ["id", "other"], *[[10**17 + n, 10**16 if n < 2 else "1" * 18] for n in range(5)])
    with pytest.raises(CatalogueError, match=r"15 digits, which Excel has rounded: id \(5\), other \(2\)"):
        open_source(str(file))
    book = saved(file, ["id", "other"], *[[n, "#N/A" if n % 2 else "#REF!"] for n in range(5)])
    book.save(file)
    with pytest.raises(CatalogueError, match="the sheet has an error in B2 and 4 more cells"):
        open_source(str(file))


def test_zeros_that_a_format_shows_are_kept(tmp_path: Path) -> None:
    file = tmp_path / "t.xlsx"
    book = saved(file, ["plz", "some", "size", "name"], [1067, 12, 7, "Ana"], [99999, 5, 8, "Bo"], [None, 1, 1.5, "Cy"])
    for row in (2, 3):
        book.active.cell(row, 1).number_format = "00000"
    book.active.cell(2, 2).number_format = "0000"
    book.save(file)
    assert read(str(file), "t") == [
        ["01067", "12", "7", "Ana"], ["99999", "5", "8", "Bo"], [None, "1", "1.5", "Cy"],
    ]  # fmt: skip
    first, second = notes_of(str(file))
    assert "the column plz has numbers shown with 5 digits: their zeros are kept" in first
    assert "the column some has some numbers shown with zeros before them and some not: none are kept" in second


@pytest.mark.parametrize("epoch", [openpyxl.utils.datetime.WINDOWS_EPOCH, openpyxl.utils.datetime.MAC_EPOCH])
def test_dates_of_both_systems(tmp_path: Path, epoch: datetime.datetime) -> None:
    file = tmp_path / "t.xlsx"
    book = openpyxl.Workbook()
    book.epoch = epoch
    book.active.append(["day", "at"])
    book.active.append([datetime.date(2020, 2, 29), datetime.datetime(1999, 12, 31, 23, 59, 58)])
    book.save(file)
    assert read(str(file), "t") == [["2020-02-29", "1999-12-31 23:59:58"]]


def test_many_rows_are_held_no_more_than_few(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(xlsx_files, "check", lambda *_: None)  # it holds a block of the file
    peaks = []
    for count in (2_000, 20_000):
        file = tmp_path / f"t{count}.xlsx"
        book = openpyxl.Workbook(write_only=True)
        sheet = book.create_sheet()
        for n in range(count):
            sheet.append([f"name {n}", f"text {n}"])
        book.save(file)
        tracemalloc.start()  # knows what Python holds, not what the library that reads the sheet does
        xlsx_files.sheets(file, "t", tmp_path / "copy.csv", FileOptions(), "t.xlsx", [])
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.5 * peaks[0]
