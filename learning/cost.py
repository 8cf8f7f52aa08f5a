"""What a training run takes on a GPU, computed from the base's shape and the recipe; nothing is measured or loaded.

Activations after Korthikanti et al., "Reducing Activation Recomputation in Large Transformer Models" (arXiv 2205.05198): a
layer keeps 34 t h + 5 a t^2 bytes in 16 bits, for t tokens in a row, width h and a heads. That counts what a LoRA's frozen
matrices needn't keep, so it is on the safe side.
"""

from __future__ import annotations

from dataclasses import dataclass

from learning.recipe import Recipe

TABLE_TOKENS = 342  # mean of 60 made-up tables, columns and fields, with the embedded model's tokenizer
PEAK = 165e12  # FLOP/s of an RTX 4090 in bfloat16 with sums in float32 (NVIDIA's Ada white paper)
USED = 0.3  # share of the peak that is reached: assumed
_FOUR_BITS = 4.127 / 8  # bytes a weight: NF4 with its scales quantised too (Dettmers et al., QLoRA, arXiv 2305.14314)
_ADAPTER = 16  # bytes a weight in float32: itself, its gradient, AdamW's two moments


@dataclass(frozen=True)
class Shape:
    """A base as its config.json has it. `keys` are heads of keys and values, each `head` wide."""

    layers: int
    width: int
    inner: int
    heads: int
    keys: int
    head: int
    vocabulary: int

    @property
    def matrices(self) -> tuple[tuple[int, int], ...]:
        """(in, out) of a layer's seven matrices."""
        queries, keys = self.heads * self.head, self.keys * self.head
        wide, deep = (self.width, self.inner), (self.inner, self.width)
        return ((self.width, queries), (self.width, keys), (self.width, keys), (queries, self.width), wide, wide, deep)

    @property
    def layer(self) -> int:
        """Weights of one layer's matrices."""
        return sum(a * b for a, b in self.matrices)


SHAPES = {
    "embedded": Shape(30, 576, 1536, 9, 3, 64, 49152),
    "qwen3-4b": Shape(36, 2560, 9728, 32, 8, 128, 151936),
    "qwen3-8b": Shape(36, 4096, 12288, 32, 8, 128, 151936),
}


@dataclass(frozen=True)
class Cost:
    """Bytes on the GPU and hours. `weights` are the base's without an output head, which the encoder has no use for."""

    weights: float
    adapter: float
    activations: float
    hours: float

    @property
    def whole(self) -> float:
        """Bytes, without what CUDA and torch take for themselves (1 to 2 GB)."""
        return self.weights + self.adapter + self.activations


def cost(shape: Shape, recipe: Recipe, *, bits: int = 0, checkpointing: bool = False) -> Cost:
    """What a run of that recipe takes; `bits` 0 is bfloat16."""
    trained = min(recipe.layers, shape.layers)
    tokens = recipe.tables * TABLE_TOKENS
    linear = shape.layers * shape.layer
    weights = linear * (_FOUR_BITS if bits == 4 else 2) + shape.vocabulary * shape.width * 2
    adapter = trained * recipe.rank * sum(a + b for a, b in shape.matrices) * _ADAPTER
    kept = 34 * tokens * shape.width + 5 * shape.heads * tokens**2
    activations = trained * 2 * tokens * shape.width + kept if checkpointing else trained * kept
    # a weight takes two operations a token forward, two back where gradients pass, and two more where it is computed again
    operations = 2 * linear + (4 if checkpointing else 2) * trained * shape.layer
    return Cost(weights, adapter, activations, recipe.steps * tokens * operations / (PEAK * USED) / 3600)


def told(name: str, recipe: Recipe) -> str:
    """A Markdown table of what a base takes in each setting. KeyError for a base whose shape isn't known."""
    lines = ["| base | weights | adapter | activations | in all | time |", "|---|---|---|---|---|---|"]
    for bits, checkpointing in ((0, False), (0, True), (4, True)):
        found = cost(SHAPES[name], recipe, bits=bits, checkpointing=checkpointing)
        how = ("4 bits" if bits else "bfloat16") + (", --checkpointing" if checkpointing else "")
        size = " | ".join(
            f"{part / 1e9:.1f} GB" for part in (found.weights, found.adapter, found.activations, found.whole)
        )
        lines.append(f"| {name}, {how} | {size} | {found.hours * 60:.0f} min |")
    return "\n".join(lines)
