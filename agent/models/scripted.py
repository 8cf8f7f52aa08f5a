"""A model that answers what it was told to, for tests: in order, or by a rule over the question.

It never guesses: a question it has no answer for is an error of the test.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from agent.models.protocol import Choice, Price, Prompt, Text
from workspace.errors import ModelError

Answer = str | int | tuple[float, ...]
"""An option's text, its index, or a probability for each option. For `write`: the text."""
Rule = Callable[[Prompt, Sequence[str]], "Answer | None"]
"""Gives the answer, or None to leave it to the answers in order. `write` passes no options."""


@dataclass
class ScriptedModel:
    """Answers by `rule` where it gives one, else with the next of `answers`. `asked` keeps each prompt and its
    options; `sure` is the probability given to an answer that comes without one; `worth` is what the ladder may think of it."""

    answers: Sequence[Answer] = ()
    rule: Rule | None = None
    sure: float = 0.98
    name: str = "scripted"
    worth: float | None = 0.97
    asked: list[tuple[Prompt, tuple[str, ...]]] = field(default_factory=list)
    _next: int = 0

    def choose(self, prompt: Prompt, options: Sequence[str]) -> Choice:
        """The scripted option. ModelError where the script has none, or one that is not offered."""
        answer = self._answer(prompt, options)
        price = Price(calls=1, prompt_tokens=len(prompt.question.split()), answer_tokens=1)
        if isinstance(answer, tuple):
            if len(answer) != len(options):
                raise ModelError(f"the script gives {len(answer)} probabilities for {len(options)} options")
            total = sum(answer)
            shares = tuple(share / total for share in answer)
            return Choice(max(range(len(shares)), key=lambda i: shares[i]), shares, price)
        if isinstance(answer, str):
            if answer not in options:
                raise ModelError(f"the script answers {answer!r}, which is not among the options")
            answer = list(options).index(answer)
        if not 0 <= answer < len(options):
            raise ModelError(f"the script answers option {answer} of {len(options)}")
        rest = (1 - self.sure) / max(1, len(options) - 1)
        return Choice(answer, tuple(self.sure if i == answer else rest for i in range(len(options))), price)

    def write(self, prompt: Prompt, grammar: str, max_tokens: int = 200) -> Text:
        """The scripted text, whatever the grammar says. ModelError where the script has none."""
        answer = self._answer(prompt, ())
        if not isinstance(answer, str):
            raise ModelError("the script has no text for this question")
        return Text(
            answer, Price(calls=1, prompt_tokens=len(prompt.question.split()), answer_tokens=len(answer.split()))
        )

    def close(self) -> None:
        """Nothing to free."""

    def _answer(self, prompt: Prompt, options: Sequence[str]) -> Answer:
        self.asked.append((prompt, tuple(options)))
        found = self.rule(prompt, options) if self.rule else None
        if found is not None:
            return found
        if self._next >= len(self.answers):
            raise ModelError(f"the script has no answer to: {prompt.question[:120]}")
        self._next += 1
        return self.answers[self._next - 1]
