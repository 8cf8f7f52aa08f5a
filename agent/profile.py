"""What a column holds, in figures: counts, ranges, shapes, and which traits of the trade its values show.

A profile is made from a bounded sample and from counts that the server made. `facts` is what goes into the
log: it must never hold a person's values, so all values appear there as shapes.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from connectors.protocols import Column, Kind

PICKLIST_MAX = 200  # distinct values up to which a column may be a value list
_SHAPES_SHOWN = 6

_EMAIL = re.compile(r"^(mailto:)?[^@\s<>,;]+@[^@\s<>,;]+\.[^@\s<>,;.]+$", re.IGNORECASE)
_PHONE = re.compile(r"^(?=(?:.*\d){6})\+?[\d\s()./\-–]{6,30}(?:\s*(?:x|ext\.?|#)\s*\d{1,6})?$", re.IGNORECASE)
_URL = re.compile(r"^(https?://\S+|(www\.)?[a-z0-9-]+(\.[a-z0-9-]+)*\.[a-z]{2,}(/\S*)?)$", re.IGNORECASE)
_DATE = re.compile(r"^\d{4}-\d{2}-\d{2}$|^\d{1,2}[./-]\d{1,2}[./-]\d{2,4}$")
_DATETIME = re.compile(r"^\d{4}-\d{2}-\d{2}[ T]\d{2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}:?\d{2})?$")
_ZONED = re.compile(r"^\d{4}-\d{2}-\d{2}[ T]\d{2}:\d{2}.*(Z|[+-]\d{2}:?\d{2})$")
_INTEGER = re.compile(r"^-?\d+$")
_DECIMAL = re.compile(r"^-?\d+([.,]\d+)?$")
_MONEY = re.compile(r"^\(?-?\s*([$€£¥]|[A-Z]{3})?\s*-?\d{1,3}([.,' ]?\d{3})*([.,]\d{1,4})?\s*([$€£¥]|[A-Z]{3})?\)?-?$")
_UUID = re.compile(r"^[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$", re.IGNORECASE)
_ENTITY = re.compile(r"&(#\d{1,7}|#x[0-9a-f]{1,6}|[a-z][a-z0-9]{1,30});", re.IGNORECASE)
_MOJIBAKE = re.compile(r"[ÃÂÅÄ][\u0080-\u00bf‚ƒ„…†‡ˆ‰Š‹ŒŽ‘’“”•–—˜™š›œžŸ¡-¿]|â€|ï»¿")
_TAGS = re.compile(r"<(br|p|div|span|b|i|a|ul|li|table)\b[^>]*>", re.IGNORECASE)
_ZERO_DATE = re.compile(r"^0000-00-00")
_SERIAL = re.compile(r"^\d{5}(\.\d+)?$")
_CARET = re.compile(r"^\^.*\^$| \|##\| |\x01")
_BOOLEANS = frozenset("0 1 true false t f yes no y n on off ja nein oui non si sí sim tak nie".split())  # noqa: SIM905

TRAITS: dict[str, Callable[[str], bool]] = {
    "email": lambda v: bool(_EMAIL.match(v)),
    "phone": lambda v: bool(_PHONE.match(v)) and not _DATE.match(v) and not _DATETIME.match(v),
    "url": lambda v: bool(_URL.match(v)) and "@" not in v,
    "date": lambda v: bool(_DATE.match(v)),
    "datetime": lambda v: bool(_DATETIME.match(v)),
    "zoned": lambda v: bool(_ZONED.match(v)),
    "zero_date": lambda v: bool(_ZERO_DATE.match(v)),
    "serial": lambda v: bool(_SERIAL.match(v)) and 10_000 <= float(v) < 80_000,
    "integer": lambda v: bool(_INTEGER.match(v)),
    "decimal": lambda v: bool(_DECIMAL.match(v)),
    "money": lambda v: bool(_MONEY.match(v)) and any(c.isdigit() for c in v),
    "boolean": lambda v: v.casefold() in _BOOLEANS,
    "uuid": lambda v: bool(_UUID.match(v)),
    "entity": lambda v: bool(_ENTITY.search(v)),
    "mojibake": lambda v: bool(_MOJIBAKE.search(v)),
    "tags": lambda v: bool(_TAGS.search(v)),
    "multi": lambda v: bool(_CARET.search(v)),
    "letters": lambda v: any(c.isalpha() for c in v),
    "spaces": lambda v: " " in v.strip(),
    "iso2": lambda v: len(v) == 2 and v.isalpha() and v.isupper(),
}
"""What a value may look like, each a test of one stripped value that isn't blank."""


