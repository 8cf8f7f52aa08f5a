"""The story of one field of a plan: what it says, each decision on it with its candidates and price, the questions,
and what became of its values. All of it from the log.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from engine.plan import Plan, parse_plan, plan_document
from workspace.errors import PlanError, UsageError
from workspace.events import DecisionMade, PlanChanged, QuestionAnswered, QuestionAsked
from workspace.log import Workspace
from workspace.state import state_at


@dataclass(frozen=True)
class Chapter:
    """A decision, a question or an answer, at its position of the log. `rung` is who decided or answered; tokens and
    seconds are its price."""

    at: datetime
    position: int
    kind: str
    what: str
    rung: str
    sure: float | None
    why: str
    candidates: Sequence[Mapping[str, Any]]
    calls: int
    tokens: int
    seconds: float


@dataclass(frozen=True)
class FieldStory:
    """`says` is the field as the plan's last version has it, None where the column is left out; `value_map` the map
    that it goes through; `failed` are rows in quarantine by signature."""

    job: str
    entity: str
    column: str
    plan_version: int
    says: Mapping[str, Any] | None
    value_map: Mapping[str, Any] | None
    chapters: tuple[Chapter, ...]
    failed: Mapping[str, int]

    def to_dict(self) -> dict[str, Any]:
        """As JSON values, but for times."""
        return asdict(self)


def field_story(workspace: Workspace, field: str) -> FieldStory:
    """The story of `entity.column`. UsageError for a field that neither the plan nor the log knows."""
    state = state_at(workspace)
    belief = state.belief
    if not belief.plan:
        raise UsageError(f"job {belief.job!r} has no plan yet", advice=f"migrate resume {belief.job} drafts one")
    plan = parse_plan(belief.plan, f"plan version {belief.plan_version}")
    entity, _, column = field.rpartition(".")
    says, value_map = _says(plan, entity, column)
    chapters = tuple(_chapters(workspace, {f"{entity}.{column}", f"{entity}_{column}"}))
    if says is None and not chapters:
        known = [f"{name}.{each}" for name, of in plan.entities.items() for each in of.fields]
        raise UsageError(
            f"the plan has no field {field!r}", where=f"plan version {belief.plan_version} of {belief.job}",
            advice=f"a field is ENTITY.COLUMN of the target, such as {known[0] if known else 'contacts.email'}",
        )  # fmt: skip
    progress = state.progress.entities.get(entity)
    failures = progress.failures if progress else {}
    failed = {signature: each.count for signature, each in failures.items() if each.field == column and each.count}
    return FieldStory(belief.job, entity, column, belief.plan_version, says, value_map, chapters, failed)


def _says(plan: Plan, entity: str, column: str) -> tuple[Mapping[str, Any] | None, Mapping[str, Any] | None]:
    """The field and its value map as the plan's document has them."""
    field = plan.entities[entity].fields.get(column) if entity in plan.entities else None
    if field is None:
        return None, None
    document = plan_document(plan)
    return dict(document["entities"][entity]["fields"][column]), plan.value_maps.get(field.map) if field.map else None


def _chapters(workspace: Workspace, subjects: set[str]) -> list[Chapter]:
    found: list[Chapter] = []
    asked: set[str] = set()
    for entry in workspace.events(types=[DecisionMade, QuestionAsked, QuestionAnswered]):
        match entry.event:
            case DecisionMade(subject=subject) as made if subject in subjects:
                choice = "none of these" if made.choice is None else str(made.choice)
                price = (made.calls, made.prompt_tokens + made.answer_tokens, made.seconds)
                found.append(
                    Chapter(entry.at, entry.position, made.kind, choice, made.rung, made.confidence, made.why, made.candidates, *price)
                )  # fmt: skip
            case QuestionAsked(subject=subject) as question if subject in subjects:
                asked.add(question.id)
                price = (question.calls, question.prompt_tokens + question.answer_tokens, question.seconds)
                found.append(
                    Chapter(entry.at, entry.position, "question", question.text, "ask", None, "", question.candidates, *price)
                )  # fmt: skip
            case QuestionAnswered(id=id_) as answered if id_ in asked:
                answer = "none of these" if answered.answer is None else str(answered.answer)
                found.append(Chapter(entry.at, entry.position, "answer", answer, answered.by, None, "", (), 0, 0, 0.0))
    return found


def plan_of_version(workspace: Workspace, version: int) -> Plan:
    """A version of the job's plan. PlanError where there is none of that number."""
    last = ""
    versions = []
    for entry in workspace.events(types=[PlanChanged]):
        if isinstance(entry.event, PlanChanged):
            versions.append(entry.event.version)
            if entry.event.version == version:
                last = entry.event.plan
    if not last:
        raise PlanError(
            f"the job has no plan version {version}", advice=f"it has {', '.join(map(str, dict.fromkeys(versions))) or 'none'}"
        )  # fmt: skip
    return parse_plan(last, f"plan version {version}")
