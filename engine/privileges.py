"""What a plan does with each table of the target, as far as rights go."""

from __future__ import annotations

from connectors.grants import TableUse
from connectors.protocols import Catalogue
from engine.check import target_table
from engine.load_order import load_order
from engine.plan import Plan


def table_uses(plan: Plan, target: Catalogue) -> list[TableUse]:
    """A use of each table, over all entities that go to it. PlanError where the target shows no such table."""
    tables = {name: target_table(name, entity, target) for name, entity in plan.entities.items()}
    _, deferred = load_order(plan, tables)
    found: dict[str, TableUse] = {}
    for name, entity in plan.entities.items():
        updates = entity.write == "upsert" or any(name == deferring for deferring, _ in deferred)
        use = found.get(entity.to, TableUse(entity.to, False, frozenset(), False))
        found[entity.to] = TableUse(
            entity.to, use.updates or updates, use.columns | set(entity.fields), use.draws or entity.id == "sequence"
        )
    return list(found.values())
