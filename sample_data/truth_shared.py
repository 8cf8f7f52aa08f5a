"""What the truth of every entity is built with: new ids, references that lead somewhere, reasons.

The new id of a record follows from its entity's name and its key alone, as the plan format says; that
is the one thing taken over from the product, and it is computed here anew.
"""

from __future__ import annotations

import hashlib
import uuid
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from .columns import Batch, Text, only
from .draw import Index, Mask, fixed_text, hyphenated
from .fate import alive, deleted
from .world import TROUBLES, Trouble, World


@dataclass(frozen=True)
class TruthEntity:
    """An entity of the gold plan: its source table, its target table, and where its ids come from.

    `references` maps target fields to the entities they point at.
    """

    name: str
    table: str
    to: str
    id: str
    references: dict[str, str]


_ACTIVITY = {
    "company_id": "accounts",
    "person_id": "contacts",
    "deal_id": "opportunities",
    "lead_id": "leads",
    "assignee_id": "users",
}

ENTITIES: dict[str, TruthEntity] = {
    entity.name: entity
    for entity in (
        TruthEntity("users", "users", "members", "uuid5", {"manager_id": "users"}),
        TruthEntity("campaigns", "campaigns", "campaigns", "sequence", {"owner_id": "users"}),
        TruthEntity(
            "accounts",
            "accounts",
            "companies",
            "uuid5",
            {"parent_id": "accounts", "owner_id": "users", "primary_contact_id": "contacts"},
        ),
        TruthEntity(
            "contacts",
            "contacts",
            "people",
            "uuid5",
            {"company_id": "accounts", "reports_to_id": "contacts", "owner_id": "users"},
        ),
        TruthEntity("contact_emails", "email_addr_bean_rel", "person_emails", "none", {"person_id": "contacts"}),
        TruthEntity(
            "leads",
            "leads",
            "leads",
            "uuid5",
            {"campaign_id": "campaigns", "owner_id": "users", "converted_person_id": "contacts"},
        ),
        TruthEntity(
            "opportunities",
            "opportunities",
            "deals",
            "uuid5",
            {"company_id": "accounts", "campaign_id": "campaigns", "owner_id": "users"},
        ),
        TruthEntity(
            "opportunity_contacts",
            "opportunities_contacts",
            "deal_people",
            "none",
            {"deal_id": "opportunities", "person_id": "contacts"},
        ),
        TruthEntity("cases", "cases", "tickets", "keep", {"company_id": "accounts", "assignee_id": "users"}),
        TruthEntity(
            "notes",
            "notes",
            "notes",
            "uuid5",
            {
                "company_id": "accounts",
                "person_id": "contacts",
                "deal_id": "opportunities",
                "lead_id": "leads",
                "ticket_id": "cases",
                "author_id": "users",
            },
        ),
        TruthEntity("calls", "calls", "activities", "uuid5", _ACTIVITY),
        TruthEntity("meetings", "meetings", "activities", "uuid5", _ACTIVITY),
        TruthEntity("tasks", "tasks", "activities", "uuid5", _ACTIVITY),
    )
}
"""All entities, in an order in which they can be read."""

_BY_TABLE = {entity.table: entity for entity in ENTITIES.values()}


@dataclass
class Piece:
    """The truth about some source rows of one entity.

    `rows` holds what is loaded, with `_key` first; `reasons` lists (key, field, code) of rows in
    quarantine, more than one for a row where either reason is right; `read` and `excluded` count rows.
    """

    rows: Batch
    read: int
    excluded: int
    reasons: list[tuple[str, str, str]] = field(default_factory=list)

    @property
    def quarantined(self) -> int:
        """How many rows are in quarantine."""
        return len({key for key, _, _ in self.reasons})


def new_ids(entity: str, keys: Text) -> Text:
    """The uuid5 of each key in the entity's namespace, as text; NULL for NULL."""
    space = hashlib.sha1(uuid.uuid5(uuid.NAMESPACE_URL, f"packhorse:{entity}").bytes)
    digests = bytearray()
    for key in keys.to_pylist():
        one = space.copy()
        one.update((key or "").encode())
        digests += one.digest()[:16]
    octets = np.frombuffer(digests, dtype=np.uint8).reshape(-1, 16).copy()
    octets[:, 6] = octets[:, 6] & 0x0F | 0x50
    octets[:, 8] = octets[:, 8] & 0x3F | 0x80
    ids = fixed_text(hyphenated(octets))
    missing = keys.null_count
    return only(np.asarray(keys.is_valid()), ids) if missing else ids


def identity(world: World, entity: str, keys: Text) -> Text:
    """What a reference to those source keys holds: a new id, or the key itself where no id can be foretold."""
    kind = ENTITIES[entity].id
    return new_ids(entity, keys) if kind == "uuid5" else keys


def points_at(world: World, entity: str, target: Index) -> Text:
    """References to rows of an entity, NULL where the row isn't loaded, isn't there, or none is named."""
    table = ENTITIES[entity].table
    lives = alive(world, table, target)
    out = np.full(len(target), None, dtype=object)
    some = np.unique(target[lives])
    ids = identity(world, entity, world.key(table, some)).to_numpy(zero_copy_only=False)
    out[lives] = ids[np.searchsorted(some, target[lives])]
    return pa.array(out, pa.string())


def own_reasons(world: World, table: str, index: Index, lost: Mask) -> list[tuple[str, str, str]]:
    """The reasons of rows that have a trouble of their own; `lost` marks twins that lose to the other."""
    found: list[tuple[str, str, str]] = []
    here = ~deleted(world, table, index)
    for lane in TROUBLES[table]:
        if isinstance(lane, Trouble):
            rows = (lost if lane.name == "twin" else world.trouble(table, index, lane.name)) & here
            if rows.any():
                keys = world.key(table, index[rows]).to_pylist()
                found.extend((key, lane.field, lane.code) for key in keys)
    return found


def missing_parents(keys: Text, rows: Mask, field_name: str) -> list[tuple[str, str, str]]:
    """Rows whose required reference leads nowhere."""
    return [(key, field_name, "reference") for key in keys.filter(pa.array(rows)).to_pylist()]
