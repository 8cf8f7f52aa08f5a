"""The loop: observe, decide, act, feedback. Here the plan is edited and every edit is recorded with what it did.

A refused action comes back as feedback; the same refused action is not taken again without new evidence. The
plan's versions are in the log: what a batch moved under can always be read again.
"""

from __future__ import annotations

from collections.abc import Mapping

from agent.actions import Action, World, arguments
from agent.feedback import Failure, Feedback
from agent.models.protocol import Price
from agent.view import view
from connectors.protocols import Catalogue
from engine.plan import Plan, dump_plan
from workspace.events import ActionTaken, PlanChanged
from workspace.log import Workspace
from workspace.state import State, state_at


class Loop:
    """Holds the plan at hand and takes actions on it."""

    def __init__(self, workspace: Workspace, plan: Plan, target: Catalogue) -> None:
        self.plan = plan
        self._workspace = workspace
        self._target = target
        self._columns: dict[str, frozenset[str]] = {}
        self._refused: set[str] = set()
        self._changed: list[str] = []
        self._state: State | None = None

    def know_columns(self, columns: Mapping[str, frozenset[str]]) -> None:
        """The columns that each entity may draw on, for the actions' preconditions."""
        self._columns.update(columns)

    def act(self, action: Action, cost: Price | None = None) -> Feedback:
        """Takes an action, or refuses it; records both the action and its feedback in one transaction."""
        key = f"{action.name} {arguments(action)}"
        why = action.refused(self.plan, World(self._columns, self._target))
        if why:
            failure = Failure(f"{action.name}: {why}", 1)
            again = key in self._refused
            self._refused.add(key)
            feedback = Feedback(action.name, "refused", failed=(failure,), attend=() if again else (why,), cost=cost or Price())
        else:
            self.plan = action.apply(self.plan)
            subject = ".".join(str(v) for k, v in arguments(action).items() if k in ("entity", "field", "map"))
            self._changed.append(f"{action.name} {subject}")
            feedback = Feedback(action.name, "done", changed={"subject": subject}, cost=cost or Price())
        self._workspace.record(ActionTaken(action.name, arguments(action)), feedback.event())
        return feedback

    def observe(self, goal: str, question: str, actions: list[str]) -> str:
        """The view of the workspace at this moment, bounded in size."""
        self._state = self._state.follow(self._workspace) if self._state is not None else state_at(self._workspace)
        return view(self._state, goal, question, actions, self._changed)

    def keep_version(self, by: str, why: str) -> Plan:
        """Records the plan as a new version, unless it is what the log's last version says."""
        last = last_plan(self._workspace)
        text = dump_plan(self.plan)
        if last is not None and _same(last, self.plan):
            self.plan = self.plan.model_copy(update={"version": last.version})
            return self.plan
        version = last.version + 1 if last is not None else max(1, self.plan.version)
        self.plan = self.plan.model_copy(update={"version": version})
        text = dump_plan(self.plan)
        self._workspace.record(PlanChanged(version=version, plan=text, by=by, why=why))  # type: ignore[arg-type]
        return self.plan


def last_plan(workspace: Workspace) -> Plan | None:
    """The plan as the log has it last, or None."""
    from engine.plan import parse_plan

    last = None
    for entry in workspace.events(types=[PlanChanged]):
        if isinstance(entry.event, PlanChanged):
            last = entry.event
    return None if last is None else parse_plan(last.plan, f"plan version {last.version}")


def _same(a: Plan, b: Plan) -> bool:
    return dump_plan(a.model_copy(update={"version": 1})) == dump_plan(b.model_copy(update={"version": 1}))
