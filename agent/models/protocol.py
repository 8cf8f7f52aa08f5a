"""What the ladder asks of a model: a choice among given answers, or text under a grammar; and vectors.

A model never sees more than its prompt and never acts: the harness does. Every call reports its price.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:  # else each command would wait for numpy, which only the encoder uses
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True)
class Price:
    """What a call cost. `prompt_tokens` is all that was read, options that were scored included; of them
    `cached_tokens` came from the prefix cache. `answer_tokens` is what was written."""

    calls: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    answer_tokens: int = 0
    seconds: float = 0.0

    def __add__(self, other: Price) -> Price:
        return Price(
            self.calls + other.calls,
            self.prompt_tokens + other.prompt_tokens,
            self.cached_tokens + other.cached_tokens,
            self.answer_tokens + other.answer_tokens,
            self.seconds + other.seconds,
        )


NONE_OF_THESE = "none of these"
"""The option that says no other one is right; where it is offered, it comes last."""


@dataclass(frozen=True)
class Match:
    """The parts of a question that matches a column of the old system with a field of the new one.

    A small model does far better at them than at the question in words (`bench/choose.py`). Either
    `new_field` is asked about and the options are columns, or `old_column` is and the options are fields. `values` holds a few
    sample values of each column by its name; they are data, and neutralised as such.
    """

    new_field: str = ""
    old_column: str = ""
    values: Mapping[str, Sequence[str]] = field(default_factory=dict)


@dataclass(frozen=True)
class Prompt:
    """`system` and `question` are ours; `data` holds record values and is neutralised and fenced by
    the model's adapter before it is tokenised (no control token of the model can come out of it).
    `match` says the same as the question, in parts, where it is about columns and fields."""

    system: str
    question: str
    data: str = ""
    match: Match | None = None


@dataclass(frozen=True)
class Choice:
    """The answer to `choose`: index into the options, and the probability of each option (sums to 1)."""

    index: int
    probabilities: tuple[float, ...]
    price: Price


@dataclass(frozen=True)
class Text:
    """The answer to `write`: text that the grammar allows."""

    text: str
    price: Price


class Model(Protocol):
    """A decider. One that has its tokenizer at hand may offer `count_tokens(text) -> int` (`agent.models.counting`)."""

    name: str  # for the log: file name and hash, or URL
    worth: (
        float | None
    )  # the share of its choices that were measured right; None where that hangs on the question or nobody measured

    def choose(self, prompt: Prompt, options: Sequence[str]) -> Choice:
        """One of the options (2 to 12), by log-probability over full answers, averaged over several
        orders of the options so that position doesn't decide. Raises ModelError."""
        ...

    def write(self, prompt: Prompt, grammar: str, max_tokens: int = 200) -> Text:
        """Text under a GBNF grammar. Raises ModelError."""
        ...

    def close(self) -> None:
        """Frees the model."""
        ...


@dataclass(frozen=True)
class Scale:
    """What the likeness of two vectors means to an encoder that was trained: times `spread` it is a score like those of a
    softmax, and at `none` a pair is as likely as that nothing is right."""

    spread: float
    none: float


class Encoder(Protocol):
    """Turns short texts into vectors for ranking."""

    name: str
    scale: Scale | None  # None where likeness only ranks

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Shape (len(texts), width), rows of length 1."""
        ...
