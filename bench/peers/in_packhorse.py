"""`python -m bench.peers.in_packhorse load|verify FOLDER`: the engine alone, in a process that can be measured.

What it has to tell goes to told.json in the folder; source and target are named by the environment.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from bench.systems import ENTITIES
from connectors.dsn import Dsn, open_source, open_target
from engine.check import check_plan
from engine.context import Context
from engine.functions.register import seconds_spent
from engine.load import load
from engine.plan import Plan, load_plan
from engine.verify import verify
from sample_data import GOLD_PLAN
from workspace.log import Workspace
from workspace.paths import JobPaths


def main() -> int:
    """Loads, or verifies what was loaded; 0 when it went through."""
    act, folder = sys.argv[1], Path(sys.argv[2])
    told = folder / "told.json"
    source_dsn, target_dsn = os.environ["PACKHORSE_BENCH_SOURCE"], os.environ["PACKHORSE_BENCH_TARGET"]
    source, target = open_source(source_dsn), open_target(target_dsn)
    checked = check_plan(plan(), source, target.catalogue())
    with Workspace.open(JobPaths(folder, "bench").create(), write=True) as workspace:
        ctx = Context(JobPaths(folder, "bench"), workspace, source, target, checked, Dsn.parse(source_dsn).identity)
        if act == "load":
            told.write_text(json.dumps(_load(ctx)), encoding="utf-8")
        else:
            told.write_text(json.dumps({**json.loads(told.read_text("utf-8")), **_verify(ctx)}), encoding="utf-8")
    return 0


def plan() -> Plan:
    """The gold plan's four entities; what refers to others is left out."""
    gold = load_plan(GOLD_PLAN)
    entities = {}
    for name in ENTITIES:
        entity = gold.entities[name]
        fields = {column: f for column, f in entity.fields.items() if f.ref is None or f.ref in ENTITIES}
        entities[name] = entity.model_copy(update={"fields": fields})
    return gold.model_copy(update={"entities": entities})


def _load(ctx: Context) -> dict[str, Any]:
    outcome = load(ctx)
    functions = sorted(seconds_spent().items(), key=lambda item: -item[1])
    return {
        "read": outcome.read,
        "loaded": outcome.inserted,
        "excluded": outcome.excluded,
        "quarantined": outcome.quarantined,
        "function_cpu_seconds": {name: round(seconds, 2) for name, seconds in functions},
    }


def _verify(ctx: Context) -> dict[str, Any]:
    started = time.monotonic()
    return {"verified": verify(ctx, ask_source=False).ok, "verify_seconds": round(time.monotonic() - started, 2)}


if __name__ == "__main__":
    sys.exit(main())
