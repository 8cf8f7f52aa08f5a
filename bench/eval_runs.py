"""Runs scenarios under settings, one result a line in a file, so that a run that was ended goes on where it stopped."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from agent.job import Deciders
from agent.models.catalogue import EMBEDDED
from bench.ablation import read_ablations
from bench.evaluate import Result, Setting, evaluate
from bench.oracle import OracleModel, Quality
from bench.plan_score import Schema
from bench.renamed import check_renamable, renamed
from bench.scenarios import Scenario
from connectors.dsn import open_source
from sample_data.servers import PostgresServer
from workspace.errors import UsageError


@dataclass(frozen=True)
class Cell:
    """One run of one scenario under one setting; `repeat` is its seed, from 1."""

    scenario: Scenario
    setting: Setting
    repeat: int

    @property
    def id(self) -> tuple[str, str, int]:
        """What makes a cell itself in a file of results."""
        return self.scenario.name, self.setting.name, self.repeat


def cells(scenarios: Sequence[Scenario], settings: Sequence[Setting], repeats: int) -> list[Cell]:
    """All cells, a scenario's side by side."""
    return [Cell(s, setting, n) for s in scenarios for setting in settings for n in range(1, repeats + 1)]


_APART = 1000
"""How far the seed of a second job is from the first one's."""


def setting(
    model: str | None, oracle: str | None, autonomy: float, ablate: str | None = None, second: bool = False
) -> Setting:
    """The setting that the options of a command name. UsageError where they contradict each other."""
    chosen = _decider(model, oracle, autonomy)
    parts = read_ablations(ablate, model, oracle)
    name = " without ".join([chosen.name, *sorted(parts)]) + (", second job" if second else "")
    return replace(chosen, name=name, ablate=parts, second=second)


def _decider(model: str | None, oracle: str | None, autonomy: float) -> Setting:
    if oracle is not None:
        if model is not None:
            raise UsageError("--oracle takes the place of a model", advice="give --oracle or --model")
        quality = Quality.parse(oracle)
        return Setting(f"oracle {quality.right:g} {quality.errors}", "none", autonomy, quality)
    if model is not None and model.strip().casefold() == "none":
        return Setting("rules", "none", autonomy)
    # whatever was pulled: figures of two machines are of the same model
    return Setting("embedded model" if model is None else model, model or EMBEDDED, autonomy)


def run_cells(
    wanted: Sequence[Cell],
    results: Path | None,
    watch: Callable[[int, int, Cell], None] = lambda done, total, cell: None,
) -> Iterator[Result]:
    """The results of all cells in order; those that the file has are taken from there, new ones are added to it.

    UsageError for a file that holds something else, or for a scenario without a second job."""
    for cell in wanted:
        if cell.setting.second:
            check_renamable(cell.scenario)
    known = dict(read_results(results)) if results is not None and results.exists() else {}
    server: PostgresServer | None = None
    try:
        for number, cell in enumerate(wanted):
            watch(number, len(wanted), cell)
            if cell.id in known:
                yield known[cell.id]
                continue
            server = server or PostgresServer()
            result = _run(cell, server)
            if results is not None:
                line = json.dumps({"repeat": cell.repeat, **result.to_dict()}, ensure_ascii=False)
                with results.open("a", encoding="utf-8") as file:
                    file.write(line + "\n")
            yield result
    finally:
        if server is not None:
            server.remove()


def read_results(path: Path) -> Iterator[tuple[tuple[str, str, int], Result]]:
    """What a file of results holds, by cell. A line that a kill cut off is left out; UsageError for other lines."""
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    for number, line in enumerate(lines, 1):
        try:
            told: Mapping[str, Any] = json.loads(line)
            rest = {k: v for k, v in told.items() if k != "repeat"}
            rest["rungs"] = {k: (v[0], v[1]) for k, v in rest["rungs"].items()}
            judged = tuple((k, r, s, ok) for k, r, s, ok in rest.get("judged", ()))
            result = Result(**{**rest, "judged": judged, "notes": tuple(rest["notes"])})
        except (ValueError, TypeError, KeyError):
            if number == len(lines) and not line.endswith("\n"):
                return
            raise UsageError(
                "not a result of `migrate eval`", where=f"{path}:{number}", advice="name another file with --output"
            ) from None
        yield (result.scenario, result.setting, int(told["repeat"])), result


def _run(cell: Cell, server: PostgresServer) -> Result:
    folder = Path(tempfile.mkdtemp(prefix="packhorse-eval-"))
    try:
        if cell.setting.second:
            return _second(cell, server, folder)
        return evaluate(cell.scenario, cell.setting, server, folder, _deciders(cell, folder), cell.repeat)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _second(cell: Cell, server: PostgresServer, folder: Path) -> Result:
    """A job, and what came of the one after it: over the same system under other names, with other rows, and with what
    the first had learnt."""
    jobs, lessons = (folder / "first", folder / "second"), folder / "experience"
    for each in jobs:
        each.mkdir()
    first = evaluate(cell.scenario, cell.setting, server, jobs[0], _deciders(cell, jobs[0]), cell.repeat, lessons)
    again = replace(cell, scenario=renamed(cell.scenario, _schema(jobs[0]), cell.repeat), repeat=cell.repeat + _APART)
    result = evaluate(again.scenario, again.setting, server, jobs[1], _deciders(again, jobs[1]), again.repeat, lessons)
    return replace(result, calls_before=first.calls, asked_before=first.asked)


def _deciders(cell: Cell, folder: Path) -> Deciders | None:
    quality = cell.setting.quality
    if quality is None:
        return None

    def opened() -> tuple[OracleModel, None]:
        return OracleModel(cell.scenario, _schema(folder), quality, cell.repeat), None

    return opened


def _schema(folder: Path) -> Schema:
    """The columns of the old system that a scenario made in a folder, by table."""
    source = open_source(f"sqlite:///{folder / 'source.db'}")
    try:
        return {name: [c.name for c in table.columns] for name, table in source.catalogue().tables.items()}
    finally:
        source.close()
