"""Events for whoever watches a job: how much is to come, and that it waits because somebody asked it to."""

from __future__ import annotations

from typing import ClassVar

from pydantic.dataclasses import dataclass

from workspace.event import CONFIG, Count, Event, Text


@dataclass(frozen=True, config=CONFIG)
class RowsExpected(Event):
    """About so many rows of an entity will be read: the source counted them before the first was. Nothing rests on
    the number but what is told of the time that is left. A later event of the same entity takes the place of the earlier.
    """

    type: ClassVar[str] = "rows_expected"
    entity: Text
    rows: Count


@dataclass(frozen=True, config=CONFIG)
class JobPaused(Event):
    """The job waits between two batches, since somebody asked it to (`by` whom, as the mark in its folder says).
    `process` is the one that waits, as the job's lock names it: once it was killed, this says nothing of the next."""

    type: ClassVar[str] = "job_paused"
    by: Text = ""
    process: Text = ""


@dataclass(frozen=True, config=CONFIG)
class JobWentOn(Event):
    """The job goes on after a pause."""

    type: ClassVar[str] = "job_went_on"
