"""How files are to be read, where it isn't as they are found: what stands after the `?` of a DSN of files."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase

from workspace.errors import DsnError

_CHOICES = {
    "totals": ("refuse", "keep"),
    "nested": ("columns", "json"),
}
_FREE = ("encoding", "delimiter", "together")


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
        return any(fnmatchcase(way.casefold(), self.pattern.casefold()) for way in ways)


@dataclass(frozen=True)
class FileOptions:
    """`encoding` and `delimiter` are "" where they are to be found by looking; `together` are files to be one table. Of
    the others the first choice is what holds when nothing is said."""

    encoding: str = ""
    delimiter: str = ""
    totals: str = "refuse"
    nested: str = "columns"
    together: tuple[Together, ...] = ()

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
        return cls(together=Together.of(told.pop("together", ""), where), **told)


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
