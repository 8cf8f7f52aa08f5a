"""Opens the model that `--model` names, and the encoder beside it.

The encoder is always the embedded model; with the adapter of `agent.models.adapters` where one is there, which settles
something only if it is the measured one.
"""

from __future__ import annotations

from pathlib import Path

from agent.models.adapters import COLUMNS
from agent.models.chat import Chat
from agent.models.embedded import embedded_model_path
from agent.models.encoder import LlamaEncoder
from agent.models.gguf_file import read_adapter, read_header
from agent.models.kept import path_of
from agent.models.llamacpp import LlamaCpp
from agent.models.native import Weights
from agent.models.openai_server import OpenAiServer
from agent.models.options import ModelOptions
from agent.models.protocol import Encoder, Model
from workspace.errors import ModelError

_SCHEMES = ("http://", "https://")
_EMBEDDED_CONTEXT = 2048  # a view is at most 1,500 tokens, and half the cache is 50 MB saved


def check_options(spec: str | None, options: ModelOptions) -> None:
    """ModelError where a model named so can't be used so, as far as that can be told without loading it: before a job
    begins, and not once both systems were surveyed."""
    if spec is not None and spec.startswith(_SCHEMES):
        OpenAiServer(spec, options)
    elif spec is None or spec.strip().casefold() != "none":
        header = read_header(path_of(spec))
        if options.adapter is not None:
            read_adapter(Path(options.adapter).expanduser(), header)
        if options.think and not Chat(header.template, "", "", lambda text, special: []).thinks:
            raise ModelError("its chat template knows no thinking", where=str(header.path), advice="leave --think out")
    elif options.adapter is not None or options.think:
        raise ModelError("there is no model to think or to adapt", where="--model none", advice="leave the option out")


def open_model(spec: str | None, options: ModelOptions | None = None) -> tuple[Model | None, Encoder | None]:
    """The decider and the encoder for a spec: None for the default, `none` for neither, `http(s)://…#name` for an
    OpenAI-compatible server, else the name of a model that is kept or the path of a GGUF file. ModelError where it can't
    be opened."""
    options = options or ModelOptions()
    if spec is not None and spec.strip().casefold() == "none":
        return None, None
    if spec is not None and spec.startswith(_SCHEMES):
        server = OpenAiServer(spec, options)
        return server, _encoder()
    path, embedded = path_of(spec), embedded_model_path()
    adapter = Path(options.adapter).expanduser() if options.adapter is not None else None
    if path == embedded:
        model = LlamaCpp(embedded, context=_EMBEDDED_CONTEXT, adapter=adapter, think=options.think)
        return model, _encoder(model.weights)
    return LlamaCpp(path, adapter=adapter, think=options.think), _encoder()


def _encoder(weights: Weights | None = None) -> LlamaEncoder:
    return LlamaEncoder(embedded_model_path(), weights, adapter=COLUMNS if COLUMNS.exists() else None)
