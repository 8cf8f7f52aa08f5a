"""Several kinds of record in one source table: set apart where the evidence is strong, asked about where it is weak, row
by row in a real target; and no alarm where a column is a status or a form of address."""

from __future__ import annotations

import csv
import sqlite3
from pathlib import Path

import duckdb
import pytest

from agent.entities import match_tables
from agent.job import JobOutcome, JobRequest, draft_job, run_job
from agent.kinds import read_kinds
from agent.kinds_found import Apart, find_kinds
from agent.kinds_where import source_condition, stage_condition
from agent.questions import answer_question, open_questions
from agent.structure import find_structure
from agent.survey import SAMPLE_ROWS, survey
from bench.scenarios import scenarios
from bench.scenarios.maker import Maker
from connectors.dsn import open_source, open_target
from connectors.protocols import Catalogue, Kind
from sample_data import CLOUD_SQL, write_sample
from sample_data.servers import Database, PostgresServer
from tests.agent_families import load, names
from workspace.errors import UsageError
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
    rows: list[tuple[object, ...]] = []
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
    for id_, person, *rest in rows:
        values = (id_, *([kinds[bool(person)]] if kinds else []), *rest)
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


@pytest.mark.parametrize("declared", ["boolean", "smallint", "kind_of_partner", "char(8)"])
def test_the_same_from_a_server_with_types_of_its_own(
    declared: str, postgres: PostgresServer, cloud: Database, tmp_path: Path
) -> None:
    old = postgres.new_database()
    kinds = {"boolean": ("true", "false"), "smallint": ("1", "0")}.get(declared, ("company", "person"))
    name = "is_company" if declared in ("boolean", "smallint") else "kind"
    old.run("CREATE TYPE kind_of_partner AS ENUM ('company', 'person')")
    old.run(f"CREATE TABLE partners({COLUMNS.format(kind=f'{name} {declared}, ')})".replace("DATE,", "date,"))
    _fill_and_move(old, kinds, cloud, tmp_path)
    postgres.drop(old)


def _fill_and_move(old: Database, kinds: tuple[str, str], cloud: Database, folder: Path) -> None:
    """Gives the empty table partners its rows, runs the job, and compares all that is in the target."""
    with sqlite3.connect(_partners(folder, kinds)) as connection:
        for row in connection.execute("SELECT * FROM partners").fetchall():
            values = ["NULL" if v is None else "'" + str(v) + "'" for v in row]
            old.run(f"INSERT INTO partners VALUES ({', '.join(values)})")
    settings = {"model": "none", "yes": True, "job": "job", "base": folder}
    outcome = run_job(JobRequest(old.socket_dsn, cloud.socket_dsn, **settings))  # type: ignore[arg-type]
    assert outcome.outcome == "done", outcome.held
    assert (_companies(cloud), _people(cloud)) == (ALL_FIRMS, ALL_PEOPLE)


@pytest.mark.parametrize("declared", ["tinyint(1)", "enum('company', 'person')", "varchar(12)"])
def test_the_same_from_mariadb(declared: str, mariadb_database: Database, cloud: Database, tmp_path: Path) -> None:
    kinds = ("1", "0") if declared == "tinyint(1)" else ("company", "person")
    name = "is_company" if declared == "tinyint(1)" else "kind"
    mariadb_database.run(f"CREATE TABLE partners({COLUMNS.format(kind=f'{name} {declared}, ')})")
    _fill_and_move(mariadb_database, kinds, cloud, tmp_path)


def test_the_same_from_files(cloud: Database, tmp_path: Path) -> None:
    (tmp_path / "files").mkdir()
    with sqlite3.connect(_partners(tmp_path, ("Company", "Person"))) as connection:
        rows = connection.execute("SELECT * FROM partners")
        with (tmp_path / "files" / "partners.csv").open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow([column[0] for column in rows.description])
            writer.writerows(rows)
    settings = {"model": "none", "yes": True, "job": "job", "base": tmp_path}
    outcome = run_job(JobRequest(str(tmp_path / "files"), cloud.socket_dsn, **settings))  # type: ignore[arg-type]
    assert outcome.outcome == "done", outcome.held
    assert (_companies(cloud), _people(cloud)) == (ALL_FIRMS, ALL_PEOPLE)


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


