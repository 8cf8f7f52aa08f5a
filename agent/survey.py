"""The survey: what both systems hold, found with few and bounded queries at the source.

Counts come from the server in SQL, values from a bounded sample of pages; a table of ten million rows costs
about what one of ten thousand does. It must never write, and never put record values in the log.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field, replace

import pyarrow as pa

from agent.profile import ColumnProfile, TableProfile, profile_values, with_habits
from agent.references import find_references
from connectors.protocols import Catalogue, Column, Kind, Source, Table
from workspace.errors import CatalogueError
from workspace.events import TableProfiled
from workspace.log import Workspace

EXACT_ROWS = 50_000  # up to here the server counts over the whole table
SAMPLE_ROWS = 8_000  # values that are looked at, in slices over the key's range
_SLICES = 4
_ORDERED = {Kind.INTEGER, Kind.DECIMAL, Kind.FLOAT, Kind.DATE, Kind.DATETIME, Kind.INSTANT, Kind.TIME}


@dataclass(frozen=True)
class Survey:
    """What was found: the source's catalogue, a profile and a sample a table, and the target's catalogue.

    The samples hold record values: they stay in memory."""

    source: Catalogue
    target: Catalogue
    tables: dict[str, TableProfile]
    samples: dict[str, pa.Table] = field(repr=False, default_factory=dict)


def survey(
    source: Source,
    target: Catalogue,
    workspace: Workspace,
    progress: Callable[[str, int, int], None] = lambda table, done, total: None,
) -> Survey:
    """Profiles every table of the source and records each in the log. Raises CatalogueError where it holds none."""
    catalogue = source.catalogue()
    # A view shows rows of tables that are carried over themselves.
    catalogue = replace(catalogue, tables={n: t for n, t in catalogue.tables.items() if not t.view})
    target = replace(target, tables={n: t for n, t in target.tables.items() if not t.view})
    if not catalogue.tables:
        raise CatalogueError("the source holds no tables", where=source.dsn, advice="name another database in the DSN")
    tables: dict[str, TableProfile] = {}
    samples: dict[str, pa.Table] = {}
    for done, (name, table) in enumerate(sorted(catalogue.tables.items())):
        progress(name, done, len(catalogue.tables))
        tables[name], samples[name] = profile_table(source, table)
    if not any(t.rows for t in tables.values()):
        raise CatalogueError(
            "every table of the source is empty", where=source.dsn, advice="is this the right database?"
        )
    tables = with_habits(tables)
    for name in tables:
        found = find_references(source, catalogue.tables[name], tables, samples)
        tables[name] = replace(tables[name], references=found)
        workspace.record(TableProfiled(side="source", table=name, profile=tables[name].facts()))
    for name, table in sorted(target.tables.items()):
        workspace.record(TableProfiled(side="target", table=name, profile=_catalogue_facts(table)))
    return Survey(catalogue, target, tables, samples)


def profile_table(source: Source, table: Table) -> tuple[TableProfile, pa.Table]:
    """The profile of one table and the sample it rests on."""
    rows = source.count(table.name)
    exact = rows <= EXACT_ROWS
    counts = _counts(source, table) if exact and rows else {}
    sample = (
        _sample(source, table, rows) if rows else pa.table({c.name: pa.array([], pa.string()) for c in table.columns})
    )
    columns = {}
    for column in table.columns:
        values = _texts(sample, column.name)
        columns[column.name] = _profile(column, values, counts.get(column.name), rows if exact else len(values))
    key, known_by = _key(source, table, columns, rows)
    return TableProfile(table.name, rows, not exact, columns, key, known_by), sample


def profile_part(table: TableProfile, sample: pa.Table, whole: bool) -> TableProfile:
    """The profile of some of a table's rows, from a sample of theirs; `whole`: the sample has all of them."""
    columns = {}
    for name, known in table.columns.items():
        profile = _profile(known.column, _texts(sample, name), None, sample.num_rows)
        columns[name] = replace(profile, undo=known.undo, capped=not whole)
    return replace(table, rows=sample.num_rows, sampled=not whole, columns=columns)


