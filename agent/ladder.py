"""The ladder: rule, experience, choose, propose, ask; the cheapest rung that is sure enough decides.

Each rung may decide alone only from the probability that `autonomy` sets, more where the stakes are high.
A model's word counts for what it was measured to be worth. What was decided or answered once is taken from
the log and never asked again. Nothing here edits the plan.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from agent.learnt import learn_answer, lessons_of
from agent.matter import NONE, Decision, Matter, Option, Rung
from agent.models.calibration import levels_of
from agent.models.counting import counter_of
from agent.models.protocol import NONE_OF_THESE, Choice, Encoder, Model, Price, Prompt
from agent.reliability import after, could_settle, weighed
from agent.swayed import could_sway, without_strange_texts
from agent.view import question_view
from workspace.errors import ModelError
from workspace.events import DecisionMade, QuestionAnswered, QuestionAsked
from workspace.experience_store import ExperienceStore
from workspace.log import Workspace

AUTONOMY = 0.9
"""How sure a rung has to be, unless told otherwise: the share of its decisions that must be right."""


Person = Callable[[QuestionAsked], object]
"""Whoever is at hand to be asked: an answer as `agent.questions.read_answer` gives it, or None to leave the
question open."""


@dataclass(frozen=True)
class Budget:
    """What a job may spend on a model, from its first command on. At the edge the ladder goes on without it and asks."""

    calls: int = 400
    seconds: float = 300.0


class Ladder:
    """Decides matters and records each decision, with its price, before anything relies on it."""

    def __init__(
        self,
        workspace: Workspace,
        *,
        model: Model | None = None,
        encoder: Encoder | None = None,
        experience: ExperienceStore | None = None,
        autonomy: float = AUTONOMY,
        budget: Budget | None = None,
        on_call: Callable[[int], None] = lambda calls: None,
        person: Person | None = None,
    ) -> None:
        self._workspace, self._model, self._encoder, self._experience = workspace, model, encoder, experience
        self._autonomy, self._budget, self._on_call = autonomy, budget or Budget(), on_call
        self._person = person
        self.spent = Price()
        self._made: dict[str, DecisionMade] = {}
        self._made_before: dict[str, list[DecisionMade]] = {}
        self._asked: dict[str, QuestionAsked] = {}
        self._answered: dict[str, QuestionAnswered] = {}
        self._answers: dict[str, list[object]] = {}
        for entry in workspace.events(types=[DecisionMade, QuestionAsked, QuestionAnswered]):
            event = entry.event
            if isinstance(event, DecisionMade | QuestionAsked):
                self.spent += _price(event)
            if isinstance(event, DecisionMade):
                self._keep_decision(event)
            elif isinstance(event, QuestionAsked):
                self._asked[event.id] = event
            elif isinstance(event, QuestionAnswered):
                self._keep_answer(event)

    def threshold(self, matter: Matter) -> float:
        """The probability from which a rung may decide this matter alone."""
        if matter.stakes == "high":
            return 1 - (1 - self._autonomy) / 2
        return self._autonomy if matter.stakes == "normal" else max(0.5, self._autonomy - 0.1)

    def decide(self, matter: Matter, spent: Price | None = None) -> Decision:
        """The decision on a matter, old or new; an open one where a person has to be asked. `spent` is what it has
        cost so far."""
        known = self._known(matter)
        if known is not None:
            return known
        price, model_said = spent or Price(), ""
        rungs: tuple[Callable[[Matter], Decision], ...] = (self._evident,)
        if self.left_open(matter):
            model_said = str(self._asked[matter.id].evidence.get("model", ""))
        else:
            rungs += (self._choose,)
        for rung in rungs:
            decision = rung(matter)
            price += decision.price
            if not decision.open:
                return self._record(matter, replace(decision, price=price))
            model_said = decision.why if rung == self._choose else model_said
        return self._ask(matter, price, model_said)

    # -- what is known ----------------------------------------------------------------------------

    def left_open(self, matter: Matter) -> bool:
        """True where the log has the model's word on these candidates, and it was not sure enough: it says the same
        again. Another model, other candidates or weights, and less to be sure of are reasons to ask anew."""
        asked = self._asked.get(matter.id)
        if asked is None or self._model is None or _weights(asked.candidates) != _weights(_listed(matter)):
            return False
        same = asked.model == self._model.name if asked.model else asked.calls > 0  # older logs don't name it
        return same and self.threshold(matter) >= asked.limit

    def _known(self, matter: Matter) -> Decision | None:
        answered = self._answered.get(matter.id)
        if answered is not None and answered.answer is not None:
            answer = str(answered.answer)
            if answer == NONE or matter.takes(answer):
                decision = Decision(
                    matter.id, None if answer == NONE else answer, "ask", 1.0, f"answered by {answered.by}"
                )
                made = self._made.get(matter.id)
                if made is None or made.rung != "ask" or made.choice != decision.answer:
                    self._learn(matter, decision.answer)
                    return self._record(matter, decision)
                return decision
        made = self._made.get(matter.id)
        if made is not None and (made.choice is None or matter.takes(str(made.choice))):
            answer_made = None if made.choice is None else str(made.choice)
            return Decision(matter.id, answer_made, made.rung, made.confidence, made.why)
        return None

    # -- the rungs --------------------------------------------------------------------------------

    def _evident(self, matter: Matter) -> Decision:
        """The evidence leaves one answer, or leaves none: a rule's decision, or experience's where it hangs on what jobs
        before taught. Where the stakes are high, that alone is not enough."""
        best = max(matter.options, key=lambda o: o.weight, default=None)
        limit = self.threshold(matter)
        if best is not None and best.weight >= limit:
            alone = best.unaided is None or best.unaided >= limit
            if alone or matter.stakes != "high":
                rung: Rung = "rule" if alone else "experience"
                return Decision(matter.id, best.answer, rung, best.weight, _reason(best))
        none = matter.none_weight if matter.none_weight is not None else 1 - (best.weight if best else 0.0)
        if none >= limit and not matter.must:
            nearest = f"; the nearest is {best.label} ({best.weight:.2f})" if best else ""
            said = "what looks right was wrong before" if matter.recalled else "nothing comes near"
            return Decision(matter.id, None, "experience" if matter.recalled else "rule", none, said + nearest)
        return _undecided(matter)

    def _choose(self, matter: Matter) -> Decision:
        """The encoder tells the candidates apart, and where that doesn't settle it the model decides. The model is not
        called where its word, at its measured worth, could not settle the matter."""
        if not matter.options or matter.free:
            return _undecided(matter)
        options = sorted(matter.options, key=lambda o: -o.weight)[:7]
        prior = [*(o.weight for o in options), _none(matter)]
        exists = matter.exists if matter.exists is not None else 1 - prior[-1]
        found = self._nearest(matter, options, prior, exists)
        model = self._model
        if found is not None or model is None:
            return found or _undecided(matter)
        if not could_settle(model, matter.match, prior, exists, self.threshold(matter)):
            return _undecided(matter)
        if not self.can_pay:
            spent = f"{self.spent.calls:,} calls and {self.spent.seconds:,.0f} s are spent in this job"
            return Decision(matter.id, None, "choose", 0.0, f"not asked: {spent} (--model-seconds)", open=True)
        count, offered = counter_of(model), len(options)
        prompt, labels = question_view(matter, options, count)
        options = options[: len(labels) - 1]  # the best, as many as there is room for
        prior = [*prior[: len(options)], prior[-1]]
        try:
            choice = self._called(model, prompt, labels)
            then = after(model, matter.match, prior, exists, choice.probabilities)
            index = max(range(len(then)), key=lambda i: then[i])
            price, stands = choice.price, True
            settled = then[index] >= self.threshold(matter)
            # a value that asks for its label is the question itself: `valuemaps` asks again
            if settled and matter.kind != "value" and could_sway(model, matter, prompt):
                prompt, plain = question_view(*without_strange_texts(matter, options), count)
                stands = len(plain) == len(labels)  # else plain names took more room than the odd ones
                if stands:
                    again = self._called(model, prompt, plain)
                    price += again.price
                    weighed = after(model, matter.match, prior, exists, again.probabilities)
                    stands = weighed[index] == max(weighed)
        except ModelError:
            raise
        except Exception as error:  # a native library's own; the ladder goes on without the model
            self._model = None
            return Decision(matter.id, None, "choose", 0.0, f"the model failed: {type(error).__name__}", open=True)
        said = NONE_OF_THESE if choice.index == len(options) else options[choice.index].label
        why = f"the model says {said} ({choice.probabilities[choice.index]:.2f}); with the evidence {then[index]:.2f}"
        if not stands:
            why += "; another one where it sees neither values nor odd names"
        answer = None if index == len(options) else options[index].answer
        unseen = len(options) < offered  # one that it didn't see may be right
        unsure = not stands or then[index] < self.threshold(matter) or (answer is None and (matter.must or unseen))
        return Decision(matter.id, answer, "choose", round(then[index], 3), why, open=unsure, price=price)

    def _nearest(self, matter: Matter, options: list[Option], prior: list[float], exists: float) -> Decision | None:
        """What the trained encoder settles at its measured worth, without a word generated; None where it doesn't. That
        none of the options is right is not its to say."""
        encoder = self._encoder
        if encoder is None or matter.match is None or not levels_of(encoder.name, matter.match):
            return None
        from agent.models.nearest import nearest  # with numpy, which other commands need not wait for

        choice = nearest(encoder, matter.match, [*(o.label for o in options), NONE_OF_THESE])
        if choice is None or choice.index == len(options):
            return None
        then = weighed(encoder.name, matter.match, prior, exists, choice.probabilities)
        index = max(range(len(then)), key=lambda i: then[i])
        if index != choice.index or then[index] < self.threshold(matter):
            return None
        said = f"the encoder says {options[index].label} ({choice.probabilities[index]:.2f})"
        why = f"{said}; with the evidence {then[index]:.2f}"
        return Decision(matter.id, options[index].answer, "choose", round(then[index], 3), why, price=choice.price)

    def _called(self, model: Model, prompt: Prompt, labels: list[str]) -> Choice:
        """One call of the model, paid for."""
        started = time.monotonic()
        choice = model.choose(prompt, labels)
        price = replace(choice.price, seconds=choice.price.seconds or time.monotonic() - started)
        self.pay(price)
        return replace(choice, price=price)

    @property
    def can_pay(self) -> bool:
        """True while the budget has room for another call."""
        return self.spent.calls < self._budget.calls and self.spent.seconds < self._budget.seconds

    def pay(self, price: Price) -> None:
        """Takes from the budget what a call cost."""
        self.spent += price
        self._on_call(self.spent.calls)

    def given(self, matter: Matter, answer: str, why: str) -> Decision:
        """Records an answer that came with the command; the same answer is recorded once."""
        made = self._made.get(matter.id)
        decision = Decision(matter.id, answer, "ask", 1.0, why)
        if made is not None and made.choice == answer:
            return decision
        return self._record(matter, decision)

    def answer_to(self, question: str) -> object | None:
        """What a person answered to a question, or None."""
        answered = self._answered.get(question)
        return None if answered is None else answered.answer

    def answers_to(self, question: str) -> list[object]:
        """All that was answered to a question, oldest first: one that was asked again has several."""
        return list(self._answers.get(question, ()))

    def settled(self, kind: str) -> dict[str, str]:
        """What was decided or answered on all matters of a kind, by subject; `none` left out."""
        out = {e.subject: str(e.choice) for e in self._made.values() if e.kind == kind and e.choice is not None}
        for id_, answered in self._answered.items():
            if id_.startswith(f"{kind}:") and answered.answer not in (None, NONE):
                out[id_.removeprefix(f"{kind}:")] = str(answered.answer)
        return out

    def question(self, id_: str) -> QuestionAsked | None:
        """The question as it was asked, or None."""
        return self._asked.get(id_)

    def made(self, question: str) -> DecisionMade | None:
        """The decision in the log, or None."""
        return self._made.get(question)

    def all_made(self, question: str) -> list[DecisionMade]:
        """Each decision on a matter, oldest first: a map of values is decided again as values turn up."""
        return list(self._made_before.get(question, ()))

    def ask(self, matter: Matter, price: Price | None = None) -> Decision:
        """Puts the question to a person, once."""
        return self._ask(matter, price or Price(), "")

    def record(
        self, matter: Matter, decision: Decision, lessons: Sequence[dict[str, object]] | None = None
    ) -> Decision:
        """Records a decision that another part of the agent came to, and what it teaches."""
        return self._record(matter, decision, lessons)

    def says(self, matter: Matter) -> Decision:
        """The model's own answer to a matter at its measured worth, recorded nowhere; open where it isn't sure."""
        return self._choose(matter)

    def _ask(self, matter: Matter, price: Price, said: str) -> Decision:
        earlier = self._asked.get(matter.id)
        called = price.calls > 0 and self._model is not None
        again = earlier is not None and (called or _tells_more(matter, earlier))
        if earlier is None or again:
            model = self._model.name if called and self._model is not None else earlier.model if earlier else ""
            limit = self.threshold(matter) if called else earlier.limit if earlier else 0.0
            question = QuestionAsked(
                id=matter.id, kind=matter.kind, subject=matter.subject, text=matter.text, candidates=_listed(matter),
                evidence={**matter.evidence, **({"model": said} if said else {})}, holds=list(matter.holds),
                calls=price.calls, prompt_tokens=price.prompt_tokens, answer_tokens=price.answer_tokens,
                seconds=price.seconds, model=model, limit=limit, cached_tokens=price.cached_tokens,
            )  # fmt: skip
            self._workspace.record(question)
            self._asked[matter.id] = question
        if self._person is not None and (again or matter.id not in self._answered):
            answer = self._person(self._asked[matter.id])
            if answer is not None:
                answered = QuestionAnswered(id=matter.id, answer=answer, by="person")
                self._workspace.record(answered)
                self._keep_answer(answered)
                known = None if matter.kind == "values" else self._known(matter)
                if known is not None:
                    return known
        return Decision(matter.id, None, "ask", 0.0, "a person has to say", open=True, price=price)

    # -- what is kept -----------------------------------------------------------------------------

    def _record(
        self, matter: Matter, decision: Decision, lessons: Sequence[dict[str, object]] | None = None
    ) -> Decision:
        event = DecisionMade(
            id=matter.id, kind=matter.kind, subject=matter.subject, choice=decision.answer, rung=decision.rung,
            confidence=decision.confidence, candidates=_listed(matter), why=decision.why, calls=decision.price.calls,
            prompt_tokens=decision.price.prompt_tokens, answer_tokens=decision.price.answer_tokens,
            seconds=decision.price.seconds, cached_tokens=decision.price.cached_tokens,
            lessons=list(lessons_of(matter, decision.answer) if lessons is None else lessons),
        )  # fmt: skip
        if matter.id in self._asked and matter.id not in self._answered:
            answered = QuestionAnswered(id=matter.id, answer=decision.answer or NONE, by=decision.rung)
            self._workspace.record(event, answered)
            self._keep_answer(answered)
        else:
            self._workspace.record(event)
        self._keep_decision(event)
        return decision

    def _keep_decision(self, event: DecisionMade) -> None:
        self._made[event.id] = event
        self._made_before.setdefault(event.id, []).append(event)

    def _keep_answer(self, event: QuestionAnswered) -> None:
        self._answered[event.id] = event
        self._answers.setdefault(event.id, []).append(event.answer)

    def _learn(self, matter: Matter, answer: str | None) -> None:
        """A person's answer is a lesson for jobs to come."""
        if self._experience is not None and (answer is None or matter.option(answer) is not None):
            learn_answer(self._experience, self._workspace, matter, answer)


