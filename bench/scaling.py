"""How a load grows with its workers, and what stops it: `python -m bench.scaling --contacts 200000`.

The sample's legacy CRM, in SQLite, goes into a PostgreSQL on this machine by the gold plan, once for each executor
named, into a database of its own. What is measured of each: the wall, and the CPU of who reads and keeps order (the
process that drives), of the workers, and of the target's server. From these shares follows what a row costs each, and
so where more workers stop to help: on one machine at its cores, on many at the one source, the one that drives, or
the one target.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil

from bench.results import machine
from connectors.dsn import Dsn, open_source, open_target
from engine.check import check_plan
from engine.context import Context
from engine.executors.choice import Choice
from engine.load import load
from engine.plan import load_plan
from engine.stager import Stager
from sample_data import CLOUD_SQL, GOLD_PLAN, write_sample
from sample_data.servers import PostgresServer
from workspace.events import PartStaged, WorkSpread
from workspace.lock import JobLock
from workspace.log import Workspace
from workspace.paths import JobPaths


@dataclass(frozen=True)
class Share:
    """What a load of `rows` took under one executor. Seconds of CPU: of reading the source into the stage, of the
    process that drives, of its workers, of the target's server. `stage_seconds` is the wall of that reading, which
    comes first here, so that the load's `seconds` hold none of it. `worker_seconds` and `settle_seconds` are
    the wall that tasks took, summed, and that settling took in the process that drives. `stage_bytes` are the stage's."""

    executor: str
    rows: int
    seconds: float
    stage_seconds: float
    stage_cpu: float
    driver_cpu: float
    worker_cpu: float
    target_cpu: float
    worker_seconds: float
    settle_seconds: float
    stage_bytes: int


def main() -> int:
    """Prints the table, and the JSON where asked for."""
    arguments = _arguments()
    if arguments.child:
        print(json.dumps(_load(*arguments.child)))
        return 0
    folder = Path(tempfile.mkdtemp(prefix="packhorse-scaling-"))
    server = PostgresServer()
    try:
        source = f"sqlite:///{folder / 'crm.db'}"
        write_sample("sqlite", folder / "crm.db", arguments.contacts, arguments.seed)
        shares = [_measure(server, folder, source, executor) for executor in arguments.executors.split(",")]
    finally:
        server.remove()
        shutil.rmtree(folder, ignore_errors=True)
    busy = os.getloadavg()[0]
    document = {
        "machine": machine(), "contacts": arguments.contacts, "load_average": busy,
        "shares": [asdict(share) for share in shares], "saturation": saturation(shares[-1]),
    }  # fmt: skip
    print(json.dumps(document, indent=2) if arguments.json else _table(shares, busy))
    return 0


def saturation(share: Share) -> dict[str, float]:
    """Rows a second at which each stops to grow, were all else without end: the source as it is read alone; the process
    that reads and drives, by its CPU; the target, by its CPU, for each core that it has; and what one worker's core brings."""
    return {
        "source": share.rows / share.stage_seconds,
        "driver": share.rows / (share.stage_cpu + share.driver_cpu),
        "target_core": share.rows / share.target_cpu,
        "worker_core": share.rows / share.worker_cpu,
    }


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.scaling")
    parser.add_argument("--contacts", type=int, default=200_000, help="how many contacts the CRM has (default 200000)")
    parser.add_argument("--executors", default="local:1,local:2", help="which to measure, in turn")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--child", nargs=4, metavar=("FOLDER", "SOURCE", "TARGET", "EXECUTOR"), help=argparse.SUPPRESS)
    return parser.parse_args()


