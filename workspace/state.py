"""The state of a workspace at a position of its log: belief, progress and experience together.

A checkpoint is nothing but such a position. State is never stored, only told from the log.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from workspace.belief import Belief
from workspace.difference import Difference, compare
from workspace.errors import UsageError, WorkspaceError
from workspace.experience import Experience
from workspace.log import Entry, Workspace
from workspace.progress import Progress


@dataclass(frozen=True)
class State:
    """The three folds after the event at `position`; at 0, before any."""

    belief: Belief = field(default_factory=Belief)
    progress: Progress = field(default_factory=Progress)
    experience: Experience = field(default_factory=Experience)
    position: int = 0

    def refuse_purged(self) -> None:
        """UsageError for a job that was purged: what it would go on with is gone."""
        if self.progress.purged_at is not None:
            job = self.belief.job
            raise UsageError(
                f"the job {job} was purged on {self.progress.purged_at:%Y-%m-%d}: without its stage it can't be resumed, "
                "previewed, verified, retried or synced any more", where=f"job {job}",
                advice=f"migrate status {job} and migrate report {job} still show its accounts",
            )  # fmt: skip

    def apply(self, entry: Entry) -> State:
        """The state after the next event. Raises ValueError for an event that isn't the next."""
        if entry.position != self.position + 1:
            raise ValueError(f"event {entry.position} can't follow {self.position}")
        return State(
            self.belief.apply(entry),
            self.progress.apply(entry),
            self.experience.apply(entry),
            entry.position,
        )

    def follow(self, workspace: Workspace) -> State:
        """The state at the end of the log, reading only what came after this one."""
        return fold(workspace.events(start=self.position + 1), self)

    def to_dict(self) -> dict[str, Any]:
        """As JSON values."""
        return {
            "position": self.position,
            "belief": self.belief.to_dict(),
            "progress": self.progress.to_dict(),
            "experience": self.experience.to_dict(),
        }


def fold(entries: Iterable[Entry], start: State | None = None) -> State:
    """The state after all of the entries, which go on from `start` (None: from the first event)."""
    state = start or State()
    for entry in entries:
        state = state.apply(entry)
    return state


def state_at(workspace: Workspace, position: int | None = None) -> State:
    """The state after the event at `position` (None: the last). WorkspaceError for one the log hasn't."""
    if position is None:
        return fold(workspace.events())
    last = workspace.position
    if not 0 <= position <= last:
        raise WorkspaceError(
            f"the log has no position {position}",
            where=str(workspace.paths.database),
            advice=f"choose one from 0 to {last}",
        )
    return fold(workspace.events(stop=position)) if position else State()


def difference(before: State, after: State) -> Difference:
    """What appeared, changed and went from one state to another."""
    old, new = before.to_dict(), after.to_dict()
    items = tuple(
        item for name in ("belief", "progress", "experience") for item in compare(old[name], new[name], (name,))
    )
    return Difference(before.position, after.position, items)
