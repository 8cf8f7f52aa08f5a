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
    if wanted.core in ({"first_name"}, {"last_name"}) and not (
        _find(relation, "first_name") or _find(relation, "last_name")
    ):
        out += _part_of_name(relation, next(iter(wanted.core)))
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
            if unit in words(origin.name) and "duration" in column_meaning(origin.name, relation.holds).core:
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


def _part_of_name(relation: Relation, part: str) -> list[Composite]:
    """The first or last name out of a whole one. `Last, First` is told by its comma; `First Last` may have the
    family name anywhere, so that is for a person to say."""
    whole = _find(relation, "full_name")
    if whole is None or not whole.profile.top:
        return []
    total = sum(n for _, n in whole.profile.top)
    commas = sum(n for v, n in whole.profile.top if v.count(",") == 1) / total
    single = sum(n for v, n in whole.profile.top if "," not in v and " " not in v) / total  # a last name alone
    cleaned = clean_text(whole.name, whole.profile).removeprefix("nullif(trim(").removesuffix("), '')")
    if commas >= 0.5 and commas + single >= 0.9:
        number = 1 if part == "last_name" else 2
        sql, strength, why = (
            f"nullif(trim(split_part({cleaned}, ',', {number})), '')",
            0.95,
            f"{commas:.0%} are written last, first",
        )
    else:
        pattern = "'\\S+$'" if part == "last_name" else "'^\\S+'"
        sql, strength, why = (
            f"nullif(regexp_extract(trim({cleaned}), {pattern}), '')",
            0.5,
            "cut at a blank, which may be wrong",
        )
    label = f"{whole.name}, the {part.replace('_', ' ')} in it"
    return [
        Composite(
            f"part:{whole.name}:{part}", label, (whole.name,), {"sql": sql}, strength, {"why": why, "of": [whole.name]}
        )
    ]


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
        meaning = column_meaning(origin.name, relation.holds)
        if meaning.core == {concept} and not meaning.qualifiers and origin.profile.filled:
            return origin
    return None


def _lines(relation: Relation, place: str) -> list[Origin]:
    """A street's columns that differ only by a number, in order, of the place asked for or the preferred one."""
    by_place: dict[str, list[tuple[int, Origin]]] = {}
    for origin in relation.columns:
        meaning = column_meaning(origin.name, relation.holds)
        if "street" in meaning.core and origin.profile.filled:
            number = int(next(iter(meaning.numbers), "1"))
            by_place.setdefault(meaning.place, []).append((number, origin))
    order = [place] if place else ["primary", "", "billing", "mailing", "work"]
    for each in order:
        if each in by_place:
            numbers = [n for n, _ in by_place[each]]
            return (
                [o for _, o in sorted(by_place[each], key=lambda item: item[0])]
                if len(set(numbers)) == len(numbers)
                else []
            )
    return []
