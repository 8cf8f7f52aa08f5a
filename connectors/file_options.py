"""How files are to be read, where it isn't as they are found: what stands after the `?` of a DSN of files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from connectors.files_together import Together
from workspace.errors import DsnError

_CHOICES = {
    "totals": ("refuse", "keep"),
    "nested": ("columns", "json"),
}
_FREE = ("encoding", "delimiter", "together")


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
