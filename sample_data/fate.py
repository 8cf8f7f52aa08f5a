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


def deleted(world: World, table: str, index: Index) -> Mask:
    """True for rows marked as deleted. The first rows of each trouble never are, nor are twins.

    Opportunities and links mostly went with what they belonged to. Of a person entered again one record
    is deleted and has the same e-mail as the one that lives.
    """
    mask = world.lanes(f"{table}/deleted").has(index, "deleted")
    if table == "opportunities":
        account = deal_accounts(world, index)
        mask |= _went(world, table, index, (account >= 0) & deleted(world, "accounts", np.maximum(account, 0)))
    elif table == "opportunities_contacts":
        link = deal_people(world, index)
        person = (link.person >= 0) & deleted(world, "contacts", np.maximum(link.person, 0))
        mask |= _went(world, table, index, person | deleted(world, "opportunities", link.deal))
    troubles = world.lanes(f"{table}/trouble")
    mask &= ~troubles.first(index, 2)
    if "twin" in troubles.lanes:
        mask &= ~troubles.has(index, "twin")
    if "again" in troubles.lanes:
        mask = np.where(troubles.has(index, "again"), ~troubles.leads(index, "again"), mask)
    return mask


def _went(world: World, table: str, index: Index, with_it: Mask) -> Mask:
    return with_it & world.draw.chance(f"{table}/went", index, 0.85)


def alive(world: World, table: str, index: Index) -> Mask:
    """True for rows that are loaded. NONE and NOWHERE are not."""
    real = index >= 0
    rows = np.maximum(index, 0)
    fine = real & ~deleted(world, table, rows)
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
