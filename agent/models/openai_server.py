"""A model behind an OpenAI-compatible server (llama-server, vLLM, Ollama, a frontier model), named
`http(s)://host:port/v1#model`.

What goes there leaves this process, and this machine unless the server is on it: then only where that was allowed, and with
shapes for record values unless it was said that they may go. They go neutralised in any case.
"""

from __future__ import annotations

import json
import math
import time
import urllib.parse
from collections.abc import Sequence
from typing import Any

from agent.models.data_block import data_block, neutralise, plain_words
from agent.models.llamacpp import ORDERS, rotations
from agent.models.masked import masked
from agent.models.openai_http import PATIENCE, Endpoint, RefusedError
from agent.models.options import ModelOptions
from agent.models.protocol import Choice, Price, Prompt, Text
from workspace.errors import ModelError

_LETTERS = "ABCDEFGHIJKL"
_ANSWER = 4  # tokens for a letter
_THOUGHT = 2048  # tokens a model may think for before it writes, where it was not told not to


class OpenAiServer:
    """Chooses by the log-probabilities of a letter over several orders of the options; a server that gives
    none is believed by its votes. What may be answered is held to by a grammar, as llama-server (`grammar`) and vLLM
    (`structured_outputs`) take it, and where a server knows neither, and names no letter, by a JSON Schema
    (`response_format`). Thinking is turned off for choices, where the server knows of it."""

    def __init__(self, spec: str, options: ModelOptions | None = None, patience: float = PATIENCE) -> None:
        """Only reads the address; nothing is sent. ModelError for one without a model's name, or on another machine where that
        wasn't allowed."""
        options = options or ModelOptions()
        address, _, name = spec.partition("#")
        self._endpoint = Endpoint(address, patience)
        self._model = urllib.parse.unquote(name)
        self.name = f"{self._endpoint.url}#{self._model}"
        self.worth: float | None = None
        self._think = options.think
        self._masks = not self._endpoint.local and not options.send_values
        self._extras = True  # whether the server takes what isn't in OpenAI's own interface
        if not self._model:
            raise ModelError(
                "the address names no model", where=self._endpoint.url,
                advice="add it: http://localhost:8080/v1#NAME",
            )  # fmt: skip
        if not self._endpoint.local and not options.allow_remote:
            raise ModelError(
                "a server on another machine would be told of your tables and columns", where=self._endpoint.url,
                advice="--allow-remote allows it, with shapes in the place of record values; or use one on this machine, or a"
                " GGUF file",
            )  # fmt: skip
        if options.adapter is not None:
            raise ModelError("an adapter can't be put over a server's model", advice="give --adapter with a GGUF file")

    def choose(self, prompt: Prompt, options: Sequence[str]) -> Choice:
        """The likeliest option. ModelError where the server can't be reached or answers none of them. A question about
        values that may not go is not asked: all options are then as likely as one another."""
        if not 2 <= len(options) <= len(_LETTERS):
            raise ModelError(f"a choice is among 2 to {len(_LETTERS)} options, not {len(options)}")
        if self._masks and prompt.data.strip() and prompt.match is None:
            return Choice(0, tuple(1 / len(options) for _ in options), Price())
        prompt = self._sendable(prompt)
        total = [0.0] * len(options)
        price = Price()
        for order in rotations(len(options), ORDERS):
            listed = "\n".join(
                f"{_LETTERS[n]}. {' '.join(neutralise(options[i]).split())}" for n, i in enumerate(order)
            )
            found, spent = self._letters(prompt, listed, len(options))
            price += spent
            for letter, share in found.items():
                total[order[_LETTERS.index(letter)]] += share / ORDERS
        whole = sum(total)
        if whole <= 0:
            raise ModelError("the server's model named none of the options", where=self._endpoint.url)
        shares = tuple(value / whole for value in total)
        return Choice(max(range(len(shares)), key=lambda i: shares[i]), shares, price)

    def write(self, prompt: Prompt, grammar: str, max_tokens: int = 200) -> Text:
        """Text under the grammar, where the server honours it; who asked checks it in any case. ModelError where the
        answer isn't whole."""
        structured = {"grammar": grammar, "structured_outputs": {"grammar": grammar}}
        room = max_tokens + _THOUGHT if self._think else max_tokens
        answer, price = self._ask(self._sendable(prompt), {"max_tokens": room}, structured, think=self._think)
        if answer.get("finish_reason") == "length":
            raise ModelError(f"the model's answer was not whole after {room} tokens", where=self._endpoint.url)
        return Text(_without_thought(_content(answer)), price)

    def close(self) -> None:
        """Nothing to free."""

    def _sendable(self, prompt: Prompt) -> Prompt:
        """The prompt as it may leave; all that is sent passes here."""
        return masked(prompt) if self._masks else prompt

    def _letters(self, prompt: Prompt, listed: str, count: int) -> tuple[dict[str, float], Price]:
        """The share of each letter, and the price; empty where none could be made out, asked for as JSON too."""
        asked = Prompt(prompt.system, f"{prompt.question}\n{listed}\nAnswer with one letter.", prompt.data)
        scored = {"max_tokens": _ANSWER, "logprobs": True, "top_logprobs": 20}
        letters = list(_LETTERS[:count])
        grammar = "root ::= " + " | ".join(f'"{letter}"' for letter in letters)
        answer, price = self._ask(asked, scored, {"grammar": grammar, "structured_outputs": {"choice": letters}})
        if found := _letter_shares(answer, count):
            return found, price
        schema = {
            "type": "object", "properties": {"answer": {"enum": letters}}, "required": ["answer"],
            "additionalProperties": False,
        }  # fmt: skip
        form = {"type": "json_schema", "json_schema": {"name": "choice", "strict": True, "schema": schema}}
        asked = Prompt(prompt.system, f'{asked.question} As JSON: {{"answer": LETTER}}', prompt.data)
        try:
            answer, spent = self._ask(asked, {"max_tokens": 24, "response_format": form})
        except RefusedError:
            return {}, price
        try:
            said = str(json.loads(_without_thought(_content(answer)))["answer"])
        except (ValueError, LookupError, TypeError):
            said = ""
        return ({said: 1.0} if said and said in letters else {}), price + spent

    def _ask(
        self, prompt: Prompt, more: dict[str, Any], extras: dict[str, Any] | None = None, *, think: bool = False
    ) -> tuple[dict[str, Any], Price]:
        """The first answer and its price. `extras` are left out for a server that takes only OpenAI's own."""
        question, block = plain_words(prompt.question), data_block(prompt.data)
        body = {
            "model": self._model,
            "temperature": 0,
            "seed": 0,
            "messages": [
                {"role": "system", "content": plain_words(prompt.system)},
                {"role": "user", "content": f"{question}\n\n{block}" if block else question},
            ],
            **more,
        }
        own = {"chat_template_kwargs": {"enable_thinking": think}, **(extras or {})}
        started = time.monotonic()
        try:
            found = self._endpoint.ask({**body, **own} if self._extras else body)
        except RefusedError:
            if not self._extras:
                raise
            found = self._endpoint.ask(body)
            self._extras = False
        try:
            answer: dict[str, Any] = found["choices"][0]
        except (LookupError, TypeError):
            raise ModelError("the model's server gives no answer: no choices", where=self._endpoint.url) from None
        usage = found.get("usage") or {}
        cached = (usage.get("prompt_tokens_details") or {}).get("cached_tokens") or 0
        spent = Price(
            1, usage.get("prompt_tokens", 0), cached, usage.get("completion_tokens", 0), time.monotonic() - started
        )
        return answer, spent


def _content(answer: dict[str, Any]) -> str:
    return str((answer.get("message") or {}).get("content") or "")


def _without_thought(text: str) -> str:
    """What comes after a thought that the server left in."""
    return text.rpartition("</think>")[2].strip() if "</think>" in text else text


def _letter_shares(answer: dict[str, Any], count: int) -> dict[str, float]:
    """The probability of each letter as the first one said, summing to 1; empty where none was."""
    offered = _LETTERS[:count]
    found: dict[str, float] = {}
    for step in (answer.get("logprobs") or {}).get("content") or []:
        for entry in step.get("top_logprobs") or [step]:
            letter = str(entry.get("token", "")).strip(" .()*\n").upper()
            if len(letter) == 1 and letter in offered:
                found[letter] = found.get(letter, 0.0) + math.exp(float(entry["logprob"]))
        if found:
            break
    if not found:
        said = _content(answer).strip(" .()*\n")
        letter = said[:1].upper()
        return {letter: 1.0} if letter and letter in offered and not said[1:2].isalpha() else {}
    whole = sum(found.values())
    return {letter: share / whole for letter, share in found.items()}
