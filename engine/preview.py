"""What would happen: the whole stage transformed, collisions settled, rows side by side. Writes nothing to
the target, not even our schema.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict, dataclass, field
from typing import Any

from engine.batch import batch_rows
from engine.check import CheckedEntity
from engine.compile import raw_sql
from engine.context import Context, Progress
from engine.match import Matching
from engine.merge import Part
from engine.merge_preview import Duplicates, merge_for_preview
from engine.prepare import Preparer, Settled
from engine.query import LOADED, QUARANTINED, identifier, literal, read_parts
from engine.stage import part_path
from engine.stager import Stager
from engine.transform import execute
from workspace.errors import InterruptedJobError
from workspace.events import PhaseStarted

COLLISIONS_SHOWN = 50


@dataclass(frozen=True)
class Cluster:
    """Rows that fail alike: one signature, how many, and the key of one of them."""

    signature: str
    code: str
    field: str
    count: int
    example_key: str


@dataclass(frozen=True)
class RowShown:
    """One row side by side. `kind` is first, random, changed or worst; `after` is None where it isn't loaded."""

    kind: str
    key: str
    before: dict[str, str | None]
    after: dict[str, str | None] | None
    reason: str = ""


@dataclass(frozen=True)
class EntityPreview:
    """What would become of one entity. Counts are rows; read = load + unchanged + merged + excluded + quarantined.
    `excluded_by` counts those excluded by the condition that holds them back; `duplicates` are some of
    `duplicates_total` clusters, the least sure first; `matched` of those to load or unchanged the target held before."""

    entity: str
    source: str
    target: str
    read: int
    load: int
    unchanged: int
    merged: int
    excluded: int
    quarantined: int
    excluded_by: dict[str, int]
    changes: dict[str, int]
    clusters: tuple[Cluster, ...]
    collisions: tuple[tuple[str, str], ...]
    collisions_total: int
    duplicates: tuple[Duplicates, ...]
    duplicates_total: int
    unmapped: dict[str, str]
    unaccounted: tuple[str, ...]
    deferred: tuple[str, ...]
    rows: tuple[RowShown, ...]
    matched: int = 0


@dataclass(frozen=True)
class Preview:
    """The preview of a whole plan, entities in load order."""

    plan_version: int
    entities: tuple[EntityPreview, ...] = field(default_factory=tuple)

    def to_dict(self) -> dict[str, Any]:
        """As JSON values."""
        return asdict(self)


def preview(ctx: Context) -> Preview:
    """Stages what isn't staged yet and says what a load would do. InterruptedJobError when asked to stop."""
    ctx.workspace.record(PhaseStarted("preview"))
    ours = ctx.target.has_schema()
    preparer = Preparer(ctx.paths, ctx.checked, "preview")
    shown = []
    try:
        with Stager(ctx) as stager:
            for entity in ctx.checked.entities:
                shown.append(_preview_entity(ctx, preparer, stager, entity, ours))
    finally:
        preparer.close()
    return Preview(ctx.checked.plan.version, tuple(shown))


