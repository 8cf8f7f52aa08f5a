"""How a column and a field are put to the encoder: the words of the name, and the shape of a few values.

The adapter was trained on texts made here, so a change of a line wants it trained anew. Digits become runs of noughts:
what a value looks like tells the field, its figures don't, and each would be a token.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from agent.models.data_block import neutralise

_NAME, _VALUE, _VALUES = 60, 16, 2
_HUMPS = re.compile(r"(?<=[a-zà-ÿ])(?=[A-ZÀ-Þ])|(?<=[A-Z])(?=[A-Z][a-z])|(?<=[A-Za-zà-ÿ])(?=\d)")


def column_text(name: str, values: Sequence[str]) -> str:
    """An old column as the encoder reads it: ` date added: 000-00-00`; values of one shape are shown once."""
    shown = dict.fromkeys(shape(value) for value in values[:_VALUES])
    held = "; ".join(value for value in shown if value)
    return f"{_words(name)}: {held}" if held else f"{_words(name)}:"


def field_text(name: str) -> str:
    """A new field as the encoder reads it: ` created at`. A table before the name (`people.created_at`) is left out."""
    return _words(name.rpartition(".")[2])


def shape(value: str) -> str:
    """A value's beginning with its figures blotted out: `2004-05-06` -> `000-00-00`; a single digit stays."""
    text = " ".join(neutralise(value[:200]).split())[:_VALUE].strip()
    return re.sub(r"\d{2,}", lambda run: "0" * min(3, len(run[0])), text)


def _words(name: str) -> str:
    apart = _HUMPS.sub(" ", neutralise(name[:200]))
    return " " + " ".join(re.split(r"[\W_]+", apart)).strip().lower()[:_NAME]
