"""A person's edits of a drafted plan: they stay, however often the plan is drafted again.

A draft is made anew out of what was decided and answered; what a person changed by hand is put over it, in the order
in which they did.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from agent.matter import EXPRESSIONS, SQL
from agent.questions import open_questions
from engine.plan import EntityPlan, Plan, parse_plan
from workspace.events import PlanChanged, QuestionAnswered
from workspace.log import Workspace

T = TypeVar("T")


def edits(workspace: Workspace) -> list[tuple[Plan, Plan]]:
    """The plan before and after each edit that a person made."""
    found, before = [], None
    for entry in workspace.events(types=[PlanChanged]):
        if not isinstance(entry.event, PlanChanged):
            continue
        plan = parse_plan(entry.event.plan, f"plan version {entry.event.version}")
        if entry.event.by == "person" and before is not None:
            found.append((before, plan))
        before = plan
    return found


def with_edits(plan: Plan, made: list[tuple[Plan, Plan]]) -> Plan:
    """The plan with what each edit appeared, changed and took away. What the plan hasn't (an entity that waits again)
    stays away."""
    for before, after in made:
        entities = _over(plan.entities, before.entities, after.entities)
        for name, entity in plan.entities.items():
            if name in entities and name in before.entities and name in after.entities:
                entities[name] = _entity(entity, before.entities[name], after.entities[name])
        maps = dict(_over(plan.value_maps, before.value_maps, after.value_maps))
        for name, values in plan.value_maps.items():
            if name in maps and name in before.value_maps and name in after.value_maps:
                maps[name] = _over(values, before.value_maps[name], after.value_maps[name])
        plan = plan.model_copy(
            update={"entities": _ordered(entities, after.entities), "value_maps": _ordered(maps, after.value_maps)}
        )
    return plan


def answers(workspace: Workspace, before: Plan, after: Plan) -> list[QuestionAnswered]:
    """What an edit answers: the open questions on fields that it brings in."""
    found = []
    for question in open_questions(workspace):
        entity, _, column = question.subject.rpartition(".")
        if entity not in before.entities or entity not in after.entities or question.kind not in EXPRESSIONS:
            continue
        field = after.entities[entity].fields.get(column)
        if field is None or column in before.entities[entity].fields or (field.constant and not question.free):
            continue
        offered = {each["answer"] for each in question.candidates}
        named = f"column:{field.from_}"
        answer = str(field.default) if field.constant else named if named in offered else f"{SQL}{field.expression}"
        found.append(QuestionAnswered(question.id, answer))
    return found


def _entity(entity: EntityPlan, before: EntityPlan, after: EntityPlan) -> EntityPlan:
    changed: dict[str, object] = {
        name: getattr(after, name)
        for name in type(entity).model_fields
        if name not in ("fields", "unmapped") and getattr(before, name) != getattr(after, name)
    }
    for name in ("fields", "unmapped"):
        new = getattr(after, name)
        changed[name] = _ordered(_over(getattr(entity, name), getattr(before, name), new), new)
    return entity.model_copy(update=changed)


def _over(now: Mapping[str, T], before: Mapping[str, T], after: Mapping[str, T]) -> dict[str, T]:
    """What `now` holds, with what came, changed and went between the two others."""
    kept = {name: value for name, value in now.items() if name in after or name not in before}
    told = {name: value for name, value in after.items() if name not in before or before[name] != value}
    return {**kept, **{name: value for name, value in told.items() if name in kept or name not in before}}


def _ordered(found: Mapping[str, T], like: Mapping[str, T]) -> dict[str, T]:
    """In the order of the other where both have the same names, so that nothing seems to have changed."""
    return {name: found[name] for name in like} if set(found) == set(like) else dict(found)
