"""Lays a prompt out in the turns of a model's own chat template, as token ids.

Only the template's own text may turn into control tokens. What we ask and what records hold is tokenised
apart, as plain text, and never passes through the template.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from agent.models.data_block import data_block, plain_words
from agent.models.protocol import Prompt

Tokenise = Callable[[str, bool], list[int]]  # text, whether control tokens are parsed out of it
_SYSTEM, _USER = "Packhorse:systemPart", "Packhorse:userPart"  # mixed case: a template that changes it is seen
_PLAIN = f"{_SYSTEM}\n\n{_USER}\n\nAnswer: "


class Chat:
    """The frame of one model: the template rendered once, cut where our parts go in; once more for a model that thinks
    before it answers. `thinks` says whether the template knows of that."""

    def __init__(self, template: str, start: str, end: str, tokenise: Tokenise) -> None:
        """`start` and `end` are the texts of the model's first and last token. A template that is missing
        or can't be used is replaced by plain text; `fallback` then says why."""
        self._tokenise = tokenise
        self.fallback = ""
        frame = thinking = _PLAIN
        if not template:
            self.fallback = "the file has no chat template: plain text is used"
        else:
            try:
                frame = _render(template, start, end, think=False)
                thinking = _render(template, start, end, think=True)
            except Exception as error:  # a template is a program of a stranger's; any error means unusable
                self.fallback = f"its chat template cannot be used ({type(error).__name__}): plain text is used"
                frame = thinking = _PLAIN
        self.thinks = thinking != frame
        self._pieces, self._thinking = _cut(frame), _cut(thinking)

    def tokens(self, prompt: Prompt, last: str = "", *, think: bool = False) -> list[int]:
        """The prompt, ready for its answer: system, the question, the fenced data, and what stands `last` since
        it changes from call to call. With `think` it is ready for a thought, where the template knows of that."""
        asked = "\n\n".join(part for part in (plain_words(prompt.question), data_block(prompt.data), last) if part)
        parts = {_SYSTEM: plain_words(prompt.system), _USER: asked}
        found: list[int] = []
        for piece in self._thinking if think else self._pieces:
            own = parts.get(piece)
            found += self._tokenise(piece, True) if own is None else self._tokenise(own, False)
        return found


def _render(template: str, start: str, end: str, *, think: bool) -> str:
    from llama_cpp.llama_chat_format import Jinja2ChatFormatter  # runs the template in a sandbox

    formatter = Jinja2ChatFormatter(template=template, eos_token=end, bos_token=start)
    try:
        frame = formatter(messages=_messages(apart=True), enable_thinking=think).prompt
        if _complete(frame):
            return frame
    except Exception:  # many templates refuse a system turn; the next try has none
        pass
    frame = formatter(messages=_messages(apart=False), enable_thinking=think).prompt
    if not _complete(frame):
        raise ValueError("the template changes what it is given")
    return frame


def _messages(*, apart: bool) -> list[Any]:
    if apart:
        return [{"role": "system", "content": _SYSTEM}, {"role": "user", "content": _USER}]
    return [{"role": "user", "content": f"{_SYSTEM}\n\n{_USER}"}]


def _complete(frame: str) -> bool:
    return frame.count(_SYSTEM) == 1 and frame.count(_USER) == 1 and frame.index(_SYSTEM) < frame.index(_USER)


def _cut(frame: str) -> tuple[str, ...]:
    before, rest = frame.split(_SYSTEM)
    between, after = rest.split(_USER)
    return tuple(piece for piece in (before, _SYSTEM, between, _USER, after) if piece)
