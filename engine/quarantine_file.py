"""Rows in quarantine as a file that a person edits in a spreadsheet, and the edited file read back.

One column a source column, after six of our own. What is read back may differ in the values of source columns alone:
anything else is refused with its place, before a row moves.
"""

from __future__ import annotations

import csv
import io
import re
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from connectors.records import Edits, HeldRow
from engine.check import CheckedEntity
from engine.compile import stage_columns
from engine.context import Context
from engine.quarantine import QuarantinedRow
from engine.quarantine_cells import KeptError, cell_of, text_cell, value_of
from engine.retried_rows import stage_rows
from workspace.errors import UsageError

HEADINGS = ("entity", "row", "key", "field", "reason", "signature")
_MOST_ROWS = 1_048_575
_EXPORT_AGAIN = "export the rows anew, and change nothing but values of source columns"


def write_csv(out: IO[str], rows: Iterable[QuarantinedRow]) -> int:
    """Writes the rows, which have to be of one entity; how many. UsageError where they are of several."""
    writer = csv.writer(out, quoting=csv.QUOTE_ALL)
    count, columns, entity = 0, [], ""
    for row in rows:
        if not count:
            columns, entity = list(row.raw), row.entity
            writer.writerow(_headings(columns))
        elif row.entity != entity:
            raise UsageError(
                f"the rows are of several entities ({entity}, {row.entity}, ...), whose columns differ",
                advice="give --entity, or export to an .xlsx file: it has a sheet for each",
            )
        writer.writerow(_cells(row, columns))
        count += 1
    return count


def write_xlsx(out: IO[bytes], rows: Iterable[QuarantinedRow]) -> int:
    """Writes the rows, a sheet an entity, all cells as text; how many. UsageError for more than a sheet holds."""
    from openpyxl import Workbook

    book = Workbook(write_only=True)
    count, on_sheet, columns, entity, sheet = 0, 0, [], None, None

    for row in rows:
        if row.entity != entity:
            entity, columns, on_sheet = row.entity, list(row.raw), 0
            sheet = book.create_sheet(_title(entity, book.sheetnames))
            sheet.freeze_panes = "D2"
            sheet.append([text_cell(sheet, heading) for heading in _headings(columns)])
        if on_sheet == _MOST_ROWS:
            raise UsageError(
                f"a sheet holds {_MOST_ROWS:,} rows, and {entity} has more in quarantine",
                advice="give --signature, or export to a .csv or .jsonl file",
            )
        assert sheet is not None
        sheet.append([text_cell(sheet, cell) for cell in _cells(row, columns)])
        count, on_sheet = count + 1, on_sheet + 1
    if not book.sheetnames:
        book.create_sheet("empty")
    book.save(out)
    return count


def _headings(columns: list[str]) -> list[str]:
    return [*HEADINGS, *map(cell_of, columns)]


def _cells(row: QuarantinedRow, columns: list[str]) -> list[str]:
    own = [row.entity, str(row.row), shown_key("\x1f".join(row.key)), row.field, row.detail, row.signature]
    return [
        *(cell_of(each) if each else "" for each in own),
        *(cell_of(_text(row.raw.get(column))) for column in columns),
    ]


def _text(value: object) -> str | None:
    return None if value is None else str(value)


def shown_key(key: str) -> str:
    """A key as a person sees it: its parts with a bar between."""
    return key.replace("\x1f", "|")


def _title(entity: str, taken: list[str]) -> str:
    short = re.sub(r"[\[\]:*?/\\']", " ", entity)[:31].strip() or "rows"
    number, title = 1, short
    while title.lower() in {each.lower() for each in taken}:
        number += 1
        title = f"{short[:27]} {number}"
    return title


# -- read back ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Line:
    """A line of a file: where it stands, and its cells by heading, in order."""

    where: str
    cells: tuple[tuple[str, str], ...]


