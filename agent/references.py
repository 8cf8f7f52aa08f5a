"""Which columns point at which tables: declared, or found by looking whether their values are keys there.

Polymorphic parents are found too: a column whose values are keys of several tables, told apart by another
column that names the table. Each look-up is one small query on a key; their number is bounded.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from os.path import commonprefix

import pyarrow as pa

from agent.lexicon import column_meaning, nearness, table_meaning, table_nearness, words
from agent.profile import ColumnProfile, Reference, TableProfile
from connectors.protocols import Kind, Source, Table

PROBE = 40  # values that are looked up a column and table
ENOUGH = 0.6  # share found from which a column is held to point at a table
_MAX_LOOKUPS = 400  # a table


def find_references(
    source: Source, table: Table, tables: dict[str, TableProfile], samples: dict[str, pa.Table]
) -> tuple[Reference, ...]:
    """The references of one table, declared ones first."""
    found: list[Reference] = []
    for foreign in table.foreign_keys:
        if len(foreign.columns) == 1 and foreign.referred_table in tables:
            found.append(Reference(foreign.columns[0], foreign.referred_table, foreign.referred_columns[0], 1.0, "declared"))
    declared = {r.column for r in found}
    lookups = _Lookups(source, tables)
    for name, profile in tables[table.name].columns.items():
        if name in declared or not _may_point(table.name, profile, tables[table.name]):
            continue
        values = [v for v, _ in profile.top[:PROBE]]
        best = _best(lookups, table.name, profile, values, tables)
        if best is not None:
            found.append(best)
            if best.share >= 0.9:
                continue
        many = _polymorphic(lookups, table.name, profile, tables, samples[table.name])
        if many:
            found = [r for r in found if r.column != name] + many
    return tuple(found)


class _Lookups:
    """Counts how many values are keys of a table; asks the source at most `_MAX_LOOKUPS` times."""

    def __init__(self, source: Source, tables: dict[str, TableProfile]) -> None:
        self._source, self._tables, self._left = source, tables, _MAX_LOOKUPS

    def share(self, values: Sequence[str], table: str) -> float:
        """The share of the distinct values that are keys of `table`; 0 where it has no single key."""
        profile = self._tables[table]
        if len(profile.key) != 1 or not profile.rows or not values:
            return 0.0
        key = profile.columns[profile.key[0]]
        if key.column.kind is Kind.INTEGER:
            values = [v for v in values if v.lstrip("-").isdigit()]
        elif key.column.kind is Kind.BINARY:
            return 0.0
        elif key.trait("uuid") > 0.8:
            values = [v for v in values if len(v) in (32, 36)]
        if not values:
            return 0.0
        if self._left <= 0:
            return 0.0
        self._left -= 1
        marks = ", ".join(["%s"] * len(values))
        relation = ".".join(self._source.quote(p) for p in table.split("."))
        sql = f"SELECT COUNT(*) FROM {relation} WHERE {self._source.quote(profile.key[0])} IN ({marks})"
        (count,) = self._source.query(sql, list(values))[0]
        return min(1.0, int(str(count)) / len(values))


def _may_point(table: str, profile: ColumnProfile, own: TableProfile) -> bool:
    if profile.column.kind not in (Kind.TEXT, Kind.INTEGER, Kind.UUID) or profile.filled == 0:
        return False
    if own.key == (profile.column.name,):
        return not _plain_key(profile.column.name)
    if profile.trait("uuid") > 0.5:
        return True
    written = words(profile.column.name)
    meaning = column_meaning(profile.column.name)
    roles = {"owner", "created_by", "modified_by", "reports_to", "parent"}
    return "id" in meaning.faint or (bool(written) and written[-1] in ("id", "ref", "fk", "nr", "key")) or bool(meaning.core & roles)


def _plain_key(column: str) -> bool:
    """`id` is a table's own; `id_c` or `contact_id` as a key may point at the table that it adds to."""
    return column.casefold() in _ANY_KEY


