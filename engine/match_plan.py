"""`match` in a plan: which rows that the target held before the job a source row is one with, and what of them it fills.

Speaks of target columns, since rows are held against each other as they would be loaded. Touches no data.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from connectors.protocols import Column
from engine.known_names import listed, near
from engine.merge_plan import Rule, check_flags
from engine.plan_shapes import Flag
from workspace.errors import PlanError


def _rungs(value: object) -> object:
    """One column, one rule, or several rules in order: always as a list of rules."""
    if isinstance(value, str):
        return [[value]]
    if isinstance(value, list | tuple) and all(isinstance(each, str) for each in value):
        return [list(value)]
    if isinstance(value, list | tuple):
        return [[each] if isinstance(each, str) else each for each in value]
    return value


def _fill(value: object) -> object:
    return tuple(value) if isinstance(value, list) else value


Rungs = str | Annotated[list[str | Rule], Field(min_length=1)]
Fill = Literal["empty", "all"] | list[str]


class MatchPlan(BaseModel):
    """Which row of the target a source row is one with, and what that takes over.

    A source row fits the rows of the target that are equal in all columns of a rule of `by`; the first rule that fits any
    decides. Where several fit, `several` says whether the row goes to quarantine or counts as new. `fill` names what a
    row of the target takes over: the columns where it holds nothing, all, or those listed. `strictest` says which value of a flag
    stays wherever it stands. Without `lock`, rows that others add while a batch is on its way aren't seen by it.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    by: Annotated[tuple[tuple[str, ...], ...], BeforeValidator(_rungs, json_schema_input_type=Rungs)]
    fill: Annotated[Literal["empty", "all"] | tuple[str, ...], BeforeValidator(_fill, json_schema_input_type=Fill)] = (
        "empty"
    )
    several: Literal["quarantine", "new"] = "quarantine"
    strictest: dict[str, Flag] = {}
    lock: Flag = True

    @model_validator(mode="after")
    def _complete(self) -> MatchPlan:
        if not self.by or any(not rule for rule in self.by):
            raise ValueError("by needs a rule, and each rule a column")
        return self


def check_match(
    match: MatchPlan, columns: Mapping[str, Column], deferred: Iterable[str], uncompared: Collection[str], here: str
) -> None:
    """Refuses a `match` that names what the entity doesn't fill. `columns` are the target columns that it does,
    `deferred` those of them that wait for the second pass, `uncompared` those whose text the target spells its own way.
    PlanError names the place."""
    fill = match.fill if isinstance(match.fill, tuple) else ()
    by = [c for rule in match.by for c in rule]
    for place, named in (("by", by), ("fill", list(fill)), ("strictest", list(match.strictest))):
        for name in named:
            if name not in columns:
                raise PlanError(
                    f"{name!r} is no field of the entity{near(name, columns)}", where=f"{here}.match.{place}",
                    advice=f"it has: {listed(columns)}",
                )  # fmt: skip
    late = set(deferred)
    for name in by:
        if name in late:
            raise PlanError(
                f"{name} is filled in the second pass, after rows are matched", where=f"{here}.match.by",
                advice="match by columns that are filled in the first",
            )  # fmt: skip
        if name in uncompared:
            raise PlanError(
                f"{name} ({columns[name].type}) can't be compared by its text", where=f"{here}.match.by",
                advice="match by columns of text, numbers or dates",
            )  # fmt: skip
    check_flags(match.strictest, columns, f"{here}.match.strictest")
