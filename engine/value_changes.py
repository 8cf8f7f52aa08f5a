"""What a plan does to values: for each field made of one source column, in how many rows the target's text is another
than the source's, by the shapes of both, with an example of each.

Reads the stage alone: what was staged is transformed anew, by one plan version, without its references.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from engine.check import CheckedEntity, CheckedPlan
from engine.compile import stage_columns
from engine.context import Context, Progress
from engine.prepare import Preparer
from engine.query import LOADED, identifier, literal, read_parts
from engine.stage import part_path
from engine.stager import first_parts
from engine.syntax import columns_of
from engine.transform import execute, shape_sql
from workspace.errors import InterruptedJobError

ROWS_LOOKED_AT = 200_000
"""Of each entity the first rows of the stage, in whole parts: as many as it takes to reach so many."""

_KINDS = 3


@dataclass(frozen=True)
class Kind:
    """Rows in which a value changed alike: both texts have these shapes. The example is the first of them; a side is
    None where the value is NULL."""

    rows: int
    before: str | None
    after: str | None


@dataclass(frozen=True)
class ValueChange:
    """One field: of `looked_at` rows that the plan loads, how many hold another text than the source (`rows`), the
    most frequent kinds first and at most three."""

    entity: str
    column: str
    source: str
    expression: str
    looked_at: int
    rows: int
    kinds: tuple[Kind, ...]


def value_changes(ctx: Context, *, most_rows: int = ROWS_LOOKED_AT) -> Iterator[ValueChange]:
    """The fields that change anything, entity by entity. InterruptedJobError when asked to stop."""
    plain = CheckedPlan(ctx.checked.plan, tuple(_without_references(each) for each in ctx.checked.entities))
    preparer = Preparer(ctx.paths, plain, "report")
    try:
        for entity in plain.entities:
            yield from _of_entity(ctx, preparer, entity, most_rows)
    finally:
        preparer.close()


def _without_references(entity: CheckedEntity) -> CheckedEntity:
    """A reference becomes an id of the target: nothing that a person compares, and dear to look up."""
    return replace(entity, fields=tuple(field for field in entity.fields if not field.plan.ref))


def _of_entity(ctx: Context, preparer: Preparer, entity: CheckedEntity, most_rows: int) -> Iterator[ValueChange]:
    fields = [(field, names[0]) for field in entity.fields if len(names := _drawn_on(field.plan.expression)) == 1]
    texts = {name for name, kind in stage_columns(entity).items() if kind == "VARCHAR"}
    fields = [(field, name) for field, name in fields if name in texts]
    outs, staged, read = [], [], 0
    for part in first_parts(ctx.workspace, entity.name) if fields else []:
        if read >= most_rows:
            break
        if ctx.stop():
            raise InterruptedJobError("interrupted; no report was written", advice="run it again")
        outs.append(preparer.transform(entity, part)[0])
        staged.append(part_path(ctx.paths.stage / entity.name, part.part))
        read += part.rows
        ctx.progress(Progress("report", entity.name, read, None))
    if not outs:
        return
    both = f"{read_parts(outs)} t JOIN {read_parts(staged)} s ON s._ph_n = t._ph_n WHERE t._ph_outcome = {LOADED}"
    pairs = [_texts(field.column.name, column) for field, column in fields]
    counted = ", ".join(f"count(*) FILTER ({before} IS DISTINCT FROM {after})" for before, after in pairs)
    looked_at, *changed = execute(preparer.duck, f"SELECT count(*), {counted} FROM {both}")[0]
    for (field, column), (before, after), rows in zip(fields, pairs, changed, strict=True):
        if rows:
            kinds = execute(preparer.duck, _kinds_sql(both, before, after))
            plan = field.plan
            told = f"{plan.expression}, by the value map {plan.map}" if plan.map else plan.expression
            yield ValueChange(
                entity.name, field.column.name, column, told, looked_at, rows, tuple(_kind(row) for row in kinds)
            )


def _drawn_on(expression: str) -> list[str]:
    return columns_of(expression) if expression else []


def _texts(target: str, source: str) -> tuple[str, str]:
    """SQL for a value's text before and after."""
    return f"CAST(s.{identifier(source)} AS VARCHAR)", f"CAST(t.{identifier(target)} AS VARCHAR)"


def _kinds_sql(both: str, before: str, after: str) -> str:
    # an empty text and NULL have no letters to tell them apart
    nothing = literal("\0")
    shapes = ", ".join(f"coalesce({shape_sql(side)}, {nothing})" for side in (before, after))
    return (
        f"SELECT count(*), arg_min({{v: {before}}}, t._ph_n).v, arg_min({{v: {after}}}, t._ph_n).v "
        f"FROM {both} AND {before} IS DISTINCT FROM {after} GROUP BY {shapes} ORDER BY 1 DESC, min(t._ph_n) LIMIT {_KINDS}"
    )


def _kind(row: tuple[Any, ...]) -> Kind:
    rows, before, after = row
    return Kind(rows, before, after)
