"""Duplicates as a preview shows them: which rows would become one, and what that one would hold.

Decides nothing that a load would take up: the load decides by itself, on the same rows, and comes to the same.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from engine.check import CheckedEntity
from engine.collisions import Settler
from engine.merge import Merging, Part
from workspace.paths import JobPaths

MOST_SHOWN = 20


@dataclass(frozen=True)
class Duplicates:
    """Rows that would become one: how sure the least sure of them is, and by source key the values that were compared,
    the row first that stays; then what that would hold."""

    sure: float
    rows: dict[str, dict[str, str | None]]
    becomes: dict[str, str | None]


@dataclass(frozen=True)
class MergedPreview:
    """The parts with their duplicates merged; some of the clusters, the least sure first, and how many there are."""

    parts: list[Part]
    duplicates: tuple[Duplicates, ...] = ()
    clusters: int = 0


def merge_for_preview(
    paths: JobPaths, entity: CheckedEntity, parts: list[Part], existing: Path | None, settler: Settler
) -> MergedPreview:
    """What a load would merge. Parts as they are, where the plan merges nothing."""
    if entity.plan.merge is None or not parts:
        return MergedPreview(parts)
    with Merging(paths, entity, parts, existing, settler) as merging:
        decided = merging.decide(parts[0].out.parent / "merged.parquet")
        merged = merging.parts(decided.path)
        examples = merging.examples(decided.path, merged, MOST_SHOWN)
    merge = entity.plan.merge
    compared = [*merge.by, *(column for rule in merge.same for column in rule if column not in merge.by)]
    shown = []
    for sure, keys, rows, becomes in examples:
        each = {key: {c: json.loads(row)[c] for c in compared} for key, row in zip(keys, rows, strict=True)}
        shown.append(Duplicates(sure, each, json.loads(becomes)))
    return MergedPreview(merged, tuple(shown), decided.clusters)
