"""The rows of an entity as they should be on the other side, as lines that COPY takes raw: the measure of a bare pipe.

No row here needs converting, and each enters the table of cloud.sql that it belongs to once the tables that
it refers to are filled.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from .lines import tab_lines
from .truth import truth_tables
from .truth_shared import ENTITIES
from .world import World


def write_clean_lines(world: World, entity: str, path: Path, leave_out: Collection[str] = ()) -> tuple[str, ...]:
    """Writes the good rows of an entity as tab-separated lines (\\N for NULL) and gives their columns in order.

    `leave_out` names fields that are not written (those that refer to a table filled later). ValueError for
    an entity whose ids only the target gives.
    """
    kind = ENTITIES[entity].id
    if kind == "sequence" or any(
        ENTITIES[to].id == "sequence" for field, to in ENTITIES[entity].references.items() if field not in leave_out
    ):
        raise ValueError(f"{entity} needs ids that only the target gives")
    names: tuple[str, ...] = ()
    columns: list[str] = []
    with path.open("wb") as out:
        for table in truth_tables(world, entity):
            columns = [c for c in table.column_names if c != "_key" and c not in leave_out]
            names = tuple("id" if c == "_id" else c for c in columns)
            out.write(tab_lines(table.select(columns)))
    return names