def _preview_entity(
    ctx: Context, preparer: Preparer, stager: Stager, entity: CheckedEntity, ours: bool
) -> EntityPreview:
    known = ours and ctx.target.know_entity(ctx.source_identity, entity.name, entity.plan.to)
    existing = preparer.existing(entity, ctx.target) if known else None
    settler = preparer.settler(entity, ctx.target, ours=known)
    whole: list[Part] = []
    staged = 0
    for part in stager.parts(entity):
        if ctx.stop():
            raise InterruptedJobError("interrupted; nothing was written to the target", advice="run it again")
        out, counts = preparer.transform(entity, part, again=True)
        whole.append(Part(part, out, counts))
        staged += part.rows
        ctx.progress(Progress("preview", entity.name, staged, None))
    merged = merge_for_preview(ctx.paths, entity, whole, existing, settler)
    whole, path, matched = merged.parts, None, 0
    owns = [p.out for p in whole]
    if entity.plan.match is not None and whole:
        matching = Matching(preparer.duck, ctx.paths, entity, whole, existing)
        path = preparer.folder(entity) / "matched.parquet"
        matched = matching.decide(ctx.target, path, ours=ours).matched
        whole, settler.matched = matching.parts(path), path
    parts = [
        Settled(p.staged, p.out, p.counts, settler.settle(p.staged.part, p.out, p.staged.rows), path, own)
        for p, own in zip(whole, owns, strict=True)
    ]
    preparer.foresee_crosswalk(entity, parts, existing)
    clusters: Counter[tuple[str, str, str]] = Counter()
    example: dict[tuple[str, str, str], str] = {}
    collisions: list[tuple[str, str]] = []
    changes: Counter[str] = Counter()
    left_out: Counter[str] = Counter()
    load = unchanged = joined = excluded = quarantined = lost = 0
    for settled in parts:
        rows = batch_rows(preparer.duck, ctx.paths, entity, settled, existing)
        linked = rows.matches["_ph_same"].to_pylist() if rows.matches is not None else []
        load += rows.inserts.num_rows + rows.updates.num_rows + linked.count(False)
        unchanged += rows.unchanged + linked.count(True)
        joined += rows.merged.num_rows + rows.merged_before
        excluded += rows.excluded
        quarantined += rows.quarantined.num_rows
        changes.update(settled.counts.changes)
        left_out.update(settled.counts.excluded_by)
        for row in rows.quarantined.to_pylist():
            name = (row["signature"], row["code"], row["field"])
            clusters[name] += 1
            example.setdefault(name, row["key"])
            if row["code"] == "unique":
                lost += 1
                if len(collisions) < COLLISIONS_SHOWN:
                    collisions.append((row["key"], row["detail"]))
    return EntityPreview(
        entity.name,
        entity.plan.from_,
        entity.plan.to,
        staged,
        load,
        unchanged,
        joined,
        excluded,
        quarantined,
        dict(left_out.most_common()),
        dict(changes.most_common()),
        tuple(Cluster(*name, count, example[name]) for name, count in clusters.most_common()),
        tuple(collisions),
        lost,
        merged.duplicates,
        merged.clusters,
        dict(entity.plan.unmapped),
        entity.unaccounted,
        tuple(f.column.name for f in entity.deferred),
        tuple(_rows_shown(ctx, preparer, entity, parts, [example[name] for name, _ in clusters.most_common(5)])),
        matched,
    )


def _rows_shown(
    ctx: Context, preparer: Preparer, entity: CheckedEntity, parts: list[Settled], worst: list[str]
) -> list[RowShown]:
    """Two first rows, three changed, three by chance (the same each time), and one of each large cluster."""
    if not parts:
        return []
    transformed = read_parts(p.out for p in parts)
    stage = read_parts(part_path(ctx.paths.stage / entity.name, p.part.part) for p in parts)
    names = [f.column.name for f in entity.fields]
    after = ", ".join(f"{literal(n)}: t.{identifier(n)}" for n in names) or "'': NULL"
    wanted = [
        ("first", f"_ph_outcome = {LOADED}", "_ph_n", 2),
        ("changed", f"_ph_outcome = {LOADED} AND _ph_changes IS NOT NULL", "hash(_ph_n)", 3),
        ("random", f"_ph_outcome = {LOADED}", "hash(_ph_n + 7)", 3),
    ]
    if worst:
        keys = ", ".join(literal(key) for key in worst)
        wanted.append(("worst", f"_ph_key IN ({keys}) AND _ph_outcome = {QUARANTINED}", "_ph_n", 5))
    rows = []
    for kind, condition, order, most in wanted:
        found = execute(
            preparer.duck,
            f"SELECT t._ph_key, s.raw, CAST(to_json({{{after}}}) AS VARCHAR), t._ph_outcome, "
            f"coalesce(t._ph_field || ': ' || t._ph_reason, '') FROM (SELECT * FROM {transformed} "
            f"WHERE {condition} ORDER BY {order} LIMIT {most}) t "
            f"JOIN (SELECT _ph_n, {raw_sql(entity)} AS raw FROM {stage}) s ON s._ph_n = t._ph_n ORDER BY t._ph_n",
        )
        for key, raw, values, outcome, reason in found:
            rows.append(RowShown(kind, key, json.loads(raw), json.loads(values) if outcome == LOADED else None, reason))
    return rows
