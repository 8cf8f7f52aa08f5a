"""The clean records of opportunities with their people, cases, notes, calls, meetings and tasks.

A parent is a kind of record and a row number; notes and tasks may name a contact beside it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from . import clock, words
from .clean_shared import owners, picklist, sentences
from .columns import Text, join, numbers_text, only, some, where
from .draw import Index, Mask
from .picklists import CALL_STATE, CASE_STATE, LEAD_SOURCE, PRIORITY, SALES_STAGE, TASK_STATE
from .world import NONE, NOWHERE, World

PARENTS = ("", "accounts", "contacts", "opportunities", "leads", "cases", "project")
"""What a note or activity can hang on: nothing, five tables, and a module that is not carried over."""

CURRENCIES = ("USD", "EUR", "GBP", "CHF")


@dataclass(frozen=True)
class Opportunities:
    """Opportunities; `account`, `campaign` and `owner` are rows of other tables, `amount` is in cents."""

    index: Index
    key: Text
    title: Text
    account: Index
    stage: Text
    amount: Index
    currency: Index  # position in CURRENCIES
    probability: Index
    closes: clock.Days
    has_close: Mask
    source: Text
    campaign: Index
    owner: Index
    next_step: Text
    created: clock.Seconds
    updated: clock.Seconds


def deal_accounts(world: World, index: Index) -> Index:
    """The account of each opportunity."""
    account = world.draw.below("opportunities/account", index, world.rows["accounts"])
    account = np.where(world.trouble("opportunities", index, "company_missing"), NONE, account)
    return np.where(world.trouble("opportunities", index, "company_nowhere"), NOWHERE, account)


def opportunities(world: World, index: Index) -> Opportunities:
    """The clean opportunities of those rows."""
    draw = world.draw
    created = clock.moments(draw, "opportunities/created", index, 2009, 2023)
    campaign = draw.below("opportunities/campaign", index, world.rows["campaigns"])
    nothing = world.trouble("opportunities", index, "won_nothing")
    return Opportunities(
        index=index,
        key=world.key("opportunities", index),
        title=join(
            " ",
            some(draw, "opportunities/word", index, words.COMPANY_WORDS),
            "-",
            some(draw, "opportunities/goods", index, words.DEAL_GOODS),
            numbers_text(2009 + draw.below("opportunities/year", index, 15)),
        ),
        account=deal_accounts(world, index),
        stage=where(nothing, "won", picklist(world, "opportunities/stage", index, SALES_STAGE, 1.0)),
        amount=np.where(nothing, 0, 10_000 + draw.below("opportunities/amount", index, 50_000_000)),
        currency=draw.pick("opportunities/currency", index, [5, 3, 1, 0.5]),
        probability=5 * draw.below("opportunities/probability", index, 21),
        closes=created // 86400 + 10 + draw.below("opportunities/closes", index, 300),
        has_close=~world.lanes("opportunities.closed").has(index, "zero"),
        source=picklist(world, "opportunities/source", index, LEAD_SOURCE, 0.7),
        campaign=np.where(draw.chance("opportunities/campaign/any", index, 0.3), campaign, NONE),
        owner=owners(world, "opportunities", index),
        next_step=only(
            draw.chance("opportunities/next/any", index, 0.3), some(draw, "opportunities/next", index, words.NEXT_STEPS)
        ),
        created=created,
        updated=clock.by_night(
            draw, "opportunities/updated", index, created + draw.below("opportunities/updated", index, 30_000_000)
        ),
    )


@dataclass(frozen=True)
class DealPeople:
    """Links of opportunities and contacts; no two live ones link the same pair, twins apart."""

    index: Index
    key: Text
    deal: Index
    person: Index
    part: Text


def deal_people(world: World, index: Index) -> DealPeople:
    """The clean links of those rows."""
    draw = world.draw
    troubles = world.lanes("opportunities_contacts/trouble")
    follows = troubles.has(index, "twin") & ~troubles.leads(index, "twin")
    first = np.where(follows, troubles.partner(index, "twin"), index)
    deal, turn = first % world.rows["opportunities"], first // world.rows["opportunities"]
    person = (draw.below("opportunities_contacts/person", deal, world.rows["contacts"]) + turn) % world.rows["contacts"]
    return DealPeople(
        index=index,
        key=world.key("opportunities_contacts", index),
        deal=deal,
        person=np.where(world.trouble("opportunities_contacts", index, "person_nowhere"), NOWHERE, person),
        part=only(
            draw.chance("opportunities_contacts/part/any", index, 0.8),
            some(draw, "opportunities_contacts/part", index, words.ROLES),
        ),
    )


@dataclass(frozen=True)
class Cases:
    """Cases; `account` and `owner` are rows of other tables."""

    index: Index
    key: Text
    number: Index
    subject: Text
    state: Text
    urgency: Text
    account: Index
    owner: Index
    problem: Text
    solution: Text
    created: clock.Seconds


def cases(world: World, index: Index) -> Cases:
    """The clean cases of those rows."""
    draw = world.draw
    account = draw.below("cases/account", index, world.rows["accounts"])
    account = np.where(draw.chance("cases/account/any", index, 0.95), account, NONE)
    return Cases(
        index=index,
        key=world.key("cases", index),
        number=1001 + index,
        subject=join(
            " - ",
            some(draw, "cases/subject", index, words.CASE_SUBJECTS),
            some(draw, "cases/goods", index, words.DEAL_GOODS),
        ),
        state=picklist(world, "cases/state", index, CASE_STATE, 1.0),
        urgency=picklist(world, "cases/urgency", index, PRIORITY, 1.0),
        account=np.where(draw.chance("cases/account/nowhere", index, 0.01), NOWHERE, account),
        owner=owners(world, "cases", index),
        problem=sentences(world, "cases/problem", index, 0.8),
        solution=only(
            draw.chance("cases/solution/any", index, 0.4), some(draw, "cases/solution", index, words.SOLUTIONS)
        ),
        created=clock.moments(draw, "cases/created", index, 2010, 2023),
    )


def _parents(world: World, table: str, index: Index, weights: list[float]) -> tuple[Index, Index]:
    """A position in PARENTS and a row of that table for each row."""
    kind = world.draw.pick(f"{table}/parent/kind", index, weights)
    rows = np.array([world.rows.get(name, 1000) for name in PARENTS])
    return kind, world.draw.below(f"{table}/parent", index, rows[kind])


@dataclass(frozen=True)
class Notes:
    """Notes; `parent_kind` is a position in PARENTS, `person` a contact named beside the parent."""

    index: Index
    key: Text
    subject: Text
    body: Text
    parent_kind: Index
    parent: Index
    person: Index
    author: Index
    created: clock.Seconds


def notes(world: World, index: Index) -> Notes:
    """The clean notes of those rows."""
    draw = world.draw
    kind, parent = _parents(world, "notes", index, [0.08, 0.3, 0.25, 0.15, 0.1, 0.09, 0.03])
    lost = world.lanes("notes.parent").has(index, "nowhere")
    person = draw.below("notes/person", index, world.rows["contacts"])
    person = np.where(draw.chance("notes/person/any", index, 0.2) & (kind != PARENTS.index("contacts")), person, NONE)
    nul = world.lanes("notes.nul").has(index, "nul")
    body = sentences(world, "notes/body", index, 0.9)
    return Notes(
        index=index,
        key=world.key("notes", index),
        subject=some(draw, "notes/subject", index, words.SUBJECTS),
        body=where(nul, some(draw, "notes/nul", index, words.SENTENCES), body),
        parent_kind=kind,
        parent=np.where(lost & (kind != 0), NOWHERE, parent),
        person=person,
        author=owners(world, "notes", index),
        created=clock.by_night(draw, "notes/created", index, clock.moments(draw, "notes/created", index, 2009, 2023)),
    )


@dataclass(frozen=True)
class Activities:
    """Calls, meetings or tasks; what a table lacks is empty (`duration` NONE, `location` NULL, no due date)."""

    index: Index
    key: Text
    subject: Text
    state: Text
    starts: clock.Seconds
    has_start: Mask
    due: clock.Seconds
    has_due: Mask
    duration: Index
    location: Text
    body: Text
    parent_kind: Index
    parent: Index
    person: Index
    owner: Index
    created: clock.Seconds


def activities(world: World, table: str, index: Index) -> Activities:
    """The clean rows of calls, meetings or tasks."""
    draw = world.draw
    kind, parent = _parents(world, table, index, [0.1, 0.3, 0.3, 0.18, 0.12, 0, 0])
    created = clock.moments(draw, f"{table}/created", index, 2009, 2023)
    starts = clock.clear((created + draw.below(f"{table}/starts", index, 3_000_000)) // 900 * 900)
    none, task = np.zeros(len(index), dtype=bool), table == "tasks"
    person = draw.below(f"{table}/person", index, world.rows["contacts"])
    person = np.where(
        draw.chance(f"{table}/person/any", index, 0.25) & (kind != PARENTS.index("contacts")), person, NONE
    )
    place = some(draw, f"{table}/location", index, words.PLACES_TO_MEET)
    zero = world.lanes("calls.start").has(index, "zero") if table == "calls" else none
    return Activities(
        index=index,
        key=world.key(table, index),
        subject=some(draw, f"{table}/subject", index, words.SUBJECTS),
        state=picklist(world, f"{table}/state", index, TASK_STATE if task else CALL_STATE, 1.0),
        starts=starts,
        has_start=(draw.chance(f"{table}/starts/any", index, 0.5) if task else ~none) & ~zero,
        due=clock.clear(starts + 86400 * (1 + draw.below(f"{table}/due", index, 20))),
        has_due=~world.lanes("tasks.due").has(index, "zero") & draw.chance(f"{table}/due/any", index, 0.8)
        if task
        else none,
        duration=np.full(len(index), NONE) if task else 15 * draw.below(f"{table}/duration", index, 17),
        location=only(draw.chance(f"{table}/location/any", index, 0.8) & (table == "meetings"), place),
        body=sentences(world, f"{table}/body", index, 0.5),
        parent_kind=kind,
        parent=np.where(draw.chance(f"{table}/parent/nowhere", index, 0.005) & (kind != 0), NOWHERE, parent),
        person=person if task else np.full(len(index), NONE),
        owner=owners(world, table, index),
        created=created,
    )
