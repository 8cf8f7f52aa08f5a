"""Lists of values: as the legacy system packs several into one string, and as PostgreSQL writes an array.

A list is a code; the tables here say for each code how it is written.
"""

from __future__ import annotations

from .words import INTERESTS, TAGS


def _items(code: int, pool: tuple[str, ...], most: int) -> tuple[str, ...]:
    """Up to `most` different values; both pools have a prime number of them, so steps never meet."""
    size = len(pool)
    count, rest = code % (most + 1), code // (most + 1)
    start, step = rest % size, 1 + rest // size % (size - 1)
    return tuple(pool[(start + n * step) % size] for n in range(count))


def _array(items: tuple[str, ...]) -> str:
    """As PostgreSQL writes text[]."""
    return "{" + ",".join(f'"{i}"' if any(c in i for c in ' ,"{}\\') else i for i in items) + "}"


INTEREST_LISTS: list[tuple[str, ...]] = [_items(code, INTERESTS, 3) for code in range(200)]
TAG_LISTS: list[tuple[str, ...]] = [_items(code, TAGS, 2) for code in range(30)]

PACKINGS = ("caret", "hashes", "semicolon", "control")
"""How lists were packed: SuiteCRM's way, and those of the systems before it."""


def packed(items: tuple[str, ...], packing: str) -> str:
    """A list in one string; the empty list is the empty string."""
    if not items:
        return ""
    if packing == "caret" or (len(items) == 1 and packing in ("hashes", "semicolon")):
        return ",".join(f"^{item}^" for item in items)
    if packing == "hashes":
        return " |##| ".join(items)
    if packing == "semicolon":
        return ";".join(items)
    return "\x01" + "\x01".join(items) + "\x01"


INTEREST_ARRAYS = [_array(items) for items in INTEREST_LISTS]
TAG_ARRAYS = [_array(items) for items in TAG_LISTS]
