"""Rows into the target, where it may refuse some: those are set aside with the reason of each, and all others enter."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from connectors.protocols import Column, RowsRefusedError
from connectors.target import Target
from engine.check import CheckedEntity


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
