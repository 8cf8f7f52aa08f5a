"""What `migrate doctor` looks at: one function a thing, each giving one line. None of them changes anything."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import os
import platform
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import psutil

from agent.models.backends import gap, offers
from agent.models.check import Check, check_model
from agent.models.kept import path_of
from cli.defaults import file_in_use, places
from workspace.errors import PackhorseError
from workspace.paths import data_directory, list_jobs

_GIB = 2**30


def machine() -> Check:
    """Processor, cores and memory."""
    memory = psutil.virtual_memory()
    cores = psutil.cpu_count(logical=False) or os.cpu_count() or 1
    found = (
        f"{platform.system()} {platform.machine()}, {cores} cores,"
        f" {memory.available / _GIB:.1f} of {memory.total / _GIB:.1f} GiB memory free"
    )
    if memory.available < _GIB:
        return Check("machine", "warn", found, "a job takes up to 700 MB besides the model: close something")
    return Check("machine", "ok", found)


def python() -> Check:
    """The interpreter and our own version."""
    found = f"Python {platform.python_version()}, packhorse {importlib.metadata.version('packhorse')}"
    return Check("python", "ok", f"{found}, SQLite {sqlite3.sqlite_version}, DuckDB {_version('duckdb')}")


def llama_build() -> Check:
    """What llama.cpp was built for, and what this machine could use; looked up in a child, since a build that doesn't fit can
    end a process."""
    code = (
        "import json; from agent.models.backends import built; from agent.models.native import system_info;"
        " names, devices = built(); print(json.dumps([names, [d.name for d in devices if d.backend != 'CPU'], system_info()]))"
    )
    try:
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    except subprocess.TimeoutExpired:
        return Check("llama.cpp", "fail", "did not answer within a minute", "docs/model.md: build it anew")
    if done.returncode:
        last = (done.stderr.strip().splitlines() or [f"exit {done.returncode}"])[-1]
        return Check(
            "llama.cpp", "fail", f"cannot be loaded: {last[:160]}",
            "build it for this machine: rm -r .venv; make venv; or work with --model none",
        )  # fmt: skip
    names, cards, info = json.loads(done.stdout.strip().splitlines()[-1])
    said, advice = gap(names, offers())
    where = f"computes on {', '.join(cards)}" if cards else "CPU only"
    found = f"{_version('llama-cpp-python')}, {where}; {said}; {info}"
    return Check("llama.cpp", "warn" if advice else "ok", found, advice)


def compiler() -> Check:
    """What llama.cpp would be built with, for a graphics card or where no wheel fits."""
    there = [name for name in ("cc", "c++", "cmake", "nvcc") if shutil.which(name)]
    lacks = [name for name in ("cc", "c++") if name not in there]
    if lacks:
        return Check("compiler", "ok", f"no {' and no '.join(lacks)}; needed only to build llama.cpp anew")
    return Check("compiler", "ok", ", ".join(there))


def model(spec: str | None) -> Check:
    """The model that would decide, tried in a child process; in one line."""
    if spec == "none":
        return Check("model", "ok", "none: rules, experience and questions only")
    if spec is not None and "://" in spec:
        return Check("model", "ok", f"the server {spec}, not tried")
    found = {check.name: check for check in check_model(path_of(spec))}
    for check in found.values():
        if check.state == "fail":
            return Check("model", "fail", f"{check.name}: {check.found}", check.advice)
    parts = [found[name].found for name in ("architecture", "parameters") if name in found]
    speed = f"prompt {found['prompt'].found}, answer {found['answer'].found}" if "prompt" in found else ""
    return Check("model", "ok", ", ".join([*parts, speed]))


def disk(folder: Path) -> Check:
    """Room for stages, which hold a compressed copy of the source."""
    usage = psutil.disk_usage(str(folder))
    found = f"{usage.free / _GIB:.1f} GiB free in {folder}"
    if usage.free < 2 * _GIB:
        return Check("disk", "warn", found, "the stage of a job needs about as much as the source holds")
    return Check("disk", "ok", found)


def workspace(folder: Path) -> Check:
    """Whether jobs can be kept here, and how many are."""
    place = folder / ".packhorse"
    if not os.access(place if place.exists() else folder, os.W_OK):
        return Check("workspace", "fail", f"{folder} cannot be written to", "run migrate in a folder of your own")
    jobs = list_jobs(folder)
    return Check("workspace", "ok", f"{len(jobs)} jobs under {place}; experience in {data_directory()}")


def defaults() -> Check:
    """Which file of defaults is in use; one that is wrong has ended the command before."""
    found = file_in_use()
    if found is None:
        return Check("defaults", "ok", f"none; they would be in {' or '.join(map(str, places()))}")
    return Check("defaults", "ok", str(found.absolute()))


def drivers() -> Check:
    """Which systems this installation can speak to."""
    if importlib.util.find_spec("MySQLdb") is None:
        return Check(
            "drivers", "warn", "PostgreSQL, SQLite, files; no MySQL and MariaDB",
            "apt install libmariadb-dev pkg-config, then: pip install 'packhorse[mysql]'",
        )  # fmt: skip
    return Check("drivers", "ok", "MySQL and MariaDB, PostgreSQL, SQLite, files (CSV, XLSX, JSONL)")


def source(dsn: str) -> list[Check]:
    """The source's product and version, and how many tables it shows; what isn't as one would think, a line each."""
    from connectors.dsn import open_source

    try:
        system = open_source(dsn)
        try:
            catalogue = system.catalogue()
        finally:
            system.close()
    except PackhorseError as error:
        return [Check("source", "fail", str(error), error.advice)]
    found = Check("source", "ok", f"{catalogue.server}, {len(catalogue.tables)} tables")
    return [found, *(Check("source", "warn", note) for note in system.notes)]


def target(dsn: str) -> Check:
    """The target's product and version, and how many tables it shows."""
    from connectors.dsn import open_target

    try:
        system = open_target(dsn)
        try:
            catalogue = system.catalogue()
        finally:
            system.close()
    except PackhorseError as error:
        return Check("target", "fail", str(error), error.advice)
    found = f"{catalogue.server}, {len(catalogue.tables)} tables"
    if not catalogue.tables:
        return Check("target", "warn", found, "create the target's tables first; migrate fills them, it makes none")
    return Check("target", "ok", found)


def _version(distribution: str) -> str:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"
