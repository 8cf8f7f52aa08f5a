"""Turns short texts into vectors with a language model: the mean of its last hidden states.

How alike two vectors are is no probability: with an adapter that says how its scores are meant it becomes one
(`agent.models.nearest`). Vectors are kept by text, since the same names come again and again.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from agent.models.cores import IdleCores, physical_cores
from agent.models.gguf_file import Header, read_adapter, read_header
from agent.models.native import Context, Weights
from agent.models.protocol import Scale

_LENGTH = 1024
_KEPT = 20_000  # vectors; 50 MB at a width of 576


class LlamaEncoder:
    """An encoder over a GGUF file, or over weights that a model has loaded already."""

    def __init__(
        self, path: Path, weights: Weights | None = None, threads: int = 0, adapter: Path | None = None
    ) -> None:
        """ModelError where the file is no sound model, or the `adapter` isn't for it. Weights that are handed in are not
        freed by `close`; the adapter works on this encoder's own context, and not on theirs."""
        header = read_header(path)
        self.name = header.label if adapter is None else f"{read_adapter(adapter, header).label} on {header.label}"
        self.scale = _scale(adapter, header) if adapter is not None else None
        self._adapter = adapter
        self._weights = weights or Weights(path)
        self._owns = weights is None
        self._threads = threads
        self._context: Context | None = None  # opened when first needed: it takes 50 MB
        self._idle_cores = None if threads else IdleCores()
        self._known: dict[str, NDArray[np.float32]] = {}

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Shape (len(texts), width), rows of length 1; an empty text gives a row of zeros."""
        new = [text for text in dict.fromkeys(texts) if text not in self._known]
        if new:
            if len(self._known) + len(new) > _KEPT:
                self._known.clear()
                new = list(dict.fromkeys(texts))
            if self._context is None:
                self._context = Context(self._weights, _LENGTH, self._threads or physical_cores(), vectors=True)
                if self._adapter is not None:
                    self._context.adapt(self._weights.adapter(self._adapter))
            if self._idle_cores is not None:
                self._context.use_threads(self._idle_cores())
            tokens = [self._weights.tokens(text, special=False) for text in new]
            self._known.update(zip(new, self._context.vectors(tokens), strict=True))
        if not texts:
            return np.zeros((0, self._weights.width), np.float32)
        return np.stack([self._known[text] for text in texts])

    def close(self) -> None:
        """Frees the context, and the weights where they are its own."""
        if self._context is not None:
            self._context.close()
        if self._owns:
            self._weights.close()


def _scale(adapter: Path, header: Header) -> Scale | None:
    told = read_adapter(adapter, header).metadata
    spread, none = told.get("packhorse.spread"), told.get("packhorse.none")
    return Scale(spread, none) if isinstance(spread, float) and isinstance(none, float) else None
