"""Record values made safe to print: what would steer a terminal is shown, not sent.

A value from a legacy system may hold escape sequences, line ends or characters that turn text around.
"""

from __future__ import annotations

import unicodedata

_JOINERS = "‌‍"  # part of words in Persian and Hindi, and of emoji
_NAMED = {"\n": "\\n", "\r": "\\r", "\t": "\\t", "\x00": "\\0"}


def visible(value: object, limit: int = 0) -> str:
    """The value as one line of text: None as NULL, control and format characters as escapes.

    `limit` cuts it to that many characters and ends it with an ellipsis; 0 leaves it whole.
    """
    if value is None:
        return "NULL"
    if isinstance(value, bytes | bytearray | memoryview):
        text = "\\x" + bytes(value).hex()
    else:
        text = str(value)
    if limit and len(text) > limit:
        text = text[: limit - 1] + "…"
    return "".join(map(_shown, text))


def one_line(text: str) -> str:
    """A message on one line: line ends become blanks, all else as in `visible`."""
    return visible(" ".join(text.split()))


def visible_lines(text: str) -> str:
    """A text of several lines, each as in `visible`."""
    return "\n".join(map(visible, text.split("\n")))


def _shown(character: str) -> str:
    if character.isprintable() or character in _JOINERS or unicodedata.category(character) == "Zs":
        return character
    code = ord(character)
    return _NAMED.get(character) or (f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}")
