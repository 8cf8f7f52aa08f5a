"""The actions: typed, closed edits of the plan, each with preconditions that code checks.

An edit is a value: it says why it can't be done in this state, or gives the plan that it makes. Nothing here
decides which edit is right, and nothing touches a database.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Protocol

from connectors.protocols import Catalogue
from engine.plan import EntityPlan, FieldPlan, Plan


@dataclass(frozen=True)
class World:
    """What preconditions look at: the columns each entity may draw on, and the target."""

    columns: Mapping[str, frozenset[str]]
    target: Catalogue


class Action(Protocol):
    """One edit of the plan."""

    @property
    def name(self) -> str:
        """What it is called in the log."""
        ...

    def refused(self, plan: Plan, world: World) -> str:
        """Why it can't be done now, for whoever chose it to act on; empty where it can."""
        ...

    def apply(self, plan: Plan) -> Plan:
        """The plan after it."""
        ...


@dataclass(frozen=True)
class AddEntity:
    """A new entity without fields. `settings` are its keys besides `fields` and `unmapped`."""

    entity: str
    settings: dict[str, Any]
    name = "add_entity"

    def refused(self, plan: Plan, world: World) -> str:
        """An entity of that name, or a target table that isn't there."""
        if self.entity in plan.entities:
            return f"there is an entity {self.entity} already"
        if self.settings.get("to") not in world.target.tables:
            return f"the target has no table {self.settings.get('to')}"
        return ""

    def apply(self, plan: Plan) -> Plan:
        """The plan with the entity."""
        entity = EntityPlan.model_validate({**self.settings, "fields": {}, "unmapped": {}})
        return plan.model_copy(update={"entities": {**plan.entities, self.entity: entity}})


@dataclass(frozen=True)
class SetSource:
    """What an entity is read from: a table or a SELECT."""

    entity: str
    source: str
    name = "set_source"

    def refused(self, plan: Plan, world: World) -> str:
        """An entity that isn't there."""
        return _entity(plan, self.entity)

    def apply(self, plan: Plan) -> Plan:
        """The plan with the entity's `from` changed."""
        return _changed(plan, self.entity, {"from_": self.source})


@dataclass(frozen=True)
class SetWhere:
    """Which rows of an entity are carried over; the rest is counted as excluded."""

    entity: str
    where: str | dict[str, str]
    name = "set_where"

    def refused(self, plan: Plan, world: World) -> str:
        """An entity that isn't there."""
        return _entity(plan, self.entity)

    def apply(self, plan: Plan) -> Plan:
        """The plan with the entity's `where` changed."""
        return _changed(plan, self.entity, {"where": self.where})


@dataclass(frozen=True)
class MapField:
    """Where a target column's values come from; takes the place of what the plan said."""

    entity: str
    field: str
    origin: dict[str, Any]
    draws_on: tuple[str, ...] = ()
    name = "map_field"

    def refused(self, plan: Plan, world: World) -> str:
        """Columns or value maps that aren't there, or a column that the server fills."""
        if why := _entity(plan, self.entity):
            return why
        table = world.target.tables.get(plan.entities[self.entity].to)
        column = table.column(self.field) if table else None
        if column is None:
            return f"the target has no column {self.field}"
        if column.generated:
            return f"{self.field} is filled by the server"
        missing = [c for c in self.draws_on if c not in world.columns.get(self.entity, frozenset())]
        if missing:
            return f"the source has no column {missing[0]}"
        if self.origin.get("map") and self.origin["map"] not in plan.value_maps:
            return f"there is no value map {self.origin['map']}"
        return ""

    def apply(self, plan: Plan) -> Plan:
        """The plan with the field."""
        fields = {**plan.entities[self.entity].fields, self.field: FieldPlan.model_validate(self.origin)}
        return _changed(plan, self.entity, {"fields": fields})


