"""Which tables lie in a folder of files, or in a zip of them: each file, or sheet of a workbook, is one, or several are
where the DSN says so.

A file that can't be read among others is set aside with its error, which whoever reads its table is given: the others are
read without it. Writes only copies, and those only to the folder that it is told to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from connectors import csv_files, jsonl_files, zip_files
from connectors.csv_files import CsvFile
from connectors.file_options import FileOptions
from connectors.files_together import in_order, offers, one_header
from workspace.errors import CatalogueError

BOOKS = (".xlsx", ".xlsm")
SUFFIXES = (*csv_files.SUFFIXES, *jsonl_files.SUFFIXES, *BOOKS)

State = tuple[int, int]
"""Of a file, its size and when it was changed."""


@dataclass(frozen=True)
class FileTable:
    """A table, and the files that it is read from, in order. `columns` are their names, in order; `origins` are the
    files that a person knows, one for each."""

    name: str
    files: tuple[CsvFile, ...]
    origins: tuple[Path, ...]
    columns: tuple[str, ...]

    @classmethod
    def of(cls, name: str, file: CsvFile, origin: Path) -> FileTable:
        """The table of one file."""
        return cls(name, (file,), (origin,), file.columns)


@dataclass
class Found:
    """What lies there. `states` are of the files that copies were made of, as they were before. `aside` tells for each
    table, its name casefolded, why it can't be read. `notes` are lines for a person. `alike` are names of tables that
    may be one, and the option that would make them so."""

    tables: dict[str, FileTable] = field(default_factory=dict)
    states: dict[Path, State] = field(default_factory=dict)
    aside: dict[str, CatalogueError] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    kinds: set[str] = field(default_factory=set)
    alike: list[tuple[list[str], str]] = field(default_factory=list)

    def set_aside(self, name: str, error: CatalogueError) -> None:
        """Has it told why a table can't be read."""
        self.aside[name.casefold()] = error
        self.notes.append(f"left out: {error}: {error.advice}")

    def check_new(self, name: str, place: str) -> None:
        """CatalogueError where there is a table of that name."""
        if name.casefold() in {table.casefold() for table in self.tables} | self.aside.keys():
            raise CatalogueError(
                f"two files or sheets are the table {name}", where=place,
                advice="rename one of them, move it away, or read both as one: ?together=",
            )  # fmt: skip


@dataclass(frozen=True)
class _Lying:
    """A file to look at. `name` is what a table is named by, `within` where it lies in the source. One of a zip is at
    `path` once `unpack` was called; one that there is an `error` of can't be looked at, nor be named where it is
    `misnamed`."""

    path: Path
    name: str
    place: str
    origin: Path
    within: str
    unpack: Callable[[Path], None] | None = None
    error: CatalogueError | None = None
    misnamed: bool = False


def state_of(path: Path) -> State:
    """The file's state now. OSError where it is gone."""
    found = path.stat()
    return found.st_size, found.st_mtime_ns


def find_tables(path: Path, folder: Path, options: FileOptions) -> Found:
    """The tables of a folder's or zip's files by name, or of the one file; `folder` is for copies. Empty files and hidden
    ones are none. CatalogueError where two would be the same table, or where no file can be read; DiskFullError,
    OSError."""
    found = Found()
    first: CatalogueError | None = None
    joined = _Joined(options)
    for number, lying in enumerate(_lying(path, folder, found)):
        try:
            if lying.error is not None:
                raise lying.error
            found.kinds.add(_kind(lying.path))
            tables = list(_look(lying, folder / f"table_{number}.csv", options, found))
        except CatalogueError as error:
            first = first or error
            if lying.misnamed:
                found.notes.append(f"left out: {error}: {error.advice}")
            elif not joined.lacks(lying, error):
                found.check_new(lying.name, lying.place)
                found.set_aside(lying.name, error)
            continue
        for table in tables:
            if not joined.takes(lying, table):
                found.check_new(table.name, table.files[0].place)
                found.tables[table.name] = table
    joined.add_to(found, str(path))
    if first is not None and not found.tables:
        raise first
    found.alike = offers((table.name, table.columns) for table in found.tables.values())
    return found