def test_deleted_rows_of_each_kind_stay_behind_and_are_counted(cloud: Database, tmp_path: Path) -> None:
    more = (
        "ALTER TABLE partners ADD deleted TINYINT DEFAULT 0; UPDATE partners SET deleted = 1 WHERE id IN (12, 101, 102)"
    )
    outcome = _run(_partners(tmp_path, (1, 0), "is_company TINYINT", more), cloud, tmp_path)
    assert _companies(cloud) == ALL_FIRMS[:-1]
    assert cloud.rows("SELECT count(*) FROM people") == [(PEOPLE - 2,)]
    assert outcome.verification is not None
    assert outcome.verification.ok
    counted = [e for e in outcome.verification.entities if e.entity.startswith("partners")]
    assert (sum(e.read for e in counted), sum(e.excluded for e in counted)) == (FIRMS + PEOPLE, 3)


def test_a_kind_that_comes_between_the_draft_and_the_load_is_counted_and_goes_nowhere(
    cloud: Database, tmp_path: Path
) -> None:
    file = _partners(tmp_path, ("company", "person"))
    request = JobRequest(f"sqlite:///{file}", cloud.socket_dsn, model="none", yes=True, job="job", base=tmp_path)
    assert draft_job(request).outcome == "drafted"
    with sqlite3.connect(file) as connection:
        connection.execute(
            "INSERT INTO partners(id, kind, last_name) VALUES (900, 'robot', 'Marvin'), (901, NULL, 'Nobody')"
        )
    outcome = _run(file, cloud, tmp_path)
    assert (_companies(cloud), _people(cloud)) == (ALL_FIRMS, ALL_PEOPLE)
    assert outcome.verification is not None
    counted = [e for e in outcome.verification.entities if e.entity.startswith("partners")]
    assert (sum(e.read for e in counted), sum(e.excluded for e in counted)) == (FIRMS + PEOPLE + 2, 2)


def _found(dsn: str, target: Catalogue, folder: Path) -> dict[str, tuple[Apart, ...]]:
    source = open_source(dsn)
    with Workspace.open(JobPaths(folder, "found"), write=True) as workspace:
        found = survey(source, target, workspace)
    structure = find_structure(found, source.quote)
    likely = {name: [c.table for c in those] for name, those in match_tables(found, structure).items()}
    ways = find_kinds(source, found, structure, likely)
    source.close()
    return ways


def test_a_kind_that_the_sample_does_not_show_is_counted_by_the_server(cloud: Database, tmp_path: Path) -> None:
    many = f"""
    WITH RECURSIVE n(i) AS (SELECT 1000 UNION ALL SELECT i + 1 FROM n WHERE i < {SAMPLE_ROWS + 4000})
    INSERT INTO partners(id, kind, last_name, first_name, email) SELECT i, 'person', 'Ruiz' || i, 'Eva', 'e' || i || '@mail.example' FROM n;
    UPDATE partners SET kind = 'robot' WHERE id IN (2990, 2991)"""
    target = open_target(cloud.socket_dsn)
    ways = _found(f"sqlite:///{_partners(tmp_path, ('company', 'person'), more=many)}", target.catalogue(), tmp_path)
    target.close()
    best = ways["partners"][0]
    assert not best.sure
    assert best.rows["(filled)"] == 2


STATES = """
CREATE TABLE leads(id INTEGER PRIMARY KEY, first_name TEXT, last_name TEXT, email TEXT, status TEXT, salutation TEXT,
  converted_at DATETIME, converted_company TEXT, lost_reason TEXT, vat_no TEXT);
CREATE TABLE activities(id INTEGER PRIMARY KEY, subject TEXT, parent_type TEXT, parent_id INTEGER, kind TEXT);
"""


def test_a_status_a_salutation_and_a_parents_kind_are_no_kinds_of_record(cloud: Database, tmp_path: Path) -> None:
    file = tmp_path / "states.db"
    with sqlite3.connect(file) as connection:
        connection.executescript(STATES)
        for n in range(90):
            state = ("New", "Converted", "Lost")[n % 3]
            done = ("2024-05-01 10:00:00", f"Firm {n}") if state == "Converted" else (None, None)
            row = (
                n,
                f"Ana{n}",
                f"Ruiz{n}",
                f"a{n}@mail.example",
                state,
                ("Mr", "Ms")[n % 2],
                *done,
                "price" if state == "Lost" else None,
                None,
            )
            connection.execute(f"INSERT INTO leads VALUES ({', '.join('?' * len(row))})", row)
            parent = ("Companies", "People")[n % 2]
            connection.execute(
                "INSERT INTO activities VALUES (?, ?, ?, ?, ?)",
                (n, f"Call {n}", parent, 7000 + n, ("call", "meeting")[n % 2]),
            )
    target = open_target(cloud.socket_dsn)
    assert _found(f"sqlite:///{file}", target.catalogue(), tmp_path) == {}
    target.close()


