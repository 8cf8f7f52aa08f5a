"""Reads a GGUF file's header and holds its tensors' extents against the file's size.

llama.cpp trusts a file: one that is cut off or damaged can end the process. So each file passes here first.
Nothing is loaded and nothing in the file is run.
"""

from __future__ import annotations

import hashlib
import re
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from workspace.errors import ModelError

Value = str | int | float | bool | tuple["Value", ...]

_SCALARS = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q", 12: "<d"}
_STRING, _ARRAY = 8, 9
_KEPT = 256  # items of an array that are kept; a vocabulary is only measured

# ggml's tensor types: (values a block, bytes a block, name). One that isn't here is taken at its offset alone.
_BLOCKS: dict[int, tuple[int, int, str]] = {
    0: (1, 4, "F32"), 1: (1, 2, "F16"), 2: (32, 18, "Q4_0"), 3: (32, 20, "Q4_1"), 6: (32, 22, "Q5_0"),
    7: (32, 24, "Q5_1"), 8: (32, 34, "Q8_0"), 10: (256, 84, "Q2_K"), 11: (256, 110, "Q3_K"),
    12: (256, 144, "Q4_K"), 13: (256, 176, "Q5_K"), 14: (256, 210, "Q6_K"), 15: (256, 292, "Q8_K"),
    16: (256, 66, "IQ2_XXS"), 17: (256, 74, "IQ2_XS"), 18: (256, 98, "IQ3_XXS"), 19: (256, 50, "IQ1_S"),
    20: (32, 18, "IQ4_NL"), 21: (256, 110, "IQ3_S"), 22: (256, 82, "IQ2_S"), 23: (256, 136, "IQ4_XS"),
    24: (1, 1, "I8"), 25: (1, 2, "I16"), 26: (1, 4, "I32"), 27: (1, 8, "I64"), 28: (1, 8, "F64"),
    29: (256, 56, "IQ1_M"), 30: (1, 2, "BF16"), 34: (256, 54, "TQ1_0"), 35: (256, 66, "TQ2_0"),
    39: (32, 17, "MXFP4"),
}  # fmt: skip
_ADVICE = "give --model a GGUF file of a language model, or leave it out for the embedded one"


@dataclass(frozen=True)
class Header:
    """What a GGUF file says of itself. `metadata` holds arrays cut to their first items; `tensors` counts
    them, `values` is the number of weights, `quantisation` the type that holds most of them; `fingerprint`
    is a SHA-256 over the header, the size and blocks spread over the weights (the whole file isn't read);
    `vocabulary` counts the tokens."""

    path: Path
    size: int
    metadata: Mapping[str, Value]
    tensors: int
    values: int
    quantisation: str
    fingerprint: str
    vocabulary: int = 0

    @property
    def architecture(self) -> str:
        """llama.cpp's word for it, such as `llama` or `qwen3`."""
        return str(self.metadata.get("general.architecture", ""))

    @property
    def name(self) -> str:
        """The file's own name for the model, else the file's name."""
        return str(self.metadata.get("general.name") or self.path.stem)

    @property
    def context(self) -> int:
        """Tokens it was trained for; 0 where it doesn't say."""
        found = self.metadata.get(f"{self.architecture}.context_length", 0)
        return found if isinstance(found, int) else 0

    @property
    def template(self) -> str:
        """The chat template; empty where it has none."""
        return str(self.metadata.get("tokenizer.chat_template", ""))

    @property
    def label(self) -> str:
        """File name and the start of the fingerprint: what a log calls the model."""
        return f"{self.path.name} {self.fingerprint[:12]}"


def read_header(path: Path) -> Header:
    """The header of a whole and sound GGUF language model. ModelError, one line, for any other file."""
    header = _read(path)
    parts = header.metadata.get("split.count", 1)
    if isinstance(parts, int) and parts > 1:
        _check_siblings(path, parts)
    kind = header.metadata.get("general.type", "model")
    if kind != "model" or not header.architecture or header.architecture in ("clip", "imatrix", "controlvector"):
        raise _refused(
            path, f"holds no language model but {kind if kind != 'model' else header.architecture or 'nothing named'}"
        )
    if not header.tensors:
        raise _refused(path, "holds a vocabulary and no weights")
    if "tokenizer.ggml.tokens" not in header.metadata:
        raise _refused(path, "holds no vocabulary")
    return header


def read_adapter(path: Path, header: Header) -> Header:
    """The header of a LoRA adapter made for the model of `header`. ModelError, one line, for any other file."""
    found = _read(path)
    if found.metadata.get("general.type") != "adapter" or found.metadata.get("adapter.type") != "lora":
        raise ModelError("holds no LoRA adapter", where=str(path), advice="give --adapter a GGUF file of one")
    if found.architecture != header.architecture:
        raise ModelError(
            f"an adapter for {found.architecture or 'nothing named'}, and the model is {header.architecture}",
            where=str(path), advice=f"take one that was trained on {header.name}",
        )  # fmt: skip
    return found


