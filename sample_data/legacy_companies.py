"""The legacy tables of currencies, campaigns and accounts, dirtied."""

from __future__ import annotations

import numpy as np
import pyarrow.compute as pc

from . import clock, mess
from .clean_companies import Accounts, accounts, campaigns
from .columns import Batch, Text, constant, join, numbers_text, only, pick, present, some, where
from .draw import Index
from .fate import deleted
from .legacy_shared import NO_COUNTRY, NO_PHONE, Tables, later, maybe_number, owner, stamps, words
from .lists import TAG_LISTS
from .picklists import ACCOUNT_TYPE, CAMPAIGN_TYPE, INDUSTRY
from .world import NONE, World


def currency_table(world: World) -> Batch:
    """The currencies; the base currency, -99, has no row. The Deutsche Mark is long gone, but not here."""
    codes = ["EUR", "GBP", "CHF", "DEM"]
    index = np.arange(len(codes), dtype=np.int64)
    return {
        "id": world.draw.keys("currencies", index),
        "name": pick(["Euro", "Pounds", "Swiss Franks", "Deutsche Mark"], index),
        "symbol": pick(["€", "£", "Fr.", "DM"], index),
        "iso4217": pick(list(codes), index),
        "conversion_rate": pick(["0.9", "0.8", "1.1", "1.7"], index),
        "status": constant("Active", len(codes)),
        "deleted": constant("0", len(codes)),
    }


