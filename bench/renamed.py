"""The next customer with nearly the same system: a scenario over again, with other rows, and more than half of its columns renamed.

Renamed as people do it when they set such a system up anew: with the table's name or a letter before the name, an ending
behind it, its words the other way round, or without its vowels. What `workspace.signature` takes for the same name is no
other name.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields

import sqlglot
from sqlglot import exp

from bench.plan_score import Schema
from bench.scenarios import Scenario
from engine.plan import EntityPlan, FieldPlan, Plan
from workspace.errors import UsageError
from workspace.signature import column_pattern

SHARE = 0.6
"""How many of a table's columns get another name."""

_ENDINGS = ("_new", "_txt", "_val", "_old")


@dataclass(frozen=True)
class Renamed(Scenario):
    """A scenario whose columns have other `names`, by table and name before."""

    names: Mapping[str, Mapping[str, str]]

    @property
    def statements(self) -> tuple[str, ...]:
        """What makes the old system of the scenario into this one, once its rows are in."""
        return tuple(
            f"ALTER TABLE {_quoted(table)} RENAME COLUMN {_quoted(before)} TO {_quoted(after)}"
            for table, columns in self.names.items()
            for before, after in columns.items()
        )

    def gold(self) -> Plan:
        """The plan of a careful person, in the new names."""
        plan = super().gold()
        entities = {name: self._renamed(entity) for name, entity in plan.entities.items()}
        return plan.model_copy(update={"entities": entities})

    def _renamed(self, entity: EntityPlan) -> EntityPlan:
        names = self.names.get(entity.from_, {})
        where = entity.where
        if isinstance(where, dict):
            where = {reason: _in_names(condition, names) for reason, condition in where.items()}
        elif where is not None:
            where = _in_names(where, names)
        return entity.model_copy(
            update={
                "key": tuple(names.get(column, column) for column in entity.key),
                "where": where,
                "fields": {column: _field(field, names) for column, field in entity.fields.items()},
                "unmapped": {names.get(column, column): why for column, why in entity.unmapped.items()},
            }
        )


def check_renamable(scenario: Scenario) -> None:
    """UsageError for a scenario whose gold plan or faults are written in names that aren't changed with the columns."""
    selects = [name for name, entity in scenario.gold().entities.items() if entity.is_select]
    if scenario.faults or selects:
        why = f"its plan reads {selects[0]} by a SELECT" if selects else "its faults are SQL in the old names"
        raise UsageError(
            f"{scenario.name} has no second job under other names: {why}", advice="name others: migrate eval --list"
        )


def renamed(scenario: Scenario, schema: Schema, seed: int = 1) -> Renamed:
    """The scenario with other names; `schema` holds its columns by table. The same seed gives the same names."""
    draw = random.Random(f"names of {scenario.name} {seed}")
    names: dict[str, dict[str, str]] = {}
    for table, columns in schema.items():
        taken = {column.casefold() for column in columns}
        chosen = draw.sample(list(columns), round(len(columns) * SHARE))
        names[table] = {}
        for column in sorted(chosen):
            after = _another(draw, table, column, taken)
            taken.add(after.casefold())
            names[table][column] = after
    return Renamed(**{f.name: getattr(scenario, f.name) for f in fields(Scenario)}, names=names)


def _another(draw: random.Random, table: str, column: str, taken: set[str]) -> str:
    words = re.split(r"[ _]", column)
    short = column[0] + re.sub("[aeiouäöüAEIOUÄÖÜ]", "", column[1:])
    made = [
        f"{table}_{column}",
        f"{table[0].lower()}_{column}",
        column + draw.choice(_ENDINGS),
        "_".join(reversed(words)),
        *([short] if len(short) > 3 else []),
    ]
    draw.shuffle(made)
    before = column_pattern(column)
    return next(name for name in made if column_pattern(name) != before and name.casefold() not in taken)


def _field(field: FieldPlan, names: Mapping[str, str]) -> FieldPlan:
    if field.from_ is not None:
        return field.model_copy(update={"from_": names.get(field.from_, field.from_)})
    if field.sql is not None:
        return field.model_copy(update={"sql": _in_names(field.sql, names)})
    return field


def _in_names(expression: str, names: Mapping[str, str]) -> str:
    tree = sqlglot.parse_one(expression, dialect="duckdb")
    for column in list(tree.find_all(exp.Column)):
        if column.name in names:
            column.set("this", exp.to_identifier(names[column.name], quoted=True))
    return tree.sql(dialect="duckdb")


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