@pytest.mark.parametrize("name", names())
def test_no_ordinary_table_of_the_families_is_taken_apart(name: str, tmp_path: Path) -> None:
    family = load(name)
    family.write(tmp_path / "source.db")
    assert _found(f"sqlite:///{tmp_path / 'source.db'}", family.target, tmp_path) == {}


@pytest.mark.parametrize(
    "name", ["access_german/filthy", "suitecrm/filthy", "hubspot/portal", "salesforce/filthy", "zoho/filthy"]
)
def test_no_ordinary_table_of_the_bench_is_taken_apart(name: str, postgres_database: Database, tmp_path: Path) -> None:
    (scenario,) = scenarios(name)
    maker = Maker(scenario, tmp_path, 1)
    scenario.records().make(maker, **scenario.options)
    maker.close()
    postgres_database.run(scenario.file("target.sql").read_text(encoding="utf-8"))
    target = open_target(postgres_database.socket_dsn)
    assert _found(maker.dsn, target.catalogue(), tmp_path) == {}
    target.close()


def test_no_table_of_the_demos_crm_is_taken_apart(postgres_database: Database, tmp_path: Path) -> None:
    write_sample("sqlite", tmp_path / "crm.db", 500)
    postgres_database.run(CLOUD_SQL.read_text(encoding="utf-8"))
    target = open_target(postgres_database.socket_dsn)
    assert _found(f"sqlite:///{tmp_path / 'crm.db'}", target.catalogue(), tmp_path) == {}
    target.close()


WRITTEN = [
    ("type: C=companies; P=people", "C", "companies"),
    ("type: C=companies; P=people", " p ", "people"),
    ("type: C=companies; P=leave", "P", None),
    ("type: C=companies; P=people", "X", None),
    ("type: C=companies; (filled)=people", "X", "people"),
    ("type: C=companies; (filled)=people", None, None),
    ("type: C=companies; (empty)=people", "  ", "people"),
    ("type: C=companies; (empty)=people", "(empty)", None),
    ("first_name: (filled)=people; (empty)=companies", "Ana", "people"),
]


@pytest.mark.parametrize(("text", "value", "wanted"), WRITTEN)
def test_an_answer_says_where_a_value_goes_and_both_conditions_agree(
    text: str, value: str | None, wanted: str | None
) -> None:
    kinds = read_kinds(text)
    assert read_kinds(kinds.text) == kinds
    assert kinds.place(value) == wanted
    connection = duckdb.connect()
    connection.execute(f"CREATE TABLE m AS SELECT $v::VARCHAR AS {kinds.column}", {"v": value})
    for target in kinds.targets:
        at_source = source_condition(kinds, target, Kind.TEXT, "duckdb", lambda name: name)
        for condition in (at_source, stage_condition(kinds, target)):
            got = connection.execute(f"SELECT count(*) FROM m WHERE {condition}").fetchone()
            assert got == (1 if wanted == target else 0,), condition


@pytest.mark.parametrize(
    "text",
    [
        "companies",
        "type: C",
        "type: C=",
        "type: C=leave",
        "type: C=people; c=companies",
        ": C=people",
        "type: C\\=people",
    ],
)
def test_an_answer_of_another_form_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        read_kinds(text)


def test_a_person_may_name_kinds_that_nothing_showed(cloud: Database, tmp_path: Path) -> None:
    file = tmp_path / "old.db"
    with sqlite3.connect(file) as connection:
        connection.execute("CREATE TABLE zz01(id INTEGER PRIMARY KEY, f1 TEXT, f2 TEXT, f3 TEXT)")
        rows = [(n, "AB"[n % 2], f"Name {n}", f"x{n}") for n in range(40)]
        connection.executemany("INSERT INTO zz01 VALUES (?, ?, ?, ?)", rows)
    request = JobRequest(f"sqlite:///{file}", cloud.socket_dsn, model="none", yes=True, job="job", base=tmp_path)
    draft_job(request)
    with Workspace.open(JobPaths(tmp_path, "job"), write=True) as workspace:
        with pytest.raises(UsageError, match="not a column"):
            answer_question(workspace, "entity:zz01", "A=companies")
        answer_question(workspace, "entity:zz01", "f1: A=companies; B=people")
    whole = draft_job(request).draft
    assert whole is not None
    entities = whole.whole.entities
    assert {name: entity.to for name, entity in entities.items()} == {
        "zz01_companies": "companies",
        "zz01_people": "people",
    }
    with sqlite3.connect(file) as connection:
        read = {name: len(connection.execute(entity.from_).fetchall()) for name, entity in entities.items()}
    assert read == {"zz01_companies": 20, "zz01_people": 20}
