"""The legacy tables of opportunities, cases, notes, calls, meetings and tasks, dirtied."""

from __future__ import annotations

import numpy as np
import pyarrow.compute as pc

from . import clock, mess
from .clean_work import Activities, activities, cases, deal_people, notes, opportunities
from .columns import Batch, constant, join, numbers_text, only, pick, some, where
from .draw import Index
from .fate import deleted
from .legacy_shared import ZERO_DATE, ZERO_MOMENT, Tables, filtered, later, owner, parents, stamps, words
from .picklists import CALL_STATE, CASE_STATE, LEAD_SOURCE, PRIORITY, SALES_STAGE, TASK_STATE
from .world import NONE, World

_NO_STATE: list[str | None] = ["zz", "Status 7", "(none)"]


def opportunity_tables(world: World, index: Index) -> Tables:
    """Opportunities and the links to their accounts."""
    draw, clean, rows = world.draw, opportunities(world, index), len(index)

    def has(kind: str) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
        return world.trouble("opportunities", index, kind)

    amount = mess.double(clean.amount)
    amount = where(has("amount_missing"), None, amount)
    amount = where(has("amount_huge"), "25000000000", amount)
    amount = where(has("amount_negative"), "-500", amount)
    stage = mess.text(
        world,
        "opportunities:stage",
        index,
        mess.spelling(world, "opportunities/stage", index, clean.stage, SALES_STAGE),
        blanks=False,
    )
    currency = world.draw.keys("currencies", np.maximum(clean.currency - 1, 0))
    currency = where(clean.currency == 0, "-99", currency)
    gone = world.draw.keys("currencies", np.full(rows, 3))
    title = mess.text(world, "opportunities:title", index, clean.title, blanks=False)
    source = mess.spelling(world, "opportunities/source", index, clean.source, LEAD_SOURCE)
    batch = {
        "id": clean.key,
        "name": words(world, "opportunities/title", index, has("title_missing"), title, [None, "", " "]),
        **stamps(world, "opportunities", index, clean.created, clean.updated),
        "description": only(draw.chance("opportunities/description", index, 0.1), constant("See the offer.", rows)),
        "deleted": mess.flag(deleted(world, "opportunities", index)),
        "assigned_user_id": owner(world, "opportunities", index, clean.owner),
        "opportunity_type": some(draw, "opportunities/type", index, (None, "", "New Business", "Existing Business")),
        "campaign_id": world.reference("campaigns", clean.campaign, "opportunities/campaign", index),
        "lead_source": mess.blank(world, "opportunities/source", index, source),
        "amount": amount,
        "amount_usdollar": mess.double(clean.amount * 11 // 10),
        "currency_id": where(has("currency_gone"), gone, currency),
        "date_closed": where(clean.has_close, clock.date_text(clean.closes), ZERO_DATE),
        "next_step": mess.text(world, "opportunities:next", index, clean.next_step),
        "sales_stage": words(world, "opportunities/stage", index, has("stage_unknown"), stage, _NO_STATE),
        "probability": where(has("probability_odd"), "150", numbers_text(clean.probability)),
    }
    link = {
        "id": draw.keys("opportunities/link", index),
        "opportunity_id": clean.key,
        "account_id": world.reference("accounts", clean.account, "opportunities/account", index),
        "date_modified": clock.new_york_text(clean.created),
        "deleted": constant("0", rows),
    }
    return {"opportunities": batch, "accounts_opportunities": filtered(link, clean.account != NONE)}


def deal_people_tables(world: World, index: Index) -> Tables:
    """Links of opportunities and contacts."""
    clean = deal_people(world, index)
    batch = {
        "id": clean.key,
        "contact_id": world.reference("contacts", clean.person, "opportunities_contacts/person", index),
        "opportunity_id": world.key("opportunities", clean.deal),
        "contact_role": mess.blank(world, "opportunities_contacts/part", index, clean.part),
        "date_modified": clock.new_york_text(
            clock.moments(world.draw, "opportunities_contacts/made", index, 2009, 2023)
        ),
        "deleted": mess.flag(deleted(world, "opportunities_contacts", index)),
    }
    return {"opportunities_contacts": batch}


def case_tables(world: World, index: Index) -> Tables:
    """Cases; a few subjects are a whole letter."""
    draw, clean, rows = world.draw, cases(world, index), len(index)
    subject = mess.text(world, "cases:subject", index, clean.subject, blanks=False)
    letter = join(
        ". ",
        clean.subject,
        constant("We have tried it on several days and with several people, and each time " * 2, rows),
    )
    batch = {
        "id": clean.key,
        "case_number": numbers_text(clean.number),
        "name": where(world.trouble("cases", index, "subject_long"), letter, subject),
        **stamps(world, "cases", index, clean.created, later(world, "cases", index, clean.created)),
        "description": mess.text(world, "cases:description", index, clean.problem),
        "deleted": mess.flag(deleted(world, "cases", index)),
        "assigned_user_id": owner(world, "cases", index, clean.owner),
        "type": some(draw, "cases/type", index, (None, "User", "Administration", "Product")),
        "status": words(
            world,
            "cases/state",
            index,
            world.trouble("cases", index, "status_unknown"),
            mess.spelling(world, "cases/state", index, clean.state, CASE_STATE),
            _NO_STATE,
        ),
        "priority": mess.spelling(world, "cases/urgency", index, clean.urgency, PRIORITY),
        "resolution": mess.text(world, "cases:resolution", index, clean.solution),
        "work_log": constant(None, rows),
        "account_id": world.reference("accounts", clean.account, "cases/account", index),
    }
    return {"cases": batch}


def note_tables(world: World, index: Index) -> Tables:
    """Notes; a few bodies hold a NUL byte."""
    draw, clean, rows = world.draw, notes(world, index), len(index)
    body = mess.text(world, "notes:body", index, clean.body, blanks=False)
    nul = world.lanes("notes.nul").has(index, "nul") & world.holds("nul")
    body = where(nul, pc.replace_substring(clean.body, " ", " \x00", max_replacements=1), body)
    made = stamps(world, "notes", index, clean.created, later(world, "notes", index, clean.created))
    made["created_by"] = world.reference("users", clean.author, "notes/owner", index)
    file = draw.chance("notes/file", index, 0.1)
    batch = {
        "id": clean.key,
        "name": words(
            world,
            "notes/subject",
            index,
            world.trouble("notes", index, "subject_missing"),
            mess.text(world, "notes:subject", index, clean.subject, blanks=False),
            [None, "", "  "],
        ),
        **made,
        "description": body,
        "deleted": mess.flag(deleted(world, "notes", index)),
        "assigned_user_id": made["modified_user_id"],
        **parents(world, "notes", index, clean.parent_kind, clean.parent),
        "contact_id": world.reference("contacts", clean.person, "notes/person", index),
        "filename": only(file, join("", "offer-", numbers_text(index), ".pdf")),
        "file_mime_type": only(file, constant("application/pdf", rows)),
        "portal_flag": constant("0", rows),
    }
    return {"notes": batch}


def _activity_batch(world: World, table: str, index: Index, clean: Activities) -> Batch:
    states = TASK_STATE if table == "tasks" else CALL_STATE
    state = mess.spelling(world, f"{table}/state", index, clean.state, states)
    subject = mess.text(world, f"{table}:subject", index, clean.subject, blanks=False)
    if table == "meetings":
        missing = world.trouble(table, index, "subject_missing")
        subject = words(world, f"{table}/subject", index, missing, subject, [None, ""])
    start = only(clean.has_start, clock.new_york_text(clean.starts))
    if table == "calls" and world.holds("moment_zero"):
        start = where(clean.has_start, start, ZERO_MOMENT)
    return {
        "id": clean.key,
        "name": subject,
        **stamps(world, table, index, clean.created, later(world, table, index, clean.created)),
        "description": mess.text(world, f"{table}:description", index, clean.body),
        "deleted": mess.flag(deleted(world, table, index)),
        "assigned_user_id": owner(world, table, index, clean.owner),
        "status": words(
            world, f"{table}/state", index, world.trouble(table, index, "status_unknown"), state, _NO_STATE
        ),
        "date_start": start,
        **parents(world, table, index, clean.parent_kind, clean.parent),
    }


def activity_tables(world: World, table: str, index: Index) -> Tables:
    """Calls, meetings or tasks."""
    draw, clean, rows = world.draw, activities(world, table, index), len(index)
    batch = _activity_batch(world, table, index, clean)
    if table == "tasks":
        due = only(clean.has_due, clock.new_york_text(clean.due))
        if world.holds("moment_zero"):
            due = where(world.lanes("tasks.due").has(index, "zero"), ZERO_MOMENT, due)
        batch["date_due"] = due
        batch["date_due_flag"] = mess.flag(~clean.has_due)
        batch["contact_id"] = world.reference("contacts", clean.person, "tasks/person", index)
        batch["priority"] = some(draw, "tasks/priority", index, ("High", "Medium", "Low"))
        return {table: batch}
    ends = clock.new_york_text(clock.clear(clean.starts + 60 * clean.duration))
    batch["date_end"] = only(clean.has_start, ends)
    hours, minutes = clean.duration // 60, clean.duration % 60
    wrong = world.trouble(table, index, "duration_negative") if table == "calls" else np.zeros(rows, dtype=bool)
    batch["duration_hours"] = where(wrong, "-1", numbers_text(hours))
    batch["duration_minutes"] = where(wrong, "0", numbers_text(minutes))
    if table == "calls":
        batch["direction"] = pick(["Inbound", "Outbound"], draw.below("calls/direction", index, 2))
        batch["reminder_time"] = constant("-1", rows)
    else:
        batch["location"] = mess.text(world, "meetings:location", index, clean.location)
        batch["reminder_time"] = constant("1800", rows)
    return {table: batch}
