"""Names as errors tell them: the one that was probably meant, and those that are there."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def near(name: str, known: Iterable[str]) -> str:
    """` (did you mean 'x'?)` where a known name is like this one, else nothing."""
    found = difflib.get_close_matches(name, list(known), n=1)
    return f" (did you mean {found[0]!r}?)" if found else ""


def listed(names: Iterable[str], most: int = 30) -> str:
    """The names with commas, the first `most` of them; nothing where there is none."""
    all_names = list(names)
    more = f" and {len(all_names) - most} more" if len(all_names) > most else ""
    return ", ".join(all_names[:most]) + more
