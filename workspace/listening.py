"""Who is told of events at once, as this process records them: a log beside the workspace, traces, a person far away.

A listener is called after the events are durable and in the order of the log, by the thread that recorded them: it
must be quick. What it raises never reaches the job; it is told of nothing further.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from workspace.log import Entry
    from workspace.paths import JobPaths

Listener = Callable[["JobPaths", "Sequence[Entry]"], None]

_listeners: list[Listener] = []


@contextlib.contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """In the block, `listener` is told of each event of any job that this process records."""
    _listeners.append(listener)
    try:
        yield
    finally:
        with contextlib.suppress(ValueError):
            _listeners.remove(listener)


def tell(paths: JobPaths, entries: Sequence[Entry]) -> None:
    """Tells all listeners."""
    for listener in tuple(_listeners):
        try:
            listener(paths, entries)
        except Exception:
            with contextlib.suppress(ValueError):
                _listeners.remove(listener)
