"""The rows that a preview shows, as pairs of what the source has and what the target would hold."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from cli.views.preview import Origins
from cli.views.text import one_line, visible
from engine.plan import FieldPlan, Plan
from engine.preview import EntityPreview, Preview, RowShown

_KINDS = {
    "first": "one of the first rows", "random": "a row by chance", "changed": "values change on the way", "worst": "would be quarantined",
}  # fmt: skip
_LONGEST = 300


@dataclass(frozen=True)
class Pair:
    """One field of a row: source columns with their values, and the target's. `how` tells what the plan does. A `missing`
    value isn't there at all; `after` None with it is a field of a row that isn't loaded."""

    columns: tuple[str, ...]
    before: tuple[str | None, ...]
    field: str
    after: str | None
    how: str
    changed: bool
    failed: bool = False


@dataclass(frozen=True)
class Record:
    """One row, by its source key. `quarantined` rows have a reason, and no value in the target."""

    entity: str
    key: str
    why_shown: str
    quarantined: bool
    reason: str
    pairs: tuple[Pair, ...]

    @property
    def changed(self) -> bool:
        """True where any value is another in the target."""
        return any(pair.changed for pair in self.pairs)


def records(preview: Preview, plan: Plan, made_of: Origins) -> list[Record]:
    """Every row shown, once each, entities in load order; of a row that is shown for several reasons the first."""
    found: dict[tuple[str, str], Record] = {}
    for entity in preview.entities:
        for row in entity.rows:
            found.setdefault((entity.entity, row.key), _record(entity, row, plan, made_of))
    return list(found.values())


def _record(entity: EntityPreview, row: RowShown, plan: Plan, made_of: Origins) -> Record:
    fields = plan.entities[entity.entity].fields
    origins = made_of[entity.entity]
    quarantined = row.after is None
    failing = row.reason.partition(":")[0] if quarantined else ""
    pairs = []
    for name, planned in sorted(fields.items(), key=lambda item: item[0] != failing):
        columns = tuple(column for column in origins[name] if column in row.before)
        before = tuple(row.before[column] for column in columns)
        after = (row.after or {}).get(name)
        if quarantined or after is not None or any(before):
            changed = not quarantined and not planned.constant and after not in before
            pairs.append(
                Pair(
                    tuple(map(one_line, columns)), tuple(map(_shown, before)), one_line(name), _shown(after), _how(planned),
                    changed, name == failing,
                )
            )  # fmt: skip
    return Record(
        one_line(entity.entity), visible(row.key, 80), _KINDS.get(row.kind, row.kind), quarantined, one_line(row.reason),
        tuple(pairs),
    )  # fmt: skip


def _how(planned: FieldPlan) -> str:
    """What the plan says of a field, in a line."""
    return "; ".join(_said(planned))


def _said(planned: FieldPlan) -> Iterator[str]:
    if planned.constant:
        yield f"always {one_line(str(planned.default))}"
    else:
        yield one_line(planned.expression if planned.sql is not None else f"{planned.from_} as it is")
    if planned.map:
        yield f"through the value map {one_line(planned.map)}"
    if planned.ref:
        yield f"the new id of that row of {one_line(planned.ref)}; {planned.missing} where it is missing"
    if planned.otherwise != "quarantine":
        yield f"else {planned.otherwise}"


def _shown(value: str | None) -> str | None:
    return None if value is None else visible(value, _LONGEST)
