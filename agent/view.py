"""What a model sees: views of the workspace, rendered by code and bounded in size however long the job is.

Record values stand in the data block alone, cut short; the model's adapter fences and neutralises them.
"""

from __future__ import annotations

from agent.matter import Matter
from agent.models.protocol import Prompt
from workspace.state import State

QUESTION_CHARACTERS = 420  # about 120 tokens
VIEW_CHARACTERS = 5_200  # about 1,500 tokens
_DATA_CHARACTERS = 160
_SYSTEM = "You match columns of an old CRM with columns of a new one. Answer with one of the options."


def question_prompt(matter: Matter) -> Prompt:
    """The small view for a choice: the question and two or three sample values."""
    return Prompt(_SYSTEM, _cut(matter.text, QUESTION_CHARACTERS), _cut(matter.data, _DATA_CHARACTERS), matter.match)


def sample_values(values: tuple[str, ...] | list[str], most: int = 3) -> str:
    """A few values for the data block, each cut to 40 characters, without control characters."""
    shown = ["".join(c if c.isprintable() else " " for c in v[:40]) for v in values[:most]]
    return " | ".join(shown)


def view(state: State, goal: str, question: str, actions: list[str], changed: list[str]) -> str:
    """The whole view for a proposal or a recovery. What changes least comes first, so that a prefix cache serves it."""
    progress, belief = state.progress.to_dict(), state.belief.to_dict()
    questions = progress.get("open_questions") or {}
    parts = [
        f"GOAL {goal}",
        "ACTIONS " + "; ".join(actions[:12]),
        f"PHASE {progress.get('phase', '')}",
        "NEXT " + "; ".join(map(str, (progress.get("attend_next") or [])[:4])),
        f"OPEN QUESTIONS {len(questions)}: " + ", ".join(sorted(map(str, questions))[:8]),
        "CHANGED " + "; ".join(changed[-5:]),
        "KNOWN " + _beliefs(belief, question),
        f"QUESTION {question}",
    ]
    room = VIEW_CHARACTERS // len(parts)
    return _cut("\n".join(_cut(p, room * 2) for p in parts), VIEW_CHARACTERS)


def _beliefs(belief: dict[str, object], question: str) -> str:
    """The beliefs whose subject the question names, at most six."""
    held = belief.get("beliefs") or belief.get("claims") or {}
    if not isinstance(held, dict):
        return ""
    words = set(question.replace(".", " ").split())
    near = [f"{k}: {v}" for k, v in held.items() if words & set(str(k).replace(".", " ").split())]
    return "; ".join(_cut(n, 200) for n in near[:6])


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"
