"""Several kinds of record in one source table: set apart where the evidence is strong, asked about where it is weak, row
by row in a real target; and no alarm where a column is a status or a form of address."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from agent.draft import Draft, draft
from agent.job import JobOutcome, JobRequest, run_job
from agent.kinds import Kinds, read_kinds
from agent.models.protocol import Prompt
from agent.models.scripted import ScriptedModel
from agent.questions import answer_question, open_questions
from connectors.dsn import open_source, open_target
from sample_data import CLOUD_SQL, write_sample
from sample_data.servers import Database
from tests.agent_families import load, names
from workspace.errors import UsageError, WaitingForPersonError
from workspace.events import BeliefHeld
from workspace.log import Workspace
from workspace.paths import JobPaths

TARGET = """
CREATE TABLE companies(id uuid PRIMARY KEY, name text NOT NULL, vat_number text, website text, industry text, phone text,
  city text, parent_id uuid REFERENCES companies);
CREATE TABLE people(id uuid PRIMARY KEY, first_name text, last_name text NOT NULL, job_title text, birthday date,
  email text, phone text, city text, company_id uuid REFERENCES companies);
CREATE TABLE invoices(id uuid PRIMARY KEY, number text NOT NULL, amount numeric, company_id uuid REFERENCES companies);
"""
COLUMNS = (
    "id INTEGER PRIMARY KEY, {kind}company_name TEXT, vat_no TEXT, website TEXT, industry TEXT, first_name TEXT, last_name TEXT, \
job_title TEXT, birthdate DATE, email TEXT, phone TEXT, city TEXT, parent_id INTEGER"
)
FIRMS, PEOPLE = 12, 40


@pytest.fixture(autouse=True)
def _own_experience(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PACKHORSE_DATA_HOME", str(tmp_path / "data"))


def _partners(folder: Path, kinds: tuple[object, object] | None, declared: str = "kind TEXT", more: str = "") -> Path:
    """Firms and people in one table `partners`, people with their firm as `parent_id`; `kinds` are a firm's and a
    person's value of the column that tells them apart, if there is one."""
    file = folder / "erp.db"
    connection = sqlite3.connect(file)
    connection.execute(f"CREATE TABLE partners({COLUMNS.format(kind=declared + ', ' if kinds else '')})")
    connection.execute(
        "CREATE TABLE invoices(id INTEGER PRIMARY KEY, number TEXT, amount DECIMAL(10,2), company_id INTEGER)"
    )
    rows = []
    for n in range(1, FIRMS + 1):
        parent = n - 1 if n % 4 == 0 else None
        rows.append(
            (
                n,
                0,
                f"Firm {n}",
                f"DE{n:09}",
                f"https://firm{n}.example",
                "retail",
                None,
                None,
                None,
                None,
                None,
                f"+4930123{n:04}",
                "Berlin",
                parent,
            )
        )
    for n in range(PEOPLE):
        born = f"19{60 + n % 30}-0{1 + n % 9}-11"
        rows.append(
            (
                100 + n,
                1,
                None,
                None,
                None,
                None,
                f"Ana{n}",
                f"Lopez{n}",
                "Buyer",
                born,
                f"ana{n}@mail.example",
                f"+4940123{n:04}",
                "Bonn",
                1 + n % FIRMS,
            )
        )
    for id_, which, *rest in rows:
        values = (id_, *([kinds[which]] if kinds else []), *rest)
        connection.execute(f"INSERT INTO partners VALUES ({', '.join('?' * len(values))})", values)
    for n in range(30):
        connection.execute("INSERT INTO invoices VALUES (?, ?, ?, ?)", (n, f"R-{n:04}", 10.5 * n, 1 + n % FIRMS))
    connection.executescript(more)
    connection.commit()
    connection.close()
    return file


def _run(file: Path, database: Database, base: Path, **other: object) -> JobOutcome:
    settings: dict[str, object] = {
        "model": "none",
        "yes": True,
        "job": "job",
        "zone": "Europe/Berlin",
        "base": base,
        **other,
    }
    return run_job(JobRequest(f"sqlite:///{file}", database.socket_dsn, **settings))  # type: ignore[arg-type]


@pytest.fixture
def cloud(postgres_database: Database) -> Database:
    postgres_database.run(TARGET)
    return postgres_database


def _companies(cloud: Database) -> list[tuple[object, ...]]:
    return cloud.rows(
        "SELECT c.name, c.vat_number, p.name FROM companies c LEFT JOIN companies p ON p.id = c.parent_id ORDER BY c.vat_number"
    )


