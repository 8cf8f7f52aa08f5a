"""Events of a job that is tried out before it runs, and of how far it may then stray from that."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field
from pydantic.dataclasses import dataclass

from workspace.event import CONFIG, Count, Event, Facts, Text


@dataclass(frozen=True, config=CONFIG)
class Rehearsed(Event):
    """The job was carried out into an empty copy of its target, with this plan version. `entities` has, by name,
    `read`, `loaded`, `merged`, `excluded`, `quarantined`, and `batches`, a list of the rows read, excluded and
    quarantined of each; `report` is what `migrate rehearse --json` gives."""

    type: ClassVar[str] = "rehearsed"
    plan_version: Count
    entities: Facts = Field(default_factory=dict)
    report: Facts = Field(default_factory=dict)


@dataclass(frozen=True, config=CONFIG)
class StrayAllowed(Event):
    """A person lets the job stray from its rehearsal by so much: a share of the rows read below 1, else rows."""

    type: ClassVar[str] = "stray_allowed"
    most: Annotated[float, Field(ge=0, allow_inf_nan=False)]


@dataclass(frozen=True, config=CONFIG)
class Piloted(Event):
    """A slice of the job's stage stands, and is the stage of the job `pilot`; `share` is how much of each entity it
    began with."""

    type: ClassVar[str] = "piloted"
    pilot: Text
    share: Text
