"""A job's account: all that its log and its plan tell of it, gathered for the person who signs it off.

Reads the log, and where it may the stage for examples; never the source, and of the target its catalogue.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any

from engine.plan import EntityPlan, FieldPlan, Plan, parse_plan
from engine.value_changes import ValueChange
from workspace.belief import Belief
from workspace.entity import EntityProgress
from workspace.events import (
    BatchCommitted,
    DuplicatesFound,
    JobFinished,
    PhaseStarted,
    QuestionAnswered,
    QuestionAsked,
    Verified,
)
from workspace.log import Workspace
from workspace.state import State, state_at

_MOST_POINTS = 240


@dataclass(frozen=True)
class FieldMoved:
    """A target column and where its value comes from. `rung` is the rung that decided it, and "plan" where the plan
    says so of itself; `sure` is its confidence, None then."""

    column: str
    comes_from: str
    rung: str
    sure: float | None
    why: str


@dataclass(frozen=True)
class EntityReported:
    """One entity: read = loaded + merged + excluded + quarantined, in rows. `left_behind` are source columns with the
    reason; `duplicates` are clusters of rows that became one, None where the plan merges nothing; `seconds` are those
    that its batches took."""

    name: str
    source: str
    target: str
    read: int
    inserted: int
    updated: int
    unchanged: int
    merged: int
    excluded: int
    quarantined: int
    dropped: int
    matched: int | None
    duplicates: int | None
    excluded_by: Mapping[str, int]
    fields: tuple[FieldMoved, ...]
    left_behind: Mapping[str, str]
    seconds: float

    @property
    def loaded(self) -> int:
        """Rows that stand in the target."""
        return self.inserted + self.updated + self.unchanged

    @property
    def holds(self) -> bool:
        """True where each row that was read has an outcome."""
        return self.read == self.loaded + self.merged + self.excluded + self.quarantined


@dataclass(frozen=True)
class ClusterReported:
    """Rows in quarantine that failed alike; `dropped` of them were given up."""

    entity: str
    signature: str
    code: str
    field: str
    rows: int
    dropped: int


@dataclass(frozen=True)
class RungReported:
    """What a rung of the ladder decided, and its price. `cached` is the share of the tokens read that the model's prefix
    cache served; None where it read none."""

    rung: str
    decisions: int
    calls: int
    tokens: int
    seconds: float
    cached: float | None = None


@dataclass(frozen=True)
class Asked:
    """A question to a person. `answer` is None while it is open; `holds` are the entities that wait for it."""

    text: str
    answer: str | None
    by: str
    holds: tuple[str, ...]


@dataclass(frozen=True)
class Verification:
    """The last verification: when, whether it held, whether rows moved since, what was wrong, and how many rows of
    each entity were compared field by field."""

    at: datetime
    ok: bool
    outdated: bool
    problems: tuple[str, ...]
    notes: tuple[str, ...]
    compared: Mapping[str, int]


@dataclass(frozen=True)
class Report:
    """The whole account. `rows_over_time` are points of (seconds since the first batch, rows so far); `phases` are
    seconds; `changes` is None where the stage wasn't looked at, and `why_no_changes` says why."""

    job: str
    source: str
    target: str
    started_at: datetime | None
    last_at: datetime | None
    outcome: str
    plan_versions: tuple[tuple[int, str, str], ...]
    entities: tuple[EntityReported, ...]
    clusters: tuple[ClusterReported, ...]
    rungs: tuple[RungReported, ...]
    asked: tuple[Asked, ...]
    phases: Mapping[str, float]
    rows_over_time: tuple[tuple[float, int], ...]
    verification: Verification | None
    taken_back: bool
    changes: tuple[ValueChange, ...] | None = None
    why_no_changes: str = ""
    rows_looked_at: Mapping[str, int] = field(default_factory=dict)

    @property
    def reconciled(self) -> bool:
        """True where the equation holds, and a verification that came after the last batch says so too."""
        checked = self.verification
        fresh = checked is not None and checked.ok and not checked.outdated
        return fresh and not self.taken_back and all(each.holds for each in self.entities)

    def to_dict(self) -> dict[str, Any]:
        """As JSON values, but for times."""
        return {"reconciled": self.reconciled, **asdict(self)}


