"""A plan for a person: its entities in load order, and what it leaves out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from cli.views.table import Heading, number, show_table
from cli.views.text import visible

if TYPE_CHECKING:
    from engine.check import CheckedEntity
    from engine.plan import Plan


def entities(checked: Sequence[CheckedEntity]) -> list[dict[str, Any]]:
    """The entities as JSON values, in load order."""
    return [
        {
            "entity": entity.name,
            "from": entity.plan.from_,
            "to": entity.plan.to,
            "key": list(entity.plan.key),
            "fields": [field.column.name for field in entity.fields],
            "references": list(entity.references),
            "deferred": [field.column.name for field in entity.deferred],
            "unaccounted": list(entity.unaccounted),
        }
        for entity in checked
    ]


def show_entities(console: Console, found: Sequence[dict[str, Any]]) -> None:
    """A line an entity, the columns that the plan doesn't speak of, and what reading without a key means."""
    headings = [
        Heading("entity"), Heading("from"), Heading("to"), number("fields"), Heading("refers to", wrap=True),
        Heading("second pass", wrap=True),
    ]  # fmt: skip
    rows = [
        [
            each["entity"],
            visible(" ".join(each["from"].split()), 30),
            each["to"],
            len(each["fields"]),
            ", ".join(each["references"]) or None,
            ", ".join(each["deferred"]) or None,
        ]
        for each in found
    ]
    show_table(console, headings, rows)
    for each in found:
        if each["unaccounted"]:
            columns = ", ".join(map(visible, each["unaccounted"]))
            console.print(f"{each['entity']}: neither mapped nor named in unmapped: {columns}", style="yellow")
        if not each["key"]:
            line = "has no key: it is read in one piece, and a read that is interrupted begins anew"
            console.print(f"{each['entity']}: {line}", style="yellow")
    console.print("the plan can be executed")


def show_draft(
    console: Console,
    job: str,
    plan: Plan,
    held: Mapping[str, Sequence[str]],
    questions: int,
    file: Path | None,
) -> None:
    """What was drafted, what waits, and what to do next."""
    fields = sum(len(entity.fields) for entity in plan.entities.values())
    console.print(f"drafted {len(plan.entities)} entities with {fields} fields" + (f" in {file}" if file else ""))
    for name, waiting in held.items():
        console.print(f"  held: {visible(name)} waits for {', '.join(map(visible, waiting))}", style="yellow")
    if questions:
        console.print(f"  {questions} questions wait: migrate answer {job}")
    if file:
        console.print(f"next: migrate plan check {file}; migrate preview --plan {file}")
