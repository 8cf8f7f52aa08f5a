"""Tries a model file and says what it is and how fast: what `migrate model check` prints.

llama.cpp runs in a child process, so that a build that doesn't fit the processor, or a file that ends it, is
one clear line here and not the end of us.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from agent.models.data_block import neutralise
from agent.models.gguf_file import Header, read_header, sha256_of
from workspace.errors import ModelError

_PATIENCE = 600.0  # seconds for the child; an 8B model on two cores takes a minute or two


@dataclass(frozen=True)
class Check:
    """One thing looked at: `found` in one line, `advice` where `state` isn't `ok`."""

    name: str
    state: Literal["ok", "warn", "fail"]
    found: str
    advice: str = ""


def check_model(path: Path, patience: float = _PATIENCE) -> list[Check]:
    """File, architecture, context, template, then load time, speeds and the grammar from a trial run in a
    child process. Never raises for a bad file: the last check then fails."""
    try:
        header = read_header(path)
    except ModelError as error:
        return [Check("file", "fail", f"{error.what}: {path}", error.advice)]
    return [*_of_header(header), *_of_trial(path, patience)]


def _of_header(header: Header) -> Iterator[Check]:
    def word(text: str) -> str:
        return " ".join(neutralise(text).split())[:120]

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
        done = subprocess.run(
            _command(path), capture_output=True, text=True, timeout=patience, check=False, stdin=subprocess.DEVNULL
        )
    except subprocess.TimeoutExpired:
        yield Check(
            "trial", "fail", f"no answer within {patience:.0f} seconds", "the model is too large for this machine"
        )
        return
    if done.returncode < 0:
        name = signal.Signals(-done.returncode).name
        yield Check(
            "trial", "fail", f"llama.cpp ended with {name}",
            "its build doesn't fit this processor, or memory ran out: docs/model.md says how to build it anew",
        )  # fmt: skip
        return
    try:
        found: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    except (ValueError, IndexError):
        last = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        yield Check(
            "trial", "fail", f"llama.cpp could not be run: {last[:160]}", "docs/model.md says how to build it anew"
        )
        return
    if "error" in found:
        yield Check("trial", "fail", str(found["error"]), "try another file")
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
    yield Check("threads", "ok", f"{found['threads']}, layers on a GPU: {found['gpu']}")
    yield Check("llama.cpp", "ok", found["system"])


def _command(path: Path) -> list[str]:
    """Runs `_main` in a child that finds our rooms wherever it is started from."""
    room = str(Path(__file__).resolve().parents[2])
    code = "import sys; sys.path.insert(0, sys.argv[2]); from agent.models.check import _main; _main(sys.argv[1])"
    return [sys.executable, "-c", code, str(path.absolute()), room]


def _template(found: dict[str, Any]) -> Check:
    if found["template"]:
        return Check("chat template", "warn", found["template"], "answers may be worse; take a file made for chat")
    return Check("chat template", "ok", "from the file")


def _trial(path: Path) -> dict[str, object]:
    """Loads the model and times it; runs in the child."""
    import psutil

    from agent.models.llamacpp import LlamaCpp
    from agent.models.native import system_info
    from agent.models.protocol import NONE_OF_THESE, Match, Prompt

    started = time.monotonic()
    model = LlamaCpp(path)
    loaded = time.monotonic() - started
    speeds = model.speeds()
    values = {"fname": ["Ana"], "tel": ["555-0101"], "zip": ["69006"], "town": ["Porto"], "mail": ["a@b.example"]}
    prompt = Prompt(
        "You match columns.",
        "Which column holds people.city?",
        str(values),
        Match(new_field="people.city", values=values),
    )
    model.choose(prompt, [*values, "country", NONE_OF_THESE])  # the first time the examples are read
    choice = model.choose(prompt, [*values, "country", NONE_OF_THESE])
    text = model.write(
        Prompt("Answer in JSON.", "Is the sky blue?"), 'root ::= "{\\"answer\\": " ("true" | "false") "}"', 20
    )
    result = {
        "load_seconds": loaded,
        "memory_mib": psutil.Process().memory_info().rss / 2**20,
        "prompt_rate": speeds[0],
        "answer_rate": speeds[1],
        "choice_seconds": choice.price.seconds,
        "form": model.form,
        "grammar": text.text in ('{"answer": true}', '{"answer": false}'),
        "template": model.template_note,
        "threads": model.threads,
        "gpu": "all" if model.gpu_layers < 0 else str(model.gpu_layers),
        "system": system_info(),
    }
    model.close()
    return result


def _main(path: str) -> None:
    try:
        print(json.dumps(_trial(Path(path))))
    except ModelError as error:
        print(json.dumps({"error": error.what}))
