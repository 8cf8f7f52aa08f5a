"""Kills one load with SIGKILL again and again, resumes it each time, and compares the end with a load that
nobody disturbed: `python -m bench.kills --kills 50`.

The instants are random (seeded). One in three waits until a commit is at hand and strikes some hundred
microseconds around it, since that window is too small to be met by chance; the others fall anywhere.
A kill counts as "between COMMIT and checkpoint" where the next start found a batch in the target's ledger
that the log didn't tell of.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from bench.compare import dump_target
from connectors.dsn import Dsn, open_source, open_target
from engine.check import CheckedPlan, check_plan
from engine.context import Context
from engine.load import load
from engine.plan import load_plan
from engine.verify import verify
from sample_data import CLOUD_SQL, GOLD_PLAN, write_sample
from sample_data.servers import PostgresServer
from workspace.events import BatchCommitted
from workspace.lock import JobLock
from workspace.log import Workspace
from workspace.paths import JobPaths


def main() -> int:
    """Runs the whole; 0 where every dump is the same and verify agrees."""
    arguments = _arguments()
    if arguments.child:
        place, source, target = arguments.child
        _load_once(place, source, target, arguments.batch_rows)
        return 0
    folder = Path(tempfile.mkdtemp(prefix="packhorse-kills-"))
    print(f"working in {folder}", file=sys.stderr)
    server = PostgresServer()
    try:
        return _kill(arguments, folder, server)
    finally:
        server.remove()
        if not arguments.keep:
            shutil.rmtree(folder, ignore_errors=True)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.kills")
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--contacts", type=int, default=37_000, help="37,000 give a load of 200,000 rows")
    parser.add_argument("--batch-rows", type=int, default=2_000)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--keep", action="store_true", help="keep the folder")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--child", nargs=3, metavar=("FOLDER", "SOURCE", "TARGET"), help=argparse.SUPPRESS)
    return parser.parse_args()


def _kill(arguments: argparse.Namespace, folder: Path, server: PostgresServer) -> int:
    source = f"sqlite:///{folder / 'crm.db'}"
    write_sample("sqlite", folder / "crm.db", arguments.contacts, arguments.seed)
    undisturbed, killed = (_database(server) for _ in range(2))
    started = time.monotonic()
    if _child(folder / "a", source, undisturbed, arguments.batch_rows).wait() != 0:
        print("the undisturbed load failed", file=sys.stderr)
        return 1
    whole = time.monotonic() - started
    chance = random.Random(arguments.seed)
    # so that the load is about to end when the last kill comes, not before
    span = whole / arguments.kills
    phases: Counter[str] = Counter()
    kills = recovered = 0
    phase_file = folder / "phase"
    while kills < arguments.kills:
        phase_file.write_text("starting")
        child = _child(folder / "b", source, killed, arguments.batch_rows, phase_file)
        aimed = kills % 3 == 2
        # one kill in four may fall into the start, where there is little to lose
        if kills % 4:
            _await(child, phase_file, lambda phase: phase != "starting")
        time.sleep(chance.uniform(0, span))
        if aimed:
            _await(child, phase_file, lambda phase: phase == "before commit")
            _pause(chance.uniform(0, 0.004))
        if child.poll() is not None:
            if child.returncode:
                print("a resume failed", file=sys.stderr)
                return 1
            print(f"the load ended after {kills} kills: a larger --contacts gives it time for more", file=sys.stderr)
            break
        os.kill(child.pid, signal.SIGKILL)
        child.wait()
        kills += 1
        phases[_phase(phase_file)] += 1
        print(f"kill {kills} of {arguments.kills}: {_phase(phase_file)}", file=sys.stderr)
    if _child(folder / "b", source, killed, arguments.batch_rows).wait() != 0:
        print("the last resume failed", file=sys.stderr)
        return 1
    with Workspace.open(JobPaths(folder / "b", "killed")) as workspace:
        events = [e.event for e in workspace.events(types=[BatchCommitted])]
        recovered = sum(isinstance(e, BatchCommitted) and e.recovered for e in events)
    checked = _checked(source, killed)
    a = dump_target(undisturbed, checked, folder / "dump-a")
    b = dump_target(killed, checked, folder / "dump-b")
    different = sorted(name for name in a if a[name] != b[name])
    ok, rows = _verified(folder, source, killed, checked)
    result = {
        "kills": kills, "undisturbed_seconds": round(whole, 1), "rows": rows, "by_phase": dict(phases.most_common()),
        "between_commit_and_checkpoint": recovered, "different_dumps": different, "verify_ok": ok,
    }  # fmt: skip
    print(json.dumps(result, indent=2) if arguments.json else _told(result))
    return 0 if ok and not different else 1


def _told(result: dict[str, object]) -> str:
    phases = "\n".join(f"  {count:>3}  {name}" for name, count in dict(result["by_phase"]).items())  # type: ignore[call-overload]
    return (
        f"{result['kills']} kills of a load of {result['rows']:,} rows ({result['undisturbed_seconds']} s undisturbed); last passed:\n{phases}\n"
        f"{result['between_commit_and_checkpoint']} between COMMIT and the checkpoint\n"
        f"dumps that differ from the undisturbed load: {result['different_dumps'] or 'none'}; verify: {'ok' if result['verify_ok'] else 'FAILED'}"
    )


def _await(child: subprocess.Popen[bytes], phase_file: Path, wanted: Callable[[str], bool]) -> None:
    """Until the child's last passed place is as wanted, it ended, or half a minute went by."""
    deadline = time.monotonic() + 30
    while not wanted(_phase(phase_file)) and child.poll() is None and time.monotonic() < deadline:
        pass


