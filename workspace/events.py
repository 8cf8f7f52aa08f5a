"""The typed events that a job's log is made of; a workspace is nothing but their sequence.

An event is a frozen value with a name (`type`) and a JSON form that reads back equal. What is not JSON is
made so when the event is built (dates and numbers of databases to text, tuples to lists), so that what was
recorded and what is read later never differ. No event may hold a password, and none stands for a single row.
"""

from __future__ import annotations

import json
from functools import cache
from typing import Annotated, Any, ClassVar, Literal, TypeVar

from pydantic import Field, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from workspace.database import newer_version
from workspace.errors import WorkspaceError
from workspace.event import (
    CONFIG,
    PHASES,
    RUNGS,
    Author,
    Confidence,
    Count,
    Event,
    Facts,
    FactsList,
    Json,
    Key,
    MaskedDsn,
    Phase,
    Rung,
    Seconds,
    Side,
    SignalName,
    Text,
    TextList,
)
from workspace.events_afterwards import (
    BatchRetried,
    BatchUndone,
    CrosswalkExported,
    JobCleanedUp,
    JobPurged,
    QuarantineRetried,
    QuarantineTolerated,
    RowsDropped,
    UndoStarted,
)
from workspace.events_questions import QuestionAnswered, QuestionAsked
from workspace.events_rehearsal import Piloted, Rehearsed, StrayAllowed
from workspace.events_sync import BatchSynced, GenerationStaged, SyncCompleted, SyncStarted
from workspace.events_watched import JobPaused, JobWentOn, RowsExpected

__all__ = [
    "EVENT_TYPES",
    "PHASES",
    "RUNGS",
    "ActionTaken",
    "BatchCommitted",
    "BatchRetried",
    "BatchSynced",
    "BatchUndone",
    "BeliefHeld",
    "CrosswalkExported",
    "DecisionMade",
    "DuplicatesFound",
    "EntityCompleted",
    "Event",
    "FeedbackGiven",
    "GenerationStaged",
    "Interrupted",
    "JobCleanedUp",
    "JobFinished",
    "JobPaused",
    "JobPurged",
    "JobStarted",
    "JobWentOn",
    "LessonLearnt",
    "PartStaged",
    "Phase",
    "PhaseStarted",
    "Piloted",
    "PlanChanged",
    "QuarantineRetried",
    "QuarantineSeen",
    "QuarantineTolerated",
    "QuestionAnswered",
    "QuestionAsked",
    "Rehearsed",
    "RetryMade",
    "RowsDropped",
    "RowsExpected",
    "RowsMatched",
    "Rung",
    "StageCompleted",
    "StrayAllowed",
    "SyncCompleted",
    "SyncStarted",
    "TableProfiled",
    "UndoStarted",
    "Verified",
    "event_fields",
    "event_from_json",
    "event_to_json",
]


@dataclass(frozen=True, config=CONFIG)
class JobStarted(Event):
    """A job begins: DSNs masked, `options` as the command line gave them."""

    type: ClassVar[str] = "job_started"
    job: Text
    source: MaskedDsn
    target: MaskedDsn
    options: Facts = Field(default_factory=dict)


@dataclass(frozen=True, config=CONFIG)
class PlanChanged(Event):
    """The plan is now `version`; `plan` is the whole YAML document."""

    type: ClassVar[str] = "plan_changed"
    version: Annotated[int, Field(ge=0)]
    plan: Text
    by: Author
    why: Text = ""


@dataclass(frozen=True, config=CONFIG)
class PhaseStarted(Event):
    """The job goes over to a phase (`done` is the last)."""

    type: ClassVar[str] = "phase_started"
    phase: Phase


@dataclass(frozen=True, config=CONFIG)
class TableProfiled(Event):
    """What the survey found in one table: counts, shapes, ranges, samples masked or short."""

    type: ClassVar[str] = "table_profiled"
    side: Side
    table: Text
    profile: Facts


@dataclass(frozen=True, config=CONFIG)
class BeliefHeld(Event):
    """`claim` is held true of `subject` (`contacts.email_address`), on that evidence. A later one of the same
    subject and claim takes its place."""

    type: ClassVar[str] = "belief_held"
    subject: Text
    claim: Text
    evidence: Facts = Field(default_factory=dict)
    confidence: Confidence = 1.0


