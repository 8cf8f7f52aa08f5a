"""A purge for a person: what goes, what stays elsewhere, what is done."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from rich.console import Console

from cli.views.rehearse import size
from cli.views.text import one_line, visible

if TYPE_CHECKING:
    from engine.purge import Purgeable


def show_foreseen(console: Console, found: Sequence[Purgeable], left: Mapping[str, str]) -> None:
    """A job after the other: what would go, and what a purge doesn't reach."""
    for each in found:
        if each.purged:
            continue
        console.print(f"{each.job}: {each.files:,} files ({size(each.bytes)}) and the values in its log", style="bold")
        if each.open:
            console.print(f"  not settled, and can't be afterwards: {one_line(each.open)}")
        _show_elsewhere(console, each)
    for job, reason in left.items():
        console.print(f"{job}: left alone: {one_line(reason)}")
    if not found:
        console.print("nothing to purge")


def show_done(console: Console, found: Sequence[Purgeable], done: Sequence[Purgeable]) -> None:
    """What was done with each job."""
    for each in found:
        if each in done:
            console.print(
                f"{each.job}: purged: {each.files:,} files ({size(each.bytes)}) and the values in its log are gone; its accounts stay"
            )
        elif each.purged:
            console.print(f"{each.job}: was purged already")


def _show_elsewhere(console: Console, each: Purgeable) -> None:
    if not each.cleaned_up:
        held = f" and {each.quarantined:,} raw rows in quarantine" if each.quarantined else ""
        console.print(f"  stays in the target until `migrate cleanup {each.job}`: ledger, crosswalk{held}")
    for place in each.stays:
        console.print(f"  stays in the job's folder: {visible(place, 500)}")
    for place in each.outside:
        console.print(f"  elsewhere, yours to remove: {visible(place, 500)}")