@dataclass(frozen=True)
class _Counts:
    filled: int
    blanks: int
    distinct: int
    minimum: str
    maximum: str


def _counts(source: Source, table: Table) -> dict[str, _Counts]:
    """Counts by the server, twelve columns a query."""
    text = "CHAR" if source.dialect == "mysql" else "TEXT"
    out: dict[str, _Counts] = {}
    usable = [c for c in table.columns if c.kind not in (Kind.BINARY, Kind.JSON, Kind.OTHER, Kind.ARRAY)]
    for start in range(0, len(usable), 12):
        group = usable[start : start + 12]
        parts = []
        for column in group:
            q = source.quote(column.name)
            ordered = column.kind in _ORDERED
            blank = f"SUM(CASE WHEN TRIM({q}) = '' THEN 1 ELSE 0 END)" if column.kind is Kind.TEXT else "0"
            low = f"CAST(MIN({q}) AS {text})" if ordered else "NULL"
            high = f"CAST(MAX({q}) AS {text})" if ordered else "NULL"
            parts.append(f"COUNT({q}), {blank}, COUNT(DISTINCT {q}), {low}, {high}")
        row = source.query(f"SELECT {', '.join(parts)} FROM {_relation(source, table.name)}")[0]
        for index, column in enumerate(group):
            filled, blanks, distinct, least, most = row[5 * index : 5 * index + 5]
            out[column.name] = _Counts(_int(filled), _int(blanks), _int(distinct), _text(least), _text(most))
    return out


def _profile(column: Column, values: list[str | None], counts: _Counts | None, rows: int) -> ColumnProfile:
    if counts is not None:
        return profile_values(
            column, values, rows=rows, nulls=max(0, rows - counts.filled), blanks=counts.blanks, distinct=counts.distinct,
            capped=False, minimum=counts.minimum, maximum=counts.maximum,
        )  # fmt: skip
    nulls = sum(v is None for v in values)
    blanks = sum(v is not None and not v.strip() for v in values)
    distinct = len({v for v in values if v is not None})
    known = [v for v in values if v]
    ordered = column.kind in _ORDERED and bool(known)
    return profile_values(
        column, values, rows=len(values), nulls=nulls, blanks=blanks, distinct=distinct, capped=True,
        minimum=min(known) if ordered else "", maximum=max(known) if ordered else "",
    )  # fmt: skip


def _sample(source: Source, table: Table, rows: int) -> pa.Table:
    """Rows as text, from several places of the key's range where the table is large."""
    relation = _relation(source, table.name)
    key = list(table.primary_key) if len(table.primary_key) == 1 else []
    if rows <= SAMPLE_ROWS or not key:
        return _read(source, f"SELECT * FROM {relation} LIMIT {SAMPLE_ROWS}", table)
    quoted = source.quote(key[0])
    slices = []
    for start in _starts(source, table, key[0]):
        where = f" WHERE {quoted} >= {start}" if start else ""
        sql = f"SELECT * FROM {relation}{where} ORDER BY {quoted} LIMIT {SAMPLE_ROWS // _SLICES}"
        slices.append(_read(source, sql, table))
    whole = pa.concat_tables(slices)
    return whole if whole.num_rows else _read(source, f"SELECT * FROM {relation} LIMIT {SAMPLE_ROWS}", table)


