"""Rows into the target, where it may refuse some: those are set aside with the reason of each, and all others enter."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from connectors.protocols import Column, RowsRefusedError
from connectors.target import Target
from engine.check import CheckedEntity
from engine.compile import key_sql, raw_sql
from engine.query import literal
from engine.stage import part_path
from engine.transform import execute
from workspace.events import PartStaged
from workspace.paths import JobPaths

_FEW_WORDS = 6

QUARANTINE = pa.schema([(name, pa.string()) for name in ("row", "key", "field", "code", "signature", "detail", "raw")])


def load_refusing(
    rows: pa.Table, load: Callable[[pa.Table], None], refused: list[tuple[int, RowsRefusedError]]
) -> None:
    """Loads rows, setting aside those that the target refuses one by one, with the reason of each.

    Where the target names the line, what stands before it is loaded and the line tried alone; where it
    doesn't (a check at the statement's end), the rows are halved. Every row is loaded or in `refused`.
    """
    pending = [rows] if rows.num_rows else []
    while pending:
        current = pending.pop()
        try:
            load(current)
            continue
        except RowsRefusedError as error:
            if current.num_rows == 1:
                refused.append((current["_ph_n"][0].as_py(), error))
                continue
            line = error.line
        if line is not None and 1 <= line <= current.num_rows:
            pieces = [current.slice(0, line - 1), current.slice(line - 1, 1), current.slice(line)]
        else:
            half = current.num_rows // 2
            pieces = [current.slice(0, half), current.slice(half)]
        pending += [piece for piece in reversed(pieces) if piece.num_rows]


class _Load:
    """Loads a slice within a savepoint; counts what entered."""

    def __init__(self, target: Target, entity: CheckedEntity) -> None:
        self.target = target
        self.entity = entity
        self.entered = 0
        self.replaced: dict[tuple[str, ...], str] = {}

    def __call__(self, rows: pa.Table) -> None:
        columns = list(self.entity.written)
        with self.target.savepoint():
            replaced: dict[tuple[str, ...], str] = {}
            if self.entity.plan.write == "upsert":
                replaced = self.target.upsert(self.entity.target, columns, self.entity.identity, rows, self._revived())
            else:
                self.target.insert(self.entity.target, columns, rows)
        self.entered += rows.num_rows - len(replaced)
        self.replaced |= replaced

    def _revived(self) -> Column | None:
        """The deletion marker that an upsert clears: only where the plan says so, and doesn't fill it itself."""
        marker = self.entity.plan.deleted
        if marker is None or not marker.revive or marker.column in self.entity.written:
            return None
        return self.entity.target.column(marker.column)


def enter_rows(
    target: Target, entity: CheckedEntity, inserts: pa.Table, refused: list[tuple[int, RowsRefusedError]]
) -> tuple[int, dict[tuple[str, ...], str]]:
    """Inserts rows, or upserts them where the plan says so: how many entered, and what those that were replaced held
    before, as JSON by identity. Those that the target refuses go to `refused`."""
    load = _Load(target, entity)
    load_refusing(inserts, load, refused)
    return load.entered, load.replaced


def refused_rows(
    duck: duckdb.DuckDBPyConnection,
    paths: JobPaths,
    entity: CheckedEntity,
    part: PartStaged,
    refused: Sequence[tuple[int, RowsRefusedError]],
) -> pa.Table:
    """The quarantine rows, with QUARANTINE's columns, of what only the target could see: numbers and reasons."""
    stage = literal(str(part_path(paths.stage / entity.name, part.part)))
    numbers = ", ".join(str(n) for n, _ in refused)
    found = {
        n: (key, raw)
        for n, key, raw in execute(
            duck,
            f"SELECT _ph_n, {key_sql(entity)}, {raw_sql(entity)} FROM read_parquet({stage}) WHERE _ph_n IN ({numbers})",
        )
    }
    out: dict[str, list[str]] = {name: [] for name in QUARANTINE.names}
    for n, error in refused:
        key, raw = found[n]
        constraint = next((u for u in entity.target.unique_keys if u.name == error.constraint), None)
        key_out = next((f for f in entity.target.foreign_keys if f.name == error.constraint), None)
        field = error.column or ", ".join(constraint.columns if constraint else key_out.columns if key_out else ())
        about = error.constraint or _without_values(error.message, raw).removeprefix(f"{error.code} ")
        for name, value in zip(
            QUARANTINE.names,
            (str(n), key, field, error.code, f"{field or entity.name}: {error.code} {about}", error.message, raw),
            strict=True,
        ):
            out[name].append(value)
    return pa.table(out, schema=QUARANTINE)


def _without_values(message: str, raw: str) -> str:
    """What a server says, without what it quotes and without words of the row (`raw`, JSON), which a trigger may name as
    they are: a signature holds no value."""
    said = re.sub(r'".*"', '"…"', message.split(":")[0])
    of_row = {word for value in json.loads(raw).values() for word in _words(value)}
    said = re.sub(r"\w+", lambda found: "…" if found[0].casefold() in of_row else found[0], said)
    return re.sub(r"[0-9]+", "9", said)[:80]


def _words(value: object) -> list[str]:
    """The words of a value that could be a name, a code, a number; long texts have words of everybody's."""
    words = re.findall(r"\w+", str(value).casefold()) if value is not None else []
    return [word for word in words if len(word) > 2] if len(words) <= _FEW_WORDS else []


def without(rows: pa.Table, numbers: set[int]) -> pa.Table:
    """The rows without those of these numbers."""
    if not numbers:
        return rows
    return rows.filter(pc.invert(pc.is_in(rows["_ph_n"], pa.array(sorted(numbers), pa.int64()))))
