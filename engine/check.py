"""Holds a plan against the two systems it speaks of, before any row moves.

What comes out is ordered, complete and safe to execute; what can't be is refused with the place in the
plan and the names that are there. Reads catalogues only, never a row.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from connectors.protocols import Catalogue, Column, Kind, Source, Table
from engine.casts import HASHED_KINDS
from engine.known_names import listed, near
from engine.load_order import load_order
from engine.match_plan import check_match
from engine.merge_plan import check_merge
from engine.names import check_source_names, check_target_names
from engine.plan import EntityPlan, FieldPlan, Plan, Watermark
from engine.syntax import columns_of
from workspace.errors import CatalogueError, PlanError

# It is a folder's name too.
_NAME = re.compile(r"\w[\w .-]{0,99}")


@dataclass(frozen=True)
class CheckedField:
    """One target column and where its value comes from. `deferred`: filled in the second pass."""

    column: Column
    plan: FieldPlan
    deferred: bool
    where: str


@dataclass(frozen=True)
class CheckedEntity:
    """An entity with both of its tables. `id_column` is None where `id: none`."""

    name: str
    plan: EntityPlan
    source: Table
    target: Table
    id_column: Column | None
    fields: tuple[CheckedField, ...]
    unaccounted: tuple[str, ...]

    @property
    def deferred(self) -> tuple[CheckedField, ...]:
        """The fields of the second pass."""
        return tuple(f for f in self.fields if f.deferred)

    @property
    def references(self) -> tuple[str, ...]:
        """The entities whose crosswalk this one needs."""
        return tuple(dict.fromkeys(f.plan.ref for f in self.fields if f.plan.ref))

    @property
    def identity(self) -> tuple[str, ...]:
        """The target columns that name a row: the id's column, or the primary key's with `id: none`."""
        return (self.id_column.name,) if self.id_column else self.target.primary_key

    @property
    def written(self) -> tuple[str, ...]:
        """The target columns that a load writes, the id's first."""
        first = (self.id_column.name,) if self.id_column else ()
        return first + tuple(f.column.name for f in self.fields)


@dataclass(frozen=True)
class CheckedPlan:
    """The plan with its entities in load order."""

    plan: Plan
    entities: tuple[CheckedEntity, ...]

    def entity(self, name: str) -> CheckedEntity:
        """The entity of that name; KeyError when there is none."""
        return next(e for e in self.entities if e.name == name)


def check_plan(plan: Plan, source: Source, target: Catalogue) -> CheckedPlan:
    """The plan, checked. PlanError or CatalogueError (exit code 2) for the first thing that can't be."""

    def verbs(entity: EntityPlan, deferred: bool) -> list[str]:
        return ["insert", "select", *(["update"] if deferred or entity.write == "upsert" or entity.match else [])]

    return _checked(plan, source, target, verbs)


def check_readable(plan: Plan, source: Source, target: Catalogue) -> CheckedPlan:
    """As `check_plan`, for who only reads what was loaded: the user needs no right but to select."""
    return _checked(plan, source, target, lambda entity, deferred: ["select"])


def _checked(
    plan: Plan, source: Source, target: Catalogue, verbs: Callable[[EntityPlan, bool], list[str]]
) -> CheckedPlan:
    """`verbs` are the rights that an entity's table needs, and whether it has deferred references says more."""
    if not plan.entities:
        raise PlanError("the plan has no entities", where="entities", advice="`migrate plan draft` writes some")
    for name in plan.entities:
        if not _NAME.fullmatch(name):
            raise PlanError(
                f"{name[:100]!r} can't be an entity's name", where="entities",
                advice="use 1 to 100 letters, digits, blanks, '-', '_' and '.', with a letter, digit or '_' first",
            )  # fmt: skip
    tables = {name: target_table(name, entity, target) for name, entity in plan.entities.items()}
    _check_matching(plan, target.dialect)
    order, deferred = load_order(plan, tables)
    deferring = {name for name, _ in deferred}
    for name, entity in plan.entities.items():
        _check_privileges(entity, tables[name], verbs(entity, name in deferring), f"entities.{name}.to")
    return CheckedPlan(plan, tuple(_entity(name, plan, source, tables[name], deferred) for name in order))


def _check_matching(plan: Plan, dialect: str) -> None:
    """PlanError for a `match` that can't be together with what else the plan says, or with the target."""
    for name, entity in plan.entities.items():
        if entity.match is None:
            continue
        why = ""
        if dialect != "postgres":
            why = "can be done in a PostgreSQL target only"
        elif entity.id == "none":
            why = "gives rows the id of what is there, and `id: none` has none"
        elif entity.write == "upsert":
            why = "and `write: upsert` both say what becomes of a row that is there"
        elif entity.merge is not None:
            why = "and merge can't stand in one entity"
        if why:
            raise PlanError(f"match {why}", where=f"entities.{name}.match", advice="leave one of them out")


