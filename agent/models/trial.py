"""Runs a model in a child process: a build that doesn't fit the processor, or a file that ends it, is one clear line here and
not the end of us."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from workspace.errors import ModelError

PATIENCE = 900.0  # seconds; an 8B model on two cores takes some minutes
_BUILD = "docs/model.md says how to build it anew"


def in_child(function: str, path: Path, patience: float = PATIENCE) -> dict[str, Any]:
    """What `function` (`module:name`, of this room) returns for the file, as JSON carries it. ModelError, one line, where it raises, ends the
    process, or takes more than `patience` seconds."""
    try:
        done = subprocess.run(
            command(function, path), capture_output=True, text=True, timeout=patience, check=False,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise ModelError(
            f"no answer within {patience:.0f} seconds", advice="the model is too large for this machine"
        ) from None
    if done.returncode < 0:
        name = signal.Signals(-done.returncode).name
        raise ModelError(
            f"llama.cpp ended with {name}", advice=f"its build doesn't fit this processor, or memory ran out: {_BUILD}"
        )
    try:
        found: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    except (ValueError, IndexError):
        last = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        raise ModelError(f"llama.cpp could not be run: {last[:160]}", advice=_BUILD) from None
    if "error" in found:
        raise ModelError(str(found["error"]), advice="try another file")
    return found


def command(function: str, path: Path) -> list[str]:
    """Runs `main` in a child that finds our rooms wherever it is started from."""
    room = str(Path(__file__).resolve().parents[2])
    code = "import sys; sys.path.insert(0, sys.argv[3]); from agent.models.trial import main; main(*sys.argv[1:3])"
    return [sys.executable, "-c", code, function, str(path.absolute()), room]


def main(function: str, path: str) -> None:
    """The child: prints one JSON object."""
    import importlib

    module, _, name = function.partition(":")
    try:
        print(json.dumps(getattr(importlib.import_module(f"agent.models.{module}"), name)(Path(path))))
    except ModelError as error:
        print(json.dumps({"error": error.what}))
