"""The rights that a job needs in both systems, as lines of `migrate doctor`: each the statement that grants it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from agent.models.check import Check
from workspace.errors import PackhorseError

if TYPE_CHECKING:
    from connectors.grants import Grant
    from engine.plan import Plan

_WITHOUT = {"later": "a first job may do without it", "undo": "only `migrate undo` needs it"}


def source_rights(dsn: str, plan: Plan | None, user: str | None) -> list[Check]:
    """What reading needs: of the plan's tables, or of all without one."""
    from connectors.dsn import open_source

    try:
        system = open_source(dsn)
        try:
            relations = None if plan is None else [entity.from_ for entity in plan.entities.values()]
            return _lines("source right", system.grants(relations, user))
        finally:
            system.close()
    except PackhorseError as error:
        return [Check("source right", "fail", str(error), error.advice)]


def target_rights(dsn: str, plan: Plan | None, user: str | None, schema: str | None) -> list[Check]:
    """What writing needs: of the plan's tables, or of all without one. `schema` is the one of our records."""
    from connectors.dsn import open_target
    from engine.privileges import table_uses

    try:
        system = open_target(dsn, schema)
        try:
            uses = None if plan is None else table_uses(plan, system.catalogue())
            return _lines("target right", system.grants(uses, user))
        finally:
            system.close()
    except PackhorseError as error:
        return [Check("target right", "fail", str(error), error.advice)]


def _lines(name: str, grants: Sequence[Grant]) -> list[Check]:
    return [_line(name, grant) for grant in grants]


def _line(name: str, grant: Grant) -> Check:
    found = f"{grant.statement};  -- {grant.purpose}"
    if grant.missing is None:
        return Check(name, "warn", found, "not looked up: no such user here, or not the one logged in")
    if not grant.missing:
        return Check(name, "ok", found)
    lacks = f"the user lacks {', '.join(grant.missing)}"
    if grant.need == "job":
        return Check(name, "fail", found, lacks)
    return Check(name, "warn", found, f"{lacks}: {_WITHOUT[grant.need]}")