@dataclass(frozen=True)
class ColumnProfile:
    """What is known of one column. `rows` are those looked at for `nulls`, `blanks` and `distinct`.

    `blanks` are empty or white text. `distinct` is exact unless `capped`. `top` are the sample's values with
    counts, commonest first; `traits` the share of the sample's distinct values that show a trait;
    `samples` a few values as sent, for a person and a model to look at, never logged.
    """

    column: Column
    rows: int
    nulls: int
    blanks: int
    distinct: int
    capped: bool
    minimum: str = ""
    maximum: str = ""
    shortest: int = 0
    longest: int = 0
    shapes: tuple[tuple[str, int], ...] = ()
    top: tuple[tuple[str, int], ...] = ()
    traits: dict[str, float] = field(default_factory=dict)
    samples: tuple[str, ...] = ()
    trailing: bool = False  # some values carry white space at an end
    undo: frozenset[str] = frozenset()  # entities, mojibake, spaces: what the old system did to its text

    @property
    def empty_share(self) -> float:
        """NULL or blank, 0 to 1; an empty table counts as all empty."""
        return (self.nulls + self.blanks) / self.rows if self.rows else 1.0

    @property
    def filled(self) -> int:
        """Rows with a value."""
        return max(0, self.rows - self.nulls - self.blanks)

    def trait(self, name: str) -> float:
        """The share of distinct values that show the trait, 0 where there are none."""
        return self.traits.get(name, 0.0)

    @property
    def minus_one(self) -> bool:
        """True for a column of 0 and -1 alone: yes as Access and Visual Basic write it."""
        values = {v for v, _ in self.top}
        return "-1" in values and values <= {"0", "-1"} and self.distinct <= 2

    @property
    def picklist(self) -> bool:
        """True where few values repeat often, as a list that people choose from does."""
        return 0 < self.distinct <= PICKLIST_MAX and self.filled >= 3 * self.distinct and self.longest <= 80

    @property
    def wordy(self) -> bool:
        """True for text that people write, not codes, keys, addresses or dates."""
        coded = max(self.trait(t) for t in ("email", "uuid", "date", "datetime", "phone"))
        return self.column.kind is Kind.TEXT and self.trait("letters") > 0.3 and coded < 0.5

    @property
    def listlike(self) -> bool:
        """As `picklist`, and also for few rows: what may be held against a target's labels, never logged."""
        return self.picklist or (0 < self.distinct <= 30 and self.filled >= 1.5 * self.distinct and self.longest <= 80)

    @property
    def unique(self) -> bool:
        """True where no value is there twice and none is missing, over all rows that were looked at."""
        return self.rows > 0 and not self.nulls and not self.blanks and not self.capped and self.distinct == self.rows

    def facts(self) -> dict[str, Any]:
        """The profile as JSON for the log: values as shapes, those of a picklist with their counts."""
        return {
            "type": self.column.type,
            "rows": self.rows,
            "nulls": self.nulls,
            "blanks": self.blanks,
            "distinct": self.distinct,
            "distinct_is_capped": self.capped,
            "lengths": [self.shortest, self.longest],
            "range": [shape(self.minimum), shape(self.maximum)]
            if self.column.kind not in (Kind.TEXT, Kind.OTHER)
            else [],
            "shapes": [list(s) for s in self.shapes],
            "top": [[shape(value), count] for value, count in self.top[:30]] if self.picklist else [],
            "traits": {k: round(v, 3) for k, v in self.traits.items() if v >= 0.005},
        }


@dataclass(frozen=True)
class Reference:
    """`column` holds keys of `table`: the share of sampled values found there, and how it is known.

    A polymorphic reference has a `selector` column whose `selected` value says that this table is meant. `of_kinds` is
    below 1 where the table holds several kinds of record and other values are keys of another kind's rows; `kin` says
    that the two kinds share a table.
    """

    column: str
    table: str
    key: str
    share: float
    known_by: str  # declared | inclusion
    selector: str = ""
    selected: str = ""
    of_kinds: float = 1.0
    kin: bool = False


