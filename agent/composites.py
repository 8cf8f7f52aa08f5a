"""Values that more than one column makes up: a full name from its parts, a street from its lines.

Offered as candidates beside the single columns. Taking a value apart (a name into first and last) loses its
certainty and is left to a person.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from agent.conversions import clean_text, quoted
from agent.lexicon import column_meaning, words
from agent.structure import Origin, Relation
from connectors.protocols import Column, Kind, Table


@dataclass(frozen=True)
class Composite:
    """A candidate made of several columns; see `agent.match.FieldCandidate`."""

    answer: str
    label: str
    columns: tuple[str, ...]
    plan: dict[str, object]
    strength: float
    evidence: dict[str, object] = field(default_factory=dict)


def composite_candidates(relation: Relation, table: Table, column: Column) -> list[Composite]:
    """What can be put together for a target column; empty where nothing can."""
    if column.kind in (Kind.INTEGER, Kind.DECIMAL):
        return _duration(relation, table, column)
    if column.kind is not Kind.TEXT:
        return []
    wanted = column_meaning(column.name, table.name)
    out = []
    if "full_name" in wanted.core or wanted.core == {"name"}:
        first, last = _find(relation, "first_name"), _find(relation, "last_name")
        whole = _find(relation, "full_name") or _find(relation, "name")
        if first and last and not whole:
            out.append(_joined((first, last), "' '", 0.97, "a first and a last name, and no column of the whole"))
    if "street" in wanted.core and not wanted.numbers:
        lines = _lines(relation, wanted.place)
        if len(lines) > 1:
            out.append(_joined(tuple(lines), "', '", 0.96, "the lines of one address"))
    return out


def _duration(relation: Relation, table: Table, column: Column) -> list[Composite]:
    """Minutes from a column of hours and one of minutes."""
    if "minutes" not in words(column.name) or "duration" not in column_meaning(column.name, table.name).core:
        return []
    parts: dict[str, Origin] = {}
    for origin in relation.columns:
        for unit in ("hours", "minutes"):
            if unit in words(origin.name) and "duration" in column_meaning(origin.name, relation.main).core:
                parts[unit] = origin
    if len(parts) != 2 or not all(p.profile.trait("integer") > 0.9 for p in parts.values()):
        return []
    hours, minutes = (f"coalesce(cast({quoted(parts[u].name)} as integer), 0)" for u in ("hours", "minutes"))
    names = (parts["hours"].name, parts["minutes"].name)
    return [
        Composite(
            f"joined:{'+'.join(names)}", " * 60 + ".join(names), names, {"sql": f"{hours} * 60 + {minutes}"}, 0.97,
            {"why": "hours and minutes of one duration", "of": list(names)},
        )
    ]  # fmt: skip


def _joined(origins: tuple[Origin, ...], separator: str, strength: float, why: str) -> Composite:
    parts = []
    for origin in origins:
        cleaned = clean_text(origin.name, origin.profile)
        bare = cleaned == quoted(origin.name)
        parts.append(f"nullif(trim({cleaned}), '')" if bare or not cleaned.startswith("nullif(") else cleaned)
    names = tuple(o.name for o in origins)
    sql = f"nullif(concat_ws({separator}, {', '.join(parts)}), '')"
    return Composite(
        f"joined:{'+'.join(names)}", " + ".join(names), names, {"sql": sql}, strength, {"why": why, "of": list(names)}
    )


def _find(relation: Relation, concept: str) -> Origin | None:
    for origin in relation.columns:
        meaning = column_meaning(origin.name, relation.main)
        if meaning.core == {concept} and not meaning.qualifiers and origin.profile.filled:
            return origin
    return None


def _lines(relation: Relation, place: str) -> list[Origin]:
    """A street's columns that differ only by a number, in order, of the place asked for or the preferred one."""
    by_place: dict[str, list[tuple[int, Origin]]] = {}
    for origin in relation.columns:
        meaning = column_meaning(origin.name, relation.main)
        if "street" in meaning.core and origin.profile.filled:
            number = int(next(iter(meaning.numbers), "1"))
            by_place.setdefault(meaning.place, []).append((number, origin))
    order = [place] if place else ["primary", "", "billing", "mailing", "work"]
    for each in order:
        if each in by_place:
            numbers = [n for n, _ in by_place[each]]
            return [o for _, o in sorted(by_place[each], key=lambda item: item[0])] if len(set(numbers)) == len(numbers) else []
    return []
