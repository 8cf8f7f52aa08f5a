"""Strikes each command that writes to a target with every kind of fault at every named place it passes, goes on as a
person would, and compares the end with one that nothing disturbed: `python -m bench.faults`.

Fails at once where the engine has a named place that no command is struck at and no reason is given for.

Prints a table of the cells: `itself` where the process that met the fault got through (its log tells of retries),
`resumed` where the command had to be given again, `-` where nothing met the fault, FAILED with the reason below.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from bench.fault_ends import held
from bench.fault_jobs import COMMANDS, ELSEWHERE, BenchJob, Command, unreached
from bench.fault_kinds import CHILDREN, KINDS, Kind, dsn_of, run_child, struck_child, target_for
from sample_data import write_sample
from sample_data.duplicates import write_duplicates
from sample_data.servers import Database, PostgresServer

_UNMET = "-"


@dataclass(frozen=True)
class Undisturbed:
    """What nothing disturbed: a target and a folder to copy, what they hold, how often each place is passed."""

    database: Database
    job: BenchJob
    held: dict[str, str]
    passed: dict[str, int]


@dataclass
class Matrix:
    """What a run works with, and the cells by (command, kind, place, processes)."""

    arguments: argparse.Namespace
    folder: Path
    server: PostgresServer
    chance: random.Random
    cells: dict[tuple[str, str, str, int], str] = field(default_factory=dict)
    why: list[str] = field(default_factory=list)


def main() -> int:
    """Runs the whole; 0 where no cell failed and every place was passed."""
    arguments = _arguments()
    if left := unreached():
        print(f"no command of bench.fault_jobs is struck at: {', '.join(left)}", file=sys.stderr)
        return 1
    CHILDREN.set_forkserver_preload(["bench.fault_jobs", "bench.fault_kinds"])
    folder = Path(tempfile.mkdtemp(prefix="packhorse-faults-"))
    server = PostgresServer()
    matrix = Matrix(arguments, folder, server, random.Random(arguments.seed))
    started = time.monotonic()
    try:
        write_sample("sqlite", folder / "crm.db", arguments.contacts, arguments.seed)
        write_duplicates(folder / "duplicates.db", arguments.contacts, arguments.seed)
        for processes in arguments.processes:
            _strike_all(matrix, processes)
    finally:
        server.remove()
        shutil.rmtree(folder, ignore_errors=True)
    _show(matrix, time.monotonic() - started)
    return 1 if matrix.why else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.faults")
    parser.add_argument("--contacts", type=int, default=200, help="6,000 give a larger job, of some 30,000 rows")
    parser.add_argument("--batch-rows", type=int, default=100)
    parser.add_argument("--seed", type=int, default=7, help="chooses which time a place is passed is struck")
    parser.add_argument("--kinds", nargs="*", default=[k.name for k in KINDS], metavar="KIND")
    parser.add_argument("--commands", nargs="*", default=[c.name for c in COMMANDS], metavar="COMMAND")
    parser.add_argument("--places", nargs="*", default=[], metavar="PLACE", help="these alone")
    parser.add_argument("--processes", nargs="*", type=int, default=[0, 2], help="that transform, one matrix each")
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


def _strike_all(matrix: Matrix, processes: int) -> None:
    """Every command where nothing transforms beside it; with processes, those alone that they have a part in."""
    for sample in ("crm", "duplicates"):
        shutil.copy(matrix.folder / f"{sample}.db", matrix.folder / f"{sample}-{processes}.db")
    ends: dict[str, Undisturbed] = {}
    for command in COMMANDS:
        places = _places(matrix, command)
        if not places or not (command.spreads or processes == min(matrix.arguments.processes)):
            continue
        if command.after and command.after not in ends:
            before = next(each for each in COMMANDS if each.name == command.after)
            ends[before.name] = _undisturbed(matrix, before, processes, None)
        if command.change is not None:
            command.change(matrix.folder / f"{command.sample}-{processes}.db")
        before_it = ends.get(command.after)
        base = ends[command.name] = _undisturbed(matrix, command, processes, before_it)
        for place in places:
            if place not in base.passed:
                matrix.why.append(f"{command.name} never passes {place!r}")
                print(matrix.why[-1], file=sys.stderr)
                continue
            _strike(matrix, command, place, base, before_it)


def _places(matrix: Matrix, command: Command) -> list[str]:
    arguments = matrix.arguments
    if command.name not in arguments.commands:
        return []
    return [place for place in command.points if not arguments.places or place in arguments.places]


def _strike(matrix: Matrix, command: Command, place: str, base: Undisturbed, before: Undisturbed | None) -> None:
    processes = base.job.processes
    for kind in KINDS:
        beside = command.spreads and processes
        if kind.name not in matrix.arguments.kinds or (kind.needs == "workers" and not beside):
            continue
        nth = matrix.chance.randint(1, base.passed[place])
        here = f"{command.name}: {kind.name}, {place}:{nth}, {processes} processes"
        try:
            cell = _cell(matrix, command, kind, (place, nth), base, before)
        except Exception as error:
            cell = "FAILED"
            matrix.why.append(f"{here}: {str(error).strip()[-1500:]}")
            print(matrix.why[-1], file=sys.stderr)
        matrix.cells[command.name, kind.name, place, processes] = cell
        print(f"{here}: {cell}", file=sys.stderr)


def _undisturbed(matrix: Matrix, command: Command, processes: int, before: Undisturbed | None) -> Undisturbed:
    folder = matrix.folder / f"{command.name}-{processes}"
    folder.mkdir()
    database, job = _ready(matrix, command, processes, before, folder)
    ended = run_child(partial(command.work, job))
    assert ended.code == 0, ended.said
    return Undisturbed(database, job, held(job, command.plan(), folder / "dump"), ended.passed)


def _ready(
    matrix: Matrix, command: Command, processes: int, before: Undisturbed | None, folder: Path
) -> tuple[Database, BenchJob]:
    """The job as the command finds it, in the folder and in a database of its own."""
    if before is None:
        database = target_for(matrix.server, command.schema)
        path = matrix.folder / f"{command.sample}-{processes}.db"
        if command.held is not None:
            database.run(command.held(path))
        return database, BenchJob(
            str(folder), f"sqlite:///{path}", dsn_of(database), matrix.arguments.batch_rows, processes
        )
    shutil.copytree(before.job.folder, folder, dirs_exist_ok=True)
    database = Database(matrix.server, matrix.server.new_name())
    matrix.server.run(f"CREATE DATABASE {database.name} TEMPLATE {before.database.name}")
    return database, replace(before.job, folder=str(folder), target=dsn_of(database))


def _cell(
    matrix: Matrix, command: Command, kind: Kind, at: tuple[str, int], base: Undisturbed, before: Undisturbed | None
) -> str:
    """Strikes one job and sees it through; AssertionError where it doesn't end as the undisturbed one did."""
    with _place_for(matrix, kind, base) as folder:
        database, job = _ready(matrix, command, base.job.processes, before, folder)
        work = partial(command.work, job)
        disk = folder if kind.needs == "disk" else None
        try:
            tried = job.retries() if before is not None else 0
            ended = struck_child(work, kind, *at, matrix.server, database, disk)
            assert ended.struck, "the place was not passed"
            assert ended.code in (0, 2, -9), ended.said
            assert ended.code == 0 or not kind.heals, f"it did not get through by itself: {ended.said}"
            retried = job.retries() > tried
            if ended.code:
                again = run_child(work)
                assert again.code == 0, f"resumed: {again.said}"
            found = held(job, command.plan(), matrix.folder / "dump")
            different = sorted(name for name in base.held | found if base.held.get(name) != found.get(name))
            assert not different, f"differs: {different[:5]}"
        finally:
            matrix.server.drop(database)
    return "resumed" if ended.code else "itself" if retried else _UNMET