def _price(event: DecisionMade | QuestionAsked) -> Price:
    return Price(event.calls, event.prompt_tokens, event.cached_tokens, event.answer_tokens, event.seconds)


def _undecided(matter: Matter) -> Decision:
    return Decision(matter.id, None, "ask", 0.0, "", open=True)


def _tells_more(matter: Matter, asked: QuestionAsked) -> bool:
    """True where the matter has options, or is about values, that the question was not asked about: new evidence opens
    it again."""
    if {o.answer for o in matter.options[:8]} - {c["answer"] for c in asked.candidates}:
        return True
    known = {v["value"] for v in asked.evidence.get("values", ())}
    return any(v["value"] not in known for v in _values(matter))


def _weights(candidates: Sequence[Mapping[str, object]]) -> list[tuple[object, object]]:
    return [(c["answer"], c["weight"]) for c in candidates]


def _values(matter: Matter) -> list[dict[str, object]]:
    found = matter.evidence.get("values", [])
    return found if isinstance(found, list) else []


def _none(matter: Matter) -> float:
    best = max((o.weight for o in matter.options), default=0.0)
    return max(0.02, 1 - best if matter.none_weight is None else matter.none_weight)


def _reason(option: Option) -> str:
    said = [f"{k.replace('_', ' ')}: {v}" for k, v in option.evidence.items() if v not in ("", 0, 0.0, [], None)]
    return "; ".join(said)[:300]


def _listed(matter: Matter) -> list[dict[str, object]]:
    return [
        {"answer": o.answer, "label": o.label, "weight": round(o.weight, 3), "evidence": o.evidence}
        for o in matter.options[:8]
    ]
