"""A person who knows the right answers: what the gold plan says to each question that a job asks.

Answers as a person would, by a candidate where one is right, else in words of their own. Never answers what the gold
plan doesn't know.
"""

from __future__ import annotations

import re

from agent.kinds_apart import entity_name
from agent.questions import Question
from bench.gold_kinds import answer_kinds, told_kinds
from bench.plan_score import Schema, base_table, reads
from bench.scenarios import Scenario
from engine.plan import EntityPlan, FieldPlan, Plan

NONE = "none"


class GoldPerson:
    """Answers questions of a scenario's job. `schema` holds the source's columns by table."""

    def __init__(self, scenario: Scenario, schema: Schema) -> None:
        self._scenario, self._schema = scenario, schema
        self.gold: Plan = scenario.gold()
        self.by_table: dict[str, list[EntityPlan]] = {}
        for entity in self.gold.entities.values():
            for name in (base_table(entity), entity_name(base_table(entity), entity.to)):
                self.by_table.setdefault(name, []).append(entity)

    def answer(self, question: Question) -> object | None:
        """What `agent.questions.answer_question` takes, or None where nobody could say."""
        table, _, column = question.subject.partition(".")
        if question.kind == "entity":
            return self._goes_to(table, question)
        if question.kind == "kinds":
            return answer_kinds([str(c["answer"]) for c in question.candidates], self.by_table.get(table, []))
        entity = self._entity(table, column)
        if question.kind == "zone":
            return self._scenario.zone
        if question.kind == "country":
            return self._scenario.country or None
        if entity is None:
            return NONE if NONE in _answers(question) or question.kind in ("field", "filter") else None
        if question.kind == "key":
            return ",".join(entity.key)
        if question.kind == "filter":
            return question.candidates[0]["answer"] if entity.where else NONE
        field = entity.fields.get(column)
        if question.kind == "values":
            return self._values(question, field)
        if question.kind == "remedy":
            return "null" if field is not None and field.otherwise == "null" else "quarantine"
        return self._field(question, entity, field)

    def forced_is_right(self, question: Question) -> bool:
        """True where the answer that the evidence favours would have been right: nobody had to be asked."""
        if question.kind == "values":
            wanted = self.answer(question)
            nearest = {str(v["value"]): v["nearest"] for v in question.evidence.get("values", [])}
            return isinstance(wanted, dict) and all(str(nearest.get(v)) == str(label) for v, label in wanted.items())
        best = max(question.candidates, key=lambda c: float(c["weight"]), default=None)
        return best is not None and best["answer"] == self.answer(question)

    def _goes_to(self, table: str, question: Question) -> str:
        """The kinds in a table that the gold plan tells apart by a column; else, of several tables that its rows go to,
        the one that is offered and has most fields."""
        if kinds := told_kinds(self.by_table.get(table, [])):
            return kinds
        offered = [e for e in self.by_table.get(table, ()) if e.to in _answers(question)]
        return max(offered, key=lambda e: len(e.fields)).to if offered else NONE

    def _entity(self, table: str, column: str) -> EntityPlan | None:
        """What the gold plan makes of a table; of several entities, the one with that field, or with most fields."""
        entities = sorted(self.by_table.get(table, ()), key=lambda e: (column not in e.fields, -len(e.fields)))
        return entities[0] if entities else None

    def _field(self, question: Question, entity: EntityPlan, field: FieldPlan | None) -> object | None:
        if field is None:
            return NONE
        if field.constant:
            return str(field.default)
        if question.kind == "format":  # its candidates are expressions, not columns
            return f"sql:{self._in_words(field)}"
        wanted = reads(field.expression, entity, self._schema)
        for candidate in question.candidates:
            named = re.sub(r"^(column|joined|part|selected):", "", str(candidate["answer"]))
            columns = frozenset(
                c for name in named.split(":")[0].split("+") for c in reads(f'"{name}"', entity, self._schema)
            )
            if columns and columns == wanted:
                return str(candidate["answer"])
        return f"sql:{self._in_words(field)}"

    def _in_words(self, field: FieldPlan) -> str:
        """A field as one expression; a value map is written out, and a value that it doesn't have stays as it is."""
        if field.map is None:
            return field.expression
        known = self.gold.value_maps[field.map].items()
        cases = [f"when {field.expression} = {_literal(k)} then {_literal(v)}" for k, v in known]
        return f"case {' '.join(cases)} else {field.expression} end"

    def _values(self, question: Question, field: FieldPlan | None) -> dict[str, str] | None:
        if field is None or field.map is None:
            return None
        known = {str(k).strip().casefold(): v for k, v in self.gold.value_maps[field.map].items()}
        asked = [str(v["value"]) for v in question.evidence.get("values", [])]
        otherwise = "null" if field.otherwise == "null" else "quarantine"
        said = {v: known.get(v.strip().casefold(), otherwise) for v in asked}
        return {v: "null" if label is None else str(label) for v, label in said.items()}


def _literal(value: object) -> str:
    return "null" if value is None else "'" + str(value).replace("'", "''") + "'"


def _answers(question: Question) -> set[str]:
    return {str(c["answer"]) for c in question.candidates} | {NONE}
