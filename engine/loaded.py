"""An entity as the target holds it: what verification and undo look for, told in the target's words."""

from __future__ import annotations

from connectors.protocols import Column
from connectors.records import HashedColumn, LoadedEntity
from engine.check import CheckedEntity
from engine.compile import is_hashed


def loaded_entity(entity: CheckedEntity) -> LoadedEntity:
    """Where the entity's rows are, and what their hashes are made of, in the order of the compiled query's."""
    identity = [entity.id_column] if entity.id_column is not None else map(entity.target.column, entity.identity)
    hashed = [HashedColumn(f.column, is_hashed(f.column), f.deferred) for f in entity.fields]
    if entity.id_column is not None and entity.plan.id != "sequence":
        hashed.insert(0, HashedColumn(entity.id_column, True))
    return LoadedEntity(
        entity.name,
        entity.plan.to,
        entity.target,
        tuple(column for column in identity if column is not None),
        tuple(hashed),
        tuple(f.column for f in entity.deferred),
        _restored(entity),
    )


def _restored(entity: CheckedEntity) -> tuple[Column, ...]:
    """The columns that a load writes, and the marker that an upsert clears."""
    columns = [f.column for f in entity.fields if f.column.name not in entity.identity]
    marker = entity.plan.deleted
    found = entity.target.column(marker.column) if marker is not None and marker.revive else None
    return (*columns, *([found] if found is not None and found not in columns else []))
