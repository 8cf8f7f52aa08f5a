"""Opens the model that `--model` names, and the encoder beside it.

The encoder is always the embedded model: its vectors are what the ladder's figures were measured with.
"""

from __future__ import annotations

from agent.models.embedded import embedded_model_path
from agent.models.encoder import LlamaEncoder
from agent.models.kept import path_of
from agent.models.llamacpp import LlamaCpp
from agent.models.openai_server import OpenAiServer
from agent.models.protocol import Encoder, Model

_EMBEDDED_CONTEXT = 2048  # a view is at most 1,500 tokens, and half the cache is 50 MB saved


def open_model(spec: str | None) -> tuple[Model | None, Encoder | None]:
    """The decider and the encoder for a spec: None for the default, `none` for neither, `http(s)://…#name` for an
    OpenAI-compatible server, else the name of a model that is kept or the path of a GGUF file. ModelError where it can't
    be opened."""
    if spec is not None and spec.strip().casefold() == "none":
        return None, None
    if spec is not None and spec.startswith(("http://", "https://")):
        server = OpenAiServer(spec)
        return server, LlamaEncoder(embedded_model_path())
    path, embedded = path_of(spec), embedded_model_path()
    if path == embedded:
        model = LlamaCpp(embedded, context=_EMBEDDED_CONTEXT)
        return model, LlamaEncoder(embedded, model.weights)
    return LlamaCpp(path), LlamaEncoder(embedded)
