"""Runs `migrate` as a person would: a process of its own, in a folder of its own."""

from __future__ import annotations

import contextlib
import io
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cli.app import run

MIGRATE = str(Path(sys.executable).with_name("migrate"))


@dataclass(frozen=True)
class Result:
    """What a command left: its exit code and what it printed."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        """Its stdout as one JSON object."""
        document = json.loads(self.out)
        assert isinstance(document, dict)
        return document

    def refused(self, code: str, *words: str, exit_code: int = 2) -> None:
        """Asserts one clear error: its code, the words, the exit code, and no traceback."""
        assert self.code == exit_code, self
        lines = [line for line in self.err.splitlines() if line.startswith("error ")]
        assert len(lines) == 1, self
        assert lines[0].startswith(f"error {code}: "), self
        for word in words:
            assert word in self.err, self
        self.no_traceback()

    def no_traceback(self) -> None:
        """Asserts that no traceback was printed."""
        assert "Traceback" not in self.err + self.out, self
        assert "Error:" not in self.err, self


def migrate(*arguments: str | Path, cwd: Path, env: dict[str, str] | None = None, timeout: float = 120) -> Result:
    """One command, ended. `env` is added to a clean environment; experience goes under `cwd`."""
    done = subprocess.run(
        [MIGRATE, *map(str, arguments)],
        cwd=cwd,
        env=environment(cwd, env),
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    return Result(done.returncode, done.stdout, done.stderr)


def migrate_here(*arguments: str | Path) -> Result:
    """The same in this process and folder, for long lists of cases: no start to wait for."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = run(list(map(str, arguments)))
    return Result(code, out.getvalue(), err.getvalue())


def environment(cwd: Path, env: dict[str, str] | None = None) -> dict[str, str]:
    """The environment of a command: ours without what would steer it."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PACKHORSE_", "PG"))}
    homes = {"PACKHORSE_DATA_HOME": str(cwd / "data-home"), "PACKHORSE_CONFIG_HOME": str(cwd / "config-home")}
    return {**kept, **homes, **(env or {})}
