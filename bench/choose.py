"""Measures how well a model picks the field of an old column, and the column of a new field: `python -m bench.choose`.

    python -m bench.choose run [--form pairs --form letters1 …] [--to field|column] [--every N] [--model PATH] [--store FILE]
    python -m bench.choose report [--store FILE]
    python -m bench.choose calibrate [--adapter FILE] [--store FILE]

Answers are appended to the store, so that a run can be stopped and taken up. `report` prints, for each form,
how often it is right, how its probabilities hold (on families that nothing was picked or fitted on), and
the threshold from which it is right in 98 of 100. The figures in `agent/models/calibration.py` come from here, and
`calibrate` writes those of the trained encoder beside its adapter.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np
from rapidfuzz import fuzz

from agent.models.adapters import COLUMNS
from agent.models.calibration import UNFITTED, Fit
from agent.models.embedded import embedded_model_path
from agent.models.encoder import LlamaEncoder
from agent.models.gguf_file import read_adapter, read_header
from agent.models.llamacpp import LlamaCpp, rotations
from agent.models.nearest import nearest
from agent.models.protocol import Match, Prompt
from bench.choose_report import measured, print_report
from bench.choose_set import Question, load_questions, value_kinds
from workspace.errors import ModelError

STORE = Path("build/choose.jsonl")
_SYSTEM = "You match columns of an old CRM with columns of a new one. Answer with one of the options."
Answerer = Callable[[Question], Sequence[float]]


def words(name: str) -> str:
    """A column's name in lower-case words: `CreatedDate` -> `created date`."""
    spaced = "".join(
        f" {c}" if c.isupper() and before.islower() else c for before, c in zip(" " + name, name, strict=False)
    )
    return " ".join(spaced.replace("_", " ").lower().split())


def prompt_of(question: Question, *, parts: bool) -> Prompt:
    """The question as the ladder asks it; with `parts` also as a Match."""
    values = {name: tuple(samples) for name, samples in question.values.items()}
    if question.to_field:
        text = (
            f"Old column: {question.table}.{question.subject} ({question.types[question.subject]})."
            f" Which column of the new table {question.target} does it go to?"
        )
        match = Match(old_column=question.subject, values=values)
        data = " | ".join(values[question.subject])
    else:
        text = f"New column: {question.target}.{question.subject}. Which column of the old table {question.table} does it come from?"
        match = Match(new_field=f"{question.target}.{question.subject}", values=values)
        data = "; ".join(f"{name}: {' | '.join(shown)}" for name, shown in values.items())[:160]
    return Prompt(_SYSTEM, text, data, match if parts else None)


def _letters(model: LlamaCpp, orders: int) -> Answerer:
    def answer(question: Question) -> Sequence[float]:
        options = question.options
        asked = prompt_of(question, parts=False)
        total = np.zeros(len(options))
        for order in rotations(len(options), orders):
            listed = "\n".join(f"{chr(65 + place)}. {options[i]}" for place, i in enumerate(order))
            text = f"{asked.question}\n{listed}\nAnswer with one letter."
            first, _ = model._context.prompt(model._tokens(Prompt(asked.system, text, asked.data), 8))
            scores = np.array([first[model._plain(chr(65 + place))[0]] for place in range(len(order))])
            shares = np.exp(scores - scores.max())
            for place, i in enumerate(order):
                total[i] += shares[place] / shares.sum() / orders
        return total.tolist()

    return answer


def _unfitted(_model: str, _match: Match) -> Fit:
    return UNFITTED


def _model_forms(path: Path) -> dict[str, Answerer]:
    model = LlamaCpp(path, threads=1)
    model.fit = partial(_unfitted, model.name)

    def choose(form: str, parts: bool) -> Answerer:
        def answer(question: Question) -> Sequence[float]:
            model.form = "listed" if form == "listed" else "channel"
            return model.choose(prompt_of(question, parts=parts), question.options).probabilities

        return answer

    return {
        "pairs": choose("channel", True),
        "letters1": _letters(model, 1),
        "letters3": _letters(model, 3),
        "names3": choose("listed", False),
        "question": choose("channel", False),
    }


def _trained(path: Path) -> dict[str, Answerer]:
    """The encoder with an adapter, its scores not fitted yet."""
    encoder = LlamaEncoder(embedded_model_path(), threads=1, adapter=path)
    encoder.name = "unmeasured"

    def answer(question: Question) -> Sequence[float]:
        match = prompt_of(question, parts=True).match
        choice = nearest(encoder, match, question.options) if match is not None else None
        if choice is None:
            raise ModelError("its header doesn't say how its scores are meant", where=str(path))
        return choice.probabilities

    return {"trained": answer}


def _other_forms() -> dict[str, Answerer]:
    encoder = LlamaEncoder(embedded_model_path(), threads=1)

    def cosine(question: Question) -> Sequence[float]:
        vectors = encoder.encode([words(question.subject), *(words(name) for name in question.candidates)])
        return [*(vectors[1:] @ vectors[0]).tolist(), 0.0]

    def alike(question: Question) -> Sequence[float]:
        return [*(fuzz.WRatio(words(question.subject), words(name)) / 100 for name in question.candidates), 0.0]

    def kinds(question: Question) -> Sequence[float]:
        return [*value_kinds(question), 0.0]

    return {"encoder": cosine, "names_alike": alike, "kinds": kinds}


def run(
    forms: Sequence[str], directions: Sequence[bool], every: int, path: Path, store: Path, adapter: Path = COLUMNS
) -> None:
    """Asks every `every`-th question in each form that the store has no answer to yet; a direction is True for the
    field of an old column, False for the column of a new field."""
    store.parent.mkdir(parents=True, exist_ok=True)
    done = set()
    if store.exists():
        done = {(r["form"], r["to_field"], r["number"]) for r in map(json.loads, store.read_text().splitlines())}
    answerers = {**_other_forms(), **(_trained(adapter) if adapter.exists() else {}), **_model_forms(path)}
    for form in forms or list(answerers):
        for to_field in directions:
            for number, question in enumerate(load_questions(to_field)):
                if number % every or (form, to_field, number) in done:
                    continue
                wall, work = time.monotonic(), time.process_time()
                scores = [round(float(score), 6) for score in answerers[form](question)]
                record = {
                    "form": form, "to_field": to_field, "number": number, "scores": scores,
                    "seconds": round(time.monotonic() - wall, 3), "work": round(time.process_time() - work, 3),
                }  # fmt: skip
                with store.open("a") as file:
                    file.write(json.dumps(record) + "\n")


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="bench.choose", description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("what", choices=("run", "report", "calibrate"))
    parser.add_argument("--form", action="append", default=[])
    parser.add_argument("--to", choices=("field", "column"), default=None)
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--model", type=Path, default=None)
    parser.add_argument("--adapter", type=Path, default=COLUMNS, help="of the encoder in the form `trained`")
    parser.add_argument("--store", type=Path, default=STORE)
    given = parser.parse_args()
    if given.what == "run":
        directions = (False, True) if given.to is None else (given.to == "field",)
        run(given.form, directions, given.every, given.model or embedded_model_path(), given.store, given.adapter)
    elif given.what == "report":
        print_report(given.store)
    else:
        header = read_header(embedded_model_path())
        told = {"fingerprint": read_adapter(given.adapter, header).fingerprint[:12], **measured(given.store)}
        given.adapter.with_suffix(".json").write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
