"""Takes record values out of what goes to a model on another machine: a value becomes its shape.

Names of tables and columns, labels of the target's lists and our own words go as they are.
"""

from __future__ import annotations

import re

from agent.models.protocol import Prompt
from workspace.signature import shape

_VALUE, _VALUES = 40, 3
_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"")
_ADDRESS = re.compile(r"\S+@\S+|\w+://\S+")
_NUMBER = re.compile(r"\+?\d[\d ()./-]{5,}\d")


def masked(prompt: Prompt) -> Prompt:
    """The prompt with its data as shapes (each under its column's name, where the parts of a match tell it), and with what
    looks like a value in our own words (something quoted, an address, a long number) as shapes too. The parts themselves are
    left out."""
    data = shape(prompt.data)
    if prompt.match is not None and prompt.match.values and prompt.data:
        data = "; ".join(
            f"{name}: {' | '.join(map(shape, held))}"
            for name, values in prompt.match.values.items()
            if (held := [v for value in values[:_VALUES] if (v := _as_shown(value)) in prompt.data])
        )
    return Prompt(_words(prompt.system), _words(prompt.question), data)


def _as_shown(value: str) -> str:
    return "".join(c if c.isprintable() else " " for c in value[:_VALUE])


def _words(text: str) -> str:
    for pattern in (_QUOTED, _ADDRESS, _NUMBER):
        text = pattern.sub(lambda match: shape(match[0]), text)
    return text
