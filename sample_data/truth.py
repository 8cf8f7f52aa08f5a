"""Writes the truth about a sample: the rows that each entity should have on the other side, and why others are missing.

It comes from the clean records alone; nothing of the product is run. A folder of the truth holds a
Parquet file an entity (every field as the text that PostgreSQL's COPY gives in UTC with ISO dates,
`_key` being the source key and `_id` the new id where it can be foretold), `quarantine.parquet` and
`counts.json`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from .columns import runs
from .draw import Index
from .truth_parties import account_truth, campaign_truth, contact_truth, user_truth
from .truth_shared import ENTITIES, Piece, new_ids
from .truth_work import (
    activity_truth,
    case_truth,
    contact_email_truth,
    deal_people_truth,
    lead_truth,
    note_truth,
    opportunity_truth,
)
from .world import World

_PIECE = 25_000

_MAKERS: dict[str, tuple[str, Callable[[World, Index], Piece]]] = {
    "users": ("users", user_truth),
    "campaigns": ("campaigns", campaign_truth),
    "accounts": ("accounts", account_truth),
    "contacts": ("contacts", contact_truth),
    "contact_emails": ("contacts", contact_email_truth),
    "leads": ("leads", lead_truth),
    "opportunities": ("opportunities", opportunity_truth),
    "opportunity_contacts": ("opportunities_contacts", deal_people_truth),
    "cases": ("cases", case_truth),
    "notes": ("notes", note_truth),
    "calls": ("calls", lambda world, index: activity_truth(world, "calls", index)),
    "meetings": ("meetings", lambda world, index: activity_truth(world, "meetings", index)),
    "tasks": ("tasks", lambda world, index: activity_truth(world, "tasks", index)),
}


@dataclass(frozen=True)
class Counts:
    """One entity's rows: `read` by its `from`, held back by its `where`, in quarantine, loaded."""

    read: int
    excluded: int
    quarantined: int
    loaded: int


def write_truth(world: World, folder: Path, only: Collection[str] = ()) -> dict[str, Counts]:
    """Writes the truth into a folder, which is made, and gives the counts by entity.

    `only` names the entities to write, where not all of them. What it says of them is the same: references
    to others lead where they would if all were carried over.
    """
    folder.mkdir(parents=True, exist_ok=True)
    counts: dict[str, Counts] = {}
    reasons: list[tuple[str, str, str, str]] = []
    for entity in only or _MAKERS:
        read = excluded = quarantined = loaded = 0
        writer: pq.ParquetWriter | None = None
        for piece in _pieces(world, entity):
            read, excluded = read + piece.read, excluded + piece.excluded
            quarantined += piece.quarantined
            reasons.extend((entity, *reason) for reason in piece.reasons)
            rows = _with_id(entity, piece)
            loaded += rows.num_rows
            if writer is None:
                writer = pq.ParquetWriter(folder / f"{entity}.parquet", rows.schema)
            writer.write_table(rows)
        if writer is not None:
            writer.close()
        counts[entity] = Counts(read, excluded, quarantined, loaded)
    columns = list(zip(*reasons, strict=True)) or [(), (), (), ()]
    names = ("entity", "key", "field", "code")
    table_of_reasons = pa.table({n: pa.array(c, pa.string()) for n, c in zip(names, columns, strict=True)})
    pq.write_table(table_of_reasons, folder / "quarantine.parquet")
    facts = {
        "form": world.form,
        "contacts": world.contacts,
        "seed": world.seed,
        "counts": {entity: asdict(count) for entity, count in counts.items()},
        "entities": {name: asdict(entity) for name, entity in ENTITIES.items() if name in counts},
    }
    (folder / "counts.json").write_text(json.dumps(facts, indent=2) + "\n", encoding="utf-8")
    return counts


def truth_tables(world: World, entity: str) -> Iterator[pa.Table]:
    """The rows of one entity in pieces, as `write_truth` writes them."""
    return (_with_id(entity, piece) for piece in _pieces(world, entity))


def _pieces(world: World, entity: str) -> Iterator[Piece]:
    table, make = _MAKERS[entity]
    return (make(world, index) for index in runs(world.rows[table], _PIECE))


def _with_id(entity: str, piece: Piece) -> pa.Table:
    """The rows as a table, with the new id beside the key where it can be foretold."""
    rows = dict(piece.rows)
    key = rows.pop("_key")
    kind = ENTITIES[entity].id
    ids = {"uuid5": lambda: {"_id": new_ids(entity, key)}, "keep": lambda: {"_id": key}}.get(kind, dict)()
    return pa.table({"_key": key, **ids, **rows})
