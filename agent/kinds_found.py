"""Finds source tables that hold several kinds of record, each for a target table of its own.

Two signs: a column whose values name different target tables, and rows that differ in which columns are filled where
one target table wants the ones and another the others. A status is neither: its values name no table, and what is
filled with them suits one table. A sample proposes; what is proposed is counted over the whole table.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations

import pyarrow as pa

from agent.kinds import EMPTY, FILLED, Kinds, writable
from agent.kinds_where import source_condition
from agent.lexicon import column_meaning, nearness, table_meaning, table_nearness
from agent.meanings import table_meanings
from agent.profile import ColumnProfile
from agent.structure import Relation, Role, Structure
from agent.survey import Survey
from connectors.protocols import Kind, Source

MOST_KINDS = 12  # values of a column that may tell kinds apart
LEAST_ROWS = 8  # in the table
_LEAST_GROUP = 4  # rows of a kind before what they fill says anything
_TELLING = 2  # columns that a target wants and one kind alone fills, before fill alone is a sign
_NAMES = 0.9  # how near a value lies to a table's name to name it
_OPPOSITE = {"organisation": "person", "person": "organisation"}
_UNTELLING = {"deleted", "deleted_at", "active", "status", "stage", "opt_in", "opt_out", "do_not_call", "consent"}
_COMMON = {"created_at", "modified_at", "created_by", "modified_by", "owner", "deleted", "id", "description", "name"}


@dataclass(frozen=True)
class Apart:
    """How a table's rows may be told apart. `sure`: the values name the tables and what is filled agrees, over all rows.
    `rows` counts them by value, over the whole table."""

    kinds: Kinds
    sure: bool
    weight: float
    rows: dict[str, int]
    evidence: dict[str, object] = field(default_factory=dict)


def find_kinds(
    source: Source, found: Survey, structure: Structure, likely: Mapping[str, Sequence[str]]
) -> dict[str, tuple[Apart, ...]]:
    """For each table that seems to hold several kinds the ways to tell them apart, best first; others are left out.
    `likely` names the target tables that a source table's own name speaks for, best first."""
    out: dict[str, tuple[Apart, ...]] = {}
    for name, relation in structure.relations.items():
        table = found.tables[name]
        if structure.roles[name] is Role.ENTITY and table.rows >= LEAST_ROWS:
            ways = _Table(source, found, relation, tuple(likely.get(name, ()))).ways()
            if ways:
                out[name] = ways
    return out


@dataclass(frozen=True)
class _Groups:
    """The rows of a sample by what one column says: bit sets of row numbers."""

    column: str
    by_value: dict[str, int]


