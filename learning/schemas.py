"""Made-up migrations: an old table and the new one its rows go to, with the right field of each column, or none.

A table is written in one language and style by one hand. Columns may have a name that says nothing, or that their values
contradict; fields lie near each other in name and are not the same. Unlimited, and the same for the same seed.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from rapidfuzz import fuzz

from learning.leaks import Denied
from learning.naming import CUSTOM, FORMS, Style, custom, draw_style, field_name, nameless, written
from learning.values import Hand, draw_hand, samples
from learning.vocabulary import LANGUAGES, TABLES, Concept, concepts, picklist, table_words, unplaced

UNSEEN_LANGUAGES = ("pl",)
"""Languages that no training table is in."""
UNSEEN_FORMS = ("hungarian",)
"""Styles that no training column is in."""
Split = Literal["train", "words", "unseen"]
"""`train` is learnt from; `words` has names that training never sees, in languages and styles it does; `unseen` languages
and styles that it doesn't."""
_TELLING = frozenset({"email", "url", "linkedin", "taxid", "currency", "iban", "zone", "phone", "birthday"})
_TYPES = {
    "moment": ("datetime", "timestamp", "text"), "day": ("date", "datetime", "text"), "birthday": ("date", "text"),
    "flag": ("boolean", "tinyint", "char(1)", "bit"), "int": ("integer",), "headcount": ("integer", "text"), "days": ("integer",),
    "minutes": ("integer",), "score": ("integer",), "money": ("decimal(15,2)", "text"), "turnover": ("decimal(15,2)", "text"),
    "percent": ("integer", "double"), "float": ("double",), "note": ("text", "longtext"),
}  # fmt: skip
_UNIQUE = frozenset({"email", "linkedin", "custno", "taxid", "ticketno", "invno", "iban", "moment", "hash", "handle"})


@dataclass(frozen=True)
class Column:
    """A column of the old table. `field` is the name of the right field, or None; `distinct` is few, some or all; `how` says
    what is odd about it: plain, custom, nameless, contradicting, idiom or unplaced."""

    name: str
    type: str
    samples: tuple[str, ...]
    distinct: str
    empty: float
    field: str | None
    how: str


@dataclass(frozen=True)
class Field:
    """A field of the new table."""

    name: str
    type: str


@dataclass(frozen=True)
class TablePair:
    """An old table and the new one."""

    old: str
    new: str
    language: str
    style: str
    columns: tuple[Column, ...]
    fields: tuple[Field, ...]

    def near_misses(self, column: Column, count: int = 3) -> tuple[str, ...]:
        """The wrong fields whose names look most like the column's."""
        wrong = [f.name for f in self.fields if f.name != column.field]
        return tuple(sorted(wrong, key=lambda name: -fuzz.WRatio(column.name.lower(), name))[:count])


def pairs(split: Split, count: int, denied: Denied, seed: int = 1) -> Iterator[TablePair]:
    """So many table pairs of a split, none of them holding what is denied."""
    for number in range(count):
        yield _Table(split, random.Random(f"{split} {seed} {number}"), denied).pair()


