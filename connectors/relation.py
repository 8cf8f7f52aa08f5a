"""What a plan reads `from`: a table's name, or a SELECT in the source's dialect as a derived table."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

_SELECT = re.compile(r"\s*(?:(?:--[^\n]*\n|/\*.*?\*/)\s*)*\(*\s*(select|with)\b", re.IGNORECASE | re.DOTALL)


def is_select(relation: str) -> bool:
    """True where `relation` is a SELECT and not a table's name."""
    return bool(_SELECT.match(relation))


def from_clause(relation: str, table: Callable[[str], str]) -> str:
    """What stands after FROM: `table(relation)`, or the SELECT in brackets under a name of its own."""
    if not is_select(relation):
        return table(relation)
    return f"(\n{relation.strip().rstrip(';')}\n) AS the_selection"


def after_key(key: Sequence[str], place: Sequence[str], comparison: str = ">") -> str:
    """The condition that a row comes after a key: one comparison, or one of rows for a composite key.

    `key` are the key's columns in SQL, `place` the literals (or numbered placeholders) that they are held
    against. The first column also stands alone, since not every server finds the range in a row comparison.
    """
    if len(key) == 1:
        return f"{key[0]} {comparison} {place[0]}"
    return f"{key[0]} >= {place[0]} AND ({', '.join(key)}) {comparison} ({', '.join(place)})"
