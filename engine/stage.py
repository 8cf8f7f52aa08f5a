"""The stage: an entity's rows read once from the source, as Parquet parts on disk.

A part is written whole, made durable and only then recorded; it never changes after. Reading goes on
after the last recorded part's key, so a crash costs at most one part.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from connectors.protocols import Source
from engine.check import CheckedEntity
from engine.faults import fault_point
from workspace.disk import disk_errors
from workspace.events import PartStaged
from workspace.paths import JobPaths


def part_path(folder: Path, part: int) -> Path:
    """Where a part lies within its entity's folder."""
    return folder / f"part-{part:05d}.parquet"


def stage_parts(
    source: Source,
    entity: CheckedEntity,
    paths: JobPaths,
    done: list[PartStaged],
    *,
    rows: int,
    stop: Callable[[], bool],
) -> Iterator[PartStaged]:
    """Reads what `done` doesn't hold yet and yields each part once it is durable on disk.

    Ends early when `stop()` says so; the caller sees that by asking it too. A source without a key can't
    go on in the middle: its parts are read again from the first.
    """
    folder = paths.stage / entity.name
    key = entity.plan.key
    if done and not key:
        done = []
    after = done[-1].key_high if done else None
    number = done[-1].part + 1 if done else 0
    position = sum(part.rows for part in done)
    with disk_errors():
        folder.mkdir(mode=0o700, exist_ok=True)
    for page in source.pages(entity.plan.from_, key, after=after, size=rows):
        table = page.rows
        if table.num_rows == 0:
            continue
        part = write_part(paths, entity, number, table, position)
        fault_point("after stage write")
        yield replace(part, key_high=tuple(page.last_key)) if key else part
        position += table.num_rows
        number += 1
        if stop():
            return


def write_part(paths: JobPaths, entity: CheckedEntity, number: int, table: pa.Table, position: int) -> PartStaged:
    """Writes rows as a part, durably; they are numbered from `position` on. Of no rows, the part has no keys."""
    key, last = entity.plan.key, table.num_rows - 1
    table = table.append_column("_ph_n", pa.array(range(position, position + table.num_rows), pa.int64()))
    with disk_errors():
        digest, size = write_durably(part_path(paths.stage / entity.name, number), table)
    low, high = (_key_text(table, key, row, position + row) if last >= 0 else None for row in (0, last))
    return PartStaged(entity.name, number, table.num_rows, low, high, digest, size)


def write_durably(path: Path, table: pa.Table) -> tuple[str, int]:
    """Writes a Parquet file so that after a crash it is there whole or not at all; its SHA-256 and size."""
    temporary = path.with_suffix(".writing")
    pq.write_table(table, temporary, compression="lz4", use_dictionary=False, write_statistics=False)
    digest = hashlib.sha256()
    with temporary.open("r+b") as file:
        while block := file.read(1 << 20):
            digest.update(block)
        size = file.tell()
        os.fsync(file.fileno())
    temporary.rename(path)
    sync_folder(path.parent)
    return digest.hexdigest(), size


def sync_folder(folder: Path) -> None:
    """Makes a rename in the folder durable."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _key_text(table: pa.Table, key: tuple[str, ...], row: int, position: int) -> tuple[str, ...]:
    if not key:
        return (str(position),)
    values = (table.column(name)[row].as_py() for name in key)
    return tuple("" if v is None else v.hex() if isinstance(v, bytes) else str(v) for v in values)
