"""What there is to decide: one matter with its options and evidence, and the decision that came of it.

Values of records stand in `data` alone, which a model sees fenced and a log never holds.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from agent.kinds import names_kinds
from agent.models.protocol import Match, Price

Stakes = Literal["low", "normal", "high"]
Rung = Literal["rule", "experience", "choose", "propose", "ask"]
NONE = "none"
"""The answer that none of the options is right."""
SQL = "sql:"
"""How an answer begins that is an expression of the person's own."""
EXPRESSIONS = ("field", "required", "format")
"""The kinds of matter that an expression can answer."""


@dataclass(frozen=True)
class Option:
    """One possible answer. `answer` is for the machine and stays the same from run to run; `label` is what a
    person and a model read; `weight` is the estimated probability that it is right, 0 to 1; `lesson` is the
    signature under which experience keeps what this option was the answer to, `remedy` how it calls the option (empty: the
    matter's own `signature`); `unaided` the weight without what
    experience adds to it, None where it adds nothing."""

    answer: str
    label: str
    weight: float
    evidence: dict[str, object] = field(default_factory=dict)
    lesson: str = ""
    remedy: str = ""
    unaided: float | None = None


@dataclass(frozen=True)
class Matter:
    """A question of one `kind` about one `subject` (`people.mobile`).

    `none_weight` is the estimated probability that no option is right (None: what the best option leaves);
    `exists` that one of those listed is, whichever (None: the complement).
    `signature` is what experience keeps as the remedy (`people.given_name`); empty where it can't help. `holds` names what
    waits for the answer. `must` says that some answer has to be found: that there is none is for a person to
    say. `free` says that a person may answer with text of their own. `match` is the question in parts, where it
    is about a column; its values are record values like `data`. `recalled` says that jobs before took options for wrong
    that look right. `brief` is the question in fewer words, for a view that has no
    room for `text`.
    """

    kind: str
    subject: str
    text: str
    options: tuple[Option, ...]
    none_weight: float | None = None
    signature: str = ""
    data: str = ""
    evidence: dict[str, object] = field(default_factory=dict)
    holds: tuple[str, ...] = ()
    stakes: Stakes = "normal"
    free: bool = False
    must: bool = False
    exists: float | None = None
    match: Match | None = None
    recalled: bool = False
    brief: str = ""

    @property
    def id(self) -> str:
        """The name of the matter in the log, the same on each resume."""
        return f"{self.kind}:{self.subject}"

    def takes(self, answer: str) -> bool:
        """True for an answer that can be acted on: an option's, text where that is free, an expression, or, of where a
        table's rows go, the kinds that are in it."""
        if self.free or self.option(answer) is not None:
            return True
        return (answer.startswith(SQL) and self.kind in EXPRESSIONS) or (self.kind == "entity" and names_kinds(answer))

    def option(self, answer: str | None) -> Option | None:
        """The option of that answer, or None."""
        return next((o for o in self.options if o.answer == answer), None)


@dataclass(frozen=True)
class Decision:
    """What was decided. `answer` None with `open` False means none of the options; `open` means that a person
    was asked and has not answered."""

    id: str
    answer: str | None
    rung: Rung
    confidence: float
    why: str
    open: bool = False
    price: Price = field(default_factory=Price)
