"""Writes a LoRA adapter as GGUF, as llama.cpp reads one.

Of a llama, llama.cpp keeps the rows of queries and keys in another order than transformers does; the adapter's follow them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import gguf
import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float32]
NAMES: Mapping[str, str] = {
    "q_proj": "attn_q", "k_proj": "attn_k", "v_proj": "attn_v", "o_proj": "attn_output", "gate_proj": "ffn_gate",
    "up_proj": "ffn_up", "down_proj": "ffn_down",
}  # fmt: skip


@dataclass(frozen=True)
class Heads:
    """How many heads the model's queries and keys have."""

    queries: int
    keys: int


def permuted(rows: Matrix, heads: int) -> Matrix:
    """The rows of a query or key matrix in llama.cpp's order; shape (rows, any) stays."""
    parts = rows.reshape(heads, 2, rows.shape[0] // heads // 2, *rows.shape[1:])
    return np.ascontiguousarray(parts.swapaxes(1, 2).reshape(rows.shape))


def write_adapter(
    path: Path,
    pairs: Mapping[tuple[int, str], tuple[Matrix, Matrix]],
    heads: Heads,
    alpha: float,
    told: Mapping[str, str | float],
    architecture: str = "llama",
) -> Path:
    """Writes matrices A (rank, in) and B (out, rank) by (layer, name as in NAMES), half precision; returns the path. `told` are
    further keys of the header."""
    out = gguf.GGUFWriter(path, architecture)
    out.add_type("adapter")
    out.add_string("adapter.type", "lora")
    out.add_float32("adapter.lora.alpha", alpha)
    for key, value in told.items():
        if isinstance(value, str):
            out.add_string(key, value)
        else:
            out.add_float32(key, value)
    for (layer, name), (a, b) in sorted(pairs.items()):
        if architecture == "llama" and name in ("q_proj", "k_proj"):
            b = permuted(b, heads.queries if name == "q_proj" else heads.keys)
        tensor = f"blk.{layer}.{NAMES[name]}.weight"
        out.add_tensor(f"{tensor}.lora_a", a.astype(np.float16))
        out.add_tensor(f"{tensor}.lora_b", b.astype(np.float16))
    out.write_header_to_file()
    out.write_kv_data_to_file()
    out.write_tensors_to_file()
    out.close()
    return path
