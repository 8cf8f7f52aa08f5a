"""The whole way: tables are made, the encoder is trained and written as GGUF, and llama.cpp is held against torch.

Needs the environment that `make train` makes.
"""

from __future__ import annotations

import json
import re
from dataclasses import asdict
from pathlib import Path

import numpy as np
import torch

from agent.models.encoder import LlamaEncoder
from learning.adapter_file import Heads, write_adapter
from learning.base import Hardware
from learning.leaks import denied, overlaps
from learning.recipe import Recipe
from learning.schemas import TablePair, pairs
from learning.tiny import TINY, write_tiny
from learning.train import Biencoder, judged, texts, train

ADAPTER = "encoder.gguf"


def run(
    folder: Path, seed: int = 1, *, small: bool = False, base: str | None = None, hardware: Hardware | None = None
) -> int:
    """Trains, exports, checks; prints what it found and leaves it in `folder/report.json`. 1 where llama.cpp's vectors are
    not torch's, or something that is kept apart was learnt. `base` and `hardware` as `open_base` takes them, and TINY makes
    a base that knows nothing."""
    recipe = Recipe(steps=6, layers=4, seed=seed) if small else Recipe(seed=seed)
    known = denied()
    tables = list(pairs("train", recipe.steps * recipe.tables, known, seed))
    held = {split: list(pairs(split, 2 if small else 25, known, seed)) for split in ("words", "unseen")}
    if found := overlaps([*tables, *held["words"], *held["unseen"]], known):
        print(f"{len(found)} columns are kept apart, and were generated: {found[0]}")
        return 1
    if base == TINY:
        base = str(write_tiny(folder / TINY, seed))
    encoder = Biencoder(recipe, base, hardware)
    curve = train(encoder, recipe, tables, held["words"][:6], folder)
    path = export(encoder, recipe, folder / ADAPTER, known.digest)
    gguf = encoder.base.gguf
    same = parity(encoder, gguf, path, held["words"]) if gguf is not None else None
    measured = {split: judged(encoder, made) for split, made in held.items()}
    columns = sum(len(table.columns) for table in tables)
    report = {
        "recipe": asdict(recipe),
        "base": encoder.base.name,
        "columns": columns,
        "kept_apart": known.digest,
        "parity": same,
        **measured,
        "curve": curve,
    }
    (folder / "report.json").write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    print(json.dumps({key: report[key] for key in ("base", "columns", "parity", "words", "unseen")}, indent=1))
    if same is None:
        print(
            f"no GGUF of {encoder.base.name} is here, so llama.cpp was not held against torch: put one into its folder"
        )
        return 0
    return 0 if same["correlation"] > 0.98 else 1


def export(encoder: Biencoder, recipe: Recipe, path: Path, digest: str) -> Path:
    """The adapter as GGUF, with what its scores mean and how it came to be in the header."""
    sides: dict[tuple[int, str], dict[str, np.ndarray]] = {}
    for name, value in encoder.model.named_parameters():
        if match := re.search(r"layers\.(\d+)\..*?(\w+)\.lora_(A|B)\.", name):
            key = (int(match[1]), match[2])
            sides.setdefault(key, {})[match[3]] = value.detach().float().cpu().numpy()
    config = encoder.model.config
    told: dict[str, str | float] = {
        "general.name": "Packhorse column encoder",
        "general.license": "apache-2.0",
        "general.base_model.0.name": encoder.base.name,
        "packhorse.spread": float(encoder.spread.detach().exp()),
        "packhorse.none": float(encoder.none.detach()),
        "packhorse.recipe": json.dumps(asdict(recipe)),
        "packhorse.kept_apart": digest,
    }
    both = {key: (side["A"], side["B"]) for key, side in sides.items()}
    heads = Heads(config.num_attention_heads, config.num_key_value_heads)
    return write_adapter(path, both, heads, float(recipe.alpha), told, encoder.base.architecture)


def parity(encoder: Biencoder, gguf: Path, path: Path, tables: list[TablePair]) -> dict[str, float]:
    """How far llama.cpp's scores (the base of `gguf`, the adapter of `path`) are torch's: their correlation, and the share of columns
    whose first field is the same."""
    native = LlamaEncoder(gguf, threads=1, adapter=path)
    ours, theirs, same, count = [], [], 0, 0
    for table in tables[:10]:
        split = len(table.columns)
        with torch.no_grad():
            a = encoder.vectors(texts(table)).cpu().numpy()
        b = native.encode(texts(table))
        a, b = a[:split] @ a[split:].T, b[:split] @ b[split:].T
        ours.append(a.ravel())
        theirs.append(b.ravel())
        same += int((a.argmax(1) == b.argmax(1)).sum())
        count += split
    native.close()
    correlation = float(np.corrcoef(np.concatenate(ours), np.concatenate(theirs))[0, 1])
    return {"correlation": correlation, "same_first": same / count, "columns": count}
