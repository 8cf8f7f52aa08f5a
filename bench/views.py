"""What a model would see of each question of the bench: whether the right candidate stands in the view, and how many tokens
the view is.

    python -m bench.views train dev

Drafts each scenario by rules alone, and renders the view of each matter that has candidates, whether a model would be asked
or not. The gold plan says which candidate is right.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from unittest.mock import patch

from agent.job import JobRequest, draft_job
from agent.ladder import Ladder
from agent.matter import Decision, Matter
from agent.models.counting import Count, estimated
from agent.models.protocol import NONE_OF_THESE, Price, Prompt
from agent.view import QUESTION_TOKENS, question_view, tokens_of
from bench.oracle import OracleModel, Quality
from bench.scenarios import Scenario, scenarios
from bench.scenarios.maker import Maker
from connectors.dsn import open_source
from sample_data.servers import PostgresServer


@dataclass
class Seen:
    """Of `matters` with candidates so many have the right one among them (`known`), and so many of those show it
    (`present`); `largest` is the view of most tokens."""

    matters: int = 0
    known: int = 0
    present: int = 0
    largest: int = 0
    hidden: list[str] = field(default_factory=list)

    def add(self, oracle: OracleModel, matter: Matter, count: Count) -> None:
        """Renders the view of one matter."""
        options = sorted(matter.options, key=lambda o: -o.weight)
        prompt, labels = question_view(matter, options, count)
        whole = Prompt(prompt.system, matter.text, matter.data, matter.match)
        right = oracle.right(whole, [*(o.label for o in options), NONE_OF_THESE])
        self.matters += 1
        self.largest = max(self.largest, tokens_of(prompt, labels, count))
        if right < len(options):
            self.known += 1
            if right < len(labels) - 1:
                self.present += 1
            else:
                self.hidden.append(f"{matter.id}: {options[right].label}")


def matters_of(scenario: Scenario, server: PostgresServer, folder: Path) -> tuple[list[Matter], OracleModel]:
    """The matters that a draft of the scenario by rules alone puts to the ladder, and who knows their answers."""
    maker = Maker(scenario, folder, 1)
    scenario.records().make(maker, **scenario.options)
    maker.close()
    database = server.new_database()
    found: list[Matter] = []

    class Watching(Ladder):
        def decide(self, matter: Matter, spent: Price | None = None) -> Decision:
            found.append(matter)
            return super().decide(matter, spent)

        def says(self, matter: Matter) -> Decision:
            found.append(matter)
            return super().says(matter)

    try:
        database.run(scenario.file("target.sql").read_text(encoding="utf-8"))
        source = open_source(maker.dsn)
        schema = {name: [c.name for c in table.columns] for name, table in source.catalogue().tables.items()}
        source.close()
        request = JobRequest(maker.dsn, database.socket_dsn, job="views", model="none", base=folder, zone=scenario.zone)
        with patch("agent.draft.Ladder", Watching):
            draft_job(request)
    finally:
        server.drop(database)
    return [m for m in found if m.options and not m.free], OracleModel(scenario, schema, Quality(1.0))


def seen(scenario: Scenario, server: PostgresServer, count: Count = estimated) -> Seen:
    """All views of one scenario."""
    with tempfile.TemporaryDirectory(prefix="packhorse-views-") as folder:
        matters, oracle = matters_of(scenario, server, Path(folder))
    found = Seen()
    for matter in matters:
        found.add(oracle, matter, count)
    return found


def main(splits: Sequence[str]) -> Iterator[str]:
    """One line a scenario, and one for each split."""
    server = PostgresServer()
    try:
        for split in splits:
            total = Seen()
            for scenario in scenarios(split):
                each = seen(scenario, server)
                yield f"{scenario.name:<28} {each.present} of {each.known} in view, {each.matters} views, at most {each.largest} tokens"
                yield from (f"    not in view: {hidden}" for hidden in each.hidden)
                total.matters, total.known = total.matters + each.matters, total.known + each.known
                total.present, total.largest = total.present + each.present, max(total.largest, each.largest)
            yield f"{split:<28} {total.present} of {total.known} in view, {total.matters} views, at most {total.largest} of {QUESTION_TOKENS} tokens"
    finally:
        server.remove()


if __name__ == "__main__":
    for line in main(sys.argv[1:] or ["train", "dev"]):
        print(line, flush=True)