def report(workspace: Workspace, changes: Iterable[ValueChange] | None = None, *, why_no_changes: str = "") -> Report:
    """The account of a job as its log stands. PlanError for a plan that can't be read."""
    state = state_at(workspace)
    belief, progress = state.belief, state.progress
    plan = parse_plan(belief.plan, f"plan version {belief.plan_version}") if belief.plan else None
    found = None if changes is None else tuple(changes)
    phases, over_time, duplicates = _told(workspace)
    return Report(
        job=belief.job,
        source=belief.source,
        target=belief.target,
        started_at=progress.started_at,
        last_at=progress.last_at,
        outcome=progress.outcome or "",
        plan_versions=tuple((each.version, each.by, each.why) for each in belief.plan_versions),
        entities=tuple(_entities(plan, state, duplicates)),
        clusters=tuple(_clusters(progress.entities)),
        rungs=tuple(
            RungReported(rung, p.decisions, p.calls, p.prompt_tokens + p.answer_tokens, p.seconds, p.cached_share)
            for rung, p in progress.rungs.items()
        ),
        asked=tuple(_asked(workspace, belief)),
        phases=phases,
        rows_over_time=_thinned(over_time),
        verification=_verification(workspace, progress.verified),
        taken_back=progress.taken_back,
        changes=found,
        why_no_changes=why_no_changes,
        rows_looked_at={each.entity: each.looked_at for each in found or ()},
    )


def _entities(plan: Plan | None, state: State, duplicates: Mapping[str, int]) -> Iterable[EntityReported]:
    progress = state.progress.entities
    plans = plan.entities if plan else {}
    for name in dict.fromkeys([*progress, *plans]):  # the order in which they were read
        done, entity = progress.get(name, EntityProgress()), plans.get(name)
        counts = done.counts
        yield EntityReported(
            name=name,
            source=entity.from_ if entity else "",
            target=entity.to if entity else "",
            read=counts.read,
            inserted=counts.inserted,
            updated=counts.updated,
            unchanged=counts.unchanged,
            merged=counts.merged,
            excluded=counts.excluded,
            quarantined=counts.quarantined,
            dropped=done.dropped,
            matched=done.matched,
            duplicates=duplicates.get(name, 0) if entity and entity.merge else None,
            excluded_by=_reasons(entity, done.excluded_by),
            fields=tuple(_fields(name, entity, state.belief)) if entity else (),
            left_behind=dict(entity.unmapped) if entity else {},
            seconds=done.seconds,
        )


def _reasons(entity: EntityPlan | None, excluded_by: Mapping[str, int]) -> dict[str, int]:
    """What a condition without a name of its own is called: the condition itself."""
    conditions = entity.conditions if entity else {}
    return {
        (f"not {conditions[name]}" if name == "where" and name in conditions else name): rows
        for name, rows in excluded_by.items()
    }


def _fields(entity: str, plan: EntityPlan, belief: Belief) -> Iterable[FieldMoved]:
    for column, each in plan.fields.items():
        made = belief.decided("field", f"{entity}.{column}")
        if made is None:
            yield FieldMoved(column, _comes_from(each), "plan", None, "")
        else:
            yield FieldMoved(column, _comes_from(each), made.rung, made.confidence, made.why)


def _comes_from(plan: FieldPlan) -> str:
    if plan.constant:
        return f"always {'NULL' if plan.default is None else plan.default}"
    origin = plan.from_ if plan.from_ is not None else plan.expression
    if plan.ref:
        return f"{origin}, as a reference to {plan.ref}"
    return f"{origin}, by the value map {plan.map}" if plan.map else origin


