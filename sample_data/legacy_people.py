"""The legacy tables of users, contacts and leads, dirtied, with their side tables and links."""

from __future__ import annotations

import numpy as np

from . import clock, mess
from .clean_people import Contacts, contacts, leads, users
from .columns import Batch, Text, constant, join, numbers_text, only, pick, present, some, where
from .draw import Index
from .fate import deleted
from .legacy_links import contact_addresses, contact_links
from .legacy_shared import (
    NO_COUNTRY,
    NO_PHONE,
    ZERO_DATE,
    ZERO_MOMENT,
    Tables,
    broken_emails,
    emails,
    filtered,
    later,
    maybe_number,
    owner,
    stamps,
    words,
)
from .lists import INTEREST_LISTS
from .picklists import LEAD_SOURCE, LEAD_STATUS, USER_STATUS
from .world import NONE, NOWHERE, World


def user_tables(world: World, index: Index) -> Tables:
    """Users and their addresses."""
    draw, clean, rows = world.draw, users(world, index), len(index)
    gone = deleted(world, "users", index)
    home = np.ones(rows, dtype=bool)
    batch = {
        "id": clean.key,
        "user_name": clean.login,
        "user_hash": join("", "$1$", draw.keys("users/hash", index)),
        "first_name": clean.given,
        "last_name": mess.text(world, "users:family", index, clean.family),
        "title": mess.text(world, "users:title", index, clean.title),
        "department": some(draw, "users/department", index, ("Sales", "Support", "Marketing")),
        "phone_work": mess.phone(world, "users/phone", index, clean.phone, home, home),
        "phone_mobile": constant(None, rows),
        "status": mess.spelling(world, "users/state", index, clean.state, USER_STATUS),
        "employee_status": where(draw.chance("users/employee", index, 0.9), "Active", "Terminated"),
        "is_admin": mess.flag(clean.is_admin),
        "reports_to_id": world.reference("users", clean.boss, "users/boss", index),
        **stamps(world, "users", index, clean.joined, later(world, "users", index, clean.joined)),
        "deleted": mess.flag(gone),
    }
    written = mess.email(world, "users/email", index, clean.email, ~home)
    flags = {"primary": home, "opt_out": ~home, "deleted": ~home}
    return {"users": batch, **emails(world, "Users", "users/email", index, clean.key, clean.email, written, flags)}


def _odd_bits(world: World, index: Index) -> Text:
    return pick(["2", "-1"], world.draw.below("contacts/newsletter/odd", index, 2))


def contact_tables(world: World, index: Index) -> Tables:
    """Contacts with their side table, links to accounts and addresses."""
    clean = contacts(world, index)
    tables: Tables = {"contacts": _contact_batch(world, index, clean)}
    side = ~world.lanes("contacts.side").has(index, "missing") | world.troubled("contacts", index)
    tables["contacts_cstm"] = filtered(_contact_side(world, index, clean), side)
    return {**tables, "accounts_contacts": contact_links(world, index), **contact_addresses(world, index, clean)}


def _contact_batch(world: World, index: Index, clean: Contacts) -> Batch:
    draw, rows, address = world.draw, len(index), clean.address
    country = mess.country(world, "contacts/country", index, address.country, address.known)
    mobile = mess.phone(world, "contacts/mobile", index, clean.mobile, clean.has_mobile, address.known)
    phone = mess.phone(world, "contacts/phone", index, clean.phone, clean.has_phone, address.known)
    broken = world.lanes("contacts.phone").has(index, "broken")
    birthday = only(clean.has_birthday, clock.date_text(clean.birthday))
    birthday = where(world.lanes("contacts.birth").has(index, "zero"), ZERO_DATE, birthday)
    birthday = where(world.trouble("contacts", index, "birth_half"), "1970-00-13", birthday)
    birthday = where(world.trouble("contacts", index, "birth_impossible"), "1981-02-30", birthday)
    source = mess.spelling(world, "contacts/source", index, clean.source, LEAD_SOURCE)
    made = stamps(world, "contacts", index, clean.created, clean.updated)
    zero = world.lanes("contacts.modified").has(index, "zero") & world.holds("modified_zero")
    made["date_modified"] = where(zero, ZERO_MOMENT, made["date_modified"])
    family = mess.text(world, "contacts:family", index, clean.family)
    return {
        "id": clean.key,
        **made,
        "description": mess.text(world, "contacts:description", index, clean.about),
        "deleted": mess.flag(deleted(world, "contacts", index)),
        "assigned_user_id": owner(world, "contacts", index, clean.owner),
        "salutation": mess.blank(world, "contacts/salutation", index, clean.salutation),
        "first_name": mess.blank(world, "contacts/given", index, clean.given),
        "last_name": words(
            world, "contacts/family", index, world.trouble("contacts", index, "family_missing"), family, [None, "", " "]
        ),
        "title": mess.text(world, "contacts:title", index, clean.title),
        "department": mess.text(world, "contacts:department", index, clean.department),
        "do_not_call": mess.flag(clean.do_not_call),
        "phone_home": only(draw.chance("contacts/home", index, 0.1), clean.phone.e164()),
        "phone_mobile": words(
            world, "contacts/mobile", index, world.trouble("contacts", index, "mobile_broken"), mobile, NO_PHONE
        ),
        "phone_work": words(world, "contacts/phone", index, broken, phone, NO_PHONE),
        "phone_fax": only(draw.chance("contacts/fax", index, 0.15), clean.phone.e164()),
        "primary_address_street": mess.text(world, "contacts:street", index, address.street),
        "primary_address_street_2": mess.blank(world, "contacts/second", index, clean.second_line),
        "primary_address_city": mess.text(world, "contacts:city", index, address.city),
        "primary_address_state": mess.blank(world, "contacts/region", index, address.region),
        "primary_address_postalcode": where(
            world.trouble("contacts", index, "postal_long"),
            "ask at the desk",
            mess.blank(world, "contacts/postal", index, address.postal),
        ),
        "primary_address_country": words(
            world, "contacts/country", index, world.trouble("contacts", index, "country_unknown"), country, NO_COUNTRY
        ),
        "alt_address_city": only(draw.chance("contacts/alt", index, 0.06), address.city),
        "alt_address_country": only(draw.chance("contacts/alt", index, 0.06), country),
        "assistant": only(draw.chance("contacts/assistant", index, 0.01), constant("Ms. Grey", rows)),
        "lead_source": words(
            world,
            "contacts/source",
            index,
            world.trouble("contacts", index, "source_unknown"),
            mess.blank(world, "contacts/source", index, source),
            ["zz_import_2013", "-none-"],
        ),
        "reports_to_id": mess.blank(
            world, "contacts/boss", index, world.reference("contacts", clean.boss, "contacts/boss", index)
        ),
        "birthdate": birthday,
        "campaign_id": constant(None, rows),
        "portal_user_type": constant("Single", rows),
    }


