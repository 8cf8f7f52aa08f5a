"""What the legacy tables have in common: who made a row and when, its e-mail addresses, its parent."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from . import clock, mess
from .clean_work import PARENTS
from .columns import Batch, Text, constant, numbers_text, only, pick, put, where
from .draw import Index, Mask
from .world import NONE, World

Tables = dict[str, Batch]
"""Rows by legacy table."""

ZERO_MOMENT = "0000-00-00 00:00:00"
ZERO_DATE = "0000-00-00"

NO_COUNTRY: list[str | None] = ["Atlantis", "various", "see notes", "worldwide"]
"""What stands in a country column and names none."""
NO_PHONE: list[str | None] = ["see notes", "000000", "123", "ask reception"]
"""What stands in a telephone column and is no number."""

_MODULES = ("", "Accounts", "Contacts", "Opportunities", "Leads", "Cases", "Project")


def stamps(world: World, table: str, index: Index, created: clock.Seconds, updated: clock.Seconds) -> Batch:
    """When a row was made and changed, on New York's wall clock, and by whom."""
    draw = world.draw
    entered = clock.new_york_text(created)
    entered = where(world.trouble(table, index, "created_zero"), ZERO_MOMENT, entered)
    changer = draw.below(f"{table}/changer", index, world.rows["users"])
    author = draw.below(f"{table}/author", index, world.rows["users"])
    return {
        "date_entered": entered,
        "date_modified": clock.new_york_text(updated),
        "modified_user_id": world.reference("users", changer, table, index),
        "created_by": world.reference("users", author, table, index),
    }


def later(world: World, table: str, index: Index, created: clock.Seconds) -> clock.Seconds:
    """A time of change for tables whose records keep none on the other side."""
    stream = f"{table}/changed"
    return clock.by_night(world.draw, stream, index, created + world.draw.below(stream, index, 20_000_000))


def emails(
    world: World,
    module: str,
    stream: str,
    index: Index,
    bean: Text,
    address: Text,
    written: Text,
    flags: dict[str, Mask],
) -> Tables:
    """Rows of email_addresses and email_addr_bean_rel for the rows of `index`, all of which have an address.

    `flags` holds primary, opt_out and deleted.
    """
    rows = len(index)
    key = world.draw.keys(f"{stream}/address", index)
    made = clock.new_york_text(clock.moments(world.draw, f"{stream}/made", index, 2009, 2023))
    return {
        "email_addresses": {
            "id": key,
            "email_address": written,
            "email_address_caps": pc.utf8_upper(pc.utf8_trim_whitespace(written)),
            "invalid_email": mess.flag(world.draw.chance(f"{stream}/invalid", index, 0.01)),
            "opt_out": mess.flag(flags["opt_out"]),
            "date_created": made,
            "deleted": constant("0", rows),
        },
        "email_addr_bean_rel": {
            "id": world.draw.keys(f"{stream}/link", index),
            "email_address_id": key,
            "bean_id": bean,
            "bean_module": constant(module, rows),
            "primary_address": mess.flag(flags["primary"]),
            "reply_to_address": constant("0", rows),
            "date_created": made,
            "deleted": mess.flag(flags["deleted"]),
        },
    }


def broken_emails(world: World, stream: str, index: Index, clean: Text) -> Text:
    """What stands where an address should, and is none."""
    kinds = [
        pick(["unknown", "see notes", "ask assistant"], world.draw.below(f"{stream}/broken", index, 3)),
        pc.replace_substring(clean, "@", "(at)"),
        pc.replace_substring(clean, "@", "@@"),
        pc.binary_join_element_wise(clean, "second@example.com", "; "),
    ]
    way = world.draw.below(f"{stream}/broken/way", index, len(kinds))
    out = kinds[0]
    for number in range(1, len(kinds)):
        out = where(way == number, kinds[number], out)
    return out


def parents(world: World, table: str, index: Index, kind: Index, parent: Index) -> Batch:
    """The polymorphic parent: a module's name and a key of its table."""
    keys = only(np.zeros(len(index), dtype=bool), constant("", len(index)))
    for number, name in enumerate(PARENTS):
        rows = kind == number
        if not name or not rows.any():
            continue
        if name == "project":
            some = world.draw.keys("project", parent[rows])
        else:
            some = world.reference(name, parent[rows], f"{table}/parent", index[rows])
        keys = put(keys, rows, some)
    return {"parent_type": pick([None, *_MODULES[1:]], kind), "parent_id": keys}


def owner(world: World, table: str, index: Index, user: Index) -> Text:
    """The key of the user a row is assigned to."""
    return world.reference("users", user, f"{table}/owner", index)


def filtered(batch: Batch, rows: Mask) -> Batch:
    """The rows of a batch where the mask is true."""
    mask = pa.array(rows)
    return {name: column.filter(mask) for name, column in batch.items()}


def words(world: World, stream: str, index: Index, rows: Mask, base: Text, values: list[str | None]) -> Text:
    """`base` with one of the values where the mask is true."""
    return where(rows, pick(values, world.draw.below(f"{stream}/words", index, len(values))), base)


def maybe_number(value: Index) -> Text:
    """Whole numbers as text, NULL for NONE."""
    return only(value != NONE, numbers_text(value))
