"""Which columns point at which tables: declared, or found by looking whether their values are keys there.

Polymorphic parents are found too: a column whose values are keys of several tables, told apart by another
column that names the table. Each look-up is one small query on a key; their number is bounded.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from functools import lru_cache

import pyarrow as pa

from agent.kinds import writable
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
            found.append(
                Reference(foreign.columns[0], foreign.referred_table, foreign.referred_columns[0], 1.0, "declared")
            )
    declared = {r.column for r in found}
    lookups = _Lookups(source, tables)
    selectors = _selectors(tables[table.name], tables)
    for name, profile in tables[table.name].columns.items():
        if name in declared or not _may_point(table.name, profile, tables[table.name]):
            continue
        many = _polymorphic(lookups, profile, selectors, tables, samples[table.name])
        if len(many) > 1:
            found += many
            continue
        best = _best(lookups, table.name, profile, _probe(samples[table.name], name), tables)
        if best is not None:
            found.append(best)
    return tuple(found)


def references_by_name(
    source: Source,
    own: TableProfile,
    tables: dict[str, TableProfile],
    sample: pa.Table,
    table: str,
    called: Sequence[str],
) -> tuple[Reference, ...]:
    """References to a table from columns that are named after what some of its rows are `called` (`company_id`, of a
    table `partners`); in the table itself, also its rows' parent."""
    lookups, known, found = _Lookups(source, tables), {r.column for r in own.references}, []
    for name, profile in own.columns.items():
        if name in known or not _may_point(own.name, profile, own):
            continue
        parent = own.name == table and "parent" in column_meaning(name).core
        if parent or max(_named(name, each, ()) for each in called) >= ENOUGH:
            share = lookups.share(_probe(sample, name), table)
            if share >= ENOUGH:
                found.append(Reference(name, table, tables[table].key[0], share, "inclusion"))
    return tuple(found)


def _probe(sample: pa.Table, column: str) -> list[str]:
    """Distinct values to look up, from all over the sample; the commonest alone would tell of one kind only."""
    values = sorted({str(v).strip() for v in sample.column(column).to_pylist() if v is not None and str(v).strip()})
    step = max(1, len(values) // PROBE)
    return values[::step][:PROBE]


class _Lookups:
    """Counts how many values are keys of a table; asks the source at most `_MAX_LOOKUPS` times."""

    def __init__(self, source: Source, tables: dict[str, TableProfile]) -> None:
        self._source, self._tables, self._left = source, tables, _MAX_LOOKUPS

    def share(self, values: Sequence[str], table: str) -> float:
        """The share of the distinct values that are keys of `table`; 0 where it has no single key."""
        looked_for = len(values)
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
        return min(1.0, int(str(count)) / looked_for)


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
    return (
        "id" in meaning.faint
        or (bool(written) and written[-1] in ("id", "ref", "fk", "nr", "key"))
        or bool(meaning.core & roles)
    )


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
    names = [n.casefold() for n in tables]
    shared = _prefix(min(names), max(names)) if len(names) > 2 else 0
    return _prefix(a.casefold()[shared:], b.casefold()[shared:]) >= 5


def _prefix(a: str, b: str) -> int:
    """How many letters two names begin with in common."""
    return next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))


_ANY_KEY = ("id", "uuid", "guid", "oid", "key", "nr", "no")


def _named(column: str, table: str, key: tuple[str, ...]) -> float:
    if len(key) == 1 and key[0].casefold() == column.casefold() and column.casefold() not in _ANY_KEY:
        return 1.0  # named as the key there is
    meaning = column_meaning(column)
    near = nearness(meaning, table_meaning(table)).score
    if meaning.core & {"owner", "created_by", "modified_by", "reports_to"}:
        near = max(near, 0.8 * table_nearness("users", table))
    return max(near, table_nearness(" ".join(sorted(meaning.core)), table))


def _selectors(table: TableProfile, tables: dict[str, TableProfile]) -> dict[str, dict[str, str]]:
    """The columns whose values name tables (`parent_type`), each value with the table that it names."""
    out: dict[str, dict[str, str]] = {}
    for selector in table.columns.values():
        if not 1 < selector.distinct <= 40 or selector.trait("letters") < 0.9 or selector.longest > 60:
            continue
        meant = {}
        for value, _ in selector.top:
            if not writable(value):  # it will stand in the source's SQL, and MySQL reads a backslash as an escape
                continue
            best = max(tables, key=lambda name: (_same(value, name), -len(name)))
            if _same(value, best) >= 0.6:
                meant[value] = best
        if len(meant) > 1 and len(meant) >= len(selector.top) / 2:
            out[selector.column.name] = meant
    return out


def _polymorphic(
    lookups: _Lookups, profile: ColumnProfile, selectors: dict[str, dict[str, str]], tables: dict[str, TableProfile],
    sample: pa.Table,
) -> list[Reference]:  # fmt: skip
    """One reference a table that a selector's values name, where the ids are keys there."""
    name = profile.column.name
    if profile.trait("uuid") < 0.5 and "id" not in column_meaning(name).faint:
        return []
    best: list[Reference] = []
    for selector, meant in selectors.items():
        if selector == name:
            continue
        ids: dict[str, set[str]] = defaultdict(set)
        for kind, value in zip(sample.column(selector).to_pylist(), sample.column(name).to_pylist(), strict=True):
            if kind and value and len(ids[str(kind).strip()]) < PROBE:
                ids[str(kind).strip()].add(str(value))
        found = []
        for kind, table in meant.items():
            share = lookups.share(sorted(ids.get(kind, ())), table)
            if share >= ENOUGH:
                found.append(Reference(name, table, tables[table].key[0], share, "inclusion", selector, kind))
        if len(found) > len(best):
            best = found
    return best


@lru_cache(maxsize=100_000)
def _same(value: str, table: str) -> float:
    """How surely a selector's value (`Accounts`, `lead`) names the table."""
    left, right = words(value), words(table.split(".")[-1])
    if left == right or [w.rstrip("s") for w in left] == [w.rstrip("s") for w in right]:
        return 1.0
    return table_nearness(value, table) * 0.95
