"""The clean records of users, contacts and leads: what is true, before any mess.

Two contacts that are twins are one person entered twice: same name, country and e-mail.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow.compute as pc

from . import clock, words
from .clean_companies import account_domains, account_names, contact_accounts
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
from .names import COUNTRIES, FAMILY, GIVEN
from .phones import Numbers, numbers
from .picklists import LEAD_SOURCE, LEAD_STATUS
from .places import WEIGHTS
from .world import NONE, NOWHERE, World


@dataclass(frozen=True)
class Users:
    """Users; `boss` is a row number of the same table."""

    index: Index
    key: Text
    login: Text
    given: Text
    family: Text
    title: Text
    email: Text
    phone: Numbers
    state: Text
    is_admin: Mask
    boss: Index
    joined: clock.Seconds


def users(world: World, index: Index) -> Users:
    """The clean users of those rows."""
    draw = world.draw
    country = np.where(index % 3 == 0, COUNTRIES.index("DE"), COUNTRIES.index("US"))
    given = from_pool(world, "users/given", index, country, GIVEN)
    family = from_pool(world, "users/family", index, country, FAMILY)
    family = fitting(world, "users:family", index, family, ACCENTED_FAMILY, QUOTED_FAMILY)
    login = join("", pick([w[0] for w in GIVEN.letters], given), pick(FAMILY.letters, family), numbers_text(index))
    home = np.full(len(index), COUNTRIES.index("US"))
    return Users(
        index=index,
        key=world.key("users", index),
        login=login,
        given=pick(GIVEN.names, given),
        family=pick(FAMILY.names, family),
        title=only(draw.chance("users/title/any", index, 0.9), some(draw, "users/title", index, words.JOB_TITLES)),
        email=join("", login, "@crm.example.com"),
        phone=numbers(draw, "users/phone", index, COUNTRIES, home, "office"),
        state=where(draw.chance("users/state", index, 0.75) | (index < 2), "active", "suspended"),
        is_admin=index < 2,
        boss=np.where(index == 0, NONE, (index - 1) // 4),
        joined=clock.moments(draw, "users/joined", index, 2009, 2016),
    )


@dataclass(frozen=True)
class Contacts:
    """Contacts; `account` and `owner` are rows of other tables, `boss` of this one."""

    index: Index
    key: Text
    account: Index
    boss: Index
    owner: Index
    salutation: Text
    given: Text
    family: Text
    title: Text
    department: Text
    email: Text
    opt_out: Mask
    do_not_call: Mask
    newsletter: Text  # t, f or NULL
    mobile: Numbers
    has_mobile: Mask
    phone: Numbers
    has_phone: Mask
    address: Address
    second_line: Text
    birthday: clock.Days
    has_birthday: Mask
    interests: Index  # a code of lists.INTEREST_LISTS
    source: Text
    credit: Index  # cents, NONE where there is none
    score: Index  # NONE where there is none
    contract: clock.Days
    has_contract: Mask
    about: Text
    created: clock.Seconds
    updated: clock.Seconds


def _who(world: World, index: Index) -> Index:
    """The row that says who a contact is: its own, or that of the record it repeats."""
    troubles = world.lanes("contacts/trouble")
    for lane in ("twin", "again"):
        follows = troubles.has(index, lane) & ~troubles.leads(index, lane)
        index = np.where(follows, troubles.partner(index, lane), index)
    return index


def contact_emails(world: World, index: Index) -> Text:
    """The primary e-mail of each contact in lower case, NULL where there is none. Twins share one."""
    troubles = world.lanes("contacts/trouble")
    email = _own_email(world, _who(world, index))
    paired = troubles.has(index, "twin") | troubles.has(index, "again")
    has = world.draw.chance("contacts/email/any", index, 0.92) | paired
    return only(has | world.trouble("contacts", index, "email_broken"), email)


def _own_email(world: World, index: Index) -> Text:
    country = world.draw.pick("contacts/country", index, WEIGHTS)
    given = from_pool(world, "contacts/given", index, country, GIVEN)
    family = from_pool(world, "contacts/family", index, country, FAMILY)
    account = contact_accounts(world, index)
    free = some(world.draw, "contacts/provider", index, ("mail.example.org", "post.example.net", "example.com"))
    domain = where(account >= 0, account_domains(world, np.maximum(account, 0)), free)
    local = join(".", pick(GIVEN.letters, given), pick(FAMILY.letters, family), numbers_text(index + 1))
    return join("@", local, domain)


def contacts(world: World, index: Index) -> Contacts:
    """The clean contacts of those rows."""
    draw = world.draw
    who = _who(world, index)
    country = draw.pick("contacts/country", who, WEIGHTS)
    address = addresses(world, "contacts", index, country, 0.8)
    given = from_pool(world, "contacts/given", who, country, GIVEN)
    family = from_pool(world, "contacts/family", who, country, FAMILY)
    family = fitting(world, "contacts:family", index, family, ACCENTED_FAMILY, QUOTED_FAMILY)
    created = clock.moments(draw, "contacts/created", index, 2009, 2023)
    updated = clock.by_night(
        draw, "contacts/updated", index, created + draw.below("contacts/updated", index, 40_000_000)
    )
    side = ~world.lanes("contacts.side").has(index, "missing")
    side |= world.troubled("contacts", index)
    zero = world.lanes("contacts.modified").has(index, "zero") & world.holds("modified_zero")
    bosses = world.lanes("contacts.boss")
    boss = np.where(bosses.has(index, "boss"), draw.below("contacts/boss", index, world.rows["contacts"]), NONE)
    boss = np.where(bosses.has(index, "loop"), bosses.partner(index, "loop"), boss)
    yes = where(draw.chance("contacts/newsletter", index, 0.4), "t", "f")
    return Contacts(
        index=index,
        key=world.key("contacts", index),
        account=contact_accounts(world, index),
        boss=np.where(bosses.has(index, "nowhere"), NOWHERE, boss),
        owner=owners(world, "contacts", index),
        salutation=only(
            draw.chance("contacts/salutation/any", index, 0.6),
            some(draw, "contacts/salutation", index, words.SALUTATIONS),
        ),
        given=only(draw.chance("contacts/given/any", index, 0.97), pick(GIVEN.names, given)),
        family=pick(FAMILY.names, family),
        title=only(
            draw.chance("contacts/title/any", index, 0.7), some(draw, "contacts/title", index, words.JOB_TITLES)
        ),
        department=only(
            draw.chance("contacts/department/any", index, 0.4),
            some(draw, "contacts/department", index, words.DEPARTMENTS),
        ),
        email=contact_emails(world, index),
        opt_out=draw.chance("contacts/opt_out", index, 0.12),
        do_not_call=draw.chance("contacts/do_not_call", index, 0.08),
        newsletter=only(draw.chance("contacts/newsletter/any", index, 0.8) & side, yes),
        mobile=numbers(draw, "contacts/mobile", index, COUNTRIES, country, "mobile"),
        has_mobile=(
            draw.chance("contacts/mobile/any", index, 0.7) & ~world.trouble("contacts", index, "country_unknown")
        ),
        phone=numbers(draw, "contacts/phone", index, COUNTRIES, country, "office"),
        has_phone=(
            draw.chance("contacts/phone/any", index, 0.75) & ~world.trouble("contacts", index, "country_unknown")
        ),
        address=address,
        second_line=only(
            draw.chance("contacts/second/any", index, 0.12), some(draw, "contacts/second", index, words.SECOND_LINES)
        ),
        birthday=clock.days(draw, "contacts/birthday", index, 1940, 2003),
        has_birthday=draw.chance("contacts/birthday/any", index, 0.55)
        & ~world.lanes("contacts.birth").has(index, "zero"),
        interests=np.where(side, draw.below("contacts/interests", index, 200), 0),
        source=picklist(world, "contacts/source", index, LEAD_SOURCE, 0.8),
        credit=np.where(
            draw.chance("contacts/credit/any", index, 0.3) & side,
            draw.below("contacts/credit", index, 900_000_000),
            NONE,
        ),
        score=np.where(
            draw.chance("contacts/score/any", index, 0.8) & side, draw.below("contacts/score", index, 1000), NONE
        ),
        contract=clock.days(draw, "contacts/contract", index, 2004, 2023),
        has_contract=draw.chance("contacts/contract/any", index, 0.35) & side,
        about=sentences(world, "contacts/about", index, 0.25),
        created=created,
        updated=np.where(zero, created, updated),
    )


@dataclass(frozen=True)
class Leads:
    """Leads; `campaign`, `owner` and `person` (a contact) are rows of other tables."""

    index: Index
    key: Text
    given: Text
    family: Text
    company: Text
    title: Text
    email: Text
    phone: Numbers
    has_phone: Mask
    country: Index
    country_known: Mask
    state: Text
    source: Text
    value: Index  # cents, NONE where there is none
    campaign: Index
    owner: Index
    person: Index
    about: Text
    created: clock.Seconds


def leads(world: World, index: Index) -> Leads:
    """The clean leads of those rows."""
    draw = world.draw
    country = draw.pick("leads/country", index, WEIGHTS)
    given = from_pool(world, "leads/given", index, country, GIVEN)
    family = from_pool(world, "leads/family", index, country, FAMILY)
    family = fitting(world, "leads:name", index, family, ACCENTED_FAMILY, QUOTED_FAMILY)
    kinds = world.lanes("leads:name")
    given = np.where(kinds.has(index, "mojibake"), GIVEN.start[0] + given % GIVEN.size[0], given)
    words_country = world.lanes("leads.country").has(index, "words")
    state = picklist(world, "leads/state", index, LEAD_STATUS, 1.0)
    person = np.where(
        np.asarray(pc.equal(state, "converted").to_numpy(zero_copy_only=False), dtype=bool),
        draw.below("leads/person", index, world.rows["contacts"]),
        NONE,
    )
    person = np.where(world.lanes("leads.person").has(index, "nowhere"), NOWHERE, person)
    campaign = draw.below("leads/campaign", index, world.rows["campaigns"])
    campaign = np.where(draw.chance("leads/campaign/any", index, 0.6), campaign, NONE)
    company = where(
        draw.chance("leads/company/shared", index, 0.5),
        account_names(world, draw.below("leads/account", index, world.rows["accounts"])),
        join(
            " ",
            some(draw, "leads/word", index, words.COMPANY_WORDS),
            some(draw, "leads/form", index, words.COMPANY_FORMS),
        ),
    )
    local = join(".", pick(GIVEN.letters, given), pick(FAMILY.letters, family), "lead", numbers_text(index + 1))
    email = join("@", local, some(draw, "leads/provider", index, ("mail.example.org", "example.net", "example.com")))
    has_email = draw.chance("leads/email/any", index, 0.85) | world.trouble("leads", index, "email_broken")
    return Leads(
        index=index,
        key=world.key("leads", index),
        given=only(draw.chance("leads/given/any", index, 0.9), pick(GIVEN.names, given)),
        family=pick(FAMILY.names, family),
        company=only(draw.chance("leads/company/any", index, 0.8), company),
        title=only(draw.chance("leads/title/any", index, 0.5), some(draw, "leads/title", index, words.JOB_TITLES)),
        email=only(has_email, email),
        phone=numbers(draw, "leads/phone", index, COUNTRIES, country, "office"),
        has_phone=draw.chance("leads/phone/any", index, 0.7) & ~words_country,
        country=country,
        country_known=draw.chance("leads/country/any", index, 0.8) & ~words_country,
        state=state,
        source=picklist(world, "leads/source", index, LEAD_SOURCE, 0.85),
        value=np.where(draw.chance("leads/value/any", index, 0.4), draw.below("leads/value", index, 20_000_000), NONE),
        campaign=np.where(world.lanes("leads.campaign").has(index, "nowhere"), NOWHERE, campaign),
        owner=owners(world, "leads", index),
        person=person,
        about=sentences(world, "leads/about", index, 0.3),
        created=clock.by_night(draw, "leads/created", index, clock.moments(draw, "leads/created", index, 2009, 2023)),
    )