def check_loaded(plan: Plan, target: Catalogue) -> CheckedPlan:
    """The plan held against the target alone, for what was loaded by it: its entities in the order they were loaded.

    The source isn't asked, so `source` has no columns and `unaccounted` is empty: nothing can be loaded by what
    comes back. PlanError where the target has no longer what the plan names, CatalogueError where the user may not
    change or delete in it.
    """
    tables = {name: target_table(name, entity, target) for name, entity in plan.entities.items()}
    order, deferred = load_order(plan, tables)
    entities = []
    for name in order:
        entity, table, here = plan.entities[name], tables[name], f"entities.{name}"
        _check_privileges(entity, table, ["select", "update", "delete"], f"{here}.to")
        fields = tuple(
            CheckedField(
                _target_column(column, entity, table, f"{here}.fields.{column}"), field, (name, column) in deferred,
                f"{here}.fields.{column}",
            )
            for column, field in entity.fields.items()
        )  # fmt: skip
        entities.append(
            CheckedEntity(name, entity, Table(entity.from_, ()), table, _id_column(entity, table, here), fields, ())
        )
    return CheckedPlan(plan, tuple(entities))


def target_table(name: str, entity: EntityPlan, target: Catalogue) -> Table:
    """The table that an entity goes to. PlanError where there is none, or it is a view."""
    table = target.tables.get(entity.to)
    if table is None:
        raise PlanError(
            f"the target has no table {entity.to!r}{near(entity.to, target.tables)}",
            where=f"entities.{name}.to",
            advice=f"the target has: {listed(target.tables)}"
            if target.tables
            else "the target shows this user no tables: create them first, or see in `migrate doctor` which rights it lacks",
        )
    if table.view:
        raise PlanError(f"{entity.to!r} is a view", where=f"entities.{name}.to", advice="load the table behind it")
    if table.engine:
        raise PlanError(
            f"{entity.to!r} is stored by {table.engine}, which can't take back what it wrote", where=f"entities.{name}.to",
            advice=f"ALTER TABLE {entity.to} ENGINE=InnoDB",
        )  # fmt: skip
    return table


def _check_privileges(entity: EntityPlan, table: Table, needed: list[str], where: str) -> None:
    if table.privileges is not None and (missing := [verb for verb in needed if verb not in table.privileges]):
        raise CatalogueError(
            f"no privilege to {' or '.join(missing)} on the target's {entity.to}",
            where=where,
            advice=f"GRANT {', '.join(m.upper() for m in missing)} ON {entity.to} TO the user of the target DSN",
        )


def _entity(name: str, plan: Plan, source: Source, target: Table, deferred: set[tuple[str, str]]) -> CheckedEntity:
    entity = plan.entities[name]
    here = f"entities.{name}"
    try:
        table = source.describe(entity.from_)
    except CatalogueError as error:
        # a file and line say more than the plan's place alone
        place = f", {error.where}" if error.where not in ("", source.dsn) else ""
        raise CatalogueError(error.what, where=f"{here}.from{place}", advice=error.advice) from None
    names = [c.name for c in table.columns]
    check_source_names(names, here)
    for key in entity.key:
        if key not in names:
            raise PlanError(
                f"the source has no column {key!r}{near(key, names)}",
                where=f"{here}.key",
                advice=f"it has: {listed(names)}",
            )
    id_column = _id_column(entity, target, here)
    fields = []
    used: set[str] = set(entity.key)
    for column_name, field in entity.fields.items():
        where = f"{here}.fields.{column_name}"
        column = _target_column(column_name, entity, target, where)
        if column.generated:
            raise PlanError(f"{column_name} is generated by the target", where=where, advice="leave the field out")
        if id_column is not None and column_name == id_column.name:
            raise PlanError(
                f"{column_name} is the id, which `id: {entity.id}` fills", where=where,
                advice="leave the field out, or say `id: none`",
            )  # fmt: skip
        if field.map is not None and field.map not in plan.value_maps:
            raise PlanError(
                f"no value map {field.map!r}{near(field.map, plan.value_maps)}", where=where,
                advice=f"value_maps has: {listed(plan.value_maps) or 'none'}",
            )  # fmt: skip
        if field.map is not None:
            _check_labels(column, field, plan, where)
        if not field.constant:
            used |= _drawn(field.expression, names, where)
        fields.append(CheckedField(column, field, (name, column_name) in deferred, where))
    for condition in entity.conditions.values():
        used |= _drawn(condition, names, f"{here}.where")
    check_target_names([*entity.fields, *([id_column.name] if id_column else [])], entity.to, here)
    _check_required(entity, target, id_column, here)
    if entity.merge is not None:
        check_merge(
            entity.merge, {f.column.name: f.column for f in fields}, [c for n, c in deferred if n == name], here
        )
    if entity.match is not None:
        check_match(
            entity.match, {f.column.name: f.column for f in fields}, [c for n, c in deferred if n == name],
            {f.column.name for f in fields if f.column.kind not in HASHED_KINDS}, here,
        )  # fmt: skip
    for left in entity.unmapped:
        if left not in names:
            raise PlanError(
                f"the source has no column {left!r}{near(left, names)}",
                where=f"{here}.unmapped",
                advice=f"it has: {listed(names)}",
            )
    if entity.deleted is not None and target.column(entity.deleted.column) is None:
        raise PlanError(
            f"the target's {entity.to} has no column {entity.deleted.column!r}", where=f"{here}.deleted.column",
            advice="name the column that marks a row as deleted",
        )  # fmt: skip
    if entity.watermark is not None:
        _check_watermark(entity.watermark, table, f"{here}.watermark")
        used.add(entity.watermark.column)
    unaccounted = tuple(n for n in names if n not in used and n not in entity.unmapped)
    return CheckedEntity(name, entity, table, target, id_column, tuple(fields), unaccounted)


