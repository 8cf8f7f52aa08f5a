"""Several files as one table, where the DSN says so: `?together=Contacts_*`. It is offered and never done by itself.

Rows are in the order of the files, numbers in their names by value. Columns are one where their names are, whatever
their order; a file without one has nothing there, and a line says so.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence

from connectors.csv_files import CsvFile
from connectors.file_options import NUMBER_ENDS
from workspace.errors import CatalogueError

_NUMBERED = re.compile(r"(.*?\D)[ _.-]*?[(\[]?\d+[)\]]?")
_MOST_NAMED = 5


def one_header(files: Sequence[CsvFile]) -> tuple[tuple[str, ...], list[str]]:
    """The columns of all files, those of the first before what others add; a line for each file that lacks some.
    CatalogueError for a file that has none of the first one's."""
    columns: dict[str, str] = {}
    for file in files:
        if columns and not columns.keys() & {name.casefold() for name in file.columns}:
            raise CatalogueError(
                f"the file has no column in common with {files[0].place}", where=file.place,
                advice="leave it out of ?together=",
            )  # fmt: skip
        for name in file.columns:
            columns.setdefault(name.casefold(), name)
    notes = []
    for file in files:
        own = {name.casefold() for name in file.columns}
        if lacking := [name for folded, name in columns.items() if folded not in own]:
            notes.append(f"{file.place} has no column {_listed(lacking)}: empty in its rows")
    return tuple(columns.values()), notes


def in_order(place: str) -> list[str | int]:
    """What files are sorted by: `Contacts_2` comes before `Contacts_10`."""
    return [int(part) if part.isdecimal() else part for part in re.split(r"(\d+)", place.casefold())]


def offers(tables: Iterable[tuple[str, Sequence[str]]]) -> list[tuple[list[str], str]]:
    """Of tables and their columns, those that look like one: their names, and what `together` would be for them."""
    alike: dict[tuple[str, frozenset[str]], list[str]] = defaultdict(list)
    names = {}
    for name, columns in tables:
        header = frozenset(map(str.casefold, columns))
        names[name.casefold()] = name, header
        if numbered := _NUMBERED.fullmatch(name):
            alike[numbered[1].rstrip(NUMBER_ENDS), header].append(name)
    found = []
    for (base, header), like in alike.items():
        if not base:
            continue
        before = names.get(base.casefold())  # Contacts.csv, Contacts_1.csv
        first = [before[0]] if before is not None and before[1] == header else []
        if len(first) + len(like) > 1:
            start = min(like, key=len)[: len(base) + 1].rstrip("0123456789")
            others = sum(name.startswith(start.casefold()) for name in names) - len(like)
            exact = others > sum(name.casefold().startswith(start.casefold()) for name in first)
            pattern = f"{start}[0-9]*" if exact else f"{start}*"
            found.append(([*first, *sorted(like, key=in_order)], ",".join([*first, pattern])))
    return found


def offer(names: Sequence[str], dsn: str) -> str:
    """The line that offers it."""
    return f"{_listed(names)} have the same columns: to read them as one table, name the source '{dsn}'"


def _listed(names: Sequence[str]) -> str:
    more = len(names) - _MOST_NAMED
    return ", ".join(names[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
