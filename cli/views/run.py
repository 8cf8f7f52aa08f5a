"""What a person is shown before the first row moves."""

from __future__ import annotations

from typing import Any

from rich.console import Console


def show_before(console: Console, preview: Any) -> None:
    """The preview, short: counts by outcome and what is left behind."""
    console.print(str(preview))
