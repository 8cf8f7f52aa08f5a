"""Makes GGUF files of Qwen3's architecture with random weights: of the true 8B shape, to measure what it takes and how fast
it is, or tiny, to drive every path of the code. They know nothing, and none is shipped.

The vocabulary is the embedded model's, filled up to Qwen3's size, with the marks of a thought; the chat template does what
Qwen3's does with `enable_thinking`. Written with the `gguf` library, which only those who develop have.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import gguf
import numpy as np
from gguf import GGMLQuantizationType as Type
from numpy.typing import NDArray

from agent.models.embedded import embedded_model_path

Matrix = NDArray[np.float32]
TEMPLATE = """\
{%- for m in messages %}<|im_start|>{{ m.role }}
{{ m.content }}<|im_end|>
{% endfor %}<|im_start|>assistant
{% if enable_thinking is defined and not enable_thinking %}<think>

</think>

{% endif %}"""
THOUGHT = ("<think>", "</think>")
_NORMAL, _CONTROL, _USER_DEFINED, _UNUSED = 1, 3, 4, 5


@dataclass(frozen=True)
class Shape:
    """The sizes of a Qwen3 model. `quantised` writes weights as Q4_K_M does (Q4_K, and Q6_K where that puts it), else F16.
    `vocabulary` 0 takes the embedded model's tokens and no more."""

    layers: int
    width: int
    heads: int
    kv_heads: int
    head_width: int
    inner: int
    vocabulary: int = 0
    context: int = 40_960
    quantised: bool = False


TINY = Shape(layers=2, width=64, heads=4, kv_heads=2, head_width=16, inner=128, context=2048)
QWEN3_8B = Shape(36, 4096, 32, 8, 128, 12_288, vocabulary=151_936, quantised=True)


def write_model(
    path: Path, shape: Shape = TINY, seed: int = 0, template: str = TEMPLATE, given: Mapping[str, Matrix] | None = None
) -> Path:
    """Writes the file and returns its path; the same shape and seed give the same bytes. The 8B takes 5 GB of disk and some
    seconds, and little memory: tensors of one size share their random bytes. Weights that are `given`, by their name in GGUF,
    are taken in the place of random ones."""
    out = gguf.GGUFWriter(path, "qwen3")
    size = _describe(out, shape, template)
    weights = _Weights(out, shape, seed, given or {})
    weights.add("token_embd.weight", size, shape.width)
    weights.ones("output_norm.weight", shape.width)
    if shape.quantised:  # small ones of the family use the embedding for it
        weights.add("output.weight", size, shape.width, more=True)
    for layer in range(shape.layers):
        _add_layer(weights, shape, layer)
    out.write_header_to_file()
    out.write_kv_data_to_file()
    out.write_tensors_to_file()
    out.close()
    return path


def write_adapter(path: Path, shape: Shape = TINY, seed: int = 1, rank: int = 4, strength: float = 1.0) -> Path:
    """A LoRA adapter for such a model, over the queries of each layer; `strength` scales what it changes."""
    out = gguf.GGUFWriter(path, "qwen3")
    out.add_type("adapter")
    out.add_string("adapter.type", "lora")
    out.add_float32("adapter.lora.alpha", float(rank))
    random = np.random.default_rng(seed)
    for layer in range(shape.layers):
        name = f"blk.{layer}.attn_q.weight"
        out.add_tensor(f"{name}.lora_a", random.normal(0, 1, (rank, shape.width)).astype(np.float32))
        rows = shape.heads * shape.head_width
        out.add_tensor(f"{name}.lora_b", random.normal(0, strength, (rows, rank)).astype(np.float32))
    out.write_header_to_file()
    out.write_kv_data_to_file()
    out.write_tensors_to_file()
    out.close()
    return path