def _starts(source: Source, table: Table, key: str) -> list[str]:
    """Literals of our own making at which the slices begin: quantiles of integers, leading digits of text."""
    column = table.column(key)
    if column is not None and column.kind is Kind.INTEGER:
        quoted = source.quote(key)
        low, high = source.query(f"SELECT MIN({quoted}), MAX({quoted}) FROM {_relation(source, table.name)}")[0]
        first, last = _int(low), _int(high)
        return ["", *(str(first + (last - first) * i // _SLICES) for i in range(1, _SLICES))]
    if column is not None and column.kind is Kind.TEXT:
        return ["", "'4'", "'8'", "'c'"]
    return [""]


def _read(source: Source, sql: str, table: Table) -> pa.Table:
    tables = []
    pages = source.pages(sql, (), after=None, size=SAMPLE_ROWS)
    with closing(pages) if hasattr(pages, "close") else _nothing():  # type: ignore[type-var]
        for page in pages:
            tables.append(page.rows)
    if tables:
        return pa.concat_tables(tables)
    return pa.table({c.name: pa.array([], pa.string()) for c in table.columns})


class _nothing:
    def __enter__(self) -> None:
        return None

    def __exit__(self, *_: object) -> None:
        return None


def _texts(sample: pa.Table, column: str) -> list[str | None]:
    if column not in sample.column_names:
        return []
    values = sample.column(column)
    if pa.types.is_binary(values.type) or pa.types.is_large_binary(values.type):
        return [None if v is None else "" for v in values.to_pylist()]
    return [None if v is None else str(v) for v in values.to_pylist()]


def _key(source: Source, table: Table, columns: dict[str, ColumnProfile], rows: int) -> tuple[tuple[str, ...], str]:
    """The key the catalogue declares, else the first column that is unique and never empty."""
    if table.primary_key:
        return tuple(table.primary_key), "declared"
    for unique in table.unique_keys:
        if unique.where is None and unique.columns and all(not _nullable(table, c) for c in unique.columns):
            return tuple(unique.columns), "declared"
    likely = sorted(
        columns.values(), key=lambda c: ("id" not in c.column.name.lower(), list(columns).index(c.column.name))
    )
    for profile in likely:
        keyed = profile.column.kind in (Kind.TEXT, Kind.INTEGER, Kind.UUID)
        if not keyed or not profile.distinct == profile.filled == profile.rows > 1:
            continue
        if not profile.capped or _unique_at_source(source, table.name, profile.column.name, rows):
            return (profile.column.name,), "unique"
    return (), ""


def _unique_at_source(source: Source, table: str, column: str, rows: int) -> bool:
    (found,) = source.query(f"SELECT COUNT(DISTINCT {source.quote(column)}) FROM {_relation(source, table)}")[0]
    return _int(found) == rows


def _nullable(table: Table, name: str) -> bool:
    column = table.column(name)
    return column is None or column.nullable


def _relation(source: Source, table: str) -> str:
    """A table's name quoted; a qualified one part by part."""
    return ".".join(source.quote(part) for part in table.split("."))


def _catalogue_facts(table: Table) -> dict[str, object]:
    return {
        "columns": {
            c.name: {"type": c.type, "nullable": c.nullable, "default": c.has_default, "labels": list(c.labels)}
            for c in table.columns
        },
        "key": list(table.primary_key),
        "references": [{"columns": list(f.columns), "table": f.referred_table} for f in table.foreign_keys],
        "unique": [list(u.expressions) for u in table.unique_keys],
    }


def _int(value: object) -> int:
    return int(str(value)) if value is not None and str(value) else 0


def _text(value: object) -> str:
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return "" if value is None else str(value)


def likeness(sample: pa.Table) -> Callable[[str, str], float]:
    """Tells the share of a sample's rows in which two columns hold the same text, of those where either has one."""
    columns: dict[str, list[str]] = {}

    def texts(column: str) -> list[str]:
        if column not in columns:
            columns[column] = ["" if v is None else v.strip().casefold() for v in _texts(sample, column)]
        return columns[column]

    def alike(a: str, b: str) -> float:
        pairs = [(x, y) for x, y in zip(texts(a), texts(b), strict=False) if x or y]
        return sum(x == y for x, y in pairs) / len(pairs) if pairs else 0.0

    return alike
