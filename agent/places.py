"""Where each source table's rows go: one target table, several where it holds several kinds of record, or nowhere yet."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

from agent.conversions import quoted_for
from agent.entities import TableCandidate, match_links, match_tables
from agent.kinds import Kinds
from agent.kinds_apart import Part, pointed_at, set_apart
from agent.kinds_asked import decide_kinds, kinds_belief, known_kinds
from agent.kinds_found import Apart, find_kinds
from agent.ladder import Ladder
from agent.structure import Role, Structure
from agent.survey import Survey
from agent.tables import table_matter
from agent.unplaced import Unplaced
from connectors.protocols import Source
from workspace.experience_store import ExperienceStore
from workspace.log import Workspace


@dataclass
class Places:
    """`to` gives each entity its target table: a source table, or one of the `kinds` that are set apart in one.
    `structure` has those in their table's place. `unsorted` names the question that a table of several kinds waits for."""

    structure: Structure
    to: dict[str, str] = field(default_factory=dict)
    kinds: dict[str, Part] = field(default_factory=dict)
    unplaced: Unplaced = field(default_factory=Unplaced)
    unsorted: dict[str, str] = field(default_factory=dict)


def place_tables(
    source: Source,
    found: Survey,
    structure: Structure,
    ladder: Ladder,
    workspace: Workspace,
    experience: ExperienceStore | None,
) -> Places:
    """Decides it, table by table; links last, by what they join."""
    places = Places(structure)
    candidates = match_tables(found, structure)
    likely = {name: [c.table for c in those] for name, those in candidates.items()}
    for name, ways in find_kinds(source, found, structure, likely).items():
        if _set_apart(places, source, found, ladder, workspace, name, ways):
            del candidates[name]
    for name, those in candidates.items():
        _place(places, source, found, ladder, experience, name, those)
    for name, those in match_links(found, places.structure, places.to).items():
        if those:
            _place(places, source, found, ladder, experience, name, those)
    return places


def _set_apart(
    places: Places,
    source: Source,
    found: Survey,
    ladder: Ladder,
    workspace: Workspace,
    name: str,
    ways: tuple[Apart, ...],
) -> bool:
    """Sets a table's kinds apart, or has them wait; False where all rows are of one kind after all."""
    called = tuple(dict.fromkeys(t for way in ways for t in way.kinds.targets))
    places.structure = pointed_at(source, found, places.structure, name, called)
    matter, kinds, waits = decide_kinds(ladder, name, ways, found)
    if waits:
        places.unplaced.add(name, matter.id, frozenset(called))
        places.unsorted[name] = matter.id
    elif kinds is not None:
        _take_kinds(places, source, found, name, kinds)
        workspace.record(kinds_belief(name, kinds, ways))
    return waits or kinds is not None


def _take_kinds(places: Places, source: Source, found: Survey, name: str, kinds: Kinds) -> None:
    parts, places.structure = set_apart(source, found, places.structure, name, kinds, partial(quoted_for, source))
    places.kinds |= parts
    places.to |= {entity: part.to for entity, part in parts.items()}


def _place(
    places: Places, source: Source, found: Survey, ladder: Ladder, experience: ExperienceStore | None, name: str,
    candidates: tuple[TableCandidate, ...],
) -> None:  # fmt: skip
    """Gives a table its place; a person may answer with several kinds that nothing showed."""
    matter = table_matter(name, candidates, found.tables[name], experience)
    decision = ladder.decide(matter)
    if decision.answer is not None and matter.option(decision.answer) is None:
        kinds = known_kinds(decision.answer, name, found)
        if kinds is None or places.structure.roles[name] is not Role.ENTITY:
            places.unplaced.add(name, matter.id, frozenset(c.table for c in candidates))
            places.unsorted[name] = matter.id
            return
        places.structure = pointed_at(source, found, places.structure, name, kinds.targets)
        _take_kinds(places, source, found, name, kinds)
    elif decision.answer is not None:
        places.to[name] = decision.answer
    elif decision.open:
        places.unplaced.add(name, matter.id, frozenset(c.table for c in candidates))
