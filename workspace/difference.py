"""What changed between two states of a workspace, for `migrate inspect --diff`: what appeared, changed, went.

Compares the JSON form, so that what is shown is what `--json` shows. A whole thing that is new (a profile, a
question) is one item, not each of its leaves.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

Path = tuple[str, ...]


@dataclass(frozen=True)
class Item:
    """One difference. `path` leads through the JSON form; `lines` are those of a unified diff where both
    sides are texts of several lines, else empty."""

    what: Literal["appeared", "changed", "went"]
    path: Path
    before: Any = None
    after: Any = None
    lines: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The path for a person: `progress.entities.contacts.counts.read`, odd names in brackets."""
        name = self.path[0]
        for step in self.path[1:]:
            name += f".{step}" if step.replace("_", "a").isalnum() else f"[{step}]"
        return name

    @property
    def line(self) -> str:
        """The difference in one line."""
        if self.what == "appeared":
            return f"+ {self.name}: {_short(self.after)}"
        if self.what == "went":
            return f"- {self.name}: {_short(self.before)}"
        if self.lines:
            return f"~ {self.name}: {len(self.lines)} lines of difference"
        if _is_number(self.before) and _is_number(self.after):
            return f"~ {self.name}: {self.before} -> {self.after} ({_step(self.after - self.before)})"
        return f"~ {self.name}: {_short(self.before)} -> {_short(self.after)}"

    def to_dict(self) -> dict[str, Any]:
        """As JSON values."""
        shown: dict[str, Any] = {"what": self.what, "path": list(self.path)}
        if self.what != "appeared":
            shown["before"] = self.before
        if self.what != "went":
            shown["after"] = self.after
        return shown


@dataclass(frozen=True)
class Difference:
    """All differences from the state at position `before` to that at `after`, in their JSON order."""

    before: int
    after: int
    items: tuple[Item, ...]

    def of(self, what: Literal["appeared", "changed", "went"]) -> tuple[Item, ...]:
        """Those of one kind."""
        return tuple(item for item in self.items if item.what == what)

    def __str__(self) -> str:
        head = f"from {self.before} to {self.after}: "
        if not self.items:
            return head + "nothing changed"
        return "\n".join([f"{head}{len(self.items)} differences", *(item.line for item in self.items)])

    def to_dict(self) -> dict[str, Any]:
        """As JSON values."""
        return {
            "from": self.before,
            "to": self.after,
            "appeared": [item.to_dict() for item in self.of("appeared")],
            "changed": [item.to_dict() for item in self.of("changed")],
            "went": [item.to_dict() for item in self.of("went")],
        }


def compare(before: Any, after: Any, path: Path = ()) -> Iterator[Item]:
    """The differences between two JSON values, objects member by member, all else whole."""
    if isinstance(before, dict) and isinstance(after, dict):
        for name in [*before, *(name for name in after if name not in before)]:
            if name not in after:
                yield Item("went", (*path, name), before=before[name])
            elif name not in before:
                yield Item("appeared", (*path, name), after=after[name])
            else:
                yield from compare(before[name], after[name], (*path, name))
    elif before != after or type(before) is not type(after):
        yield Item("changed", path, before, after, _text_lines(before, after))


def _text_lines(before: Any, after: Any) -> tuple[str, ...]:
    if not (isinstance(before, str) and isinstance(after, str) and ("\n" in before or "\n" in after)):
        return ()
    made = difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=2)
    return tuple(made)[2:]  # without the names of the two files


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _step(by: float) -> str:
    return f"{by:+d}" if isinstance(by, int) else f"{by:+.3f}"


def _short(value: Any) -> str:
    if isinstance(value, dict):
        shown = ", ".join(f"{name}={_leaf(item)}" for name, item in list(value.items())[:6])
        return shown + (", ..." if len(value) > 6 else "")
    return _leaf(value)


def _leaf(value: Any) -> str:
    if isinstance(value, dict):
        return f"{{{len(value)}}}"
    if isinstance(value, list) and len(str(value)) > 60:
        return f"[{len(value)}]"
    text = "none" if value is None else " ".join(str(value).split())
    return text if len(text) <= 60 else text[:57] + "..."
