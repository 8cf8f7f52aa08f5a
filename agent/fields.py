"""Decisions on fields: the matter that a target column is, and what the plan says once it is decided."""

from __future__ import annotations

from agent.lexicon import column_meaning
from agent.match import FieldMatch
from agent.matter import Matter, Option, Stakes
from agent.models.protocol import Match
from agent.rivals import FieldCandidate
from agent.structure import Relation
from connectors.protocols import Table
from workspace.signature import match_signature

_CAREFUL = {"opt_out", "opt_in", "do_not_call", "consent", "deleted", "deleted_at", "currency", "tax_id"}


def field_matter(entity: str, relation: Relation, table: Table, match: FieldMatch) -> Matter:
    """Where the values of one target column come from."""
    column = match.column
    options = tuple(_option(c, relation) for c in match.candidates)
    wanted = f"{table.name}.{column.name}"
    kind = f"one of {', '.join(column.labels[:12])}" if column.labels else column.type
    values = {
        c.label: o.profile.samples[:3]
        for c in match.candidates
        if c.columns and (o := relation.origin(c.columns[0])) is not None
    }
    return Matter(
        "required" if match.required and not options else "field",
        f"{entity}.{column.name}",
        f"New column: {wanted} ({kind}). Which column of the old table {relation.main} does it come from?",
        options,
        none_weight=match.none_weight,
        signature=match_signature(table.name, column.name),
        evidence={"type": column.type, "required": match.required, "default": column.has_default},
        holds=(entity,) if match.required else (),
        stakes=stakes_of(table, match),
        free=match.required and not options,
        must=match.required,
        exists=match.candidates[0].strength if match.candidates else None,
        match=Match(wanted, values=values),
        recalled=match.recalled,
        brief=f"New column: {wanted}. From which column of {relation.main}?",
    )


def stakes_of(table: Table, match: FieldMatch) -> Stakes:
    """High for consent and deletion flags, for unique keys and for money's currency; else normal."""
    column = match.column
    if column_meaning(column.name, table.name).core & _CAREFUL:
        return "high"
    if any(column.name in u.columns and not u.primary for u in table.unique_keys):
        return "high"
    return "normal"


def _option(candidate: FieldCandidate, relation: Relation) -> Option:
    origin = relation.origin(candidate.columns[0]) if candidate.columns else None
    lesson = match_signature(relation.main, candidate.columns[0]) if len(candidate.columns) == 1 else ""
    evidence = dict(candidate.evidence)
    if origin is not None and origin.through:
        evidence["through"] = origin.through
    return Option(candidate.answer, candidate.label, candidate.confidence, evidence, lesson, unaided=candidate.unaided)