def _clusters(entities: Mapping[str, EntityProgress]) -> list[ClusterReported]:
    found = [
        ClusterReported(name, signature, failure.code, failure.field, failure.count, failure.dropped)
        for name, entity in entities.items()
        for signature, failure in entity.failures.items()
        if failure.count
    ]
    return sorted(found, key=lambda each: (-each.rows, each.entity, each.signature))


def _asked(workspace: Workspace, belief: Belief) -> Iterable[Asked]:
    questions: dict[str, QuestionAsked] = {}
    answers: dict[str, QuestionAnswered] = {}
    for entry in workspace.events(types=[QuestionAsked, QuestionAnswered]):
        if isinstance(entry.event, QuestionAsked):
            questions[entry.event.id] = entry.event
        elif isinstance(entry.event, QuestionAnswered):
            answers[entry.event.id] = entry.event
    for id_, question in questions.items():
        given = answers.get(id_)
        if given is None:
            made = belief.decided(question.kind, question.subject)
            answer, by = (None, "") if made is None else (_answer(made.choice), made.rung)
        else:
            answer, by = _answer(given.answer), given.by
        yield Asked(question.text, answer, by, tuple(question.holds) if answer is None else ())


def _answer(given: Any) -> str:
    return "none of these" if given is None else str(given)


def _told(workspace: Workspace) -> tuple[dict[str, float], list[tuple[float, int]], dict[str, int]]:
    """Of one reading of the log: seconds by phase, rows over time, clusters of duplicates by entity.

    A phase lasts from its event to the last one before the next phase: what lies between a kill and the resume is
    nobody's.
    """
    phases: dict[str, float] = {}
    points: list[tuple[float, int]] = []
    duplicates: dict[str, int] = {}
    phase, begun, last, first = "", None, None, None
    batches: dict[tuple[str, int], int] = {}
    rows = 0
    for entry in workspace.events():
        event = entry.event
        if isinstance(event, PhaseStarted | JobFinished):
            if phase and begun is not None and last is not None:
                ended = entry.at if isinstance(event, JobFinished) or last == begun else last
                phases[phase] = phases.get(phase, 0.0) + (ended - begun).total_seconds()
            phase, begun = (event.phase, entry.at) if isinstance(event, PhaseStarted) else ("", None)
        elif isinstance(event, BatchCommitted) and event.step == 1:
            first = first or entry.at
            # a batch that is re-driven takes the place of its earlier self
            rows += event.read - batches.get((event.entity, event.batch), 0)
            batches[event.entity, event.batch] = event.read
            points.append(((entry.at - first).total_seconds(), rows))
        elif isinstance(event, DuplicatesFound):
            duplicates[event.entity] = event.clusters
        last = entry.at
    phases.pop("done", None)
    return phases, points, duplicates


def _thinned(points: Sequence[tuple[float, int]]) -> tuple[tuple[float, int], ...]:
    """Few enough to draw, with the last one."""
    step = max(1, -(-len(points) // _MOST_POINTS))
    kept = points[::step]
    return tuple(kept if not points or kept[-1] == points[-1] else [*kept, points[-1]])


def _verification(workspace: Workspace, verified: bool | None) -> Verification | None:
    entry = next(iter(deque(workspace.events(types=[Verified]), maxlen=1)), None)
    if entry is None or not isinstance(entry.event, Verified):
        return None
    entities = entry.event.details.get("entities", [])
    return Verification(
        at=entry.at,
        ok=entry.event.ok,
        outdated=verified is None,
        problems=_lines(entities, "problems"),
        notes=_lines(entities, "notes"),
        compared={each["entity"]: each["compared"] for each in entities if each.get("compared")},
    )


def _lines(entities: Sequence[Mapping[str, Any]], kind: str) -> tuple[str, ...]:
    return tuple(
        f"{each['entity']}: {line}" if each.get("entity") else line for each in entities for line in each.get(kind, ())
    )
