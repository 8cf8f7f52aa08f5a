"""A plan that a person edited, as the next version of a job's: what it may change, by what has been loaded.

Before rows of an entity move, anything. While they move, nothing of it. Afterwards its fields, value maps and `where`:
its rows are driven again by `engine.redrive`, which the next `resume` takes up, and those held back now leave the target.
What rows are known by and read from stays, since loaded rows depend on it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from connectors.protocols import Catalogue, Source
from engine.check import CheckedPlan, check_plan
from engine.generation import Deletes, generations, refuse_open_generation
from engine.plan import EntityPlan, Plan, parse_plan
from engine.plan_place import with_version
from engine.prepare import try_queries
from engine.retry_plan import changed_fields, changed_wheres
from workspace.disk import disk_errors
from workspace.errors import CatalogueError, PlanError, UsageError
from workspace.events import BatchCommitted, EntityCompleted, Event, PlanChanged, SyncStarted
from workspace.log import Workspace
from workspace.paths import JobPaths
from workspace.state import state_at

BY_PERSON = "edited by a person"
_NEW_JOB = "a new job over the same systems can load by such a plan"
_FREE = {"fields", "unmapped", "edited", "watermark", "where"}


@dataclass(frozen=True)
class EditedPlan:
    """The next version, checked; and the rows, by entity, that are loaded and will be driven again by it."""

    checked: CheckedPlan
    redriven: Mapping[str, int]
    narrowed: tuple[str, ...] = ()
    """Those of them whose `where` is another: rows that it holds back leave the target."""


def check_edited(paths: JobPaths, workspace: Workspace, edited: Plan, source: Source, target: Catalogue) -> EditedPlan:
    """The edited plan held against both systems as for a run, and against what the job has loaded. PlanError,
    ExpressionError, CatalogueError for what can't be; UsageError where the job can't take a plan now."""
    state, job = state_at(workspace), f"job {paths.job}"
    belief, progress = state.belief, state.progress
    belief.refuse_cleaned_up()
    if progress.taken_back:
        raise UsageError("the job was taken back and is over", where=job, advice="a new job loads anew")
    refuse_open_generation(workspace, paths.job)
    last = parse_plan(belief.plan, f"plan version {belief.plan_version}")
    for side in ("source", "target"):
        named, before = getattr(edited, side), getattr(last, side)
        if named and before and named != before:
            raise PlanError(f"the plan names another {side} than the job's", where=side, advice=_NEW_JOB)
    begun, ended = _entities(workspace, BatchCommitted), _entities(workspace, EntityCompleted)
    entities, touched = dict(edited.entities), []
    for name in (each for each in last.entities if each in begun):
        if name not in edited.entities:
            raise PlanError(f"the plan lacks {name!r}, whose rows are loaded", where="entities", advice="leave it in")
        entities[name] = _loaded(name, last.entities[name], edited.entities[name])
        if set(entities[name].fields) - set(last.entities[name].fields):
            touched.append(name)
    plan = edited.model_copy(update={"entities": entities, "version": last.version + 1})
    touched += [name for name in changed_fields(last, plan) if name in begun and name not in touched]
    if touched:
        _refuse_moving(touched[0], last, plan, ended, paths.job)
    checked = check_plan(plan, source, target)
    try_queries(paths, checked)
    if touched:
        _same_passes(checked, last, source, target, touched)
    narrowed = tuple(name for name in changed_wheres(last, plan) if name in touched)
    for name in narrowed:
        _may_delete(checked, name)
    return EditedPlan(checked, {name: _rows(progress.entities[name].counts) for name in touched}, narrowed)


def keep_edited(paths: JobPaths, workspace: Workspace, edited: EditedPlan, text: str) -> Plan:
    """Makes it the job's next version, with the text as the person wrote it: in the log, then beside it. Rows to be
    driven again are told of in the same transaction, as a re-drive that began."""
    plan = edited.checked.plan
    before = state_at(workspace).belief.plan_version
    text = with_version(text, plan)
    events: list[Event] = [PlanChanged(plan.version, text, "person", BY_PERSON)]
    if edited.redriven:
        number = generations(workspace)[-1].number + 1
        deletes: Deletes = "delete" if edited.narrowed else "keep"
        events.append(SyncStarted(number, deletes, redriven=list(edited.redriven), written_by=before))
    workspace.record(*events)
    with disk_errors():
        paths.plans.mkdir(mode=0o700, exist_ok=True)
        file = paths.plans / f"plan-{plan.version}.yaml"
        file.touch(mode=0o600)
        file.write_text(text, encoding="utf-8")
    return plan


def _entities(workspace: Workspace, kind: type[BatchCommitted] | type[EntityCompleted]) -> set[str]:
    return {e.event.entity for e in workspace.events(types=[kind]) if isinstance(e.event, kind)}


def _loaded(name: str, last: EntityPlan, edited: EntityPlan) -> EntityPlan:
    """The edited entity, what its fields had first in the order of the last plan, which checksums are made in."""
    here = f"entities.{name}"
    old, new = (each.model_dump(by_alias=True, exclude=_FREE) for each in (last, edited))
    for key in new:
        if old[key] != new[key] and (key != "from" or old[key].split() != new[key].split()):
            raise PlanError(
                f"rows of {name} are loaded, and its `{key}` is another", where=f"{here}.{key}", advice=_NEW_JOB
            )
    for field in last.fields:
        if field not in edited.fields:
            raise PlanError(
                f"the plan lacks {field}, which rows that are loaded have", where=f"{here}.fields", advice="leave it in"
            )
    order = [*last.fields, *(field for field in edited.fields if field not in last.fields)]
    return edited.model_copy(update={"fields": {field: edited.fields[field] for field in order}})


def _refuse_moving(name: str, last: Plan, plan: Plan, ended: set[str], job: str) -> None:
    """Rows that are loaded are driven again once all are: until then the plan of what moves is frozen."""
    here = f"entities.{name}"
    if not set(last.entities) <= ended:
        raise PlanError(
            f"rows of {name} have begun to move, and the job isn't loaded to its end", where=here,
            advice=f"end the load by the plan as it is (migrate resume {job}), then edit",
        )  # fmt: skip
    if more := set(plan.entities) - set(last.entities):
        raise PlanError(
            f"{min(more)!r} is new and rows of {name} would be driven again, both at once", where=f"entities.{min(more)}",
            advice="keep one edit, migrate resume, then make the other",
        )  # fmt: skip
    for other, entity in plan.entities.items():
        if entity.merge is not None or entity.match is not None:
            raise PlanError(
                f"the plan merges or matches rows of {other}, which is decided once, before the load", where=here,
                advice=_NEW_JOB,
            )  # fmt: skip
    if not plan.entities[name].key:
        raise PlanError(f"{name} has no key: its rows can't be found again", where=here, advice=_NEW_JOB)


def _same_passes(checked: CheckedPlan, last: Plan, source: Source, target: Catalogue, names: list[str]) -> None:
    before = check_plan(last, source, target)
    for name in names:
        old = {f.column.name for f in before.entity(name).deferred}
        new = {f.column.name for f in checked.entity(name).deferred} & set(last.entities[name].fields)
        for field in sorted(old ^ new):
            raise PlanError(
                f"{field} would be filled in another pass than in rows that are loaded",
                where=f"entities.{name}.fields.{field}", advice=_NEW_JOB,
            )  # fmt: skip


def _may_delete(checked: CheckedPlan, name: str) -> None:
    held = checked.entity(name).target.privileges
    if held is not None and "delete" not in held:
        table = checked.entity(name).plan.to
        raise CatalogueError(
            f"rows of {name} that its `where` holds back now leave the target's {table}, which needs DELETE",
            where=f"entities.{name}.where", advice=f"GRANT DELETE ON {table} TO the user of the target DSN",
        )  # fmt: skip


def _rows(counts: object) -> int:
    return sum(int(getattr(counts, kind)) for kind in ("inserted", "updated", "unchanged"))
