"""A sample of the loaded rows, transformed anew from the stage and compared with the target field by field.

Checksums tell that the target holds what was loaded; this tells that what it holds is what the plan makes of the
source, in kinds too whose text no checksum is over. Reads only.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

import duckdb
import pyarrow as pa

from connectors.protocols import Column
from connectors.records import Fill
from engine.check import CheckedEntity, CheckedPlan, check_readable
from engine.context import Context
from engine.loaded import loaded_entity
from engine.match_rows import fill_rules
from engine.match_sample import KEPT, filled_value
from engine.plan import parse_plan
from engine.prepare import Preparer
from engine.query import LOADED
from engine.retried_rows import stage_rows, write_stage_rows
from engine.retry_plan import changed_fields
from engine.stager import recorded_parts
from engine.transform import execute, fetch
from workspace.events import PlanChanged

SAMPLE_ROWS = 100
"""Rows of an entity that are compared, unless told otherwise."""

_SHOWN = 3


@dataclass(frozen=True)
class Sampled:
    """A row to compare: its number in the stage, its source key, its id in the target; whether the checksum of what it
    holds, and that of its deferred references, are still those of the load; and whether the target held it before, and
    it took over what the plan's `fill` says."""

    row: int
    key: str
    new_id: str
    unchanged: bool
    references_unchanged: bool
    matched: bool = False


@dataclass(frozen=True)
class Compared:
    """How many rows were compared. `problems` are lines for a person, one a differing field, each naming batch,
    source key and column, never a whole value; `notes` are facts that are no fault."""

    rows: int = 0
    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def choose_sample(duck: duckdb.DuckDBPyConnection, size: int, *, matched: bool = False) -> list[Sampled]:
    """At most `size` rows of the entity whose tables `staged`, `carried`, `held` and `kept` verification has made: of
    those that this job wrote and the target still has, and that no sync left as they were edited, the first by a hash
    of their source key, so the same each time. Rows that went into one with others are left out: what that holds comes
    from all of them. With `matched`, the plan matches rows: those that the target held before are told from the others."""
    there = "c.replaced = 't'" if matched else "false"
    found = execute(
        duck,
        "SELECT s.n, s.key, c.new_id, c.found_hash = c.target_hash, c.found_reference IS NOT DISTINCT FROM c.reference_hash, "
        f"{there} FROM (SELECT key, min(n) AS n FROM staged GROUP BY key HAVING count(*) = 1 AND bool_and(wanted) AND min(n) IS NOT NULL) s "
        "JOIN carried c ON c.old_id = s.key WHERE c.own = 't' AND c.found_hash IS NOT NULL "
        "AND c.new_id NOT IN (SELECT new_id FROM carried WHERE merged = 't') "
        "AND s.key NOT IN (SELECT key FROM held) AND s.key NOT IN (SELECT old_id FROM kept) ORDER BY md5(s.key), s.key "
        f"LIMIT {int(size)}",
    )
    return [Sampled(*row) for row in found]


@dataclass
class _Made:
    """What the stage gives for a row: why it wouldn't be loaded now, or the text of each column."""

    refused: str = ""
    values: dict[str, str | None] = field(default_factory=dict)


def compare_sample(ctx: Context, preparer: Preparer, entity: CheckedEntity, sample: Sequence[Sampled]) -> Compared:
    """Transforms the rows anew by the plan version that moved each, and compares each field with what the target
    holds, as the target itself spells both. The crosswalks of all entities referred to must be in `preparer`."""
    batches = _batches(ctx, entity, sample)
    made: dict[int, _Made] = {}
    for version, rows in _by_version(ctx, entity, batches).items():
        made |= _made_anew(ctx, preparer, _checked(ctx, version, entity.name), entity.name, batches, rows)
    problems = [
        f"batch {batches[each.row]}: source key {each.key} is loaded, and the plan now makes of it: {made[each.row].refused}"
        for each in sample
        if made[each.row].refused
    ]
    compared = [each for each in sample if not made[each.row].refused]
    columns = _columns(entity)
    given = [[made[each.row].values[column.name] for column in columns] for each in compared]
    identity = [column for name in entity.identity if (column := entity.target.column(name)) is not None]
    late: dict[str, int] = defaultdict(int)
    held = ctx.target.beside(entity.target, identity, [each.new_id for each in compared], columns, given)
    before = _before(ctx, entity, [each.key for each in compared if each.matched], columns)
    rules = fill_rules(entity) | fill_rules(entity, deferred=True) if before else {}
    late_filled = {f.column.name for f in entity.deferred}
    own_id = None if entity.id_column is None else entity.id_column.name
    for each, fields in zip(compared, held, strict=True):
        for n, (column, (wanted, found)) in enumerate(zip(columns, fields, strict=True)):
            if each.key in before:
                if column.name == own_id:
                    continue  # it has the id that it had
                rule, kept, own = rules.get(column.name, Fill("keep")), before[each.key][n], wanted
                wanted = filled_value(rule, own, kept)
                if column.name in late_filled and rule.how == "empty" and None not in (own, found):
                    continue  # filled by what it held in the second pass, which somebody may have changed since the first
                if wanted == kept != found:
                    problems.append(f"batch {batches[each.row]}: source key {each.key}, column {column.name}: {KEPT}")
                    continue
            if wanted == found:
                continue
            if found is None and _came_later(entity, each, column):
                late[column.name] += 1
                continue
            problems.append(
                f"batch {batches[each.row]}: source key {each.key}, column {column.name}: {difference(found, wanted)}"
            )
    notes = [
        f"{column}: {count:,} rows of the sample refer to rows that came later or were refused, and are empty as they were left"
        for column, count in late.items()
    ]
    return Compared(len(sample), tuple(problems), tuple(notes))


