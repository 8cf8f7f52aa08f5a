"""The measurement: what is counted of a process and its children, and a run in which peers die or are missing."""

from __future__ import annotations

import json
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import psutil
import pytest

from bench import pipe
from bench.measure import measure
from bench.peers import PIPE, Contender, NotRunError, Started
from bench.peers.environment import installed

PYTHON = [sys.executable, "-c"]
# holds 60 MB that nobody else has, busy for a while, so that it is seen
HOLD = "import os, time; held = os.urandom(60_000_000)\nwhile time.process_time() < 0.7: pass"


def test_children_are_counted_with_their_parent(tmp_path: Path) -> None:
    command = f"import subprocess, sys\nchild = subprocess.Popen([sys.executable, '-c', {HOLD!r}])\n{HOLD}\nchild.wait()\nprint('ended'); sys.exit(3)"
    alone = measure([*PYTHON, HOLD], tmp_path, {}, limit=60)
    both = measure([*PYTHON, command], tmp_path, {}, limit=60)
    assert (alone.code, both.code, both.said) == (0, 3, "ended")
    assert alone.peak_bytes > 60_000_000
    assert both.peak_bytes > alone.peak_bytes + 50_000_000
    assert both.cpu_seconds > 1.3
    assert both.cpu_seconds > alone.cpu_seconds + 0.6


def test_a_command_out_of_time_is_ended_with_its_children(tmp_path: Path) -> None:
    command = "import os, subprocess, sys\nopen('pids', 'w').write(f'{os.getpid()} {subprocess.Popen([\"cat\", \"/dev/zero\"], stdout=subprocess.DEVNULL).pid}')\nsys.stdin = open('/dev/zero')\nwhile True: sys.stdin.read(1)"
    measured = measure([*PYTHON, command], tmp_path, {}, limit=1)
    assert measured.out_of_time
    assert measured.code == -9
    pids = [int(pid) for pid in (tmp_path / "pids").read_text().split()]
    assert not [pid for pid in pids if psutil.pid_exists(pid) and psutil.Process(pid).status() != "zombie"]


def test_an_environment_that_cannot_be_made_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(NotRunError, match=r"dlt can't be installed: .+"):
        installed("dlt", [str(tmp_path / "there-is-no-such-1.0-py3-none-any.whl")])
    assert not list((tmp_path / "packhorse" / "bench").glob("*/ready"))


def missing() -> dict[str, str]:
    raise NotRunError("it is <not> installed: apt install it")


def dying(name: str, command: str) -> Contender:
    return Contender(name, "dies", "a script", lambda: {}, lambda *_: Started([*PYTHON, command]))


def test_a_peer_that_dies_is_missing_or_brings_nothing_is_a_line_that_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    dies = dying("dies", "raise MemoryError('heap <exhausted>, for bench:bench@here')")
    lies = dying("lies", "pass")
    absent = Contender("absent", "copies", "a script", missing, lies.start)
    monkeypatch.setattr(pipe, "PEERS", (dies, lies, absent))
    monkeypatch.setattr(pipe, "_contenders", lambda arguments: [PIPE, dies, lies, absent])
    monkeypatch.setattr(sys, "argv", ["pipe", "--contacts", "200", "--output", str(tmp_path)])
    code = pipe.main()
    table, told = capsys.readouterr()
    if code == 2:
        pytest.skip(told)
    assert code == 0
    assert "dies: not measured: exit 1: MemoryError: heap <exhausted>, for ***here" in table
    assert "absent: not measured: it is <not> installed: apt install it" in table
    assert "lies: a script; NOT THE ROWS that should be there" in table
    document = json.loads(next(tmp_path.glob("*.json")).read_text(encoding="utf-8"))
    by_name = {contender["name"]: contender for contender in document["contenders"]}
    assert by_name["pipe"]["rows"] == sum(document["rows_to_arrive"].values()) > 200
    assert by_name["pipe"]["ratio_to_pipe"] == 1
    assert [run["right_rows"] for run in by_name["pipe"]["runs"]] == [True]
    assert by_name["lies"]["runs"][0] | {"rows": 0, "right_rows": False} == by_name["lies"]["runs"][0]
    assert "MemoryError" in by_name["dies"]["not_measured"]
    drawn = ET.parse(next(tmp_path.glob("*.svg"))).getroot()
    assert any("heap <exhausted>" in (text.text or "") for text in drawn.iter("{http://www.w3.org/2000/svg}text"))
