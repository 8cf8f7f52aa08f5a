"""Trains the encoder's adapter: LoRA on the embedded model, so that a column lies near the field that it goes to.

A step shows whole made-up tables: each column against all fields of the new one and "none", each field against all columns
and "none". All texts of a step lie in one row of tokens, each blind to the others, so nothing is spent on padding. Same
seed and steps, same adapter (on one build of torch). Runs in the environment that `make train` makes, never in a job.
"""

from __future__ import annotations

import json
import math
import random
import time
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch
from torch.nn import functional

from agent.models.column_text import column_text, field_text
from learning.base import Hardware, Lora, open_base
from learning.recipe import Recipe
from learning.schemas import TablePair

_SAVED = 40  # steps between two checkpoints


class Biencoder:
    """The base model with its adapter, the spread of its scores and the score of "none"."""

    def __init__(self, recipe: Recipe, base: str | Path | None = None, hardware: Hardware | None = None) -> None:
        """`base` and `hardware` as `open_base` takes them."""
        torch.manual_seed(recipe.seed)
        torch.set_num_threads(recipe.threads)
        self.base = open_base(base, Lora(recipe.layers, recipe.rank, recipe.alpha), hardware)
        self.tokenizer: Any = self.base.tokenizer
        self.model: Any = self.base.model
        self.spread: Any = torch.nn.Parameter(torch.tensor(math.log(30.0), device=self.base.device))
        self.none: Any = torch.nn.Parameter(torch.tensor(0.6, device=self.base.device))

    def trained(self) -> list[Any]:
        """All that is trained."""
        return [p for p in self.model.parameters() if p.requires_grad] + [self.spread, self.none]

    def vectors(self, texts: Sequence[str]) -> Any:
        """Mean of the last hidden states of each text, of length 1: shape (texts, width)."""
        tokens = [self.tokenizer(text, add_special_tokens=False).input_ids[:64] or [0] for text in texts]
        device = self.spread.device
        lengths = torch.tensor([len(one) for one in tokens], device=device)
        owner = torch.repeat_interleave(torch.arange(len(tokens), device=device), lengths)
        place = torch.cat([torch.arange(len(one), device=device) for one in tokens])
        seen = (owner[:, None] == owner[None, :]) & (place[:, None] >= place[None, :])
        kind = self.model.dtype
        mask = torch.zeros(seen.shape, dtype=kind, device=device).masked_fill(~seen, torch.finfo(kind).min)[None, None]
        ids = torch.tensor([token for one in tokens for token in one], device=device)[None]
        found = self.model(input_ids=ids, attention_mask=mask, position_ids=place[None], use_cache=False)
        hidden = found.last_hidden_state[0].float()
        summed = torch.zeros(len(tokens), hidden.shape[-1], device=device).index_add(0, owner, hidden)
        return functional.normalize(summed / lengths[:, None], dim=-1)

    def scores(self, table: TablePair, vectors: Any) -> Any:
        """Scaled likeness of each column and field, shape (columns, fields); `vectors` are the columns' and then the fields'."""
        split = len(table.columns)
        return self.spread.exp() * (vectors[:split] @ vectors[split:].T)

    def threshold(self) -> Any:
        """The score of "none", on the scale of `scores`."""
        return self.spread.exp() * self.none


def texts(table: TablePair) -> list[str]:
    """What the encoder reads of a table: its columns, then its fields."""
    return [*(column_text(c.name, c.samples) for c in table.columns), *(field_text(f.name) for f in table.fields)]


def wanted(table: TablePair) -> tuple[list[int], list[int]]:
    """For each column the place of its field, for each field that of its column; the number of them where there is none."""
    places = {field.name: place for place, field in enumerate(table.fields)}
    to = [places.get(c.field or "", len(places)) for c in table.columns]
    back = [to.index(place) if place in to else len(to) for place in range(len(places))]
    return to, back


def loss_of(encoder: Biencoder, tables: Sequence[TablePair]) -> Any:
    """Cross-entropy of the right field among all, for each column that has one, and of the right column for each such field;
    and, at a third of the weight, of the right field or "none" for every column. With "none" among the first two it is learnt
    that "none" is the commonest answer, and little else."""
    every = [texts(table) for table in tables]
    found = encoder.vectors([text for one in every for text in one])
    total, start = torch.zeros((), device=found.device), 0
    for table, own in zip(tables, every, strict=True):
        scores = encoder.scores(table, found[start : start + len(own)])
        start += len(own)
        to, back = wanted(table)
        for logits, right in ((scores, to), (scores.T, back)):
            held = [place for place, gold in enumerate(right) if gold < logits.shape[1]]
            if held:
                total = total + functional.cross_entropy(
                    logits[held], torch.tensor([right[place] for place in held], device=found.device)
                )
        none = encoder.threshold().expand(len(to), 1)
        total = (
            total
            + functional.cross_entropy(torch.cat([scores, none], dim=1), torch.tensor(to, device=found.device)) / 3
        )
    return total / len(tables)