def _best(
    lookups: _Lookups, table: str, profile: ColumnProfile, values: list[str], tables: dict[str, TableProfile]
) -> Reference | None:
    """The table that holds most of the values. Serial numbers are keys everywhere: there the name must agree."""
    if tables[table].key == (profile.column.name,):  # a key of its own: only a side table's points elsewhere
        named = {name: 1.0 if _same_stem(table, name, tables) else 0.0 for name in tables if name != table}
    else:
        named = {name: _named(profile.column.name, name, tables[name].key) for name in tables}
    telling = profile.trait("uuid") > 0.5 or (profile.column.kind is Kind.TEXT and profile.shortest >= 8)
    order = sorted(named, key=lambda n: (-named[n], n))
    best: Reference | None = None
    for name in order:
        if name == table and profile.unique:
            continue
        if not telling and named[name] < 0.6:
            break
        share = lookups.share(values, name)
        if share >= ENOUGH and (best is None or share > best.share + 0.2):
            best = Reference(profile.column.name, name, tables[name].key[0], share, "inclusion")
        if best is not None and best.share >= 0.9:
            break
    return best


def _same_stem(a: str, b: str, tables: dict[str, TableProfile]) -> bool:
    """True where two tables are named after the same thing (`contactdetails`, `contactaddress`), beyond the
    prefix that all tables share."""
    shared = len(commonprefix(list(tables))) if len(tables) > 2 else 0
    return len(commonprefix([a[shared:].lower(), b[shared:].lower()])) >= 5


_ANY_KEY = ("id", "uuid", "guid", "oid", "key", "nr", "no")


def _named(column: str, table: str, key: tuple[str, ...]) -> float:
    if len(key) == 1 and key[0].casefold() == column.casefold() and column.casefold() not in _ANY_KEY:
        return 1.0  # named as the key there is
    meaning = column_meaning(column)
    near = nearness(meaning, table_meaning(table)).score
    if meaning.core & {"owner", "created_by", "modified_by", "reports_to"}:
        near = max(near, 0.8 * table_nearness("users", table))
    return max(near, table_nearness(" ".join(sorted(meaning.core)), table))


def _polymorphic(
    lookups: _Lookups, table: str, profile: ColumnProfile, tables: dict[str, TableProfile], sample: pa.Table
) -> list[Reference]:
    """One reference a table that the selector's values name, where the ids are keys there."""
    if profile.trait("uuid") < 0.5 and "id" not in column_meaning(profile.column.name).faint:
        return []
    best: list[Reference] = []
    for selector in tables[table].columns.values():
        if not 1 < selector.distinct <= 60 or selector.trait("letters") < 0.9 or selector.column.name == profile.column.name:
            continue
        values = [v for v, _ in selector.top]
        meant = {v: max(tables, key=lambda n: (_same(v, n), -len(n))) for v in values}
        if sum(_same(v, t) >= 0.6 for v, t in meant.items()) < max(1, len(values) / 2):
            continue
        ids: dict[str, set[str]] = defaultdict(set)
        columns = (sample.column(selector.column.name), sample.column(profile.column.name))
        for kind, value in zip(columns[0].to_pylist(), columns[1].to_pylist(), strict=True):
            if kind and value and len(ids[str(kind).strip()]) < PROBE:
                ids[str(kind).strip()].add(str(value))
        found = []
        for kind, table_name in meant.items():
            share = lookups.share(sorted(ids.get(kind, ())), table_name) if _same(kind, table_name) >= 0.6 else 0.0
            if share >= ENOUGH:
                found.append(
                    Reference(
                        profile.column.name, table_name, tables[table_name].key[0], share, "inclusion",
                        selector.column.name, kind,
                    )
                )  # fmt: skip
        if len(found) > len(best):
            best = found
    return best


def _same(value: str, table: str) -> float:
    """How surely a selector's value (`Accounts`, `lead`) names the table."""
    left, right = words(value), words(table.split(".")[-1])
    if left == right or [w.rstrip("s") for w in left] == [w.rstrip("s") for w in right]:
        return 1.0
    return table_nearness(value, table) * 0.95
