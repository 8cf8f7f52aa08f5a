"""Which tables lie in a folder of files: each file, or sheet of a workbook, is one.

A file of a folder that can't be read is set aside with its error, which whoever reads its table is given: others are read
without it. Writes only copies, and those only to the folder that it is told to.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from connectors import csv_files, jsonl_files
from connectors.csv_files import CsvFile
from connectors.file_options import FileOptions
from workspace.errors import CatalogueError

BOOKS = (".xlsx", ".xlsm")
SUFFIXES = (*csv_files.SUFFIXES, *jsonl_files.SUFFIXES, *BOOKS)

State = tuple[int, int]
"""Of a file, its size and when it was changed."""


@dataclass(frozen=True)
class FileTable:
    """A table and the file that it is read from. `origin` is the file that a person knows."""

    name: str
    file: CsvFile
    origin: Path

    @property
    def columns(self) -> tuple[str, ...]:
        """Their names, in order."""
        return self.file.columns


@dataclass
class Found:
    """What lies there. `states` are of the files that copies were made of, as they were before. `aside` tells for each
    table, its name casefolded, why it can't be read. `notes` are lines for a person."""

    tables: dict[str, FileTable] = field(default_factory=dict)
    states: dict[Path, State] = field(default_factory=dict)
    aside: dict[str, CatalogueError] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    kinds: set[str] = field(default_factory=set)


@dataclass(frozen=True)
class _Lying:
    """A file to look at. `name` is what a table is named by."""

    path: Path
    name: str
    place: str
    origin: Path


def state_of(path: Path) -> State:
    """The file's state now. OSError where it is gone."""
    found = path.stat()
    return found.st_size, found.st_mtime_ns


def find_tables(path: Path, folder: Path, options: FileOptions) -> Found:
    """The tables of a folder's files by name, or of the one file; `folder` is for copies. Empty files and hidden ones
    are none. CatalogueError where two would be the same table, or where no file can be read; OSError."""
    found = Found()
    first: CatalogueError | None = None
    for number, lying in enumerate(_lying(path)):
        found.kinds.add(_kind(lying.path))
        try:
            tables = list(_look(lying, folder / f"table_{number}.csv", options, found))
        except CatalogueError as error:
            first = first or error
            _check_new(found, lying.name, lying.place)
            found.aside[lying.name.casefold()] = error
            found.notes.append(f"left out: {error}: {error.advice}")
            continue
        for table in tables:
            _check_new(found, table.name, table.file.place)
            found.tables[table.name] = table
    if first is not None and not found.tables:
        raise first
    return found


def _check_new(found: Found, name: str, place: str) -> None:
    known = {table.casefold() for table in found.tables} | found.aside.keys()
    if name.casefold() in known:
        raise CatalogueError(
            f"two files or sheets are the table {name}", where=place, advice="rename one of them, or move it away"
        )


def _lying(path: Path) -> Iterator[_Lying]:
    files = [path] if path.is_file() else sorted(f for f in path.iterdir() if f.suffix.lower() in SUFFIXES)
    for file in files:
        if file.is_file() and not file.name.startswith((".", "~$")) and file.stat().st_size:
            yield _Lying(file, file.stem, str(file), file)


def _look(lying: _Lying, copy: Path, options: FileOptions, found: Found) -> Iterator[FileTable]:
    kind = _kind(lying.path)
    if kind == "CSV":
        yield FileTable(lying.name, csv_files.look(lying.path, options, lying.place), lying.origin)
        return
    found.states.setdefault(lying.origin, state_of(lying.origin))
    if kind == "JSONL":
        yield FileTable(lying.name, jsonl_files.rows(lying.path, copy, options, lying.place), lying.origin)
        return
    from connectors.xlsx_files import sheets

    for name, file in sheets(lying.path, lying.name, copy, options, lying.place):
        yield FileTable(name, file, lying.origin)


def _kind(path: Path) -> str:
    suffix = path.suffix.lower()
    return "XLSX" if suffix in BOOKS else "JSONL" if suffix in jsonl_files.SUFFIXES else "CSV"
