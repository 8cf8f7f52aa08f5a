"""What the load met and the draft could not foresee, and what a person answered since.

A value that no map had places itself, or is asked about; an answer that came after the rows had moved brings in the
rows, and the fields, that waited for it. What rows were loaded by is never decided anew.
"""

from __future__ import annotations

import html
from collections import Counter
from dataclasses import replace

from agent.ladder import Ladder
from agent.valuemaps import place_values
from connectors.protocols import Catalogue
from engine.check import CheckedPlan
from engine.context import Context
from engine.plan import EntityPlan, FieldPlan, Plan
from engine.quarantine import QuarantinedRow, failing_value, quarantined_rows
from engine.redrive import Redrive, check_grown, grown_plan
from engine.retry import Retry
from engine.retry_plan import check_next
from workspace.events import QuarantineSeen
from workspace.experience_store import ExperienceStore

MOST_ROWS = 50_000
"""Rows of one cluster that are looked at: its values show up long before."""
MOST_VALUES = 500
"""Values of one field that are looked at, the first that were met: a field with more is no list of values."""


def recover(
    ctx: Context, wished: Plan, target: Catalogue, ladder: Ladder, experience: ExperienceStore | None
) -> CheckedPlan:
    """Gives rows of the quarantine another chance, where what they wait for is known by now, and brings fields that
    waited for an answer into rows that are loaded; the plan that holds then.

    `wished` is the plan as it would be drafted now. Rows go by `engine.retry` and `engine.redrive`, exactly once."""
    loaded = ctx.checked.plan
    unplaced = Unplaced(loaded)
    for entity, signature in _unmapped(ctx):
        for row in quarantined_rows(ctx.target, ctx.paths.job, entity=entity, signature=signature, limit=MOST_ROWS):
            unplaced.take(row)
    maps = {name: {**values, **loaded.value_maps.get(name, {})} for name, values in wished.value_maps.items()}
    wished = wished.model_copy(update={"value_maps": {**loaded.value_maps, **maps}})
    wished = place(unplaced, wished, target, ladder, experience)
    late = late_plan(loaded, wished)
    if late is not None:
        following = check_next(ctx, late)
        Retry(ctx, checked=following).run()
        ctx = replace(ctx, checked=following)
    plan, names = grown_plan(ctx.checked.plan, wished)
    if not names:
        return ctx.checked
    grown = check_grown(ctx, plan)
    Redrive(replace(ctx, checked=grown), ctx.checked, names).run()
    return grown


def finish_redrive(ctx: Context) -> None:
    """Ends what a run before this one began to bring into loaded rows. `ctx` has the job's last plan."""
    begun = Redrive.going_on(ctx)
    if begun is not None:
        begun.run()


def _unmapped(ctx: Context) -> list[tuple[str, str]]:
    """The clusters of values without a place in a map, by entity and signature."""
    seen = (e.event for e in ctx.workspace.events(types=[QuarantineSeen]) if isinstance(e.event, QuarantineSeen))
    return sorted({(event.entity, event.signature) for event in seen if event.code == "map"})


class Unplaced:
    """Counts the values that no map had, row by row, in bounded memory."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self.counts: dict[tuple[str, str], Counter[str]] = {}

    def take(self, row: QuarantinedRow) -> None:
        """Counts a row in quarantine; other rows than those without a place in a map are nothing here."""
        if row.code != "map" or row.status != "open":
            return
        found = failing_value(row, self._plan)
        field = self._plan.entities[row.entity].fields.get(row.field)
        if found is None or found[1] is None or field is None or field.map is None:
            return
        value = html.unescape(found[1]) if "html_text(" in field.expression else found[1]
        counts = self.counts.setdefault((row.entity, row.field), Counter())
        if value in counts or len(counts) < MOST_VALUES:
            counts[value] += 1


def place(
    unplaced: Unplaced, plan: Plan, target: Catalogue, ladder: Ladder, experience: ExperienceStore | None
) -> Plan:
    """The plan with those values in its maps that the ladder placed; the others are asked about, once."""
    maps = dict(plan.value_maps)
    for (entity, column), counts in unplaced.counts.items():
        planned = plan.entities[entity]
        field, wanted = planned.fields[column], target.tables[planned.to].column(column)
        if field.map is None or wanted is None or not wanted.labels:
            continue
        known = {k: None if v is None else str(v) for k, v in maps[field.map].items()}
        source = field.from_ or column
        made = place_values(ladder, experience, f"{entity}.{column}", source, counts, wanted.labels, known)
        maps[field.map] = dict(sorted({**maps[field.map], **made.values}.items()))
    return plan.model_copy(update={"value_maps": maps})


def late_plan(loaded: Plan, wished: Plan) -> Plan | None:
    """The plan that rows were loaded by, with what bears on rows in quarantine alone: values that its maps lacked, and
    fields that may stay empty now. None where there is nothing of the kind."""
    entities, maps, changed = dict(loaded.entities), dict(loaded.value_maps), False
    for name, entity in loaded.entities.items():
        other = wished.entities.get(name)
        if other is None:
            continue
        fields: dict[str, FieldPlan] = {}
        for column, field in entity.fields.items():
            new = other.fields.get(column)
            if new is None or field.otherwise != "quarantine":
                continue
            if field.map is not None and new.map == field.map:
                added = {k: v for k, v in wished.value_maps[field.map].items() if k not in maps[field.map]}
                if added:
                    maps[field.map], changed = {**maps[field.map], **added}, True
            if new.otherwise == "null":
                fields[column] = field.model_copy(update={"otherwise": "null"})
        if fields:
            entities[name], changed = _with_fields(entity, fields), True
    return loaded.model_copy(update={"entities": entities, "value_maps": maps}) if changed else None


def _with_fields(entity: EntityPlan, fields: dict[str, FieldPlan]) -> EntityPlan:
    return entity.model_copy(update={"fields": {**entity.fields, **fields}})
