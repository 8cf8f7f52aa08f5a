"""What functions share that answer for a whole column: telling which rows are left, and writing many texts anew.

Nothing here knows what a value means. Columns are Arrow arrays of text.
"""

from __future__ import annotations

import re

import pyarrow as pa
import pyarrow.compute as pc


def left(values: pa.Array, answered: pa.Array) -> pa.Array:
    """True for the rows that hold something and aren't answered: NULL and empty text are NULL to every function."""
    return pc.greater(pc.if_else(answered, 0, pc.binary_length(values)), 0).fill_null(False)


def matched(values: pa.Array, pattern: str) -> pa.Array:
    """True for the texts in which a pattern, in the syntax of RE2, is found; False for NULL."""
    return pc.match_substring_regex(values, pattern).fill_null(False)


def placed(answered: pa.Array, texts: pa.Array) -> pa.Array:
    """The texts, one for each row that is answered, in their rows; null in the others."""
    return pc.replace_with_mask(pa.nulls(len(answered), pa.string()), answered, texts)


def cleaned(texts: list[str], without: bytes, and_without: re.Pattern[str] | None = None) -> list[str]:
    """The texts without some bytes of UTF-8 and without what a pattern matches; empty for those of several lines.

    They are joined by newlines, changed at one go and cut: the pattern must not match a newline.
    """
    if not texts:
        return texts
    joined = "\n".join(texts)
    if joined.count("\n") >= len(texts):
        joined = "\n".join("" if "\n" in text else text for text in texts)
    if and_without is not None:
        joined = and_without.sub("", joined)
    return joined.encode().translate(None, without).decode().split("\n")
