"""What addresses, leads, deals, tickets, notes and activities hold on the other side, from the clean records."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from . import clock
from .clean_people import contacts, leads
from .clean_work import CURRENCIES, PARENTS, activities, cases, deal_people, notes, opportunities
from .columns import Text, cents_text, constant, numbers_text, only, pick, present, stacked
from .draw import Index, Mask
from .fate import alive, deleted
from .legacy_links import forgotten, second_addresses, second_rows
from .names import COUNTRIES
from .truth_parties import loaded, true_or_false
from .truth_shared import Piece, missing_parents, points_at
from .world import NONE, World


def contact_email_truth(world: World, index: Index) -> Piece:
    """The addresses of people, first and second ones, for those contacts."""
    clean = contacts(world, index)
    has = present(clean.email)
    first = index[has]
    broken = world.trouble("contacts", first, "email_broken")
    one = _addresses(
        world, first, "contacts/email", clean.email.filter(pa.array(has)), clean.opt_out[has], broken, ~broken & False
    )
    second = second_rows(world, index)
    lost = world.lanes("contacts.second").has(second, "nowhere")
    opted = world.draw.chance("contacts/second/opt_out", second, 0.1)
    two = _addresses(world, second, "contacts/second", second_addresses(world, second), opted, lost & False, lost)
    rows = {name: stacked(one.rows[name], two.rows[name]) for name in one.rows}
    return Piece(rows, one.read + two.read, one.excluded + two.excluded, one.reasons + two.reasons)


def _addresses(world: World, rows: Index, stream: str, address: Text, opted: Mask, broken: Mask, lost: Mask) -> Piece:
    gone = forgotten(world, rows, stream) & ~lost
    keys = world.draw.keys(f"{stream}/link", rows)
    person = alive(world, "contacts", rows) & ~lost
    here = ~gone & person & ~broken
    reasons = missing_parents(keys, ~gone & ~person, "person_id")
    reasons += [(key, "address", "function") for key in keys.filter(pa.array(~gone & broken)).to_pylist()]
    mask = pa.array(here)
    loaded_rows = {
        "_key": keys.filter(mask),
        "person_id": points_at(world, "contacts", rows[here]),
        "address": address.filter(mask),
        "is_primary": constant("t" if stream == "contacts/email" else "f", int(here.sum())),
        "opted_out": true_or_false(opted[here]),
    }
    return Piece(loaded_rows, len(rows), int(gone.sum()), reasons)


def lead_truth(world: World, index: Index) -> Piece:
    """Leads."""
    piece, rows = loaded(world, "leads", index)
    clean = leads(world, rows)
    phone = clean.has_phone & ~world.lanes("leads.phone").has(rows, "broken")
    lost = world.lanes("leads.campaign").has(rows, "nowhere")
    piece.rows = {
        "_key": clean.key,
        "given_name": clean.given,
        "family_name": clean.family,
        "company_name": clean.company,
        "job_title": clean.title,
        "email": clean.email,
        "phone": only(phone, clean.phone.e164()),
        "country_code": only(clean.country_known, pick(COUNTRIES, clean.country)),
        "state": clean.state,
        "acquired_through": clean.source,
        "estimated_value": only(clean.value != NONE, cents_text(clean.value)),
        "campaign_id": points_at(world, "campaigns", np.where(lost, NONE, clean.campaign)),
        "owner_id": points_at(world, "users", clean.owner),
        "converted_person_id": points_at(world, "contacts", clean.person),
        "about": clean.about,
        "created_at": clock.utc_text(clean.created),
    }
    return piece


def opportunity_truth(world: World, index: Index) -> Piece:
    """Deals. One whose company is not there cannot be there either."""
    piece, rows = loaded(world, "opportunities", index)
    here = index[~deleted(world, "opportunities", index)]
    account = opportunities(world, here).account
    orphan = (account != NONE) & ~alive(world, "accounts", account)
    piece.reasons += missing_parents(world.key("opportunities", here), orphan, "company_id")
    clean = opportunities(world, rows)
    piece.rows = {
        "_key": clean.key,
        "title": clean.title,
        "company_id": points_at(world, "accounts", clean.account),
        "stage": clean.stage,
        "amount": cents_text(clean.amount),
        "currency_code": pick(CURRENCIES, clean.currency),
        "win_probability": numbers_text(clean.probability),
        "expected_close_on": only(clean.has_close, clock.date_text(clean.closes)),
        "acquired_through": clean.source,
        "campaign_id": points_at(world, "campaigns", clean.campaign),
        "owner_id": points_at(world, "users", clean.owner),
        "next_step": clean.next_step,
        "created_at": clock.utc_text(clean.created),
        "updated_at": clock.utc_text(clean.updated),
    }
    return piece


def deal_people_truth(world: World, index: Index) -> Piece:
    """Who takes part in a deal: both must be there, and each pair only once."""
    piece, rows = loaded(world, "opportunities_contacts", index)
    here = index[~deleted(world, "opportunities_contacts", index)]
    link, keys = deal_people(world, here), world.key("opportunities_contacts", here)
    piece.reasons += missing_parents(keys, ~alive(world, "opportunities", link.deal), "deal_id")
    piece.reasons += missing_parents(keys, ~alive(world, "contacts", link.person), "person_id")
    clean = deal_people(world, rows)
    piece.rows = {
        "_key": clean.key,
        "deal_id": points_at(world, "opportunities", clean.deal),
        "person_id": points_at(world, "contacts", clean.person),
        "part": clean.part,
    }
    return piece


def case_truth(world: World, index: Index) -> Piece:
    """Tickets."""
    piece, rows = loaded(world, "cases", index)
    clean = cases(world, rows)
    piece.rows = {
        "_key": clean.key,
        "number": numbers_text(clean.number),
        "subject": clean.subject,
        "state": clean.state,
        "urgency": clean.urgency,
        "company_id": points_at(world, "accounts", clean.account),
        "assignee_id": points_at(world, "users", clean.owner),
        "problem": clean.problem,
        "solution": clean.solution,
        "opened_at": clock.utc_text(clean.created),
    }
    return piece


def _parent(world: World, kind: Index, parent: Index, table: str) -> Text:
    """References of the rows whose parent is of that table."""
    return points_at(world, table, np.where(kind == PARENTS.index(table), parent, NONE))


def _person(world: World, kind: Index, parent: Index, person: Index) -> Text:
    """The parent where it is a contact, otherwise the contact named beside it."""
    return points_at(world, "contacts", np.where(kind == PARENTS.index("contacts"), parent, person))


def note_truth(world: World, index: Index) -> Piece:
    """Notes."""
    piece, rows = loaded(world, "notes", index)
    clean = notes(world, rows)
    kind, parent = clean.parent_kind, clean.parent
    piece.rows = {
        "_key": clean.key,
        "subject": clean.subject,
        "body": clean.body,
        "company_id": _parent(world, kind, parent, "accounts"),
        "person_id": _person(world, kind, parent, clean.person),
        "deal_id": _parent(world, kind, parent, "opportunities"),
        "lead_id": _parent(world, kind, parent, "leads"),
        "ticket_id": _parent(world, kind, parent, "cases"),
        "author_id": points_at(world, "users", clean.author),
        "created_at": clock.utc_text(clean.created),
    }
    return piece


def activity_truth(world: World, table: str, index: Index) -> Piece:
    """Activities out of calls, meetings or tasks."""
    piece, rows = loaded(world, table, index)
    clean = activities(world, table, rows)
    kind, parent = clean.parent_kind, clean.parent
    piece.rows = {
        "_key": clean.key,
        "kind": constant(table.removesuffix("s"), len(rows)),
        "subject": clean.subject,
        "state": clean.state,
        "starts_at": only(clean.has_start, clock.utc_text(clean.starts)),
        "due_at": only(clean.has_due, clock.utc_text(clean.due)),
        "duration_minutes": only(clean.duration != NONE, numbers_text(clean.duration)),
        "location": clean.location,
        "body": clean.body,
        "company_id": _parent(world, kind, parent, "accounts"),
        "person_id": _person(world, kind, parent, clean.person),
        "deal_id": _parent(world, kind, parent, "opportunities"),
        "lead_id": _parent(world, kind, parent, "leads"),
        "assignee_id": points_at(world, "users", clean.owner),
        "created_at": clock.utc_text(clean.created),
    }
    return piece
