"""XLSX workbooks as they are found: each visible sheet with rows becomes a CSV file of its own, all values text.

What a sheet holds and a table can't (a total row, an error, merged cells, a number that Excel has rounded) is an error
that names the cell: nothing is guessed, left out or loaded by accident. Writes only the files it is told to.
"""

from __future__ import annotations

import csv
import datetime
import re
import zipfile
from collections import Counter
from decimal import Decimal
from pathlib import Path

import psutil
from python_calamine import CalamineError, CalamineSheet, SheetTypeEnum, SheetVisibleEnum, load_workbook

from connectors.csv_files import CsvFile
from connectors.file_options import FileOptions
from workspace.errors import CatalogueError

_COMPOUND = bytes.fromhex("d0cf11e0a1b11ae1")
_ERROR = re.compile(rb'<c r="([A-Z]{1,3}\d+)"[^>]*\bt="e"')
# an empty text is a value: =IF(A2="","",A2) gives it
_NO_VALUE = re.compile(
    rb'<c r="([A-Z]{1,3}\d+)"(?![^>]*\bt="str")[^>]*><f[^>]*(?:/>|>[^<]*</f>)(?:<v\s*/>|<v></v>)?</c>'
)
_FILLED = re.compile(rb'<c r="([A-Z]{1,3})(\d+)"[^>]*[^>/]>')
_CELL_BYTES = 32
_HEADER_WITHIN = 50
_TOTAL = re.compile(
    r"(grand |sub)?totals?|sum|summe|(gesamt|zwischen)summe|gesamt|insgesamt|totaux|totale|totaal|suma", re.IGNORECASE
)
_Cell = int | float | str | bool | datetime.time | datetime.date | datetime.datetime | datetime.timedelta


def sheets(path: Path, name: str, copy: Path, options: FileOptions, where: str) -> list[tuple[str, CsvFile]]:
    """A table's name and its CSV file, beside `copy`, for each sheet: named by the workbook, by its `name`, where it has
    one sheet, else by the sheet. CatalogueError for what no table can be made of."""
    _check(path, where)
    try:
        book = load_workbook(path)
        visible = [
            sheet.name
            for sheet in book.sheets_metadata
            if sheet.visible == SheetVisibleEnum.Visible and sheet.typ == SheetTypeEnum.WorkSheet
        ]
        found: list[tuple[str, CsvFile]] = []
        for title in visible:
            sheet = book.get_sheet_by_name(title)
            if sheet.start is not None:
                place, made = f"{where} [{title}]", copy.with_suffix(f".{len(found)}.csv")
                columns = _write(sheet, made, place, options.totals == "keep")
                found.append((title, CsvFile(made, place, "utf-8", ",", '"', columns)))
    except CalamineError as error:
        raise CatalogueError(
            f"the workbook can't be read: {' '.join(str(error).split())[:200]}", where=where, advice="save it anew"
        ) from None
    named = [title if len(found) > 1 else name for title, _ in found]
    return [(table.replace(".", "_"), file) for table, (_, file) in zip(named, found, strict=True)]


def _check(path: Path, where: str) -> None:
    """CatalogueError where the file is no workbook, would not fit into memory, or holds what is no value."""
    with open(path, "rb") as file:
        if file.read(8) == _COMPOUND:
            raise CatalogueError(
                "the workbook is protected with a password, or of the old kind (.xls)", where=where,
                advice="save it as XLSX without a password",
            )  # fmt: skip
    free = psutil.virtual_memory().available
    try:
        with zipfile.ZipFile(path) as archive:
            size = sum(member.file_size for member in archive.infolist())
            if size > free:
                raise CatalogueError(
                    f"the workbook is {size:,} bytes unpacked, and {free:,} of memory are free", where=where,
                    advice="save its sheets as CSV",
                )  # fmt: skip
            for member in archive.infolist():
                with archive.open(member) as stream:
                    _scan(stream, where, member.filename, free)
    except (zipfile.BadZipFile, RuntimeError, NotImplementedError, EOFError):
        raise CatalogueError(
            "this is no XLSX file, or it is damaged", where=where, advice="save it anew, or export it as CSV"
        ) from None


