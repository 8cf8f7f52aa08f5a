"""Checks for a person: a line each, and what to do under those that aren't well."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from rich.console import Console

from cli.views.text import one_line

_STYLES = {"ok": "green", "warn": "yellow", "fail": "bold red"}


class Line(Protocol):
    """What is shown of a check."""

    @property
    def name(self) -> str:
        """What was looked at."""

    @property
    def state(self) -> str:
        """ok, warn or fail."""

    @property
    def found(self) -> str:
        """What was found."""

    @property
    def advice(self) -> str:
        """What to do; empty when all is well."""


def show(console: Console, checks: Sequence[Line]) -> None:
    """The lines."""
    width = max((len(check.name) for check in checks), default=0)
    for check in checks:
        console.print(f"{check.state:<4}", style=_STYLES.get(check.state, ""), end="  ")
        console.print(f"{check.name:<{width}}  {one_line(check.found)}")
        if check.advice:
            console.print(f"{'':<{width + 8}}{one_line(check.advice)}")
