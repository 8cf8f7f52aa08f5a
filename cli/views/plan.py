"""A plan for a person: its entities in load order, and what it leaves out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from cli.views.table import Heading, number, show_table
from cli.views.text import one_line, visible
from workspace.difference import Item

if TYPE_CHECKING:
    from engine.check import CheckedEntity
    from engine.field_story import FieldStory
    from engine.plan import Plan

_MOST_CANDIDATES = 8


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


def show_story(console: Console, story: FieldStory) -> None:
    """What the plan says of the field, then what happened, in the order in which it did."""
    name = f"{visible(story.entity)}.{visible(story.column)}"
    if story.says is None:
        console.print(f"{name}: left out by plan version {story.plan_version}", style="bold")
    else:
        said = ", ".join(f"{key}: {one_line(str(value))}" for key, value in story.says.items())
        console.print(f"{name}: {said}  (plan version {story.plan_version})", style="bold")
    if story.value_map is not None:
        console.print(f"  its value map has {len(story.value_map):,} values")
    if not story.chapters:
        console.print("  nobody decided it in this job: it stood in the plan that was given")
    for each in story.chapters:
        by = "" if each.kind == "question" else f", by {visible(each.rung)}"
        sure = "" if each.sure is None else f", {each.sure:.2f} sure"
        price = f"; {each.calls:,} calls, {each.tokens:,} tokens, {each.seconds:.1f} s" if each.calls else ""
        console.print(
            f"event {each.position:,}  {each.at:%H:%M:%S}  {each.kind}{by}{sure}{price}: {visible(each.what, 200)}"
        )
        if each.why:
            console.print(f"  because {one_line(each.why)}")
        for candidate in each.candidates[:_MOST_CANDIDATES]:
            weight = candidate.get("weight")
            share = f"{weight:.2f}  " if isinstance(weight, int | float) and weight else ""
            label = visible(candidate.get("label") or candidate.get("answer"), 60)
            evidence = candidate.get("evidence") or {}
            told = "; ".join(f"{visible(key)} {_told(value)}" for key, value in evidence.items())
            console.print(f"    {share}{label}{f'  ({told})' if told else ''}")
    for signature, rows in story.failed.items():
        console.print(f"  {rows:,} rows in quarantine: {one_line(signature)}", style="yellow")


def show_items(console: Console, items: Sequence[Item]) -> None:
    """A line a difference between two plans."""
    for item in items:
        console.print(one_line(item.line), style={"appeared": "green", "went": "red"}.get(item.what, ""))


def _told(value: object) -> str:
    return visible(", ".join(map(str, value)) if isinstance(value, list) else value, 60)
