"""An edited plan for rows in quarantine: what it may change, and how it becomes the job's next version.

What rows that are loaded depend on stays: where they came from, where they went, what they are known by, and which
columns their checksums are over. Nothing else is refused here that a run would not refuse.
"""

from __future__ import annotations

from dataclasses import replace

from engine.check import CheckedPlan, check_plan
from engine.context import Context
from engine.plan import EntityPlan, Plan, dump_plan
from engine.prepare import try_queries
from workspace.disk import disk_errors
from workspace.errors import PlanError
from workspace.events import PlanChanged

_NEW_JOB = "a new job over the same systems can load by such a plan"


def check_next(ctx: Context, edited: Plan) -> CheckedPlan:
    """The edited plan as the job's next version, or as the last where it says the same; checked against both systems
    as for a run. PlanError, ExpressionError, CatalogueError."""
    last = ctx.checked.plan
    for side in ("source", "target"):
        named, before = getattr(edited, side), getattr(last, side)
        if named and before and named != before:
            raise PlanError(
                f"the plan names another {side} than the job's", where=side, advice=f"rows are loaded: {_NEW_JOB}"
            )
    _same_entities(last, edited)
    entities = {name: _next_entity(name, last.entities[name], edited.entities[name]) for name in last.entities}
    plan = edited.model_copy(update={"entities": entities, "version": last.version, "archive": last.archive})
    if dump_plan(plan) == dump_plan(last):
        return ctx.checked
    plan = plan.model_copy(update={"version": last.version + 1})
    checked = check_plan(plan, ctx.source, ctx.target.catalogue())
    try_queries(ctx.paths, checked)
    for entity in checked.entities:
        before = {f.column.name for f in ctx.checked.entity(entity.name).deferred}
        for changed in sorted(before ^ {f.column.name for f in entity.deferred}):
            raise PlanError(
                f"{changed} would be filled in another pass than in rows that are loaded",
                where=f"entities.{entity.name}.fields.{changed}", advice=_NEW_JOB,
            )  # fmt: skip
    return checked


def adopt(ctx: Context, checked: CheckedPlan, why: str = "given to retry the quarantine") -> Context:
    """Makes the plan the job's, where it is a new version: in the log with the reason, then beside it for a person to
    read."""
    plan = checked.plan
    if plan.version != ctx.checked.plan.version:
        text = dump_plan(plan)
        ctx.workspace.record(PlanChanged(plan.version, text, "file", why))
        with disk_errors():
            ctx.paths.plans.mkdir(mode=0o700, exist_ok=True)
            file = ctx.paths.plans / f"plan-{plan.version}.yaml"
            file.touch(mode=0o600)
            file.write_text(text, encoding="utf-8")
    return replace(ctx, checked=checked)


def changed_fields(before: Plan, after: Plan) -> dict[str, list[str]]:
    """The fields that say something else than before, by entity; `where` among them by that name. An entity that was
    not there before (it waited for an answer) is left out."""
    found: dict[str, list[str]] = {}
    for name, entity in after.entities.items():
        old = before.entities.get(name)
        if old is None:
            continue
        names = [
            n
            for n, field in entity.fields.items()
            if field != old.fields.get(n) or _map_of(after, n, entity) != _map_of(before, n, old)
        ]
        names += ["where"] if entity.where != old.where else []
        if names:
            found[name] = names
    return found


def changed_wheres(before: Plan, after: Plan) -> tuple[str, ...]:
    """The entities of both plans whose `where` differs."""
    old = before.entities
    return tuple(name for name, entity in after.entities.items() if name in old and entity.where != old[name].where)


def _map_of(plan: Plan, field: str, entity: EntityPlan) -> object:
    used = entity.fields[field].map
    return plan.value_maps[used] if used is not None else None


def _same_entities(last: Plan, edited: Plan) -> None:
    for name in edited.entities:
        if name not in last.entities:
            raise PlanError(
                f"{name!r} is new in the plan, and a retry loads no new entity",
                where=f"entities.{name}",
                advice=_NEW_JOB,
            )
    for name in last.entities:
        if name not in edited.entities:
            raise PlanError(f"the plan lacks {name!r}, whose rows are loaded", where="entities", advice="leave it in")


def _next_entity(name: str, last: EntityPlan, edited: EntityPlan) -> EntityPlan:
    """The edited entity, its fields in the order of the last plan, which checksums are made in."""
    here = f"entities.{name}"
    for key, label, value in (
        ("from", "source", lambda e: " ".join(e.from_.split())),
        ("to", "target table", lambda e: e.to),
        ("key", "key", lambda e: e.key),
        ("id", "id", lambda e: e.id),
    ):
        if value(last) != value(edited):
            raise PlanError(
                f"{name} has another {label} than its rows that are loaded", where=f"{here}.{key}", advice=_NEW_JOB
            )
    for field in edited.fields:
        if field not in last.fields:
            raise PlanError(
                f"{field} is new, and rows that are loaded lack it", where=f"{here}.fields.{field}", advice=_NEW_JOB
            )
    for field in last.fields:
        if field not in edited.fields:
            raise PlanError(
                f"the plan lacks {field}, which rows that are loaded have", where=f"{here}.fields", advice="leave it in"
            )
    return edited.model_copy(update={"fields": {field: edited.fields[field] for field in last.fields}})