@dataclass(frozen=True)
class TableProfile:
    """A table's columns and what holds it together. `rows` is the server's COUNT(*)."""

    name: str
    rows: int
    sampled: bool
    columns: dict[str, ColumnProfile]
    key: tuple[str, ...] = ()
    key_known_by: str = ""  # declared | unique
    references: tuple[Reference, ...] = ()

    def facts(self) -> dict[str, Any]:
        """The profile as JSON for the log."""
        return {
            "rows": self.rows,
            "sampled": self.sampled,
            "key": list(self.key),
            "key_known_by": self.key_known_by,
            "references": [
                {
                    "column": r.column,
                    "table": r.table,
                    "share": round(r.share, 3),
                    "known_by": r.known_by,
                    **({"selector": r.selector, "selected": r.selected} if r.selector else {}),
                }
                for r in self.references
            ],
            "columns": {name: c.facts() for name, c in self.columns.items()},
        }


def with_habits(tables: dict[str, TableProfile]) -> dict[str, TableProfile]:
    """The profiles, with what the old system does to all of its text noted at each free text column.

    A system that escapes what comes through its forms does so everywhere, one that took in text in a wrong
    encoding may have done it anywhere; stray spaces go with a table's imports. One column that shows it is
    enough: undoing leaves other text as it is.
    """
    escapes = any(c.trait("entity") > 0 for t in tables.values() for c in t.columns.values())
    broken = any(c.trait("mojibake") > 0 for t in tables.values() for c in t.columns.values())
    out = {}
    for name, table in tables.items():
        padded = any(c.trailing for c in table.columns.values())
        habits = frozenset(
            word for word, there in (("entities", escapes), ("mojibake", broken), ("spaces", padded)) if there
        )
        columns = {n: replace(c, undo=habits) if c.wordy else c for n, c in table.columns.items()}
        out[name] = replace(table, columns=columns)
    return out


class _Signs(dict[int, str]):
    """What stands for a character in a shape; each is looked at once."""

    def __missing__(self, code: int) -> str:
        char = chr(code)
        if char.isdigit():
            sign = "9"
        elif char.isalpha():
            sign = "A" if char.isupper() else "a"
        else:
            sign = char if char.isprintable() else "?"
        self[code] = sign
        return sign


_SIGNS = _Signs()


def shape(value: str) -> str:
    """The value's shape: digits 9, lower case a, upper case A, other letters a; runs over 3 shortened: `99/99/9999`."""
    return re.sub(r"([a]{4,})", "a+", re.sub(r"(9{5,})", "9+", re.sub(r"(A{4,})", "A+", value[:60].translate(_SIGNS))))


def profile_values(
    column: Column, values: Iterable[str | None], *, rows: int, nulls: int, blanks: int, distinct: int, capped: bool,
    minimum: str = "", maximum: str = "",
) -> ColumnProfile:  # fmt: skip
    """The profile of a column from the sample's values as text and from the server's counts."""
    counted: Counter[str] = Counter()
    trailing = False
    for value in values:
        if value is None:
            continue
        text = value.strip()
        if text:
            counted[text] += 1
            trailing = trailing or text != value
    looked_at = list(counted)[:400]
    traits = {n: sum(map(test, looked_at)) / len(looked_at) for n, test in TRAITS.items()} if looked_at else {}
    for name, mark in (("entity", "&"), ("mojibake", "")):  # rare, so all values are looked at
        marked = sum(1 for v in counted if mark in v and TRAITS[name](v)) if looked_at else 0
        if marked:
            traits[name] = marked / len(counted)
    shapes = Counter(shape(v) for v in looked_at)
    lengths = [len(v) for v in counted] or [0]
    return ColumnProfile(
        column, rows, nulls, blanks, distinct, capped, minimum, maximum, min(lengths), max(lengths),
        tuple(shapes.most_common(_SHAPES_SHOWN)), tuple(counted.most_common(PICKLIST_MAX)), traits,
        tuple(looked_at[:5]), trailing,
    )  # fmt: skip
