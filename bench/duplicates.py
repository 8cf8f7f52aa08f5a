"""How well duplicates were merged, pair by pair, against what is known of the sample.

    python -m bench.duplicates --contacts 20000 --seed 7

writes sample_data's duplicates, loads them with its plan into a server of its own, and prints precision, recall and F1.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from connectors.dsn import Dsn, open_source, open_target
from engine.check import check_plan
from engine.context import Context
from engine.load import load
from engine.plan import load_plan
from sample_data.duplicates import PLAN, TARGET_SQL, write_duplicates
from sample_data.servers import PostgresServer
from workspace.log import Workspace
from workspace.paths import JobPaths


@dataclass(frozen=True)
class PairScore:
    """Pairs of rows: found and `right`, `found`, and `there` to be found."""

    right: int
    found: int
    there: int

    @property
    def precision(self) -> float:
        """The share of what was found that is right; 1 where nothing was found."""
        return self.right / self.found if self.found else 1.0

    @property
    def recall(self) -> float:
        """The share of what is there that was found; 1 where nothing is there."""
        return self.right / self.there if self.there else 1.0

    @property
    def f1(self) -> float:
        """The harmonic mean of the two."""
        both = self.precision + self.recall
        return 2 * self.precision * self.recall / both if both else 0.0


def score_pairs(homes: Mapping[str, str], who: Mapping[str, int]) -> PairScore:
    """How well rows were joined: `homes` gives each source key's target row, `who` what the row is."""
    there = sum(n * (n - 1) // 2 for n in Counter(who.values()).values())
    found = sum(n * (n - 1) // 2 for n in Counter(homes.values()).values())
    right = sum(n * (n - 1) // 2 for n in Counter((home, who[key]) for key, home in homes.items()).values())
    return PairScore(right, found, there)


def main() -> int:
    """Writes, loads and scores what the arguments ask for; prints a line an entity."""
    parser = argparse.ArgumentParser(prog="python -m bench.duplicates", description="Scores merged duplicates.")
    parser.add_argument("--contacts", type=int, default=2000, help="how many rows of people (default 2000)")
    parser.add_argument("--seed", type=int, default=7, help="another seed, other records (default 7)")
    options = parser.parse_args()
    server = PostgresServer()
    try:
        database = server.new_database()
        database.run(TARGET_SQL)
        with tempfile.TemporaryDirectory() as folder:
            _run(Path(folder), options.contacts, options.seed, database.socket_dsn)
    finally:
        server.remove()
    return 0


def _run(folder: Path, contacts: int, seed: int, dsn: str) -> None:
    truth = write_duplicates(folder / "legacy.db", contacts, seed)
    source, target = open_source(f"sqlite:///{folder}/legacy.db"), open_target(Dsn.parse(dsn))
    paths = JobPaths(folder, "duplicates").create()
    with Workspace.open(paths, write=True) as workspace:
        checked = check_plan(load_plan(PLAN), source, target.catalogue())
        started = time.perf_counter()
        outcome = load(Context(paths, workspace, source, target, checked, "legacy"))
        seconds = time.perf_counter() - started
    print(f"{outcome.read:,} rows read, {outcome.merged:,} merged, {seconds:.1f} s")
    for entity, who in (("people", truth.people), ("companies", truth.companies)):
        target.know_entity("legacy", entity, entity)
        homes = {row["old_id"]: row["new_id"] for batch in target.crosswalk_rows(entity) for row in batch.to_pylist()}
        score = score_pairs(homes, who)
        print(
            f"{entity}: precision {score.precision:.4f}, recall {score.recall:.4f}, F1 {score.f1:.4f} "
            f"({score.right} of {score.found} pairs found are right, {score.there} are there)"
        )
    target.close()
    source.close()


if __name__ == "__main__":
    sys.exit(main())
