"""A decider that knows the gold plan and errs as often, and in the way, that it is told to: a stand-in for models of any quality.

It answers what the ladder asks and nothing else, so that a curve over its quality says how good a model the harness
needs. Its errors are drawn by the question alone: the same question gets the same answer in each run of one seed.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from rapidfuzz import fuzz

from agent.kinds_apart import entity_name
from agent.models.protocol import NONE_OF_THESE, Choice, Price, Prompt, Text
from bench.plan_score import Schema, base_table, carries, reads
from bench.scenarios import Scenario
from engine.plan import EntityPlan
from workspace.errors import ModelError, UsageError

Errors = Literal["independent", "correlated", "near", "overconfident"]
ERRORS: tuple[Errors, ...] = get_args(Errors)
_TABLE = re.compile(r"^Which table of the target do the [\d,]+ rows of (.+) go to\?$")
_ROWS = re.compile(r"^Rows of (.+) with a mark in .+ stay behind: `where: ")
_BESIDE = re.compile(r" where |, the ")
_PARTS = re.compile(r"(?: \* \d+)? \+ ")
_VALUE = re.compile(r"^Which label means the same as the value\? Field (.+)\.([^.]+)\.$")


@dataclass(frozen=True)
class Quality:
    """Right with this probability. `errors` says how it errs: on questions one by one; on all questions of a table
    together; by the option whose name is nearest; or sure of itself whatever it says."""

    right: float
    errors: Errors = "independent"

    @classmethod
    def parse(cls, text: str) -> Quality:
        """`0.9` or `0.9,near`. UsageError for anything else."""
        share, _, errors = text.partition(",")
        try:
            right = float(share)
        except ValueError:
            right = -1.0
        kind = next((e for e in ERRORS if e == (errors or "independent")), None)
        if not 0 <= right <= 1 or kind is None:  # NaN is no share either
            raise UsageError(f"no quality {text!r}", advice=f"write a share and how it errs: 0.9,{ERRORS[1]}")
        return cls(right, kind)


class OracleModel:
    """Decides for one scenario. `schema` holds the source's columns by table."""

    def __init__(self, scenario: Scenario, schema: Schema, quality: Quality, seed: int = 1) -> None:
        self._quality, self._seed, self._scenario = quality, seed, scenario
        self.name = f"oracle {quality.right:g} {quality.errors}"
        self.worth: float | None = 0.99 if quality.errors == "overconfident" else quality.right
        self._columns: dict[str, list[tuple[frozenset[str], frozenset[str]]]] = {}
        self._entities: dict[str, list[EntityPlan]] = {}
        self._value_maps = scenario.gold().value_maps
        for entity in scenario.gold().entities.values():
            for known_as in (base_table(entity), entity_name(base_table(entity), entity.to)):
                self._entities.setdefault(known_as, []).append(entity)
            for column, field in entity.fields.items():
                both = (reads, carries) if not field.constant else ()
                drawn = [_names(each(field.expression, entity, schema)) for each in both]
                if drawn:
                    self._columns.setdefault(f"{entity.to}.{column}", []).append((drawn[0], drawn[1]))
            self._columns.setdefault(base_table(entity), [])

    def choose(self, prompt: Prompt, options: Sequence[str]) -> Choice:
        """The right option with the probability of the quality, else a wrong one."""
        match = prompt.match
        right = self.right(prompt, options)
        field = match.new_field if match is not None else prompt.question
        group = (
            field.partition(".")[0]
            if self._quality.errors == "correlated"
            else f"{field} {sorted(options)} {prompt.data if match is None else ''}"
        )
        draw = random.Random(f"{self._seed} {self._scenario.name} {group}")
        index = right
        if draw.random() >= self._quality.right:
            others = [i for i in range(len(options)) if i != right]
            near = max(others, key=lambda i: fuzz.ratio(options[i], field.rpartition(".")[2]))
            index = near if self._quality.errors == "near" else draw.choice(others)
        sure = 0.99 if self._quality.errors == "overconfident" else max(self._quality.right, 1 / len(options))
        rest = (1 - sure) / max(1, len(options) - 1)
        price = Price(calls=1, prompt_tokens=len(prompt.question.split()), answer_tokens=1)
        return Choice(index, tuple(sure if i == index else rest for i in range(len(options))), price)

    def write(self, prompt: Prompt, grammar: str, max_tokens: int = 200) -> Text:
        """Writes nothing: ModelError, and the ladder goes on to ask."""
        raise ModelError("the oracle chooses and doesn't write")

    def close(self) -> None:
        """Nothing to free."""

    def right(self, prompt: Prompt, options: Sequence[str]) -> int:
        """The option that the gold plan takes; none of these (the last) where it takes no option."""
        none = options.index(NONE_OF_THESE) if NONE_OF_THESE in options else len(options) - 1
        if prompt.match is None:
            wanted = self._said(prompt, options)
            return options.index(wanted) if wanted in options else none
        columns = self._columns.get(prompt.match.new_field, [])
        offered = [frozenset(_PARTS.split(_BESIDE.split(o)[0])) for o in options]
        # the whole, or what the value is made of: the country of a telephone number is found by rules
        right = [i for i, named in enumerate(offered) if any(made and made <= named <= read for read, made in columns)]
        return max(right, key=lambda i: len(offered[i]), default=none)

    def _said(self, prompt: Prompt, options: Sequence[str]) -> str | None:
        """What the gold plan says of a table, of rows that stay behind or of a value; None for anything else."""
        if told := _TABLE.match(prompt.question):
            offered = [e for e in self._entities.get(told[1], ()) if e.to in options]
            return max(offered, key=lambda e: len(e.fields)).to if offered else None
        if told := _ROWS.match(prompt.question):
            return options[0] if any(e.where for e in self._entities.get(told[1], ())) else None
        if told := _VALUE.match(prompt.question):
            for entity in self._entities.get(told[1], ()):
                field = entity.fields.get(told[2])
                if field is not None and field.map is not None:
                    known = {str(k).strip().casefold(): v for k, v in self._value_maps[field.map].items()}
                    label = known.get(prompt.data.strip().casefold())
                    return None if label is None else str(label)
        return None


def _names(columns: frozenset[str]) -> frozenset[str]:
    """Without their tables; the name itself may hold dots."""
    return frozenset(column.partition(".")[2] or column for column in columns)
