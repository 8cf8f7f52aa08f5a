"""Events of a sync: a further generation of a job's stage, and what its batches did."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field
from pydantic.dataclasses import dataclass

from workspace.event import CONFIG, Count, Event, FactsList, Text, TextList


@dataclass(frozen=True, config=CONFIG)
class SyncStarted(Event):
    """A generation of the stage begins, the second or a later one: what changed in the source is read and brought in.
    `deletes` says what becomes of rows that the source has no longer; with `full`, watermarks are not relied on.
    `edited`, where it isn't empty, stands in the place of what the plan's entities say of rows that were edited in the
    target. With `redriven`, the source isn't read: the rows of these entities are driven again as the stage has them,
    since the plan says more than version `written_by`, which they were loaded by."""

    type: ClassVar[str] = "sync_started"
    generation: Annotated[int, Field(ge=2)]
    deletes: Literal["keep", "delete", "mark"] = "keep"
    full: bool = False
    edited: Literal["", "keep", "overwrite", "ask"] = ""
    redriven: TextList = Field(default_factory=list)
    written_by: Count = 0


@dataclass(frozen=True, config=CONFIG)
class GenerationStaged(Event):
    """An entity's part of a generation stands: what the source holds otherwise than the stage before it.

    Its parts are `parts` from number `first` on, and after them `removals` that hold no row: what leaves the target. `seen` rows were read; of those staged, `new` have a source key that
    wasn't there, `changed` are known ones with other values, `again` are unchanged ones that are driven once more.
    `gone` counts rows of the stage that the source has no longer, None where nobody looked; `counted` is the
    source's own COUNT. With `watermark`, only rows from its column's last value on were read. `snapshot` as in
    StageCompleted.
    """

    type: ClassVar[str] = "generation_staged"
    entity: Text
    generation: Annotated[int, Field(ge=2)]
    first: Count
    parts: Count
    rows: Count
    seen: Count
    new: Count
    changed: Count
    again: Count
    gone: Count | None
    counted: Count
    watermark: Text = ""
    snapshot: bool = False
    removals: Count = 0


@dataclass(frozen=True, config=CONFIG)
class BatchSynced(Event):
    """The target committed a batch of a later generation, told of by a BatchCommitted just before.

    Its rows take the place of earlier ones of the same source keys: `loaded`, `excluded` and `quarantined` are how
    many of those there were, and they are read no longer. `clusters` are what earlier batches have in quarantine
    now, a list of objects with `batch` and `clusters` (as in BatchRetried), for those that lost rows there. `kept`
    rows were edited in the target and not (or not wholly) written over, for `asked` of them a person is to say
    what holds; `deleted`, `marked` and `stayed` are rows that the source has no longer.
    """

    type: ClassVar[str] = "batch_synced"
    entity: Text
    batch: Count
    loaded: Count = 0
    excluded: Count = 0
    quarantined: Count = 0
    clusters: FactsList = Field(default_factory=list)
    kept: Count = 0
    asked: Count = 0
    deleted: Count = 0
    marked: Count = 0
    stayed: Count = 0


@dataclass(frozen=True, config=CONFIG)
class SyncCompleted(Event):
    """All batches of a generation are committed."""

    type: ClassVar[str] = "sync_completed"
    generation: Annotated[int, Field(ge=2)]
