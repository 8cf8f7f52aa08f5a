"""The link tables of contacts: to their accounts, and to their e-mail addresses, the second ones included."""

from __future__ import annotations

import numpy as np

from . import clock, mess
from .clean_companies import contact_accounts
from .clean_people import Contacts
from .columns import Batch, Text, join, numbers_text, present, stacked, where
from .draw import Index, Mask
from .fate import deleted
from .legacy_shared import Tables, broken_emails, emails
from .world import NONE, NOWHERE, World


def contact_links(world: World, index: Index) -> Batch:
    """Links to accounts: the one that holds, and those of former employers, which are marked as deleted."""
    draw = world.draw
    account = contact_accounts(world, index)
    now = index[account != NONE]
    old = index[world.lanes("contacts.link").has(index, "old")]
    account = np.concatenate([account[account != NONE], draw.below("contacts/link/old", old, world.rows["accounts"])])
    both = np.concatenate([now, old])
    return {
        "id": stacked(draw.keys("contacts/link", now), draw.keys("contacts/link/former", old)),
        "contact_id": world.key("contacts", both),
        "account_id": world.reference("accounts", account, "contacts/link", both),
        "date_modified": clock.new_york_text(clock.moments(draw, "contacts/link/made", both, 2009, 2023)),
        "deleted": mess.flag(np.arange(len(both)) >= len(now)),
    }


def contact_addresses(world: World, index: Index, clean: Contacts) -> Tables:
    """First and second addresses of contacts with the links to them."""
    first, second = _first_emails(world, index, clean), _second_emails(world, index)
    return {
        name: {column: stacked(first[name][column], second[name][column]) for column in first[name]} for name in first
    }


def _first_emails(world: World, index: Index, clean: Contacts) -> Tables:
    has = present(clean.email)
    rows = index[has]
    address = clean.email.filter(has)
    troubles = world.lanes("contacts/trouble")
    shout = troubles.has(rows, "twin") & ~troubles.leads(rows, "twin")
    written = mess.email(world, "contacts/email", rows, address, shout)
    written = where(
        world.trouble("contacts", rows, "email_broken"), broken_emails(world, "contacts/email", rows, address), written
    )
    flags = {
        "primary": np.ones(len(rows), dtype=bool),
        "opt_out": clean.opt_out[has],
        "deleted": forgotten(world, rows, "contacts/email"),
    }
    return emails(world, "Contacts", "contacts/email", rows, world.key("contacts", rows), address, written, flags)


def forgotten(world: World, index: Index, stream: str) -> Mask:
    """True where the link to an address went with its contact; now and then it was left behind."""
    return deleted(world, "contacts", index) & ~world.draw.chance(f"{stream}/left", index, 0.1)


def second_rows(world: World, index: Index) -> Index:
    """The rows of contacts that have a second address."""
    kinds = world.lanes("contacts.second")
    return index[kinds.of(index) < len(kinds.lanes)]


def second_addresses(world: World, rows: Index) -> Text:
    """The second address of those contacts."""
    return join("", "private.", numbers_text(rows + 1), "@example.net")


def _second_emails(world: World, index: Index) -> Tables:
    """Second addresses, a few of them of contacts that are gone for good."""
    rows = second_rows(world, index)
    lost = world.lanes("contacts.second").has(rows, "nowhere")
    bean = world.reference("contacts", np.where(lost, NOWHERE, rows), "contacts/second", rows)
    address = second_addresses(world, rows)
    no = np.zeros(len(rows), dtype=bool)
    flags = {
        "primary": no,
        "opt_out": world.draw.chance("contacts/second/opt_out", rows, 0.1),
        "deleted": forgotten(world, rows, "contacts/second") & ~lost,
    }
    written = mess.email(world, "contacts/second", rows, address, no)
    return emails(world, "Contacts", "contacts/second", rows, bean, address, written, flags)
