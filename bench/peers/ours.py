"""Packhorse with the gold plan's four entities, from the messy tables, with everything on."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

from bench.peers.contender import Contender, NotRunError, Started
from bench.systems import Systems
from sample_data.servers import Database

FORMS = ("mariadb", "postgresql", "csv")
"""The sources that it can be measured from."""
_ROOT = Path(__file__).parents[2]
_CHILD = [sys.executable, "-m", "bench.peers.in_packhorse"]
_HOW = (
    "the messy tables, read once into files; every transform of the gold plan, references, unique keys; ledger, "
    "crosswalk and quarantine"
)


def packhorse(form: str) -> Contender:
    """Packhorse from one form of the source."""
    return Contender(
        name="packhorse" if form == "mariadb" else f"packhorse, {form}",
        did="cleans, checks and records each row",
        how=_HOW,
        prepare=_prepare,
        start=_starter(form),
        after=_verify(form),
        form=form,
    )


def _prepare() -> dict[str, str]:
    commit = subprocess.run(
        ["git", "describe", "--always", "--dirty"], cwd=_ROOT, capture_output=True, text=True, check=False
    )
    return {"packhorse": version("packhorse"), **({"commit": commit.stdout.strip()} if commit.stdout else {})}


def _environment(form: str, systems: Systems, target: Database) -> dict[str, str]:
    return {"PACKHORSE_BENCH_SOURCE": systems.forms[form], "PACKHORSE_BENCH_TARGET": target.dsn}


def _starter(form: str) -> Callable[[Systems, Database, Path], Started]:
    def start(systems: Systems, target: Database, folder: Path) -> Started:
        return Started([*_CHILD, "load", str(folder)], _environment(form, systems, target))

    return start


def _verify(form: str) -> Callable[[Systems, Database, Path], dict[str, Any]]:
    """What the load told of itself, and what `verify` found, which is no part of what is measured."""

    def after(systems: Systems, target: Database, folder: Path) -> dict[str, Any]:
        environment = {**os.environ, **_environment(form, systems, target)}
        done = subprocess.run(
            [*_CHILD, "verify", str(folder)], env=environment, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise NotRunError(
                f"verify ended with {done.returncode}: {(done.stderr.strip().splitlines() or [''])[-1][:200]}"
            )
        told: dict[str, Any] = json.loads((folder / "told.json").read_text(encoding="utf-8"))
        return told

    return after
