"""Which entities wait with others: those that can't do without one that a question holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from connectors.protocols import Table
from engine.plan import Plan


def waits_with(
    plan: Plan, tables: Mapping[str, Table], waiting: Mapping[str, Sequence[str]]
) -> dict[str, tuple[str, ...]]:
    """The questions that each entity waits for, its own and, through a required reference, another's."""
    out = {name: tuple(dict.fromkeys(questions)) for name, questions in waiting.items()}
    grown = True
    while grown:
        grown = False
        for name, entity in plan.entities.items():
            for column, planned in entity.fields.items():
                target = tables[entity.to].column(column)
                if planned.ref in out and name not in out and target is not None and not target.nullable:
                    out[name] = out[planned.ref]
                    grown = True
    return out
