"""Rows that the target's unique keys can't hold side by side, found before any of them is loaded.

The row with the lowest source key wins, whatever order batches commit in; the others are quarantined with
the key of the row they collide with. Keys that the target already holds lose to what is there. Parts come in
the order of the source key, so that what is settled of the first ones can be loaded while the last are read.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import sqlglot
from sqlglot import exp

from connectors.protocols import Column, UniqueKey
from connectors.target import Target
from engine.check import CheckedEntity
from engine.loaded import loaded_entity
from engine.query import LOADED, identifier, literal, read_parts
from engine.transform import execute
from workspace.disk import disk_errors

SOURCE_KEY = "source key"
"""The `index` of rows that lost because another row has the same source key."""

_SCHEMA_OF_LOSERS = pa.schema(
    [("_ph_n", pa.int64()), ("index", pa.string()), ("field", pa.string()), ("detail", pa.string())]
)
GRAIN = 50
"""What stood before is this many times what is settled at once in a long table."""
_SOURCE = 255
"""The number of the source key's own check."""


@dataclass(frozen=True)
class Lost:
    """Why a row can't enter: the unique key's name, the fields it is of, and what it collides with."""

    index: str
    field: str
    detail: str


@dataclass(frozen=True)
class Losers:
    """The rows of one part that lost: a Parquet of _ph_n, index, field and detail; how many."""

    path: Path
    count: int


@dataclass(frozen=True)
class Comparison:
    """A unique key as DuckDB compares it over transformed columns: one expression a key part."""

    key: UniqueKey
    parts: tuple[str, ...]
    where: str | None


def comparisons(entity: CheckedEntity) -> list[Comparison]:
    """The unique keys of the target that can be compared before the load. The others (expressions that DuckDB
    can't repeat, columns the plan doesn't fill, deferred columns) are left to the target itself."""
    written = set(entity.written) - {f.column.name for f in entity.deferred}
    if entity.plan.id == "sequence" and entity.id_column is not None:
        written.discard(entity.id_column.name)
    found = []
    for key in entity.target.unique_keys:
        if not set(key.columns) <= written:
            continue
        try:
            parts = tuple(_translated(part, key, entity) for part in key.expressions)
            where = _translated(key.where, key, entity) if key.where else None
        except (ValueError, sqlglot.errors.SqlglotError):
            continue
        found.append(Comparison(key, parts, where))
    return found


def compared_columns(entity: CheckedEntity) -> list[str]:
    """The columns of a transformed part that settling its collisions reads."""
    found = [c for check in comparisons(entity) for c in check.key.columns]
    ids = {entity.id_column.name} if entity.id_column else set()
    return ["_ph_n", "_ph_key", "_ph_outcome", "_ph_id", *(c for c in dict.fromkeys(found) if c not in ids)]


def compared_parts(entity: CheckedEntity, columns: Sequence[str]) -> list[str]:
    """These columns as the target's unique keys compare them: expressions of DuckDB over transformed rows."""
    for check in comparisons(entity):
        if sorted(check.key.columns) == sorted(columns) and not check.where:
            return list(check.parts)
    single = {c.key.columns[0]: c.parts[0] for c in comparisons(entity) if len(c.parts) == len(c.key.columns) == 1}
    plain = {f.column.name: f.column.exact for f in entity.fields}
    return [single.get(c) or (identifier(c) if plain[c] else f"lower({identifier(c)})") for c in columns]


def compared_key(entity: CheckedEntity, columns: Sequence[str]) -> UniqueKey:
    """The same as the target itself compares them: a key on these columns, be there one in the target or not."""
    keys = [check.key for check in comparisons(entity)]
    for key in keys:
        if sorted(key.columns) == sorted(columns) and not key.where:
            return key
    single = {key.columns[0]: key.expressions[0] for key in keys if len(key.expressions) == len(key.columns) == 1}
    return UniqueKey("", tuple(single.get(c, c) for c in columns), tuple(columns))


def all_compared(entity: CheckedEntity) -> bool:
    """True where no row of a batch can be kept out by a unique key for a row of another batch: which of two such
    rows is let in never hangs on the order of their batches. Ids of a sequence don't collide."""
    known = {check.key.name for check in comparisons(entity)}
    columns = [entity.target.column(c) for check in comparisons(entity) for c in check.key.columns]
    own = {entity.id_column.name} if entity.plan.id == "sequence" and entity.id_column else set()
    others = (key for key in entity.target.unique_keys if set(key.columns) != own)
    return all(key.name in known for key in others) and all(c is None or c.exact for c in columns)


