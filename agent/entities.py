"""Which source table's rows go to which target table, as ranked candidates with evidence.

By what the tables are called and by how many of their telling columns find a partner. Links are matched by
what they join, once the tables on both sides have a place.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from agent.conversions import convert
from agent.lexicon import column_meaning, nearness, table_meaning, table_nearness
from agent.meanings import readable, table_meanings
from agent.structure import Relation, Role, Structure
from agent.survey import Survey
from connectors.protocols import Kind, Table

_COMMON = {"created_at", "modified_at", "created_by", "modified_by", "owner", "deleted", "id", "description", "name"}


@dataclass(frozen=True)
class TableCandidate:
    """A target table that a source table's rows may go to; `confidence` given the rivals."""

    table: str
    strength: float
    confidence: float = 0.0
    evidence: dict[str, object] = field(default_factory=dict)


def match_tables(found: Survey, structure: Structure) -> dict[str, tuple[TableCandidate, ...]]:
    """For each entity table of the source, the target tables it may go to, best first. Links are left out."""
    out: dict[str, tuple[TableCandidate, ...]] = {}
    for name, relation in structure.relations.items():
        if structure.roles[name] is not Role.ENTITY:
            continue
        scored = []
        for target in found.target.tables.values():
            named = table_nearness(name, target.name)
            covered, looked = _coverage(relation, target)
            strength = 0.62 * named + 0.38 * covered if looked else named * 0.8
            if named == 0 and covered < 0.5:
                strength = min(strength, 0.15)
            fits = _key_fits(found, name, target)
            if not fits:
                strength *= 0.5  # a table of codes that are their own keys: reference data, not records
            evidence: dict[str, object] = {
                "names": round(named, 2),
                "columns_that_fit": round(covered, 2),
                "of": looked,
            }
            if not fits:
                evidence["key_fits"] = False
            scored.append(TableCandidate(target.name, round(strength, 3), evidence=evidence))
        scored.sort(key=lambda c: (-c.strength, c.table))
        shown = [c for c in scored[:6] if c.strength >= 0.2]
        if not shown and not readable(table_meaning(name)):
            shown = scored[:6]  # a name that says nothing: a person is asked
        out[name] = tuple(_confident(c, scored) for c in shown)
    return out


def match_links(
    found: Survey, structure: Structure, entities: Mapping[str, str]
) -> dict[str, tuple[TableCandidate, ...]]:
    """For each link, the target tables whose foreign keys join the same two; `entities` is what is settled."""
    out: dict[str, tuple[TableCandidate, ...]] = {}
    for name, relation in structure.relations.items():
        if structure.roles[name] is not Role.LINK:
            continue
        ours = {entities[r.table] for r in relation.references if r.table in entities}
        columns = [c for c in relation.columns if c.through]
        scored = []
        for target in found.target.tables.values():
            theirs = {f.referred_table for f in target.foreign_keys} & set(entities.values())
            if not theirs or not theirs <= ours or target.name in entities.values():
                continue
            keyed = set(target.primary_key)
            own = [c for c in target.columns if not any(c.name in f.columns for f in target.foreign_keys)]
            if len(theirs) >= 2 and keyed <= {c for f in target.foreign_keys for c in f.columns}:
                strength, why = 0.97, "joins the same two tables"
            elif len(theirs) == 1 and columns and len(own) <= 8:
                fits = max((_fit(relation, target, c.name) for c in own if c.name in keyed), default=0.0)
                strength, why = 0.2 + 0.77 * fits, "adds the linked table's columns to the same parent"
            else:
                continue
            evidence: dict[str, object] = {"why": why, "joins": sorted(theirs)}
            scored.append(TableCandidate(target.name, round(strength, 3), evidence=evidence))
        scored.sort(key=lambda c: (-c.strength, c.table))
        out[name] = tuple(_confident(c, scored) for c in scored[:6])
    return out


def _fit(relation: Relation, target: Table, column: str) -> float:
    wanted = target.column(column)
    if wanted is None:
        return 0.0
    best = 0.0
    meanings = table_meanings(target)
    for origin in relation.columns:
        near = nearness(column_meaning(origin.name), meanings[column]).score
        conversion = convert(origin.name, origin.profile, wanted, target)
        linked = 0.3 if origin.through and (near or origin.profile.trait("email") > 0.8) else 0.0
        best = max(best, min(1.0, near * conversion.fit + linked))
    return best


def _key_fits(found: Survey, name: str, target: Table) -> bool:
    """False where the target's key is a short text that the source's keys don't fit in."""
    column = target.column(target.primary_key[0]) if len(target.primary_key) == 1 else None
    profile = found.tables[name]
    if column is None or column.kind is not Kind.TEXT or len(profile.key) != 1:
        return True
    return column.length is None or profile.columns[profile.key[0]].longest <= column.length


def _coverage(relation: Relation, target: Table) -> tuple[float, int]:
    """The share of the target's telling columns that some column of the relation suits, and how many there are."""
    scores = []
    for column in target.columns:
        wanted = column_meaning(column.name, target.name)
        if column.generated or wanted.core <= _COMMON or column.name in target.primary_key:
            continue
        best = 0.0
        for origin in relation.columns:
            near = nearness(column_meaning(origin.name, relation.holds), wanted)
            if near.score < 0.5 and not near.conflict:
                continue
            best = max(best, near.score * (1.0 if near.score > 0.95 else 0.85))
        scores.append(best)
    return (sum(scores) / len(scores) if scores else 0.0), len(scores)


def _confident(candidate: TableCandidate, scored: list[TableCandidate]) -> TableCandidate:
    rival = max((c.strength for c in scored if c.table != candidate.table), default=0.0)
    margin = candidate.strength - rival
    confidence = min(0.99, 0.5 + margin * 1.6) if candidate.strength >= 0.5 else 0.4 * candidate.strength
    if not candidate.evidence.get("key_fits", True):
        confidence = min(confidence, 0.3)
    elif candidate.evidence.get("names") == 1.0 and margin > 0.2:
        confidence = max(confidence, 0.95)  # called the same, and nothing else is
    elif candidate.strength < 0.62:
        confidence = min(confidence, 0.9)
    return TableCandidate(candidate.table, candidate.strength, round(max(0.0, confidence), 3), candidate.evidence)