class _Joined:
    """Tables that the options make one."""

    def __init__(self, options: FileOptions) -> None:
        self._asked = options.together
        self._unused = {one.pattern for one in self._asked}
        self._tables: dict[str, list[FileTable]] = {}
        self._errors: dict[str, CatalogueError] = {}

    def takes(self, lying: _Lying, table: FileTable) -> bool:
        """Takes a table where it is one of those."""
        name = self._name(lying, table.name)
        if name is not None:
            self._tables.setdefault(name, []).append(table)
        return name is not None

    def lacks(self, lying: _Lying, error: CatalogueError) -> bool:
        """Takes the error of a file where it is one of those: without it the table would lack rows."""
        name = self._name(lying, lying.name)
        if name is not None:
            self._errors.setdefault(name, error)
        return name is not None

    def add_to(self, found: Found, where: str) -> None:
        """Adds the tables, each in place of its files. CatalogueError for a pattern that no file is like."""
        if self._unused:
            raise CatalogueError(
                f"no file is like together={min(self._unused)}", where=where,
                advice="it is held against the files' names, * standing for anything",
            )  # fmt: skip
        for name in {**self._tables, **self._errors}:
            tables = sorted(self._tables.get(name, []), key=lambda table: in_order(table.files[0].place))
            found.check_new(name, where)
            try:
                if name in self._errors:
                    raise self._errors[name]
                columns, notes = one_header([table.files[0] for table in tables])
            except CatalogueError as error:
                found.set_aside(name, error)
                continue
            found.notes += notes
            files, origins = (tuple(t.files[0] for t in tables), tuple(t.origins[0] for t in tables))
            found.tables[name] = FileTable(name, files, origins, columns)

    def _name(self, lying: _Lying, table: str) -> str | None:
        """What the table of all is called: by the first pattern that takes this one."""
        if not self._asked:
            return None
        way = Path(lying.within)
        more = [] if table == lying.name else [table]
        ways = [table, *(str(one.joinpath(*more)) for one in (way, way.with_suffix("")))]
        taking = [one for one in self._asked if one.takes(ways)]
        self._unused -= {one.pattern for one in taking}
        if len({one.name for one in taking}) > 1:
            raise CatalogueError(
                f"both together={taking[0].pattern} and {taking[1].pattern} take the file", where=lying.place,
                advice="let one of them not",
            )  # fmt: skip
        return taking[0].name if taking else None


def _lying(path: Path, folder: Path, found: Found) -> Iterator[_Lying]:
    """The files, those of zips too; of zips in a folder only where it holds nothing else to read: one that was unpacked
    there is no second source."""
    if path.is_file():
        files = [path]
    else:
        within = sorted(f for f in path.iterdir() if f.suffix.lower() in (*SUFFIXES, zip_files.SUFFIX))
        files = [file for file in within if file.suffix.lower() in SUFFIXES] or within
        found.notes += [f"left out: {file}: name the zip itself to read it" for file in within if file not in files]
    for file in files:
        if not file.is_file() or file.name.startswith((".", "~$")) or not file.stat().st_size:
            continue
        if file.suffix.lower() == zip_files.SUFFIX:
            yield from _members(file, folder, found)
        else:
            yield _Lying(file, file.stem, str(file), file, file.name)


def _members(file: Path, folder: Path, found: Found) -> Iterator[_Lying]:
    found.kinds.add("ZIP")
    found.states.setdefault(file, state_of(file))
    try:
        with zip_files.opened(file, str(file), SUFFIXES) as files:
            files.check_room(folder)
            for number, member in enumerate(files.members):
                inner = Path(member.path)
                if member.error is None and not member.info.file_size:
                    continue
                found.notes += [member.note] if member.note else []
                yield _Lying(
                    folder / f"member_{len(found.states)}_{number}{inner.suffix}", inner.stem, f"{file}/{inner}", file,
                    f"{file.name}/{inner}", partial(files.unpack, member), member.error, member.misnamed,
                )  # fmt: skip
    except CatalogueError as error:
        yield _Lying(file, file.stem, str(file), file, file.name, error=error)


def _look(lying: _Lying, copy: Path, options: FileOptions, found: Found) -> Iterator[FileTable]:
    kind = _kind(lying.path)
    if lying.unpack is not None:
        lying.unpack(lying.path)
    elif kind != "CSV":
        found.states.setdefault(lying.origin, state_of(lying.origin))
    try:
        if kind == "CSV":
            yield FileTable.of(lying.name, csv_files.look(lying.path, options, lying.place), lying.origin)
            return
        if kind == "JSONL":
            yield FileTable.of(lying.name, jsonl_files.rows(lying.path, copy, options, lying.place), lying.origin)
        else:
            from connectors.xlsx_files import sheets

            for name, file in sheets(lying.path, lying.name, copy, options, lying.place, found.notes):
                yield FileTable.of(name, file, lying.origin)
    except BaseException:
        if lying.unpack is not None:
            lying.path.unlink(missing_ok=True)
        raise
    if lying.unpack is not None:
        lying.path.unlink()


def _kind(path: Path) -> str:
    suffix = path.suffix.lower()
    return "XLSX" if suffix in BOOKS else "JSONL" if suffix in jsonl_files.SUFFIXES else "CSV"