_PLAIN = (exp.Lower, exp.Upper, exp.Trim, exp.Coalesce, exp.Concat, exp.DPipe, exp.Paren, exp.Literal, exp.Identifier,
          exp.Column, exp.Is, exp.Not, exp.Null, exp.And, exp.Or, exp.EQ, exp.NEQ, exp.Boolean, exp.Cast, exp.DataType)  # fmt: skip


def _translated(text: str, key: UniqueKey, entity: CheckedEntity) -> str:
    """A PostgreSQL index expression over transformed text columns. ValueError where it can't be repeated."""
    if text in key.columns:
        column = entity.target.column(text)
        return identifier(text) if column is None or column.exact else f"lower({identifier(text)})"
    tree = sqlglot.parse_one(text, read="postgres")
    for node in tree.walk():
        if not isinstance(node, _PLAIN):
            raise ValueError(text)
        if isinstance(node, exp.Cast) and not node.to.is_type("text", "varchar"):
            raise ValueError(text)
        if isinstance(node, exp.Column) and entity.target.column(node.name) is None:
            raise ValueError(text)
    return tree.sql("duckdb", identify=True)


class Settler:
    """Settles an entity's transformed parts, in order from the first, one by one or several at once: it comes to the
    same.

    What stood in the parts before is kept as a hash and a row number a key, in DuckDB, which puts it on disk where it
    is large; a hash that comes again is compared by the keys themselves. Not for use by two threads.
    """

    def __init__(
        self, duck: duckdb.DuckDBPyConnection, entity: CheckedEntity, folder: Path, held: dict[str, Path]
    ) -> None:
        """`held` gives, by index name, a Parquet of keys that the target holds already (k0, k1, …, deleted), as
        `held_keys` writes it. Losers are written to `folder`. Set `matched`, as `engine.match` writes it, before the first part is settled."""
        self._duck, self._entity, self._folder, self._held = duck, entity, folder, held
        self._checks = [c for c in comparisons(entity) if entity.plan.key or not c.key.primary]
        self._by_source_key = not keyed_for_sure(entity)
        self.matched: Path | None = None
        self._outs: list[tuple[int, Path]] = []
        self._rows = 0
        execute(duck, "CREATE OR REPLACE TEMP TABLE taken (c UTINYINT, h UBIGINT, n BIGINT)")

    @property
    def needed(self) -> bool:
        """True where rows of the entity may lose against each other, or against what the target holds."""
        return bool(self._checks) or self._by_source_key

    def afresh(self, duck: duckdb.DuckDBPyConnection, folder: Path) -> Settler:
        """Another one for the same rows from their first, over another connection and into another folder."""
        another = Settler(duck, self._entity, folder, self._held)
        another.matched = self.matched
        return another

    def pass_over(self, rows: int) -> None:
        """Leaves out that many rows of the stage, which stand before the next part."""
        self._rows += rows

    @property
    def grain(self) -> int:
        """How many rows are better settled at once: each time all that stood before is gone through, so that with
        parts of one size, a table twice as long would take four times as long."""
        return self._rows // GRAIN if self.needed else 0

    def settle(self, part: int, out: Path, rows: int) -> Losers | None:
        """The rows of the next part that lost, None where none did. `rows` is how many rows the part has."""
        return self.settle_all([(part, out, rows)])[0]

    def settle_all(self, parts: Sequence[tuple[int, Path, int]]) -> list[Losers | None]:
        """The same of the next parts: number, file and rows of each."""
        starts = []
        for _, out, rows in parts:
            starts.append(self._rows)
            self._outs.append((self._rows, out))
            self._rows += rows
        if not self.needed:
            return [None for _ in parts]
        outs = [out for _, out, _ in parts]
        self._note_keys(outs)
        losers = self._held_by_target(outs)
        losers |= self._contested(set(losers))
        if losers:
            # A second row of one source key is one whatever became of the first; else only who enters takes a key.
            listed = ", ".join(str(n) for n in losers)
            execute(self._duck, f"DELETE FROM coming WHERE c <> {_SOURCE} AND n IN ({listed})")
        execute(self._duck, "INSERT INTO taken SELECT c, h, n FROM coming")
        lost: list[dict[int, Lost]] = [{} for _ in parts]
        for n, why in losers.items():
            lost[bisect_right(starts, n) - 1][n] = why
        return [self._written(part[0], those) if those else None for part, those in zip(parts, lost, strict=True)]

    def _note_keys(self, outs: list[Path]) -> None:
        """Makes the table `coming`: check, hash of the key, row number, for each key of the parts that counts."""
        rows = self._entering(outs)
        selects = []
        if self._by_source_key:
            selects.append(f"SELECT {_SOURCE}::UTINYINT AS c, hash(_ph_key) AS h, _ph_n AS n FROM {rows}")
        for number, check in enumerate(self._checks):
            conditions = [f"({check.where})"] if check.where else []
            if check.key.nulls_distinct:
                conditions += [f"({part}) IS NOT NULL" for part in check.parts]
            where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
            selects.append(
                f"SELECT {number}::UTINYINT AS c, hash({', '.join(check.parts)}) AS h, _ph_n AS n FROM {rows} AS r{where}"
            )
        execute(self._duck, f"CREATE OR REPLACE TEMP TABLE coming AS {' UNION ALL '.join(selects)}")

    def _held_by_target(self, outs: list[Path]) -> dict[int, Lost]:
        losers: dict[int, Lost] = {}
        for check in self._checks:
            path = self._held.get(check.key.name)
            if path is None and self.matched is None:
                continue
            keys = ", ".join(f"{part} AS k{i}" for i, part in enumerate(check.parts))
            where = f"WHERE {check.where}" if check.where else ""
            same = " AND ".join(f"h.k{i} IS NOT DISTINCT FROM t.k{i}" for i in range(len(check.parts)))
            for n, deleted in execute(
                self._duck,
                f"SELECT t._ph_n, h.deleted FROM (SELECT _ph_n, {keys} FROM {self._entering(outs)} AS r {where}) t "
                f"JOIN {self._held_keys(check, path)} h ON {same} AND h.n IS DISTINCT FROM t._ph_n WHERE {_present('t.', check)}",
            ):
                if check.key.primary and self._entity.plan.write == "upsert" and deleted != "true":
                    continue
                what = (
                    "held by a row that is marked as deleted"
                    if deleted == "true"
                    else "held by a row already in the target"
                )
                losers.setdefault(n, Lost(check.key.name, ", ".join(check.key.columns), what))
        return losers

    def _held_keys(self, check: Comparison, path: Path | None) -> str:
        """What the target holds of a key: k0, k1, ..., deleted, and n, the row that is one with what holds it. Matched
        rows stand in it as they were found, so that it is the same once some of them are carried over."""
        ks = ", ".join(f"k{i}" for i in range(len(check.parts)))
        held = f"SELECT {ks}, deleted, NULL::BIGINT AS n FROM read_parquet({literal(str(path))})" if path else ""
        if self.matched is None:
            return f"({held})"
        column = self._entity.id_column
        as_id = f", _ph_held AS {identifier(column.name)}" if column else ""
        keys = ", ".join(f"CAST({part} AS VARCHAR) AS k{i}" for i, part in enumerate(check.parts))
        where = f"WHERE {check.where}" if check.where else ""
        own = f"SELECT {keys}, 'false' AS deleted, _ph_n AS n FROM (SELECT *{as_id} FROM read_parquet({literal(str(self.matched))}) WHERE _ph_outcome = 'one') AS r {where}"
        if not held:
            return f"({own})"
        return f"({own} UNION ALL SELECT * FROM ({held}) x ANTI JOIN ({own}) o USING ({ks}))"

    def _contested(self, lost: set[int]) -> dict[int, Lost]:
        """The rows of the parts that lose to one before them, given those that have `lost` already."""
        seen = execute(
            self._duck,
            "SELECT c.c, c.n, t.n FROM coming c JOIN taken t ON t.c = c.c AND t.h = c.h UNION ALL "
            "SELECT c, n, NULL FROM coming QUALIFY count(*) OVER (PARTITION BY c, h) > 1",
        )
        if not seen:
            return {}
        checks: dict[int, set[int]] = {}
        before: set[tuple[int, int]] = set()
        for c, n, earlier in seen:
            checks.setdefault(n, set()).add(c)
            if earlier is not None:
                before.add((c, earlier))
        keys = self._keys({*checks, *(n for _, n in before)})
        taken = {(c, keys[n][1][c]): keys[n][0] for c, n in sorted(before, reverse=True)}
        losers: dict[int, Lost] = {}
        for n in sorted(checks):
            source_key, own = keys[n]
            if _SOURCE in checks[n]:
                if (_SOURCE, own[_SOURCE]) in taken:
                    losers[n] = Lost(
                        SOURCE_KEY, ", ".join(self._entity.plan.key), "another row has the same source key"
                    )
                    continue
                taken[_SOURCE, own[_SOURCE]] = source_key
            if n in lost:
                continue
            unique = sorted(checks[n] - {_SOURCE})
            clash = next((c for c in unique if (c, own[c]) in taken), None)
            if clash is not None:
                key = self._checks[clash].key
                detail = f"collides with source key {taken[clash, own[clash]]}"
                losers[n] = Lost(key.name, ", ".join(key.columns), detail)
            else:
                taken |= {(c, own[c]): source_key for c in unique}
        return losers

    def _keys(self, numbers: set[int]) -> dict[int, tuple[str, dict[int, tuple[object, ...]]]]:
        """The source key and the key of each check, by row number."""
        starts = [start for start, _ in self._outs]
        files = {self._outs[bisect_right(starts, n) - 1][1] for n in numbers}
        own = [f"[{', '.join(f'CAST({part} AS VARCHAR)' for part in check.parts)}]" for check in self._checks]
        listed = ", ".join(str(n) for n in numbers)
        return {
            n: (key, {_SOURCE: (key,), **{i: tuple(k) for i, k in enumerate(found)}})
            for n, key, *found in execute(
                self._duck,
                f"SELECT _ph_n, _ph_key{''.join(', ' + k for k in own)} FROM {self._entering(sorted(files))} AS r "
                f"WHERE _ph_n IN ({listed})",
            )
        }

    def _entering(self, outs: list[Path]) -> str:
        column = self._entity.id_column
        as_id = f", _ph_id AS {identifier(column.name)}" if column else ""
        return f"(SELECT *{as_id} FROM {read_parts(outs)} WHERE _ph_outcome = {LOADED})"

    def _written(self, part: int, losers: dict[int, Lost]) -> Losers:
        path = self._folder / f"losers-{part:05d}.parquet"
        table = pa.table(
            {
                "_ph_n": list(losers),
                "index": [lost.index for lost in losers.values()],
                "field": [lost.field for lost in losers.values()],
                "detail": [lost.detail for lost in losers.values()],
            },
            schema=_SCHEMA_OF_LOSERS,
        )
        with disk_errors():
            pq.write_table(table, path)
        return Losers(path, len(losers))


