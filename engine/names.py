"""Which columns of either system a job can't tell apart from others: those of names that are ours, or that differ in
case alone, which DuckDB takes for one.
"""

from __future__ import annotations

from collections.abc import Iterable

from workspace.errors import PlanError


def check_source_names(names: Iterable[str], here: str) -> None:
    """PlanError for a column that the stage can't keep apart from others. `here` is the entity's place in the plan."""
    for what, _ in _confused(names):
        raise PlanError(
            f"the source's {what}",
            where=f"{here}.from",
            advice="write a SELECT in `from:` that gives one of them another name",
        )


def check_target_names(names: Iterable[str], table: str, here: str) -> None:
    """PlanError for columns that are to be filled and can't be kept apart on the way."""
    for what, name in _confused(names):
        raise PlanError(
            f"{table}: the target's {what}",
            where=f"{here}.fields.{name}",
            advice="rename the column in the target, or leave the field out",
        )


def _confused(names: Iterable[str]) -> Iterable[tuple[str, str]]:
    seen: dict[str, str] = {}
    for name in names:
        if name.lower().startswith("_ph_"):
            yield f"column {name!r} has a name that only Packhorse's own columns have", name
        if name.lower() in seen:
            yield f"columns {seen[name.lower()]!r} and {name!r} differ in case alone", name
        seen[name.lower()] = name