@dataclass(frozen=True, config=CONFIG)
class DecisionMade(Event):
    """A decision, the rung of the ladder that made it, and its price. `choice` is any JSON value; None stands
    for "none of these"; of the tokens of prompts, `cached_tokens` came from the model's prefix cache. Recorded once, it is
    never asked for again. `lessons` are what it teaches once the job is verified: objects of `kind`, `signature`, `remedy`."""

    type: ClassVar[str] = "decision_made"
    id: Text
    kind: Text
    subject: Text
    choice: Json
    rung: Rung
    confidence: Confidence
    candidates: FactsList = Field(default_factory=list)
    why: Text = ""
    calls: Count = 0
    prompt_tokens: Count = 0
    answer_tokens: Count = 0
    seconds: Seconds = 0.0
    cached_tokens: Count = 0
    lessons: FactsList = Field(default_factory=list)


@dataclass(frozen=True, config=CONFIG)
class ActionTaken(Event):
    """The loop took an action."""

    type: ClassVar[str] = "action_taken"
    action: Text
    arguments: Facts = Field(default_factory=dict)


@dataclass(frozen=True, config=CONFIG)
class FeedbackGiven(Event):
    """What an action did: its outcome, what changed, what failed (by signature, with counts), what to attend
    to next, what it cost."""

    type: ClassVar[str] = "feedback_given"
    action: Text
    outcome: Text
    changed: Facts = Field(default_factory=dict)
    failed: FactsList = Field(default_factory=list)
    attend: TextList = Field(default_factory=list)
    cost: Facts = Field(default_factory=dict)


@dataclass(frozen=True, config=CONFIG)
class PartStaged(Event):
    """A part of an entity's stage stands on disk, whole. Keys are the first and last row's, as text."""

    type: ClassVar[str] = "part_staged"
    entity: Text
    part: Count
    rows: Count
    key_low: Key
    key_high: Key
    sha256: Text
    bytes: Count


@dataclass(frozen=True, config=CONFIG)
class StageCompleted(Event):
    """All parts of an entity stand. `snapshot` is True where they show one instant of the source; `counted`
    is how many the source holds at that instant by the server's own count (of its one answer, and of the rows that
    lack a key; else its COUNT), None where it was not asked."""

    type: ClassVar[str] = "stage_completed"
    entity: Text
    rows: Count
    parts: Count
    snapshot: bool = False
    counted: Count | None = None


@dataclass(frozen=True, config=CONFIG)
class DuplicatesFound(Event):
    """Which rows of an entity are one was decided, before its first batch: of `compared` rows, those of so many
    `clusters`, and so many rows that go into another. `left_out` values were too common to go by; `sha256` is of the
    file that names the rows. A later event of the same entity takes the place of the earlier."""

    type: ClassVar[str] = "duplicates_found"
    entity: Text
    plan_version: Count
    compared: Count
    clusters: Count
    merged: Count
    left_out: Count
    sha256: Text


@dataclass(frozen=True, config=CONFIG)
class RowsMatched(Event):
    """Which rows of an entity the target held before was decided, before its first batch: of `compared` rows, so many
    `matched`, and so many `contested` that fit several rows or one that another source row has. `sha256` is of the file
    that names the rows. A later event of the same entity takes the place of the earlier."""

    type: ClassVar[str] = "rows_matched"
    entity: Text
    plan_version: Count
    compared: Count
    matched: Count
    contested: Count
    sha256: Text


@dataclass(frozen=True, config=CONFIG)
class BatchCommitted(Event):
    """The target committed a batch; step 1 moves the rows, step 2 fills references within the entity.

    Counts are rows: read = inserted + updated + unchanged + merged + excluded + quarantined in step 1; `excluded_by`
    counts those excluded by the condition that held them back, and of the updated and unchanged so many `matched` are one
    with a row that the target held before (None where the plan matches none). A later event of the same entity, batch
    and step (a re-drive) takes the place of the earlier. `recovered` is True where the target's ledger told of it after a
    crash.
    """

    type: ClassVar[str] = "batch_committed"
    entity: Text
    batch: Count
    step: Literal[1, 2]
    plan_version: Count
    read: Count = 0
    inserted: Count = 0
    updated: Count = 0
    unchanged: Count = 0
    merged: Count = 0
    excluded: Count = 0
    quarantined: Count = 0
    seconds: Seconds = 0.0
    recovered: bool = False
    excluded_by: Facts = Field(default_factory=dict)
    matched: Count | None = None


@dataclass(frozen=True, config=CONFIG)
class WorkSpread(Event):
    """Workers carried the batches of a load that came to its end: the executor, how many tasks it did at once, and the
    seconds that went into each kind of work, summed over workers."""

    type: ClassVar[str] = "work_spread"
    executor: Text
    width: Count
    seconds: dict[str, float]


