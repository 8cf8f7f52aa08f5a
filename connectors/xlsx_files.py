"""XLSX workbooks as they are found: each visible sheet with rows becomes a CSV file of its own, all values text.

What a sheet holds and a table can't (a total row, an error, merged cells, a number that Excel has rounded) is an error
that names the place: nothing is guessed, left out or loaded by accident. What is left out or done where one could think
otherwise is told. Writes only the files it is told to.
"""

from __future__ import annotations

import csv
import datetime
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import islice
from pathlib import Path

from python_calamine import (
    CalamineError,
    CalamineSheet,
    CalamineWorkbook,
    SheetTypeEnum,
    SheetVisibleEnum,
    load_workbook,
)

from connectors.csv_files import CsvFile
from connectors.file_options import FileOptions, is_like
from connectors.xlsx_package import check, zeros
from workspace.errors import CatalogueError

_HEADER_WITHIN = 50
_ROUNDED_FROM = 1e15
_TOTAL = re.compile(
    r"(grand |sub)?totals?|sum|summe|(gesamt|zwischen)summe|gesamt|insgesamt|totaux|totale|totaal|suma", re.IGNORECASE
)
_Cell = int | float | str | bool | datetime.time | datetime.date | datetime.datetime | datetime.timedelta


def sheets(
    path: Path, name: str, copy: Path, options: FileOptions, where: str, notes: list[str]
) -> list[tuple[str, CsvFile]]:
    """A table's name and its CSV file, beside `copy`, for each sheet: named by the workbook, by its `name`, where it has
    one sheet, else by the sheet. Lines for a person are added to `notes`. CatalogueError for what no table can be made
    of."""
    check(path, where)
    try:
        book = load_workbook(path)
        wanted = _wanted(book, options, where, notes)
        shown = _shown(path, wanted, where, notes)
        found: list[tuple[str, CsvFile]] = []
        for title in wanted:
            sheet = book.get_sheet_by_name(title)
            if sheet.start is not None:
                place, made = f"{where} [{title}]", copy.with_suffix(f".{len(found)}.csv")
                columns = _write(_Sheet.of(sheet, place, options, shown.get(title, {}), notes), made, place)
                found.append((title, CsvFile(made, place, "utf-8", ",", '"', columns)))
    except CalamineError as error:
        raise CatalogueError(
            f"the workbook can't be read: {' '.join(str(error).split())[:200]}", where=where, advice="save it anew"
        ) from None
    named = [title if len(found) > 1 else name for title, _ in found]
    return [(table.replace(".", "_"), file) for table, (_, file) in zip(named, found, strict=True)]


def _wanted(book: CalamineWorkbook, options: FileOptions, where: str, notes: list[str]) -> list[str]:
    """The sheets to read: those that are visible, or those that the options name. A hidden one with rows is told of."""
    within = [sheet for sheet in book.sheets_metadata if sheet.typ == SheetTypeEnum.WorkSheet]
    if options.sheet:
        found = [sheet.name for sheet in within if any(is_like(sheet.name, one) for one in options.sheets)]
        if not found:
            raise CatalogueError(
                f"no sheet is named like {options.sheet}", where=where,
                advice=f"it has {', '.join(sheet.name for sheet in within)[:200]}",
            )  # fmt: skip
        return found
    hidden = [sheet.name for sheet in within if sheet.visible != SheetVisibleEnum.Visible]
    for title in hidden:
        sheet = book.get_sheet_by_name(title)
        if sheet.start is not None:
            notes.append(
                f"left out: the hidden sheet {title} ({where}), {sheet.height:,} rows: to read it, ?sheet={title}"
            )
    return [sheet.name for sheet in within if sheet.name not in hidden]


def _shown(path: Path, titles: list[str], where: str, notes: list[str]) -> dict[str, dict[int, int]]:
    """What `zeros` tells; nothing, and a line, for a workbook that its library can't read though the other can."""
    try:
        return zeros(path, titles)
    except Exception:  # of whatever kind: it isn't told which they are
        notes.append(f"{where}: whether numbers are shown with zeros before them can't be told: they come without")
        return {}


