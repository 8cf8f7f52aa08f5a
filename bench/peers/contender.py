"""What each contender says of itself: what it is, what it does and doesn't, and the command that is measured."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.systems import Systems
from sample_data.servers import Database


class NotRunError(Exception):
    """A contender that can't run here; the text says why, in one line."""


@dataclass(frozen=True)
class Started:
    """A command, and what is added to its environment: a password has no place among arguments."""

    command: list[str]
    environment: Mapping[str, str] = field(default_factory=dict)


def _nothing(systems: Systems, target: Database, folder: Path) -> dict[str, Any]:
    return {}


@dataclass(frozen=True)
class Contender:
    """One line of the table. `did` says what was done to the rows in a few words, `how` by what means.

    `prepare` installs what is missing and gives the versions in use; `start` gives the command for a target
    and a folder of its own. Both raise NotRunError. `after` is not measured: what there is to tell of the
    run, by name. `place` is what stands before the names of the tables that its rows are in. `form` is the
    source that it reads; the rows that should arrive are known for `mariadb` only.
    """

    name: str
    did: str
    how: str
    prepare: Callable[[], dict[str, str]]
    start: Callable[[Systems, Database, Path], Started]
    after: Callable[[Systems, Database, Path], dict[str, Any]] = _nothing
    place: str = "public."
    form: str = "mariadb"
