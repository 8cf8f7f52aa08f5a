"""What becomes of each record on the other side: loaded, left out, or in quarantine.

A row in quarantine takes others with it: who needs it goes to quarantine too, who can do without it
loses the reference. Everything follows from the clean records and the plan's policy; nothing is run.
"""

from __future__ import annotations

import numpy as np

from .clean_work import deal_accounts, deal_people
from .draw import Index, Mask
from .world import World


def lower_key(world: World, table: str, index: Index, other: Index) -> Mask:
    """True where a row's key sorts before that of the other row."""
    return world.draw.key_order(table, index) < world.draw.key_order(table, other)


def lost_twin(world: World, table: str, index: Index) -> Mask:
    """True for twins that lose to the other: the row with the lower key stays."""
    troubles = world.lanes(f"{table}/trouble")
    other = troubles.partner(index, "twin")
    return troubles.has(index, "twin") & ~lower_key(world, table, index, other)


def alive(world: World, table: str, index: Index) -> Mask:
    """True for rows that are loaded. NONE and NOWHERE are not."""
    real = index >= 0
    rows = np.maximum(index, 0)
    fine = real & ~world.deleted(table, rows)
    if table == "opportunities":
        fine &= ~world.troubled(table, rows) & alive(world, "accounts", deal_accounts(world, rows))
    elif table in ("contacts", "opportunities_contacts"):
        own = world.troubled(table, rows) & ~world.lanes(f"{table}/trouble").has(rows, "twin")
        fine &= ~own & ~lost_twin(world, table, rows)
        if table == "opportunities_contacts":
            link = deal_people(world, rows)
            fine &= alive(world, "opportunities", link.deal) & alive(world, "contacts", link.person)
    else:
        fine &= ~world.troubled(table, rows)
    return fine
