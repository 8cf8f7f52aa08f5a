"""`merge` in a plan: which rows of an entity are one, whose values lead, and what the row that stays holds.

Speaks of target columns, since rows are held against each other as they would be loaded. Touches no data.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Discriminator, Field, Tag, model_validator

from connectors.protocols import Column, Kind
from engine.known_names import listed, near
from engine.plan_shapes import OLDEST_OR_NEWEST, SAME_OR_BY, Flag
from workspace.errors import PlanError

HowAlike = Literal["exact", "name", "email", "phone", "date", "text"]
"""How two values of a column are held against each other."""


def _listed(value: object) -> object:
    """One column where a list of them may stand."""
    return [value] if isinstance(value, str) else value


def _rules(value: object) -> object:
    """One rule, or a column for a rule, where a list of them may stand."""
    listed = _listed(value)
    return [_listed(each) for each in listed] if isinstance(listed, list | tuple) else listed


Rule = Annotated[list[str], Field(min_length=1)]
Columns = Annotated[tuple[str, ...], BeforeValidator(_listed, json_schema_input_type=str | list[str])]
Rules = Annotated[tuple[tuple[str, ...], ...], BeforeValidator(_rules, json_schema_input_type=str | list[str | Rule])]


class Ordered(BaseModel):
    """By a column's value: the `oldest` (lowest) first, or the `newest` (highest). Exactly one of them."""

    model_config = ConfigDict(extra="forbid", frozen=True, json_schema_extra=OLDEST_OR_NEWEST)

    oldest: str | None = None
    newest: str | None = None

    @model_validator(mode="after")
    def _one(self) -> Ordered:
        if (self.oldest is None) == (self.newest is None):
            raise ValueError("needs exactly one of oldest, newest")
        return self

    @property
    def column(self) -> str:
        """The column that orders."""
        return self.oldest or self.newest or ""


def _which(value: object) -> str:
    return "union-word" if isinstance(value, str) else "union-ordered"


_Ordered = Annotated[Ordered, Tag("union-ordered")]
# A discriminator, so that an error tells of what was meant.
Survivor = Annotated[Annotated[Literal["complete"], Tag("union-word")] | _Ordered, Discriminator(_which)]
ValueFrom = Annotated[
    Annotated[Literal["first", "own", "longest", "frequent"], Tag("union-word")] | _Ordered, Discriminator(_which)
]


class MergePlan(BaseModel):
    """How duplicates within an entity are found and merged.

    Rows are one where all columns of a rule of `same` are equal, or where the model that compares the columns of `by`
    is as sure as `threshold`; it looks at rows that agree in a rule of `block` only. Rows that hold different values in a
    column of `apart` are never one. `survivor` says whose values lead, `fields` where a column's value comes from
    otherwise, `together` which columns come from one row, `strictest` which value of a flag wins wherever it stands.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, json_schema_extra=SAME_OR_BY)

    same: Rules = ()
    by: dict[str, HowAlike] = {}
    block: Rules = ()
    threshold: float = Field(0.95, ge=0.5, lt=1, strict=True)
    apart: Columns = ()
    survivor: Survivor = "complete"
    fields: dict[str, ValueFrom] = {}
    together: Rules = ()
    strictest: dict[str, Flag] = {}

    @model_validator(mode="after")
    def _complete(self) -> MergePlan:
        if not self.same and not self.by:
            raise ValueError("needs same, or by and block")
        if bool(self.by) != bool(self.block):
            raise ValueError("by needs block, and block needs by")
        if any(not rule for rule in (*self.same, *self.block, *self.together)):
            raise ValueError("a rule of same, block or together needs a column")
        grouped = [column for group in self.together for column in group]
        if twice := sorted({c for c in grouped if grouped.count(c) > 1 or c in self.fields or c in self.strictest}):
            raise ValueError(f"together says where {twice[0]} comes from, and nothing else may")
        return self


def check_merge(merge: MergePlan, columns: Mapping[str, Column], deferred: Iterable[str], here: str) -> None:
    """Refuses a `merge` that names what the entity doesn't fill. `columns` are the target columns that it does, `deferred`
    those of them that wait for the second pass. PlanError names the place."""
    late = set(deferred)
    ordered = [each for each in (merge.survivor, *merge.fields.values()) if isinstance(each, Ordered)]
    for place, named in (
        ("same", [c for rule in merge.same for c in rule]),
        ("by", list(merge.by)),
        ("block", [c for rule in merge.block for c in rule]),
        ("apart", list(merge.apart)),
        ("survivor", [each.column for each in ordered]),
        ("fields", list(merge.fields)),
        ("together", [c for group in merge.together for c in group]),
        ("strictest", list(merge.strictest)),
    ):
        for name in named:
            if name not in columns:
                raise PlanError(
                    f"{name!r} is no field of the entity{near(name, columns)}", where=f"{here}.merge.{place}",
                    advice=f"it has: {listed(columns)}",
                )  # fmt: skip
            if name in late:
                raise PlanError(
                    f"{name} is filled in the second pass, after rows are merged", where=f"{here}.merge.{place}",
                    advice="leave it out: of references that wait, the first that there is counts",
                )  # fmt: skip
    check_flags(merge.strictest, columns, f"{here}.merge.strictest")


def check_flags(names: Iterable[str], columns: Mapping[str, Column], where: str) -> None:
    """PlanError at `where` for a column that isn't true or false: of others nobody can say which value is strictest."""
    for name in names:
        if columns[name].kind is not Kind.BOOLEAN:
            raise PlanError(
                f"{name} ({columns[name].type}) isn't true or false", where=where, advice="name flags only, such as an opt-out"
            )  # fmt: skip
