"""Ctrl-C and SIGTERM: the first asks the job to finish the batch at hand, the second ends it at once.

The signal is noticed by a thread of its own, so that it counts even while the main thread is inside the
database engine. Ending at once loses nothing: the target's ledger says what was committed.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import sys
import threading
from collections.abc import Iterator

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
INTERRUPTED = 130
_SHOW_CURSOR = "\x1b[?25h"


class StopFlag:
    """False until the first signal; callable, as the engine polls it. `signal` names what was sent."""

    def __init__(self) -> None:
        self.signal = ""

    def __call__(self) -> bool:
        """True once the job was asked to stop."""
        return bool(self.signal)


@contextlib.contextmanager
def stop_on_signals() -> Iterator[StopFlag]:
    """A flag that the first SIGINT or SIGTERM in the block sets; the second exits the process with 130."""
    flag = StopFlag()
    reader, writer = socket.socketpair()
    writer.setblocking(False)
    before = {number: signal.signal(number, lambda *_: None) for number in _SIGNALS}
    waking = signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)
    watcher = threading.Thread(target=_watch, args=(reader, flag), daemon=True, name="signals")
    watcher.start()
    try:
        yield flag
    finally:
        signal.set_wakeup_fd(waking)
        for number, handler in before.items():
            signal.signal(number, handler)
        writer.close()
        watcher.join(timeout=1)
        reader.close()


def _watch(reader: socket.socket, flag: StopFlag) -> None:
    while received := reader.recv(1):
        if received[0] not in _SIGNALS:
            continue
        if flag.signal:
            _end_at_once()
        flag.signal = signal.Signals(received[0]).name
        _tell("\nfinishing the batch at hand; once more to stop at once\n")


def _end_at_once() -> None:
    _tell(f"{_SHOW_CURSOR if sys.stderr.isatty() else ''}stopped; migrate resume goes on\n")
    os._exit(INTERRUPTED)


def _tell(text: str) -> None:
    with contextlib.suppress(OSError):  # straight to the file: the main thread may hold the stream's lock
        os.write(2, text.encode())
