"""What a training run does; known also where torch isn't."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Recipe:
    """What a run does. `layers` are the upper ones that are trained; `tables` are shown a step."""

    steps: int = 160
    tables: int = 3
    rank: int = 8
    alpha: int = 16
    layers: int = 16
    rate: float = 1.5e-3
    seed: int = 1
    threads: int = 1
