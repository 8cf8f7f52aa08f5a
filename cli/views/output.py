"""Where output goes: results on stdout, progress and errors on stderr, JSON as one object.

Consoles read no markup: `[red]` in a record value is printed as it stands. Nor do they send on what steers a terminal:
a name out of either system stands in many lines, and one that a view forgot to make safe is made so here.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from typing import Any, TextIO

from rich.console import Console

from cli.views.text import visible_lines


def on_stdout() -> Console:
    """The console for results."""
    return _console(sys.stdout)


def on_stderr() -> Console:
    """The console for progress, notes and errors."""
    return _console(sys.stderr)


class _SafeConsole(Console):
    """Prints texts without control and format characters; line ends stay."""

    def print(self, *objects: Any, **how: Any) -> None:
        """As Rich's; what Rich renders itself (tables, assembled texts) comes with safe cells."""
        super().print(*(visible_lines(each) if isinstance(each, str) else each for each in objects), **how)


def _console(stream: TextIO) -> Console:
    # off a terminal lines are as long as they are, never cut to a width that nobody has
    wide = None if stream.isatty() else 10_000
    return _SafeConsole(file=stream, markup=False, highlight=False, emoji=False, width=wide, soft_wrap=True)


def is_plain(console: Console) -> bool:
    """True where there is no terminal, or one that can do nothing: text without frames and colour."""
    return not console.is_terminal or os.environ.get("TERM") == "dumb"


def print_json(document: Mapping[str, Any]) -> None:
    """One JSON object on stdout; characters outside ASCII as escapes, so that it is safe on any terminal."""
    print(json.dumps(document, indent=2, default=str))
