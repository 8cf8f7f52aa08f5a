"""The commands of this room: `generate`, `check`, `cost` and `train`.

    python -m learning generate [--split train] [--tables 500] [--seed 1] [-o build/learning/train.jsonl]
    python -m learning check [--tables 2000] [--seed 1]
    python -m learning cost [--base qwen3-8b]
    python -m learning train [--seed 1] [--small] [-o build/learning]
        [--base FOLDER|FILE.gguf|qwen3-8b|tiny-qwen3] [--device cpu|cuda] [--bits 4] [--checkpointing]

`train` wants the environment that `make train` makes; the others run in the usual one.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path

from learning.cost import SHAPES, told
from learning.examples import write_examples
from learning.leaks import denied, overlaps
from learning.recipe import Recipe
from learning.schemas import pairs
from workspace.errors import PackhorseError

BUILD = Path("build/learning")


def generate(split: str, tables: int, seed: int, out: Path) -> None:
    """Writes examples of a split as JSON lines."""
    count = write_examples(pairs(split, tables, denied(), seed), out)  # type: ignore[arg-type]
    print(f"{count:,} columns of {tables:,} tables in {out}; left out is what {denied().digest} names")


def check(tables: int, seed: int) -> int:
    """Generates all splits and holds them against what is kept apart: 0 where nothing got through."""
    known, found, held = denied(), [], Counter[str]()
    for split in ("train", "words", "unseen"):
        made = list(pairs(split, tables, known, seed))
        held[split] = sum(len(table.columns) for table in made)
        found += overlaps(made, known)
    for line in found[:20]:
        print(f"kept apart, and generated: {line}")
    print(
        f"{sum(held.values()):,} columns against {len(known.pairs):,} pairs and {len(known.lists)} lists: {len(found)} overlap"
    )
    return 1 if found else 0


def cost(base: str) -> int:
    """Prints what training on a base takes on a GPU of 24 GB; 2 and one error for a base whose shape isn't known."""
    if base not in SHAPES:
        print(f"error: no shape is known of {base[:60]!r}\n  do: give one of {', '.join(SHAPES)}", file=sys.stderr)
        return 2
    print(told(base, Recipe()))
    return 0


def train(given: argparse.Namespace) -> int:
    """Trains as the command line says; 2 and one error where that can't be."""
    from learning.base import Hardware  # wants torch, which the usual environment hasn't
    from learning.run import run

    hardware = Hardware(given.device, given.bits, given.checkpointing)
    try:
        return run(given.out or BUILD, given.seed, small=given.small, base=given.base, hardware=hardware)
    except PackhorseError as error:
        print(f"{error.code} {error}" + (f"\n  do: {error.advice}" if error.advice else ""), file=sys.stderr)
        return error.exit_code


def main() -> int:
    """The command line; returns the exit code."""
    parser = argparse.ArgumentParser(prog="learning", description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("what", choices=("generate", "check", "cost", "train"))
    parser.add_argument("--split", choices=("train", "words", "unseen"), default="train")
    parser.add_argument("--tables", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--small", action="store_true", help="a few steps over the whole way, to see that it goes")
    parser.add_argument(
        "--base", help="what to train on: a folder, a GGUF file or a name; without it the embedded model"
    )
    parser.add_argument("--device", default="cpu", help="cpu or cuda")
    parser.add_argument("--bits", type=int, default=0, help="4 keeps the base's weights in four bits")
    parser.add_argument("--checkpointing", action="store_true", help="less memory, a third more time")
    parser.add_argument("-o", "--out", type=Path, default=None)
    given = parser.parse_args()
    if given.what == "generate":
        generate(given.split, given.tables, given.seed, given.out or BUILD / f"{given.split}.jsonl")
        return 0
    if given.what == "cost":
        return cost(given.base or "qwen3-8b")
    if given.what == "train":
        return train(given)
    return check(given.tables, given.seed)


if __name__ == "__main__":
    raise SystemExit(main())