def _scan(stream: object, where: str, member: str, free: int) -> None:
    sheet = member.startswith("xl/worksheets/") and member.endswith(".xml")
    rest, columns, last = b"", set(), 0
    while block := stream.read(1 << 20):  # type: ignore[attr-defined]
        if not sheet:
            continue
        block, cut = rest + block, (rest + block).rfind(b"</c>") + 4
        whole, rest = block[:cut], block[cut:]
        for pattern, what in ((_ERROR, "holds an error"), (_NO_VALUE, "is a formula without its value")):
            if bad := pattern.search(whole):
                raise CatalogueError(
                    f"the cell {bad[1].decode()} {what}", where=f"{where} [{member}]",
                    advice="open it in Excel, put a value or nothing there, and save it",
                )  # fmt: skip
        for letters, row in _FILLED.findall(whole):
            columns.add(letters)
            last = max(last, int(row))
    widest = max((_number(letters) for letters in columns), default=0)
    if widest * last * _CELL_BYTES > free:
        raise CatalogueError(
            f"a sheet has cells as far away as row {last:,} and column {widest:,}", where=f"{where} [{member}]",
            advice="delete the stray cells, or save the sheet as CSV",
        )  # fmt: skip


def _number(letters: bytes) -> int:
    found = 0
    for letter in letters:
        found = found * 26 + letter - 64
    return found


def _write(sheet: CalamineSheet, copy: Path, place: str, totals: bool) -> tuple[str, ...]:
    """Writes the sheet's rows below its names; the names."""
    rows = [(number, row) for number, row in enumerate(sheet.iter_rows(), 1) if any(cell != "" for cell in row)]
    header = _header([row for _, row in rows[:_HEADER_WITHIN]], place)
    first = rows[header][0]
    for (top, left), (bottom, right) in sheet.merged_cell_ranges or ():
        if bottom + 1 >= first or (right > left and bottom + 1 == first - 1 and left > 0):
            raise CatalogueError(
                f"merged cells in rows {top + 1} to {bottom + 1}: only the first of them holds the value", where=place,
                advice="take the merge apart, and write the value or a name into each cell",
            )  # fmt: skip
    names = [" ".join(str(name).split()) for name in rows[header][1]]
    body = rows[header + 1 :]
    used = [i for i, name in enumerate(names) if name or any(row[i] != "" for _, row in body)]
    columns = tuple(names[i] or f"column_{i + 1}" for i in used)
    twice = next((name for name, n in Counter(map(str.casefold, columns)).items() if n > 1), None)
    if twice is not None:
        raise CatalogueError(
            f"two columns have the name {twice}", where=f"{place} row {first}", advice="give each a name of its own"
        )
    if body and not totals and _is_total(body[-1][1]):
        raise CatalogueError(
            f"row {body[-1][0]:,}, the last, looks like a total and no record", where=place,
            advice="delete it, or read it as a record: file:////FOLDER?totals=keep",
        )  # fmt: skip
    timed = {i for i in used if any(isinstance(row[i], datetime.datetime) for _, row in body)}
    with open(copy, "w", encoding="utf-8", newline="") as out:
        csv.writer(out, quoting=csv.QUOTE_ALL, lineterminator="\n").writerow(columns)
        for number, row in body:
            out.write(",".join(_quoted(row[i], i in timed, f"{place} row {number}") for i in used) + "\n")
    return columns


def _header(rows: list[list[_Cell]], place: str) -> int:
    """Which row holds the names: the first that is all text and fills at least half of what the fullest row does."""
    most = max((sum(cell != "" for cell in row) for row in rows), default=0)
    for place_of, row in enumerate(rows):
        filled = [cell for cell in row if cell != ""]
        if 2 * len(filled) >= most and all(isinstance(cell, str) for cell in filled):
            return place_of
    raise CatalogueError("the sheet has no row of names", where=place, advice="put the columns' names above the rows")


def _is_total(row: list[_Cell]) -> bool:
    filled = [cell for cell in row if cell != ""]
    return (
        len(filled) > 1
        and isinstance(filled[0], str)
        and bool(_TOTAL.fullmatch(filled[0].strip().rstrip(":").strip()))
        and not any(isinstance(cell, str) for cell in filled[1:])
    )


def _quoted(cell: _Cell, timed: bool, where: str) -> str:
    if cell == "" and isinstance(cell, str):
        return ""
    return '"' + _text(cell, timed, where).replace('"', '""') + '"'


def _text(cell: _Cell, timed: bool, where: str) -> str:
    """A cell as Excel shows it, without its format: ISO dates, numbers of up to 15 digits and no needless `.0`."""
    if isinstance(cell, str):
        return cell
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if isinstance(cell, int | float):
        if abs(cell) >= 1e15:
            raise CatalogueError(
                "a number of more than 15 digits, which Excel has rounded", where=where,
                advice="import that column into Excel as text",
            )  # fmt: skip
        text = format(Decimal(format(cell, ".15g")), "f")
        return "0" if text == "-0" else text
    if isinstance(cell, datetime.datetime):
        return cell.isoformat(" ")
    if isinstance(cell, datetime.date):
        return cell.isoformat() + (" 00:00:00" if timed else "")
    if isinstance(cell, datetime.timedelta):
        seconds = round(cell.total_seconds())
        return f"{seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    return cell.isoformat()