@dataclass(frozen=True, config=CONFIG)
class QuarantineSeen(Event):
    """A batch put `count` rows of one failure signature into quarantine; `example` is masked.

    With `batch`, and recorded after its BatchCommitted, a re-drive of that batch takes these rows out of the
    count again.
    """

    type: ClassVar[str] = "quarantine_seen"
    entity: Text
    signature: Text
    code: Text
    field: Text
    count: Count
    example: Text = ""
    batch: Count | None = None


@dataclass(frozen=True, config=CONFIG)
class EntityCompleted(Event):
    """All batches of an entity are committed."""

    type: ClassVar[str] = "entity_completed"
    entity: Text


@dataclass(frozen=True, config=CONFIG)
class RetryMade(Event):
    """Something that may pass was tried again; `attempt` counts from 1."""

    type: ClassVar[str] = "retry_made"
    what: Text
    attempt: Count
    error: Text


@dataclass(frozen=True, config=CONFIG)
class Interrupted(Event):
    """A signal asked the job to stop; `signal` is its name (`SIGINT`)."""

    type: ClassVar[str] = "interrupted"
    signal: SignalName


@dataclass(frozen=True, config=CONFIG)
class Verified(Event):
    """Verification ended."""

    type: ClassVar[str] = "verified"
    ok: bool
    details: Facts = Field(default_factory=dict)


@dataclass(frozen=True, config=CONFIG)
class JobFinished(Event):
    """The command that ran the job ends by itself; a resumed job has several."""

    type: ClassVar[str] = "job_finished"
    outcome: Text
    exit_code: int


@dataclass(frozen=True, config=CONFIG)
class LessonLearnt(Event):
    """`remedy` was tried on a failure signature, and held or did not."""

    type: ClassVar[str] = "lesson_learnt"
    signature: Text
    remedy: Text
    held: bool


E = TypeVar("E", bound=Event)

EVENT_TYPES: dict[str, type[Event]] = {
    kind.type: kind
    for kind in (
        JobStarted, PlanChanged, PhaseStarted, TableProfiled, BeliefHeld, DecisionMade, QuestionAsked,
        QuestionAnswered, ActionTaken, FeedbackGiven, PartStaged, StageCompleted, DuplicatesFound, RowsMatched, BatchCommitted,
        QuarantineSeen, EntityCompleted, RetryMade, Interrupted, Verified, JobFinished, LessonLearnt,
        UndoStarted, BatchUndone, QuarantineRetried, BatchRetried, RowsDropped, QuarantineTolerated, CrosswalkExported, JobCleanedUp, JobPurged,
        WorkSpread,
        SyncStarted, GenerationStaged, BatchSynced, SyncCompleted,
        Rehearsed, StrayAllowed, Piloted,
        RowsExpected, JobPaused, JobWentOn,
    )
}  # fmt: skip
"""Every event by the name it has in the log."""


@cache
def _adapter(type_: str) -> TypeAdapter[Any] | None:
    """Made when the first event of the type is met: all of them would be a tenth of a command's start."""
    kind = EVENT_TYPES.get(type_)
    return None if kind is None else TypeAdapter(kind)


def event_fields(event: Event) -> dict[str, Any]:
    """The event's fields as JSON values, without `type`."""
    adapter = _adapter(event.type)
    assert adapter is not None
    fields = adapter.dump_python(event, mode="json")
    assert isinstance(fields, dict)
    return fields


def event_to_json(event: Event) -> str:
    """The event's fields as one line of ASCII JSON; `type` is kept beside it."""
    return json.dumps(event_fields(event), separators=(",", ":"), allow_nan=False)


def event_from_json(type_: str, body: str) -> Event:
    """The event of that name.

    Raises WorkspaceError: "newer version" for a name or a field that this version doesn't know, "damaged" for
    what isn't an event at all.
    """
    adapter = _adapter(type_)
    if adapter is None:
        raise newer_version("workspace", f"an event {type_[:60]!r}")
    try:
        event = adapter.validate_json(body)
    except ValidationError as error:
        unknown = [e["loc"][0] for e in error.errors() if e["type"] == "unexpected_keyword_argument"]
        if unknown:
            raise newer_version("workspace", f"a field {str(unknown[0])[:60]!r} of {type_}") from None
        first = error.errors()[0]
        raise WorkspaceError(f"the log is damaged: an event {type_} can't be read: {first['msg'][:120]}") from None
    assert isinstance(event, Event)
    return event
