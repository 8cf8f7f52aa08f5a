from __future__ import annotations

import os
import signal
import socket
import stat
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from workspace.errors import JobLockedError, WorkspaceError
from workspace.lock import JobLock, lock_holder
from workspace.paths import JobPaths

HOLD = textwrap.dedent(
    """
    import signal, sys, time
    from pathlib import Path
    from workspace.lock import JobLock
    from workspace.paths import JobPaths
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs start with it ignored
    with JobLock(JobPaths(Path(sys.argv[1]), "job")):
        print("held", flush=True)
        time.sleep(600)
    """
)


@pytest.fixture
def paths(tmp_path: Path) -> JobPaths:
    return JobPaths(tmp_path, "job").create()


@contextmanager
def holder(paths: JobPaths, script: str = HOLD) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen([sys.executable, "-c", script, str(paths.base)], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process
    finally:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


def test_a_second_process_is_told_who_holds_the_lock(paths: JobPaths) -> None:
    with holder(paths) as process:
        with pytest.raises(JobLockedError) as caught, JobLock(paths):
            pass
        assert f"process {process.pid} on {socket.gethostname()}" in str(caught.value)
        assert caught.value.exit_code == 2
        assert lock_holder(paths) == f"process {process.pid} on {socket.gethostname()}"


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_the_lock_goes_with_its_process(paths: JobPaths, how: signal.Signals) -> None:
    with holder(paths) as process:
        process.send_signal(how)
        process.wait(30)
        assert lock_holder(paths) is None
        with JobLock(paths):
            assert lock_holder(paths) == f"process {os.getpid()} on {socket.gethostname()}"


def test_it_is_released_at_the_end_of_the_block_and_on_an_error(paths: JobPaths) -> None:
    with JobLock(paths):
        pass
    assert lock_holder(paths) is None
    with pytest.raises(ZeroDivisionError), JobLock(paths):
        _ = 1 / 0
    with JobLock(paths):
        assert paths.lock.exists()
    assert paths.lock.exists()
    assert stat.S_IMODE(paths.lock.stat().st_mode) == 0o600


def test_two_locks_of_one_process_exclude_each_other(paths: JobPaths) -> None:
    with JobLock(paths), pytest.raises(JobLockedError, match=f"process {os.getpid()} "), JobLock(paths):
        pass


def test_looking_who_holds_it_does_not_let_go_of_it(paths: JobPaths) -> None:
    with JobLock(paths):
        for _ in range(3):
            assert lock_holder(paths) is not None
        paths.lock.read_text()  # with POSIX record locks, closing any file of the process would release it
        with pytest.raises(JobLockedError), JobLock(paths):
            pass


def test_a_forked_child_that_outlives_the_holder_does_not_keep_it(paths: JobPaths) -> None:
    script = textwrap.dedent(
        """
        import os, sys, time
        from pathlib import Path
        from workspace.lock import JobLock
        from workspace.paths import JobPaths
        with JobLock(JobPaths(Path(sys.argv[1]), "job")):
            child = os.fork()
            if child == 0:
                time.sleep(600)
                os._exit(0)
            (Path(sys.argv[1]) / "child").write_text(str(child))
            print("held", flush=True)
            time.sleep(600)
        """
    )
    with holder(paths, script) as process:
        child = int((paths.base / "child").read_text())
        try:
            assert lock_holder(paths) is not None  # the child closed its copy, and the parent still has it
            process.kill()
            process.wait()
            os.kill(child, 0)  # alive
            with JobLock(paths):
                pass
        finally:
            os.kill(child, signal.SIGKILL)


def test_a_holder_that_dies_just_now_is_waited_for(paths: JobPaths) -> None:
    with holder(paths) as process:
        killer = subprocess.Popen(["sh", "-c", f"sleep 0.2; kill -9 {process.pid}"])
        begun = time.monotonic()
        with JobLock(paths):
            assert 0.1 < time.monotonic() - begun < 2
        killer.wait()


def test_a_job_that_is_not_there_has_no_lock(tmp_path: Path) -> None:
    paths = JobPaths(tmp_path, "job")
    assert lock_holder(paths) is None
    with pytest.raises(WorkspaceError, match="no job 'job' here"), JobLock(paths):
        pass
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("content", [b"", b"{", b"[1]", b"\xff\xfe", b'{"pid": "x", "host": 3}'])
def test_a_file_that_names_nobody_still_locks(paths: JobPaths, content: bytes) -> None:
    with JobLock(paths):
        paths.lock.write_bytes(content)
        assert lock_holder(paths) == "another process"
        with pytest.raises(JobLockedError, match="being run by another process"), JobLock(paths):
            pass
