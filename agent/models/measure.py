"""Measures a model on this machine: what `migrate model bench` prints, and the trial of `migrate model check`."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent.models.protocol import NONE_OF_THESE, Match, Price, Prompt
from agent.models.trial import PATIENCE, in_child

_ROUNDS = 3
_COLUMNS = {
    "fname": ["Ana"], "tel": ["555-0101"], "zip": ["69006"], "town": ["Porto"], "mail": ["a@b.example"], "dob": ["1970-01-02"],
}  # fmt: skip
_FIELDS = (
    "people.city",
    "people.email",
    "people.birthdate",
    "people.mobile",
    "people.postal_code",
    "people.given_name",
)


@dataclass(frozen=True)
class Speeds:
    """What was measured. Rates are tokens a second, medians of three rounds; a decision is a choice among seven options in the form that
    the ladder asks for, after the first one, which fills the cache; `cached` is the share of its prompt that came from there."""

    name: str
    parameters: int
    load_seconds: float
    memory_mib: float
    prompt_rate: float
    answer_rate: float
    decision_seconds: float
    cached: float
    form: str
    threads: int
    gpu: str

    @property
    def decisions_rate(self) -> float:
        """Decisions a second."""
        return 1 / self.decision_seconds if self.decision_seconds else 0.0


def measure(path: Path, patience: float = PATIENCE) -> Speeds:
    """Takes the figures in a child process. ModelError, one line, where the file can't be run."""
    return Speeds(**in_child("measure:_speeds", path, patience))


def trial(path: Path) -> dict[str, Any]:
    """Loads the model, times it once and tries its grammar; runs in a child."""
    from agent.models.backends import built
    from agent.models.native import system_info

    found, model = _loaded(path)
    found["prompt_rate"], found["answer_rate"] = model.speeds()
    choices = list(_decisions(model, 2))
    text = model.write(
        Prompt("Answer in JSON.", "Is the sky blue?"), 'root ::= "{\\"answer\\": " ("true" | "false") "}"', 20
    )
    found |= {
        "choice_seconds": choices[-1].seconds,
        "grammar": text.text in ('{"answer": true}', '{"answer": false}'),
        "template": model.template_note,
        "thinks": model.can_think,
        "system": system_info(),
        "devices": [f"{device.backend}: {device.name}" for device in built()[1] if device.backend != "CPU"],
    }
    model.close()
    return found


def _speeds(path: Path) -> dict[str, Any]:
    found, model = _loaded(path)
    rates = [model.speeds() for _ in range(_ROUNDS)]
    decided = list(_decisions(model, 1 + 2 * _ROUNDS))[1:]
    whole = sum(decided, Price())
    found |= {
        "prompt_rate": statistics.median(rate[0] for rate in rates),
        "answer_rate": statistics.median(rate[1] for rate in rates),
        "decision_seconds": statistics.median(price.seconds for price in decided),
        "cached": whole.cached_tokens / whole.prompt_tokens,
    }
    model.close()
    return found


def _loaded(path: Path) -> tuple[dict[str, Any], Any]:
    import psutil

    from agent.models.llamacpp import LlamaCpp

    started = time.monotonic()
    model = LlamaCpp(path)
    loaded = time.monotonic() - started
    model.speeds()  # pages the weights in
    found = {
        "name": model.name,
        "parameters": model.weights.parameters,
        "load_seconds": loaded,
        "memory_mib": psutil.Process().memory_info().rss / 2**20,
        "form": model.form,
        "threads": model.threads,
        "gpu": "all" if model.gpu_layers < 0 else str(model.gpu_layers),
    }
    return found, model


def _decisions(model: Any, count: int) -> Iterator[Price]:
    """Prices of different questions about one table, as a job asks them one after the other."""
    for number in range(count):
        field = _FIELDS[number % len(_FIELDS)]
        prompt = Prompt(
            "You match columns of an old CRM with columns of a new one. Answer with one of the options.",
            f"Which column holds {field}?",
            " | ".join(f"{name}: {values[0]}" for name, values in _COLUMNS.items()),
            Match(new_field=field, values=_COLUMNS),
        )
        yield model.choose(prompt, [*_COLUMNS, NONE_OF_THESE]).price
