"""How alike two names are as they are written, whatever they mean: for a column that was met under nearly this name."""

from __future__ import annotations

import re
from functools import lru_cache

from rapidfuzz import fuzz

from agent.lexicon import says_something

_VOWELS = re.compile(r"(?<=\w)[aeiouyäöü]")
_SHORTEST = 3  # letters; so few are alike by chance, unless they are a word of their own


@lru_cache(maxsize=1 << 16)
def alike(a: str, b: str, hollow: frozenset[str] = frozenset()) -> float:
    """0 to 1 for two names as `column_pattern` writes them: 1 for the same, less for the same words in another order, for
    one that holds the other, for one that is the other without its vowels, and for letters in common. A word that only
    one of them has, and that says something, makes it another name; `hollow` words say nothing here."""
    if a == b:
        return 1.0
    shorter, longer = sorted((a, b), key=len)
    if len(shorter) < _SHORTEST:
        return 0.0
    if _bones(a) == _bones(b):
        return 0.96 if len(shorter) > _SHORTEST else 0.0
    more = set(a.split("_")) ^ set(b.split("_"))
    if any(len(word) > 1 and word not in hollow and says_something(word) for word in more):
        return 0.0
    if re.search(rf"(^|_){re.escape(shorter)}($|_)", longer):
        return 0.96
    if len(shorter) == _SHORTEST:
        return 0.0
    ordered = fuzz.token_sort_ratio(a.replace("_", " "), b.replace("_", " ")) / 100
    return max(fuzz.ratio(a, b) / 100, 0.95 * ordered)


def _bones(name: str) -> str:
    return _VOWELS.sub("", name)
