"""Matching: which source column a target column's values come from, as ranked candidates with evidence.

Names are held side by side by meaning, values by what they look like, references by where their values are
found. Columns are matched for a whole table at once: what is the best for one column is not offered as a
rival to another. It ranks and explains; whether a candidate is sure enough is the ladder's to say.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from agent.composites import composite_candidates
from agent.conversions import Conversion, convert, quoted
from agent.lexicon import Meaning, column_meaning, nearness
from agent.lexicon_words import MEANINGS
from agent.meanings import readable, relation_meanings, table_meanings, understood
from agent.profile import Reference
from agent.remembered import Met, Remembered
from agent.rivals import FieldCandidate, rank, weigh
from agent.structure import Origin, Relation
from connectors.protocols import Column, Kind, Table

_ROLES = frozenset({"owner", "created_by", "modified_by", "reports_to", "parent", "primary"})
_FLOOR = 0.2  # candidates below are not shown
_SHOWN = 6


@dataclass(frozen=True)
class FieldMatch:
    """The candidates of one target column, best first; `required` where the target takes no row without it.

    `none_weight` is how likely no source column is right, given also the columns that nobody can read. `recalled` says
    that jobs before took a column for wrong that looks right."""

    column: Column
    candidates: tuple[FieldCandidate, ...]
    required: bool
    none_weight: float = 0.0
    recalled: bool = False

    @property
    def best(self) -> FieldCandidate | None:
        """The best candidate, or None."""
        return self.candidates[0] if self.candidates else None


def match_fields(
    relation: Relation,
    table: Table,
    entities: Mapping[str, str],
    *,
    skip: frozenset[str] = frozenset(),
    alike: Callable[[str, str], float] = lambda a, b: 0.0,
    remembered: Remembered | None = None,
) -> tuple[FieldMatch, ...]:
    """The candidates of every writable column of `table`, drawn from `relation`.

    `entities` maps source tables to the target tables their rows go to. `skip` are columns filled otherwise
    (the id, a constant). `alike` gives the share of rows in which two columns hold the same;
    `remembered` is what jobs before taught of the relation's table."""
    raw: dict[str, list[FieldCandidate]] = {}
    weak: dict[str, list[FieldCandidate]] = {}
    met: dict[str, dict[str, Met]] = {}
    names = [origin.name for origin in relation.columns]
    wanted = [c for c in table.columns if not c.generated and c.name not in skip]
    country = _country_of(relation)
    meanings, wanted_meanings = relation_meanings(relation), table_meanings(table)
    for column in wanted:
        foreign = next((f for f in table.foreign_keys if f.columns == (column.name,)), None)
        if foreign is not None and foreign.referred_table in entities.values():
            found = _references(relation, table, column, foreign.referred_table, entities)
        elif foreign is not None and column.kind is not Kind.TEXT:
            found = []  # ids of rows that nobody carries over
        else:
            found = [
                _candidate(meanings, wanted_meanings[column.name], table, column, origin, country)
                for origin in relation.columns
            ]
            found += [
                FieldCandidate(c.answer, c.label, c.columns, c.plan, c.strength, evidence=c.evidence)
                for c in composite_candidates(relation, table, column)
            ]
        met[column.name] = remembered.of(table, column, names) if remembered is not None else {}
        found = [_recalled(candidate, met[column.name]) for candidate in found]
        found.sort(key=lambda c: (-c.strength, c.answer))
        raw[column.name] = [c for c in found if c.strength >= _FLOOR]
        weak[column.name] = [c for c in found if 0.05 <= c.strength < _FLOOR]
    for column in wanted:  # a required column is asked about with whatever there is
        if not raw[column.name] and not column.nullable and not column.has_default and not column.identity:
            raw[column.name] = weak[column.name][:4]
    settled = weigh(raw, wanted_meanings, alike)
    claimed = {c.columns[0] for found in settled.values() for c in found[:1] if c.confidence >= 0.6}
    out = []
    for column in wanted:
        shown = settled[column.name][:_SHOWN]
        best = shown[0].confidence if shown else 0.0
        pointing = any(f.columns == (column.name,) for f in table.foreign_keys)
        if pointing:
            hidden = _hidden_reference(relation, claimed)
        else:
            found_hidden = _hidden(relation, meanings, table, column, claimed, understood(wanted_meanings[column.name]))
            found_hidden = {n: h for n, h in found_hidden.items() if n not in met[column.name]}
            hidden = max(found_hidden.values(), default=0.0)
            if len(shown) < 3 and hidden > 0.1:
                shown += _unread(relation, table, column, country, found_hidden, {c.answer for c in shown})
        required = not column.nullable and not column.has_default and not column.identity
        none = round((1 - best) * (1 - hidden), 3)
        against = any(each.against for each in met[column.name].values())
        out.append(FieldMatch(column, tuple(shown), required, none, against))
    return tuple(out)


