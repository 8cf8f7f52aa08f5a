"""What is looked at in a workbook's package before its values are: whether it may be read at all, and which numbers are
shown with zeros before them. Reads a block at a time; writes nothing."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import openpyxl
import psutil

from workspace.errors import CatalogueError

_COMPOUND = bytes.fromhex("d0cf11e0a1b11ae1")
_ERROR = re.compile(rb'<c r="([A-Z]{1,3}\d+)"[^>]*\bt="e"')
# an empty text is a value: =IF(A2="","",A2) gives it
_NO_VALUE = re.compile(
    rb'<c r="([A-Z]{1,3}\d+)"(?![^>]*\bt="str")[^>]*><f[^>]*(?:/>|>[^<]*</f>)(?:<v\s*/>|<v></v>)?</c>'
)
_FILLED = re.compile(rb'<c r="([A-Z]{1,3})(\d+)"[^>]*[^>/]>')
_CELL_BYTES = 32
_ZEROS = re.compile(rb'formatCode="00+"')


def check(path: Path, where: str) -> None:
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
    bad: dict[str, list[str]] = {}
    while block := stream.read(1 << 20):  # type: ignore[attr-defined]
        if not sheet:
            continue
        block, cut = rest + block, (rest + block).rfind(b"</c>") + 4
        whole, rest = block[:cut], block[cut:]
        for pattern, what in ((_ERROR, "an error"), (_NO_VALUE, "a formula without its value")):
            bad.setdefault(what, []).extend(cell.decode() for cell in pattern.findall(whole))
        for letters, row in _FILLED.findall(whole):
            columns.add(letters)
            last = max(last, int(row))
    if told := [f"{what} in {cells[0]}{_and_more(len(cells) - 1)}" for what, cells in bad.items() if cells]:
        raise CatalogueError(
            f"the sheet has {', '.join(told)}", where=f"{where} [{member}]",
            advice="open it in Excel, put a value or nothing there, and save it",
        )  # fmt: skip
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


def _and_more(more: int) -> str:
    return f" and {more:,} more cells" if more else ""


def zeros(path: Path, titles: Sequence[str]) -> dict[str, dict[int, int]]:
    """For each sheet the columns, counted from 0, whose numbers are all shown with as many digits by their format
    (`000000`), and how many those are; 0 where only some are."""
    with zipfile.ZipFile(path) as archive:
        styles = "xl/styles.xml"
        if styles not in archive.namelist() or not _ZEROS.search(archive.read(styles)):
            return {}
    book = openpyxl.load_workbook(path, read_only=True, data_only=True)
    try:
        return {title: _zeros(book[title]) for title in titles}
    finally:
        book.close()


def _zeros(sheet: Any) -> dict[int, int]:
    seen: dict[int, set[int]] = {}
    for row in sheet.iter_rows():
        for cell in row:
            if isinstance(cell.value, int | float) and not isinstance(cell.value, bool):
                shown = cell.number_format
                seen.setdefault(cell.column - 1, set()).add(len(shown) if set(shown) == {"0"} and len(shown) > 1 else 0)
    return {column: max(widths) if len(widths) == 1 else 0 for column, widths in seen.items() if max(widths)}
