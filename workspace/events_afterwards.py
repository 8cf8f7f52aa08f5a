"""Events of what is done with a job once its rows are loaded: taken back, its quarantine driven once more, its records
taken out of the target, its files purged."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field
from pydantic.dataclasses import dataclass

from workspace.event import CONFIG, Count, Event, Facts, FactsList, Seconds, Text


@dataclass(frozen=True, config=CONFIG)
class UndoStarted(Event):
    """What the job wrote is being taken back: all of it, which ends the job, or one batch of one entity."""

    type: ClassVar[str] = "undo_started"
    entity: Text = ""
    batch: Count | None = None

    @property
    def whole(self) -> bool:
        """True where the whole job is taken back."""
        return not self.entity


@dataclass(frozen=True, config=CONFIG)
class BatchUndone(Event):
    """The target took a batch back; step 1 its rows, step 2 the references filled in them.

    Counts are rows over all times that the batch was taken back: those that it had inserted, those that hold again
    what they held before, and those that stay. A later event of the same entity, batch and step takes the place of
    the earlier. `recovered` is True where the target's ledger told of it after a crash.
    """

    type: ClassVar[str] = "batch_undone"
    entity: Text
    batch: Count
    step: Literal[1, 2]
    deleted: Count = 0
    restored: Count = 0
    refused: Count = 0
    seconds: Seconds = 0.0
    recovered: bool = False


@dataclass(frozen=True, config=CONFIG)
class QuarantineRetried(Event):
    """Rows of the quarantine are being driven once more, by this plan version: of one entity or signature, or of
    all. `rows` is how many; with `dropped`, dropped ones too. `edited` counts values that a person edited, by
    entity and source column."""

    type: ClassVar[str] = "quarantine_retried"
    plan_version: Count
    rows: Count = 0
    entity: Text = ""
    signature: Text = ""
    dropped: bool = False
    edited: Facts = Field(default_factory=dict)


@dataclass(frozen=True, config=CONFIG)
class BatchRetried(Event):
    """The target committed rows of a batch that had been in quarantine, or references filled in them.

    Counts are rows over all times that the batch was retried: what became of those that left the quarantine.
    `clusters` are what it has in quarantine now, with `signature`, `code`, `field`, `open` and `dropped`. A later
    event of the same entity and batch takes the place of the earlier. `recovered` is True where the target told of
    it after a crash.
    """

    type: ClassVar[str] = "batch_retried"
    entity: Text
    batch: Count
    step: Count
    plan_version: Count
    inserted: Count = 0
    updated: Count = 0
    unchanged: Count = 0
    excluded: Count = 0
    references: Count = 0
    clusters: FactsList = Field(default_factory=list)
    seconds: Seconds = 0.0
    recovered: bool = False
    merged: Count = 0


@dataclass(frozen=True, config=CONFIG)
class RowsDropped(Event):
    """A person gave up `rows` rows of a batch that were open in quarantine: they stay there, as dropped.
    `clusters` as in BatchRetried."""

    type: ClassVar[str] = "rows_dropped"
    entity: Text
    batch: Count
    rows: Count
    clusters: FactsList = Field(default_factory=list)


@dataclass(frozen=True, config=CONFIG)
class QuarantineTolerated(Event):
    """From now on the job may have so many rows in quarantine: a share of those read below 1, else rows."""

    type: ClassVar[str] = "quarantine_tolerated"
    most: Annotated[float, Field(ge=0, allow_inf_nan=False)]


@dataclass(frozen=True, config=CONFIG)
class CrosswalkExported(Event):
    """The crosswalk rows that a job owns stand in a file, whole and durable: how many, by entity. What it has in
    quarantine stands in `quarantine`, "" where there is nothing."""

    type: ClassVar[str] = "crosswalk_exported"
    file: Text
    rows: Facts = Field(default_factory=dict)
    quarantine: Text = ""


@dataclass(frozen=True, config=CONFIG)
class JobCleanedUp(Event):
    """The job's records are no longer in the target; `crosswalk` is the file that it was exported to. `schema_gone`
    where our schema went with them: no other job had records there. `recovered` where the target told of it after a
    crash."""

    type: ClassVar[str] = "job_cleaned_up"
    crosswalk: Text
    schema_gone: bool = False
    recovered: bool = False


@dataclass(frozen=True, config=CONFIG)
class JobPurged(Event):
    """Record values are no longer in the log, and what else of the job's files holds any goes: so many `files` of so
    many `bytes`. `events` of the log lost values in their places. `unsettled` where questions or rows in quarantine were
    open, or the job wasn't done and verified. `by` whom, `user on host`. From here on the job can't go on."""

    type: ClassVar[str] = "job_purged"
    files: Count = 0
    bytes: Count = 0
    events: Count = 0
    unsettled: bool = False
    by: Text = ""
