"""Schema matchers on the same scenarios: `python -m bench.eval_matchers train dev` prints recall at ground truth.

A matcher is given each pair of tables that the gold plan joins up (which it need not find), 200 rows of the old one and
the columns of the new one, which is empty as a target is before a migration. Of its pairs, as many count as the
gold plan has, each column in one pair alone: the share of those that are right is its recall at ground truth. Never looks at what a matcher thinks of
test families unless they are named.
"""

from __future__ import annotations

import argparse
import json
import sqlite3
import subprocess
import tempfile
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import sqlglot
from rapidfuzz import fuzz, process, utils
from sqlglot import exp

from bench.peers.contender import NotRunError
from bench.peers.environment import installed
from bench.plan_score import base_table, reads
from bench.scenarios import Scenario, scenarios
from bench.scenarios.maker import Maker

VALENTINE = "valentine==1.0.1"
_ROWS = 200
_WORKER = Path(__file__).parent / "peers" / "in_valentine.py"
Pair = tuple[str, str]


@dataclass(frozen=True)
class Task:
    """Two tables of a family: the old one's columns with values, the new one's columns, and the pairs that are right."""

    family: str
    source: Mapping[str, Sequence[str | None]]
    target: Sequence[str]
    right: frozenset[Pair]


def tasks(scenario: Scenario, folder: Path) -> list[Task]:
    """The pairs of tables of a scenario. Fields that draw on several columns, on other tables or on none have no pair."""
    maker = Maker(scenario, folder)
    scenario.records().make(maker, **scenario.options)
    maker.close()
    targets = {
        made.this.this.name: [c.name for c in made.find_all(exp.ColumnDef)]
        for made in sqlglot.parse(scenario.file("target.sql").read_text(encoding="utf-8"), dialect="postgres")
        if isinstance(made, exp.Create) and isinstance(made.this, exp.Schema)
    }
    found = []
    connection = sqlite3.connect(folder / "source.db")
    names = [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    schema = {n: [row[1] for row in connection.execute(f"PRAGMA table_info({_quoted(n)})")] for n in names}
    for entity in scenario.gold().entities.values():
        table = base_table(entity)
        right = set()
        for column, field in entity.fields.items():
            drawn = list(reads(field.expression, entity, schema)) if not field.constant else []
            if len(drawn) == 1 and drawn[0].startswith(f"{table}."):
                right.add((drawn[0].removeprefix(f"{table}."), column))
        rows = connection.execute(f"SELECT * FROM {_quoted(table)} LIMIT {_ROWS}").fetchall()
        source = {
            c: [None if row[n] is None else str(row[n]) for row in rows] for n, c in enumerate(schema.get(table, ()))
        }
        if right and entity.to in targets:
            found.append(Task(scenario.family, source, targets[entity.to], frozenset(right)))
    connection.close()
    return found


def by_names(task: Task) -> list[Pair]:
    """All pairs by how alike rapidfuzz finds their names, best first; a column is in one pair alone, as a person matches."""
    likeness = process.cdist(list(task.source), list(task.target), scorer=fuzz.token_sort_ratio, processor=_words)
    places = sorted(
        ((s, t) for s in range(len(task.source)) for t in range(len(task.target))),
        key=lambda place: (-likeness[place[0]][place[1]], place),
    )
    return _one_to_one([(list(task.source)[s], task.target[t]) for s, t in places])


def recall(task: Task, ranked: Sequence[Pair]) -> float:
    """The share of the right pairs among the first so many of `ranked`."""
    return len(task.right & set(ranked[: len(task.right)])) / len(task.right)


def by_family(of: Sequence[Task], ranked: Sequence[Sequence[Pair]]) -> dict[str, float]:
    """Recall at ground truth by family: the mean over its pairs of tables, weighed by how many pairs they have."""
    hits: dict[str, float] = defaultdict(float)
    out_of: dict[str, int] = defaultdict(int)
    for task, pairs in zip(of, ranked, strict=True):
        hits[task.family] += recall(task, pairs) * len(task.right)
        out_of[task.family] += len(task.right)
    return {family: hits[family] / out_of[family] for family in sorted(hits)}


def by_valentine(of: Sequence[Task]) -> tuple[dict[str, list[list[Pair]]], dict[str, str]]:
    """What valentine's matchers rank, by matcher and task, and why others did not run. NotRunError without valentine."""
    python = installed("valentine", [VALENTINE])
    request = json.dumps([{"source": t.source, "target": list(t.target)} for t in of])
    done = subprocess.run([python, _WORKER], input=request, capture_output=True, text=True, check=False)
    if done.returncode:
        raise NotRunError(f"valentine failed: {(done.stderr.strip().splitlines() or ['no reason given'])[-1][:200]}")
    told = json.loads(done.stdout)
    ranked = {m: [_one_to_one([(s, t) for s, t in pairs]) for pairs in tables] for m, tables in told["ranked"].items()}
    return ranked, told["failed"]


def _words(name: str) -> str:
    return utils.default_process(name.replace("_", " "))


def _one_to_one(pairs: Sequence[Pair]) -> list[Pair]:
    taken: tuple[set[str], set[str]] = (set(), set())
    out = []
    for source, target in pairs:
        if source not in taken[0] and target not in taken[1]:
            taken[0].add(source)
            taken[1].add(target)
            out.append((source, target))
    return out


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def main() -> int:
    """Prints the table, and a line on each matcher that did not run."""
    parser = argparse.ArgumentParser(prog="python -m bench.eval_matchers", description=__doc__.splitlines()[0])
    parser.add_argument("wanted", nargs="+", help="scenarios, families or splits; those without faults are taken")
    parser.add_argument("--no-peers", action="store_true", help="rapidfuzz alone; nothing is installed")
    told = parser.parse_args()
    found: list[Task] = []
    for scenario in scenarios(*told.wanted):
        if not scenario.faults:
            with tempfile.TemporaryDirectory(prefix="packhorse-matchers-") as folder:
                found += tasks(scenario, Path(folder))
    if not found:
        parser.error(f"no scenario without faults in {' '.join(told.wanted)}; `migrate eval --list` names them")
    ranked = {"rapidfuzz (names)": [by_names(t) for t in found]}
    failed: dict[str, str] = {}
    if not told.no_peers:
        try:
            theirs, failed = by_valentine(found)
            ranked |= theirs
        except NotRunError as error:
            failed = {"valentine": str(error)}
    families = sorted({t.family for t in found})
    print(f"| matcher | {' | '.join(families)} | mean |")
    print("|---" * (len(families) + 2) + "|")
    for name, pairs in ranked.items():
        shares = by_family(found, pairs)
        cells = [f"{shares[f]:.0%}" for f in families] + [f"{sum(shares.values()) / len(shares):.0%}"]
        print(f"| {name} | {' | '.join(cells)} |")
    for name, why in failed.items():
        print(f"{name}: not run: {why}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