def _describe(out: gguf.GGUFWriter, shape: Shape, template: str) -> int:
    """Metadata and vocabulary; returns the number of tokens."""
    fields = gguf.GGUFReader(embedded_model_path()).fields
    tokens = list(fields["tokenizer.ggml.tokens"].contents())
    types = list(fields["tokenizer.ggml.token_type"].contents())
    tokens += THOUGHT
    types += [_USER_DEFINED] * len(THOUGHT)
    filling = max(0, shape.vocabulary - len(tokens))
    tokens += [f"[filling {number}]" for number in range(filling)]
    types += [_UNUSED] * filling
    out.add_type("model")
    out.add_name("random weights, made to measure")
    out.add_context_length(shape.context)
    out.add_embedding_length(shape.width)
    out.add_block_count(shape.layers)
    out.add_feed_forward_length(shape.inner)
    out.add_head_count(shape.heads)
    out.add_head_count_kv(shape.kv_heads)
    out.add_key_length(shape.head_width)
    out.add_value_length(shape.head_width)
    out.add_rope_freq_base(1_000_000.0)
    out.add_layer_norm_rms_eps(1e-6)
    out.add_tokenizer_model("gpt2")
    out.add_tokenizer_pre(str(fields["tokenizer.ggml.pre"].contents()))
    out.add_token_list(tokens)
    out.add_token_types(types)
    out.add_token_merges(fields["tokenizer.ggml.merges"].contents())
    for key in ("bos", "eos", "padding"):
        out.add_uint32(f"tokenizer.ggml.{key}_token_id", int(fields[f"tokenizer.ggml.{key}_token_id"].contents()))
    out.add_add_bos_token(False)
    out.add_chat_template(template)
    return len(tokens)


def _add_layer(weights: _Weights, shape: Shape, layer: int) -> None:
    name, more = f"blk.{layer}", _more_bits(layer, shape.layers)
    queries, keys = shape.heads * shape.head_width, shape.kv_heads * shape.head_width
    weights.ones(f"{name}.attn_norm.weight", shape.width)
    weights.add(f"{name}.attn_q.weight", queries, shape.width)
    weights.add(f"{name}.attn_k.weight", keys, shape.width)
    weights.add(f"{name}.attn_v.weight", keys, shape.width, more=more)
    weights.ones(f"{name}.attn_q_norm.weight", shape.head_width)
    weights.ones(f"{name}.attn_k_norm.weight", shape.head_width)
    weights.add(f"{name}.attn_output.weight", shape.width, queries)
    weights.ones(f"{name}.ffn_norm.weight", shape.width)
    weights.add(f"{name}.ffn_gate.weight", shape.inner, shape.width)
    weights.add(f"{name}.ffn_up.weight", shape.inner, shape.width)
    weights.add(f"{name}.ffn_down.weight", shape.width, shape.inner, more=more)


def _more_bits(layer: int, layers: int) -> bool:
    """Where Q4_K_M spends six bits: the first and last eighth of the layers, and each third between."""
    eighth = layers // 8
    return layer < eighth or layer >= 7 * layers // 8 or (layer - eighth) % 3 == 2


class _Weights:
    """Adds tensors, random ones where none is given; a quantised one of a size and type seen before is the same bytes again."""

    def __init__(self, out: gguf.GGUFWriter, shape: Shape, seed: int, given: Mapping[str, Matrix]) -> None:
        self._given = given
        self._out, self._quantised = out, shape.quantised
        self._random = np.random.default_rng(seed)
        self._made: dict[tuple[int, int, bool], NDArray[np.uint8]] = {}

    def ones(self, name: str, width: int) -> None:
        self._out.add_tensor(name, self._given.get(name, np.ones(width, np.float32)))

    def add(self, name: str, rows: int, columns: int, *, more: bool = False) -> None:
        if name in self._given:
            self._out.add_tensor(name, self._given[name].astype(np.float16))
            return
        if not self._quantised:
            spread = 1 / np.sqrt(columns)
            self._out.add_tensor(name, self._random.normal(0, spread, (rows, columns)).astype(np.float16))
            return
        key = (rows, columns, more)
        if key not in self._made:
            self._made[key] = self._blocks(rows, columns, more)
        self._out.add_tensor(name, self._made[key], raw_dtype=Type.Q6_K if more else Type.Q4_K)

    def _blocks(self, rows: int, columns: int, more: bool) -> NDArray[np.uint8]:
        """Random quants under a scale that keeps the numbers tame: shape (rows, bytes a row)."""
        size = 210 if more else 144  # bytes for 256 values
        count = rows * columns // 256
        blocks = self._random.integers(0, 256, (count, size), dtype=np.uint8)
        scale = np.float16(2e-5 if more else 1e-4).tobytes()
        if more:
            blocks[:, 208:210] = np.frombuffer(scale, np.uint8)
        else:
            blocks[:, 0:2] = np.frombuffer(scale, np.uint8)
            blocks[:, 2:4] = np.frombuffer(np.float16(7e-4).tobytes(), np.uint8)
        return blocks.reshape(rows, columns // 256 * size)
