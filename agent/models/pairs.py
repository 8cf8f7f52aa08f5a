"""Scores pairs of an old column and a new field, in the one form in which a very small model is of use.

The model is shown a few pairs and asked how likely a text is as the next line's end. The text is the same for
all options, so neither its length nor how common it is matters, and there is no list to prefer a place in.
Nothing here follows an instruction, and nothing is written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from agent.models.data_block import neutralise
from agent.models.protocol import NONE_OF_THESE, Match

_NAME, _VALUE, _VALUES = 60, 40, 3
_ABSENT = ("x", ("x", "y"))

_TO_FIELD = """\
Old column "tel_home" with values 555-0101; 555-0102 -> home phone
Old column "Stadt" with values Berlin; Wien -> city
Old column "contact_mail" with values a@b.example; c@d.example -> email
Old column "dt_crt" with values 2001-02-03; 2004-05-06 -> created at
Old column "CompanyTitle" with values Foo Ltd; Bar SA -> company name
Old column "shoe_size" with values 42; 38 -> none of these
Old column "monto_total" with values 1500; 320.50 -> amount
Old column "kommentar" with values ring later; old client -> description
"""
_TO_COLUMN = """\
Field "home phone" was called "tel_home" and held 555-0101; 555-0102
Field "city" was called "Stadt" and held Berlin; Wien
Field "email" was called "contact_mail" and held a@b.example; c@d.example
Field "created at" was called "dt_crt" and held 2001-02-03; 2004-05-06
Field "company name" was called "CompanyTitle" and held Foo Ltd; Bar SA
Field "something else" was called "shoe_size" and held 42; 38
Field "amount" was called "monto_total" and held 1500; 320.50
Field "description" was called "kommentar" and held ring later; old client
"""

Branch = tuple[str, str]
"""A text that sets an option apart, and the text whose likelihood after it is the option's score."""


def branches(match: Match, options: Sequence[str]) -> tuple[str, list[Branch]]:
    """The examples all options share, and one branch an option."""
    if match.old_column:
        end = f"{_name(match.old_column)}{_held(match.values, match.old_column)}"
        return _TO_COLUMN, [(f'Field "{_field(option)}" was called "', end) for option in options]
    found = []
    for option in options:
        name, values = _ABSENT if option == NONE_OF_THESE else (option, tuple(match.values.get(option, ())))
        shown = _shown(values)
        held = f" with values {shown}" if shown else ""
        found.append((f'Old column "{_name(name)}"{held} ->', f" {_field(match.new_field)}\n"))
    return _TO_FIELD, found


def _held(values: Mapping[str, Sequence[str]], column: str) -> str:
    shown = _shown(values.get(column, ()))
    return f'" and held {shown}' if shown else '"'


def _shown(values: Sequence[str]) -> str:
    kept = [" ".join(neutralise(value[:200]).replace('"', "'").split())[:_VALUE] for value in values[:_VALUES]]
    return "; ".join(value for value in kept if value)


def _name(text: str) -> str:
    return " ".join(neutralise(text[:200]).replace('"', "'").split())[:_NAME]


def _field(option: str) -> str:
    """A field as the examples name one: the column without its table, in words."""
    if option == NONE_OF_THESE:
        return "something else"
    return _name(option.rpartition(".")[2].replace("_", " "))