class _Table:
    def __init__(self, source: Source, found: Survey, relation: Relation, likely: tuple[str, ...]) -> None:
        self._source, self._found, self._likely = source, found, likely
        self._profile = found.tables[relation.main]
        sample = found.samples[relation.main]
        self._size = sample.num_rows
        self._values = {c: _texts(sample, c) for c in self._profile.columns}
        self._filled = {c: _bits(v is not None for v in values) for c, values in self._values.items()}
        self._wanted = self._wants()
        pointing = {r.column for r in relation.references} | {r.selector for r in relation.references}
        self._untelling = pointing | set(self._profile.key)

    def ways(self) -> tuple[Apart, ...]:
        """All ways that stand up to a count over the whole table, best first, at most six."""
        ways = [way for column in self._telling() if (groups := self._by_value(column)) for way in self._judged(groups)]
        if not any(w.weight >= 0.6 for w in ways):
            ways += self._by_fill()
        ways.sort(key=lambda w: (-w.weight, w.kinds.text))
        return tuple(counted for way in ways[:6] if (counted := self._counted(way)) is not None)

    # -- what the targets want --------------------------------------------------------------------

    def _wants(self) -> dict[str, dict[str, frozenset[str]]]:
        """For each target table, by source column, the telling columns of the target that it may fill."""
        out: dict[str, dict[str, frozenset[str]]] = {}
        said = {c: column_meaning(c, self._profile.name) for c in self._profile.columns}
        for target in self._found.target.tables.values():
            pointing = {c for f in target.foreign_keys for c in f.columns} | set(target.primary_key)
            wanted = {
                c.name: m
                for c in target.columns
                if not c.generated
                and c.name not in pointing
                and not (m := column_meaning(c.name, target.name)).core <= _COMMON
            }
            found: dict[str, set[str]] = defaultdict(set)
            for column, meaning in said.items():
                for name, m in wanted.items():
                    near = nearness(meaning, m)
                    if near.score >= 0.6 and not near.conflict:
                        found[column].add(name)
            out[target.name] = {c: frozenset(names) for c, names in found.items()}
        return out

    def _covered(self, columns: set[str], target: str) -> frozenset[str]:
        return frozenset().union(*(self._wanted[target].get(c, frozenset()) for c in columns))

    def _suits(self, target: str) -> float:
        """The share of a target's telling columns that this table has something for."""
        table = self._found.target.tables[target]
        meanings = table_meanings(table)
        pointing = {c for f in table.foreign_keys for c in f.columns} | set(table.primary_key)
        telling = [c for c, m in meanings.items() if c not in pointing and not m.core <= _COMMON]
        return len(self._covered(set(self._values), target)) / len(telling) if telling else 0.0

    # -- groups of rows ---------------------------------------------------------------------------

    def _telling(self) -> list[str]:
        """Columns that may say what kind of record a row is."""
        return [c for c, p in self._profile.columns.items() if c not in self._untelling and _may_tell(c, p)]

    def _by_value(self, column: str) -> _Groups | None:
        """The rows by value; None where there are none to tell apart, or a value can't be written in an answer."""
        spelled: dict[str, Counter[str]] = defaultdict(Counter)
        rows: dict[str, list[int]] = defaultdict(list)
        for index, value in enumerate(self._values[column]):
            spelled[(value or "").casefold()][value or ""] += 1
            rows[(value or "").casefold()].append(index)
        if not 2 <= len(rows) <= MOST_KINDS or not all(writable(v) for most in spelled.values() for v in most):
            return None
        named = {folded: most.most_common(1)[0][0] or EMPTY for folded, most in spelled.items()}
        return _Groups(column, {named[folded]: sum(1 << i for i in indexes) for folded, indexes in rows.items()})

    def _only(self, one: int, other: int) -> tuple[set[str], set[str]]:
        """The columns that hardly any but the one's rows fill, and those that both do."""
        alone, both = set(), set()
        for column, bits in self._filled.items():
            here, there = (bits & one).bit_count() / one.bit_count(), (bits & other).bit_count() / other.bit_count()
            if here >= 0.15 and there <= 0.1 * here:
                alone.add(column)
            elif here > 0.02 and there > 0.02:
                both.add(column)
        return alone, both

    def _contrast(self, one: int, other: int) -> dict[str, int]:
        """By target, how many of its columns the one's rows alone can fill, less those that the other's alone can."""
        mine, both = self._only(one, other)
        theirs, _ = self._only(other, one)
        out = {}
        for target in self._wanted:
            shared = self._covered(both, target)
            out[target] = len(self._covered(mine, target) - shared) - len(self._covered(theirs, target) - shared)
        return out

    # -- by value ---------------------------------------------------------------------------------

    def _judged(self, groups: _Groups) -> list[Apart]:
        """What the values of a column say, by their names and by what is filled."""
        named = self._named(groups)
        if len({t for t in named.values() if t}) >= 2:
            return self._by_name(groups, named)
        return self._by_contrast(groups, named)

    def _named(self, groups: _Groups) -> dict[str, str]:
        """The target table that a value names; of a flag (`is_company`), that its column does."""
        values = [v for v in groups.by_value if v != EMPTY]
        yes = [v for v in values if v.casefold() in _YES]
        if not yes or len(groups.by_value) > 2 or any(v.casefold() not in _YES | _NO for v in values):
            return {v: t for v in values if (t := self._called(v))}
        target = self._called(groups.column)
        out = {yes[0]: target} if target else {}
        opposite = next((_OPPOSITE[w] for w in column_meaning(groups.column).core if w in _OPPOSITE), "")
        other = self._called(opposite) if target and opposite else ""
        return out | ({v: other for v in groups.by_value if v != yes[0]} if other and other != target else {})

    def _called(self, name: str) -> str:
        """The one target table that a name is nearest to, or empty."""
        near = sorted(((table_nearness(name, t), self._fits(t), t) for t in self._wanted), reverse=True)
        if not near or near[0][0] < _NAMES or not table_meaning(name).core:
            return ""
        return near[0][2] if len(near) < 2 or near[1][:2] < near[0][:2] else ""

    def _fits(self, target: str) -> int:
        return len(self._covered(set(self._values), target))

    def _by_name(self, groups: _Groups, named: dict[str, str]) -> list[Apart]:
        """Values that name at least two tables: sure where each value does and what is filled agrees."""
        agrees, against = False, False
        for a, b in combinations([v for v in named if groups.by_value[v].bit_count() >= _LEAST_GROUP], 2):
            if named[a] == named[b]:
                continue
            contrast = self._contrast(groups.by_value[a], groups.by_value[b])
            agrees |= contrast[named[a]] > 0 or contrast[named[b]] < 0
            against |= contrast[named[a]] < 0 or contrast[named[b]] > 0
        if not agrees and any(self._suits(t) < 0.4 for t in named.values()):
            return []  # it names tables, but these rows have nothing for them: a parent's kind, say
        rows = sum(groups.by_value[v].bit_count() for v in named)
        if rows < 0.5 * self._size:
            return []
        kinds = Kinds(groups.column, tuple((v, named.get(v)) for v in groups.by_value))
        sure = agrees and not against and len(named) == len(groups.by_value)
        evidence: dict[str, object] = {
            "values_name_tables": True,
            "what_is_filled": "agrees"
            if agrees and not against
            else "says nothing"
            if not against
            else "speaks against it",
        }
        return [Apart(kinds, sure, 0.97 if sure else 0.7 if agrees else 0.5, {}, evidence)]

    def _by_contrast(self, groups: _Groups, named: Mapping[str, str], alone: bool = False) -> list[Apart]:
        """Values that name no tables, and rows that fill different columns with them."""
        known = [v for v in groups.by_value if groups.by_value[v].bit_count() >= _LEAST_GROUP]
        best: tuple[int, list[tuple[str, str, str, str]]] = (0, [])
        for a, b in combinations(known, 2):
            contrast = self._contrast(groups.by_value[a], groups.by_value[b])
            ones = self._ranked(contrast, 1, named.get(a, ""))
            others = self._ranked(contrast, -1, named.get(b, ""))
            pairs = [(a, s, b, t) for s in ones[:2] for t in others[:2] if s != t]
            strength = contrast[ones[0]] - contrast[others[0]] if pairs else 0
            if pairs and strength > best[0]:
                best = (strength, pairs)
        out = []
        for place, (a, one, b, other) in enumerate(best[1][:3]):
            places: dict[str, str | None] = {a: one, b: other}
            for value, rows in groups.by_value.items():
                if value not in places and rows.bit_count() >= _LEAST_GROUP:
                    places[value] = self._nearer(rows, groups, a, one, b, other)
            kinds = Kinds(groups.column, tuple((v, places.get(v)) for v in groups.by_value))
            weight = (0.75 if not alone else 0.6) if place == 0 else 0.3
            evidence: dict[str, object] = {"values_name_tables": False, "columns_that_only_one_kind_fills": best[0]}
            out.append(Apart(kinds, False, weight, {}, evidence))
        return out

    def _ranked(self, contrast: Mapping[str, int], sign: int, named: str) -> list[str]:
        """The targets that one side's own columns speak for: the one that is named, or those with enough of them."""
        if named:
            return [named] if contrast[named] * sign > 0 else []
        enough = [t for t, n in contrast.items() if n * sign >= _TELLING]
        return sorted(enough, key=lambda t: (-contrast[t] * sign, t not in self._likely, -self._suits(t), t))

    def _nearer(self, rows: int, groups: _Groups, a: str, one: str, b: str, other: str) -> str | None:
        """Which of two kinds other rows are like, or None."""
        mine = {t: len(self._covered(self._only(rows, groups.by_value[v])[1], t)) for v, t in ((b, one), (a, other))}
        return one if mine[one] > mine[other] else other if mine[other] > mine[one] else None

    def _by_fill(self) -> list[Apart]:
        """No column says it, but one that some rows fill goes with others."""
        out = []
        everything = (1 << self._size) - 1
        for column, bits in self._filled.items():
            share = bits.bit_count() / self._size if self._size else 0.0
            if (
                0.1 <= share <= 0.9
                and column not in self._untelling
                and any(self._wanted[t].get(column) for t in self._wanted)
            ):
                groups = _Groups(column, {FILLED: bits, EMPTY: everything & ~bits})
                out += self._by_contrast(groups, {}, alone=True)
        out.sort(key=lambda w: -int(str(w.evidence["columns_that_only_one_kind_fills"])) - w.weight)
        return out[:2]

    # -- over the whole table ---------------------------------------------------------------------

    def _counted(self, way: Apart) -> Apart | None:
        """The rows of each kind as the server counts them, in one query; None where its kinds aren't there."""
        kinds, source = way.kinds, self._source
        column = self._profile.columns[kinds.column].column
        tests = [
            source_condition(Kinds(kinds.column, tuple((v, "it" if v == value else None) for v, _ in kinds.places)), "it", column.kind, source.dialect, source.quote)
            for value, _ in kinds.places
        ]  # fmt: skip
        table = ".".join(source.quote(p) for p in self._profile.name.split("."))
        sums = ", ".join(f"SUM(CASE WHEN {test} THEN 1 ELSE 0 END)" for test in tests)
        row = source.query(f"SELECT COUNT(*), {sums} FROM {table} m")[0]
        total, *counts = (int(str(n or 0)) for n in row)
        rows = dict(zip((v for v, _ in kinds.places), counts, strict=True))
        if len({t for v, t in kinds.places if rows[v]}) < 2 and all(t for _, t in kinds.places):
            return None
        others = total - sum(counts)  # values that the sample didn't show
        if others and FILLED not in rows:
            kinds = Kinds(kinds.column, (*kinds.places, (FILLED, None)))
            rows[FILLED] = others
        evidence = {**way.evidence, "rows": rows}
        return Apart(kinds, way.sure and not others, 0.7 if others and way.sure else way.weight, rows, evidence)


