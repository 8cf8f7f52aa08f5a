"""Text that went through the wrong hands: escaped by a web form, or read in the wrong encoding.

Both functions change only what is surely damaged and give every other text back as it was sent, blank
text included. They must never tidy: no quote, space or letter form is changed.
"""

from __future__ import annotations

import html
import re
from html.entities import html5

import ftfy
import pyarrow as pa
from ftfy.badness import is_bad

from engine.functions.columns import matched
from engine.functions.protocol import Answers, DomainFunction, Outcome

# What copying and pasting leaves, unseen, at the ends of a value; \x01 is not among them, it packs lists.
_EDGES = (
    " \t\n\r\x0b\x0c\x00\x1c\x1d\x1e\x1f\x85\xa0\xad\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007"
    "\u2008\u2009\u200a\u200b\u200c\u200d\u200e\u200f\u2028\u2029\u202a\u202b\u202c\u202d\u202e\u202f\u205f"
    "\u2060\u2066\u2067\u2068\u2069\u3000\ufeff"
)


def trimmed(value: str | None) -> str:
    """The value without spaces and invisible characters at its ends; empty for NULL and for blank text."""
    return value.strip(_EDGES) if value else ""


ENTITY = re.compile(r"&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")
"""What looks like an entity with its semicolon; `undone` tells whether it is one."""


_UNPRINTED = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")


def undone(entity: str) -> str | None:
    """The characters an entity such as `&uuml;` stands for, or None where it stands for none.

    A number that names no character (0, a surrogate, a control character) is left as it stands:
    replacing it would lose what was sent.
    """
    if entity[1] != "#":
        return html5.get(entity[1:])
    character = html.unescape(entity)
    return None if character == "\ufffd" or _UNPRINTED.search(character) or not character else character


def _undo(match: re.Match[str]) -> str:
    entity = match.group()
    character = undone(entity)
    return entity if character is None else character


def html_text(value: str | None) -> Outcome:
    """The text with HTML entities undone, up to twice; NULL for NULL; never a reason.

    Only entities that end in a semicolon and are known count: `AT&T`, `R&D &copy me` and `&T;` are text.
    Tags stay. `&nbsp;` becomes the no-break space that it stands for.
    """
    if value is None or "&" not in value or ";" not in value:
        return value, None
    once = ENTITY.sub(_undo, value)
    return (once if once == value else ENTITY.sub(_undo, once)), None


_ENCODING_ONLY = ftfy.TextFixerConfig(
    unescape_html=False,
    remove_terminal_escapes=False,
    replace_lossy_sequences=False,  # would put U+FFFD where bytes are lost already
    fix_latin_ligatures=False,
    fix_character_width=False,
    uncurl_quotes=False,
    fix_line_breaks=False,
    fix_surrogates=False,
    remove_control_chars=False,
    normalization=None,
    explain=False,
)

# All that ftfy takes for damage has one of these; tests/test_functions_fast.py goes through its rules. Letters
# of Hebrew, Arabic, India, East Asia and most of Vietnam's are in none of them.
_SUSPECT = "[\x80-\u058f\u2000-\u2e7f\ue000-\uffff]{2}|[\x80-\x9fÂÃŒœ]"
_suspect = re.compile(_SUSPECT).search


def _damaged(line: str) -> bool:
    """What ftfy asks first, after more preparation than the question takes."""
    return _suspect(line) is not None and is_bad(line)


def _reread(line: str) -> str | None:
    """A damaged line as UTF-8, where ftfy's first steps are its last ones; else None."""
    for encoding in ("latin-1", "sloppy-windows-1252"):  # ftfy tries them in this order
        try:
            sent = line.encode(encoding)
        except UnicodeError:
            continue
        if b"\xed" in sent or b"\x1a" in sent:
            return None  # ftfy reads these in ways of its own
        try:
            fixed = sent.decode()
        except UnicodeError:
            return None
        return None if _damaged(fixed) else fixed
    return None


def _mended(line: str) -> str:
    if not _damaged(line):
        return line
    if (reread := _reread(line)) is not None:
        return reread
    try:
        fixed = ftfy.fix_encoding(line, _ENCODING_ONLY)
        fixed.encode()  # bytes that spell half a surrogate pair decode to what no database stores
    except UnicodeError:
        return line
    if fixed == line or ("\x00" in fixed and "\x00" not in line) or _damaged(fixed):
        return line  # half undone is worse than as it was sent: nobody could undo the rest
    return fixed


def mojibake(value: str | None) -> Outcome:
    """The text with UTF-8 that was read as another encoding put right (`MÃ¼ller` to `Müller`).

    Line by line, since one damaged line in a note says nothing of the others. Text that shows no such
    damage comes back byte for byte, and so does damage that cannot be undone. NULL for NULL; never a reason.
    """
    if value is None or value.isascii():
        return value, None
    if "\n" not in value:
        return _mended(value), None
    return "\n".join(line if line.isascii() else _mended(line) for line in value.split("\n")), None


def without_mojibake(values: pa.Array) -> Answers:
    """The texts that cannot be damaged, since hardly any two of their characters outside of ASCII stand together."""
    return values, matched(values, _SUSPECT)


HTML_TEXT = DomainFunction("html_text", ("value",), 0, "VARCHAR", html_text, unchanged_when="NOT contains({0}, '&')")
MOJIBAKE = DomainFunction(
    "mojibake", ("value",), 0, "VARCHAR", mojibake, "strlen({0}) = length({0})", columns=without_mojibake
)
