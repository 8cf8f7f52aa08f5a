"""What members, campaigns, companies and people hold on the other side, from the clean records.

Every value is text as PostgreSQL's COPY writes it, in UTC and with ISO dates.
"""

from __future__ import annotations

import numpy as np
import pyarrow.compute as pc

from . import clock
from .clean_companies import accounts, campaigns
from .clean_people import contacts, users
from .columns import Text, cents_text, join, numbers_text, only, pick, present, where
from .draw import Index, Mask
from .fate import alive, deleted, lost_twin
from .lists import INTEREST_ARRAYS, TAG_ARRAYS
from .names import COUNTRIES
from .truth_shared import Piece, own_reasons, points_at
from .world import NONE, World


def true_or_false(mask: Mask) -> Text:
    """t and f."""
    return pick(["f", "t"], mask.astype(np.int64))


def loaded(world: World, table: str, index: Index) -> tuple[Piece, Index]:
    """The counts and own reasons of those rows, and the rows that are loaded."""
    gone = deleted(world, table, index)
    twins = "twin" in world.lanes(f"{table}/trouble").lanes
    lost = lost_twin(world, table, index) if twins else np.zeros(len(index), dtype=bool)
    piece = Piece({}, len(index), int(gone.sum()), own_reasons(world, table, index, lost))
    return piece, index[alive(world, table, index)]


def user_truth(world: World, index: Index) -> Piece:
    """Members."""
    piece, rows = loaded(world, "users", index)
    clean = users(world, rows)
    piece.rows = {
        "_key": clean.key,
        "login": clean.login,
        "full_name": join(" ", clean.given, clean.family),
        "job_title": clean.title,
        "email": clean.email,
        "phone": clean.phone.e164(),
        "state": clean.state,
        "is_admin": true_or_false(clean.is_admin),
        "manager_id": points_at(world, "users", clean.boss),
        "joined_at": clock.utc_text(clean.joined),
    }
    return piece


def campaign_truth(world: World, index: Index) -> Piece:
    """Campaigns."""
    piece, rows = loaded(world, "campaigns", index)
    clean = campaigns(world, rows)
    piece.rows = {
        "_key": clean.key,
        "title": clean.title,
        "channel": clean.channel,
        "budget": cents_text(clean.budget),
        "starts_on": clock.date_text(clean.starts),
        "ends_on": clock.date_text(clean.ends),
        "owner_id": points_at(world, "users", clean.owner),
        "created_at": clock.utc_text(clean.created),
    }
    return piece


def account_truth(world: World, index: Index) -> Piece:
    """Companies."""
    piece, rows = loaded(world, "accounts", index)
    clean = accounts(world, rows)
    address = clean.address
    host = where(clean.www, join("", "www.", clean.domain), clean.domain)
    web = present(clean.scheme)
    phone = clean.has_phone & ~world.lanes("accounts.phone").has(rows, "broken")
    revenue = (clean.revenue != NONE) & ~world.lanes("accounts.money").has(rows, "words")
    staff = (clean.staff != NONE) & ~world.lanes("accounts.staff").has(rows, "words")
    piece.rows = {
        "_key": clean.key,
        "name": clean.name,
        "kind": clean.kind,
        "industry": clean.industry,
        "parent_id": points_at(world, "accounts", clean.parent),
        "owner_id": points_at(world, "users", clean.owner),
        "primary_contact_id": points_at(world, "contacts", clean.primary_contact),
        "website": only(web, join("", clean.scheme, "://", host)),
        "domain": only(web, clean.domain),
        "phone": only(phone, clean.phone.e164()),
        "annual_revenue": only(revenue, cents_text(clean.revenue)),
        "headcount": only(staff, numbers_text(clean.staff)),
        "tax_number": clean.tax_number,
        "customer_since": only(clean.has_since, clock.date_text(clean.since)),
        "street": address.street,
        "city": address.city,
        "region": address.region,
        "postal_code": address.postal,
        "country_code": only(address.known, pick(COUNTRIES, address.country)),
        "tags": pick(TAG_ARRAYS, clean.tags),
        "about": clean.about,
        "created_at": clock.utc_text(clean.created),
        "updated_at": clock.utc_text(clean.updated),
    }
    return piece


def contact_truth(world: World, index: Index) -> Piece:
    """People."""
    piece, rows = loaded(world, "contacts", index)
    clean = contacts(world, rows)
    address = clean.address
    phone = clean.has_phone & ~world.lanes("contacts.phone").has(rows, "broken")
    street = pc.coalesce(join(", ", address.street, clean.second_line), address.street, clean.second_line)
    piece.rows = {
        "_key": clean.key,
        "company_id": points_at(world, "accounts", clean.account),
        "reports_to_id": points_at(world, "contacts", clean.boss),
        "owner_id": points_at(world, "users", clean.owner),
        "honorific": clean.salutation,
        "given_name": clean.given,
        "family_name": clean.family,
        "job_title": clean.title,
        "department": clean.department,
        "email": clean.email,
        "email_opt_out": true_or_false(clean.opt_out & present(clean.email)),
        "do_not_call": true_or_false(clean.do_not_call),
        "newsletter": clean.newsletter,
        "mobile": only(clean.has_mobile, clean.mobile.e164()),
        "phone": only(phone, clean.phone.e164()),
        "street": street,
        "city": address.city,
        "region": address.region,
        "postal_code": address.postal,
        "country_code": only(address.known, pick(COUNTRIES, address.country)),
        "birthday": only(clean.has_birthday, clock.date_text(clean.birthday)),
        "interests": pick(INTEREST_ARRAYS, clean.interests),
        "acquired_through": clean.source,
        "credit_limit": only(clean.credit != NONE, cents_text(clean.credit)),
        "engagement": only(clean.score != NONE, numbers_text(clean.score)),
        "contract_signed_on": only(clean.has_contract, clock.date_text(clean.contract)),
        "about": clean.about,
        "created_at": clock.utc_text(clean.created),
        "updated_at": clock.utc_text(clean.updated),
    }
    return piece
