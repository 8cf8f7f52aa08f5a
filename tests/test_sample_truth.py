"""The truth about a sample adds up with what was written, and the gold plan accounts for all of it."""

from __future__ import annotations

import json
import sqlite3
import uuid
from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import sqlglot
from sqlglot import exp

from engine.plan import load_plan
from sample_data import GOLD_PLAN, World, write_sample, write_truth
from sample_data.picklists import PICKLISTS
from sample_data.truth_shared import ENTITIES


@pytest.fixture(scope="module")
def sqlite_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sample") / "legacy.db"
    write_sample("sqlite", path, 2000)
    return path


@pytest.fixture(scope="module")
def truth(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("truth")
    write_truth(World(2000, 7, "sqlite"), folder)
    return folder


# The gold plan


def test_gold_plan_accounts_for_each_source_column(sqlite_file: Path) -> None:
    plan = load_plan(GOLD_PLAN)
    assert set(plan.entities) == set(ENTITIES)
    with sqlite3.connect(sqlite_file) as connection:
        for name, entity in plan.entities.items():
            assert (entity.to, entity.id) == (ENTITIES[name].to, ENTITIES[name].id)
            query = entity.from_ if entity.is_select else f"SELECT * FROM {entity.from_}"
            columns = [d[0] for d in connection.execute(f"SELECT * FROM ({query}) LIMIT 0").description]
            assert len(columns) == len(set(columns)), name
            texts = [f.expression for f in entity.fields.values() if not f.constant] + [entity.where or "true"]
            used = {c.name for t in texts for c in sqlglot.parse_one(t, dialect="duckdb").find_all(exp.Column)}
            used |= set(entity.key)
            assert used | set(entity.unmapped) == set(columns), name
            assert not used & set(entity.unmapped), name
            assert {f: p.ref for f, p in entity.fields.items() if p.ref} == ENTITIES[name].references


def test_gold_plan_knows_each_spelling() -> None:
    plan = load_plan(GOLD_PLAN)
    assert set(plan.value_maps) == set(PICKLISTS)
    for name, values in PICKLISTS.items():
        known = {k.strip().casefold(): v for k, v in plan.value_maps[name].items()}
        wanted = {s.strip().casefold(): value for value, spellings in values.items() for s in spellings}
        assert known == wanted, name


# Truth


def test_truth_adds_up_with_what_was_written(sqlite_file: Path, truth: Path) -> None:
    facts = json.loads((truth / "counts.json").read_text())
    plan = load_plan(GOLD_PLAN)
    quarantine = pq.read_table(truth / "quarantine.parquet").to_pylist()
    with sqlite3.connect(sqlite_file) as connection:
        for name, counts in facts["counts"].items():
            assert counts["read"] == counts["excluded"] + counts["quarantined"] + counts["loaded"]
            entity = plan.entities[name]
            query = entity.from_ if entity.is_select else f"SELECT * FROM {entity.from_}"
            rows = connection.execute(f"SELECT {entity.key[0]}, deleted FROM ({query})").fetchall()
            assert len(rows) == len({key for key, _ in rows}) == counts["read"]
            assert sum(deleted != 0 for _, deleted in rows) == counts["excluded"]
            loaded = pq.read_table(truth / f"{name}.parquet")["_key"].to_pylist()
            held = {r["key"] for r in quarantine if r["entity"] == name}
            assert len(loaded) == len(set(loaded)) == counts["loaded"]
            assert len(held) == counts["quarantined"]
            assert {key for key, deleted in rows if not deleted} == set(loaded) | held
            assert not set(loaded) & held


def test_truth_foretells_new_ids(truth: Path) -> None:
    rows = pq.read_table(truth / "contacts.parquet").slice(0, 50).to_pylist()
    space = uuid.uuid5(uuid.NAMESPACE_URL, "packhorse:contacts")
    assert [r["_id"] for r in rows] == [str(uuid.uuid5(space, r["_key"])) for r in rows]


def test_truth_of_one_record_by_hand(sqlite_file: Path, truth: Path) -> None:
    """References in the truth lead where the legacy keys do, and nowhere where the other row isn't loaded."""
    ids = {
        t: {r["_key"]: r["_id"] for r in pq.read_table(truth / f"{t}.parquet").to_pylist()}
        for t in ("accounts", "contacts")
    }
    with sqlite3.connect(sqlite_file) as connection:
        links = dict(
            connection.execute("SELECT contact_id, account_id FROM accounts_contacts WHERE deleted = 0").fetchall()
        )
        bosses = dict(connection.execute("SELECT id, reports_to_id FROM contacts").fetchall())
    seen: Counter[str] = Counter()
    for row in pq.read_table(truth / "contacts.parquet").to_pylist():
        assert row["company_id"] == ids["accounts"].get(links.get(row["_key"]))
        assert row["reports_to_id"] == ids["contacts"].get(bosses[row["_key"]] or None)
        seen["company"] += row["company_id"] is not None
        seen["lost"] += row["company_id"] is None and row["_key"] in links
    assert seen["company"] > 1000
    assert seen["lost"] > 50


def test_lower_key_of_twins_stays(sqlite_file: Path, truth: Path) -> None:
    with sqlite3.connect(sqlite_file) as connection:
        pairs = connection.execute(
            "SELECT min(r.bean_id), max(r.bean_id) FROM email_addr_bean_rel r "
            "JOIN email_addresses e ON e.id = r.email_address_id JOIN contacts c ON c.id = r.bean_id "
            "WHERE r.bean_module = 'Contacts' AND c.deleted = 0 AND e.email_address LIKE '%@%' "
            "GROUP BY replace(trim(lower(e.email_address)), 'mailto:', '') HAVING count(*) > 1"
        ).fetchall()
    loaded = set(pq.read_table(truth / "contacts.parquet")["_key"].to_pylist())
    lost = {r["key"] for r in pq.read_table(truth / "quarantine.parquet").to_pylist() if r["code"] == "unique"}
    assert len(pairs) >= 2
    assert all(low in loaded and high in lost for low, high in pairs)
