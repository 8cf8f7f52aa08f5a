"""The list of DSNs that are kept: where each leads, and never a password."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from rich.console import Console

from cli.views.table import Heading, show_table


class Line(Protocol):
    """What is shown of a DSN."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def system(self) -> str:
        """The kind of system."""

    @property
    def host(self) -> str:
        """The host; empty for files."""

    @property
    def port(self) -> int | None:
        """The port, where it was given."""

    @property
    def database(self) -> str:
        """The database, or the path."""

    @property
    def user(self) -> str:
        """Who logs in; empty for files."""

    @property
    def ssh(self) -> str:
        """The host that the way leads through; empty for none."""


def show(console: Console, dsns: Sequence[Line]) -> None:
    """A line each."""
    if not dsns:
        console.print("no DSN is kept yet; keep one: migrate dsn add NAME")
        return
    headings = [
        Heading("name"),
        Heading("system"),
        Heading("host"),
        Heading("database", wrap=True),
        Heading("user"),
        Heading("through"),
    ]
    rows = [
        [each.name, each.system, _place(each) or None, each.database, each.user or None, each.ssh or None]
        for each in dsns
    ]
    show_table(console, headings, rows)


def _place(dsn: Line) -> str:
    return f"{dsn.host}:{dsn.port}" if dsn.port else dsn.host