def _measure(server: PostgresServer, folder: Path, source: str, executor: str) -> Share:
    """A load in a process of its own, into a database of its own."""
    database = server.new_database()
    database.run(CLOUD_SQL.read_text(encoding="utf-8"))
    base = folder / executor.replace(":", "-").replace("/", "-")
    base.mkdir()
    before = _cpu_of(server.pid)
    command = [sys.executable, "-m", "bench.scaling", "--child", str(base), source, database.socket_dsn, executor]
    told = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    share = Share(executor=executor, target_cpu=_cpu_of(server.pid) - before, **told)
    server.drop(database)
    shutil.rmtree(base)
    print(f"{executor}: {share.rows:,} rows in {share.seconds:.0f} s", file=sys.stderr)
    return share


def _load(folder: str, source_dsn: str, target_dsn: str, executor: str) -> dict[str, float]:
    paths = JobPaths(Path(folder), "scaling").create()
    source, target = open_source(source_dsn), open_target(target_dsn)
    checked = check_plan(load_plan(GOLD_PLAN), source, target.catalogue())
    with JobLock(paths), Workspace.open(paths, write=True) as workspace:
        choice = Choice.of(executor, "", target_dsn)
        ctx = Context(paths, workspace, source, target, checked, Dsn.parse(source_dsn).identity, choice=choice)
        started, first = time.monotonic(), resource.getrusage(resource.RUSAGE_SELF)
        with Stager(ctx) as stager:
            for entity in checked.entities:
                for _ in stager.parts(entity):
                    pass
        staged, before = time.monotonic() - started, resource.getrusage(resource.RUSAGE_SELF)
        started = time.monotonic()
        outcome = load(ctx)
        seconds = time.monotonic() - started
        drove, worked = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
        parts = [e.event for e in workspace.events(types=[PartStaged])]
        spread = [e.event for e in workspace.events(types=[WorkSpread])]
    spent = spread[0].seconds if spread and isinstance(spread[0], WorkSpread) else {}
    return {
        "rows": outcome.read,
        "seconds": seconds,
        "stage_seconds": staged,
        "stage_cpu": before.ru_utime + before.ru_stime - first.ru_utime - first.ru_stime,
        "driver_cpu": drove.ru_utime + drove.ru_stime - before.ru_utime - before.ru_stime,
        "worker_cpu": worked.ru_utime + worked.ru_stime,
        "worker_seconds": sum(spent.get(kind, 0.0) for kind in ("transform", "sort", "target")),
        "settle_seconds": spent.get("settle", 0.0),
        "stage_bytes": sum(part.bytes for part in parts if isinstance(part, PartStaged)),
    }


def _cpu_of(pid: int) -> float:
    """Seconds of CPU of a server's processes, those that ended included."""
    server = psutil.Process(pid)
    ended = server.cpu_times()
    total = ended.user + ended.system + ended.children_user + ended.children_system
    for child in server.children():
        try:
            times = child.cpu_times()
        except psutil.NoSuchProcess:
            continue
        total += times.user + times.system
    return float(total)


def _table(shares: list[Share], busy: float) -> str:
    head = f"{'executor':<10} {'rows':>10} {'wall s':>8} {'rows/s':>8} {'grows':>6}  {'CPU s: reads':>12} {'drives':>7} {'workers':>8} {'target':>8}"
    lines = [head]
    for share in shares:
        lines.append(
            f"{share.executor:<10} {share.rows:>10,} {share.seconds:>8.1f} {share.rows / share.seconds:>8,.0f} "
            f"{shares[0].seconds / share.seconds:>6.2f}  {share.stage_cpu:>12.1f} {share.driver_cpu:>7.1f} {share.worker_cpu:>8.1f} {share.target_cpu:>8.1f}"
        )
    last = shares[-1]
    limits = saturation(last)
    lines += [
        "",
        f"the source alone: {limits['source']:,.0f} rows/s, {last.stage_bytes / last.rows:,.0f} bytes a row in the stage",
        f"a core brings: reading and driving {limits['driver']:,.0f} rows/s, working {limits['worker_core']:,.0f}, in the target {limits['target_core']:,.0f}",
        f"settling: {last.settle_seconds:.1f} s; tasks: {last.worker_seconds:.1f} s, summed over workers; load average {busy:.1f} on {os.cpu_count()} cores",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
