"""What jobs before taught of a table's columns: which went where, and which were not what they looked like.

A lesson is found by its signature, and where that was never met by those most like it; what it says counts the less, the
less alike the names are. Nothing is decided here: it is evidence beside that of names and values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agent.alike import alike
from connectors.protocols import Column, Table
from workspace.experience_store import ExperienceStore, Lesson
from workspace.signature import match_signature, normalise

NOT = "not "
"""How the remedy of a lesson begins that says where a column's values did not go."""
MARK = "a mark of rows that stay behind"
"""The remedy of a lesson on a column that `where` asks for."""
_NEAR = 0.75  # names less alike than this tell nothing of each other
_APART = 0.08  # a name that is as much like another column's teaches nothing of either


@dataclass(frozen=True)
class Met:
    """What is remembered of a source column for one target column: `share` of certainty that it is the right one
    (or, with `against`, that it is not), and in words on what that rests."""

    share: float
    told: str
    against: bool = False


class Remembered:
    """The lessons on one source table. Without a store nothing is remembered."""

    def __init__(self, store: ExperienceStore | None, main: str) -> None:
        self._store, self._main = store, main
        self._known: dict[str, list[tuple[Lesson, float]]] = {}

    def of(self, table: Table, column: Column, names: Sequence[str]) -> dict[str, Met]:
        """By source column, out of `names`, what was met before of it and this target column."""
        return self._met(match_signature(table.name, column.name), names)

    def marks(self, names: Sequence[str]) -> dict[str, Met]:
        """By source column, out of `names`, what was met before of it as a mark of rows that stay behind."""
        return self._met(MARK, names)

    def _met(self, wanted: str, names: Sequence[str]) -> dict[str, Met]:
        if self._store is None:
            return {}
        found: dict[str, tuple[float, Met]] = {}
        for name in names:
            for lesson, near in self._lessons(name):
                if lesson.remedy in (wanted, NOT + wanted):
                    met = Met(lesson.likely * near, _told(lesson, near), lesson.remedy != wanted)
                    if name not in found or met.share > found[name][1].share:
                        found[name] = near, met
        nearest = sorted((near for near, met in found.values() if not met.against), reverse=True)
        blurred = len(nearest) > 1 and nearest[1] > nearest[0] - _APART
        return {
            name: met
            for name, (near, met) in found.items()
            if met.against or near == 1 or (near == nearest[0] and not blurred)
        }

    def _lessons(self, name: str) -> list[tuple[Lesson, float]]:
        if name not in self._known:
            assert self._store is not None
            signature = normalise(match_signature(self._main, name))
            exact = [(lesson, 1.0) for lesson in self._store.recall("match", signature)]
            near = [(lesson, _near(signature, lesson.signature)) for lesson in self._store.near("match", signature)]
            self._known[name] = exact or [(lesson, share) for lesson, share in near if share >= _NEAR]
        return self._known[name]


def _near(ours: str, theirs: str) -> float:
    """How alike two signatures are: their columns, and a little their tables."""
    (table, _, column), (other, _, name) = ours.partition("."), theirs.partition(".")
    hollow = frozenset((*table.split("_"), *other.split("_")))
    return alike(column, name, hollow) * (0.8 + 0.2 * alike(table, other))


def _told(lesson: Lesson, near: float) -> str:
    met = "met before" if near == 1 else f"{lesson.signature} was met before"
    return f"{met} and held {lesson.held} of {lesson.tried} times"
