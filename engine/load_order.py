"""In which order entities are loaded, and which references have to wait until all rows are there."""

from __future__ import annotations

from connectors.protocols import Table
from engine.known_names import listed, near
from engine.plan import Plan
from workspace.errors import PlanError


def load_order(plan: Plan, tables: dict[str, Table]) -> tuple[list[str], set[tuple[str, str]]]:
    """Load order, references first; and the (entity, field) pairs that wait for the second pass.

    A reference to the entity itself always waits. In a circle the nullable references wait; a circle
    of required ones can't be loaded.
    """
    deferred: set[tuple[str, str]] = set()
    needs: dict[str, dict[str, list[str]]] = {}
    for name, entity in plan.entities.items():
        edges: dict[str, list[str]] = {other: [] for other in entity.after}
        for column_name, field in entity.fields.items():
            if field.ref is None:
                continue
            where = f"entities.{name}.fields.{column_name}.ref"
            if field.ref not in plan.entities:
                raise PlanError(
                    f"no entity {field.ref!r}{near(field.ref, plan.entities)}", where=where,
                    advice=f"the plan has: {listed(plan.entities)}",
                )  # fmt: skip
            if plan.entities[field.ref].id == "none":
                raise PlanError(
                    f"{field.ref} has `id: none` and can't be referred to",
                    where=where,
                    advice="give it an id",
                )
            if field.ref == name:
                deferred.add((name, column_name))
            else:
                edges.setdefault(field.ref, []).append(column_name)
        for other in entity.after:
            if other not in plan.entities:
                raise PlanError(
                    f"no entity {other!r}",
                    where=f"entities.{name}.after",
                    advice=f"the plan has: {listed(plan.entities)}",
                )
        needs[name] = edges
    order: list[str] = []
    left = dict(needs)
    while left:
        ready = [name for name, edges in left.items() if not any(other in left for other in edges)]
        if ready:
            order += ready
            for name in ready:
                del left[name]
            continue
        order.append(_break_circle(left, plan, tables, deferred))
        del left[order[-1]]
    for name, column_name in deferred:
        column = tables[name].column(column_name)
        if plan.entities[name].id == "none":
            raise PlanError(
                "a circular or self reference needs rows with an id",
                where=f"entities.{name}.id",
                advice="use keep, uuid5 or sequence",
            )
        if plan.entities[name].fields[column_name].missing != "null":
            raise PlanError(
                f"{column_name} refers to rows that are loaded later", where=f"entities.{name}.fields.{column_name}.missing",
                advice="say `missing: 'null'`: when it is filled, its own row is loaded already",
            )  # fmt: skip
        if column is not None and not column.nullable:
            raise PlanError(
                f"{column_name} is required and refers to rows that are loaded later", where=f"entities.{name}.fields.{column_name}",
                advice="a circular or self reference has to be nullable in the target",
            )  # fmt: skip
    return order, deferred


def _break_circle(
    left: dict[str, dict[str, list[str]]],
    plan: Plan,
    tables: dict[str, Table],
    deferred: set[tuple[str, str]],
) -> str:
    """The entity of the circle that waits for the fewest references, all of them nullable; defers those."""
    choices = []
    for name, edges in left.items():
        waiting = [(other, field) for other, fields in edges.items() if other in left for field in fields or [""]]
        columns = [tables[name].column(field) for _, field in waiting]
        if all(column is not None and column.nullable for column in columns):
            choices.append((len(waiting), name, [field for _, field in waiting]))
    if not choices:
        raise PlanError(
            f"{' and '.join(sorted(left))} need each other first", where="entities",
            advice="one of the references between them has to be nullable in the target",
        )  # fmt: skip
    _, name, fields = min(choices)
    deferred.update((name, field) for field in fields)
    return name
