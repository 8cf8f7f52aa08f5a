"""An edited plan for a sync: it may say otherwise what becomes of edited rows, and what tells that a row changed.

All else stays as the rows that are loaded were moved by. Nothing is moved here.
"""

from __future__ import annotations

from typing import Any

from engine.check import CheckedPlan, check_plan
from engine.context import Context
from engine.plan import EntityPlan, Plan, dump_plan
from workspace.errors import PlanError

_OF_A_SYNC = ("edited", "watermark")


def check_policies(ctx: Context, given: Plan) -> CheckedPlan:
    """The job's plan with what the given one says of edited rows and watermarks: its next version, or its last where it
    says the same. PlanError where the given one says something else of anything but these."""
    last = ctx.checked.plan
    for name in {**last.entities, **given.entities}:
        if name not in last.entities or name not in given.entities:
            raise _refused(f"entities.{name}")
        if _without(last.entities[name]) != _without(given.entities[name]):
            raise _refused(f"entities.{name}")
    if last.value_maps != given.value_maps:
        raise _refused("value_maps")
    entities = {name: _with_policies(entity, given.entities[name]) for name, entity in last.entities.items()}
    plan = last.model_copy(update={"entities": entities})
    if dump_plan(plan) == dump_plan(last):
        return ctx.checked
    return check_plan(plan.model_copy(update={"version": last.version + 1}), ctx.source, ctx.target.catalogue())


def _without(entity: EntityPlan) -> dict[str, Any]:
    bare = entity.model_dump(exclude={*_OF_A_SYNC})
    return {**bare, "fields": {name: {**field, "edited": None} for name, field in bare["fields"].items()}}


def _with_policies(entity: EntityPlan, given: EntityPlan) -> EntityPlan:
    """With the fields in the order of the last plan, which checksums are made in."""
    fields = {name: given.fields[name] for name in entity.fields}
    return entity.model_copy(update={**{name: getattr(given, name) for name in _OF_A_SYNC}, "fields": fields})


def _refused(where: str) -> PlanError:
    return PlanError(
        "the plan says more otherwise than `edited` and `watermark`", where=where,
        advice="rows are loaded by the job's plan: a new job over the same systems can load by another",
    )  # fmt: skip