@dataclass
class _Sheet:
    """A sheet, read through once before its rows are written: `header` is the row of names, `used` the places of its
    columns, `timed` those of dates with a time of day, `left_out` rows. `width` has the digits of numbers that are shown
    with zeros before them."""

    sheet: CalamineSheet
    header: int
    names: list[str]
    width: dict[int, int]
    used: list[int] = field(default_factory=list)
    timed: set[int] = field(default_factory=set)
    left_out: set[int] = field(default_factory=set)

    @classmethod
    def of(
        cls, sheet: CalamineSheet, place: str, options: FileOptions, width: dict[int, int], notes: list[str]
    ) -> _Sheet:
        """The sheet as the options say. CatalogueError for what no table can hold; lines for a person to `notes`."""
        header, row = _header(sheet, options.header, place)
        for (top, left), (bottom, right) in sheet.merged_cell_ranges or ():
            if bottom + 1 >= header or (right > left and bottom + 1 == header - 1 and left > 0):
                raise CatalogueError(
                    f"merged cells in rows {top + 1} to {bottom + 1}: only the first of them holds the value", where=place,
                    advice="take the merge apart, and write the value or a name into each cell",
                )  # fmt: skip
        names = [" ".join(_text(cell, False).split()) for cell in row]
        made = cls(sheet, header, names, {column: digits for column, digits in width.items() if digits})
        filled = {i for i, name in enumerate(names) if name}
        totals: list[int] = []
        rounded: Counter[int] = Counter()
        for number, cells in made.body():
            if _is_total(cells):
                totals.append(number)
            for i, cell in enumerate(cells):
                if isinstance(cell, str):
                    if cell:
                        filled.add(i)
                    continue
                filled.add(i)
                if isinstance(cell, datetime.datetime):
                    made.timed.add(i)
                elif isinstance(cell, int | float) and abs(cell) >= _ROUNDED_FROM:
                    rounded[i] += 1
        made.used = sorted(filled)
        if rounded:
            told = ", ".join(f"{made.name(i)} ({count:,})" for i, count in sorted(rounded.items()))
            raise CatalogueError(
                f"numbers of more than 15 digits, which Excel has rounded: {told}", where=place,
                advice="export that column again as text: the digits are lost in this file",
            )  # fmt: skip
        if totals and options.totals != "keep":
            told = f"{len(totals):,} rows look like totals and no records ({_some(totals)})"
            if options.totals == "refuse":
                raise CatalogueError(
                    told,
                    where=place,
                    advice="delete them, leave them out with ?totals=drop, or read them with ?totals=keep",
                )
            made.left_out = set(totals)
            notes.append(f"left out: {told} ({place})")
        for column, digits in sorted(width.items()):
            kept = f"has numbers shown with {digits} digits: their zeros are kept"
            some = "has some numbers shown with zeros before them and some not: none are kept"
            notes.append(f"{place}: the column {made.name(column)} {kept if digits else some}")
        return made

    @property
    def columns(self) -> tuple[str, ...]:
        """Their names, in order."""
        return tuple(map(self.name, self.used))

    def name(self, column: int) -> str:
        """What a column is called."""
        return (self.names[column] if column < len(self.names) else "") or f"column_{column + 1}"

    def body(self) -> Iterator[tuple[int, list[_Cell]]]:
        """The rows below the names that hold anything, and their numbers; one at a time."""
        for number, row in islice(enumerate(self.sheet.iter_rows(), 1), self.header, None):
            if number not in self.left_out and any(cell != "" for cell in row):
                yield number, row


def _write(sheet: _Sheet, copy: Path, place: str) -> tuple[str, ...]:
    """Writes the sheet's rows below its names; the names."""
    columns = sheet.columns
    twice = next((name for name, n in Counter(map(str.casefold, columns)).items() if n > 1), None)
    if twice is not None:
        raise CatalogueError(
            f"two columns have the name {twice}",
            where=f"{place} row {sheet.header}",
            advice="give each a name of its own",
        )
    with open(copy, "w", encoding="utf-8", newline="") as out:
        csv.writer(out, quoting=csv.QUOTE_ALL, lineterminator="\n").writerow(columns)
        for _, row in sheet.body():
            cells = (_quoted(row[i], i in sheet.timed, sheet.width.get(i, 0)) for i in sheet.used)
            out.write(",".join(cells) + "\n")
    return columns


def _header(sheet: CalamineSheet, told: int, place: str) -> tuple[int, list[_Cell]]:
    """The number and cells of the row of names: the one that is `told`, or the first that is all text and fills at least
    half of what the fullest row does."""
    rows = enumerate(sheet.iter_rows(), 1)
    if told:
        found = next((row for number, row in rows if number == told), [])
        if all(cell == "" for cell in found):
            raise CatalogueError(
                f"row {told}, to be the names', is empty", where=place, advice="name another: ?header="
            )
        return told, found
    first = list(islice(((n, row) for n, row in rows if any(cell != "" for cell in row)), _HEADER_WITHIN))
    most = max((sum(cell != "" for cell in row) for _, row in first), default=0)
    for number, row in first:
        filled = [cell for cell in row if cell != ""]
        if 2 * len(filled) >= most and all(isinstance(cell, str) for cell in filled):
            return number, row
    raise CatalogueError(
        "the sheet has no row of names",
        where=place,
        advice="put them above the rows, or tell which row it is: ?header=3",
    )


def _some(rows: list[int]) -> str:
    return ", ".join(f"row {row:,}" for row in rows[:3]) + (f" and {len(rows) - 3:,} more" if len(rows) > 3 else "")


def _is_total(row: list[_Cell]) -> bool:
    filled = [cell for cell in row if cell != ""]
    return (
        len(filled) > 1
        and isinstance(filled[0], str)
        and bool(_TOTAL.fullmatch(filled[0].strip().rstrip(":").strip()))
        and not any(isinstance(cell, str) for cell in filled[1:])
    )


def _quoted(cell: _Cell, timed: bool, digits: int) -> str:
    if cell == "" and isinstance(cell, str):
        return ""
    return '"' + _text(cell, timed, digits).replace('"', '""') + '"'


def _text(cell: _Cell, timed: bool, digits: int = 0) -> str:
    """A cell as Excel shows it, without its format: ISO dates, numbers of up to 15 digits and no needless `.0`; of a
    whole number at least `digits`."""
    if isinstance(cell, str):
        return cell
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if isinstance(cell, int | float):
        text = format(Decimal(format(cell, ".15g")), "f")
        text = "0" if text == "-0" else text
        return text.zfill(digits) if text.isdigit() else text
    if isinstance(cell, datetime.datetime):
        return cell.isoformat(" ")
    if isinstance(cell, datetime.date):
        return cell.isoformat() + (" 00:00:00" if timed else "")
    if isinstance(cell, datetime.timedelta):
        seconds = round(cell.total_seconds())
        return f"{seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    return cell.isoformat()
