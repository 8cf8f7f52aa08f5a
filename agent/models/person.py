"""A person in a model's place: each question goes to a callable that shows it and returns the answer.

The command line hands in what asks; nothing here reads a terminal. A person who passes leaves the question
to the rungs after.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from agent.models.data_block import neutralise
from agent.models.nothing import NoModel
from agent.models.protocol import Choice, Price, Prompt, Text

Ask = Callable[[str, str, Sequence[str]], "str | None"]
"""Given the question, the record values (harmless, perhaps empty) and the options (none for free text):
the option chosen or the text; None for a person who passes."""


class PersonModel:
    """Asks a person. Their word is certain: probability 1."""

    name = "person"
    worth: float | None = None

    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    def choose(self, prompt: Prompt, options: Sequence[str]) -> Choice:
        """The option the person names. NoModel where they pass, or name none that was offered."""
        started = time.monotonic()
        answer = self._ask(prompt.question, neutralise(prompt.data), options)
        if answer is None or answer not in options:
            raise NoModel("the person passed")
        index = list(options).index(answer)
        price = Price(calls=1, seconds=time.monotonic() - started)
        return Choice(index, tuple(float(i == index) for i in range(len(options))), price)

    def write(self, prompt: Prompt, grammar: str, max_tokens: int = 200) -> Text:
        """The text the person types; whether it suits the grammar is checked by who asked. NoModel where
        they pass."""
        started = time.monotonic()
        answer = self._ask(prompt.question, neutralise(prompt.data), ())
        if answer is None:
            raise NoModel("the person passed")
        return Text(answer, Price(calls=1, seconds=time.monotonic() - started))

    def close(self) -> None:
        """Nothing to free."""
