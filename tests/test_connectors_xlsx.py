"""XLSX files as a source: what a sheet holds arrives as text; what no table can hold is one clear error."""

from __future__ import annotations

import datetime
import re
import zipfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import openpyxl
import pytest

from connectors.dsn import open_source
from workspace.errors import CatalogueError


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
    [(_total, "looks like a total"), (_error, "B2 holds an error"), (_formula, "formula without"), (_rounded, "15 digits"),
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
