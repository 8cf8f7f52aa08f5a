"""Parts of the harness that a measurement switches off, to see what each is worth: `migrate eval --ablate ladder`.

What can't be switched off honestly is refused by name, with the reason; nothing here pretends. Never used by a job of
a person: the parts are exchanged from outside, for as long as one scenario runs.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from unittest.mock import patch

from agent.ladder import Ladder
from agent.matter import Decision, Matter
from agent.models.counting import counter_of
from agent.models.protocol import Price
from agent.view import question_view
from workspace.errors import UsageError

ABLATIONS: dict[str, str] = {
    "ladder": "the model decides each matter that has candidates, by its first word: no rule, no threshold, no stakes",
    "experience": "no lessons are looked up or kept",
}
"""What can be switched off, and what happens then."""

REFUSED: dict[str, str] = {
    "belief": "candidates are made of the profiles that are believed: without them nothing is there to decide",
    "progress": "the engine loads by the same log: without it no job is resumed, whatever decides",
    "feedback": "it reaches a model in the second try of a proposal alone, and no switch for that is built",
    "grammar": "a choice is scored among its options and never written, so there is none to leave out; "
    "for proposals no switch is built",
}
"""What can't be, and why."""


def read_ablations(text: str | None, model: str | None, oracle: str | None) -> frozenset[str]:
    """The parts that `--ablate` names. UsageError for an unknown one, for one that can't be switched off, and for a
    ladder that is taken away with no model to decide instead."""
    named = [part.strip() for part in (text or "").split(",") if part.strip()]
    if text is not None and not named:
        raise UsageError("--ablate names no part", advice=f"choose of {', '.join(ABLATIONS)}")
    for part in named:
        if part in REFUSED:
            raise UsageError(
                f"{part} can't be switched off: {REFUSED[part]}", advice=f"choose of {', '.join(ABLATIONS)}"
            )
        if part not in ABLATIONS:
            raise UsageError(f"no part {part!r} of the harness", advice=f"choose of {', '.join(ABLATIONS)}")
    if "ladder" in named and oracle is None and (model or "").strip().casefold() == "none":
        raise UsageError(
            "without the ladder a model decides everything, and there is none", advice="give --model or --oracle"
        )
    return frozenset(named)


@contextmanager
def without(parts: frozenset[str]) -> Iterator[None]:
    """Jobs of this process, and of those that it forks, run without these parts."""
    with ExitStack() as stack:
        if "ladder" in parts:
            stack.enter_context(patch("agent.draft.Ladder", ModelAlone))
            stack.enter_context(patch("agent.job.Ladder", ModelAlone))
        if "experience" in parts:
            stack.enter_context(patch("agent.job._experience", lambda: None))
        yield


class ModelAlone(Ladder):
    """In the ladder's place: the model's likeliest option is the decision, whatever the evidence and the stakes."""

    def decide(self, matter: Matter, spent: Price | None = None) -> Decision:
        """The model's word where there are candidates; a person is asked where there is nothing to choose from."""
        known, price = self._known(matter), spent or Price()
        if known is not None:
            return known
        if self.left_open(matter):
            return self._ask(matter, price, "")
        decision = self._choose(matter)
        price += decision.price
        if decision.open:
            return self._ask(matter, price, decision.why)
        return self._record(matter, replace(decision, price=price))

    def _choose(self, matter: Matter) -> Decision:
        options = sorted(matter.options, key=lambda o: -o.weight)[:7]
        spent = self.spent.calls >= self._budget.calls or self.spent.seconds >= self._budget.seconds
        if not options or matter.free or self._model is None or spent:
            return Decision(matter.id, None, "ask", 0.0, "", open=True, price=Price())
        prompt, labels = question_view(matter, options, counter_of(self._model))
        choice = self._called(self._model, prompt, labels)
        answer = None if choice.index == len(labels) - 1 else options[choice.index].answer
        sure = round(choice.probabilities[choice.index], 3)
        unsure = answer is None and matter.must
        return Decision(matter.id, answer, "choose", sure, "the model's word alone", open=unsure, price=choice.price)
