"""One table of a report, and how names, words, values and moments stand in it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from cli.views.text import one_line, visible
from workspace.signature import shape

Cell = str | int | float

_LONGEST = 120


@dataclass(frozen=True)
class Sheet:
    """A table: its name for links, title, what is to be known of it, headings and rows. `total` is the last row where
    it sums the others; `by_entity` where the first column names an entity, to filter by."""

    id: str
    title: str
    about: str
    headings: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    total: tuple[Cell, ...] | None = None
    by_entity: bool = False
    nothing: str = "Nothing."


def moment(at: datetime | None) -> str:
    """A point in time as a reader wants it."""
    return f"{at:%Y-%m-%d %H:%M:%S} UTC" if at else "never"


def name_of(text: str) -> str:
    """A name out of either system, harmless and on one line."""
    return one_line(text)


def words(text: str) -> str:
    """Words that may hold names and SQL, on one line and not too long to read."""
    line = one_line(text)
    return line if len(line) <= 4 * _LONGEST else line[: 4 * _LONGEST - 1] + "…"


def whole_value(value: str | None) -> str:
    """A record value as it is, harmless and cut."""
    return "(none)" if value is None else "(empty)" if not value else visible(value, _LONGEST)


def masked_value(value: str | None) -> str:
    """A record value by its shape."""
    return whole_value(value if value is None else shape(value))
