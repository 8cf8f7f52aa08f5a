"""A model behind an OpenAI-compatible server (llama-server, vLLM, Ollama), named `http(s)://host:port/v1#model`.

What goes there leaves this process, so only a server on this machine is spoken to; record values go
neutralised. A key is taken from OPENAI_API_KEY alone and stands in no message.
"""

from __future__ import annotations

import ipaddress
import json
import math
import os
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Sequence
from typing import Any

from agent.models.data_block import data_block, neutralise
from agent.models.llamacpp import ORDERS, rotations
from agent.models.protocol import Choice, Price, Prompt, Text
from workspace.errors import ModelError

_PATIENCE = 120.0  # seconds a request
_LETTERS = "ABCDEFGHIJKL"


class OpenAiServer:
    """Chooses by the log-probabilities of a letter over several orders of the options; a server that gives
    none is believed by its votes. `write` passes the grammar as llama-server takes it (`grammar`)."""

    def __init__(self, spec: str, patience: float = _PATIENCE) -> None:
        """Only reads the address; nothing is sent. ModelError for one without a model's name or elsewhere
        than on this machine."""
        parts = urllib.parse.urlsplit(spec)
        self._url = urllib.parse.urlunsplit(
            (parts.scheme, parts.netloc.rpartition("@")[2], parts.path.rstrip("/"), "", "")
        )
        self._model = urllib.parse.unquote(parts.fragment)
        self.name = f"{self._url}#{self._model}"
        self.worth: float | None = None
        self._patience = patience
        if not self._model:
            raise ModelError(
                "the address names no model", where=self._url, advice="add it: http://localhost:8080/v1#NAME"
            )
        if not _local(parts.hostname or ""):
            raise ModelError(
                "a server on another machine would be sent record values",
                where=self._url, advice="use one on this machine, or a GGUF file",
            )  # fmt: skip

    def choose(self, prompt: Prompt, options: Sequence[str]) -> Choice:
        """The likeliest option. ModelError where the server can't be reached or answers none of them."""
        if not 2 <= len(options) <= len(_LETTERS):
            raise ModelError(f"a choice is among 2 to {len(_LETTERS)} options, not {len(options)}")
        total = [0.0] * len(options)
        price = Price()
        for order in rotations(len(options), ORDERS):
            listed = "\n".join(
                f"{_LETTERS[n]}. {' '.join(neutralise(options[i]).split())}" for n, i in enumerate(order)
            )
            question = f"{prompt.question}\n{listed}\nAnswer with one letter."
            answer, spent = self._ask(
                Prompt(prompt.system, question, prompt.data), {"max_tokens": 4, "logprobs": True, "top_logprobs": 20}
            )
            price += spent
            for letter, share in _letter_shares(answer, len(options)).items():
                total[order[_LETTERS.index(letter)]] += share / ORDERS
        whole = sum(total)
        if whole <= 0:
            raise ModelError("the server's model named none of the options", where=self._url)
        shares = tuple(value / whole for value in total)
        return Choice(max(range(len(shares)), key=lambda i: shares[i]), shares, price)

    def write(self, prompt: Prompt, grammar: str, max_tokens: int = 200) -> Text:
        """Text under the grammar, where the server honours it; who asked checks it in any case. ModelError where the
        answer isn't whole."""
        answer, price = self._ask(prompt, {"max_tokens": max_tokens, "grammar": grammar})
        if answer.get("finish_reason") == "length":
            raise ModelError(f"the model's answer was not whole after {max_tokens} tokens", where=self._url)
        return Text(str((answer.get("message") or {}).get("content") or ""), price)

    def close(self) -> None:
        """Nothing to free."""

    def _ask(self, prompt: Prompt, more: dict[str, Any]) -> tuple[dict[str, Any], Price]:
        block = data_block(prompt.data)
        body = {
            "model": self._model,
            "temperature": 0,
            "seed": 0,
            "messages": [
                {"role": "system", "content": prompt.system},
                {"role": "user", "content": f"{prompt.question}\n\n{block}" if block else prompt.question},
            ],
            **more,
        }
        headers = {"Content-Type": "application/json"}
        if key := os.environ.get("OPENAI_API_KEY"):
            headers["Authorization"] = f"Bearer {key}"
        request = urllib.request.Request(f"{self._url}/chat/completions", json.dumps(body).encode(), headers)
        started = time.monotonic()
        try:
            # no proxy: the server is on this machine, and a proxy is not
            opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
            with opener.open(request, timeout=self._patience) as reply:
                found = json.load(reply)
            answer: dict[str, Any] = found["choices"][0]
        except urllib.error.HTTPError as error:
            raise ModelError(f"the model's server refuses: {error.code} {error.reason}", where=self._url) from None
        except (OSError, ValueError, LookupError, TypeError) as error:
            reason = getattr(error, "reason", error)
            raise ModelError(
                f"the model's server gives no answer: {type(reason).__name__}", where=self._url, advice="is it running?"
            ) from None
        usage = found.get("usage") or {}
        cached = (usage.get("prompt_tokens_details") or {}).get("cached_tokens") or 0
        spent = Price(
            1, usage.get("prompt_tokens", 0), cached, usage.get("completion_tokens", 0), time.monotonic() - started
        )
        return answer, spent


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
        said = str((answer.get("message") or {}).get("content") or "").strip(" .()*\n").upper()[:1]
        return {said: 1.0} if said and said in offered else {}
    whole = sum(found.values())
    return {letter: share / whole for letter, share in found.items()}


def _local(host: str) -> bool:
    if host.casefold() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