_YES = frozenset("1 -1 true t yes y ja oui si sí sim tak".split())  # noqa: SIM905
_NO = frozenset("0 false f no n nein non nie".split())  # noqa: SIM905


def _may_tell(column: str, profile: ColumnProfile) -> bool:
    """True for a column of few values that come again and again, and that is no mark of a record's state."""
    if profile.column.kind not in (Kind.TEXT, Kind.INTEGER, Kind.BOOLEAN, Kind.ENUM, Kind.DECIMAL, Kind.OTHER):
        return False
    if column_meaning(column).core & _UNTELLING or profile.trait("date") > 0.5 or profile.longest > 60:
        return False
    groups = profile.distinct + bool(profile.nulls + profile.blanks)
    return (
        profile.distinct > 0
        and groups >= 2
        and profile.distinct <= 2 * MOST_KINDS
        and profile.filled >= 2 * profile.distinct
    )


def _texts(sample: pa.Table, column: str) -> list[str | None]:
    """A column of the sample stripped, blank as None; bytes count as filled alone."""
    values = sample.column(column)
    if pa.types.is_binary(values.type) or pa.types.is_large_binary(values.type):
        return [None if v is None else "bytes" for v in values.to_pylist()]
    return [text if v is not None and (text := str(v).strip()) else None for v in values.to_pylist()]


def _bits(flags: object) -> int:
    """A bit set of the rows for which a flag holds."""
    return int("".join("1" if f else "0" for f in reversed(list(flags))) or "0", 2)  # type: ignore[call-overload]