class _Table:
    def __init__(self, split: Split, draw: random.Random, denied: Denied) -> None:
        self._split, self._draw, self._denied = split, draw, denied
        self._letter = draw.choice("pppcccdddaaatiu")
        self._language, self._style = self._hand_and_style()
        self._hand: Hand = draw_hand(draw, self._language)
        self._taken: set[str] = set()

    def _hand_and_style(self) -> tuple[str, Style]:
        draw = self._draw
        languages = [name for name in LANGUAGES if name not in UNSEEN_LANGUAGES] + ["en", "en"]
        forms = tuple(form for form in FORMS if form not in UNSEEN_FORMS)
        if self._split == "unseen":
            if draw.random() < 0.5:
                languages = list(UNSEEN_LANGUAGES)
            else:
                forms = UNSEEN_FORMS
        language = draw.choice(languages)
        self._old = draw.choice(table_words(self._letter, language))
        return language, draw_style(draw, forms, self._old)

    def pair(self) -> TablePair:
        """The table's columns and fields, both in an order of their own."""
        draw = self._draw
        known = [c for c in concepts() if self._letter in c.tables]
        fields: dict[str, Field] = {}
        named: dict[str, str] = {}  # concept -> field
        kept = draw.sample(known, max(6, int(len(known) * draw.uniform(0.6, 0.95))))
        for concept in kept:
            name = field_name(draw.choice(concept.phrases["en"]), concept.kind, draw)
            if name not in fields and concept.kind:
                fields[name] = Field(name, _target_type(concept.kind))
                named[concept.name] = name
        columns = [
            column
            for concept in draw.sample(known, max(6, int(len(known) * draw.uniform(0.5, 0.8))))
            if (column := self._column(concept, named.get(concept.name), named, fields)) is not None
        ]
        strays = draw.sample(unplaced(), draw.randint(2, 5))
        columns += [c for stray in strays if (c := self._stray(stray.kind, stray.phrases[self._language])) is not None]
        draw.shuffle(columns)
        shuffled = list(fields.values())
        draw.shuffle(shuffled)
        new = field_name(draw.choice(table_words(self._letter, "en")), "", draw)
        return TablePair(self._old, new, self._language, self._style.name, tuple(columns), tuple(shuffled))

    def _column(
        self, concept: Concept, field: str | None, named: dict[str, str], fields: dict[str, Field]
    ) -> Column | None:
        """A column of a concept; None where its name is taken, denied, or not of this split."""
        draw, kind, how = self._draw, concept.kind, "plain"
        phrase = self._phrase(concept)
        if phrase is None:
            return None
        chance = draw.random()
        name = written(phrase, self._style, kind, draw)
        if chance < 0.12 and concept.idioms and self._split == "train":
            name, how = draw.choice(concept.idioms), "idiom"
        elif chance < 0.18:
            name, how = custom(phrase, draw), "custom"
            if not name.strip("0123456789") or all(part not in name for part in ("_", "X")):
                how = "nameless"
            if _says_nothing(name):
                how = "nameless"
        elif chance < 0.22 and kind in _TELLING:
            name, how = nameless(draw), "nameless"
        elif chance < 0.25:
            other = draw.choice([k for k in ("flag", "email", "code", "moment", "percent", "url") if k != kind])
            kind, how, field = other, "contradicting", None
            if other == "email" and "email_2" not in named and draw.random() < 0.5:
                field = named.get("email") if concept.name != "email_2" else None
                field = None if concept.kind in ("handle", "note") else field
        if how == "nameless" and (kind not in _TELLING or _several(kind, concept, named)):
            field = None  # nothing tells which it is
        return self._made(name, kind, field, how)

    def _phrase(self, concept: Concept) -> str | None:
        """A name of the concept that this split may use: each fourth is kept from training."""
        every = concept.phrases[self._language]
        if self._split == "unseen":
            return self._draw.choice(every)
        held = [p for p in every if held_out(concept.name, p)]
        allowed = held if self._split == "words" else [p for p in every if p not in held]
        return self._draw.choice(allowed) if allowed else None

    def _stray(self, kind: str, phrases: Sequence[str]) -> Column | None:
        phrase = self._draw.choice(phrases)
        name = (
            custom(phrase, self._draw) if self._draw.random() < 0.25 else written(phrase, self._style, kind, self._draw)
        )
        return self._made(name, kind, None, "unplaced")

    def _made(self, name: str, kind: str, field: str | None, how: str) -> Column | None:
        if name.lower() in self._taken or (field is not None and self._denied.pair(name, field)):
            return None
        draw = self._draw
        held = samples(kind, self._hand, draw)
        if picklist(kind) and self._denied.values(held):
            held = ()
        self._taken.add(name.lower())
        empty = round(draw.choice((0.0, 0.0, draw.random() * 0.6, draw.uniform(0.6, 0.99))), 2)
        distinct = "few" if picklist(kind) or kind == "flag" else "all" if kind in _UNIQUE else "some"
        type_ = draw.choice(_TYPES.get(kind, ("varchar(100)", "varchar(255)", "text")))
        if kind == "ref":
            type_ = "integer" if self._hand.keys in ("serial", "long") else "varchar(36)"
        return Column(name, type_, held if empty < 0.97 else (), distinct, empty, field, how)


def held_out(concept: str, phrase: str) -> bool:
    """True for each fourth name, the same in every run: training never sees it."""
    return random.Random(f"{concept}/{phrase}").random() < 0.25


def _several(kind: str, concept: Concept, named: dict[str, str]) -> bool:
    """Whether another field of the new table holds values of that kind."""
    return sum(c.kind == kind for c in concepts() if c.name in named and c.name != concept.name) > 0


def _says_nothing(name: str) -> bool:
    return any(name.rstrip("0123456789") == form.partition("{n}")[0] for form in CUSTOM if "{n}" in form)


def _target_type(kind: str) -> str:
    return {
        "moment": "timestamptz", "day": "date", "birthday": "date", "flag": "boolean", "int": "integer", "headcount": "integer",
        "days": "integer", "minutes": "integer", "score": "integer", "money": "numeric", "turnover": "numeric",
        "percent": "integer", "ref": "bigint",
    }.get(kind, "text")  # fmt: skip


assert set("".join(c.tables for c in concepts())) <= set(TABLES)
