"""What DuckDB is asked to make of a part: the text of the query, and how names and values stand in it.

Knows nothing of plans and systems, so that a process that only transforms loads nothing of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

LOADED, EXCLUDED, QUARANTINED, MERGED = 0, 1, 2, 3
"""The values of `_ph_outcome`; a row is merged only once all of its entity's rows were held against each other."""


@dataclass(frozen=True)
class Query:
    """`layers` are CTEs in order, the last named `done`; `setup` are statements to run once before."""

    setup: tuple[str, ...]
    layers: tuple[str, ...]
    columns: tuple[str, ...]

    def over(self, *parts: Path) -> str:
        """The whole SELECT over parts; rows in no order that is promised."""
        listed = ", ".join(literal(str(part)) for part in parts)
        first = f"part AS NOT MATERIALIZED (SELECT * FROM read_parquet([{listed}]))"
        return f"WITH {', '.join([first, *self.layers])} SELECT * FROM done"

    def over_nothing(self, columns: Mapping[str, str]) -> str:
        """The SELECT over one row of NULLs: binds and folds each expression, so that a bad one shows."""
        nulls = ", ".join(f"CAST(NULL AS {type_}) AS {identifier(name)}" for name, type_ in columns.items())
        first = f"part AS (SELECT 0::BIGINT AS _ph_n, {nulls})"
        return f"WITH {', '.join([first, *self.layers])} SELECT * FROM done"


def identifier(name: str) -> str:
    """A column's name quoted for DuckDB."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """A text quoted for DuckDB; NUL can't stand in SQL text and is written as chr(0)."""
    parts = ["'" + part.replace("'", "''") + "'" for part in text.split("\x00")]
    return parts[0] if len(parts) == 1 else "(" + " || chr(0) || ".join(parts) + ")"


def read_parts(parts: Iterable[Path]) -> str:
    """DuckDB SQL that reads these parts, in this order: each by its name, since a folder's may hold signs that a
    pattern would take for its own. At least one."""
    return f"read_parquet([{', '.join(literal(str(part)) for part in parts)}])"
