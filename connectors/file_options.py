"""How files are to be read, where it isn't as they are found: what stands after the `?` of a DSN of files."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase

from workspace.errors import DsnError

_CHOICES = {
    "totals": ("refuse", "keep", "drop"),
    "nested": ("columns", "json"),
}
_FREE = ("encoding", "delimiter", "header", "sheet", "together")


_MOST_ROWS = 1_048_576
_WILD = re.compile(r"[*?]|\[[^\]]*\]")
NUMBER_ENDS = " _-.(["
"""What stands between a name and its number."""


@dataclass(frozen=True)
class Together:
    """Files to be one table of that name: those whose table, or path within the source, is like the pattern."""

    pattern: str
    name: str

    @classmethod
    def of(cls, option: str, where: str) -> tuple[Together, ...]:
        """What the option says, patterns apart by commas. DsnError for one that gives no name."""
        return tuple(cls(pattern, _named(pattern, where)) for pattern in map(str.strip, option.split(",")) if pattern)

    def takes(self, ways: Iterable[str]) -> bool:
        """Whether one of the ways to call a file is like the pattern; capitals count for nothing."""
        return any(is_like(way, self.pattern) for way in ways)


@dataclass(frozen=True)
class FileOptions:
    """`encoding` and `delimiter` are "" where they are to be found by looking; `header` is 0 there: the
    number of a sheet's row of names. `sheet` names sheets to read, hidden ones too, by patterns apart by commas; `together`
    are files to be one table. Of the others the first choice is what holds when nothing is said."""

    encoding: str = ""
    delimiter: str = ""
    totals: str = "refuse"
    nested: str = "columns"
    header: int = 0
    sheet: str = ""
    together: tuple[Together, ...] = ()

    @property
    def sheets(self) -> list[str]:
        """The patterns of `sheet`."""
        return [pattern for pattern in map(str.strip, self.sheet.split(",")) if pattern]

    @classmethod
    def of(cls, parameters: Mapping[str, str], where: str) -> FileOptions:
        """The options that a DSN's parameters spell. DsnError for one that there isn't."""
        for name, value in parameters.items():
            if name not in _CHOICES and name not in _FREE:
                raise DsnError(
                    f"files have no option {name!r}", where=where,
                    advice=f"there are {', '.join(sorted((*_FREE, *_CHOICES)))}",
                )  # fmt: skip
            if name in _CHOICES and value not in _CHOICES[name]:
                raise DsnError(
                    f"the option {name} can't be {value!r}", where=where, advice=f"it is {' or '.join(_CHOICES[name])}"
                )
        told = dict(parameters)
        header = told.pop("header", "")
        if header and (not header.isdecimal() or not 0 < int(header) <= _MOST_ROWS):
            raise DsnError(
                f"the option header can't be {header!r}", where=where,
                advice="it is the number of the row that holds the columns' names: ?header=3",
            )  # fmt: skip
        together = Together.of(told.pop("together", ""), where)
        return cls(header=int(header or 0), together=together, **told)


def is_like(name: str, pattern: str) -> bool:
    """Whether a name is like a pattern, in which * stands for anything; capitals count for nothing."""
    return fnmatchcase(name.casefold(), pattern.casefold())


def _named(pattern: str, where: str) -> str:
    """The table's name: what the pattern's last part says before its first wild card."""
    last = re.sub(r"\.(csv|tsv|jsonl|ndjson|xlsx|xlsm)$", "", pattern.rpartition("/")[2], flags=re.IGNORECASE)
    name = _WILD.split(last)[0].rstrip(NUMBER_ENDS).strip()
    if not name:
        raise DsnError(
            f"together={pattern} gives the table no name", where=where,
            advice="begin with what the files' names have in common: ?together=Contacts_*",
        )  # fmt: skip
    return name
