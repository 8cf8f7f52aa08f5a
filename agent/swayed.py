"""The question a second time, without the texts that could hold an order: a model may be told what to say by what it reads.

Record values and names come from whoever wrote them. The answer that settles a matter has to stand without them,
or it is left to a person: so a text that a model obeys can cost a question, and can't choose a column.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from agent.matter import Matter, Option
from agent.models.calibration import levels_of
from agent.models.protocol import NONE_OF_THESE, Match, Model, Prompt

_LETTERS, _WORDS = 64, 8
_WIDE = 0x2E80  # from here on a character is a word or half of one, and no blank stands between them
_NAME = re.compile(r"\w[\w .,\-/()&#%+°]*")


def could_sway(model: Model, matter: Matter, prompt: Prompt) -> bool:
    """True where the prompt holds texts that a model might obey, and the model is one that follows words. One whose answers
    were measured pair by pair scores the likelihood of a question and is told nothing (`agent.models.pairs`)."""
    if levels_of(model.name, matter.match):
        return False
    held = bool(prompt.data.strip() or (prompt.match is not None and prompt.match.values))
    return held or any(not is_name(name) for name in _names(matter))


def without_strange_texts(matter: Matter, options: Sequence[Option]) -> tuple[Matter, list[Option]]:
    """The matter without record values, and it and the options with a plain word in the place of each name that reads
    like a sentence."""
    stand_in = {name: f"name {n}" for n, name in enumerate(_names(matter), 1) if not is_name(name)}
    shown = [replace(option, label=stand_in.get(option.label, option.label)) for option in options]
    text, brief = matter.text, matter.brief
    for name in sorted(stand_in, key=len, reverse=True):
        text, brief = text.replace(name, stand_in[name]), brief.replace(name, stand_in[name])
    match = matter.match
    if match is not None:
        match = Match(_renamed(match.new_field, stand_in), _renamed(match.old_column, stand_in))
    return replace(matter, text=text, brief=brief, data="", match=match), shown


def is_name(text: str) -> bool:
    """True for what a table or a column is called; a sentence, marks that steer and the like are none."""
    parts = text.split(" + ")  # what is put together out of several columns
    return all(_is_one_name(part) for part in parts)


def _is_one_name(text: str) -> bool:
    words = re.split(r"[\s_]+", text)
    letters = sum(5 if ord(character) >= _WIDE else 1 for character in text)
    return bool(_NAME.fullmatch(text)) and letters <= _LETTERS and len(words) <= _WORDS


def _names(matter: Matter) -> list[str]:
    """What is called something in the matter: its options, and the table that it is about."""
    found = [option.label for option in matter.options if option.label != NONE_OF_THESE]
    return list(dict.fromkeys([*found, matter.subject.rpartition(".")[0] or matter.subject]))


def _renamed(text: str, stand_in: dict[str, str]) -> str:
    return stand_in.get(text, text)
