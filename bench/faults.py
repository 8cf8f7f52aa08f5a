"""Strikes a load, and its taking back, with every kind of fault at every named place, goes on as a person would, and
compares the end with one that nothing disturbed: `python -m bench.faults`.

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
from pathlib import Path

from bench.fault_jobs import SampleJob
from bench.fault_kinds import CHILDREN, KINDS, Kind, dsn_of, run_child, struck_child, target_for
from engine.faults import POINTS, UNDO_POINTS
from sample_data import CLOUD_SQL, write_sample
from sample_data.servers import Database, PostgresServer

_UNMET = "-"


@dataclass(frozen=True)
class Undisturbed:
    """What nothing disturbed: a target and a folder to copy, what they hold, how often each place is passed."""

    database: Database
    job: SampleJob
    held: dict[str, str]
    passed: dict[str, int]


@dataclass
class Matrix:
    """What a run works with, and the cells by (kind, place, processes)."""

    arguments: argparse.Namespace
    folder: Path
    server: PostgresServer
    chance: random.Random
    cells: dict[tuple[str, str, int], str] = field(default_factory=dict)
    why: list[str] = field(default_factory=list)


def main() -> int:
    """Runs the whole; 0 where no cell failed."""
    arguments = _arguments()
    CHILDREN.set_forkserver_preload(["bench.fault_jobs", "bench.fault_kinds"])
    folder = Path(tempfile.mkdtemp(prefix="packhorse-faults-"))
    server = PostgresServer()
    matrix = Matrix(arguments, folder, server, random.Random(arguments.seed))
    started = time.monotonic()
    try:
        write_sample("sqlite", folder / "crm.db", arguments.contacts, arguments.seed)
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
    parser.add_argument("--places", nargs="*", default=[*POINTS, *UNDO_POINTS], metavar="PLACE")
    parser.add_argument("--processes", nargs="*", type=int, default=[0, 2], help="that transform, one matrix each")
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


def _strike_all(matrix: Matrix, processes: int) -> None:
    loaded = _loaded(matrix, processes)
    undone = _undone(matrix, loaded) if set(UNDO_POINTS) & set(matrix.arguments.places) else None
    for place in matrix.arguments.places:
        of_undo = place in UNDO_POINTS
        base = undone if of_undo else loaded
        assert base is not None
        for kind in KINDS:
            if kind.name not in matrix.arguments.kinds or (kind.needs == "workers" and (of_undo or not processes)):
                continue
            nth = matrix.chance.randint(1, max(1, base.passed.get(place, 1)))
            try:
                cell = _cell(matrix, kind, place, nth, base, loaded if of_undo else None)
            except Exception as error:
                cell = "FAILED"
                matrix.why.append(f"{kind.name}, {place}:{nth}, {processes} processes: {str(error).strip()[-1500:]}")
            matrix.cells[kind.name, place, processes] = cell
            print(f"{kind.name}, {place}:{nth}, {processes} processes: {cell}", file=sys.stderr)


def _loaded(matrix: Matrix, processes: int) -> Undisturbed:
    database = target_for(matrix.server, CLOUD_SQL.read_text(encoding="utf-8"))
    folder = matrix.folder / f"loaded-{processes}"
    folder.mkdir()
    source = f"sqlite:///{matrix.folder / 'crm.db'}"
    job = SampleJob(str(folder), source, dsn_of(database), matrix.arguments.batch_rows, processes)
    ended = run_child(job.loading())
    assert ended.code == 0, ended.said
    return Undisturbed(database, job, job.held(folder / "dump"), ended.passed)


def _undone(matrix: Matrix, loaded: Undisturbed) -> Undisturbed:
    database, job = _copy(matrix, loaded, matrix.folder / f"undone-{loaded.job.processes}")
    ended = run_child(job.undoing())
    assert ended.code == 0, ended.said
    return Undisturbed(database, job, job.held(Path(job.folder) / "dump"), ended.passed)


def _copy(matrix: Matrix, loaded: Undisturbed, folder: Path) -> tuple[Database, SampleJob]:
    """The loaded job once more, in a folder and a database of its own."""
    shutil.copytree(loaded.job.folder, folder, dirs_exist_ok=True)
    database = Database(matrix.server, matrix.server.new_name())
    matrix.server.run(f"CREATE DATABASE {database.name} TEMPLATE {loaded.database.name}")
    return database, replace(loaded.job, folder=str(folder), target=dsn_of(database))


def _cell(matrix: Matrix, kind: Kind, place: str, nth: int, base: Undisturbed, loaded: Undisturbed | None) -> str:
    """Strikes one job and sees it through; AssertionError where it doesn't end as the undisturbed one did."""
    with _place_for(matrix, kind, base) as folder:
        if loaded is not None:
            database, job = _copy(matrix, loaded, folder)
        else:
            database = target_for(matrix.server, CLOUD_SQL.read_text(encoding="utf-8"))
            job = replace(base.job, folder=str(folder), target=dsn_of(database))
        work = job.undoing() if loaded is not None else job.loading()
        disk = folder if kind.needs == "disk" else None
        try:
            ended = struck_child(work, kind, place, nth, matrix.server, database, disk)
            assert ended.struck, "the place was not passed"
            assert ended.code in (0, 2, -9), ended.said
            assert ended.code == 0 or not kind.heals, f"it did not get through by itself: {ended.said}"
            retried = job.retries()
            if ended.code:
                again = run_child(work)
                assert again.code == 0, f"resumed: {again.said}"
            held = job.held(matrix.folder / "dump")
            different = sorted(name for name in base.held | held if base.held.get(name) != held.get(name))
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
        cells = [{"kind": k, "place": p, "processes": n, "cell": c} for (k, p, n), c in matrix.cells.items()]
        print(json.dumps({"cells": cells, "failed": matrix.why, "seconds": round(seconds)}, indent=2))
        return
    kinds = [kind.name for kind in KINDS if kind.name in matrix.arguments.kinds]
    for processes in matrix.arguments.processes:
        print(f"\n{processes} processes that transform\n\n| | {' | '.join(kinds)} |\n|---|{'---|' * len(kinds)}")
        for place in matrix.arguments.places:
            print(f"| {place} | {' | '.join(matrix.cells.get((k, place, processes), '') for k in kinds)} |")
    print(
        f"\n{sum(counts.values())} cells in {seconds:.0f} s: {', '.join(f'{n} {c}' for c, n in counts.most_common())}"
    )
    for why in matrix.why:
        print(f"\n{why}")


if __name__ == "__main__":
    sys.exit(main())
