"""How much memory a model takes, from its file's header alone, and whether this machine has it."""

from __future__ import annotations

from dataclasses import dataclass

import psutil

from agent.models.gguf_file import Header, Value, whole_size

CONTEXT = 4096
"""Tokens of context that a model is opened with."""
_HALF = 2  # bytes of a number in the KV cache
_ROWS = 512  # tokens of a batch, each with the scores of the whole vocabulary, in the worst case
_WORK = 160 * 2**20  # Python, llama.cpp and what it computes in


@dataclass(frozen=True)
class Need:
    """Bytes: the weights, the KV cache at the context given, and what is computed in at most."""

    weights: int
    cache: int
    work: int

    @property
    def whole(self) -> int:
        """All of it."""
        return self.weights + self.cache + self.work


def need_of(header: Header, context: int) -> Need:
    """What the model takes with a KV cache of `context` tokens; a cache whose size the header doesn't tell counts as 0."""
    scores = 4 * _ROWS * header.vocabulary
    length = min(context, header.context) if header.context else context
    return Need(whole_size(header), length * _cache_of_a_token(header), scores + _WORK)


def memory() -> tuple[int, int]:
    """Bytes of memory that are available now, and those of the machine."""
    found = psutil.virtual_memory()
    return int(found.available), int(found.total)


def _cache_of_a_token(header: Header) -> int:
    def number(key: str) -> int:
        found = header.metadata.get(f"{header.architecture}.{key}", 0)
        return found if isinstance(found, int) else 0

    heads = header.metadata.get(f"{header.architecture}.attention.head_count_kv", 0)
    layers, width, queries = number("block_count"), number("embedding_length"), number("attention.head_count")
    one = width // queries if queries else 0
    lengths = (number("attention.key_length") or one) + (number("attention.value_length") or one)
    return _HALF * lengths * _sum(heads, layers, queries)


def _sum(heads: Value, layers: int, queries: int) -> int:
    """KV heads of all layers together; some architectures have another number in each."""
    if isinstance(heads, tuple):
        return sum(each for each in heads if isinstance(each, int))
    return (heads if isinstance(heads, int) and heads else queries) * layers
