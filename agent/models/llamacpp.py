"""A language model in this process through llama.cpp: any GGUF file, no server, nothing leaves the machine.

It chooses by log-probability and writes under a grammar, greedily, so that the same question gets the same
answer. It never prints, never acts, and never lets a record value become a control token.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from agent.models.calibration import UNFITTED, fit_of
from agent.models.chat import Chat
from agent.models.cores import IdleCores, physical_cores
from agent.models.data_block import data_block, neutralise, plain_words
from agent.models.gguf_file import read_adapter, read_header
from agent.models.memory import CONTEXT
from agent.models.native import BATCH, Context, Grammar, Weights, offloads
from agent.models.pairs import branches
from agent.models.protocol import NONE_OF_THESE, Choice, Price, Prompt, Text
from workspace.errors import ModelError

ORDERS = 3
THOUGHT = 512
"""Tokens a model may think for before it writes."""
_SMALL = 1_000_000_000  # parameters; below, options listed in a prompt are answered by their place in the list
_GRAMMARS = 8  # compiled and kept
Form = Literal["listed", "channel"]


class LlamaCpp:
    """A GGUF model. `form` is how it chooses:

    `listed` puts the options into the prompt and scores each as the answer, averaged over several orders of
    the list so that place cancels out; for models that follow instructions.

    `channel` asks the other way round: how likely is the question, given that this option is its answer.
    No list, so no order; the question is the same text for all options, so their length and frequency
    don't matter. The embedded 135M model is of use only so, and only where `Prompt.match` gives the parts of the
    question (`agent/models/calibration.py` has the figures).
    """

    def __init__(
        self,
        path: Path,
        threads: int = 0,
        context: int = CONTEXT,
        gpu_layers: int | None = None,
        form: Form | None = None,
        adapter: Path | None = None,
        think: bool = False,
    ) -> None:
        """Loads the file, and a LoRA `adapter` over it. `think` lets it think before it writes (never before it
        chooses). `threads` 0 takes the physical cores that other processes leave idle, anew at each call; `gpu_layers` -1 puts all on the GPU, which is
        the default where the build can. ModelError, one line, for a file that is no sound model, an adapter that isn't for
        it, or a model that can't think."""
        header = read_header(path)
        self.path = path
        self.name = header.label if adapter is None else f"{read_adapter(adapter, header).label} on {header.label}"
        self.worth: float | None = None  # `calibration` has it by name and kind of question
        self.threads = threads or physical_cores()
        self._grammars: dict[str, Grammar] = {}
        self._idle_cores = None if threads else IdleCores()
        self.gpu_layers = gpu_layers if gpu_layers is not None else (-1 if offloads() else 0)
        self.weights = Weights(path, self.gpu_layers)
        length = min(context, self.weights.trained_context) if self.weights.trained_context else context
        try:
            self._context = Context(self.weights, length, self.threads)
            if adapter is not None:
                self._context.adapt(self.weights.adapter(adapter))
        except ModelError:
            self.weights.close()
            raise
        self._chat = Chat(self.weights.template(), *self.weights.first_and_last(), self._tokenise)
        self.template_note = self._chat.fallback
        if think and not self._chat.thinks:
            self.close()
            raise ModelError("its chat template knows no thinking", where=str(path), advice="leave --think out")
        self.think = think
        self.form: Form = form or self.form_for(self.weights.parameters)
        self.fit = partial(fit_of, self.name)

    @property
    def can_think(self) -> bool:
        """Whether its chat template knows of thinking, so that `think` can be set."""
        return self._chat.thinks

    @staticmethod
    def form_for(parameters: int) -> Form:
        """The form a model of that size is asked in."""
        return "channel" if parameters < _SMALL else "listed"

    def choose(self, prompt: Prompt, options: Sequence[str]) -> Choice:
        """The likeliest of 2 to 12 options, with the probability of each. ModelError where the model can't
        read the question."""
        if not 2 <= len(options) <= 12:
            raise ModelError(f"a choice is among 2 to 12 options, not {len(options)}")
        started = self._start()
        shares, price = self._listed(prompt, options) if self.form == "listed" else self._channel(prompt, options)
        price += Price(calls=1, seconds=time.monotonic() - started)
        return Choice(max(range(len(shares)), key=lambda i: shares[i]), shares, price)

    def write(self, prompt: Prompt, grammar: str, max_tokens: int = 200) -> Text:
        """The likeliest text, token by token, that the GBNF grammar allows, after a thought where it may think: the
        thought is thrown away. ModelError where the grammar doesn't parse, or where the text isn't whole after
        `max_tokens`."""
        started = self._start()
        rules = self._grammar(grammar)
        tokens = self._tokens(prompt, max_tokens + THOUGHT * self.think, think=self.think)
        scores, cached = self._context.prompt(tokens)
        scores, thought = self._thought(scores) if self.think else (scores, 0)
        raw = b""
        for written in range(max_tokens + 1):
            token = rules.best(scores)
            if token is None or self.weights.ends(token):
                break
            if written == max_tokens:
                raise ModelError(f"the model's answer was not whole after {max_tokens} tokens")
            rules.accept(token)
            raw += self.weights.piece(token)
            scores = self._context.extend(token)
        price = Price(1, len(tokens), cached, thought + written, time.monotonic() - started)
        return Text(raw.decode("utf-8", "replace"), price)

    def count_tokens(self, text: str) -> int:
        """How many tokens of a prompt the text is."""
        return len(self._plain(text))

    def speeds(self) -> tuple[float, float]:
        """Tokens a second, reading a prompt and writing an answer; takes some seconds."""
        self._start()
        text = "The old CRM keeps contacts, companies, deals and notes, each with an owner and a date. " * 16
        tokens = [*self.weights.begins_with, *self.weights.tokens(text, special=False)][: BATCH // 2]
        self._context.forget()
        self._context.prompt(tokens)  # the first pass pages the weights in
        self._context.forget()
        started = time.monotonic()
        scores, _ = self._context.prompt(tokens)
        reading = len(tokens) / (time.monotonic() - started)
        started = time.monotonic()
        for _ in range(16):
            scores = self._context.extend(int(np.argmax(scores)))
        writing = 16 / (time.monotonic() - started)
        self._context.forget()
        return reading, writing

    def close(self) -> None:
        """Frees the grammars, the context and the weights."""
        for grammar in self._grammars.values():
            grammar.close()
        self._grammars.clear()
        self._context.close()
        self.weights.close()

    def _start(self) -> float:
        """Sets the threads to what the machine has to spare; the time by the clock."""
        if self._idle_cores is not None:
            self._context.use_threads(self._idle_cores())
        return time.monotonic()

    def _thought(self, scores: NDArray[np.float32]) -> tuple[NDArray[np.float32], int]:
        """Lets it think for at most THOUGHT tokens: log-probabilities of the answer's first token, and how many were thought.

        Drawn, not greedy, since such models run in circles when they are; from one seed, so that the same question is thought
        about in the same way.
        """
        random = np.random.default_rng(0)
        opening, closing = (self.weights.tokens(mark, special=True) for mark in ("<think>\n", "</think>\n\n"))
        mark = self.weights.tokens("</think>", special=True)
        for token in opening:
            scores = self._context.extend(token)
        said: list[int] = []
        while len(said) < THOUGHT - len(closing) - len(opening) and said[-len(mark) :] != mark:
            token = drawn(scores, random)
            if self.weights.ends(token) or (token in self.weights.special and token not in mark):
                break
            said.append(token)
            scores = self._context.extend(token)
        for token in closing[len(mark) :] if said[-len(mark) :] == mark else closing:
            scores = self._context.extend(token)
        return scores, len(opening) + len(said) + len(closing)

    # -- choosing ---------------------------------------------------------------------------------

    def _listed(self, prompt: Prompt, options: Sequence[str]) -> tuple[tuple[float, ...], Price]:
        names = [" ".join(neutralise(option).split()) for option in options]
        total = [0.0] * len(options)
        price = Price()
        for order in rotations(len(options), ORDERS):
            listed = "\n".join(f"- {names[i]}" for i in order)
            tokens = self._tokens(prompt, 64, f"Options:\n{listed}\nAnswer with one option, word for word.")
            first, cached = self._context.prompt(tokens)
            answers = [self._plain(name) for name in names]
            scored = self._context.continuations(first, answers)
            for i, share in enumerate(_shares(scored)):
                total[i] += share / ORDERS
            price += Price(0, len(tokens) + sum(map(len, answers)), cached)
        return tuple(total), price

    def _channel(self, prompt: Prompt, options: Sequence[str]) -> tuple[tuple[float, ...], Price]:
        """How likely the question is after each option; for columns and fields in parts, see `pairs`."""
        if prompt.match is not None:
            head, ends = branches(prompt.match, options)
            fit = self.fit(prompt.match)
        else:
            head = plain_words(prompt.system.strip()) + "\n"
            asked = f" {plain_words(prompt.question.strip())}\n{data_block(prompt.data)}".rstrip()
            ends = [(f"Answer: {' '.join(neutralise(option).split())}\nQuestion:", asked) for option in options]
            fit = UNFITTED
        before = [*self.weights.begins_with, *self._plain(head)][: self._context.length // 2]
        first, cached = self._context.prompt(before)
        starts = [self._plain(start)[: BATCH // 8] for start, _ in ends]
        whole = [start + self._plain(end)[: BATCH // 4] for start, (_, end) in zip(starts, ends, strict=True)]
        scored = self._context.continuations(first, whole, [len(start) for start in starts])
        if options[-1] == NONE_OF_THESE:
            scored[-1] += fit.none
        price = Price(0, len(before) + sum(map(len, whole)), cached)
        return _shares([score / fit.spread for score in scored]), price

    # -- prompts ----------------------------------------------------------------------------------

    def _tokens(self, prompt: Prompt, answer: int, last: str = "", *, think: bool = False) -> list[int]:
        """The prompt in the model's own turns with room for `answer` tokens; data that doesn't fit the context is
        cut from its end."""
        room = self._context.length - answer
        while True:
            tokens = self._chat.tokens(prompt, last, think=think)
            bos = self.weights.begins_with
            if bos and tokens[:1] != bos:
                tokens = bos + tokens
            if len(tokens) <= room:
                return tokens
            if not prompt.data:
                raise ModelError(f"the question takes {len(tokens)} tokens, and the model's context holds {room}")
            keep = int(len(prompt.data) * room / len(tokens) * 0.9)
            prompt = Prompt(prompt.system, prompt.question, prompt.data[:keep] if keep > 40 else "")

    def _plain(self, text: str) -> list[int]:
        return self._tokenise(text, False)

    def _tokenise(self, text: str, special: bool) -> list[int]:
        """Token ids; out of plain text no token that steers the model can come, however the text is spelt."""
        found = self.weights.tokens(text, special=special)
        return found if special else [token for token in found if token not in self.weights.special]

    def _grammar(self, text: str) -> Grammar:
        known = self._grammars.get(text)
        if known is not None:
            known.restart()
            return known
        if len(self._grammars) >= _GRAMMARS:
            self._grammars.pop(next(iter(self._grammars))).close()
        self._grammars[text] = Grammar(self.weights, text)
        return self._grammars[text]


def rotations(count: int, orders: int) -> list[list[int]]:
    """`orders` orders of `count` places, each turned on by an equal step, so that an option stands at the
    front, in the middle and at the end."""
    steps = sorted({number * count // orders for number in range(orders)})
    turned = [[*range(step, count), *range(step)] for step in steps]
    return [turned[number % len(turned)] for number in range(orders)]


def drawn(scores: NDArray[np.float32], random: np.random.Generator) -> int:
    """A token drawn as Qwen3's makers advise for thinking: the likeliest 20 at temperature 0.6, of those the likeliest
    95 %."""
    top = np.argpartition(scores, -20)[-20:]
    top = top[np.argsort(-scores[top], kind="stable")]
    shares = np.exp((scores[top] - scores[top[0]]) / 0.6)
    shares /= shares.sum()
    kept = int(np.searchsorted(np.cumsum(shares), 0.95)) + 1
    return int(top[random.choice(kept, p=shares[:kept] / shares[:kept].sum())])


def _shares(scores: Sequence[float]) -> tuple[float, ...]:
    """Log-probabilities as shares that sum to 1."""
    top = max(scores)
    raised = [math.exp(score - top) for score in scores]
    return tuple(value / sum(raised) for value in raised)
