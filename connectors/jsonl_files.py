"""JSONL files as they are found: an object a line becomes a row, and each key of any line a column, all values text.

Numbers keep the digits they are written with, "" stays apart from null. What is in an object within the row becomes a
column of its own, `address.city`; what is deeper, and a list, stays JSON text. Nothing is guessed or left out: a line
that is no object is an error that names it. Writes only the copy it is told to.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from connectors.csv_files import LONGEST_LINE, CsvFile, encoding_of, write_utf8
from connectors.file_options import FileOptions
from workspace.errors import CatalogueError

SUFFIXES = (".jsonl", ".ndjson")
_MOST_COLUMNS = 1500
_AS_LINES = "write one object a line, as `jq -c .[] FILE.json` does of a list"
_MEND = "mend the line, or export the file again"


class _Number(str):
    """A number as it is written."""

    __slots__ = ()


class _NoRowError(Exception):
    """Why a line is no row, and what to do."""

    def __init__(self, what: str, advice: str = _MEND) -> None:
        super().__init__(what)
        self.what, self.advice = what, advice


def rows(path: Path, copy: Path, options: FileOptions, place: str) -> CsvFile:
    """The file as a CSV file at `copy`, a row a line: after a column of no meaning the values, in the order in which
    their keys first appeared, as far as the row has any. Blank lines are none. CatalogueError for a line that is no
    row, with its number, or for a file that has no keys."""
    encoding = options.encoding or encoding_of(path)
    readable = path
    if encoding not in ("utf-8", "utf-8-sig"):
        readable = copy.with_suffix(".utf8")
        write_utf8(path, encoding, readable, place)
    table = _Table(nested=options.nested == "columns")
    try:
        with open(readable, "rb") as lines, open(copy, "wb") as out:
            for number, line in _lines(lines, place):
                try:
                    out.write(table.row(line).encode() + b"\n")
                except _NoRowError as error:
                    raise CatalogueError(error.what, where=f"{place}:{number}", advice=error.advice) from None
                except UnicodeDecodeError:
                    raise CatalogueError(
                        f"the line isn't {encoding}",
                        where=f"{place}:{number}",
                        advice="name its encoding: ?encoding=cp1252",
                    ) from None
                except UnicodeEncodeError:
                    raise CatalogueError(
                        "a text has half of a character in it (\\ud800 to \\udfff)", where=f"{place}:{number}",
                        advice=_MEND,
                    ) from None  # fmt: skip
                except RecursionError:
                    raise CatalogueError(
                        "the line's values lie too deep in one another",
                        where=f"{place}:{number}",
                        advice="leave them out",
                    ) from None
    finally:
        if readable != path:
            readable.unlink(missing_ok=True)
    columns = tuple(filter(None, table.written))
    if not columns:
        raise CatalogueError("the file has no keys", where=place, advice=_AS_LINES)
    return CsvFile(copy, place, "utf-8", ",", '"', columns, line_end="\\n", written=("", *table.written))


def _lines(file: BinaryIO, place: str) -> Iterator[tuple[int, bytes]]:
    """The lines that aren't blank and their numbers, whatever ends them: a line end within a text is written `\\n`."""
    number = 0
    while block := file.readline(LONGEST_LINE + 1):
        if len(block) > LONGEST_LINE:
            listed = not number and block.lstrip().startswith(b"[")
            raise CatalogueError(
                f"the line has more than {LONGEST_LINE:,} bytes", where=f"{place}:{number + 1}",
                advice=_AS_LINES if listed else "leave the longest values out",
            )  # fmt: skip
        if number == 0:
            block = block.removeprefix(b"\xef\xbb\xbf")
        for line in block.rstrip(b"\r\n").split(b"\r") if b"\r" in block else (block,):
            number += 1
            if not line.isspace() and line:
                yield number, line


class _Table:
    """The columns that lines have had so far."""

    def __init__(self, *, nested: bool) -> None:
        self._nested = nested
        self._places: dict[str | tuple[str, str], int] = {}  # a key, or a key and one in its object
        self._names: dict[str, str] = {}  # as DuckDB compares them
        self._filled: set[int] = set()
        decoder = json.JSONDecoder(
            object_pairs_hook=_object, parse_int=_Number, parse_float=_Number, parse_constant=_no_number, strict=False
        )
        self._decode = decoder.decode

    @property
    def written(self) -> tuple[str, ...]:
        """Their names, in order; "" for one that is null wherever it isn't an object."""
        objects = {key[0] for key in self._places if isinstance(key, tuple)}
        return tuple(
            "" if key in objects and place not in self._filled else name
            for (key, place), name in zip(self._places.items(), self._names.values(), strict=True)
        )

    def row(self, line: bytes) -> str:
        """A line as one of CSV."""
        try:
            found = self._decode(line.decode())
        except json.JSONDecodeError as error:
            what = error.msg[0].lower() + error.msg[1:]
            listed = line.lstrip().startswith(b"[")
            raise _NoRowError(
                f"the line is no JSON: {what} at its character {error.pos + 1:,}", _AS_LINES if listed else _MEND
            ) from None
        if type(found) is not dict:
            raise _NoRowError(f"the line is {_kind(found)} and no object", _AS_LINES)
        cells = [""] * len(self._places)
        for key, value in found.items():
            if type(value) is dict and value and self._nested:
                for inner, within in value.items():
                    self._put(cells, (key, inner), within)
            else:
                self._put(cells, key, value)
        return "0," + ",".join(cells)

    def _put(self, cells: list[str], key: str | tuple[str, str], value: object) -> None:
        place = self._places.get(key)
        if place is None:
            place = self._new(key)
            cells.append("")
        if value is not None:
            self._filled.add(place)
            text = value if isinstance(value, str) else _json(value)
            cells[place] = '"' + text.replace('"', '""') + '"'

    def _new(self, key: str | tuple[str, str]) -> int:
        place = len(self._places)
        name = (key if isinstance(key, str) else ".".join(key)) or f"column_{place + 1}"
        if name.casefold() in self._names:
            raise _NoRowError(f"two keys are the column {name!r}", "rename one of them")
        if place >= _MOST_COLUMNS:
            raise _NoRowError(
                f"with this line the file has more than {_MOST_COLUMNS:,} columns",
                "where an object's keys are values, keep it as JSON: ?nested=json",
            )
        self._names[name.casefold()] = name
        self._places[key] = place
        return place


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise _NoRowError(f"the key {twice[:80]!r} is there twice in one object")
    return found


def _no_number(text: str) -> None:
    raise _NoRowError(f"{text} is no JSON value", "write null in its place")


def _json(value: object) -> str:
    """A value as JSON text on one line, numbers with the digits they had."""
    if isinstance(value, _Number):
        return str(value)
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, list):
        return f"[{', '.join(map(_json, value))}]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(k, ensure_ascii=False)}: {_json(v)}" for k, v in value.items()) + "}"
    return "null" if value is None else "true" if value else "false"


def _kind(value: object) -> str:
    if isinstance(value, list):
        return "a list"
    return "a number" if isinstance(value, _Number) else "a text" if isinstance(value, str) else _json(value)