def _present(prefix: str, check: Comparison) -> str:
    if not check.key.nulls_distinct:
        return "true"
    return " AND ".join(f"{prefix}k{i} IS NOT NULL" for i in range(len(check.parts)))


def keyed_for_sure(entity: CheckedEntity) -> bool:
    """True where the source itself keeps the key unique, or rows are numbered for lack of one."""
    key = set(entity.plan.key)
    declared = [set(entity.source.primary_key), *(set(u.columns) for u in entity.source.unique_keys if not u.where)]
    return not key or any(d and d <= key for d in declared)


def held_keys(target: Target, entity: CheckedEntity, folder: Path, *, ours: bool) -> dict[str, Path]:
    """Fetches the keys the target's table holds, an index a Parquet file.

    Empty when the table is. `ours`: our records are there, and rows in the entity's crosswalk are left out.
    """
    if target.is_empty(entity.target):
        return {}
    found: dict[str, Path] = {}
    besides = loaded_entity(entity) if ours else None
    for check in comparisons(entity):
        path = folder / f"held-{len(found)}.parquet"
        names = [*(f"k{i}" for i in range(len(check.parts))), "deleted"]
        with disk_errors(), pq.ParquetWriter(path, pa.schema([(n, pa.string()) for n in names])) as writer:
            for batch in target.keys_held(entity.target, check.key, marker_of(entity), besides):
                writer.write_batch(batch)
        found[check.key.name] = path
    return found


def marker_of(entity: CheckedEntity) -> Column | None:
    """The column that marks a row as deleted, where such a row isn't brought back by an upsert: the plan names it, or
    it is called deleted_at; nothing else is guessed."""
    marker = entity.plan.deleted
    if marker is None:
        return entity.target.column("deleted_at")
    reviving = marker.revive and entity.plan.write == "upsert"
    return None if reviving else entity.target.column(marker.column)
