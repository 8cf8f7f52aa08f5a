"""Numbered choices whose labels stand in one table for many columns: read as labels, row by row in a real target, and
left alone where nothing says whose labels they are."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from agent.code_lists import CodeList, code_lists
from agent.job import JobOutcome, JobRequest, run_job
from agent.survey import survey
from connectors.dsn import open_source
from connectors.protocols import Catalogue
from sample_data.servers import Database
from workspace.log import Workspace
from workspace.paths import JobPaths

TARGET = """
CREATE TYPE how_urgent AS ENUM ('low', 'medium', 'high');
CREATE TYPE how_far AS ENUM ('open', 'waiting', 'closed');
CREATE TABLE tickets(id uuid PRIMARY KEY, subject text NOT NULL, priority how_urgent, status how_far);
CREATE TABLE devices(id uuid PRIMARY KEY, name text NOT NULL, serial_number text, status text);
"""
TICKET = {"priority": {10: "Low", 20: "Medium", 30: "High"}, "status": {1: "Open", 2: "Waiting", 3: "Closed"}}
DEVICE = {"status": {1: "In stock", 2: "Lent out", 3: "Scrapped"}, "colour": {1: "Red", 2: "Blue"}}
PRIORITY, STATUS = [10, 20, 30], [1, 2, 3]


@pytest.fixture(autouse=True)
def _own_experience(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PACKHORSE_DATA_HOME", str(tmp_path / "data"))


def _desk(folder: Path, owners: tuple[object, object] | None = ("ticket", "device"), more: str = "") -> Path:
    """Tickets and devices, both with a `status` of numbers, and `choices`, which has the labels in two languages;
    `owners` is what its column `belongs_to` holds for each, None for no such column."""
    file = folder / "desk.db"
    with sqlite3.connect(file) as db:
        db.execute("CREATE TABLE tickets(id INTEGER PRIMARY KEY, subject TEXT, priority INTEGER, status INTEGER)")
        db.execute(
            "CREATE TABLE devices(id INTEGER PRIMARY KEY, name TEXT, serial_number TEXT, status INTEGER, colour INTEGER)"
        )
        db.execute(
            "CREATE TABLE choices(id INTEGER PRIMARY KEY, belongs_to, field TEXT, option_value INTEGER, position INTEGER, "
            "lang TEXT, caption TEXT)"
        )
        for n in range(60):
            db.execute(
                "INSERT INTO tickets VALUES (?, ?, ?, ?)", (n, f"Ticket {n}", PRIORITY[n % 3], STATUS[n // 2 % 3])
            )
        for n in range(30):
            device = (n, f"Printer {n}", f"SN-{n:05}", STATUS[n % 3], 1 + n % 2)
            db.execute("INSERT INTO devices VALUES (?, ?, ?, ?, ?)", device)
        for owner, lists in zip(owners or (None, None), (TICKET, DEVICE), strict=True):
            for field, labels in lists.items():
                for at, (value, label) in enumerate(labels.items()):
                    for lang, text in (("de", f"{label} (de)"), ("en", label)):
                        row = (owner, field, value, at, lang, text)
                        db.execute(
                            "INSERT INTO choices(belongs_to, field, option_value, position, lang, caption) VALUES (?,?,?,?,?,?)",
                            row,
                        )
        if owners is None:
            db.execute("ALTER TABLE choices DROP COLUMN belongs_to")
        db.executescript(more)
    db.close()
    return file


def _found(file: Path, table: str) -> dict[str, CodeList]:
    paths = JobPaths(file.parent, "survey")
    with closing(open_source(f"sqlite:///{file}")) as source, Workspace.open(paths, write=True) as workspace:
        known = survey(source, Catalogue("", {}), workspace)
    return {each.column: each for each in code_lists(table, known)}


def _run(file: Path, cloud: Database, base: Path) -> JobOutcome:
    settings = {"model": "none", "yes": True, "job": "job", "zone": "Europe/Berlin", "base": base}
    return run_job(JobRequest(f"sqlite:///{file}", cloud.socket_dsn, **settings))  # type: ignore[arg-type]


def test_labels_are_read_in_the_place_of_numbers(postgres_database: Database, tmp_path: Path) -> None:
    postgres_database.run(TARGET)
    outcome = _run(_desk(tmp_path), postgres_database, tmp_path)
    assert outcome.outcome == "done", outcome.held
    wanted = sorted(
        (f"Ticket {n}", TICKET["priority"][PRIORITY[n % 3]].lower(), TICKET["status"][STATUS[n // 2 % 3]].lower())
        for n in range(60)
    )
    assert sorted(postgres_database.rows("SELECT subject, priority::text, status::text FROM tickets")) == wanted
    devices = postgres_database.rows("SELECT name, status FROM devices")
    assert sorted(devices) == sorted((f"Printer {n}", DEVICE["status"][STATUS[n % 3]]) for n in range(30))
    assert outcome.verification is not None
    assert outcome.verification.ok


def test_a_number_without_a_label_waits_and_is_not_lost(postgres_database: Database, tmp_path: Path) -> None:
    postgres_database.run(TARGET)
    more = "UPDATE tickets SET status = 99 WHERE id < 2;"
    for n in range(4, 13):
        more += f"INSERT INTO choices VALUES ({900 + n}, 'ticket', 'status', {n}, 9, 'en', 'Open');"
        more += f"INSERT INTO choices VALUES ({800 + n}, 'ticket', 'status', {n}, 9, 'de', 'Offen');"
        more += f"UPDATE tickets SET status = {n} WHERE id = {n};"
    outcome = _run(_desk(tmp_path, more=more), postgres_database, tmp_path)
    assert postgres_database.rows("SELECT count(*), count(status) FROM tickets") == [(58, 58)]
    assert outcome.verification is not None
    (tickets,) = [e for e in outcome.verification.entities if e.entity == "tickets"]
    assert tickets.quarantined == 2


@pytest.mark.parametrize("owners", [("ticket", "device"), ("Tickets", "DEVICES"), (7, 8)])
def test_a_list_belongs_to_the_table_that_its_owner_names(owners: tuple[object, object], tmp_path: Path) -> None:
    found = _found(_desk(tmp_path, owners), "tickets")
    assert set(found) == {"priority", "status"}
    assert dict(found["status"].conditions) == {"field": "status", "belongs_to": str(owners[0]), "lang": "en"}
    assert [v for v, _ in found["status"].profile.top] == ["Open", "Waiting", "Closed"]


def test_a_list_of_two_tables_without_an_owner_is_nobodys(tmp_path: Path) -> None:
    found = _found(_desk(tmp_path, None), "tickets")
    assert "status" not in found


def test_numbers_that_the_list_does_not_know_are_no_choices_of_it(tmp_path: Path) -> None:
    found = _found(_desk(tmp_path, more="UPDATE tickets SET status = status + 40;"), "tickets")
    assert set(found) == {"priority"}
