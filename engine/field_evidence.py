"""What a plan's fields rest on, all at once: who decided each, how sure, what came next, and the shapes of the values that
it draws on. Out of the log, which holds shapes and no record values.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from engine.plan import EntityPlan, FieldPlan, Plan
from engine.syntax import columns_of
from workspace.belief import Belief
from workspace.errors import ExpressionError
from workspace.events import DecisionMade
from workspace.log import Workspace
from workspace.signature import shape
from workspace.state import state_at

MOST_SHAPES = 3
_WHICH_COLUMN = ("field", "required")
_BESIDE = ("format", "country", "value_map", "remedy")


@dataclass(frozen=True)
class FieldEvidence:
    """Of one field. `rung` is who decided which column it comes from, "" where nobody did in this job, and `sure` from 0
    to 1; `next_best` is the candidate after the one that was taken, with its weight, or None. `beside` are the rungs of
    what else was decided on it, by kind; `shapes` those of the values that it draws on, the commonest first."""

    rung: str
    sure: float
    next_best: tuple[str, float] | None
    beside: Mapping[str, str]
    shapes: tuple[str, ...]


def field_evidence(workspace: Workspace, plan: Plan) -> dict[tuple[str, str], FieldEvidence]:
    """Of each field of the plan, by entity and column; fields of which the log tells nothing are left out."""
    belief = state_at(workspace).belief
    made: dict[str, dict[str, DecisionMade]] = {}
    for entry in workspace.events(types=[DecisionMade]):
        if isinstance(entry.event, DecisionMade):
            made.setdefault(entry.event.subject, {})[entry.event.kind] = entry.event
    found = {}
    for name, entity in plan.entities.items():
        origins = _Origins(entity, belief)
        for column, planned in entity.fields.items():
            # a map's decision is on the map, which goes by its field
            decided = {**made.get(f"{name}_{column}", {}), **made.get(f"{name}.{column}", {})}
            evidence = _evidence(decided, tuple(origins.shapes(planned)))
            if evidence.rung or evidence.beside or evidence.shapes:
                found[name, column] = evidence
    return found


def _evidence(decided: Mapping[str, DecisionMade], shapes: tuple[str, ...]) -> FieldEvidence:
    made = next((decided[kind] for kind in _WHICH_COLUMN if kind in decided), None)
    beside = {kind: decided[kind].rung for kind in _BESIDE if kind in decided}
    if made is None:
        return FieldEvidence("", 0.0, None, beside, shapes)
    return FieldEvidence(made.rung, made.confidence, _next_best(made), beside, shapes)


def _next_best(made: DecisionMade) -> tuple[str, float] | None:
    others = [each for each in made.candidates if each.get("answer") != made.choice]
    best = max(others, key=_weight, default=None)
    return None if best is None else (str(best.get("label") or best.get("answer")), _weight(best))


def _weight(candidate: Mapping[str, Any]) -> float:
    weight = candidate.get("weight")
    return float(weight) if isinstance(weight, int | float) else 0.0


class _Origins:
    """Where the columns of an entity's `from` lie in the source, as the survey profiled it."""

    def __init__(self, entity: EntityPlan, belief: Belief) -> None:
        self._belief = belief
        self._table = "" if entity.is_select else entity.from_
        self._select = _parsed(entity.from_) if entity.is_select else None

    def shapes(self, planned: FieldPlan) -> Iterator[str]:
        """The commonest shapes of the first column that the field draws on, no two alike."""
        if planned.constant:
            return
        try:
            columns = columns_of(planned.expression)
        except ExpressionError:
            return
        profile = self._profile(columns[0]) if columns else None
        seen: set[str] = set()
        for found, _ in (profile or {}).get("shapes", ()):
            told = shape(str(found))  # once more, whoever wrote the log
            if told not in seen:
                seen.add(told)
                yield told
            if len(seen) == MOST_SHAPES:
                return

    def _profile(self, column: str) -> Mapping[str, Any] | None:
        table, name = (self._table, column) if self._select is None else _origin(self._select, column)
        of_table = self._belief.profile("source", table) if table else None
        columns = of_table.get("columns", {}) if of_table else {}
        known = {each.casefold(): each for each in columns}
        return columns.get(name) or columns.get(known.get(name.casefold(), ""))


def _parsed(sql: str) -> exp.Select | None:
    try:
        tree = sqlglot.parse_one(sql, read="mysql" if "`" in sql else None)
    except SqlglotError:
        return None
    return tree if isinstance(tree, exp.Select) else None


def _origin(select: exp.Select, column: str) -> tuple[str, str]:
    """Table and column behind a column of the SELECT; two empty texts where that isn't plain."""
    wanted = [each for each in select.selects if each.alias_or_name.casefold() == column.casefold()]
    stars = [each for each in select.selects if each.is_star]
    sources = {name: each for each in select.find_all(exp.Table, exp.Subquery) if (name := each.alias_or_name)}
    if wanted:
        inner = wanted[0].find(exp.Column)
        if inner is None or not (inner.table or len(sources) == 1):
            return "", ""
        source, name = sources.get(inner.table or next(iter(sources))), inner.name
    elif stars and isinstance(stars[0], exp.Column):
        source, name = sources.get(stars[0].table), column
    else:
        source, name = (next(iter(sources.values())), column) if stars and len(sources) == 1 else (None, "")
    if isinstance(source, exp.Subquery) and isinstance(source.this, exp.Select):
        return _origin(source.this, name)
    if not isinstance(source, exp.Table):
        return "", ""
    return ".".join(part.name for part in source.parts), name
