"""How many tokens a text is to a model, so that a view can be kept within its room.

A model that has its tokenizer at hand is asked (`count_tokens`). For any other the embedded model's tokenizer is loaded
alone, without weights, and what it says is raised by a seventh, since tokenizers differ. It has 49,152 tokens, most of
them English; those of larger models have more, and make fewer tokens of the same text. No tokenizer of this kind makes
more of a text than it has bytes, so that is the upper end, and the estimate where the embedded file is missing.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from agent.models.embedded import embedded_model_path
from agent.models.protocol import Model
from workspace.errors import ModelError

Count = Callable[[str], int]
"""The number of tokens of a text."""
_MARGIN = 8 / 7


def counter_of(model: Model) -> Count:
    """What counts a model's tokens: its own tokenizer, or an estimate that is on the safe side."""
    own: Count | None = getattr(model, "count_tokens", None)
    return own or estimated


def estimated(text: str) -> int:
    """The number of tokens that a text may be to a model whose tokenizer isn't here."""
    count, most = _embedded(), len(text.encode("utf-8", "replace"))
    return most if count is None else min(most, -int(-count(text) * _MARGIN // 1))


@lru_cache(maxsize=1)
def _embedded() -> Count | None:
    from agent.models.native import token_counter  # loads a native library; not where nobody counts

    try:
        return token_counter(embedded_model_path())
    except ModelError:
        return None