@contextmanager
def _place_for(matrix: Matrix, kind: Kind, base: Undisturbed) -> Iterator[Path]:
    """An empty folder: on a small disk of its own where the kind needs one. Needs the right to mount it."""
    folder = Path(tempfile.mkdtemp(dir=matrix.folder))
    if kind.needs == "disk":
        size = 3 * sum(f.stat().st_size for f in Path(base.job.folder).rglob("*") if f.is_file()) + 2**23
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)], check=True)
    try:
        yield folder
    finally:
        if kind.needs == "disk":
            subprocess.run(["umount", "-l", str(folder)], check=True)
        shutil.rmtree(folder, ignore_errors=True)


def _show(matrix: Matrix, seconds: float) -> None:
    counts = Counter(matrix.cells.values())
    if matrix.arguments.json:
        cells = [
            {"command": c, "kind": k, "place": p, "processes": n, "cell": cell}
            for (c, k, p, n), cell in matrix.cells.items()
        ]
        print(json.dumps({"cells": cells, "failed": matrix.why, "seconds": round(seconds)}, indent=2))
        return
    kinds = [kind.name for kind in KINDS if kind.name in matrix.arguments.kinds]
    for processes in matrix.arguments.processes:
        print(f"\n{processes} processes that transform\n\n| | | {' | '.join(kinds)} |\n|---|---|{'---|' * len(kinds)}")
        rows = dict.fromkeys((command, place) for command, _, place, n in matrix.cells if n == processes)
        for command, place in rows:
            line = (matrix.cells.get((command, kind, place, processes), "") for kind in kinds)
            print(f"| {command} | {place} | {' | '.join(line)} |")
    print(
        f"\n{sum(counts.values())} cells in {seconds:.0f} s: {', '.join(f'{n} {c}' for c, n in counts.most_common())}"
    )
    for place, reason in ELSEWHERE.items():
        print(f"not struck here: {place} ({reason})")
    for why in matrix.why:
        print(f"\n{why}")


if __name__ == "__main__":
    sys.exit(main())
