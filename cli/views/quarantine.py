"""Quarantine for a person: clusters with their counts, rows with the value that failed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from rich.console import Console

from cli.views.table import Heading, number, show_table
from cli.views.text import visible
from workspace.progress import Progress

if TYPE_CHECKING:
    from engine.retry import RetryOutcome


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
        {
            "entity": name,
            "signature": signature,
            "code": f.code,
            "field": f.field,
            "count": f.count,
            "open": f.open,
            "dropped": f.dropped,
        }
        for name, entity in progress.entities.items()
        for signature, f in entity.failures.items()
    ]
    return sorted(found, key=lambda each: (-int(str(each["count"])), str(each["entity"]), str(each["signature"])))


def show_clusters(console: Console, job: str, found: Sequence[dict[str, Any]]) -> None:
    """A line a cluster."""
    if not found:
        console.print(f"{job}: nothing in quarantine")
        return
    headings = [
        number("open"), number("dropped"), Heading("entity"), Heading("reason"), Heading("signature", wrap=True),
        Heading("example", wrap=True),
    ]  # fmt: skip
    rows = [
        [each["open"], each["dropped"], each["entity"], each["code"], each["signature"], _example(each.get("example"))]
        for each in found
    ]
    show_table(console, headings, rows)
    console.print(f"rows of a cluster: migrate quarantine show {job} --signature '...'")


def _example(example: dict[str, Any] | None) -> str | None:
    """The key of a row, and the value that failed."""
    if example is None:
        return None
    key = visible("|".join(example["key"]), 40)
    return key if example["column"] is None else f"{key}: {example['column']} {visible(example['value'], 40)}"


def show_retried(console: Console, job: str, outcome: RetryOutcome, left: Left) -> None:
    """A row an entity, what the plan's change means, and what is left in quarantine."""
    headings = [
        Heading("entity"), number("driven"), number("inserted"), number("updated"), number("unchanged"), number("excluded"),
        number("stay"), number("references"),
    ]  # fmt: skip
    names = ("driven", "inserted", "updated", "unchanged", "excluded", "stay", "references")
    rows = [[each.entity, *(getattr(each, name) for name in names)] for each in outcome.entities]
    if rows:
        show_table(console, headings, rows)
    for entity, fields in outcome.changed.items():
        line = f"{visible(entity)}: {', '.join(map(visible, fields))} changed in plan version {outcome.plan_version}"
        console.print(f"{line}; rows loaded before keep what they have")
    if not any(each.driven for each in outcome.entities):
        console.print(f"{job}: no such row is open in quarantine")
    console.print(f"{job}: {left.open:,} rows open in quarantine, {left.dropped:,} dropped")


@dataclass(frozen=True)
class Left:
    """Rows in quarantine now."""

    open: int
    dropped: int

    @staticmethod
    def of(progress: Progress) -> Left:
        """Those of a job."""
        dropped = sum(entity.dropped for entity in progress.entities.values())
        return Left(progress.counts.quarantined - dropped, dropped)


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