def thinned(table: TablePair) -> TablePair:
    """The table with a third as many columns that have no counterpart as columns that have one: those teach less."""
    placed = sum(column.field is not None for column in table.columns)
    kept, left = [], max(1, placed // 3)
    for column in table.columns:
        if column.field is None:
            left -= 1
        if column.field is not None or left >= 0:
            kept.append(column)
    return replace(table, columns=tuple(kept))


def judged(encoder: Biencoder, tables: Sequence[TablePair]) -> dict[str, float]:
    """Shares of columns: `right` (its field, or rightly none), `silent` (a wrong field), `ranked` (its field first, where
    it has one)."""
    with torch.no_grad():
        return _judged(encoder, tables)


def _judged(encoder: Biencoder, tables: Sequence[TablePair]) -> dict[str, float]:
    right = silent = first = has = count = 0
    for table in tables:
        scores = encoder.scores(table, encoder.vectors(texts(table)))
        none = float(encoder.threshold())
        for row, gold in zip(scores, wanted(table)[0], strict=True):
            best = int(row.argmax())
            said = best if float(row[best]) > none else len(table.fields)
            count, right, silent = (
                count + 1,
                right + (said == gold),
                silent + (said != gold and said < len(table.fields)),
            )
            if gold < len(table.fields):
                has, first = has + 1, first + (best == gold)
    return {"columns": count, "right": right / count, "silent": silent / count, "ranked": first / max(1, has)}


def train(
    encoder: Biencoder, recipe: Recipe, tables: Sequence[TablePair], held: Sequence[TablePair], folder: Path
) -> list[dict[str, float]]:
    """Trains for the recipe's steps, going on from the folder's checkpoint where it has one of the same recipe; what was
    lost and right on the way."""
    folder.mkdir(parents=True, exist_ok=True)
    optimiser = torch.optim.AdamW(encoder.trained(), lr=recipe.rate, weight_decay=0.01)
    curve, begun, started = _resumed(encoder, optimiser, recipe, folder), 0, time.monotonic()
    begun = int(curve[-1]["step"]) if curve else 0
    recent: list[float] = []
    for step in range(begun, recipe.steps):
        draw = random.Random(f"{recipe.seed} {step}")
        shown = draw.sample(range(len(tables)), recipe.tables)
        for group in optimiser.param_groups:
            group["lr"] = recipe.rate * min(1.0, (step + 1) / 15) * max(0.02, 1 - step / recipe.steps)
        loss = loss_of(encoder, [thinned(tables[i]) for i in shown])
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(encoder.trained(), 1.0)
        optimiser.step()
        recent.append(float(loss.detach()))
        if (step + 1) % _SAVED == 0 or step + 1 == recipe.steps:
            point = {"step": step + 1, "loss": sum(recent) / len(recent), "seconds": time.monotonic() - started}
            curve.append({**point, **judged(encoder, held)})
            recent.clear()
            print(" ".join(f"{k} {v:.3g}" for k, v in curve[-1].items()), flush=True)
            _save(encoder, optimiser, recipe, curve, folder)
    return curve


def _save(encoder: Biencoder, optimiser: Any, recipe: Recipe, curve: list[dict[str, float]], folder: Path) -> None:
    state = {n: p.detach() for n, p in encoder.model.named_parameters() if p.requires_grad}
    kept = {
        "lora": state,
        "spread": encoder.spread.detach(),
        "none": encoder.none.detach(),
        "optimiser": optimiser.state_dict(),
    }
    torch.save({**kept, "recipe": asdict(recipe), "base": encoder.base.name, "curve": curve}, folder / "checkpoint.new")
    (folder / "checkpoint.new").replace(folder / "checkpoint.pt")
    (folder / "curve.json").write_text(json.dumps(curve, indent=1), encoding="utf-8")


def _resumed(encoder: Biencoder, optimiser: Any, recipe: Recipe, folder: Path) -> list[dict[str, float]]:
    path = folder / "checkpoint.pt"
    if not path.exists():
        return []
    kept = torch.load(path, weights_only=True, map_location=encoder.base.device)
    if kept["recipe"] != asdict(recipe) or kept.get("base") != encoder.base.name:
        return []
    own = dict(encoder.model.named_parameters())
    with torch.no_grad():
        for name, value in kept["lora"].items():
            own[name].copy_(value)
        encoder.spread.copy_(kept["spread"])
        encoder.none.copy_(kept["none"])
    optimiser.load_state_dict(kept["optimiser"])
    found: list[dict[str, float]] = kept["curve"]
    return found
