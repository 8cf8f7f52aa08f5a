"""The models that `migrate model pull` knows by name, each pinned to one file: whatever a hub serves under that name
later, nothing else is taken.

Size and SHA-256 are those that the hub gives for the file at that revision; they were compared in several public
places that recorded them independently, and each pull is held against them anew. The embedded file's were taken from the wheel.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from workspace.errors import UsageError

DEFAULT = "qwen3-8b"
"""What decides once it was pulled, where `--model` says nothing."""
EMBEDDED = "embedded"
EMBEDDED_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
EMBEDDED_SIZE = 98_362_432
_ON_THE_HUB = re.compile(r"([\w.-]+/[\w.-]+)/([\w./-]+\.gguf)")


@dataclass(frozen=True)
class Pinned:
    """One file on the hub. `size` in bytes, 0 where it isn't known; `sha256` empty where it isn't, and then the hub's own
    word for the file is what it is held against."""

    name: str
    repository: str
    revision: str
    file: str
    size: int = 0
    sha256: str = ""
    about: str = ""

    @property
    def local_file(self) -> str:
        """What the file is called here."""
        return self.file.rpartition("/")[2]


CATALOGUE: dict[str, Pinned] = {
    pinned.name: pinned
    for pinned in (
        Pinned(
            DEFAULT,
            "Qwen/Qwen3-8B-GGUF",
            "7c41481f57cb95916b40956ab2f0b139b296d974",
            "Qwen3-8B-Q4_K_M.gguf",
            5_027_783_488,
            "d98cdcbd03e17ce47681435b5150e34c1417f50b5c0019dd560e4882c5745785",
            "what Packhorse is made for",
        ),
        Pinned(
            "qwen3-4b",
            "Qwen/Qwen3-4B-GGUF",
            "bc640142c66e1fdd12af0bd68f40445458f3869b",
            "Qwen3-4B-Q4_K_M.gguf",
            2_497_280_256,
            "7485fe6f11af29433bc51cab58009521f205840f5b4ae3a32fa7f92e8534fdf5",
            "for machines with less memory",
        ),
    )
}


def named(name: str) -> Pinned:
    """The file of that name, or of `OWNER/REPOSITORY/FILE.gguf` on the hub. UsageError for any other."""
    if name.casefold() in CATALOGUE:
        return CATALOGUE[name.casefold()]
    match = _ON_THE_HUB.fullmatch(name)
    if match is None or ".." in name:
        raise UsageError(
            f"no model is called {name[:100]!r}",
            advice=f"say {' or '.join(CATALOGUE)}, or OWNER/REPOSITORY/FILE.gguf of huggingface.co",
        )
    file = match[2].rpartition("/")[2]
    return Pinned(file.removesuffix(".gguf").casefold(), match[1], "main", match[2])
