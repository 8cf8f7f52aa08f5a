"""Remedies: what to do about rows that fail alike. One decision a failure signature, never one a row.

Rows that can't be loaded wait in quarantine, whole: that is safe and needs no decision. Where a field may be
empty, a remedy can let the rows through without it; that loses a value and so is never taken by a rule.
"""

from __future__ import annotations

from dataclasses import dataclass

from agent.actions import SetOtherwise
from agent.ladder import Ladder
from agent.loop import Loop
from agent.matter import Matter, Option
from connectors.protocols import Catalogue
from engine.plan import Plan
from engine.preview import Cluster, EntityPreview, Preview
from workspace.experience_store import ExperienceStore

_BY_FIELD = ("cast", "function", "length", "range", "enum")
_ASKED_FROM = 0.002  # share of an entity's rows from which a cluster is worth a question
_MOST = 12  # questions a preview


@dataclass(frozen=True)
class Applied:
    """A remedy that is in the plan now."""

    signature: str
    remedy: str
    entity: str
    field: str


def remedy_matter(shown: EntityPreview, cluster: Cluster, trust: float) -> Matter:
    """What becomes of rows whose field fails in one way."""
    text = (
        f"{cluster.count:,} of {shown.read:,} rows of {shown.entity} can't be loaded because of {cluster.field}"
        f" ({cluster.signature}). Carry them over without it, or leave them in quarantine?"
    )
    options = (
        Option("null", "carry the rows over, the field stays empty", max(0.5, trust), {"rows": cluster.count}),
        Option("quarantine", "leave the rows in quarantine", 0.5, {}),
    )
    return Matter(
        "remedy", f"{shown.entity}.{cluster.field}", text, options, none_weight=0.0, must=True, stakes="high",
        evidence={"signature": cluster.signature, "rows": cluster.count, "of": shown.read},
    )  # fmt: skip


def find_remedies(
    found: Preview, plan: Plan, target: Catalogue, ladder: Ladder, loop: Loop, experience: ExperienceStore | None
) -> list[Applied]:
    """Decides on the largest clusters of the preview and edits the plan where a remedy was chosen."""
    applied: list[Applied] = []
    seen: set[tuple[str, str]] = set()
    clusters = sorted(((c, e) for e in found.entities for c in e.clusters), key=lambda item: -item[0].count)
    for cluster, shown in clusters:
        place = (shown.entity, cluster.field)
        if place in seen or len(seen) >= _MOST or not _curable(cluster, shown, plan, target):
            continue
        seen.add(place)
        lessons = experience.recall("failure", cluster.signature) if experience is not None else []
        trust = max((lesson.trust for lesson in lessons if lesson.remedy == "null"), default=0.0)
        decision = ladder.decide(remedy_matter(shown, cluster, trust))
        if decision.answer == "null":
            feedback = loop.act(SetOtherwise(shown.entity, cluster.field, "null"), decision.price)
            if feedback.outcome == "done":
                applied.append(Applied(cluster.signature, "null", shown.entity, cluster.field))
    return applied


def _curable(cluster: Cluster, shown: EntityPreview, plan: Plan, target: Catalogue) -> bool:
    """True where letting the field stay empty would let the rows through, and there are enough of them."""
    entity = plan.entities.get(shown.entity)
    table = target.tables.get(shown.target)
    column = table.column(cluster.field) if table is not None else None
    planned = entity.fields.get(cluster.field) if entity is not None else None
    if column is None or planned is None or not column.nullable or planned.ref is not None:
        return False
    enough = cluster.count >= max(5, _ASKED_FROM * shown.read)
    return enough and planned.otherwise == "quarantine" and cluster.code in _BY_FIELD
