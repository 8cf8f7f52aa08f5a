"""A drafted plan as the text of a file: where its systems are, and what is left for a person."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from cli.secrets import masked
from cli.views.text import one_line

if TYPE_CHECKING:
    from agent.questions import Question
    from engine.plan import Plan


def plan_text(plan: Plan, source: str, target: str, job: str, questions: Sequence[Question]) -> str:
    """The plan as YAML. A DSN with a password is not written; a variable's name stands in its place."""
    from engine.plan import dump_plan

    named = plan.model_copy(update={"source": _kept(source, "SOURCE"), "target": _kept(target, "TARGET")})
    lines = [f"# Drafted by the job {job}; migrate inspect {job} --belief says why each thing is as it is."]
    if questions:
        lines.append(f"# Left for a person ({len(questions)}), with migrate answer {job} or by hand:")
        lines += [f"#   ask {one_line(q.subject)}: {one_line(q.text)}" for q in questions]
    return "\n".join(lines) + "\n\n" + dump_plan(named)


def _kept(dsn: str, side: str) -> str:
    from connectors.kept_dsns import is_kept

    name, mark, more = dsn.partition("?")
    if is_kept(name):  # in a file a bare word could be a folder
        return f"${{{name}}}{mark}{more}"
    return dsn if masked(dsn) == dsn else f"${{PACKHORSE_{side}}}"
