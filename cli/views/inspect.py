"""The workspace for a person: belief, progress, experience, the log and differences."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from rich.console import Console

from cli.views import status
from cli.views.table import Heading, number, show_table
from cli.views.text import one_line, visible
from workspace.belief import Belief
from workspace.difference import Difference
from workspace.events import event_fields
from workspace.experience import Experience
from workspace.log import Entry
from workspace.progress import Progress
from workspace.state import State

_FOLDS = ("belief", "progress", "experience")


def document(job: str, state: State, wanted: Sequence[str]) -> dict[str, Any]:
    """The state as JSON values, only the folds that are wanted (none named: all)."""
    folds = state.to_dict()
    return {"job": job, "position": state.position, **{name: folds[name] for name in wanted or _FOLDS}}


def entry(each: Entry) -> dict[str, Any]:
    """An event of the log as JSON values."""
    at = each.at.isoformat(timespec="milliseconds")
    return {"position": each.position, "at": at, "type": each.event.type, **event_fields(each.event)}


def only(found: Difference, wanted: Sequence[str]) -> Difference:
    """The differences within the folds that are wanted (none named: all)."""
    if not wanted:
        return found
    return replace(found, items=tuple(item for item in found.items if item.path[0] in wanted))


def show_state(console: Console, job: str, state: State, wanted: Sequence[str]) -> None:
    """The folds that are wanted (none named: all)."""
    console.print(f"{job} at event {state.position}", style="bold")
    for name in wanted or _FOLDS:
        console.print(f"\n{name}", style="bold")
        if name == "belief":
            _show_belief(console, state.belief)
        elif name == "progress":
            _show_progress(console, state.progress)
        else:
            _show_experience(console, state.experience)


def show_log(console: Console, entries: Iterable[Entry]) -> None:
    """A line an event."""
    for each in entries:
        console.print(log_line(each))


def log_line(each: Entry) -> str:
    """An event of the log in one line: its position, when it was recorded (UTC), what it says."""
    fields = " ".join(
        f"{name}={visible(value, 70)}" for name, value in event_fields(each.event).items() if _said(value)
    )
    return f"{each.position:>6} {each.at:%H:%M:%S} {each.event.type:<18} {fields}"


def show_difference(console: Console, found: Difference) -> None:
    """A line a difference; texts of several lines as a unified diff."""
    for line in str(replace(found, items=())).splitlines()[: 0 if found.items else 1]:
        console.print(line)
    for item in found.items:
        style = {"appeared": "green", "went": "red"}.get(item.what, "")
        console.print(visible(item.line), style=style)
        for line in item.lines:
            console.print(f"    {visible(line)}")


def _show_belief(console: Console, belief: Belief) -> None:
    console.print(f"  {visible(belief.source)} -> {visible(belief.target)}; plan version {belief.plan_version}")
    if belief.profiles:
        rows = [
            [side, table, profile.facts.get("rows"), len(profile.facts.get("columns") or ())]
            for (side, table), profile in sorted(belief.profiles.items())
        ]
        show_table(console, [Heading("side"), Heading("table"), number("rows"), number("columns")], rows)
    if belief.claims:
        rows = [
            [subject, claim, f"{held.confidence:.2f}", held.position]
            for subject, claims in sorted(belief.claims.items())
            for claim, held in sorted(claims.items())
        ]
        show_table(
            console,
            [Heading("about"), Heading("held true", wrap=True), number("confidence"), number("event")],
            rows,
        )
    if belief.decisions:
        rows = [
            [kind, subject, choice_text(each.made.choice), each.made.rung, f"{each.made.confidence:.2f}", each.made.why]
            for (kind, subject), each in sorted(belief.decisions.items())
        ]
        headings = [
            Heading("decision"), Heading("about"), Heading("choice", wrap=True), Heading("rung"),
            number("confidence"), Heading("why", wrap=True),
        ]  # fmt: skip
        show_table(console, headings, rows)


def choice_text(choice: Any) -> str:
    """A decision's choice for a person."""
    if choice is None:
        return "none of these"
    return visible(choice, 80)


def _show_progress(console: Console, progress: Progress) -> None:
    console.print(f"  phase {progress.phase or '-'}, plan version {progress.plan_version}")
    if progress.entities:
        status.show_entities(console, progress)
    for line in progress.attend_next:
        console.print(f"  {one_line(line)}")


def _show_experience(console: Console, experience: Experience) -> None:
    if not experience.met and not experience.actions:
        console.print("  nothing yet")
        return
    if experience.met:
        rows = []
        for signature, met in sorted(experience.met.items(), key=lambda pair: -sum(pair[1].rows.values())):
            remedies = experience.remedies.get(signature, {})
            tried = ", ".join(f"{remedy} held {t.held} of {t.tried}" for remedy, t in remedies.items())
            rows.append([sum(met.rows.values()), signature, tried or None])
        headings = [number("rows"), Heading("signature", wrap=True), Heading("remedies tried", wrap=True)]
        show_table(console, headings, rows)
    for action, outcomes in sorted(experience.actions.items()):
        told = ", ".join(f"{outcome or 'not ended'} {count}" for outcome, count in outcomes.items())
        console.print(f"  {visible(action)}: {visible(told)}")


def _said(value: object) -> bool:
    return value not in (None, "", [], {}) and value is not False
