"""Writes a sample as a legacy system: SQLite, MariaDB, PostgreSQL or a folder of CSV, in pieces of flat memory.

The records come from `source_batches`; a writer a form puts them where they belong and knows nothing of
what they mean.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from pathlib import Path

import pyarrow as pa

from .columns import runs
from .draw import Index
from .form_csv import write_csv
from .form_mariadb import write_mariadb
from .form_postgresql import write_postgresql
from .form_sqlite import write_sqlite
from .legacy_companies import account_tables, campaign_tables, currency_table
from .legacy_config import config_table
from .legacy_people import contact_tables, lead_tables, user_tables
from .legacy_shared import Tables
from .legacy_work import activity_tables, case_tables, deal_people_tables, note_tables, opportunity_tables
from .tables import SOURCE_TABLES
from .world import World

PIECE = 25_000
"""Rows of a table that are made at a time. What is made doesn't depend on it."""

_MAKERS: dict[str, Callable[[World, Index], Tables]] = {
    "users": user_tables,
    "campaigns": campaign_tables,
    "accounts": account_tables,
    "contacts": contact_tables,
    "leads": lead_tables,
    "opportunities": opportunity_tables,
    "opportunities_contacts": deal_people_tables,
    "cases": case_tables,
    "notes": note_tables,
    "calls": lambda world, index: activity_tables(world, "calls", index),
    "meetings": lambda world, index: activity_tables(world, "meetings", index),
    "tasks": lambda world, index: activity_tables(world, "tasks", index),
}


def source_batches(world: World, piece: int = PIECE, only: Collection[str] = ()) -> Iterator[tuple[str, pa.Table]]:
    """All rows of the legacy system, table by table in pieces; each column is text.

    The rows of a piece come in the order of their keys, which servers take in faster. `only` names the
    tables to make, where not all of them: each brings its side and link tables and its addresses.
    """
    unknown = set(only) - set(_MAKERS)
    if unknown:
        raise ValueError(f"no such table: {', '.join(sorted(unknown))}; there are {', '.join(_MAKERS)}")
    return _batches(world, piece, only or tuple(_MAKERS))


def _batches(world: World, piece: int, tables: Collection[str]) -> Iterator[tuple[str, pa.Table]]:
    order = {table.name: list(table.columns) for table in SOURCE_TABLES}
    keys = {table.name: table.key for table in SOURCE_TABLES}
    yield "config", pa.table(config_table()).select(order["config"])
    yield "currencies", pa.table(currency_table(world)).select(order["currencies"])
    for table in tables:
        make = _MAKERS[table]
        for index in runs(world.rows[table], piece):
            for name, batch in make(world, index).items():
                yield name, pa.table(batch).select(order[name]).sort_by(keys[name])


def write_legacy(world: World, where: str | Path, only: Collection[str] = ()) -> dict[str, int]:
    """Writes the legacy system in the world's form and gives the rows by table; the other tables are empty."""
    rows: dict[str, int] = {}
    batches = source_batches(world, only=only)

    def counted() -> Iterator[tuple[str, pa.Table]]:
        for name, batch in batches:
            rows[name] = rows.get(name, 0) + batch.num_rows
            yield name, batch

    if world.form == "sqlite":
        write_sqlite(Path(where), counted())
    elif world.form == "csv":
        write_csv(Path(where), counted())
    elif world.form == "mariadb":
        write_mariadb(str(where), counted())
    else:
        write_postgresql(str(where), counted())
    return rows
