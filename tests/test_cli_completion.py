"""Completion in real shells, installed as a person would: candidates, quickly, and never a word else."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pexpect
import pytest

from tests.cli_runner import MIGRATE, environment
from tests.test_cli_errors import HEAVY
from workspace.events import JobStarted
from workspace.log import Workspace
from workspace.paths import JobPaths


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two jobs, two plans and two DSNs that are kept."""
    for job in ("night-crm", "night-erp"):
        with Workspace.open(JobPaths(tmp_path, job), write=True) as workspace:
            workspace.record(JobStarted(job=job, source="sqlite:///a.db", target="sqlite:///b.db"))
    (tmp_path / "planned.yaml").write_text("")
    (tmp_path / "plans").mkdir()
    (tmp_path / "plans" / "first.yaml").write_text("")
    (tmp_path / "config-home").mkdir()
    kept = {"system": "postgres", "host": "h", "port": None, "database": "crm", "user": "me"}
    document = {"version": 1, "dsns": {"oldcrm": kept}}
    (tmp_path / "config-home" / "dsns.json").write_text(json.dumps(document))
    return tmp_path


def home(folder: Path) -> dict[str, str]:
    """The environment of a shell that finds `migrate` and this folder's files."""
    path = f"{Path(MIGRATE).parent}:{os.environ['PATH']}"
    return environment(folder, {"HOME": str(folder), "PATH": path, "TERM": "xterm", "PS1": "READY> "})


