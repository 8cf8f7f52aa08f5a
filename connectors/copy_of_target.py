"""What is said of a target's empty copy, to rehearse in: how it differs, the room that rows take in it, and how far
away each of the two is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from connectors.target import Target


@dataclass(frozen=True)
class Difference:
    """Something of a target that its copy lacks or has otherwise: what, and why, in the server's words or ours."""

    what: str
    why: str

    def __str__(self) -> str:
        return f"{self.what}: {self.why}"


class Copy(Target, Protocol):
    """A target's empty copy. The unique keys of the target itself count in it; `differences` is what it lacks of the
    target, or has otherwise."""

    differences: tuple[Difference, ...]
