"""A drafted plan as the text of a file: where its systems are, what each field rests on, and what is left for a person."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from cli.plan_comments import ask_lines, comments_of, with_comments
from cli.secrets import masked
from cli.views.text import visible

if TYPE_CHECKING:
    from agent.questions import Question
    from engine.field_evidence import FieldEvidence
    from engine.plan import Plan

_WIDTH = 180  # of a question at the head, where nothing else tells what it is about


def plan_text(
    plan: Plan,
    source: str,
    target: str,
    job: str,
    questions: Sequence[Question],
    evidence: Mapping[tuple[str, str], FieldEvidence] | None = None,
) -> str:
    """The plan as YAML, with comments. A DSN with a password is not written; a variable's name stands in its place."""
    named = plan.model_copy(update={"source": _kept(source, "SOURCE"), "target": _kept(target, "TARGET")})
    return commented(named, f"Drafted by the job {job}", job, questions, evidence or {})


def commented(
    plan: Plan,
    title: str,
    job: str,
    questions: Sequence[Question],
    evidence: Mapping[tuple[str, str], FieldEvidence],
) -> str:
    """The plan as YAML with comments: at its head the questions that have no place in it."""
    from engine.plan import dump_plan

    comments, nowhere = comments_of(plan, evidence, questions)
    head = [f"{title}; migrate plan explain ENTITY.COLUMN --job {job} tells all of one field."]
    if questions:
        head.append(f"Left for a person ({len(questions)}), each marked ask: with migrate answer {job}, or by hand.")
    for question in nowhere:
        head += ask_lines(question)
    lines = [f"# {visible(line, _WIDTH)}" for line in head]
    return "\n".join(lines) + "\n\n" + with_comments(dump_plan(plan), comments)


def _kept(dsn: str, side: str) -> str:
    from connectors.kept_dsns import is_kept

    name, mark, more = dsn.partition("?")
    if is_kept(name):  # in a file a bare word could be a folder
        return f"${{{name}}}{mark}{more}"
    return dsn if masked(dsn) == dsn else f"${{PACKHORSE_{side}}}"
