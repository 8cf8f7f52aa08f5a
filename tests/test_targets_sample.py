"""The sample CRM carried into SQLite and MariaDB by the plan that a person wrote, by the command, and taken back."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest

from sample_data import CLOUD_MARIADB, CLOUD_SQLITE, GOLD_PLAN, World, write_sample, write_truth
from tests.cli_runner import migrate_here

CONTACTS = 200


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the old system, the truth about it, and the plan, which leaves lists as the old system has them."""
    folder = tmp_path_factory.mktemp("sample")
    write_sample("sqlite", str(folder / "legacy.db"), CONTACTS)
    write_truth(World(CONTACTS, 7, "sqlite"), folder / "truth")
    plan = GOLD_PLAN.read_text(encoding="utf-8")
    for column in ("tags_c", "interests_c"):
        plan = plan.replace(f'{{sql: "multiselect({column})"}}', f"{{from: {column}}}")
    (folder / "plan.yaml").write_text(plan, encoding="utf-8")
    return folder


@pytest.mark.parametrize("kind", ["sqlite", "mariadb"])
def test_the_sample_goes_there_and_back(
    kind: str, sample: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PACKHORSE_DATA_HOME", str(tmp_path / "data-home"))
    if kind == "sqlite":
        with sqlite3.connect("cloud.db") as connection:
            connection.executescript(CLOUD_SQLITE.read_text(encoding="utf-8"))
        connection.close()
        target = "sqlite:///cloud.db"
    else:
        database = request.getfixturevalue("mariadb_database")
        database.run(CLOUD_MARIADB.read_text(encoding="utf-8"))
        target = database.dsn
    again = ("--target", target)
    source = f"sqlite:///{sample / 'legacy.db'}"
    done = migrate_here(
        "run",
        source,
        target,
        "--plan",
        sample / "plan.yaml",
        "--job",
        "crm",
        "--yes",
        "--model",
        "none",
        "--tolerate",
        "0.9",
        "--json",
    )
    assert done.code == 0, done
    verified = migrate_here("verify", "crm", *again, "--json").json
    assert verified["ok"], verified
    found = {each["entity"]: each for each in verified["entities"]}
    counts = json.loads((sample / "truth" / "counts.json").read_text())["counts"]
    if kind == "sqlite":
        # An integer has 64 bits there: two scores fit that PostgreSQL has no room for, and their rows' addresses with them.
        counts["contacts"] |= {"loaded": 162, "quarantined": 26}
        counts["contact_emails"] |= {"loaded": 155, "quarantined": 33}
    for name, wanted in counts.items():
        assert {key: found[name][key] for key in wanted} == wanted, name
    held = migrate_here("quarantine", "list", "crm", *again, "--json").json
    assert sum(each["open"] for each in held["clusters"]) == sum(each["quarantined"] for each in counts.values())
    undone = migrate_here("undo", "crm", *again, "--yes", "--json")
    assert undone.code == 0, undone
    assert undone.json["deleted"] == sum(each["loaded"] for each in counts.values())
