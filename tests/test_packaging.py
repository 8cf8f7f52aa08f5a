"""The habits that keep the rooms apart and an installation repeatable."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from importlib.metadata import distributions, packages_distributions
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
ROOMS = ["packhorse", "cli", "agent", "engine", "connectors", "workspace", "learning", "bench", "sample_data"]


def run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", *command], cwd=ROOT, capture_output=True, text=True, check=False)


def test_imports_run_one_way() -> None:
    done = subprocess.run(
        [Path(sys.executable).with_name("lint-imports"), "--no-cache"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_sample_data_imports_nothing_of_ours() -> None:
    """What is right and wrong must not hang on the code that is held against it. Its servers alone start the same
    PostgreSQL as a rehearsal."""
    ours = re.compile(
        rf"^\s*(?:from|import) ((?:{'|'.join(room for room in ROOMS if room != 'sample_data')})\b[\w.]*)", re.MULTILINE
    )
    sample = ROOT / "sample_data"
    found = {path.relative_to(sample): set(ours.findall(path.read_text())) for path in sample.rglob("*.py")}
    shared = {"connectors.embedded"}
    assert not {path for path, imports in found.items() if imports - (shared if path.parts[0] == "servers" else set())}


def test_no_installed_distribution_ships_a_module_named_like_a_room() -> None:
    owners = packages_distributions()
    others = {
        room: [owner for owner in owners.get(room, []) if owner != "packhorse"] for room in [*ROOMS, "docs", "tests"]
    }
    assert not {room for room, found in others.items() if found}, others


def test_no_installed_distribution_has_a_file_where_a_room_would_be() -> None:
    # packages_distributions() trusts top_level.txt; the files themselves are the fact
    for distribution in distributions():
        if distribution.name == "packhorse":
            continue
        tops = {Path(str(file)).parts[0].removesuffix(".py") for file in distribution.files or ()}
        assert not tops & set(ROOMS), distribution.name


def test_the_lock_pins_every_dependency_with_a_hash() -> None:
    lock = (ROOT / "requirements.lock").read_text()
    pinned = {match[1]: match[2] for match in re.finditer(r"^([\w.-]+)==(\S+)", lock, re.MULTILINE)}
    wanted = [
        *PROJECT["project"]["dependencies"],
        *(each for group in PROJECT["project"]["optional-dependencies"].values() for each in group),
        *PROJECT["dependency-groups"]["dev"],
    ]
    names = {re.split(r"[\[<>=;, ]", each)[0].lower().replace(".", "-") for each in wanted}
    assert names <= set(pinned)
    blocks = re.split(r"^(?=[\w.-]+==)", lock, flags=re.MULTILINE)[1:]
    assert all("--hash=sha256:" in block for block in blocks)


@pytest.mark.parametrize("group", ["dependencies", "dev"])
def test_versions_are_bounded(group: str) -> None:
    wanted = PROJECT["project"]["dependencies"] if group == "dependencies" else PROJECT["dependency-groups"]["dev"]
    assert not [each for each in wanted if ">=" not in each]


def test_what_a_wheel_would_hold_is_every_room() -> None:
    there = {room for room in ROOMS if (ROOT / room / "__init__.py").exists()}
    assert there == set(PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"])


def test_a_verb_is_a_short_file() -> None:
    for path in (ROOT / "cli").rglob("*.py"):
        lines = len(path.read_text().splitlines())
        assert lines <= 200, f"{path.relative_to(ROOT)} has {lines} lines"
