"""Tries an expression on the sample before it counts: how many values arrive, and why the others don't.

Runs in a DuckDB of its own in memory that reaches no file. What it tells holds shapes, never values.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import duckdb
import pyarrow as pa

from agent.profile import shape
from connectors.protocols import Column
from engine.casts import cast_to
from engine.expressions import Compiler, Piece
from engine.functions.register import register
from engine.query import identifier
from engine.syntax import columns_of
from workspace.errors import PlanError

TRIED = 2_000  # rows


@dataclass(frozen=True)
class Trial:
    """Of `filled` rows that have a value in the first column drawn on: `arrived`, and failures by signature
    with counts, commonest first. `refused` says why the expression can't be compiled at all."""

    filled: int = 0
    arrived: int = 0
    failures: tuple[tuple[str, int], ...] = ()
    refused: str = ""

    @property
    def share(self) -> float:
        """The share of values that arrive; 1 where there are none, 0 where the expression is refused."""
        if self.refused:
            return 0.0
        return self.arrived / self.filled if self.filled else 1.0


class Bench:
    """A DuckDB with the domain functions, for any number of trials. A context manager."""

    def __init__(self) -> None:
        self._duck = duckdb.connect(config={"memory_limit": "256MB", "threads": "1"})
        register(self._duck)
        self._duck.execute("SET TimeZone = 'UTC'")
        self._duck.execute("SET enable_external_access = false")
        self._duck.execute("SET lock_configuration = true")

    def __enter__(self) -> Bench:
        return self

    def __exit__(self, *_: object) -> None:
        self._duck.close()

    def try_out(self, expression: str, column: Column, sample: pa.Table) -> Trial:
        """Runs one expression for one target column over at most `TRIED` rows of a sample."""
        types = {f.name: "BLOB" if pa.types.is_binary(f.type) else "VARCHAR" for f in sample.schema}
        compiler = Compiler(types)
        try:
            piece = compiler.compile(expression, column.name)
            cast = cast_to(column, Piece("_v", None, "VARCHAR" if piece.type == "NULL" else piece.type), column.name)
            drawn = next((c for c in columns_of(expression) if types.get(c) == "VARCHAR"), None)
        except PlanError as error:
            return Trial(refused=error.what)
        layers: list[str] = []
        before = "sample_rows"
        for level in compiler.hoists.levels:
            if level:
                calls = ", ".join(f"{call} AS {name}" for call, name in level.items())
                layers.append(f"h{len(layers)} AS (SELECT *, {calls} FROM {before})")
                before = f"h{len(layers) - 1}"
        shown = identifier(drawn) if drawn else "NULL"
        layers.append(
            f"vals AS (SELECT {piece.sql} AS _v, {piece.reason or 'NULL'} AS _e, {shown} AS _s FROM {before})"
        )
        reason = f"coalesce(_e, {cast.reason or 'NULL'})"
        sql = f"WITH {', '.join(layers)} SELECT _s, {cast.value} AS v, {reason} AS r FROM vals"
        self._duck.register("sample_rows", sample.slice(0, TRIED))
        try:
            rows = self._duck.execute(sql).fetchall()
        except duckdb.Error as error:
            return Trial(refused=" ".join(str(error).split())[:160])
        finally:
            self._duck.unregister("sample_rows")
        return _told(rows)


def _told(rows: list[tuple[object, ...]]) -> Trial:
    filled = arrived = 0
    failures: Counter[str] = Counter()
    for value, made, reason in rows:
        if value is None or not str(value).strip():
            continue
        filled += 1
        if reason is None or str(reason).startswith("soft "):
            arrived += 1
        else:
            failures[f"{reason}: '{shape(str(value))}'"] += 1
        del made
    return Trial(filled, arrived, tuple(failures.most_common(8)))
