"""Questions for a person: what is asked, the candidates with their weights, and what waits for the answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Console

from cli.views.table import Heading, number, show_table
from cli.views.text import one_line, visible

if TYPE_CHECKING:
    from agent.questions import Question


def document(question: Question) -> dict[str, Any]:
    """A question as JSON values."""
    return {
        "id": question.id,
        "kind": question.kind,
        "subject": question.subject,
        "text": question.text,
        "candidates": list(question.candidates),
        "evidence": question.evidence,
        "holds": list(question.holds),
    }


def show_list(console: Console, job: str, questions: Sequence[Question]) -> None:
    """All questions, each with its candidates, and how to answer."""
    if not questions:
        console.print(f"{job}: no question waits")
        return
    for place, question in enumerate(questions, 1):
        show_question(console, question, f"{place} of {len(questions)}")
    first = questions[0].id
    console.print(f"answer on a terminal: migrate answer {job}; or: migrate answer {job} --set '{visible(first)}=1'")


def show_question(console: Console, question: Question, place: str) -> None:
    """One question."""
    console.print(f"\nquestion {place}  {visible(question.id)}", style="bold")
    console.print(one_line(question.text))
    if question.holds:
        console.print(f"waiting for it: {', '.join(map(visible, question.holds))}", style="yellow")
    for name, value in question.evidence.items():
        console.print(f"  {visible(name)}: {visible(value, 200)}")
    if not question.candidates:
        return
    rows = [
        [str(i), each.get("label") or each.get("answer"), _share(each.get("weight")), _evidence(each.get("evidence"))]
        for i, each in enumerate(question.candidates, 1)
    ]
    headings = [Heading(""), Heading("candidate", wrap=True), number("weight"), Heading("because", wrap=True)]
    show_table(console, headings, rows)


def _share(weight: Any) -> str | None:
    return f"{weight:.2f}" if isinstance(weight, int | float) else None


def _evidence(evidence: Any) -> str:
    if not isinstance(evidence, dict):
        return visible(evidence or "", 120)
    return visible(", ".join(f"{name} {value}" for name, value in evidence.items()), 160)
