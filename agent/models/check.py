"""Looks at a model file and tries it: what `migrate model check` prints."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from agent.models.data_block import neutralise
from agent.models.gguf_file import Header, read_header, sha256_of
from agent.models.memory import CONTEXT, memory, need_of
from agent.models.trial import PATIENCE, in_child
from workspace.errors import ModelError


@dataclass(frozen=True)
class Check:
    """One thing looked at: `found` in one line, `advice` where `state` isn't `ok`."""

    name: str
    state: Literal["ok", "warn", "fail"]
    found: str
    advice: str = ""


def check_model(path: Path, patience: float = PATIENCE) -> list[Check]:
    """File, architecture, quantisation, context, memory, template, then load time, speeds and the grammar from a trial run in
    a child process. Never raises for a bad file: the last check then fails. A file that doesn't fit isn't tried."""
    try:
        header = read_header(path)
    except ModelError as error:
        return [Check("file", "fail", f"{error.what}: {path}", error.advice)]
    found = [*_of_header(header), _memory(header)]
    return found if found[-1].state == "fail" else [*found, *_of_trial(path, patience)]


def word(text: str) -> str:
    """A text of a file's or a driver's, harmless and in one line."""
    return " ".join(neutralise(text).split())[:120]


def _of_header(header: Header) -> Iterator[Check]:
    yield Check("file", "ok", f"{header.path}, {header.size / 2**20:,.0f} MiB")
    yield Check("sha256", "ok", sha256_of(header.path))
    yield Check("architecture", "ok", f"{word(header.architecture)}, {word(header.name)}")
    yield Check("parameters", "ok", f"{header.values / 1e6:,.0f} million, mostly {header.quantisation}")
    if header.context and header.context < 2048:
        yield Check(
            "context", "warn", f"{header.context} tokens", "long questions will be cut: 2,048 and more are better"
        )
    else:
        yield Check("context", "ok", f"{header.context:,} tokens" if header.context else "the file doesn't say")


def _of_trial(path: Path, patience: float) -> Iterator[Check]:
    try:
        found = in_child("measure:trial", path, patience)
    except ModelError as error:
        yield Check("trial", "fail", error.what, error.advice)
        return
    yield _template(found)
    yield Check("load", "ok", f"{found['load_seconds']:.1f} s, {found['memory_mib']:,.0f} MiB resident afterwards")
    yield Check("prompt", "ok", f"{found['prompt_rate']:,.0f} tokens/s")
    yield Check("answer", "ok", f"{found['answer_rate']:,.1f} tokens/s")
    yield Check("choice", "ok", f"{found['choice_seconds']:.2f} s among seven options, asked {found['form']}")
    if found["grammar"]:
        yield Check("grammar", "ok", "holds")
    else:
        yield Check(
            "grammar", "fail", "an answer broke the grammar", "llama.cpp's build is not to be trusted: build it anew"
        )
    devices = "".join(f"; {word(device)}" for device in found["devices"])
    yield Check("threads", "ok", f"{found['threads']}, layers on a GPU: {found['gpu']}{devices}")
    yield Check("llama.cpp", "ok", found["system"])


def _template(found: dict[str, Any]) -> Check:
    if found["template"]:
        return Check("chat template", "warn", found["template"], "answers may be worse; take a file made for chat")
    thinks = "; it can think before it writes: --think" if found["thinks"] else ""
    return Check("chat template", "ok", f"from the file{thinks}")


def _memory(header: Header) -> Check:
    """Whether it fits; a machine that lacks the memory reads the weights from disk for each token, which takes minutes."""
    need, (free, whole) = need_of(header, CONTEXT), memory()
    gib = 2**30
    found = (
        f"{need.whole / gib:.1f} GiB: weights {need.weights / gib:.1f}, KV cache {need.cache / gib:.1f} at {CONTEXT:,} tokens,"
        f" work {need.work / gib:.1f}; {free / gib:.1f} of {whole / gib:.1f} GiB are free"
    )
    if need.whole > whole:
        return Check("memory", "fail", found, "it does not fit this machine: take a smaller model or quantisation")
    if need.whole > free:
        return Check("memory", "warn", found, "close something, or it will crawl")
    return Check("memory", "ok", found)