def _before(
    ctx: Context, entity: CheckedEntity, keys: Sequence[str], columns: Sequence[Column]
) -> dict[str, list[str | None]]:
    """What each matched row held before, by source key, in the columns' order."""
    return ctx.target.values_before(loaded_entity(entity), keys, columns) if keys else {}


def difference(found: str | None, wanted: str | None) -> str:
    """How two texts differ, told without telling them: from which character, a few of them, and the lengths."""
    if found is None:
        return f"is NULL, and the stage gives a value of {len(wanted or ''):,} characters"
    if wanted is None:
        return f"holds a value of {len(found):,} characters, and the stage gives NULL"
    same = next(
        (i for i, (a, b) in enumerate(zip(found, wanted, strict=False)) if a != b), min(len(found), len(wanted))
    )
    held, given = (repr(text[same : same + _SHOWN]) for text in (found, wanted))
    return (
        f"from character {same + 1:,} on it holds {held} and the stage gives {given} "
        f"({len(found):,} and {len(wanted):,} characters in all)"
    )


def _columns(entity: CheckedEntity) -> list[Column]:
    """The columns to compare: all that the plan fills, and the id where it follows from the source."""
    first = [entity.id_column] if entity.id_column is not None and entity.plan.id != "sequence" else []
    return [*first, *(f.column for f in entity.fields)]


def _came_later(entity: CheckedEntity, row: Sampled, column: Column) -> bool:
    """True where a reference was left empty when the row was loaded, by the checksum from then, and now leads to a
    row: one that left the quarantine since, or was loaded by another job."""
    checked = next((f for f in entity.fields if f.column.name == column.name), None)
    if checked is None or checked.plan.ref is None or checked.plan.missing != "null":
        return False
    return row.references_unchanged if checked.deferred else row.unchanged


def _batches(ctx: Context, entity: CheckedEntity, sample: Sequence[Sampled]) -> dict[int, int]:
    """The batch of each row, by its number in the stage."""
    found: dict[int, int] = {}
    start = 0
    for part in recorded_parts(ctx.workspace, entity.name):
        found |= {each.row: part.part for each in sample if start <= each.row < start + part.rows}
        start += part.rows
    return found


def _by_version(ctx: Context, entity: CheckedEntity, batches: dict[int, int]) -> dict[int, list[int]]:
    """The rows by the plan version that moved them, or that brought them in from the quarantine."""
    moved = {row.batch: row.plan_version for row in ctx.target.ledger() if row.entity == entity.name and row.step == 1}
    retried = {row.row: row.plan_version for row in ctx.target.retried_rows(entity.name)}
    found: dict[int, list[int]] = defaultdict(list)
    for row, batch in batches.items():
        found[retried.get(row, moved.get(batch, ctx.checked.plan.version))].append(row)
    return found


def _checked(ctx: Context, version: int, entity: str) -> CheckedPlan:
    """The plan of that version, as far as it says something else of the entity than the job's last one does."""
    for entry in ctx.workspace.events(types=[PlanChanged]):
        event = entry.event
        if isinstance(event, PlanChanged) and event.version == version != ctx.checked.plan.version:
            plan = parse_plan(event.plan, f"plan version {version}")
            if entity in changed_fields(plan, ctx.checked.plan):
                return check_readable(plan, ctx.source, ctx.target.catalogue())
    return ctx.checked


def _made_anew(
    ctx: Context, preparer: Preparer, checked: CheckedPlan, name: str, batches: dict[int, int], rows: list[int]
) -> dict[int, _Made]:
    """What the stage gives for these rows, with the values that a person edited in them."""
    entity = checked.entity(name)
    edits = {row.row: row.edited for row in ctx.target.retried_rows(name)}
    by_batch: dict[int, list[int]] = defaultdict(list)
    for row in rows:
        by_batch[batches[row]].append(row)
    folder = ctx.paths.stage / name
    tables = [stage_rows(folder, batch, numbers, edits) for batch, numbers in sorted(by_batch.items())]
    staged = write_stage_rows(preparer.folder(entity) / "sample.parquet", pa.concat_tables(tables))
    other = preparer if checked is preparer.checked else Preparer(ctx.paths, checked, preparer.name)
    try:
        other.crosswalks.update(preparer.crosswalks)
        query = other.query(entity)
        for statement in query.setup:
            execute(other.duck, statement)
        first = fetch(other.duck, query.over(staged))
        second = fetch(other.duck, other.second_pass(entity).over(staged)) if entity.deferred else None
    finally:
        if other is not preparer:
            other.close()
    found: dict[int, _Made] = {}
    for row in first.to_pylist():
        if row["_ph_outcome"] != LOADED:
            reason = (
                f"{row['_ph_field']}: {row['_ph_reason']}" if row["_ph_field"] else f"excluded: {row['_ph_reason']}"
            )
            found[row["_ph_n"]] = _Made(refused=reason)
            continue
        values = {f.column.name: row[f.column.name] for f in entity.fields}
        if entity.id_column is not None:
            values[entity.id_column.name] = row["_ph_id"]
        found[row["_ph_n"]] = _Made(values=values)
    for row in second.to_pylist() if second is not None else []:
        found[row["_ph_n"]].values.update({f.column.name: row[f.column.name] for f in entity.deferred})
    return found
