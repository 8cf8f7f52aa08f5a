"""What a draft must not leave out in silence: second lines of names, references to tables that wait for their place,
an employer behind links of old, and names that no rule understands."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from agent.draft import Draft, draft
from agent.lexicon import column_meaning
from agent.meanings import in_company
from agent.questions import answer_question, open_questions
from connectors.dsn import open_source
from connectors.protocols import Catalogue, Column, ForeignKey, Kind, Table, UniqueKey
from workspace.log import Workspace
from workspace.paths import JobPaths


def _table(name: str, *columns: Column, to: dict[str, str] | None = None) -> Table:
    foreign = tuple(ForeignKey(f"{name}_{c}_fkey", (c,), t, ("id",)) for c, t in (to or {}).items())
    key = Column("id", "uuid", Kind.UUID, nullable=False)
    unique = (UniqueKey(f"{name}_pkey", ("id",), ("id",), primary=True),)
    return Table(name, (key, *columns), ("id",), foreign_keys=foreign, unique_keys=unique)


def _text(name: str, nullable: bool = True) -> Column:
    return Column(name, "text", Kind.TEXT, nullable=nullable)


def _key(table: int, row: int) -> str:
    return f"{table:08x}-0000-4000-8000-{row:012x}"


COMPANIES = _table("companies", _text("name", nullable=False), _text("city"))
CONTACTS = _table(
    "contacts", _text("first_name"), _text("last_name", nullable=False), Column("company_id", "uuid", Kind.UUID),
    Column("handler_id", "uuid", Kind.UUID), to={"company_id": "companies", "handler_id": "advisers"},
)  # fmt: skip
ADVISERS = _table("advisers", _text("name", nullable=False), _text("email"))


def _draft(file: Path, target: dict[str, Table], workspace: Workspace) -> Draft:
    source = open_source(f"sqlite:///{file}")
    made = draft(source, Catalogue("postgres", target), workspace)
    source.close()
    return made


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace.open(JobPaths(tmp_path, "left"), write=True)


def _crm(folder: Path, former: int) -> Path:
    """Companies, contacts and a link between them, in which the first `former` contacts have a deleted row too."""
    file = folder / "crm.db"
    connection = sqlite3.connect(file)
    connection.executescript(
        "CREATE TABLE companies(id CHAR(36) PRIMARY KEY, name TEXT, city TEXT);"
        "CREATE TABLE contacts(id CHAR(36) PRIMARY KEY, first_name TEXT, last_name TEXT);"
        "CREATE TABLE companies_contacts(id CHAR(36) PRIMARY KEY, contact_id CHAR(36), company_id CHAR(36), deleted TINYINT(1));"
    )
    for n in range(20):
        connection.execute("INSERT INTO companies VALUES (?, ?, ?)", (_key(1, n), f"Firm {n}", f"Town {n % 7}"))
    for n in range(60):
        connection.execute("INSERT INTO contacts VALUES (?, ?, ?)", (_key(2, n), f"Ana{n}", f"Lopez{n}"))
        link = (_key(3, n), _key(2, n), _key(1, n % 20), 0)
        connection.execute("INSERT INTO companies_contacts VALUES (?, ?, ?, ?)", link)
        if n < former:
            link = (_key(4, n), _key(2, n), _key(1, (n + 7) % 20), 1)
            connection.execute("INSERT INTO companies_contacts VALUES (?, ?, ?, ?)", link)
    connection.commit()
    return file


def test_an_employer_is_found_behind_links_of_former_ones(tmp_path: Path, workspace: Workspace) -> None:
    contacts = _draft(_crm(tmp_path, former=25), {"companies": COMPANIES, "contacts": CONTACTS}, workspace)
    planned = contacts.whole.entities["contacts"]
    assert planned.fields["company_id"].ref == "companies"
    assert "deleted = '0'" in planned.from_


def _advised(folder: Path) -> Path:
    """Contacts that point at a table whose name says nothing."""
    file = folder / "advised.db"
    connection = sqlite3.connect(file)
    connection.executescript(
        "CREATE TABLE xqz(id CHAR(36) PRIMARY KEY, name TEXT, email TEXT);"
        "CREATE TABLE contacts(id CHAR(36) PRIMARY KEY, first_name TEXT, last_name TEXT, handler_id CHAR(36));"
    )
    for n in range(12):
        connection.execute("INSERT INTO xqz VALUES (?, ?, ?)", (_key(1, n), f"Bo {n}", f"bo{n}@mail.example"))
    for n in range(60):
        one = (_key(2, n), f"Ana{n}", f"Lopez{n}", _key(1, n % 12))
        connection.execute("INSERT INTO contacts VALUES (?, ?, ?, ?)", one)
    connection.commit()
    return file


def test_a_reference_waits_for_the_place_of_its_table(tmp_path: Path, workspace: Workspace) -> None:
    file, target = _advised(tmp_path), {"advisers": ADVISERS, "contacts": CONTACTS}
    made = _draft(file, target, workspace)
    assert made.open_fields["contacts", "handler_id"] == "entity:xqz"
    assert "contacts.handler_id" in made.whole.entities["contacts"].unmapped["handler_id"]
    answer_question(workspace, "entity:xqz", "advisers")
    again = _draft(file, target, workspace)
    assert again.whole.entities["contacts"].fields["handler_id"].ref == "xqz"


def test_a_target_column_that_is_not_understood_is_asked_about(tmp_path: Path, workspace: Workspace) -> None:
    file = tmp_path / "small.db"
    connection = sqlite3.connect(file)
    connection.execute("CREATE TABLE companies(id CHAR(36) PRIMARY KEY, name TEXT, city TEXT, notes TEXT)")
    for n in range(40):
        one = (_key(1, n), f"Firm {n}", f"Town {n % 7}", f"we carry on {n}")
        connection.execute("INSERT INTO companies VALUES (?, ?, ?, ?)", one)
    connection.commit()
    target = _table("companies", _text("name", nullable=False), _text("city"), _text("next_flourish"))
    _draft(file, {"companies": target}, workspace)
    assert "field:companies.next_flourish" in {q.id for q in open_questions(workspace)}


COMPANY = [
    (("Firma", "Firma2"), "tblKunden", "Firma2", "name_addition"),
    (("NAME1", "NAME2", "ORT"), "debitor", "NAME2", "name_addition"),
    (("Name2",), "customers", "Name2", "name"),
    (("Vorname", "Nachname", "Anrede", "Titel", "Funktion"), "personen", "Titel", "academic_title"),
    (("first_name", "last_name", "title", "position"), "people", "title", "form_of_address"),
    (("Billing Street", "Billing Code"), "accounts", "Billing Code", "postal_code"),
    (("Billing Street", "Billing Zip", "Billing Code"), "accounts", "Billing Code", "code"),
    (("Billing Code", "Amount"), "invoices", "Billing Code", "code"),
]


@pytest.mark.parametrize(("columns", "table", "column", "meant"), COMPANY)
def test_a_column_is_read_in_the_company_of_the_others(
    columns: tuple[str, ...], table: str, column: str, meant: str
) -> None:
    assert in_company({c: column_meaning(c, table) for c in columns}, table)[column].core == {meant}


@pytest.mark.parametrize(
    "refusal", ["KeineWerbung", "keine_werbung", "Werbesperre", "no_marketing", "marketing_opt_out"]
)
def test_a_refusal_of_advertising_is_read_as_one_in_german_too(refusal: str) -> None:
    assert column_meaning(refusal).core == {"no_marketing"}


def test_no_newsletter_is_never_read_as_a_newsletter() -> None:
    assert column_meaning("KeinNewsletter").core == {"opt_out"}
    assert column_meaning("Newsletter").core == {"opt_in"}
