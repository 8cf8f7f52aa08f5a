"""References that wait: their table's own place in the target is still for a person to say.

To decide such a field before would leave it empty for good, since what was decided once is not decided again.
"""

from __future__ import annotations

from agent.structure import Relation
from connectors.protocols import Table


class Unplaced:
    """The source tables whose place is an open question, with the target tables that it may be."""

    def __init__(self) -> None:
        self._tables: dict[str, tuple[str, frozenset[str]]] = {}

    def add(self, name: str, question: str, candidates: frozenset[str]) -> None:
        """A source table whose place is asked for."""
        self._tables[name] = question, candidates

    def question(self, relation: Relation, table: Table, column: str) -> str | None:
        """The question that a reference of the target waits for; None where it leads elsewhere, or nothing is open."""
        pointed = {f.referred_table for f in table.foreign_keys if f.columns == (column,)}
        for reference in relation.references:
            question, candidates = self._tables.get(reference.table, ("", frozenset()))
            if pointed & candidates:
                return question
        return None

    def columns(self, relation: Relation, question: str) -> list[str]:
        """The source columns that may lead there, once that question is answered."""
        tables = {table for table, (asked, _) in self._tables.items() if asked == question}
        return [r.column for r in relation.references if r.table in tables]
