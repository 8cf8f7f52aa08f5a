"""Decisions on tables: which source table becomes an entity of which target table, by what key, with what id,
and which of its rows are left out.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from agent.conversions import quoted
from agent.entities import TableCandidate
from agent.lexicon import column_meaning, table_meaning, words
from agent.matter import Matter, Option
from agent.meanings import readable
from agent.profile import TableProfile
from agent.remembered import MARK, NOT, Met, Remembered
from agent.structure import Relation
from connectors.protocols import Kind, Table
from workspace.experience_store import ExperienceStore
from workspace.signature import column_pattern, match_signature

_COPIES = {
    "old",
    "backup",
    "bak",
    "tmp",
    "temp",
    "copy",
    "archive",
    "audit",
    "history",
    "log",
    "test",
    "import",
    "deleted",
}
_PUT_AWAY = {"archived", "discarded", "trashed"}
"""Words that some systems use for deleted rows and others for rows that are kept: a person has to say."""


@dataclass(frozen=True)
class Filter:
    """Rows that are left out: the plan's `where`, and the column that tells."""

    where: str
    column: str
    share: float  # of the rows in the sample that stay
    sure: bool  # the column's name says deleted, and not that its rows were put away
    met: Met | None = None  # what is remembered of the column


def table_matter(
    name: str, candidates: tuple[TableCandidate, ...], profile: TableProfile, experience: ExperienceStore | None
) -> Matter:
    """Where the rows of a source table go."""
    copied = bool(_COPIES & set(words(name)))
    options = tuple(_table_option(name, candidate, copied, experience) for candidate in candidates)
    return Matter(
        "entity", name, f"Which table of the target do the {profile.rows:,} rows of {name} go to?", options,
        none_weight=0.5 if not readable(table_meaning(name)) else None if candidates else 0.97,
        evidence={"rows": profile.rows, "columns": list(profile.columns)[:40]}, holds=(name,),
    )  # fmt: skip


def _table_option(name: str, found: TableCandidate, copied: bool, experience: ExperienceStore | None) -> Option:
    lesson, remedy = column_pattern(name), column_pattern(found.table)
    weight, unaided = found.confidence * (0.6 if copied else 1.0), None
    evidence = {**found.evidence, **({"against": "named like a copy"} if copied else {})}
    for met in experience.recall("match", lesson) if experience is not None else ():
        if met.remedy == remedy:
            evidence["met"] = f"met before and held {met.held} of {met.tried} times"
            weight, unaided = 1 - (1 - weight) * (1 - met.likely), weight
        elif met.remedy == NOT + remedy:
            evidence["met_as_wrong"] = f"met before and held {met.held} of {met.tried} times"
            weight, unaided = weight * (1 - met.likely), weight
    return Option(found.table, found.table, round(min(0.99, weight), 3), evidence, lesson, remedy, unaided)


def id_for(profile: TableProfile, table: Table, shared: bool) -> str:
    """Where the target's primary key comes from. `shared`: several entities go to this table."""
    if len(table.primary_key) != 1:
        return "none"
    column = table.column(table.primary_key[0])
    if column is None or len(profile.key) != 1:
        return "uuid5" if column is not None and column.kind in (Kind.UUID, Kind.TEXT) else "none"
    key = profile.columns[profile.key[0]]
    if column.kind is Kind.UUID:
        return "keep" if key.trait("uuid") == 1.0 and not profile.sampled and not shared else "uuid5"
    if column.kind is Kind.INTEGER:
        if column.sequence:
            return "sequence"
        return "keep" if key.trait("integer") == 1.0 else "none"
    return "keep" if not shared else "uuid5"


def row_filter(relation: Relation, table: Table, remembered: Remembered) -> Filter | None:
    """The filter on a mark of deletion, where the target has no place for it; None where there is none. What was such a
    mark in jobs before is one here, whatever it is called."""
    if any(column_meaning(c.name, table.name).core & {"deleted", "deleted_at"} for c in table.columns):
        return None
    marks = remembered.marks([origin.name for origin in relation.columns])
    for origin in relation.columns:
        meaning = column_meaning(origin.name, relation.holds)
        profile, met = origin.profile, marks.get(origin.name)
        recalled = met is not None and not met.against
        if origin.through or not profile.filled or (meaning.qualifiers and not recalled):
            continue
        if (meaning.core == {"deleted"} or recalled) and (profile.trait("boolean") == 1.0 or profile.minus_one):
            total = sum(n for _, n in profile.top)
            kept = sum(n for v, n in profile.top if v.casefold() in ("0", "false", "f", "no", "n", "nein", "non"))
            if not kept:
                return None
            word = next(v for v, _ in profile.top if v.casefold() in ("0", "false", "f", "no", "n", "nein", "non"))
            subject = quoted(origin.name) if not profile.nulls else f"coalesce({quoted(origin.name)}, '{word}')"
            sure = meaning.core == {"deleted"} and not _PUT_AWAY & set(words(origin.name))
            return Filter(f"{subject} = '{word}'", origin.name, kept / total, sure, met)
        if (meaning.core == {"deleted_at"} or recalled) and profile.trait("datetime") > 0.9 and profile.nulls:
            sure = meaning.core == {"deleted_at"} and not _PUT_AWAY & set(words(origin.name))
            return Filter(f"{quoted(origin.name)} is null", origin.name, profile.nulls / profile.rows, sure, met)
    return None


def filter_matter(entity: str, main: str, found: Filter) -> Matter:
    """Whether deleted rows of a source table `main` stay behind. That a column was such a mark in jobs before is never
    enough alone: rows would stay behind."""
    text = f"Rows of {entity} with a mark in {found.column} stay behind: `where: {found.where}`. Is that right?"
    weight = 0.96 if found.sure and found.share > 0.3 else 0.6
    evidence: dict[str, object] = {"rows_that_stay": round(found.share, 3)}
    met = found.met
    if met is not None:
        evidence["met_as_wrong" if met.against else "met"] = met.told
        weight = weight * (1 - met.share) if met.against else max(weight, 0.8 * met.share)
    option = Option(
        found.where, f"carry over only rows where {found.where}", weight, evidence, match_signature(main, found.column)
    )
    return Matter(
        "filter", entity, text, (option,), signature=MARK, holds=(entity,), recalled=met is not None and met.against
    )


def constant_for(source: str, others: Mapping[str, str], table: Table, column: str) -> tuple[str, float] | None:
    """Which label of a target's enum says what kind of row a source table holds, where several tables go there."""
    from agent.value_lexicon import label_for

    wanted = table.column(column)
    if wanted is None or wanted.kind is not Kind.ENUM:
        return None
    sources = [s for s, t in others.items() if t == table.name]
    if len(sources) < 2:
        return None
    hits = {s: label_for(" ".join(words(re.sub(r"s$", "", s.split(".")[-1]))), wanted.labels) for s in sources}
    mine = hits[source]
    labels = [h.label for h in hits.values() if h.sure]
    if not mine.sure or mine.label is None or len(set(labels)) != len(sources):
        return None
    return mine.label, 0.97
