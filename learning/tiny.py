"""A tiny model of Qwen3's architecture with random weights, as a folder of Hugging Face's and, of the same weights, as GGUF: the
way of the 8B, gone by a base that trains in seconds. It knows nothing. Needs the environment that `make train` makes.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import torch
from transformers import AutoTokenizer, Qwen3Config, Qwen3ForCausalLM

from agent.models.embedded import embedded_model_path
from bench.made_model import THOUGHT, Matrix, write_model
from bench.made_model import TINY as SHAPE
from learning.adapter_file import NAMES

TINY = "tiny-qwen3"
_OTHERS = {
    "input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm", "q_norm": "attn_q_norm", "k_norm": "attn_k_norm",
}  # fmt: skip
_OUTSIDE = {"model.embed_tokens.weight": "token_embd.weight", "model.norm.weight": "output_norm.weight"}


def write_tiny(folder: Path, seed: int = 1) -> Path:
    """Writes config, weights, the embedded model's tokenizer and `model.gguf`; returns the folder. Same seed, same weights."""
    told = str(embedded_model_path().parent), {"gguf_file": embedded_model_path().name}
    tokenizer = AutoTokenizer.from_pretrained(told[0], **told[1])
    torch.manual_seed(seed)
    config = Qwen3Config(
        vocab_size=len(tokenizer) + len(THOUGHT), hidden_size=SHAPE.width, intermediate_size=SHAPE.inner,
        num_hidden_layers=SHAPE.layers, num_attention_heads=SHAPE.heads, num_key_value_heads=SHAPE.kv_heads,
        head_dim=SHAPE.head_width, max_position_embeddings=SHAPE.context, tie_word_embeddings=True,
        rope_parameters={"rope_type": "default", "rope_theta": 1_000_000.0}, initializer_range=SHAPE.width**-0.5,
    )  # fmt: skip
    model = Qwen3ForCausalLM(config)
    with torch.no_grad():
        for name, value in model.named_parameters():
            if value.ndim == 1:  # norms that are all ones would hide one that is left out
                value.uniform_(0.5, 1.5)
            else:
                value.copy_(value.half().float())  # as GGUF has them
            assert name in _OUTSIDE or name.startswith("model.layers."), name
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    write_model(folder / "model.gguf", given=_named(model))
    return folder


def _named(model: Qwen3ForCausalLM) -> dict[str, Matrix]:
    """The weights by their names in GGUF."""
    found = {}
    for name, value in model.named_parameters():
        if match := re.fullmatch(r"model\.layers\.(\d+)\.(?:\w+\.)?(\w+)\.weight", name):
            own = f"blk.{match[1]}.{NAMES.get(match[2]) or _OTHERS[match[2]]}.weight"
        else:
            own = _OUTSIDE[name]
        found[own] = value.detach().numpy().astype(np.float32)
    return found