def _pause(seconds: float) -> None:
    """A moment too short for sleep()."""
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        pass


def _phase(phase_file: Path) -> str:
    try:
        return phase_file.read_text() or "between"
    except OSError:
        return "between"


def _child(
    folder: Path, source: str, target: str, batch_rows: int, phase_file: Path | None = None
) -> subprocess.Popen[bytes]:
    folder.mkdir(exist_ok=True)
    environment = dict(os.environ)
    if phase_file is not None:
        environment["PACKHORSE_PHASE"] = str(phase_file)
    command = [
        sys.executable,
        "-m",
        "bench.kills",
        "--batch-rows",
        str(batch_rows),
        "--child",
        str(folder),
        source,
        target,
    ]
    return subprocess.Popen(command, env=environment)


def _load_once(folder: str, source_dsn: str, target_dsn: str, batch_rows: int) -> None:
    paths = JobPaths(Path(folder), "killed").create()
    source, target = open_source(source_dsn), open_target(target_dsn)
    checked = check_plan(load_plan(GOLD_PLAN), source, target.catalogue())
    with JobLock(paths), Workspace.open(paths, write=True) as workspace:
        identity = Dsn.parse(source_dsn).identity
        load(Context(paths, workspace, source, target, checked, identity, batch_rows=batch_rows))


def _checked(source_dsn: str, target_dsn: str) -> CheckedPlan:
    return check_plan(load_plan(GOLD_PLAN), open_source(source_dsn), open_target(target_dsn).catalogue())


def _verified(folder: Path, source_dsn: str, target_dsn: str, checked: CheckedPlan) -> tuple[bool, int]:
    paths = JobPaths(folder / "b", "killed")
    with Workspace.open(paths, write=True) as workspace:
        context = Context(
            paths, workspace, open_source(source_dsn), open_target(target_dsn), checked, Dsn.parse(source_dsn).identity
        )
        result = verify(context)
    for entity in result.entities:
        for problem in entity.problems:
            print(f"{entity.entity}: {problem}", file=sys.stderr)
    return result.ok, sum(e.read for e in result.entities)


def _database(server: PostgresServer) -> str:
    database = server.new_database()
    database.run(CLOUD_SQL.read_text(encoding="utf-8"))
    return database.socket_dsn


if __name__ == "__main__":
    sys.exit(main())
