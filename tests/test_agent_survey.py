from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path

import pytest

from agent.structure import Role, find_structure, relation_sql
from agent.survey import SAMPLE_ROWS, Survey, survey
from connectors.dsn import open_source
from connectors.protocols import Catalogue
from sample_data import write_sample
from sample_data.servers import Database
from tests.agent_families import load
from workspace.errors import CatalogueError
from workspace.events import TableProfiled
from workspace.log import Workspace
from workspace.paths import JobPaths


def _survey(dsn: str, folder: Path, job: str = "survey") -> tuple[Survey, list[TableProfiled]]:
    source = open_source(dsn)
    with Workspace.open(JobPaths(folder, job), write=True) as workspace:
        found = survey(source, Catalogue("postgres"), workspace)
        events = [e.event for e in workspace.events(types=[TableProfiled]) if isinstance(e.event, TableProfiled)]
    source.close()
    return found, events


@pytest.fixture(scope="module")
def crm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("crm") / "crm.db"
    write_sample("sqlite", file, 300)
    return file


def test_references_side_tables_and_links_are_found_without_a_declared_key(crm: Path, tmp_path: Path) -> None:
    found, _ = _survey(f"sqlite:///{crm}", tmp_path)
    structure = find_structure(found, lambda name: f'"{name}"')
    pointing = {(t, r.column): r.table for t, p in found.tables.items() for r in p.references if not r.selector}
    assert pointing["contacts", "reports_to_id"] == "contacts"
    assert pointing["accounts", "assigned_user_id"] == "users"
    assert structure.side_of == {"accounts_cstm": "accounts", "contacts_cstm": "contacts"}
    assert structure.roles["opportunities_contacts"] is Role.LINK
    assert structure.roles["email_addresses"] is Role.ADDRESSES
    assert structure.roles["contacts"] is Role.ENTITY


def test_a_parent_of_several_kinds_is_one_reference_a_kind(crm: Path, tmp_path: Path) -> None:
    found, _ = _survey(f"sqlite:///{crm}", tmp_path)
    kinds = {(r.selected, r.table) for r in found.tables["notes"].references if r.selector == "parent_type"}
    assert {("Accounts", "accounts"), ("Contacts", "contacts"), ("Leads", "leads")} <= kinds


def test_a_kind_of_parent_that_would_leave_its_quotes_is_none(crm: Path, tmp_path: Path) -> None:
    file = tmp_path / "crm.db"
    shutil.copy(crm, file)
    hostile = "Contacts\\' OR 1=1 -- "
    with sqlite3.connect(file) as connection:
        some = "SELECT rowid FROM notes WHERE parent_type = 'Contacts' LIMIT 20"
        connection.execute(f"UPDATE notes SET parent_type = ? WHERE rowid IN ({some})", [hostile])
    connection.close()
    found, _ = _survey(f"sqlite:///{file}", tmp_path)
    kinds = {r.selected for r in found.tables["notes"].references if r.selector == "parent_type"}
    assert "Contacts" in kinds
    assert not [kind for kind in kinds if "\\" in kind]


def test_a_relation_never_multiplies_rows(crm: Path, tmp_path: Path) -> None:
    found, _ = _survey(f"sqlite:///{crm}", tmp_path)
    source = open_source(f"sqlite:///{crm}")
    structure = find_structure(found, source.quote)
    for name, relation in structure.relations.items():
        everything = {o.name for o in relation.columns}
        sql = relation_sql(relation, everything, source.quote)
        assert source.count(sql) == source.count(name), name
    source.close()


def test_the_log_gets_no_value_of_a_person(crm: Path, tmp_path: Path) -> None:
    found, events = _survey(f"sqlite:///{crm}", tmp_path)
    logged = " ".join(str(e.profile) for e in events)
    personal = [
        v
        for c in ("last_name", "first_name", "primary_address_street")
        for v in found.tables["contacts"].columns[c].samples
    ]
    assert personal
    assert not [v for v in personal if f"'{v}'" in logged]
    assert "Cold Call" not in logged  # a picklist's words may be people's names: their shapes are there
    assert "['Aaaa Aaaa'," in logged


def test_a_large_table_is_sampled_from_all_over_its_key(tmp_path: Path) -> None:
    import sqlite3

    file = tmp_path / "large.db"
    connection = sqlite3.connect(file)
    connection.execute("CREATE TABLE t(id INTEGER PRIMARY KEY, half TEXT)")
    connection.executemany(
        "INSERT INTO t VALUES (?, ?)", ((i, "late" if i > 40_000 else "early") for i in range(60_000))
    )
    connection.commit()
    found, _ = _survey(f"sqlite:///{file}", tmp_path)
    table = found.tables["t"]
    assert table.rows == 60_000
    assert table.sampled
    assert found.samples["t"].num_rows <= SAMPLE_ROWS
    assert {v for v, _ in table.columns["half"].top} == {"early", "late"}


def test_serial_keys_are_references_only_where_the_name_agrees(tmp_path: Path) -> None:
    family = load("access_german")
    family.write(tmp_path / "s.db")
    found, _ = _survey(f"sqlite:///{tmp_path / 's.db'}", tmp_path)
    assert {(r.column, r.table) for r in found.tables["tblAnsprechpartner"].references} == {("KdNr", "tblKunden")}
    assert find_structure(found, lambda n: n).side_of == {}


def test_side_tables_of_serial_keys(tmp_path: Path) -> None:
    family = load("vtiger")
    family.write(tmp_path / "s.db")
    found, _ = _survey(f"sqlite:///{tmp_path / 's.db'}", tmp_path)
    side_of = find_structure(found, lambda n: n).side_of
    assert side_of == {
        "vtiger_accountbillads": "vtiger_account",
        "vtiger_contactaddress": "vtiger_contactdetails",
        "vtiger_contactsubdetails": "vtiger_contactdetails",
    }


def test_an_empty_source_is_refused(tmp_path: Path) -> None:
    import sqlite3

    sqlite3.connect(tmp_path / "empty.db").execute("CREATE TABLE t(id INTEGER PRIMARY KEY)")
    with pytest.raises(CatalogueError, match="empty"):
        _survey(f"sqlite:///{tmp_path / 'empty.db'}", tmp_path)


def _facts(found: Survey) -> dict[str, object]:
    return {
        name: (table.rows, table.key, sorted((r.column, r.table, r.selected) for r in table.references))
        for name, table in found.tables.items()
    }


def test_the_same_crm_in_csv_gives_the_same_facts(crm: Path, tmp_path: Path) -> None:
    write_sample("csv", tmp_path / "csv", 300)
    reference, _ = _survey(f"sqlite:///{crm}", tmp_path)
    found, _ = _survey(str(tmp_path / "csv"), tmp_path, "other")
    assert _facts(found) == _facts(reference)


def test_the_same_crm_in_mariadb_gives_the_same_facts(crm: Path, tmp_path: Path, mariadb_database: Database) -> None:
    write_sample("mariadb", mariadb_database.dsn, 300)
    reference, _ = _survey(f"sqlite:///{crm}", tmp_path)
    found, _ = _survey(mariadb_database.dsn, tmp_path, "other")
    assert _facts(found) == _facts(reference)


def test_the_same_crm_in_postgres_gives_the_same_facts(crm: Path, tmp_path: Path, postgres_database: Database) -> None:
    write_sample("postgresql", postgres_database.socket_dsn, 300)
    reference, _ = _survey(f"sqlite:///{crm}", tmp_path)
    found, _ = _survey(postgres_database.socket_dsn, tmp_path, "other")
    assert _facts(found) == _facts(reference)
