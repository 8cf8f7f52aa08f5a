"""An error for a person: its code and what happened, where, and what to do, in that order."""

from __future__ import annotations

from rich.console import Console

from cli.secrets import masked
from cli.views.text import one_line


def show_error(
    console: Console,
    code: str,
    what: str,
    where: str,
    advice: str,
    details: tuple[str, ...] = (),
    *,
    word: str = "error",
) -> None:
    """Prints it; `word` is what it is called (stopped, waiting), passwords are masked."""
    console.print(f"{word} {code}:", style="bold red" if word == "error" else "bold yellow", end=" ")
    console.print(masked(one_line(what)))
    for line in details:
        console.print(f"  {masked(one_line(line))}")
    for name, text in (("at", where), ("do", advice)):
        if text:
            console.print(f"  {name}: {masked(one_line(text))}")