@dataclass(frozen=True)
class LeaveField:
    """A target column that gets no value from us; why is in the log."""

    entity: str
    field: str
    why: str
    name = "leave_field"

    def refused(self, plan: Plan, world: World) -> str:
        """A column that the target requires."""
        if why := _entity(plan, self.entity):
            return why
        table = world.target.tables.get(plan.entities[self.entity].to)
        column = table.column(self.field) if table else None
        if column is not None and not column.nullable and not column.has_default:
            return f"{self.field} is required"
        return ""

    def apply(self, plan: Plan) -> Plan:
        """The plan without the field."""
        fields = {n: f for n, f in plan.entities[self.entity].fields.items() if n != self.field}
        return _changed(plan, self.entity, {"fields": fields})


@dataclass(frozen=True)
class LeaveColumns:
    """Source columns that go nowhere, each with a reason."""

    entity: str
    reasons: dict[str, str]
    name = "leave_columns"

    def refused(self, plan: Plan, world: World) -> str:
        """An entity that isn't there."""
        return _entity(plan, self.entity)

    def apply(self, plan: Plan) -> Plan:
        """The plan with the columns accounted for."""
        return _changed(plan, self.entity, {"unmapped": dict(self.reasons)})


@dataclass(frozen=True)
class SetValueMap:
    """A value map, new or grown."""

    map: str
    values: dict[str, Any]
    name = "set_value_map"

    def refused(self, plan: Plan, world: World) -> str:
        """Nothing stands against it."""
        return ""

    def apply(self, plan: Plan) -> Plan:
        """The plan with the map."""
        return plan.model_copy(update={"value_maps": {**plan.value_maps, self.map: dict(self.values)}})


@dataclass(frozen=True)
class SetOtherwise:
    """What a value does that can't be converted: `quarantine` or `null`."""

    entity: str
    field: str
    otherwise: str
    name = "set_otherwise"

    def refused(self, plan: Plan, world: World) -> str:
        """A field that isn't there, or null for a column that takes none."""
        if why := _entity(plan, self.entity):
            return why
        if self.field not in plan.entities[self.entity].fields:
            return f"the plan has no field {self.field}"
        table = world.target.tables.get(plan.entities[self.entity].to)
        column = table.column(self.field) if table else None
        if self.otherwise == "null" and column is not None and not column.nullable:
            return f"{self.field} takes no NULL"
        return ""

    def apply(self, plan: Plan) -> Plan:
        """The plan with the field's `otherwise` changed."""
        entity = plan.entities[self.entity]
        origin = {
            **entity.fields[self.field].model_dump(by_alias=True, exclude_unset=True),
            "otherwise": self.otherwise,
        }
        return _changed(plan, self.entity, {"fields": {**entity.fields, self.field: FieldPlan.model_validate(origin)}})


@dataclass(frozen=True)
class HoldEntity:
    """Takes an entity out of what is carried over now, until the questions named are answered."""

    entity: str
    questions: tuple[str, ...]
    name = "hold_entity"

    def refused(self, plan: Plan, world: World) -> str:
        """An entity that isn't there."""
        return _entity(plan, self.entity)

    def apply(self, plan: Plan) -> Plan:
        """The plan without the entity and without the references to it."""
        entities = {}
        for name, entity in plan.entities.items():
            if name == self.entity:
                continue
            fields = {n: f for n, f in entity.fields.items() if f.ref != self.entity}
            entities[name] = entity if len(fields) == len(entity.fields) else _with(entity, {"fields": fields})
        return plan.model_copy(update={"entities": entities})


def arguments(action: Action) -> dict[str, Any]:
    """The action's fields as the log keeps them."""
    return asdict(action)  # type: ignore[call-overload,no-any-return]


def _entity(plan: Plan, entity: str) -> str:
    return "" if entity in plan.entities else f"the plan has no entity {entity}"


def _with(entity: EntityPlan, update: dict[str, Any]) -> EntityPlan:
    return entity.model_copy(update=update)


def _changed(plan: Plan, name: str, update: dict[str, Any]) -> Plan:
    return plan.model_copy(update={"entities": {**plan.entities, name: _with(plan.entities[name], update)}})
