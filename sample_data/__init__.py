"""A legacy CRM as it looks after fifteen years, made up, of any size, together with the truth about it.

The clean records are made first and dirtied afterwards, so what the other side should hold is known
without running anything of the product. `write_sample` is the way in; `python -m sample_data` for a person.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from .clean_lines import write_clean_lines
from .legacy import write_legacy
from .truth import Counts, write_truth
from .world import FORMS, World

__all__ = [
    "CLOUD_MARIADB",
    "CLOUD_SQL",
    "CLOUD_SQLITE",
    "FORMS",
    "GOLD_PLAN",
    "Counts",
    "SampleFacts",
    "World",
    "write_clean_lines",
    "write_sample",
    "write_truth",
]

_HERE = Path(__file__).parent
CLOUD_SQL = _HERE / "cloud.sql"
"""The schema that the records go to."""
CLOUD_MARIADB = _HERE / "cloud_mariadb.sql"
CLOUD_SQLITE = _HERE / "cloud_sqlite.sql"
"""The same in other systems: lists are text there."""
GOLD_PLAN = _HERE / "gold_plan.yaml"
"""The plan that a careful person wrote."""


@dataclass(frozen=True)
class SampleFacts:
    """What was written: `rows` by legacy table."""

    form: str
    contacts: int
    seed: int
    rows: dict[str, int]


def write_sample(
    form: str, where: str | Path, contacts: int = 2000, seed: int = 7, only: Collection[str] = ()
) -> SampleFacts:
    """Writes a legacy CRM with that many contacts and all that belongs to them.

    `form` is sqlite (`where` is a file's path), csv (a folder's), mariadb or postgresql (an SQLAlchemy
    URL of an existing database). What is there under the same table names is replaced. The same size,
    seed and form give the same rows. `only` fills just those tables with what goes with them (users,
    accounts and contacts, say); the rows are the same as without. ValueError for a form, size or table
    that isn't known.
    """
    world = World(contacts, seed, form)
    return SampleFacts(form, contacts, seed, write_legacy(world, where, only))
