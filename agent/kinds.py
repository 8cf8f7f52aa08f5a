"""Several kinds of record in one source table: which column tells them apart, and where each kind goes.

Written as text that a person can read, answer with and correct: `type: C=companies; P=people; X=leave`. Each row
belongs to one kind, and rows of a kind that has no place are counted, never dropped. Nothing here looks at a database.
"""

from __future__ import annotations

from dataclasses import dataclass

from workspace.errors import UsageError

EMPTY, FILLED, LEAVE = "(empty)", "(filled)", "leave"
_ADVICE = "write COLUMN: VALUE=TABLE; VALUE=leave, with (empty) and (filled) for rows without and with any other value"


@dataclass(frozen=True)
class Kinds:
    """`places` gives each value of `column` the target table that such rows go to, None where they stay behind. The
    value `(empty)` stands for NULL and blank, `(filled)` for every value that isn't named."""

    column: str
    places: tuple[tuple[str, str | None], ...]

    @property
    def text(self) -> str:
        """The answer that says so."""
        return f"{self.column}: " + "; ".join(f"{v}={LEAVE if t is None else t}" for v, t in self.places)

    @property
    def targets(self) -> tuple[str, ...]:
        """The tables that rows go to, each once."""
        return tuple(dict.fromkeys(t for _, t in self.places if t is not None))

    def values(self, target: str) -> tuple[str, ...]:
        """The values of the rows that go to that table."""
        return tuple(v for v, t in self.places if t == target)

    def place(self, value: str | None) -> str | None:
        """Where a row of that value goes, or None."""
        told = (value or "").strip().casefold()
        named = {v.casefold(): t for v, t in self.places}
        if not told:
            return named.get(EMPTY)
        return named[told] if told in named and told not in (EMPTY, FILLED) else named.get(FILLED)

    @property
    def named(self) -> tuple[str, ...]:
        """The values that stand for themselves."""
        return tuple(v for v, _ in self.places if v not in (EMPTY, FILLED))


def read_kinds(text: str) -> Kinds:
    """The kinds that an answer names. UsageError for text of another form, or where no row goes anywhere."""
    column, colon, rest = text.partition(": ")
    pairs = [p.partition("=") for p in rest.split(";") if p.strip()]
    if (
        not colon
        or not column.strip()
        or not pairs
        or any(not e or not v.strip() or not t.strip() for v, e, t in pairs)
    ):
        raise UsageError("not a column with a table for each of its values", advice=_ADVICE)
    places = tuple((v.strip(), None if t.strip() == LEAVE else t.strip()) for v, _, t in pairs)
    if len({v.casefold() for v, _ in places}) != len(places):
        raise UsageError("a value has two places", advice=_ADVICE)
    if any(not writable(v) for v, _ in places if v not in (EMPTY, FILLED)):
        raise UsageError("a value with a backslash or a control character can't be named", advice=_ADVICE)
    if not any(t for _, t in places):
        raise UsageError("no row goes anywhere", advice=_ADVICE)
    return Kinds(column.strip(), places)


def names_kinds(answer: str) -> bool:
    """True for text that names kinds, whatever they are."""
    try:
        read_kinds(answer)
    except UsageError:
        return False
    return True


def writable(value: str) -> bool:
    """True for a value that an answer can name and that every server reads in quotes as it stands."""
    return value.isprintable() and not set(value) & set(";=\\") and value not in (EMPTY, FILLED)
