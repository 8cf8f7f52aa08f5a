"""Comments in a plan's text: what each field rests on, and where a person has to look.

They stand in lines of their own above what they are about. Whatever names and texts hold, a comment stays one line of
what can be seen, so that the plan reads the same with comments and without.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from cli.views.text import one_line, visible

if TYPE_CHECKING:
    from agent.questions import Question
    from engine.field_evidence import FieldEvidence
    from engine.plan import Plan

    Evidence = Mapping[tuple[str, str], FieldEvidence]

Path = tuple[str, ...]
Comments = dict[Path, list[str]]

_WIDTH = 110
_SHAPE, _NAME, _MOST_NEAREST = 20, 40, 3


def comments_of(plan: Plan, evidence: Evidence, questions: Sequence[Question]) -> tuple[Comments, list[Question]]:
    """The comments by the place in the plan that they stand above; and the questions that have no place in it, since
    what they are about isn't there. `ask:` begins what a person has to look at."""
    comments: Comments = {}
    nowhere: list[Question] = []
    for question in questions:
        place = _place(plan, question)
        if place:
            comments.setdefault(place, []).extend(_asked(question))
        else:
            nowhere.append(question)
    for (entity, column), found in evidence.items():
        comments.setdefault(("entities", entity, "fields", column), []).insert(0, _decided(found))
    return comments, nowhere


def with_comments(text: str, comments: Comments) -> str:
    """The YAML text with comments above the keys that they belong to. Places that it hasn't are left out."""
    from ruamel.yaml import YAML

    document = YAML(typ="rt").load(text)
    lines = text.split("\n")
    above: dict[int, list[str]] = {}
    for path, said in comments.items():
        at = _line(document, path)
        if at is not None:
            row, indent = at
            above.setdefault(row, []).extend(
                f"{' ' * indent}# {visible(' '.join(each.split()), _WIDTH - indent - 2)}" for each in said
            )
    out: list[str] = []
    for row, line in enumerate(lines):
        out += [*above.get(row, ()), line]
    return "\n".join(out)


def ask_lines(question: Question) -> list[str]:
    """A question for the head of a plan: what is asked, of what."""
    return _asked(question, named=True)


def _line(document: Any, path: Path) -> tuple[int, int] | None:
    """Line (from 0) and indentation of the key at that path, or None."""
    node: Any = document
    at: tuple[int, int] | None = None
    for part in path:
        if not hasattr(node, "lc") or part not in node:
            return None
        at = node.lc.key(part)
        node = node[part]
    return at


def _place(plan: Plan, question: Question) -> Path:
    """Where the question's comment stands; empty where the plan hasn't what it is about."""
    if question.subject in plan.entities:
        return "entities", question.subject
    entity, _, column = question.subject.rpartition(".")
    if entity not in plan.entities:
        return ()
    fields = ("entities", entity, "fields")
    return (*fields, column) if column in plan.entities[entity].fields else fields


def _asked(question: Question, *, named: bool = False) -> list[str]:
    subject = visible(question.subject if named else question.subject.rpartition(".")[2], _NAME)
    waiting = ", ".join(visible(name, _NAME) for name in question.holds)
    if question.kind not in ("field", "required"):  # their candidates may be record values: `migrate answer` has them
        return [f"ask: {subject}: {one_line(question.text)}", *([f"     waiting for it: {waiting}"] if waiting else [])]
    follows = f"waits for it: {waiting}" if waiting else "is left out"
    nearest = [
        f"{visible(each.get('label') or each.get('answer'), _NAME)} {_weight(each)}" for each in question.candidates
    ]
    told = ", ".join(nearest[:_MOST_NEAREST]) or "none"
    type_ = one_line(str(question.evidence.get("type", "")))
    return [f"ask: {subject} ({type_}) {follows}; out of which column? nearest: {told}"]


def _decided(found: FieldEvidence) -> str:
    parts = []
    if found.rung:
        who = "a person" if found.rung == "ask" else found.rung
        parts.append(f"by {who}" + ("" if found.rung == "ask" else f", {found.sure:.2f} sure"))
        if found.next_best is not None:
            label, weight = found.next_best
            parts.append(f"next {visible(label, _NAME)} {weight:.2f}")
    parts += [f"{kind.replace('_', ' ')} by {'a person' if by == 'ask' else by}" for kind, by in found.beside.items()]
    if found.shapes:
        parts.append("like " + " ".join(f"'{visible(each, _SHAPE)}'" for each in found.shapes))
    return "; ".join(parts)


def _weight(candidate: Mapping[str, Any]) -> str:
    weight = candidate.get("weight")
    return f"{weight:.2f}" if isinstance(weight, int | float) else ""
