"""Sets the kinds of a table apart: each gets a relation of its own, read from the table with a WHERE, and what points
at the table points at the kinds whose rows it finds.

Every row of the table is read by exactly one of them. The first also reads rows of no kind, and rows that become of no
kind later, and leaves them out by its `where`, so that they are counted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from agent.kinds import Kinds
from agent.kinds_where import source_condition, stage_condition
from agent.profile import Reference, TableProfile
from agent.references import PROBE, references_by_name
from agent.structure import Origin, Relation, Role, Structure
from agent.survey import Survey, profile_part
from connectors.protocols import Source

_LEAST_POINTED = 0.05  # share of values found among a kind's rows from which a column points at them


@dataclass(frozen=True)
class Part:
    """One kind as an entity: its name, the table it goes to, its rows in figures and as a sample, and `where`, the
    condition of the plan for the one that reads what has no kind, else empty. `told_by` is the column that tells."""

    entity: str
    to: str
    relation: Relation
    profile: TableProfile
    sample: pa.Table
    told_by: str
    where: str = ""

    @property
    def conditions(self) -> dict[str, str]:
        """Those of the plan by name, empty for all kinds but the first."""
        return {"another kind": self.where} if self.where else {}


def entity_name(table: str, to: str) -> str:
    """What the entity of a kind is called."""
    return f"{table}_{to}"


def set_apart(
    source: Source, found: Survey, structure: Structure, table: str, kinds: Kinds, quote: Callable[[str], str]
) -> tuple[dict[str, Part], Structure]:
    """The kinds as entities by name, and the structure with them in the place of the table."""
    relation, profile, sample = structure.relations[table], found.tables[table], found.samples[table]
    kind = profile.columns[kinds.column].column.kind
    places = [kinds.place(None if v is None else str(v)) for v in sample.column(kinds.column).to_pylist()]
    whole = sample.num_rows >= profile.rows
    conditions = {to: source_condition(kinds, to, kind, source.dialect, quote) for to in kinds.targets}
    parts: dict[str, Part] = {}
    for to in kinds.targets:
        mine = sample.filter(pa.array([p == to for p in places], pa.bool_()))
        part = profile_part(profile, mine, whole)
        others = [c for t, c in conditions.items() if t != to]
        first = to == kinds.targets[0]
        where = conditions[to]
        if first:  # what is in no other kind, NULL included
            where = f"(CASE WHEN {' OR '.join(others)} THEN 1 ELSE 0 END) = 0" if others else ""
        columns = tuple(_of_part(o, table, part) for o in relation.columns)
        name = entity_name(table, to)
        own = replace(relation, columns=columns, where=where, kind=to)
        parts[name] = Part(name, to, own, part, mine, kinds.column, stage_condition(kinds, to) if first else "")
    tests = {entity_name(table, to): condition for to, condition in conditions.items()}
    pointing = _Pointing(source, found, table, profile.key, tests, quote)
    relations = {n: pointing.rewritten(r, found.samples) for n, r in structure.relations.items() if n != table}
    for name, each in parts.items():
        own = pointing.rewritten(each.relation, {**found.samples, table: each.sample})
        kin = tuple(replace(r, kin=r.table in parts and r.table != name) for r in own.references)
        own = replace(own, references=kin)
        parts[name] = replace(each, relation=own)
        relations[name] = own
    roles = {**structure.roles, **dict.fromkeys(parts, Role.KIND)}
    return parts, replace(structure, roles=roles, relations=relations)


def pointed_at(source: Source, found: Survey, structure: Structure, table: str, called: Sequence[str]) -> Structure:
    """The structure with references to a table that are named after its kinds, which the table's own name doesn't show."""
    relations = {}
    for name, relation in structure.relations.items():
        own = found.tables.get(relation.main)
        more: tuple[Reference, ...] = ()
        if own is not None:
            more = references_by_name(source, own, found.tables, found.samples[own.name], table, called)
        known = {r.column for r in relation.references}
        relations[name] = replace(
            relation, references=(*relation.references, *(r for r in more if r.column not in known))
        )
    return replace(structure, relations=relations)


def filled_alone(relation: Relation) -> Relation:
    """The relation without columns that are empty in all rows of its kind: another kind's."""
    columns = tuple(o for o in relation.columns if o.profile.filled or o.through)
    return replace(relation, columns=columns) if columns else relation


def _of_part(origin: Origin, table: str, part: TableProfile) -> Origin:
    own = not origin.through and origin.table == table
    return replace(origin, profile=part.columns[origin.profile.column.name]) if own else origin


class _Pointing:
    """Tells which kinds a column points at that was known to point at their table: by looking its values up."""

    def __init__(
        self, source: Source, found: Survey, table: str, key: tuple[str, ...], tests: Mapping[str, str],
        quote: Callable[[str], str],
    ) -> None:  # fmt: skip
        self._source, self._found, self._table, self._key, self._tests, self._quote = (
            source,
            found,
            table,
            key,
            tests,
            quote,
        )

    def rewritten(self, relation: Relation, samples: Mapping[str, pa.Table]) -> Relation:
        """The relation with references to kinds in the place of those to the table."""
        if all(r.table != self._table for r in relation.references):
            return relation
        out: list[Reference] = []
        for reference in relation.references:
            if reference.table == self._table:
                out += self._kinds_of(relation, reference, samples)
            else:
                out.append(reference)
        return replace(relation, references=tuple(out))

    def _kinds_of(self, relation: Relation, reference: Reference, samples: Mapping[str, pa.Table]) -> list[Reference]:
        origin = relation.origin(reference.column)
        if origin is None or len(self._key) != 1:
            return []
        values = _pointing_values(samples[origin.table], origin.profile.column.name, reference)
        found = {name: self._share(values, reference.key, test) for name, test in self._tests.items()}
        total = sum(found.values())
        return [
            replace(reference, table=name, share=share, of_kinds=share / total)
            for name, share in found.items()
            if share >= _LEAST_POINTED
        ]

    def _share(self, values: list[str], key: str, test: str) -> float:
        """The share of the values that are keys of a kind's rows."""
        profile = self._found.tables[self._table].columns[key]
        known = [v for v in values if profile.column.kind.value != "integer" or v.lstrip("-").isdigit()]
        if not known:
            return 0.0
        marks = ", ".join(["%s"] * len(known))
        table = ".".join(self._source.quote(p) for p in self._table.split("."))
        test = test.replace("%", "%%")
        sql = f"SELECT COUNT(*) FROM {table} m WHERE m.{self._source.quote(key)} IN ({marks}) AND ({test})"
        (count,) = self._source.query(sql, known)[0]
        return min(1.0, int(str(count)) / len(values))


def _pointing_values(sample: pa.Table, column: str, reference: Reference) -> list[str]:
    """Distinct values to look up; of a polymorphic reference those that it selects."""
    kept = sample.column(column).to_pylist()
    if reference.selector and reference.selector in sample.column_names:
        chosen = sample.column(reference.selector).to_pylist()
        kept = [v for v, s in zip(kept, chosen, strict=True) if str(s or "").strip() == reference.selected]
    values = sorted({str(v).strip() for v in kept if v is not None and str(v).strip()})
    step = max(1, len(values) // PROBE)
    return values[::step][:PROBE]
