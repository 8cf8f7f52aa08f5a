"""Writes small GGUF files for tests: a header with the metadata given, and tensors of zeros."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from pathlib import Path

Metadata = Mapping[str, "str | int | Sequence[str]"]
MINIMAL: Metadata = {"general.architecture": "nonesuch", "tokenizer.ggml.tokens": ("a", "b")}


def _text(value: str) -> bytes:
    raw = value.encode()
    return struct.pack("<Q", len(raw)) + raw


def _value(value: str | int | Sequence[str]) -> bytes:
    if isinstance(value, str):
        return struct.pack("<I", 8) + _text(value)
    if isinstance(value, int):
        return struct.pack("<Ii", 5, value)
    return struct.pack("<IIQ", 9, 8, len(value)) + b"".join(_text(item) for item in value)


def write_gguf(path: Path, metadata: Metadata = MINIMAL, values: int = 64, version: int = 3) -> Path:
    """One F32 tensor of `values` zeros under the metadata; returns the path."""
    head = b"GGUF" + struct.pack("<IQQ", version, 1, len(metadata))
    head += b"".join(_text(key) + _value(value) for key, value in metadata.items())
    head += _text("token_embd.weight") + struct.pack("<IQIQ", 1, values, 0, 0)
    head += b"\0" * (-len(head) % 32)
    path.write_bytes(head + b"\0" * (4 * values))
    return path
