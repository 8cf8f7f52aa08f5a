"""How a model is used, beside which one it is: what a command says with --adapter, --think and the options of remote models."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any


@dataclass(frozen=True)
class ModelOptions:
    """`adapter` is the path of a LoRA adapter, `think` lets the model think before it writes. A server elsewhere is spoken to only
    with `allow_remote`, and sent record values only with `send_values`. `price_in` and `price_out` are money for a
    million tokens read and written, in whatever currency. `seconds` is how long the model may take in a job, in all."""

    adapter: str | None = None
    think: bool = False
    allow_remote: bool = False
    send_values: bool = False
    price_in: float = 0.0
    price_out: float = 0.0
    seconds: float = 300.0

    def to_dict(self) -> dict[str, Any]:
        """As JSON values."""
        return asdict(self)

    @classmethod
    def of(cls, kept: object) -> ModelOptions:
        """What a log kept; the usual ones for what it didn't."""
        if not isinstance(kept, Mapping):
            return cls()
        names = {field.name for field in fields(cls)}
        return cls(**{name: value for name, value in kept.items() if name in names})

    def money(self, prompt_tokens: int, answer_tokens: int) -> float | None:
        """What so many tokens cost; None where no price was given."""
        if not self.price_in and not self.price_out:
            return None
        return round((prompt_tokens * self.price_in + answer_tokens * self.price_out) / 1e6, 6)
