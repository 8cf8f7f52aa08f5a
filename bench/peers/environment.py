"""An environment of its own for a peer from PyPI, under the user's cache: never the project's, never its lock."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from bench.peers.contender import NotRunError

_ROOT = Path(__file__).parents[2]
_VERSIONS = "import json; from importlib.metadata import distributions as d; print(json.dumps({p.name: p.version for p in d()}))"


def installed(name: str, requirements: Sequence[str]) -> Path:
    """The Python of an environment with these requirements, made on first use. NotRunError where that fails."""
    mark = hashlib.sha256("\n".join([sys.version, *requirements]).encode()).hexdigest()[:8]
    folder = _cache() / f"{name}-{mark}"
    python = folder / "bin" / "python"
    ready = folder / "ready"
    if ready.exists() and python.exists():
        return python
    shutil.rmtree(folder, ignore_errors=True)
    folder.parent.mkdir(parents=True, exist_ok=True)
    uv = shutil.which("uv") or shutil.which("uv", path=_ROOT / ".uv" / "bin")
    if uv:
        _run(name, [uv, "venv", "-q", "--python", sys.executable, str(folder)])
        _run(name, [uv, "pip", "install", "-q", "--python", str(python), *requirements])
    else:
        _run(name, [sys.executable, "-m", "venv", str(folder)])
        _run(name, [str(python), "-m", "pip", "install", "-q", *requirements])
    ready.touch()
    return python


def versions(python: Path, names: Sequence[str]) -> dict[str, str]:
    """The versions of some distributions in an environment."""
    done = subprocess.run([python, "-c", _VERSIONS], capture_output=True, text=True, check=True)
    there = {name.lower(): version for name, version in json.loads(done.stdout).items()}
    return {name: there[name] for name in names if name in there}


def _cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "packhorse" / "bench"


def _run(name: str, command: list[str]) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    except OSError as error:
        raise NotRunError(f"{name} can't be installed: {error}") from None
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise NotRunError(f"{name} can't be installed: {last.strip()[:200]}")
