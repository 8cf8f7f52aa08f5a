"""What a user of a system has to be allowed for a job: each right as the statement that grants it, and whether it is
held. Every system answers in its own SQL; nothing is granted here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from connectors.relation import is_select

Need = Literal["job", "later", "undo"]
"""Who needs it: any job; only a later job over the same systems, or a retry; only `migrate undo`."""


@dataclass(frozen=True)
class Grant:
    """`statement` is SQL for an administrator, or words where a system has no such statement. `missing` are the
    privileges of it that the user lacks: empty where all are held, None where nobody can tell."""

    statement: str
    purpose: str
    need: Need = "job"
    missing: tuple[str, ...] | None = ()


@dataclass(frozen=True)
class TableUse:
    """What a plan does with a table of the target: whether rows are updated in a first job, and which columns it
    writes. `draws` where new ids come from the id column's sequence."""

    table: str
    updates: bool
    columns: frozenset[str]
    draws: bool


def tables_read(relation: str, dialect: str) -> list[str]:
    """The tables that a plan's `from` reads, as `name` or `schema.name`: itself, or all that a SELECT names."""
    if not is_select(relation):
        return [relation]
    try:
        tree = sqlglot.parse_one(relation, read=dialect)
    except SqlglotError:
        return []  # the plan's own check says what is wrong with it
    own = {cte.alias for cte in tree.find_all(exp.CTE)}
    named = [table for table in tree.find_all(exp.Table) if table.db or table.name not in own]
    return list(dict.fromkeys(f"{table.db}.{table.name}" if table.db else table.name for table in named))


def all_tables_read(relations: Sequence[str], dialect: str) -> list[str]:
    """The same of several, each table once."""
    return list(dict.fromkeys(table for relation in relations for table in tables_read(relation, dialect)))
