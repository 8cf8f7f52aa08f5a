"""What training must not see: the names and value lists of the bench's dev and test families, and of `bench.choose`.

They are read by this program and kept as hashes, so that nobody has to look at them and no word is chosen for them. What
the generator would make of them is left out; the check fails where something got through.
"""

from __future__ import annotations

import csv
import hashlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import bench.choose_set
from bench.scenarios import Scenario, scenarios
from engine.syntax import columns_of
from workspace.errors import ExpressionError

if TYPE_CHECKING:
    from learning.schemas import TablePair

KEPT_APART = ("dev", "test")
_ALIKE = 0.8  # share of values that two lists have in common, from which they are one list
_FEWEST = 3  # values of a list; shorter ones (yes and no) are nobody's own


@dataclass(frozen=True)
class Denied:
    """Hashes of (column, field) pairs and of lists of values."""

    pairs: frozenset[str]
    lists: frozenset[frozenset[str]]

    def pair(self, column: str, field: str) -> bool:
        """True for a pair that is kept apart, however it is written."""
        return _pair(column, field) in self.pairs

    def values(self, values: Iterable[str]) -> bool:
        """True for a list of which most is one that is kept apart."""
        ours = frozenset(_hash(plain(v)) for v in values)
        return any(len(ours & other) >= max(_FEWEST, _ALIKE * len(ours | other)) for other in self.lists)

    @property
    def digest(self) -> str:
        """Names this set in what was made with it."""
        told = [*sorted(self.pairs), *sorted("".join(sorted(one)) for one in self.lists)]
        return hashlib.sha256("\n".join(told).encode()).hexdigest()[:16]


@cache
def denied() -> Denied:
    """What the dev and test families of the bench, and the questions of `bench.choose`, hold."""
    found: set[str] = set()
    lists: set[frozenset[str]] = set()
    for scenario in scenarios(*KEPT_APART):
        found |= {_pair(column, field) for column, field in _gold_pairs(scenario)}
        lists |= {frozenset(map(_hash, one)) for one in _value_lists(scenario) if len(one) >= _FEWEST}
    found |= set(_chosen())
    return Denied(frozenset(found), frozenset(lists))


def overlaps(tables: Iterable[TablePair], against: Denied) -> list[str]:
    """What of these tables is kept apart, one line each, named by the made-up side."""
    out = []
    for table in tables:
        for column in table.columns:
            if column.field is not None and against.pair(column.name, column.field):
                out.append(f"{table.old}.{column.name} -> {table.new}.{column.field}")
            if column.distinct == "few" and against.values(column.samples):
                out.append(f"{table.old}.{column.name}: its values")
    return out


def plain(name: str) -> str:
    """A name or value as it is compared: letters and digits in lower case."""
    return re.sub(r"[\W_]+", "", name.casefold())


def _gold_pairs(scenario: Scenario) -> Iterator[tuple[str, str]]:
    for name, entity in scenario.gold().entities.items():
        for field, planned in entity.fields.items():
            if planned.from_ is not None:
                yield planned.from_, field
            if planned.sql is not None:
                try:
                    columns = columns_of(planned.sql, f"{name}.{field}")
                except ExpressionError:
                    columns = re.findall(r"\w+", planned.sql)
                for column in columns:
                    yield column, field


def _value_lists(scenario: Scenario) -> Iterator[set[str]]:
    for entries in scenario.gold().value_maps.values():
        yield {plain(str(value)) for value in entries}
        yield {plain(str(value)) for value in entries.values() if value is not None}
    for labels in re.findall(r"(?:ENUM|IN)\s*\(([^)]*)\)", scenario.file("target.sql").read_text(encoding="utf-8")):
        yield {plain(label) for label in re.findall(r"'([^']*)'", labels)}


def _chosen() -> Iterator[str]:
    path = Path(bench.choose_set.__file__).with_name("choose_questions.csv")
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file, delimiter="|", quoting=csv.QUOTE_NONE):
            if row["gold"] != "-":
                yield _pair(row["column"], row["gold"])


def _pair(column: str, field: str) -> str:
    return _hash(f"{plain(column)}>{plain(field)}")


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]