_ORDERED = (Kind.INTEGER, Kind.DECIMAL, Kind.DATE, Kind.DATETIME, Kind.INSTANT, Kind.TEXT)


def _check_watermark(watermark: Watermark, table: Table, where: str) -> None:
    """Text is let in: files have nothing else, and whether it is dates shows when it is read."""
    column = table.column(watermark.column)
    if column is None:
        names = [each.name for each in table.columns]
        raise PlanError(
            f"the source has no column {watermark.column!r}{near(watermark.column, names)}",
            where=where,
            advice=f"it has: {listed(names)}",
        )
    if column.kind not in _ORDERED:
        raise PlanError(
            f"{column.name} is {column.type or column.kind.value}, which doesn't rise with each change",
            where=where,
            advice="name a column of dates or whole numbers, or leave the watermark out",
        )


def _target_column(name: str, entity: EntityPlan, target: Table, where: str) -> Column:
    column = target.column(name)
    if column is None:
        raise PlanError(
            f"the target's {entity.to} has no column {name!r}{near(name, [c.name for c in target.columns])}",
            where=where,
            advice=f"it has: {listed(c.name for c in target.columns)}",
        )
    return column


def _drawn(expression: str, names: list[str], where: str) -> set[str]:
    """The source's columns that an expression draws on, as the source spells them."""
    drawn = columns_of(expression, where)
    return {n for n in names if n in drawn} | {
        n for n in names for d in drawn if d not in names and n.lower() == d.lower()
    }


def _id_column(entity: EntityPlan, target: Table, here: str) -> Column | None:
    if entity.id == "none":
        if missing := [c for c in target.primary_key if c not in entity.fields]:
            raise PlanError(
                f"`id: none` and the primary key's column {missing[0]!r} has no field", where=f"{here}.id",
                advice="map it, or say where the id comes from: keep, uuid5 or sequence",
            )  # fmt: skip
        return None
    if len(target.primary_key) != 1:
        raise PlanError(
            f"the target's {target.name} has {'no primary key' if not target.primary_key else 'a primary key of several columns'}",
            where=f"{here}.id",
            advice="say `id: none` and map the key's columns",
        )
    column = target.column(target.primary_key[0])
    assert column is not None
    if entity.id == "uuid5" and column.kind not in (Kind.UUID, Kind.TEXT):
        raise PlanError(
            f"`id: uuid5` and {column.name} is {column.type}",
            where=f"{here}.id",
            advice="use keep or sequence",
        )
    if entity.id == "sequence" and not column.sequence:
        raise PlanError(
            f"`id: sequence` and {column.name} has no sequence",
            where=f"{here}.id",
            advice="use keep or uuid5",
        )
    if entity.id == "keep" and len(entity.key) != 1:
        raise PlanError(
            f"`id: keep` and the source key has {'several columns' if entity.key else 'no column'}",
            where=f"{here}.id",
            advice="use uuid5 or sequence",
        )
    return column


def _check_required(entity: EntityPlan, target: Table, id_column: Column | None, here: str) -> None:
    for column in target.columns:
        if column.nullable or column.has_default or column.generated or column.identity or column is id_column:
            continue
        if column.name not in entity.fields:
            raise PlanError(
                f"{column.name} of the target's {entity.to} is required and has no field", where=f"{here}.fields",
                advice=f"map {column.name}, or give it a default",
            )  # fmt: skip


def _check_labels(column: Column, field: FieldPlan, plan: Plan, where: str) -> None:
    if column.kind is not Kind.ENUM or field.map is None:
        return
    wrong = [v for v in plan.value_maps[field.map].values() if v is not None and str(v) not in column.labels]
    if wrong:
        raise PlanError(
            f"the value map {field.map!r} gives {str(wrong[0])!r}, which {column.name} ({column.type}) doesn't take",
            where=where,
            advice=f"it takes: {listed(column.labels)}",
        )
