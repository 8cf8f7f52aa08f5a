"""Which version of the plan a job goes by: entities whose rows have begun to move keep theirs, whatever is drafted or
given afterwards; fields that come later are `agent.recovery`'s to bring in.
"""

from __future__ import annotations

from contextlib import suppress

from engine.plan import Plan, dump_plan, parse_plan
from workspace.disk import disk_errors
from workspace.errors import PlanError
from workspace.events import BatchCommitted, JobStarted
from workspace.log import Workspace
from workspace.paths import JobPaths


def begun_entities(workspace: Workspace) -> set[str]:
    """The entities whose rows have begun to move."""
    return {e.event.entity for e in workspace.events(types=[BatchCommitted]) if isinstance(e.event, BatchCommitted)}


def began_with_plan(workspace: Workspace) -> bool:
    """True where the job was begun with a plan that somebody gave."""
    started = (e.event for e in workspace.events(types=[JobStarted]) if isinstance(e.event, JobStarted))
    begun = next(started, None)
    return begun is not None and bool(begun.options.get("plan"))


def frozen(plan: Plan, last: Plan | None, begun: set[str]) -> Plan:
    """The plan, with entities whose rows have begun to move as they were in the last version, maps included."""
    if last is None or not begun:
        return plan
    entities, maps = dict(plan.entities), dict(plan.value_maps)
    for name in begun & set(last.entities):
        entities[name] = last.entities[name]
        for planned in last.entities[name].fields.values():
            if planned.map is not None:
                maps[planned.map] = last.value_maps[planned.map]
    return plan.model_copy(
        update={"entities": entities, "value_maps": maps, "version": last.version, "archive": last.archive}
    )


def keep_beside_log(paths: JobPaths, plan: Plan) -> Plan:
    """Writes the plan beside the log, for a person to read; the plan. A file that says the same stays as it is, with its
    comments."""
    file = paths.plans / f"plan-{plan.version}.yaml"
    with disk_errors():
        with suppress(FileNotFoundError, UnicodeDecodeError, PlanError):
            if parse_plan(file.read_text(encoding="utf-8"), str(file)) == plan:
                return plan
        file.touch(mode=0o600)
        file.write_text(dump_plan(plan), encoding="utf-8")
    return plan
