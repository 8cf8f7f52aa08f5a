"""MigrationBench: migrations with known right answers, a folder each, kept apart by family.

`bench/scenarios/<family>/<name>/scenario.yaml` tells what a scenario is; `source.sql`, `target.sql`, `gold.yaml` (the
plan of a careful person) and `records.py` (draws the rows, and says what should become of each) stand beside it, or
in the family's folder where its scenarios share them. `splits.yaml` says which families may be learnt from.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict
from ruamel.yaml import YAML

from engine.plan import Plan, load_plan

HERE = Path(__file__).parent
Split = Literal["train", "dev", "test"]
Fault = Literal["kill", "target_lost", "new_value", "new_constraint", "source_drift"]


class _Told(BaseModel):
    """What a `scenario.yaml` says. `options` go to the family's `records.py`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    text: str
    form: Literal["sqlite", "csv"] = "sqlite"
    delimiter: Literal[",", ";"] = ","
    encoding: Literal["utf-8", "cp1252"] = "utf-8"
    zone: str = "UTC"
    country: str = ""
    faults: tuple[Fault, ...] = ()
    fault: dict[str, str] = {}
    options: dict[str, Any] = {}


@dataclass(frozen=True)
class Scenario:
    """One migration. The old system is a SQLite file, or in the `form` of a folder of CSV files with this `delimiter` and
    `encoding`; `zone` is that of the source's clock and `country` where telephone numbers without one are from, as the
    people who kept the records know; `faults` are what goes wrong on the way, with the SQL of each in `fault`."""

    family: str
    short: str
    split: Split
    text: str
    form: Literal["sqlite", "csv"]
    delimiter: str
    encoding: str
    zone: str
    country: str
    faults: tuple[Fault, ...]
    fault: Mapping[str, str]
    options: Mapping[str, Any]

    @property
    def name(self) -> str:
        """`family/short`."""
        return f"{self.family}/{self.short}"

    @property
    def statements(self) -> tuple[str, ...]:
        """SQL that the old system is changed by, once its rows are in."""
        return ()

    def file(self, name: str) -> Path:
        """A file of the scenario's own folder, or of its family's."""
        own = HERE / self.family / self.short / name
        return own if own.exists() else HERE / self.family / name

    def gold(self) -> Plan:
        """The plan of a careful person."""
        return load_plan(self.file("gold.yaml"))

    def records(self) -> ModuleType:
        """The module whose `make(maker, **options)` draws the rows."""
        return _module(self.file("records.py"))


@cache
def _module(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"bench.scenarios.{path.parent.name}_records", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@cache
def splits() -> Mapping[str, Split]:
    """The split of each family."""
    told: dict[Split, list[str]] = YAML(typ="safe").load((HERE / "splits.yaml").read_text(encoding="utf-8"))
    return {family: split for split, families in told.items() for family in families}


def scenarios(*wanted: str) -> list[Scenario]:
    """All scenarios by name; with `wanted`, those of these splits, families or names."""
    found = []
    for path in sorted(HERE.glob("*/*/scenario.yaml")):
        family, short = path.parent.parent.name, path.parent.name
        told = _Told.model_validate(YAML(typ="safe").load(path.read_text(encoding="utf-8")))
        split = splits()[family]
        if wanted and not {split, family, f"{family}/{short}"} & set(wanted):
            continue
        found.append(
            Scenario(
                family, short, split, told.text, told.form, told.delimiter, told.encoding, told.zone, told.country,
                told.faults, told.fault, told.options,
            )
        )  # fmt: skip
    return found