def _recalled(candidate: FieldCandidate, met: Mapping[str, Met]) -> FieldCandidate:
    """The candidate with what jobs before taught of its column, where its values allow it."""
    said = met.get(candidate.columns[0]) if len(candidate.columns) == 1 else None
    if said is None or float(str(candidate.evidence.get("values_fit", 1.0))) < 0.5:
        return candidate
    if "against" in candidate.evidence and not said.against:  # names that exclude each other
        return candidate
    kept = candidate.strength * (1 - said.share)
    strength = kept if said.against else min(0.99, 1 - (1 - candidate.strength) * (1 - said.share))
    evidence = {**candidate.evidence, "met_as_wrong" if said.against else "met": said.told}
    return replace(candidate, strength=strength, evidence=evidence, unaided=candidate.strength)


def _hidden(
    relation: Relation, meanings: Mapping[str, Meaning], table: Table, column: Column, claimed: set[str], wanted: bool
) -> dict[str, float]:
    """The chance that a column is wanted though its name, or the target's, says nothing (`wanted`: the target's
    is understood), by column: more where its values would be telling, or where both are plain numbers or dates."""
    out: dict[str, float] = {}
    for origin in relation.columns:
        profile = origin.profile
        if origin.name in claimed or ">" in origin.through or not profile.filled or profile.distinct <= 1:
            continue
        conversion = convert(origin.name, profile, column, table)
        if not readable(meanings[origin.name]):
            out[origin.name] = 0.06 * conversion.fit + 0.4 * conversion.evidence * conversion.fit
        if not wanted and conversion.fit > 0.7 and not meanings[origin.name].core & _KEPT:
            out[origin.name] = 0.2
        elif (
            column.kind in _PLAIN
            and conversion.fit > 0.9
            and profile.distinct > 5
            and not meanings[origin.name].core & _KEPT
        ):
            out[origin.name] = max(out.get(origin.name, 0.0), 0.15)
    return out


def _unread(
    relation: Relation, table: Table, column: Column, country: str, hidden: Mapping[str, float], known: set[str]
) -> list[FieldCandidate]:
    """Columns that may be wanted though no name says so: for a person to see, never to be taken by a rule."""
    out = []
    for name in sorted(hidden, key=lambda n: (-hidden[n], n))[:4]:
        origin = relation.origin(name)
        if origin is None or f"column:{name}" in known or hidden[name] <= 0.1:
            continue
        conversion = convert(name, origin.profile, column, table, country)
        plan: dict[str, object] = {"sql": conversion.sql} if conversion.sql else {"from": conversion.column}
        evidence: dict[str, object] = {"names_say": "nothing", "values_fit": round(conversion.fit, 2)}
        out.append(
            FieldCandidate(
                f"column:{name}", name, (name,), plan, hidden[name], round(hidden[name], 3), evidence, conversion.needs
            )
        )
    return out


_PLAIN = (Kind.INTEGER, Kind.DECIMAL, Kind.FLOAT, Kind.DATE)
_KEPT = frozenset({"created_at", "modified_at", "created_by", "modified_by", "deleted", "deleted_at", "owner", "id"})


def _hidden_reference(relation: Relation, claimed: set[str]) -> float:
    """The chance that a column of serial numbers or binary ids which nobody could place is a reference after all."""
    known = {r.column for r in relation.references} | claimed
    if any(o.profile.column.kind is Kind.BINARY and o.name not in known and not o.through for o in relation.columns):
        return 0.3
    loose = [
        o
        for o in relation.columns
        if o.name not in known and not o.through and o.profile.trait("integer") > 0.95 and 3 < o.profile.distinct < 0.9 * o.profile.rows
        and not column_meaning(o.name, relation.holds).core & set(MEANINGS)
    ]  # fmt: skip
    return 0.3 if any(not readable(column_meaning(o.name, relation.holds)) for o in loose) else 0.0


def _candidate(
    meanings: Mapping[str, Meaning], wanted: Meaning, table: Table, column: Column, origin: Origin, country: str
) -> FieldCandidate:
    near = nearness(meanings[origin.name], wanted)
    own_country = country if country != origin.name else ""
    conversion = convert(origin.name, origin.profile, column, table, own_country, wanted)
    strength = _strength(near.score, near.conflict, conversion, 0.8 if column.kind is Kind.ENUM else 0.45)
    if origin.profile.empty_share > 0.98:
        strength *= 0.9
    if not column.nullable and not column.has_default:
        strength *= origin.found  # rows that find nothing on the other side would have no value
    plan: dict[str, object] = {"sql": conversion.sql} if conversion.sql else {"from": conversion.column}
    evidence: dict[str, object] = {
        "names": round(near.score, 2),
        "names_say": near.why or "nothing in common",
        "values_fit": round(conversion.fit, 2),
        "empty": round(origin.profile.empty_share, 3),
    }
    if near.conflict:
        evidence["against"] = near.conflict
    if conversion.notes:
        evidence["notes"] = list(conversion.notes)
    return FieldCandidate(
        f"column:{origin.name}", origin.name, (origin.name,), plan, strength, evidence=evidence, needs=conversion.needs
    )


