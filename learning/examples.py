"""Training examples as files: one JSON object a line, a column of the old table with what it may go to.

{"table": "…", "column": {name, type, samples, distinct, empty, how}, "field": "…" or null, "fields": [[name, type], …],
 "near_misses": […], "language": "…", "style": "…", "new": "…"}
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from learning.schemas import TablePair


def examples(table: TablePair) -> Iterator[dict[str, Any]]:
    """One example a column; `near_misses` are wrong fields whose names look most like the column's."""
    for column in table.columns:
        told = asdict(column)
        field = told.pop("field")
        yield {
            "table": table.old, "column": told, "field": field, "fields": [[f.name, f.type] for f in table.fields],
            "near_misses": list(table.near_misses(column)), "language": table.language, "style": table.style, "new": table.new,
        }  # fmt: skip


def write_examples(tables: Iterable[TablePair], path: Path) -> int:
    """Writes all examples of these tables; how many there are."""
    path.parent.mkdir(parents=True, exist_ok=True)
    count = 0
    with path.open("w", encoding="utf-8") as file:
        for table in tables:
            for example in examples(table):
                file.write(json.dumps(example, ensure_ascii=False) + "\n")
                count += 1
    return count
