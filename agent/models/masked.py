"""Takes record values out of what goes to a model on another machine: a value becomes its shape.

Names of tables and columns, labels of the target's lists and our own words go as they are.
"""

from __future__ import annotations

import re

from agent.models.protocol import Prompt
from workspace.signature import shape

_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"")
_ADDRESS = re.compile(r"\S+@\S+|\w+://\S+")
_NUMBER = re.compile(r"\+?\d[\d ()./-]{5,}\d")


def masked(prompt: Prompt) -> Prompt:
    """The prompt with its data as shapes, and with what looks like a value in our own words (something quoted, an address, a
    long number) as shapes too. The parts of a match are left out."""
    return Prompt(_words(prompt.system), _words(prompt.question), shape(prompt.data))


def _words(text: str) -> str:
    for pattern in (_QUOTED, _ADDRESS, _NUMBER):
        text = pattern.sub(lambda match: shape(match[0]), text)
    return text
