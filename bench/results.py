"""What a measurement comes to: medians, the table, and the JSON that holds one run and nothing of another."""

from __future__ import annotations

import json
import os
import platform
import shlex
import statistics
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import psutil

from bench.measure import Measured
from bench.peers import PIPE, Contender
from bench.systems import Systems

MEGABYTE = 1_000_000
_HEADS = ("wall s", "CPU s", "peak MB", "rows", "rows/s", "x pipe")


@dataclass(frozen=True)
class Run:
    """One run: `rows` in the target, whether they are `same` as should be there (None: not known), what was told."""

    measured: Measured
    rows: int
    same: bool | None
    told: dict[str, Any]


@dataclass
class Outcome:
    """A contender's runs, or the `reason` why there is none, or why the last one failed."""

    contender: Contender
    versions: dict[str, str]
    runs: list[Run] = field(default_factory=list)
    reason: str = ""

    @property
    def measured(self) -> bool:
        """True where there is something to show."""
        return bool(self.runs) and not self.reason

    @property
    def fine(self) -> bool:
        """True where each run went through and brought what it should."""
        return self.measured and all(run.same is not False and run.told.get("verified", True) for run in self.runs)

    @property
    def seconds(self) -> float:
        """The median wall."""
        return self._median(lambda run: run.measured.seconds)

    @property
    def cpu_seconds(self) -> float:
        """The median CPU of the client side."""
        return self._median(lambda run: run.measured.cpu_seconds)

    @property
    def peak_mb(self) -> float:
        """The median of peak memory, in MB."""
        return self._median(lambda run: run.measured.peak_bytes / MEGABYTE)

    @property
    def rows_per_second(self) -> float:
        """Rows that arrived by the median wall."""
        return self.runs[0].rows / self.seconds

    def ratio(self, outcomes: Sequence[Outcome]) -> float | None:
        """The median wall by the pipe's of the same run; None where the pipe has none."""
        pipe = next((o for o in outcomes if o.contender is PIPE and o.measured), None)
        return self.seconds / pipe.seconds if pipe and self.measured else None

    def _median(self, value: Callable[[Run], float]) -> float:
        return statistics.median(value(run) for run in self.runs)


def story(outcome: Outcome) -> str:
    """By what means a contender did it, and what was found of it afterwards."""
    if outcome.reason:
        return f"not measured: {outcome.reason}"
    parts = [outcome.contender.how]
    told = outcome.runs[-1].told
    if "read" in told:
        parts.append(f"read {told['read']:,}: {told['excluded']:,} excluded, {told['quarantined']:,} in quarantine")
    if "verified" in told:
        agrees = "agrees" if told["verified"] else "DISAGREES"
        parts.append(f"verify {agrees} ({told['verify_seconds']:.1f} s more, not counted)")
    if any(run.same is False for run in outcome.runs):
        parts.append("NOT THE ROWS that should be there")
    return "; ".join(parts)


def print_table(outcomes: Sequence[Outcome], contacts: int, here: Mapping[str, Any]) -> None:
    """The table on stdout, and below it a line on each contender."""
    repeats = max((len(outcome.runs) for outcome in outcomes), default=0)
    print(
        f"{contacts:,} contacts; {here['cpu']}, {here['cores']} cores"
        + (f"; medians of {repeats}" if repeats > 1 else "")
    )
    rows = [("", *_HEADS, "what it did"), *((o.contender.name, *_figures(o, outcomes)) for o in outcomes)]
    widths = [max(len(row[n]) for row in rows) for n in range(len(_HEADS) + 1)]
    print()
    for name, *figures, did in rows:
        cells = [name.ljust(widths[0]), *(f.rjust(width) for f, width in zip(figures, widths[1:], strict=True))]
        print("  ".join([*cells, did]))
    print()
    for outcome in outcomes:
        print(f"{outcome.contender.name}: {story(outcome)}")
    print("CPU and memory are the client side's, all its processes; both servers come on top.")


def _figures(outcome: Outcome, outcomes: Sequence[Outcome]) -> list[str]:
    if not outcome.measured:
        return ["-"] * len(_HEADS) + ["not measured"]
    ratio = outcome.ratio(outcomes)
    return [
        f"{outcome.seconds:.1f}", f"{outcome.cpu_seconds:.1f}", f"{outcome.peak_mb:,.0f}", f"{outcome.runs[0].rows:,}",
        f"{outcome.rows_per_second:,.0f}", f"{ratio:.2f}" if ratio else "-", outcome.contender.did,
    ]  # fmt: skip


def to_json(systems: Systems, outcomes: Sequence[Outcome], began: datetime, here: Mapping[str, Any]) -> str:
    """The whole measurement as a JSON text."""
    document = {
        "began": began.isoformat(timespec="seconds"),
        "command": shlex.join(["python", "-m", "bench.pipe", *sys.argv[1:]]),
        "contacts": systems.contacts,
        "seed": systems.seed,
        "rows_to_arrive": {table.name: table.count for table in systems.clean},
        "machine": dict(here),
        "servers": systems.versions,
        "contenders": [_described(outcome, outcomes) for outcome in outcomes],
    }
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _described(outcome: Outcome, outcomes: Sequence[Outcome]) -> dict[str, Any]:
    described: dict[str, Any] = {
        "name": outcome.contender.name,
        "source": outcome.contender.form,
        "did": outcome.contender.did,
        "how": outcome.contender.how,
        "versions": outcome.versions,
    }
    if outcome.reason:
        described["not_measured"] = outcome.reason
    if outcome.measured:
        ratio = outcome.ratio(outcomes)
        described |= {
            "seconds": round(outcome.seconds, 2),
            "cpu_seconds": round(outcome.cpu_seconds, 2),
            "peak_mb": round(outcome.peak_mb),
            "rows": outcome.runs[0].rows,
            "rows_per_second": round(outcome.rows_per_second),
            "ratio_to_pipe": round(ratio, 3) if ratio else None,
        }
    described["runs"] = [
        {
            "seconds": round(run.measured.seconds, 2),
            "cpu_seconds": round(run.measured.cpu_seconds, 2),
            "peak_mb": round(run.measured.peak_bytes / MEGABYTE),
            "rows": run.rows,
            "right_rows": run.same,
            **run.told,
        }
        for run in outcome.runs
    ]
    return described


def machine() -> dict[str, Any]:
    """What the figures hang on: processor, cores that this process may use, memory, system."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return {
        "cpu": _cpu(),
        "cores": cores,
        "memory_gb": round(psutil.virtual_memory().total / 1e9, 1),
        "system": platform.platform(),
        "python": platform.python_version(),
    }


def _cpu() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()
