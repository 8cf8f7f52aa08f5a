"""No model: what `--model none` means. Rules, experience and questions do all the work.

Nobody should call it; who does is told by a signal of its own that this rung can't answer.
"""

from __future__ import annotations

from collections.abc import Sequence

from agent.models.protocol import Choice, Prompt, Text
from workspace.errors import ModelError


class NoModel(ModelError):
    """There is no model to ask: the ladder goes on to the next rung."""


class NothingModel:
    """Stands where a model would, and answers nothing."""

    name = "none"
    worth: float | None = None

    def choose(self, prompt: Prompt, options: Sequence[str]) -> Choice:
        """Always raises NoModel."""
        raise NoModel("no model was given")

    def write(self, prompt: Prompt, grammar: str, max_tokens: int = 200) -> Text:
        """Always raises NoModel."""
        raise NoModel("no model was given")

    def close(self) -> None:
        """Nothing to free."""