def read_edited(path: Path, ctx: Context, *, entity: str = "", dropped: bool = False) -> dict[str, dict[int, Edits]]:
    """The rows of an exported file, by entity and number, each with the values that differ from the stage's; of one
    entity where given. The job must be leased.

    UsageError with the place for anything else that was changed, for a row that is not in quarantine, or twice.
    """
    found: dict[str, dict[int, tuple[_Line, HeldRow]]] = {}
    held: dict[str, dict[int, HeldRow]] = {}
    known = {each.name: each for each in ctx.checked.entities}
    for line in _lines(path):
        own = dict(line.cells[: len(HEADINGS)])
        name = _value(own["entity"], line.where)
        if name not in known:
            raise UsageError(f"the job has no entity {name[:100]!r}", where=line.where, advice=_EXPORT_AGAIN)
        if entity not in ("", name):
            continue
        if name not in held:
            held[name] = {row.row: row for row in ctx.target.held_rows(name, dropped=dropped)}
        row = held[name].get(int(own["row"])) if re.fullmatch(r"[0-9]{1,18}", own["row"]) else None
        if row is None:
            state = "in quarantine" if dropped else "open in quarantine"
            raise UsageError(
                f"row {own['row'][:40]!r} of {name} is not {state}", where=line.where, advice=_EXPORT_AGAIN
            )
        key = shown_key(row.key)
        if own["key"] != cell_of(key) and _value(own["key"], line.where) != key:
            raise UsageError("the key is not that of the row", where=f"{line.where}, column key", advice=_EXPORT_AGAIN)
        rows = found.setdefault(name, {})
        if row.row in rows:
            raise UsageError(
                f"row {row.row} of {name} is there twice", where=line.where, advice="leave one of them out"
            )
        rows[row.row] = line, row
    return {name: _edits(ctx, known[name], rows) for name, rows in found.items()}


def _edits(ctx: Context, entity: CheckedEntity, rows: Mapping[int, tuple[_Line, HeldRow]]) -> dict[int, Edits]:
    """Of each row, the values that differ from the stage's."""
    types = stage_columns(entity)
    edits: dict[int, Edits] = {}
    for batch in sorted({row.batch for _, row in rows.values()}):
        numbers = [n for n, (_, row) in rows.items() if row.batch == batch]
        table = stage_rows(ctx.paths.stage / entity.name, batch, numbers, {})
        for staged in table.to_pylist():
            line, _ = rows[staged["_ph_n"]]
            edits[staged["_ph_n"]] = _row_edits(entity, types, line, staged)
    return edits


def _row_edits(entity: CheckedEntity, types: Mapping[str, str], line: _Line, staged: Mapping[str, Any]) -> Edits:
    edits: Edits = {}
    for heading, cell in line.cells[len(HEADINGS) :]:
        where = f"{line.where}, column {heading}"
        column = _value(heading, where)
        if column not in types:
            raise UsageError(f"{entity.name} has no column {column[:100]!r}", where=line.where, advice=_EXPORT_AGAIN)
        value = staged[column]
        now = value.hex() if isinstance(value, bytes) else value
        if cell == cell_of(now):
            continue
        try:
            edited = value_of(cell)
        except KeptError:
            continue
        except ValueError as error:
            raise UsageError(str(error), where=where, advice="write the character itself") from None
        if types[column] == "BLOB" and edited is not None:
            edited = edited.lower()
            if not re.fullmatch(r"([0-9a-f]{2})*", edited):
                raise UsageError("binary is written in pairs of hexadecimal digits", where=where)
        if edited == now:
            continue
        if column in entity.plan.key:
            raise UsageError("the key of a row can't be edited", where=where, advice=_EXPORT_AGAIN)
        edits[column] = edited
    return edits


def _value(cell: str, where: str) -> str:
    try:
        return value_of(cell) or ""
    except (KeptError, ValueError):
        raise UsageError("this cell can't be read", where=where, advice=_EXPORT_AGAIN) from None


