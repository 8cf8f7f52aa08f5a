"""Places in a plan's text: the line of what an error is about, and its version exchanged with all else as it stands."""

from __future__ import annotations

import io
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap
from ruamel.yaml.error import YAMLError

from engine.plan import Plan, dump_plan, parse_plan
from workspace.errors import PlanError


def line_of(text: str, where: str) -> int | None:
    """The line, from 1, of the deepest key that a dotted place (`entities.contacts.fields.email`) names; None where the
    text isn't YAML or has no such key. Names may hold dots."""
    try:
        node: Any = YAML(typ="rt").load(io.StringIO(text))
    except YAMLError:
        return None
    line, left = None, where
    while isinstance(node, CommentedMap) and left:
        fits = [key for key in map(str, node) if left == key or left.startswith((f"{key}.", f"{key}:", f"{key},"))]
        if not fits:
            break
        key = max(fits, key=len)
        (real,) = [each for each in node if str(each) == key][:1]
        line, node, left = node.lc.key(real)[0] + 1, node[real], left[len(key) + 1 :]
    return line


def with_version(text: str, plan: Plan) -> str:
    """The text that says `plan` but for its version, with that version: comments and layout stay as somebody wrote them.
    Where that can't be told from the text, the plan as it is dumped."""
    lines = text.removeprefix("\ufeff").split("\n")
    try:
        document = YAML(typ="rt").load(io.StringIO(text.removeprefix("\ufeff")))
        if "version" in document:
            row, column = document.lc.value("version")
            written = str(document["version"])
            if lines[row][column:].startswith(written):
                lines[row] = f"{lines[row][:column]}{plan.version}{lines[row][column + len(written) :]}"
        else:
            row, column = document.lc.key(next(iter(document)))
            lines.insert(row, f"{' ' * column}version: {plan.version}")
        made = "\n".join(lines)
        if parse_plan(made, "edited") == plan:
            return made
    except (YAMLError, PlanError, IndexError, AttributeError):
        pass
    return dump_plan(plan)
