"""The demo, small: it kills itself, resumes, verifies, leaves the records to look at, and works again."""

from __future__ import annotations

import re
import shlex
import shutil
import signal
import subprocess
from pathlib import Path

import psutil
import pytest

from sample_data.servers import DemoServer
from tests.cli_runner import migrate


@pytest.mark.timeout(900)
def test_the_demo_works_and_works_again(tmp_path: Path) -> None:
    pids = set()
    try:
        for _ in range(2):
            ran = migrate("demo", "--contacts", "600", "--model", "none", cwd=tmp_path, timeout=400)
            pids |= {int(found) for found in re.findall(r"PostgreSQL runs as process (\d+)", ran.out)}
            assert ran.code == 0, ran
            ran.no_traceback()
            assert "killed with SIGKILL in mid-load" in ran.out
            assert "reconciled: read = loaded + merged + excluded + quarantined" in ran.out
            assert "\x1b" not in ran.out
            psql = next(line.strip() for line in ran.out.splitlines() if "psql" in line)
            count = subprocess.run(
                [*shlex.split(psql), "-Atc", "SELECT count(*) FROM people"], capture_output=True, text=True, check=True
            )
            assert int(count.stdout) > 400
        assert len(pids) == 1  # the server of the first is used again
        status = migrate("status", "--json", cwd=tmp_path / ".demo").json
        assert status["progress"]["verified"] is True
    finally:
        for pid in pids:
            psutil.Process(pid).send_signal(signal.SIGINT)
            psutil.wait_procs([psutil.Process(pid)] if psutil.pid_exists(pid) else [], timeout=30)
        shutil.rmtree(DemoServer(tmp_path / ".demo" / "postgres").socket_folder, ignore_errors=True)