def sha256_of(path: Path) -> str:
    """The file's SHA-256, to compare with what its publisher says. Reads the whole file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _read(path: Path) -> Header:
    try:
        if path.is_dir():
            raise _refused(path, "a folder, not a GGUF file")
        size = path.stat().st_size
        with path.open("rb") as file:
            return _parse(path, file, size)
    except FileNotFoundError:
        raise ModelError("no such model file", where=str(path), advice=_ADVICE) from None
    except OSError as error:
        raise ModelError(f"cannot be read: {error.strerror}", where=str(path)) from None


def _parse(path: Path, file: BinaryIO, size: int) -> Header:
    if file.read(4) != b"GGUF":
        raise _refused(path, "not a GGUF file")
    reader = _Reader(path, file, size)
    version = reader.scalar("<I")
    if version not in (2, 3):
        raise _refused(path, f"GGUF version {version} is not one that can be read (2 and 3 are)")
    tensors, keys = int(reader.scalar("<Q")), int(reader.scalar("<Q"))
    if tensors > 100_000 or keys > 100_000:
        raise _refused(path, "damaged: its header counts more tensors or keys than a model has")
    metadata: dict[str, Value] = {}
    vocabulary = 0
    for _ in range(keys):
        key = reader.text()
        metadata[key] = reader.value(int(reader.scalar("<I")))
        if key == "tokenizer.ggml.tokens":
            vocabulary = reader.last_count
    table = [reader.tensor() for _ in range(tensors)]
    alignment = metadata.get("general.alignment", 32)
    if not isinstance(alignment, int) or alignment < 1:
        raise _refused(path, "damaged: its alignment is not a number")
    start = -(-reader.position // alignment) * alignment
    by_type: dict[str, int] = {}
    for name, values, kind, offset in table:
        block = _BLOCKS.get(kind)
        length = -(-values // block[0]) * block[1] if block else 1
        if start + offset + length > size:
            raise _refused(path, f"cut off: {size:,} bytes, and the tensor {name} ends at {start + offset + length:,}")
        label = block[2] if block else f"type {kind}"
        by_type[label] = by_type.get(label, 0) + values
    return Header(
        path,
        size,
        metadata,
        tensors,
        sum(by_type.values()),
        max(by_type, key=lambda label: by_type[label], default=""),
        _fingerprint(file, reader.position, size),
        vocabulary,
    )


class _Reader:
    """Reads numbers and texts, and never past the file's end."""

    def __init__(self, path: Path, file: BinaryIO, size: int) -> None:
        self._path, self._file, self._size = path, file, size
        self.position = 4
        self.last_count = 0  # items of the array that was read last

    def raw(self, count: int) -> bytes:
        if count > self._size - self.position:
            raise _refused(self._path, f"cut off: its header goes on after {self._size:,} bytes")
        data = self._file.read(count)
        self.position += len(data)
        return data

    def scalar(self, form: str) -> int | float | bool:
        found: int | float | bool = struct.unpack(form, self.raw(struct.calcsize(form)))[0]
        return found

    def text(self) -> str:
        return self.raw(int(self.scalar("<Q"))).decode("utf-8", "replace")

    def value(self, kind: int, depth: int = 0) -> Value:
        if kind == _STRING:
            return self.text()
        if kind == _ARRAY and depth < 3:
            inner, count = int(self.scalar("<I")), int(self.scalar("<Q"))
            self.last_count = count
            if inner in _SCALARS:
                form = _SCALARS[inner]
                width = struct.calcsize(form)
                data = self.raw(count * width)[: _KEPT * width]
                return tuple(item[0] for item in struct.iter_unpack(form, data))
            kept: list[Value] = []
            for number in range(count):
                item = self.value(inner, depth + 1)
                if number < _KEPT:
                    kept.append(item)
            return tuple(kept)
        if kind not in _SCALARS:
            raise _refused(self._path, f"damaged: its header holds a value of the unknown type {kind}")
        return self.scalar(_SCALARS[kind])

    def tensor(self) -> tuple[str, int, int, int]:
        """Name, number of values, type, offset in the data."""
        name = self.text()
        dimensions = int(self.scalar("<I"))
        if dimensions > 8:
            raise _refused(self._path, f"damaged: the tensor {name[:60]!r} has {dimensions} dimensions")
        values = 1
        for _ in range(dimensions):
            values *= int(self.scalar("<Q"))
        return name, values, int(self.scalar("<I")), int(self.scalar("<Q"))


def _fingerprint(file: BinaryIO, header: int, size: int) -> str:
    digest = hashlib.sha256(str(size).encode())
    file.seek(0)
    digest.update(file.read(header))
    for number in range(64):
        file.seek(header + (size - header) * number // 64)
        digest.update(file.read(65_536))
    return digest.hexdigest()


def whole_size(header: Header) -> int:
    """Bytes of the file, and of its other parts where it has some."""
    parts = header.metadata.get("split.count", 1)
    others = _siblings(header.path, parts) if isinstance(parts, int) and parts > 1 else ()
    return header.size + sum(part.stat().st_size for part in others)


def _check_siblings(path: Path, parts: int) -> None:
    for part in _siblings(path, parts):
        _read(part)


def _siblings(path: Path, parts: int) -> list[Path]:
    match = re.fullmatch(r"(.*)-(\d{5})-of-(\d{5})\.gguf", path.name)
    if match is None or int(match[2]) != 1:
        raise _refused(path, f"one of {parts} parts: name the first, NAME-00001-of-{parts:05d}.gguf")
    return [path.with_name(f"{match[1]}-{number:05d}-of-{match[3]}.gguf") for number in range(2, parts + 1)]


def _refused(path: Path, why: str) -> ModelError:
    return ModelError(why, where=str(path), advice=_ADVICE)
