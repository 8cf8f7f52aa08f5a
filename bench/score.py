"""Scores what a target holds against the truth about a sample: field by field, and reason by reason.

The truth comes from `sample_data.truth`; the target is a PostgreSQL database or a folder of its dumps.
Which target row a source row became is read from the crosswalk where there is one. A wrong crosswalk
cannot raise the score: rows it mixes up show as wrong fields.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.dumps import take_dumps
from bench.judge import Judge
from bench.plan_score import PlanScore, entity_names, score_plan

__all__ = ["EntityScore", "FieldScore", "PlanScore", "ReasonScore", "Score", "entity_names", "score", "score_plan"]


@dataclass(frozen=True)
class FieldScore:
    """One field of one entity, in rows of the truth.

    `right`: equal, NULL included. `wrong`: another value. `missing`: NULL, or no row, where the truth has a
    value. `extra`: a value where the truth has NULL. `examples` are (key, wanted, got), three at most.
    """

    entity: str
    field: str
    right: int
    wrong: int
    missing: int
    extra: int
    examples: tuple[tuple[str, str | None, str | None], ...] = ()

    @property
    def perfect(self) -> bool:
        """True where each row is right."""
        return not (self.wrong or self.missing or self.extra)


@dataclass(frozen=True)
class EntityScore:
    """One entity: rows `wanted` by the truth, of these `found` and `exact` in each field, and `surplus` ones that should
    not be there; `values` are right and no NULL."""

    entity: str
    wanted: int
    found: int
    exact: int
    surplus: int
    values: int
    fields: tuple[FieldScore, ...]

    @property
    def perfect(self) -> bool:
        """True where just the right rows are there, with just the right values."""
        return self.found == self.wanted and not self.surplus and all(f.perfect for f in self.fields)


@dataclass(frozen=True)
class ReasonScore:
    """One reason code: rows in quarantine that the truth `wanted`, that were `found`, and that are both."""

    code: str
    wanted: int
    found: int
    right: int

    @property
    def precision(self) -> float:
        """The share of what was found that the truth has too; 1 where nothing was found."""
        return self.right / self.found if self.found else 1.0

    @property
    def recall(self) -> float:
        """The share of what the truth has that was found; 1 where the truth has none."""
        return self.right / self.wanted if self.wanted else 1.0


@dataclass(frozen=True)
class Score:
    """The whole target. `misplaced` lists (entity, key, wanted, got) of quarantine that differs; `counts` says
    in words which sums of the ledger do; `strayed` are rows in a table where the truth has none of that source row."""

    entities: tuple[EntityScore, ...]
    reasons: tuple[ReasonScore, ...]
    misplaced: tuple[tuple[str, str, str, str], ...] = ()
    counts: tuple[str, ...] = ()
    strayed: int = 0

    @property
    def perfect(self) -> bool:
        """True where nothing at all differs from the truth."""
        return (
            all(e.perfect for e in self.entities)
            and all(r.wanted == r.found == r.right for r in self.reasons)
            and not self.misplaced
            and not self.counts
            and not self.strayed
        )

    @property
    def field_accuracy(self) -> float:
        """The share of right values among all values that the truth holds."""
        every = [f for e in self.entities for f in e.fields]
        total = sum(f.right + f.wrong + f.missing + f.extra for f in every)
        return sum(f.right for f in every) / total if total else 1.0

    @property
    def value_f1(self) -> float:
        """The harmonic mean of precision and recall over all values that are no NULL; 1 where there are none."""
        every = [f for e in self.entities for f in e.fields]
        right = sum(e.values for e in self.entities)
        got = right + sum(f.wrong + f.extra for f in every)
        wanted = right + sum(f.wrong + f.missing for f in every)
        return 2 * right / (got + wanted) if got + wanted else 1.0

    @property
    def exact_rows(self) -> float:
        """The share of the truth's rows that are there with each field right; 1 where it has none."""
        wanted = sum(e.wanted for e in self.entities)
        return sum(e.exact for e in self.entities) / wanted if wanted else 1.0

    def report(self) -> str:
        """What differs, as text a person reads; one line where nothing does."""
        lines = []
        for entity in self.entities:
            if entity.perfect:
                continue
            lines.append(f"{entity.entity}: {entity.found} of {entity.wanted} rows, {entity.surplus} too many")
            for f in entity.fields:
                if not f.perfect:
                    lines.append(f"  {f.field}: {f.right} right, {f.wrong} wrong, {f.missing} missing, {f.extra} extra")
                    lines.extend(f"    {key}: wanted {wanted!r}, got {got!r}" for key, wanted, got in f.examples)
        for r in self.reasons:
            if not r.wanted == r.found == r.right:
                lines.append(f"quarantine {r.code}: wanted {r.wanted}, found {r.found}, both {r.right}")
        lines.extend(f"  {e} {key}: wanted {wanted}, got {got}" for e, key, wanted, got in self.misplaced[:40])
        lines.extend(self.counts)
        if self.strayed:
            lines.append(f"{self.strayed} rows in a table where none of that source row should be")
        return (
            "\n".join(lines)
            or f"all right: {sum(e.wanted for e in self.entities)} rows, {self.field_accuracy:.4%} of fields"
        )


def score(target: str | Path, truth: Path, names: Mapping[str, str] | None = None) -> Score:
    """Holds a target against the truth in a folder.

    `target` is a libpq connection string or URL, or a folder that `bench.dumps.take_dumps` filled.
    `names` maps the truth's entities to those of the plan that was run, where they are called otherwise;
    an entity of the truth that the plan doesn't have counts as not there.
    """
    facts = json.loads((truth / "counts.json").read_text(encoding="utf-8"))
    if isinstance(target, Path):
        return _score(target, truth, facts, names or {})
    with tempfile.TemporaryDirectory(prefix="packhorse-score-") as folder:
        return _score(take_dumps(target, Path(folder)), truth, facts, names or {})


def _score(dumps: Path, truth: Path, facts: dict[str, Any], names: Mapping[str, str]) -> Score:
    judge = Judge(truth, dumps, facts["entities"], names)
    entities = []
    for name in facts["entities"]:
        counted = judge.entity(name)
        fields = tuple(
            FieldScore(name, column, *sums, tuple(counted.examples.get(column, ())))
            for column, sums in counted.fields.items()
        )
        entities.append(
            EntityScore(
                name,
                facts["counts"][name]["loaded"],
                counted.found,
                counted.exact,
                counted.surplus,
                counted.values,
                fields,
            )
        )
    codes, misplaced = judge.quarantine()
    reasons = tuple(ReasonScore(code, *sums) for code, sums in codes.items())
    return Score(tuple(entities), reasons, tuple(misplaced), tuple(judge.counts(facts["counts"])), judge.strayed())