def _strength(name: float, conflict: str, conversion: Conversion, telling: float) -> float:
    """Name and values as one figure. Telling values lift a weak name; values that don't fit sink a good one."""
    fit = conversion.fit
    strength = name * (0.35 + 0.65 * fit) if fit >= 0.5 else name * fit
    lift = conversion.evidence * fit
    if conflict:
        return min(strength, 0.3)
    strength = 1 - (1 - strength) * (1 - telling * lift)
    return min(0.99, strength)


def _references(
    relation: Relation, table: Table, column: Column, referred: str, entities: Mapping[str, str]
) -> list[FieldCandidate]:
    """Columns whose values are keys of a table that goes where the foreign key points."""
    out: dict[str, FieldCandidate] = {}
    wanted = column_meaning(column.name, table.name)
    selected: dict[str, list[tuple[str, str]]] = {}
    for reference in relation.references:
        if entities.get(reference.table) != referred:
            continue
        meaning = column_meaning(reference.column, relation.holds)
        near = nearness(meaning, wanted)
        evidence: dict[str, object] = {
            "names": round(near.score, 2), "names_say": near.why or "nothing in common",
            "points_at": reference.table, "found_there": round(reference.share, 3), "known_by": reference.known_by,
        }  # fmt: skip
        if reference.selector:
            value = reference.selected.replace("'", "''")
            test = f"case when {quoted(reference.selector)} = '{value}' then {quoted(reference.column)} end"
            selected.setdefault(reference.table, []).append((reference.column, reference.selector))
            strength = _polymorphic_strength(wanted, reference.table, table)
            evidence["kind_told_by"] = f"{reference.selector} = {reference.selected}"
            answer = f"selected:{reference.column}:{reference.selected}"
            plan: dict[str, object] = {"sql": test, "ref": reference.table, "missing": "null"}
            columns: tuple[str, ...] = (reference.column, reference.selector)
            label = f"{reference.column} where {reference.selector} is {reference.selected}"
        else:
            strength = _reference_strength(near.score, near.conflict, meaning, wanted)
            if (
                reference.kin
                and "parent" in meaning.core
                and not near.conflict
                and _one_of_kin(relation, reference, wanted)
            ):
                strength = max(strength, 0.95)  # a row's parent of another kind is what it belongs to
            if reference.of_kinds < 0.98:
                strength = min(strength, 0.6)  # some of its values lead to another kind: what they become is asked
            answer = f"column:{reference.column}"
            plan = {"from": reference.column, "ref": reference.table, "missing": "null"}
            columns, label = (reference.column,), reference.column
        if not column.nullable:
            plan.pop("missing")
        selects = (reference.column, reference.selector, reference.selected) if reference.selector else None
        candidate = FieldCandidate(answer, label, columns, plan, strength, evidence=evidence, selects=selects)
        if answer not in out or out[answer].strength < strength:
            out[answer] = candidate
    return list(out.values())


def _one_of_kin(relation: Relation, reference: Reference, wanted: Meaning) -> bool:
    """True for the one column that leads to that kind in the same table, where no special role is wanted."""
    others = {r.column for r in relation.references if r.kin and r.table == reference.table}
    return others == {reference.column} and not (wanted.core | wanted.qualifiers) & (_ROLES - {"parent"})


def _reference_strength(name: float, conflict: str, ours: Meaning, wanted: Meaning) -> float:
    """The values are known to point there; the name says in which role (owner, author, parent)."""
    if conflict:
        return 0.25
    ours_role = (ours.core | ours.qualifiers) & _ROLES
    wanted_role = (wanted.core | wanted.qualifiers) & _ROLES
    if ours_role and wanted_role and ours_role != wanted_role:
        return min(0.35, 0.4 * name + 0.2)
    if ours_role == wanted_role and ours_role:
        return max(0.97, name)
    if ours_role ^ wanted_role:
        return min(0.6, 0.45 + 0.3 * name)
    return min(0.99, 0.7 + 0.3 * name)


def _polymorphic_strength(wanted: Meaning, pointed: str, table: Table) -> float:
    roles = {"owner", "created_by", "modified_by", "reports_to", "parent"}
    return 0.5 if (wanted.core | wanted.qualifiers) & roles else 0.93


def _country_of(relation: Relation) -> str:
    """The entity's own column of countries: the one that the preferred address has. One whose name has a word that nobody
    can read may be of any address, and comes last."""
    found = []
    for origin in relation.columns:
        meaning = column_meaning(origin.name, relation.holds)
        if "country" in meaning.core and origin.profile.empty_share < 0.9 and origin.profile.trait("letters") > 0.8:
            found.append((len(meaning.core), rank(meaning), origin.name))
    return min(found)[2] if found else ""
