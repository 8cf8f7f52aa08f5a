"""Quarantine for a person: clusters with their counts, rows with the value that failed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from rich.console import Console

from cli.views.table import Heading, number, show_table
from cli.views.text import visible
from workspace.progress import Progress


class Row(Protocol):
    """What is shown of a row; `engine.quarantine.QuarantinedRow` is one."""

    @property
    def entity(self) -> str:
        """The entity."""

    @property
    def key(self) -> tuple[str, ...]:
        """The row's key in the source."""

    @property
    def field(self) -> str:
        """The target column that failed; empty for the whole row."""

    @property
    def code(self) -> str:
        """The reason's code."""

    @property
    def detail(self) -> str:
        """The reason in words."""


def clusters(progress: Progress) -> list[dict[str, Any]]:
    """The clusters of a job as JSON values, most rows first."""
    found = [
        {"entity": name, "signature": signature, "code": f.code, "field": f.field, "count": f.count}
        for name, entity in progress.entities.items()
        for signature, f in entity.failures.items()
    ]
    return sorted(found, key=lambda each: (-int(str(each["count"])), str(each["entity"]), str(each["signature"])))


def show_clusters(console: Console, job: str, found: Sequence[dict[str, Any]]) -> None:
    """A line a cluster."""
    if not found:
        console.print(f"{job}: nothing in quarantine")
        return
    headings = [number("rows"), Heading("entity"), Heading("reason"), Heading("signature", wrap=True)]
    rows = [[each["count"], each["entity"], each["code"], each["signature"]] for each in found]
    show_table(console, headings, rows)
    console.print(f"rows of a cluster: migrate quarantine show {job} --signature '...'")


def show_rows(console: Console, rows: Sequence[Row]) -> None:
    """A line a row."""
    if not rows:
        console.print("no such row in quarantine")
        return
    headings = [
        Heading("entity"), Heading("key"), Heading("field"), Heading("reason"), Heading("detail", wrap=True)
    ]  # fmt: skip
    table = [
        [row.entity, visible("|".join(row.key), 40), row.field, row.code, visible(row.detail, 120)] for row in rows
    ]
    show_table(console, headings, table)