def _lines(path: Path) -> Iterator[_Line]:
    suffix = path.suffix.lower()
    if suffix not in (".xlsx", ".csv"):
        raise UsageError("only .xlsx and .csv files can be read back", where=str(path))
    try:
        data = path.read_bytes()
    except OSError as error:
        raise UsageError(f"cannot be read: {error.strerror}", where=str(path)) from None
    yield from _xlsx_lines(path, data) if suffix == ".xlsx" else _csv_lines(path, data)


def _csv_lines(path: Path, data: bytes) -> Iterator[_Line]:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise UsageError("is not UTF-8", where=str(path), advice="save it as CSV UTF-8, or as .xlsx") from None
    first = text.split("\n", 1)[0].replace('"', "")
    delimiter = next((sign for sign in ",;\t" if first.startswith(f"{HEADINGS[0]}{sign}")), ",")
    before = csv.field_size_limit(1 << 30)
    try:
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
        headings: list[str] | None = None
        for number, cells in enumerate(reader, 1):
            if not any(cells):
                continue
            where = f"{path}, row {number}"
            if headings is None:
                headings = _checked_headings(cells, where)
            else:
                yield _line(where, headings, cells)
    except csv.Error as error:
        raise UsageError(f"is not CSV: {error}", where=str(path), advice=_EXPORT_AGAIN) from None
    finally:
        csv.field_size_limit(before)


def _xlsx_lines(path: Path, data: bytes) -> Iterator[_Line]:
    from openpyxl import load_workbook
    from openpyxl.utils.exceptions import InvalidFileException

    try:
        book = load_workbook(io.BytesIO(data), read_only=True)
    except (InvalidFileException, zipfile.BadZipFile, KeyError, ValueError, OSError):
        raise UsageError("is not an XLSX file", where=str(path), advice=_EXPORT_AGAIN) from None
    for sheet in book.worksheets:
        sheet.reset_dimensions()
        headings: list[str] | None = None
        for number, cells in enumerate(sheet.iter_rows(), 1):
            where = f"{path}, sheet {sheet.title}, row {number}"
            texts = [_cell_text(cell, where, (headings or [])[i : i + 1]) for i, cell in enumerate(cells)]
            if not any(texts):
                continue
            if headings is None:
                headings = _checked_headings(texts, where)
            else:
                yield _line(where, headings, texts)


def _cell_text(cell: Any, where: str, heading: list[str]) -> str:
    """What stands in the cell as text. UsageError for a formula, a date, an error: what was meant can't be told."""
    value = cell.value
    if value is None:
        return ""
    if (
        cell.data_type == "f"
        or cell.data_type == "e"
        or not isinstance(value, str | int | float)
        or isinstance(value, bool)
    ):
        kind = {"f": "a formula", "e": "an error", "b": "true or false"}.get(cell.data_type, "a date")
        raise UsageError(
            f"the cell is {kind} to the spreadsheet", where=", column ".join([where, *heading]),
            advice="format the cell as text and write the value again",
        )  # fmt: skip
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
    return str(value)


def _checked_headings(cells: list[str], where: str) -> list[str]:
    headings = list(cells)
    while headings and not headings[-1]:
        headings.pop()
    if tuple(headings[: len(HEADINGS)]) != HEADINGS:
        raise UsageError(f"the first columns are not {', '.join(HEADINGS)}", where=where, advice=_EXPORT_AGAIN)
    rest = headings[len(HEADINGS) :]
    for heading in rest:
        if rest.count(heading) > 1:
            raise UsageError(f"the column {heading[:100]!r} is there twice", where=where, advice=_EXPORT_AGAIN)
    return headings


def _line(where: str, headings: list[str], cells: list[str]) -> _Line:
    if any(cells[len(headings) :]):
        raise UsageError("a cell stands beyond the last heading", where=where, advice=_EXPORT_AGAIN)
    padded = [*cells[: len(headings)], *[""] * (len(headings) - len(cells))]
    return _Line(where, tuple(zip(headings, padded, strict=True)))
