"""The clean records of campaigns and accounts: what is true, before any mess.

References are row numbers of the other table, NONE or NOWHERE. Texts are as they should read; numbers,
instants, dates and amounts are held as what they are and written by whoever needs them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from . import clock, words
from .clean_shared import (
    ACCENTED_FAMILY,
    QUOTED_FAMILY,
    Address,
    addresses,
    fitting,
    from_pool,
    owners,
    picklist,
    sentences,
)
from .columns import Text, join, numbers_text, only, pick, some, where
from .draw import Index, Mask
from .names import COUNTRIES, FAMILY
from .phones import Numbers, numbers
from .picklists import ACCOUNT_TYPE, CAMPAIGN_TYPE, INDUSTRY
from .places import WEIGHTS
from .world import NONE, NOWHERE, World


@dataclass(frozen=True)
class Campaigns:
    """Campaigns; dates are days since 1970, -1 where there is none."""

    index: Index
    key: Text
    title: Text
    channel: Text
    budget: Index  # cents
    starts: clock.Days
    ends: clock.Days
    owner: Index
    created: clock.Seconds


def campaigns(world: World, index: Index) -> Campaigns:
    """The clean campaigns of those rows."""
    draw = world.draw
    starts = clock.days(draw, "campaigns/starts", index, 2009, 2023)
    return Campaigns(
        index=index,
        key=world.key("campaigns", index),
        title=join(
            " ",
            some(draw, "campaigns/title", index, words.CAMPAIGN_TITLES),
            numbers_text(2009 + index % 15),
            join("", "#", numbers_text(index + 1)),
        ),
        channel=picklist(world, "campaigns/channel", index, CAMPAIGN_TYPE, 1.0),
        budget=draw.below("campaigns/budget", index, 5_000_000),
        starts=starts,
        ends=starts + 5 + draw.below("campaigns/length", index, 90),
        owner=owners(world, "campaigns", index),
        created=clock.clear(starts * 86400 - 40 * 86400 + 50_000),
    )


@dataclass(frozen=True)
class Accounts:
    """Accounts; `parent` is a row of the same table, `primary_contact` one of contacts."""

    index: Index
    key: Text
    name: Text
    kind: Text
    industry: Text
    parent: Index
    owner: Index
    primary_contact: Index
    scheme: Text  # http or https; NULL where there is no website
    www: Mask
    domain: Text
    phone: Numbers
    has_phone: Mask
    revenue: Index  # cents, NONE where unknown
    staff: Index  # NONE where unknown
    tax_number: Text
    since: clock.Days
    has_since: Mask
    address: Address
    tags: Index  # a code of lists.TAG_LISTS
    about: Text
    created: clock.Seconds
    updated: clock.Seconds


def account_domains(world: World, index: Index) -> Text:
    """The internet domain of each account."""
    family = world.draw.below("accounts/domain", index, len(FAMILY.letters))
    return join("", pick(FAMILY.letters, family), "-", numbers_text(index + 1), ".example.com")


def account_names(world: World, index: Index) -> Text:
    """The name of each account."""
    draw = world.draw
    country = draw.pick("accounts/country", index, WEIGHTS)
    family = from_pool(world, "accounts/family", index, country, FAMILY)
    kinds = world.lanes("accounts:name")
    family = fitting(world, "accounts:name", index, family, ACCENTED_FAMILY, QUOTED_FAMILY)
    escaped = kinds.has(index, "html") | kinds.has(index, "html_twice")
    form = some(draw, "accounts/form", index, words.COMPANY_FORMS)
    branch = some(draw, "accounts/branch", index, words.COMPANY_BRANCHES)
    plain = join(" ", some(draw, "accounts/word", index, words.COMPANY_WORDS), branch, form)
    founder = join(" ", pick(FAMILY.names, family), branch, form)
    second = some(draw, "accounts/partner", index, words.COMPANY_WORDS)
    partners = join("", pick(FAMILY.names, family), " & ", second, " ", form)
    style = np.where(escaped, 2, np.where(kinds.has(index, "mojibake"), 1, draw.below("accounts/style", index, 3)))
    return where(style == 0, plain, where(style == 1, founder, partners))


def _parents(world: World, index: Index) -> Index:
    """Trees of accounts (a parent has a lower row number), some circles of two, some rows that are their own parent."""
    draw = world.draw
    above = draw.below("accounts/parent", index, np.maximum(index, 1))
    parent = np.where(draw.chance("accounts/parent/any", index, 0.18) & (index > 0), above, NONE)
    kinds = world.lanes("accounts.parent")
    parent = np.where(kinds.has(index, "loop"), kinds.partner(index, "loop"), parent)
    parent = np.where(kinds.has(index, "self"), index, parent)
    return np.where(kinds.has(index, "nowhere"), NOWHERE, parent)


def accounts(world: World, index: Index) -> Accounts:
    """The clean accounts of those rows."""
    draw = world.draw
    country = draw.pick("accounts/country", index, WEIGHTS)
    address = addresses(world, "accounts", index, country, 0.9)
    created = clock.moments(draw, "accounts/created", index, 2009, 2023)
    vat = join(
        "", pick(COUNTRIES, address.country), numbers_text(100_000_000 + draw.below("accounts/vat", index, 10**8))
    )
    return Accounts(
        index=index,
        key=world.key("accounts", index),
        name=account_names(world, index),
        kind=picklist(world, "accounts/kind", index, ACCOUNT_TYPE, 0.9),
        industry=where(
            world.trouble("accounts", index, "industry_unknown"),
            "other",
            picklist(world, "accounts/industry", index, INDUSTRY, 0.85),
        ),
        parent=_parents(world, index),
        owner=owners(world, "accounts", index),
        primary_contact=primary_contacts(world, index),
        scheme=only(
            draw.chance("accounts/web", index, 0.7), where(draw.chance("accounts/https", index, 0.6), "https", "http")
        ),
        www=draw.chance("accounts/www", index, 0.5),
        domain=account_domains(world, index),
        phone=numbers(draw, "accounts/phone", index, COUNTRIES, address.country, "office"),
        has_phone=draw.chance("accounts/phone/any", index, 0.85),
        revenue=np.where(
            draw.chance("accounts/revenue/any", index, 0.5), draw.below("accounts/revenue", index, 90_000_000_000), NONE
        ),
        staff=np.where(
            draw.chance("accounts/staff/any", index, 0.6), 1 + draw.below("accounts/staff", index, 9000), NONE
        ),
        tax_number=only(draw.chance("accounts/vat/any", index, 0.4), vat),
        since=clock.days(draw, "accounts/since", index, 1998, 2023),
        has_since=draw.chance("accounts/since/any", index, 0.5) | world.trouble("accounts", index, "since_impossible"),
        address=address,
        tags=draw.below("accounts/tags", index, 30),
        about=sentences(world, "accounts/about", index, 0.3),
        created=created,
        updated=clock.by_night(
            draw, "accounts/updated", index, created + draw.below("accounts/updated", index, 40_000_000)
        ),
    )


def _step(rows: int) -> int:
    """A factor by which contacts are dealt out to that many accounts, so that it can be undone."""
    return next(step for step in (7, 11, 13, 17, 19, 23, 29, 31) if rows % step)


def contact_accounts(world: World, index: Index) -> Index:
    """The account of each contact. Contacts are dealt out to the accounts in turn."""
    rows = world.rows["accounts"]
    account = (index * _step(rows) + 3) % rows
    account = np.where(world.draw.chance("contacts/account/any", index, 0.87), account, NONE)
    return np.where(world.lanes("contacts.link").has(index, "nowhere"), NOWHERE, account)


def primary_contacts(world: World, index: Index) -> Index:
    """For some accounts, the contact who speaks for them: mostly one of their own."""
    rows = world.rows["accounts"]
    contact = ((index - 3) * pow(_step(rows), -1, rows)) % rows
    contact = np.where(world.draw.chance("accounts/contact/any", index, 0.4), contact, NONE)
    return np.where(world.draw.chance("accounts/contact/nowhere", index, 0.01), NOWHERE, contact)