def _contact_side(world: World, index: Index, clean: Contacts) -> Batch:
    draw, rows = world.draw, len(index)
    newsletter = where(
        present(clean.newsletter), where(np.asarray(clean.newsletter.to_numpy(False) == "t"), "1", "0"), None
    )
    score = where(world.trouble("contacts", index, "score_huge"), "3000000000", maybe_number(clean.score))
    credit = mess.money(world, "contacts/credit", index, clean.credit, clean.credit != NONE)
    contract = mess.spreadsheet_date(world, "contacts/contract", index, clean.contract, clean.has_contract)
    return {
        "id_c": clean.key,
        "interests_c": mess.multiselect(
            world, "contacts/interests", index, clean.interests, INTEREST_LISTS, np.ones(rows, dtype=bool)
        ),
        "newsletter_c": where(world.trouble("contacts", index, "newsletter_odd"), _odd_bits(world, index), newsletter),
        "score_c": score,
        "credit_limit_c": words(
            world,
            "contacts/credit",
            index,
            world.trouble("contacts", index, "credit_words"),
            credit,
            ["see contract", "tbd", "n.n."],
        ),
        "contract_date_c": where(world.trouble("contacts", index, "contract_impossible"), "99999999", contract),
        "old_crm_no_c": only(draw.chance("contacts/old", index, 0.4), join("", "K-", numbers_text(index))),
    }


def lead_tables(world: World, index: Index) -> Tables:
    """Leads and their addresses. Names stand in one column, family name first."""
    draw, clean, rows = world.draw, leads(world, index), len(index)
    missing = world.trouble("leads", index, "family_missing")
    name = where(present(clean.given), join(", ", clean.family, clean.given), clean.family)
    name = mess.text(world, "leads:name", index, name, blanks=False)
    country = mess.country(world, "leads/country", index, clean.country, clean.country_known)
    country = words(
        world, "leads/country", index, world.lanes("leads.country").has(index, "words"), country, NO_COUNTRY
    )
    phone = mess.phone(world, "leads/phone", index, clean.phone, clean.has_phone, clean.country_known)
    value = mess.money(world, "leads/value", index, clean.value, clean.value != NONE)
    campaign = np.where(world.lanes("leads.campaign").has(index, "nowhere"), NOWHERE, clean.campaign)
    batch = {
        "id": clean.key,
        **stamps(world, "leads", index, clean.created, later(world, "leads", index, clean.created)),
        "description": mess.text(world, "leads:description", index, clean.about),
        "deleted": mess.flag(deleted(world, "leads", index)),
        "assigned_user_id": owner(world, "leads", index, clean.owner),
        "full_name": where(missing, pick([None, "", " , "], draw.below("leads/missing", index, 3)), name),
        "title": mess.text(world, "leads:title", index, clean.title),
        "account_name": mess.text(world, "leads:account_name", index, clean.company),
        "phone_work": words(
            world, "leads/phone", index, world.lanes("leads.phone").has(index, "broken"), phone, NO_PHONE
        ),
        "primary_address_country": country,
        "status": words(
            world,
            "leads/state",
            index,
            world.trouble("leads", index, "status_unknown"),
            mess.spelling(world, "leads/state", index, clean.state, LEAD_STATUS),
            ["zz", "Status 7"],
        ),
        "status_description": constant(None, rows),
        "lead_source": mess.blank(
            world, "leads/source", index, mess.spelling(world, "leads/source", index, clean.source, LEAD_SOURCE)
        ),
        "refered_by": only(draw.chance("leads/refered", index, 0.05), constant("a friend", rows)),
        "opportunity_amount": words(
            world, "leads/value", index, world.trouble("leads", index, "amount_words"), value, ["tbd", "call me", "5k?"]
        ),
        "converted": mess.flag(clean.person != NONE),
        "contact_id": world.reference("contacts", clean.person, "leads/person", index),
        "campaign_id": world.reference("campaigns", campaign, "leads/campaign", index),
    }
    has = present(clean.email)
    some_rows, address = index[has], clean.email.filter(has)
    written = mess.email(world, "leads/email", some_rows, address, np.zeros(len(some_rows), dtype=bool))
    written = where(
        world.trouble("leads", some_rows, "email_broken"),
        broken_emails(world, "leads/email", some_rows, address),
        written,
    )
    no = np.zeros(len(some_rows), dtype=bool)
    flags = {"primary": ~no, "opt_out": no, "deleted": no}
    key = world.key("leads", some_rows)
    return {"leads": batch, **emails(world, "Leads", "leads/email", some_rows, key, address, written, flags)}