def candidates(folder: Path, *words: str, env: dict[str, str] | None = None) -> list[str]:
    """What bash is told for these words, the last being typed."""
    line = "\n".join(["migrate", *words])
    asked = {"_MIGRATE_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(len(words))}
    done = subprocess.run(
        [MIGRATE], cwd=folder, env={**home(folder), **asked, **(env or {})}, capture_output=True, text=True, check=False
    )
    assert done.stderr == ""
    return done.stdout.split()


def test_what_is_offered(folder: Path) -> None:
    both = ["night-crm", "night-erp"]
    for verb in (
        "resume",
        "preview",
        "status",
        "watch",
        "inspect",
        "answer",
        "verify",
        "report",
        "undo",
        "sync",
        "cleanup",
    ):
        assert candidates(folder, verb, "ni") == both, verb
    assert candidates(folder, "quarantine", "show", "night-e") == ["night-erp"]
    assert candidates(folder, "run", "--job", "") == both
    assert candidates(folder, "explain", "PH-60") == ["PH-601", "PH-602", "PH-603"]
    assert candidates(folder, "explain", "60") == ["601", "602", "603"]
    assert candidates(folder, "run", "a", "b", "--plan", "") == ["planned.yaml"]
    assert candidates(folder, "plan", "check", "plans/") == ["plans/first.yaml"]
    assert candidates(folder, "run", "old") == ["oldcrm"]
    assert candidates(folder, "resume", "--source", "o") == ["oldcrm"]
    assert candidates(folder, "dsn", "test", "o") == ["oldcrm"]
    assert candidates(folder, "sync", "--deletes", "") == ["keep", "delete", "mark"]
    assert "--autonomy" in candidates(folder, "run", "--aut")
    assert candidates(folder, "quar") == ["quarantine"]


def test_nothing_is_said_where_something_is_wrong(folder: Path) -> None:
    assert candidates(folder, "nonsense", "x") is not None
    (folder / "config-home" / "dsns.json").write_text("{")
    assert candidates(folder, "run", "") == []
    (folder / "packhorse.toml").write_text("[broken")
    assert candidates(folder, "status", "night-c") == ["night-crm"]
    shutil.rmtree(folder / ".packhorse")
    assert candidates(folder, "status", "") == []
    assert candidates(folder, "plan", "check", "not/there/") == []
    for broken in ({"COMP_CWORD": "x"}, {"COMP_WORDS": "'"}, {"_MIGRATE_COMPLETE": "x"}, {"_MIGRATE_COMPLETE": "a_b"}):
        candidates(folder, "st", env=broken)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_it_loads_no_more_than_it_needs(folder: Path, shell: str) -> None:
    """Somebody who pressed Tab waits for each import: about 0.4 s of CPU without these."""
    env = {**home(folder), "_MIGRATE_COMPLETE": f"complete_{shell}"}
    env |= {"COMP_WORDS": "migrate\nstatus\nni", "COMP_CWORD": "2", "_TYPER_COMPLETE_ARGS": "migrate status ni"}
    env |= {"_TYPER_COMPLETE_FISH_ACTION": "get-args"}
    script = (
        "import atexit, pathlib, sys; atexit.register(lambda: pathlib.Path('loaded').write_text(' '.join(sys.modules))); "
        "sys.argv = ['migrate']; from cli.app import main; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=folder, env=env, capture_output=True, text=True, check=True
    )
    assert "night-crm" in done.stdout
    loaded = {name.split(".")[0] for name in (folder / "loaded").read_text().split()}
    assert "typer" in loaded
    assert not loaded & {*HEAVY, "structlog", "opentelemetry", "textual", "keyring"}


class Shell:
    """A shell on a terminal of its own."""

    def __init__(self, folder: Path, name: str, *options: str) -> None:
        self.child = pexpect.spawn(
            name, list(options), cwd=str(folder), env=home(folder), encoding="utf-8", timeout=30, dimensions=(24, 200)
        )  # fmt: skip

    def types(self, keys: str, wanted: str) -> str:
        """What is on the screen up to `wanted`."""
        self.child.send(keys)
        self.child.expect_exact(wanted)
        return str(self.child.before)

    def end(self) -> None:
        self.child.close(force=True)


def needed(shell: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed: apt-get install {shell}")


def test_bash(folder: Path) -> None:
    shell = Shell(folder, "bash", "--norc", "--noprofile")
    shell.types("migrate --install-completion\n", "bash completion installed")
    shell.end()
    shell = Shell(folder, "bash", "--rcfile", str(folder / ".bashrc"))
    shell.types("PS1='READY> '\n", "READY> ")
    shell.types("migrate stat\t", "status ")
    shell.types("night-c\t", "night-crm ")
    shell.types("\x15migrate explain PH-60\t\t", "PH-603")
    shell.types("\x15migrate plan check plann\t", "planned.yaml ")
    said = shell.types("\x15echo and\t on\n", "and on")
    assert "Traceback" not in said
    shell.end()


def test_zsh(folder: Path) -> None:
    needed("zsh")
    shell = Shell(folder, "zsh", "-f")
    shell.types("migrate --install-completion\n", "zsh completion installed")
    shell.end()
    (folder / ".zshrc").write_text(
        (folder / ".zshrc").read_text().replace("compinit;", "compinit -u;") + "PS1='READY> '\n"
    )
    shell = Shell(folder, "zsh", "-i")
    shell.types("", "READY> ")
    shell.types("migrate status night-c\t", "night-crm")
    shell.types("\x15migrate explain PH-603\t", "PH-603")
    shell.types("\x15migrate quaran\t", "quarantine")
    shell.end()


def test_fish(folder: Path) -> None:
    needed("fish")
    shell = Shell(folder, "fish", "--no-config")
    shell.types("migrate --install-completion\r", "fish completion installed")
    shell.end()
    asked = "complete -C 'migrate status night-'; complete -C 'migrate explain PH-60'; complete -C 'migrate run old'"
    done = subprocess.run(
        ["fish", "-c", asked], cwd=folder, env=home(folder), capture_output=True, text=True, timeout=60, check=False
    )
    found = [line.split("\t")[0] for line in done.stdout.splitlines()]
    assert found == ["night-crm", "night-erp", "PH-601", "PH-602", "PH-603", "oldcrm"], done
    assert done.stderr == ""


def test_show_completion_prints_the_script(folder: Path) -> None:
    shell = Shell(folder, "bash", "--norc", "--noprofile")
    said = shell.types("migrate --show-completion; echo 'E'ND\n", "END")
    assert re.search(r"complete -o default -F _migrate_completion migrate", said)
    shell.end()
