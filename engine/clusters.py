"""Pairs of rows that are one, joined to clusters: no cluster holds two rows that must stay apart.

What a third row connects isn't one for that: where a father and a son each look like a row without a birth date, the
row goes to whom it is surer of, and the other stays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import combinations

from engine.likeness import MOST_ALIKE, Pair

Apart = Callable[[Iterable[tuple[int, int]]], set[tuple[int, int]]]
"""Of pairs of rows, the lower number first, those that must stay apart."""


def clusters(pairs: Sequence[Pair], apart: Apart) -> list[tuple[int, ...]]:
    """The clusters, each with its rows in order, by their first rows. `pairs` come surest first, and of two that can't
    both hold the surer one does. More rows than MOST_ALIKE are no cluster."""
    joined = [group for group in _connected(pairs) if len(group) <= MOST_ALIKE]
    forbidden = apart(pair for group in joined for pair in combinations(group, 2))
    torn = {n for pair in forbidden for n in pair}
    found = []
    for group in joined:
        if torn.isdisjoint(group):
            found.append(group)
        else:
            rows = set(group)
            found += _greedy([pair for pair in pairs if pair.left in rows], forbidden)
    return sorted(found)


def _connected(pairs: Sequence[Pair]) -> list[tuple[int, ...]]:
    home: dict[int, int] = {}

    def first(n: int) -> int:
        while home.setdefault(n, n) != n:
            home[n] = home[home[n]]
            n = home[n]
        return n

    for pair in pairs:
        low, high = sorted((first(pair.left), first(pair.right)))
        home[high] = low
    groups: dict[int, list[int]] = {}
    for n in sorted(home):
        groups.setdefault(first(n), []).append(n)
    return [tuple(group) for group in groups.values()]


def _greedy(pairs: Sequence[Pair], forbidden: set[tuple[int, int]]) -> list[tuple[int, ...]]:
    """Joins the surest pairs first, and those not that would bring forbidden rows together."""
    groups: dict[int, set[int]] = {}
    for pair in pairs:
        left, right = groups.setdefault(pair.left, {pair.left}), groups.setdefault(pair.right, {pair.right})
        if left is right or any((min(a, b), max(a, b)) in forbidden for a in left for b in right):
            continue
        left |= right
        for n in right:
            groups[n] = left
    distinct = {id(group): group for group in groups.values()}
    return [tuple(sorted(group)) for group in distinct.values() if len(group) > 1]
