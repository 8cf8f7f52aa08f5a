"""Lessons for a person: which remedy was tried on which signature, and how often it held."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from rich.console import Console

from cli.views.table import Heading, number, show_table
from cli.views.text import visible
from workspace.experience_store import Lesson

_REMEDY = 60  # characters of a remedy in a table
_SHOWN = 20  # lessons that are shown of those that go out


def show_lessons(console: Console, lessons: Sequence[Lesson], all_: int) -> None:
    """A line a lesson; `all_` is how many there are."""
    if not all_:
        console.print("nothing was learnt yet: lessons come from answers, and from remedies that were tried")
        return
    headings = [
        Heading("kind"), Heading("signature", wrap=True), Heading("remedy", wrap=True), number("tried"), number("held"),
        number("trust"), Heading("last seen"),
    ]  # fmt: skip
    rows = [
        [each.kind, each.signature, visible(each.remedy, _REMEDY), each.tried, each.held, f"{each.trust:.2f}",
         f"{each.last_seen:%Y-%m-%d}"]
        for each in lessons
    ]  # fmt: skip
    show_table(console, headings, rows)
    if all_ > len(lessons):
        console.print(f"{len(lessons):,} of {all_:,} lessons; --limit shows more")


def show_whole(console: Console, lessons: Sequence[Lesson]) -> None:
    """Each lesson with its remedy uncut."""
    for each in lessons:
        console.print(f"{each.kind}  {visible(each.signature)}", style="bold")
        console.print(f"  remedy     {visible(each.remedy)}")
        console.print(f"  held       {each.held:,} of {each.tried:,} times, trust {each.trust:.2f}")
        console.print(f"  last seen  {each.last_seen:%Y-%m-%d %H:%M} UTC")


def show_going(console: Console, lessons: Sequence[Lesson], stays: int, file: str) -> None:
    """What goes out, and what stays."""
    if lessons:
        show_lessons(console, lessons[:_SHOWN], len(lessons))
    counts = Counter(each.kind for each in lessons)
    told = ", ".join(f"{count:,} {kind}" for kind, count in sorted(counts.items())) or "nothing"
    console.print(f"goes out: {told}" + (f", in {visible(file)}" if file else ""))
    if stays:
        console.print(f"stays here: {stays:,} value_map; they hold words out of picklists (--with-values)")
