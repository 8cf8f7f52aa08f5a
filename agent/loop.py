"""The loop: observe, decide, act, feedback. Here the plan is edited and every edit is recorded with what it did.

A refused action comes back as feedback; the same refused action is not taken again without new evidence. The
plan's versions are in the log: what a batch moved under can always be read again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from agent.actions import Action, World, arguments
from agent.feedback import Failure, Feedback
from agent.models.counting import Count
from agent.models.protocol import Price
from agent.view import view
from connectors.protocols import Catalogue
from engine.plan import Plan, dump_plan
from workspace.events import ActionTaken, Event, PlanChanged
from workspace.log import Workspace
from workspace.state import State, state_at

_TOGETHER = 60


class Loop:
    """Holds the plan at hand and takes actions on it."""

    def __init__(self, workspace: Workspace, plan: Plan, target: Catalogue) -> None:
        self.plan = plan
        self._workspace = workspace
        self._target = target
        self._columns: dict[str, frozenset[str]] = {}
        self._refused: set[str] = set()
        self._changed: list[str] = []
        self._waiting: list[Event] = []
        # A draft that is made again takes the same actions; they are in the log already.
        self._recorded = {
            _key(e.event.action, e.event.arguments)
            for e in workspace.events(types=[ActionTaken])
            if isinstance(e.event, ActionTaken)
        }
        self._state: State | None = None

    def know_columns(self, columns: Mapping[str, frozenset[str]]) -> None:
        """The columns that each entity may draw on, for the actions' preconditions."""
        self._columns.update(columns)

    def act(self, action: Action, cost: Price | None = None) -> Feedback:
        """Takes an action, or refuses it. Both the action and its feedback are recorded, some dozens in one
        transaction: a plan in the making is relied on by nobody before `keep_version`."""
        key = _key(action.name, arguments(action))
        why = action.refused(self.plan, World(self._columns, self._target))
        if why:
            failure = Failure(f"{action.name}: {why}", 1)
            again = key in self._refused
            self._refused.add(key)
            feedback = Feedback(
                action.name, "refused", failed=(failure,), attend=() if again else (why,), cost=cost or Price()
            )
        else:
            self.plan = action.apply(self.plan)
            subject = ".".join(str(v) for k, v in arguments(action).items() if k in ("entity", "field", "map"))
            self._changed.append(f"{action.name} {subject}")
            feedback = Feedback(action.name, "done", changed={"subject": subject}, cost=cost or Price())
        if key not in self._recorded:
            self._recorded.add(key)
            self._waiting += [ActionTaken(action.name, arguments(action)), feedback.event()]
        if len(self._waiting) >= _TOGETHER:
            self.flush()
        return feedback

    def flush(self) -> None:
        """Records what was done so far."""
        if self._waiting:
            self._workspace.record(*self._waiting)
            self._waiting.clear()

    def observe(self, goal: str, question: str, actions: list[str], count: Count) -> str:
        """The view of the workspace at this moment, bounded in tokens, as `count` counts them."""
        self.flush()
        self._state = self._state.follow(self._workspace) if self._state is not None else state_at(self._workspace)
        return view(self._state, goal, question, actions, self._changed, count)

    def keep_version(self, by: str, why: str) -> Plan:
        """Records the plan as a new version, unless it is what the log's last version says."""
        self.flush()
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


def _key(action: str, given: Mapping[str, object]) -> str:
    return f"{action} {json.dumps(given, sort_keys=True, default=list)}"


def _same(a: Plan, b: Plan) -> bool:
    return dump_plan(a.model_copy(update={"version": 1})) == dump_plan(b.model_copy(update={"version": 1}))
