"""A typed password: gone from the process list within a second, and kept nowhere."""

from __future__ import annotations

import socket
import subprocess
import time
from pathlib import Path

import psutil
import pytest

from cli.secrets import hide_passwords, masked
from tests.cli_runner import MIGRATE, environment

SECRET = "s3cr3t/pa:ss@word"


@pytest.mark.parametrize(
    ("argument", "shown"),
    [
        ("mysql://crm:secret@db:3306/crm", "mysql://crm:***@db:3306/crm"),
        ("postgresql://u:a@b:c/d@host/db", "postgresql://u:***@host/db"),
        ("--target=postgres://u:secret@h/db", "--target=postgres://u:***@h/db"),
        ("postgresql://u@h/db?password=secret&sslmode=require", "postgresql://u@h/db?password=***&sslmode=require"),
        ("mysql+mysqldb://u:p@h/db", "mysql+mysqldb://u:***@h/db"),
        ("postgresql://:secret@h/db", "postgresql://:***@h/db"),
        ("postgresql://me@h/db", "postgresql://me@h/db"),
        ("sqlite:///some/file.db", "sqlite:///some/file.db"),
        ("folder/of/files", "folder/of/files"),
        ("${LEGACY_DSN}", "${LEGACY_DSN}"),
    ],
)
def test_masked(argument: str, shown: str) -> None:
    assert masked(argument) == shown


def test_a_variable_is_no_typed_password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("setproctitle.setproctitle", lambda title: None)
    assert not hide_passwords(["run", "mysql://u:${PW}@h/db"])
    assert not hide_passwords(["run", "mysql://u@h/db"])
    assert hide_passwords(["run", "mysql://u:pw@h/db"])


def test_ps_does_not_show_a_password_a_second_after_the_start(tmp_path: Path) -> None:
    silent = socket.create_server(("127.0.0.1", 0))  # never answers, so that there is time to look
    dsn = f"postgresql://crm:{SECRET}@127.0.0.1:{silent.getsockname()[1]}/crm"
    with silent, subprocess.Popen(
        [MIGRATE, "doctor", f"postgresql://crm:{SECRET}@127.0.0.1:1/crm", dsn],
        cwd=tmp_path, env=environment(tmp_path), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        time.sleep(1)
        whole = subprocess.run(
            ["ps", "-ww", "-o", "args=", "-p", str(process.pid)], capture_output=True, text=True, check=True
        )
        seen = [
            " ".join(each.cmdline())
            for each in [psutil.Process(process.pid), *psutil.Process(process.pid).children(recursive=True)]
        ]
        process.kill()
        out, err = process.communicate()
    for text in (whole.stdout, *seen, out, err):
        assert SECRET not in text
        assert "s3cr3t" not in text
    assert "migrate doctor postgresql://crm:***@127.0.0.1:1/crm" in whole.stdout
    assert err.count("stays in your shell's history") == 1
