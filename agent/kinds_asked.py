"""The decision on a table of several kinds of record: taken by rule where values and what is filled say the same over all
rows, else put to a person. No model decides it: a row in the wrong table is not seen by anybody.
"""

from __future__ import annotations

from agent.kinds import LEAVE, Kinds, read_kinds
from agent.kinds_found import Apart
from agent.ladder import Ladder
from agent.matter import Matter, Option
from agent.survey import Survey
from workspace.errors import UsageError
from workspace.events import BeliefHeld


def decide_kinds(
    ladder: Ladder, table: str, ways: tuple[Apart, ...], found: Survey
) -> tuple[Matter, Kinds | None, bool]:
    """The matter, the kinds to set apart (None: all rows are of one kind), and whether a person has to say first."""
    matter = kinds_matter(table, ways, found)
    decision = ladder.decide(matter)
    if decision.answer is None:
        return matter, None, decision.open
    kinds = known_kinds(decision.answer, table, found)
    return matter, kinds, kinds is None


def kinds_matter(table: str, ways: tuple[Apart, ...], found: Survey) -> Matter:
    """Where each kind of row of one source table goes."""
    best = ways[0]
    options = tuple(Option(w.kinds.text, _label(w), w.weight, w.evidence) for w in ways)
    text = (
        f"{table} seems to hold several kinds of record, told apart by {best.kinds.column}. Which table of the target does "
        f"each kind go to? None: all rows are of one kind. In words of your own: {best.kinds.column}: VALUE=TABLE; VALUE={LEAVE}"
    )
    evidence: dict[str, object] = {"rows": found.tables[table].rows, "told_by": best.kinds.column}
    return Matter(
        "kinds", table, text, options, none_weight=0.0, evidence=evidence, holds=(table,), stakes="high", free=True
    )


def kinds_belief(table: str, kinds: Kinds, ways: tuple[Apart, ...]) -> BeliefHeld:
    """What is held true of the table now, with the counts it rests on."""
    way = next((w for w in ways if w.kinds.column == kinds.column), None)
    evidence: dict[str, object] = {"told_by": kinds.column, **(way.evidence if way is not None else {})}
    return BeliefHeld(table, f"holds rows for {', '.join(kinds.targets)}", evidence, 0.99)


def _label(way: Apart) -> str:
    said = [
        f"{v} ({way.rows.get(v, 0):,} rows) to {t}" if t else f"{v} ({way.rows.get(v, 0):,} rows) stay behind"
        for v, t in way.kinds.places
    ]
    return f"by {way.kinds.column}: " + ", ".join(said)


def known_kinds(answer: str, table: str, found: Survey) -> Kinds | None:
    """The kinds of an answer; None where it names a column or a table that isn't there."""
    try:
        kinds = read_kinds(answer)
    except UsageError:
        return None
    there = kinds.column in found.tables[table].columns and all(t in found.target.tables for t in kinds.targets)
    return kinds if there else None
