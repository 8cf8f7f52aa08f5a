"""What functions share that answer for a whole column: telling which rows are left, and writing many texts anew.

Nothing here knows what a value means. Columns are Arrow arrays of text.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc


def left(values: pa.Array, answered: pa.Array) -> pa.Array:
    """True for the rows that hold something and aren't answered: NULL and empty text are NULL to every function."""
    return pc.greater(pc.if_else(answered, 0, pc.binary_length(values)), 0).fill_null(False)


def placed(answered: pa.Array, texts: pa.Array) -> pa.Array:
    """The texts, one for each row that is answered, in their rows; null in the others."""
    return pc.replace_with_mask(pa.nulls(len(answered), pa.string()), answered, texts)
