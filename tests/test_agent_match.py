"""Drafts over families of systems made up by hand: nothing may go wrong silently, and enough must be decided."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from agent.draft import Draft, draft
from agent.lexicon import column_meaning, nearness, table_nearness
from agent.questions import open_questions
from connectors.dsn import open_source, open_target
from engine.syntax import columns_of
from tests.agent_families import Family, load, names
from workspace.log import Workspace
from workspace.paths import JobPaths


def _draft(family: Family, folder: Path) -> Draft:
    family.write(folder / "source.db")
    source = open_source(f"sqlite:///{folder / 'source.db'}")
    with Workspace.open(JobPaths(folder, "draft"), write=True) as workspace:
        made = draft(source, family.target, workspace, zone="Europe/Berlin")
        asked = {q.id for q in open_questions(workspace)}
    source.close()
    assert set(made.open_fields.values()) <= asked
    return made


def _judge(family: Family, made: Draft) -> dict[str, list[str]]:
    """Each target field of the gold as right, wrong (another column, silently), open or left out."""
    out: dict[str, list[str]] = {"right": [], "wrong": [], "open": [], "left out": []}
    for (table, column), gold in family.gold.items():
        entities = {n: e for n, e in made.whole.entities.items() if e.to == table}
        planned = [(n, e.fields[column]) for n, e in entities.items() if column in e.fields]
        name = f"{table}.{column}"
        if any((n, column) in made.open_fields for n in entities) or not entities:
            out["open"].append(name)
        elif not planned:
            out["right" if gold is None else "left out"].append(name)
        else:
            entity, field = planned[0]
            drawn = set(columns_of(field.expression)) if not field.constant else set()
            right = gold is not None and entity == gold[0] and set(gold[1]) <= drawn
            out["right" if right else "wrong"].append(f"{name} from {entity}.{sorted(drawn)}" if not right else name)
    return out


@pytest.mark.parametrize("name", names())
def test_no_field_of_any_family_is_mapped_wrongly(name: str, tmp_path: Path) -> None:
    family = load(name)
    assert _judge(family, _draft(family, tmp_path))["wrong"] == []


LEAST = {"salesforce": 0.8, "hubspot": 0.75, "vtiger": 0.85, "access_german": 0.75, "french": 0.85}


@pytest.mark.parametrize("name", sorted(LEAST))
def test_most_fields_are_decided_without_a_person(name: str, tmp_path: Path) -> None:
    family = load(name)
    found = _judge(family, _draft(family, tmp_path))
    assert len(found["right"]) / sum(map(len, found.values())) >= LEAST[name], found


def test_tables_with_names_that_say_nothing_are_asked_about(tmp_path: Path) -> None:
    made = _draft(load("erp_cryptic"), tmp_path)
    assert made.plan.entities == {}


MEANINGS = [
    ("primary_address_street", "contacts", "PrimaryStreet", "people", True),
    ("Vorname", "tblKontakte", "given_name", "people", True),
    ("date_entered", "contacts", "created_at", "people", True),
    ("assigned_user_id", "accounts", "owner_id", "companies", True),
    ("account_name", "accounts", "name", "companies", True),
    ("Rechnungsstrasse", "Kunden", "billing_street", "customers", True),
    ("numberofemployees", "companies", "headcount", "accounts", True),
    ("fecha_nacimiento", "personas", "birthday", "people", True),
    ("phone_home", "contacts", "phone_work", "people", False),
    ("billing_city", "accounts", "shipping_city", "companies", False),
    ("first_name", "contacts", "last_name", "people", False),
    ("created_by", "contacts", "modified_by", "people", False),
    ("date_start", "calls", "date_end", "activities", False),
    ("email_opt_out", "contacts", "email_opt_in", "people", False),
    ("email1", "contacts", "email2", "people", False),
]


@pytest.mark.parametrize(("ours", "table", "theirs", "to", "same"), MEANINGS)
def test_names_are_held_side_by_side_by_meaning(ours: str, table: str, theirs: str, to: str, same: bool) -> None:
    score = nearness(column_meaning(ours, table), column_meaning(theirs, to)).score
    assert score >= 0.9 if same else score <= 0.75, score


def test_tables_are_named_alike_across_languages() -> None:
    assert table_nearness("tblAnsprechpartner", "people") == 1
    assert table_nearness("vtiger_potential", "deals") == 1
    assert table_nearness("accounts", "people") == 0


def test_a_telephone_number_is_read_by_the_country_whose_column_can_be_read(tmp_path: Path) -> None:
    """`ShppngCntry` may be any address's; that it isn't the billing one nobody can read."""
    with sqlite3.connect(tmp_path / "old.db") as connection:
        connection.execute("CREATE TABLE Account (Id integer primary key, Name, Phone, BillingCountry, ShppngCntry)")
        row = "(n, 'Firm ' || n, '030 12345' || (10 + n), 'Germany', 'France')"
        connection.execute(
            f"WITH RECURSIVE c(n) AS (SELECT 1 UNION SELECT n + 1 FROM c WHERE n < 60) INSERT INTO Account SELECT * FROM (SELECT {row[1:-1]} FROM c)"
        )
    connection.close()
    with sqlite3.connect(tmp_path / "new.db") as connection:
        connection.execute("CREATE TABLE companies (id integer primary key, name text NOT NULL, phone text)")
    connection.close()
    source, target = open_source(f"sqlite:///{tmp_path / 'old.db'}"), open_target(f"sqlite:///{tmp_path / 'new.db'}")
    with Workspace.open(JobPaths(tmp_path, "draft"), write=True) as workspace:
        made = draft(source, target.catalogue(), workspace, zone="UTC")
    source.close()
    target.close()
    assert made.whole.entities["Account"].fields["phone"].sql == 'phone("Phone", "BillingCountry")'
