"""Runs ssh for one of our processes, and ends it when that one ends, however it does: its standard input is a pipe that the
process keeps open while it lives. A program of its own, for an interpreter without packages; arguments are ssh's.
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import subprocess
import sys

_PR_SET_PDEATHSIG = 1


def _end_with_parent() -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def main() -> None:
    """Until ssh ends, or the pipe does; exits as ssh did."""
    wakes, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    # where it can be had, ssh ends with this process too, should somebody kill it
    ours = _end_with_parent if sys.platform == "linux" else None
    ssh = subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, preexec_fn=ours)
    while ssh.poll() is None:
        ready = select.select([0, wakes], [], [])[0]
        if 0 in ready:
            ssh.kill()
            break
        os.read(wakes, 64)
    sys.exit(abs(ssh.wait()))


if __name__ == "__main__":
    main()