def _people(cloud: Database) -> list[tuple[object, ...]]:
    return cloud.rows(
        "SELECT p.last_name, p.email, c.name FROM people p LEFT JOIN companies c ON c.id = p.company_id ORDER BY p.phone"
    )


ALL_FIRMS = [(f"Firm {n}", f"DE{n:09}", f"Firm {n - 1}" if n % 4 == 0 else None) for n in range(1, FIRMS + 1)]
ALL_PEOPLE = [(f"Lopez{n}", f"ana{n}@mail.example", f"Firm {1 + n % FIRMS}") for n in range(PEOPLE)]


@pytest.mark.parametrize(
    ("kinds", "declared"),
    [
        (("account", "contact"), "record_type TEXT"),
        ((1, 0), "is_company TINYINT"),
        (("Company", "person "), "kind TEXT"),
    ],
)
def test_values_that_name_the_tables_send_each_row_to_its_own(
    kinds: tuple[object, object], declared: str, cloud: Database, tmp_path: Path
) -> None:
    outcome = _run(_partners(tmp_path, kinds, declared), cloud, tmp_path)
    assert outcome.outcome == "done", outcome.held
    assert _companies(cloud) == ALL_FIRMS
    assert _people(cloud) == ALL_PEOPLE
    assert cloud.rows("SELECT count(*), count(company_id) FROM invoices") == [(30, 30)]
    assert outcome.verification is not None
    assert outcome.verification.ok
    counted = {e.entity: e for e in outcome.verification.entities if e.entity.startswith("partners")}
    assert sum(e.read for e in counted.values()) == FIRMS + PEOPLE


def test_rows_of_no_kind_are_asked_about_and_left_rows_are_counted(cloud: Database, tmp_path: Path) -> None:
    more = "UPDATE partners SET kind = NULL WHERE id = 3; UPDATE partners SET kind = 'test' WHERE id IN (105, 106)"
    file = _partners(tmp_path, ("company", "person"), more=more)
    outcome = _run(file, cloud, tmp_path)
    assert outcome.outcome == "waiting" or outcome.held
    assert cloud.rows("SELECT (SELECT count(*) FROM companies) + (SELECT count(*) FROM people)") == [(0,)]
    with Workspace.open(JobPaths(tmp_path, "job"), write=True) as workspace:
        (question,) = [q for q in open_questions(workspace) if q.kind == "kinds"]
        assert question.evidence["rows"] == FIRMS + PEOPLE
        with pytest.raises(UsageError, match="not a column"):
            answer_question(workspace, question.id, "companies")
        answer_question(workspace, question.id, "kind: company=companies; person=people; (empty)=companies")
    outcome = _run(file, cloud, tmp_path)
    assert _companies(cloud) == ALL_FIRMS
    assert cloud.rows("SELECT count(*) FROM people") == [(PEOPLE - 2,)]
    assert outcome.verification is not None
    assert outcome.verification.ok
    counted = [e for e in outcome.verification.entities if e.entity.startswith("partners")]
    assert sum(e.read for e in counted) == FIRMS + PEOPLE
    assert sum(e.excluded for e in counted) == 2


class _Sure(ScriptedModel):
    """Says the first answer that is offered, surely."""


@pytest.mark.parametrize(("kinds", "declared"), [(("C", "P"), "kind TEXT"), ((10, 20), "kind INTEGER"), (None, "")])
def test_weak_evidence_opens_one_question_and_moves_nothing(
    kinds: tuple[object, object] | None, declared: str, cloud: Database, tmp_path: Path
) -> None:
    file = _partners(tmp_path, kinds, declared)
    outcome = _run(file, cloud, tmp_path)
    assert outcome.outcome == "waiting"
    assert outcome.held == {"partners": ("kinds:partners",)}
    assert cloud.rows("SELECT (SELECT count(*) FROM companies) + (SELECT count(*) FROM people)") == [(0,)]
    with Workspace.open(JobPaths(tmp_path, "job"), write=True) as workspace:
        asked = [q for q in open_questions(workspace) if q.subject == "partners"]
        assert [q.kind for q in asked] == ["kinds"]
        answer_question(workspace, asked[0].id, "1")
    outcome = _run(file, cloud, tmp_path)
    assert outcome.outcome == "done"
    assert _companies(cloud) == ALL_FIRMS
    assert _people(cloud) == ALL_PEOPLE
    assert cloud.rows("SELECT count(*), count(company_id) FROM invoices") == [(30, 30)]
