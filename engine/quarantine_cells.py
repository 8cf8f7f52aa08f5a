r"""A value of a record as the text of a spreadsheet's cell, and back, exactly.

No cell may be a formula to the program that opens it, and none may lose what a spreadsheet can't hold. NULL is an empty
cell and empty text is `\u{}`; characters that a sheet or its XML can't keep are `\u{HEX}`; a text that begins like a
formula has an apostrophe before it; a text too long for a cell is named and kept as it is.
"""

from __future__ import annotations

import re
from typing import Any

LONGEST = 32_767
"""Characters (UTF-16 units) that a cell holds."""

_KEPT = "\\u{kept}"
_STARTS = "=+-@\t\r'"
_ESCAPE = re.compile(
    # our own sign; XLSX's own escape; controls but the line feed; signs that turn text around; what XML leaves out
    r"\\(?=u\{)|_(?=x[0-9A-Fa-f]{4}_)|[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff\ufffe\uffff]"
)
_ESCAPED = re.compile(r"\\u\{([0-9a-f]{0,6})\}")


def text_cell(sheet: Any, value: str) -> Any:
    """A cell of a write-only sheet that holds the text as it is: never a formula or an error."""
    from openpyxl.cell import WriteOnlyCell

    cell = WriteOnlyCell(sheet, value or None)
    cell.number_format = "@"
    if value:
        cell.data_type = "s"
    return cell


def cell_of(value: str | None) -> str:
    """The text of the cell."""
    if value is None:
        return ""
    if value == "":
        return "\\u{}"
    text = _ESCAPE.sub(lambda found: f"\\u{{{ord(found[0]):x}}}", value)
    # a sheet drops line feeds at the ends
    for end in (r"^\n+", r"\n+$"):
        text = re.sub(end, lambda found: "\\u{a}" * len(found[0]), text)
    if text[0] in _STARTS:
        text = f"'{text}"
    if len(text.encode("utf-16-le")) // 2 > LONGEST:
        return f"{_KEPT} {len(value):,} characters, too long for a cell"
    return text


def value_of(cell: str) -> str | None:
    """The value that a cell's text stands for. KeptError for one that stands for a value too long to be written;
    ValueError for a sign that isn't there."""
    if cell.startswith(_KEPT):
        raise KeptError
    if cell == "":
        return None
    if len(cell) > 1 and cell[0] == "'" and cell[1] in _STARTS:
        cell = cell[1:]
    return _ESCAPED.sub(lambda found: _sign(found[1]), cell)


class KeptError(Exception):
    """The cell only names its value."""


def _sign(digits: str) -> str:
    if not digits:
        return ""
    code = int(digits, 16)
    if code > 0x10FFFF or 0xD800 <= code < 0xE000:
        raise ValueError(f"\\u{{{digits}}} is no character")
    return chr(code)