def campaign_tables(world: World, index: Index) -> Tables:
    """Campaigns. One period in fifty ends before it starts."""
    draw, clean, rows = world.draw, campaigns(world, index), len(index)
    wrong = world.trouble("campaigns", index, "period")
    batch = {
        "id": clean.key,
        "name": mess.text(world, "campaigns:title", index, clean.title, blanks=False),
        **stamps(world, "campaigns", index, clean.created, later(world, "campaigns", index, clean.created)),
        "deleted": mess.flag(deleted(world, "campaigns", index)),
        "assigned_user_id": owner(world, "campaigns", index, clean.owner),
        "tracker_key": numbers_text(index + 1),
        "start_date": clock.date_text(clean.starts),
        "end_date": clock.date_text(np.where(wrong, clean.starts - 30, clean.ends)),
        "status": some(draw, "campaigns/status", index, ("Complete", "Active", "Planning")),
        "impressions": constant("0", rows),
        "currency_id": constant("-99", rows),
        "budget": mess.double(clean.budget),
        "expected_cost": mess.double(clean.budget // 2),
        "campaign_type": mess.spelling(world, "campaigns/channel", index, clean.channel, CAMPAIGN_TYPE),
        "objective": only(draw.chance("campaigns/objective", index, 0.4), constant("More customers", rows)),
        "content": constant(None, rows),
    }
    return {"campaigns": batch}


def _website(world: World, index: Index, clean: Accounts) -> Text:
    """Websites, some without their scheme or in capitals; the empty field's own default is http://."""
    draw = world.draw
    host = where(clean.www, join("", "www.", clean.domain), clean.domain)
    bare = draw.chance("accounts/web/bare", index, 0.4) & np.asarray(clean.scheme.to_numpy(False) == "http")
    site = where(bare, host, join("", clean.scheme, "://", host))
    site = where(draw.chance("accounts/web/loud", index, 0.05), pc.utf8_upper(site), site)
    none = pick([None, "", "http://", "https://"], draw.below("accounts/web/none", index, 4))
    return where(present(clean.scheme), site, none)


def account_tables(world: World, index: Index) -> Tables:
    """Accounts and their side table."""
    draw, clean, rows = world.draw, accounts(world, index), len(index)
    missing = world.trouble("accounts", index, "name_missing")
    broken = world.lanes("accounts.phone").has(index, "broken")
    address = clean.address
    industry = mess.spelling(world, "accounts/industry", index, clean.industry, INDUSTRY)
    country = mess.country(world, "accounts/country", index, address.country, address.known)
    revenue = mess.money(world, "accounts/revenue", index, clean.revenue, clean.revenue != NONE)
    staff = where(
        draw.chance("accounts/staff/comma", index, 0.2) & (clean.staff >= 1000),
        join(",", numbers_text(clean.staff // 1000), _three(clean.staff % 1000)),
        maybe_number(clean.staff),
    )
    phone = mess.phone(world, "accounts/phone", index, clean.phone, clean.has_phone, address.known)
    since = mess.spreadsheet_date(world, "accounts/since", index, clean.since, clean.has_since)
    batch = {
        "id": clean.key,
        "name": words(
            world,
            "accounts/name",
            index,
            missing,
            mess.text(world, "accounts:name", index, clean.name),
            [None, "", "  "],
        ),
        **stamps(world, "accounts", index, clean.created, clean.updated),
        "description": mess.text(world, "accounts:description", index, clean.about),
        "deleted": mess.flag(deleted(world, "accounts", index)),
        "assigned_user_id": owner(world, "accounts", index, clean.owner),
        "account_type": mess.blank(
            world, "accounts/kind", index, mess.spelling(world, "accounts/kind", index, clean.kind, ACCOUNT_TYPE)
        ),
        "industry": words(
            world,
            "accounts/industry",
            index,
            world.trouble("accounts", index, "industry_unknown"),
            mess.blank(world, "accounts/industry", index, mess.text(world, "accounts:industry", index, industry)),
            ["To be determined", "???", "xyz"],
        ),
        "annual_revenue": words(
            world,
            "accounts/revenue",
            index,
            world.lanes("accounts.money").has(index, "words"),
            revenue,
            ["tbd", "ca. 5 Mio", "unknown"],
        ),
        "phone_fax": constant(None, rows),
        "phone_office": words(world, "accounts/phone", index, broken, phone, NO_PHONE),
        "phone_alternate": constant(None, rows),
        "billing_address_street": mess.text(world, "accounts:street", index, address.street),
        "billing_address_city": mess.text(world, "accounts:city", index, address.city),
        "billing_address_state": mess.blank(world, "accounts/region", index, address.region),
        "billing_address_postalcode": mess.blank(world, "accounts/postal", index, address.postal),
        "billing_address_country": words(
            world, "accounts/country", index, world.trouble("accounts", index, "country_unknown"), country, NO_COUNTRY
        ),
        "shipping_address_city": only(draw.chance("accounts/shipping", index, 0.3), address.city),
        "shipping_address_country": only(draw.chance("accounts/shipping", index, 0.3), country),
        "rating": some(draw, "accounts/rating", index, (None, "", "Hot", "Cold")),
        "website": _website(world, index, clean),
        "ownership": constant(None, rows),
        "employees": words(
            world,
            "accounts/staff",
            index,
            world.lanes("accounts.staff").has(index, "words"),
            mess.blank(world, "accounts/staff", index, staff),
            ["10-50", "~50", "many"],
        ),
        "ticker_symbol": only(draw.chance("accounts/ticker", index, 0.01), constant("ABC", rows)),
        "sic_code": only(
            draw.chance("accounts/sic", index, 0.05), numbers_text(1000 + draw.below("accounts/sic/code", index, 8000))
        ),
        "parent_id": mess.blank(
            world, "accounts/parent", index, world.reference("accounts", clean.parent, "accounts/parent", index)
        ),
        "campaign_id": constant(None, rows),
    }
    side = {
        "id_c": clean.key,
        "vat_no_c": mess.blank(
            world,
            "accounts/vat",
            index,
            where(draw.chance("accounts/vat/spaced", index, 0.2), _spaced(clean.tax_number), clean.tax_number),
        ),
        "customer_since_c": where(world.trouble("accounts", index, "since_impossible"), "99999999", since),
        "tags_c": mess.multiselect(world, "accounts/tags", index, clean.tags, TAG_LISTS, np.ones(rows, dtype=bool)),
        "primary_contact_id_c": world.reference("contacts", clean.primary_contact, "accounts/contact", index),
        "erp_sync_c": mess.flag(draw.chance("accounts/erp", index, 0.5)),
    }
    return {"accounts": batch, "accounts_cstm": side}


def _three(value: Index) -> Text:
    """Numbers below a thousand with three digits."""
    return pick([f"{n:03}" for n in range(1000)], value)


def _spaced(text: Text) -> Text:
    """DE 123 456 789 for DE123456789."""
    return pc.replace_substring_regex(text, r"^(..)(...)(...)(.*)$", r"\1 \2 \3 \4")
