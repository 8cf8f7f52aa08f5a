"""What a job wrote, taken back: the target holds byte for byte what it held before, whatever was there and whenever
the process was killed; and what isn't the job's any more stays as it is.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import sql

from connectors.postgres import PostgresTarget
from connectors.postgres_undo_list import PostgresUndoList
from connectors.protocols import LedgerRow
from engine.faults import UNDO_POINTS
from engine.load import load
from engine.verify import verify
from sample_data.servers import Database, PostgresServer
from tests.engine_jobs import EngineJob, copied, records, sqlite_source
from workspace.errors import CatalogueError, UsageError
from workspace.events import BatchUndone
from workspace.log import Workspace
from workspace.paths import JobPaths
from workspace.state import state_at

SOURCE = """
CREATE TABLE accounts(id text primary key, name text, parent text, contact int);
INSERT INTO accounts VALUES ('a', 'Acme', 'e', 2), ('b', 'Bolt', 'a', NULL), ('c', 'Bolt', NULL, 1), ('d', 'Dyn', 'a', 4),
  ('e', 'Eon', 'd', 1), ('f', 'Fox', 'b', NULL);
CREATE TABLE contacts(id integer primary key, name text, account text, born text);
INSERT INTO contacts VALUES (1, 'Ana', 'a', '1984-02-29'), (2, 'Bo', 'b', 'never'), (3, 'Cy', 'f', NULL), (4, 'Di', 'e', NULL), (5, 'Evil', 'a', NULL);
CREATE TABLE tags(contact int, tag text, weight int, primary key (contact, tag));
INSERT INTO tags VALUES (1, 'x', 1), (1, 'y', 2), (3, 'x', 3), (4, 'z', 4);
"""
# Companies d and e are there before, as the upsert would find them; the others' tables as well.
TARGET = """
CREATE TABLE companies(id text primary key, name text UNIQUE, parent_id text REFERENCES companies, contact_id bigint,
  raw json, labels text[], note text);
CREATE TABLE people(id bigint GENERATED ALWAYS AS IDENTITY primary key, name text CHECK (name <> 'Evil'),
  company_id text REFERENCES companies, born date);
ALTER TABLE companies ADD FOREIGN KEY (contact_id) REFERENCES people;
CREATE TABLE person_tags(person_id bigint REFERENCES people, tag text, weight int, primary key (person_id, tag));
INSERT INTO companies VALUES ('d', 'Old Dyn', NULL, NULL, '{"b" : 1,  "a":2, "a":3}', '[0:1]={x,"y z"}', 'kept'),
  ('e', 'Old Eon', 'd', NULL, 'null', '{}', NULL), ('z', 'Zed', 'e', NULL, NULL, NULL, NULL);
INSERT INTO people(name, company_id) VALUES ('Old', 'e');
UPDATE companies SET contact_id = 1 WHERE id = 'e';
INSERT INTO person_tags VALUES (1, 'x', 9);
"""
PLAN = """
entities:
  accounts:
    from: accounts
    to: companies
    key: id
    id: keep
    write: upsert
    fields:
      name: {from: name}
      parent_id: {from: parent, ref: accounts, missing: 'null'}
      contact_id: {from: contact, ref: contacts, missing: 'null'}
      raw: {default: null}
      labels: {sql: "multiselect(name)"}
  contacts:
    from: contacts
    to: people
    key: id
    id: sequence
    fields: {name: {from: name}, company_id: {from: account, ref: accounts, missing: 'null'}, born: {from: born}}
  tags:
    from: tags
    to: person_tags
    key: [contact, tag]
    id: none
    fields: {person_id: {from: contact, ref: contacts}, tag: {from: tag}, weight: {from: weight}}
"""
CHANGES = """
UPDATE accounts SET name = 'Acme AG', contact = 3 WHERE id = 'a';
UPDATE accounts SET parent = 'f' WHERE id = 'b';
UPDATE contacts SET name = 'Anna', account = 'f' WHERE id = 1;
UPDATE tags SET weight = 7 WHERE contact = 3;
INSERT INTO accounts VALUES ('g', 'Gnu', 'a', 1);
INSERT INTO contacts VALUES (7, 'Gil', 'g', NULL);
"""


@pytest.fixture
def cloud(postgres: PostgresServer, postgres_database: Database) -> Iterator[psycopg.Connection[Any]]:
    postgres_database.run(TARGET)
    with postgres.connect(postgres_database.name) as connection:
        yield connection


@pytest.fixture
def job(postgres_database: Database, cloud: psycopg.Connection[Any], tmp_path: Path) -> EngineJob:
    source = sqlite_source(tmp_path / "legacy.db", SOURCE)
    return EngineJob(str(tmp_path), "job", PLAN, source, postgres_database.socket_dsn, batch_rows=2)


def held(cloud: psycopg.Connection[Any]) -> dict[str, str]:
    """All rows of the customer's tables; a sequence goes on from where a load left it."""
    return {name: rows for name, rows in records(cloud).items() if not name.endswith("_seq")}


def ours(cloud: psycopg.Connection[Any], job: str) -> dict[str, str]:
    """What our schema holds of a job: its crosswalk and quarantine."""
    return {
        table: copied(
            cloud,
            sql.SQL("SELECT t.* FROM packhorse.{} t JOIN packhorse.job j ON j.id = t.job_id WHERE j.name = {}").format(
                sql.Identifier(table), sql.Literal(job)
            ),
        )
        for table in ("crosswalk", "quarantine", "held_before")
    }


def keys(cloud: psycopg.Connection[Any], entity: str) -> list[str]:
    """The source keys of an entity's rows in the crosswalk."""
    found = cloud.execute(
        "SELECT old_id FROM packhorse.crosswalk x JOIN packhorse.entity e ON e.id = x.entity_id WHERE e.name = %s ORDER BY 1",
        [entity],
    )
    return [str(row[0]) for row in found]


def told(job: EngineJob) -> dict[tuple[str, int, int], tuple[int, int, int]]:
    """What the log tells of batches taken back."""
    with Workspace.open(JobPaths(Path(job.base), job.name)) as workspace:
        events = [entry.event for entry in workspace.events(types=[BatchUndone])]
    return {
        (e.entity, e.batch, e.step): (e.deleted, e.restored, e.refused) for e in events if isinstance(e, BatchUndone)
    }


NOTHING = {"crosswalk": "", "quarantine": "", "held_before": ""}


def test_all_is_as_it_was(job: EngineJob, cloud: psycopg.Connection[Any]) -> None:
    before = held(cloud)
    job.load()
    assert held(cloud) != before
    assert ours(cloud, "job")["quarantine"].count("\n") == 3
    outcome = job.undo()
    assert (outcome.deleted, outcome.restored, outcome.refused) == (10, 2, 0)
    assert held(cloud) == before
    assert ours(cloud, "job") == NOTHING
    assert cloud.execute("SELECT count(*), count(undone_at) FROM packhorse.ledger").fetchone() == (11, 11)
    with job.running() as ctx:
        result = verify(ctx)
        assert result.ok, [e.problems for e in result.entities]
        assert {(e.read, e.loaded, e.quarantined) for e in result.entities} == {(0, 0, 0)}
        assert result.entities[0].notes == ("6 rows of 3 batches were taken back",)
        counts = state_at(ctx.workspace).progress.counts
        assert (counts.read, counts.loaded, counts.quarantined, counts.missing) == (0, 0, 0, 0)


def test_twice_is_once(job: EngineJob, cloud: psycopg.Connection[Any]) -> None:
    job.load()
    job.undo()
    after = held(cloud)
    again = job.undo()
    assert (again.deleted, again.restored, again.refused) == (0, 0, 0)
    assert held(cloud) == after


def test_a_new_job_loads_anew(job: EngineJob, cloud: psycopg.Connection[Any]) -> None:
    before = held(cloud)
    first = job.load()
    job.undo()
    with job.named("next").running() as ctx:
        again = load(ctx)
        assert (again.inserted, again.updated, again.quarantined) == (first.inserted, first.updated, first.quarantined)
        assert verify(ctx).ok
    job.named("next").undo()
    assert held(cloud) == before


# How often each place is passed: eleven batches in two steps.
PASSED = {"undo begun": (1,), "undo rows gone": (5,), "undo before commit": (1, 5, 11), "undo after commit": (1, 5, 11),
          "undo after checkpoint": (5,)}  # fmt: skip
PLACES = [f"{point}:{n}" for point in UNDO_POINTS for n in PASSED[point]]


@pytest.mark.parametrize("kill", PLACES)
def test_killed_and_undone_again(kill: str, job: EngineJob, cloud: psycopg.Connection[Any]) -> None:
    before = held(cloud)
    job.load()
    assert job.undo_in_child(kill) == -signal.SIGKILL
    assert job.undo().refused == 0
    assert held(cloud) == before
    assert ours(cloud, "job") == NOTHING
    totals = [sum(each[i] for each in told(job).values()) for i in range(3)]
    assert totals == [10, 2, 0]
    assert len(told(job)) == 11


def test_killed_again_and_again(job: EngineJob, cloud: psycopg.Connection[Any]) -> None:
    before = held(cloud)
    job.load()
    for kill in ("undo before commit:3", "undo after commit:2", "undo rows gone:2", "undo after commit:1"):
        assert job.undo_in_child(kill) == -signal.SIGKILL
    job.undo()
    assert held(cloud) == before
    assert ours(cloud, "job") == NOTHING


def test_a_killed_load_is_taken_back(job: EngineJob, cloud: psycopg.Connection[Any]) -> None:
    before = held(cloud)
    assert job.load_in_child("before commit:9") == -signal.SIGKILL
    assert held(cloud) != before
    job.undo()
    assert held(cloud) == before
    with job.running() as ctx:
        result = verify(ctx)
        assert result.ok, [e.problems for e in result.entities]


def test_the_server_goes_away(job: EngineJob, cloud: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """The connection is lost in the middle of a batch: the list of rows is made again, and the batch begun again."""
    before = held(cloud)
    job.load()
    calls = 0

    hold = PostgresTarget.hold

    def lose(target: PostgresTarget, row: LedgerRow) -> bool:
        nonlocal calls
        calls += 1
        found = hold(target, row)
        if calls == 4:
            cloud.execute("SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory'")
        return found

    monkeypatch.setattr(PostgresTarget, "hold", lose)
    job.undo()
    assert calls > 4
    assert held(cloud) == before


# -- what isn't the job's any more ----------------------------------------------------------------


def test_a_row_changed_meanwhile_stays_and_what_it_refers_to(job: EngineJob, cloud: psycopg.Connection[Any]) -> None:
    """Cy is of Fox, Fox is Bolt's, Bolt Acme's: all stay as they are, the references of the second pass included. Acme
    is Eon's, whose row doesn't go but holds what it held. Everything else is as it was."""
    before = held(cloud)
    job.load()
    cloud.execute("UPDATE people SET born = '2001-01-01' WHERE name = 'Cy'")
    cy = copied(cloud, sql.SQL("SELECT * FROM people WHERE name = 'Cy'"))
    outcome = job.undo()
    assert outcome.kept == {
        "contacts": {"changed in the target since": 1},
        "accounts": {"a row of public.people refers to it": 1, "a row of public.companies refers to it": 2},
    }
    assert [row.key for row in outcome.kept_rows] == [("a",), ("b",), ("f",), ("3",)]
    assert copied(cloud, sql.SQL("SELECT * FROM people WHERE name = 'Cy'")) == cy
    stay = copied(cloud, sql.SQL("SELECT name, parent_id FROM companies WHERE id IN ('a', 'b', 'f')"))
    assert stay == "Acme\te\nBolt\ta\nFox\tb\n"
    assert (
        copied(cloud, sql.SQL("SELECT * FROM companies WHERE id NOT IN ('a', 'b', 'f')")) == before["public.companies"]
    )
    assert copied(cloud, sql.SQL("SELECT * FROM people WHERE name <> 'Cy'")) == before["public.people"]
    assert (keys(cloud, "accounts"), keys(cloud, "contacts")) == (["a", "b", "f"], ["3"])
    with job.running() as ctx:
        result = verify(ctx)
        accounts, contacts, _ = result.entities
        assert (accounts.read, accounts.loaded, accounts.problems) == (3, 3, ())
        assert (contacts.read, contacts.loaded) == (1, 1)
        assert contacts.problems == ("batch 1: 1 rows hold other values than were loaded: source keys 3",)
        assert state_at(ctx.workspace).progress.counts.loaded == 4
    cloud.execute("UPDATE people SET born = NULL WHERE name = 'Cy'")
    assert job.undo().refused == 0
    assert held(cloud) == before


@pytest.mark.parametrize("rule", ["NO ACTION", "CASCADE", "SET NULL"])
def test_a_row_of_others_that_refers_to_ours(rule: str, job: EngineJob, cloud: psycopg.Connection[Any]) -> None:
    before = held(cloud)
    job.load()
    cloud.execute(f"CREATE TABLE invoices(id int, person_id bigint REFERENCES people ON DELETE {rule})")
    cloud.execute("INSERT INTO invoices SELECT 1, id FROM people WHERE name = 'Di'")
    invoices = copied(cloud, sql.SQL("SELECT * FROM invoices"))
    outcome = job.undo()
    assert outcome.kept == {"contacts": {"a row of public.invoices refers to it": 1}}
    assert copied(cloud, sql.SQL("SELECT * FROM invoices")) == invoices
    # what Di refers to was there before, so it is restored under it
    assert held(cloud)["public.companies"] == before["public.companies"]
    cloud.execute("DELETE FROM invoices")
    assert job.undo().refused == 0
    cloud.execute("DROP TABLE invoices")
    assert held(cloud) == before


def test_a_row_that_refers_to_ours_only_now(
    job: EngineJob, cloud: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the list and the batch a row of others is written: it isn't taken along."""
    job.load()
    cloud.execute("CREATE TABLE invoices(id int, person_id bigint REFERENCES people ON DELETE CASCADE)")
    find = PostgresUndoList.find

    def late(rows: PostgresUndoList) -> None:
        find(rows)
        cloud.execute(
            "INSERT INTO invoices SELECT 1, id FROM people WHERE name = 'Di' AND NOT EXISTS (SELECT FROM invoices)"
        )
        cloud.execute("UPDATE people SET name = 'Bobo' WHERE name = 'Cy'")

    monkeypatch.setattr(PostgresUndoList, "find", late)
    outcome = job.undo()
    assert cloud.execute("SELECT count(*) FROM invoices").fetchone() == (1,)
    assert outcome.kept["contacts"] == {"a row of public.invoices refers to it": 1, "changed in the target since": 1}


def test_what_the_target_refuses_to_delete(job: EngineJob, cloud: psycopg.Connection[Any]) -> None:
    """A trigger's refusal can't be foreseen: by then the second pass is taken back, so Fox stays without its parent."""
    before = held(cloud)
    job.load()
    cloud.execute(
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
        "IF OLD.name = 'Cy' THEN RAISE EXCEPTION 'not %', OLD.name; END IF; IF OLD.name = 'Di' THEN RETURN NULL; END IF; RETURN OLD; END $$"
    )
    cloud.execute("CREATE TRIGGER refuse BEFORE DELETE ON people FOR EACH ROW EXECUTE FUNCTION refuse()")
    outcome = job.undo()
    assert outcome.kept == {
        "contacts": {"the target refuses: trigger": 1, "the target did not let it go": 1},
        "accounts": {"a row of public.people refers to it": 1},
    }
    assert copied(cloud, sql.SQL("SELECT name FROM people WHERE name <> 'Old'")) == "Cy\nDi\n"
    assert copied(cloud, sql.SQL("SELECT id, parent_id FROM companies WHERE id = 'f'")) == "f\t\\N\n"
    cloud.execute("DROP FUNCTION refuse CASCADE")
    assert job.undo().refused == 0
    assert held(cloud) == before


def test_a_row_gone_meanwhile(job: EngineJob, cloud: psycopg.Connection[Any]) -> None:
    """What the job inserted and somebody deleted is as it was; what it replaced and somebody deleted isn't."""
    job.load()
    cloud.execute("DELETE FROM person_tags WHERE tag = 'z'")
    cloud.execute("UPDATE companies SET parent_id = NULL; UPDATE people SET company_id = NULL")
    cloud.execute("DELETE FROM companies WHERE id = 'd'")
    outcome = job.undo()
    assert outcome.kept["accounts"]["gone from the target"] == 1
    assert "tags" not in outcome.kept
    assert keys(cloud, "tags") == []


# -- several jobs ---------------------------------------------------------------------------------


def test_a_later_jobs_updates_are_taken_back(job: EngineJob, cloud: psycopg.Connection[Any]) -> None:
    before = held(cloud)
    job.load()
    first, ours_first = held(cloud), ours(cloud, "job")
    sqlite_source(Path(job.base) / "legacy.db", CHANGES)
    later = job.named("next")
    later.load()
    assert held(cloud) != first
    outcome = later.undo()
    assert (outcome.deleted, outcome.refused) == (2, 0)
    assert held(cloud) == first
    assert (ours(cloud, "job"), ours(cloud, "next")) == (ours_first, NOTHING)
    job.undo()
    assert held(cloud) == before


@pytest.mark.parametrize("kill", ["undo before commit:4", "undo after commit:4"])
def test_a_later_jobs_updates_killed(kill: str, job: EngineJob, cloud: psycopg.Connection[Any]) -> None:
    job.load()
    first, ours_first = held(cloud), ours(cloud, "job")
    sqlite_source(Path(job.base) / "legacy.db", CHANGES)
    later = job.named("next")
    later.load()
    assert later.undo_in_child(kill) == -signal.SIGKILL
    later.undo()
    assert held(cloud) == first
    assert (ours(cloud, "job"), ours(cloud, "next")) == (ours_first, NOTHING)


def test_rows_that_a_later_job_wrote_stay(job: EngineJob, cloud: psycopg.Connection[Any]) -> None:
    before = held(cloud)
    job.load()
    sqlite_source(Path(job.base) / "legacy.db", CHANGES)
    later = job.named("next")
    later.load()
    both = held(cloud)
    outcome = job.undo()
    assert outcome.kept["accounts"]["the job next wrote it later"] == 2
    assert outcome.kept["contacts"]["the job next wrote it later"] == 1
    assert held(cloud) != both
    later.undo()
    assert job.undo().refused == 0
    assert held(cloud) == before


def test_what_was_not_kept_stays(job: EngineJob, cloud: psycopg.Connection[Any]) -> None:
    """A job of a version that kept nothing of what it updated: its rows can't be told from those it inserted."""
    job.load()
    sqlite_source(Path(job.base) / "legacy.db", CHANGES)
    later = job.named("next")
    later.load()
    both = held(cloud)
    cloud.execute("DELETE FROM packhorse.held_before; UPDATE packhorse.ledger SET keeps_before = false")
    outcome = later.undo()
    reasons = {reason for kept in outcome.kept.values() for reason in kept}
    assert "what it held before was not kept by the version that loaded it" in reasons
    assert copied(cloud, sql.SQL("SELECT id FROM companies WHERE id <> 'g'")) == "a\nb\nd\ne\nf\nz\n"
    assert both["public.people"].count("\n") - held(cloud)["public.people"].count("\n") <= 1


def test_three_jobs_taken_back_one_by_one(job: EngineJob, cloud: psycopg.Connection[Any]) -> None:
    states = [held(cloud)]
    jobs = [job, job.named("next"), job.named("last")]
    for each, changes in zip(
        jobs, ("", CHANGES, "UPDATE accounts SET parent = 'g', contact = 4 WHERE id = 'a'"), strict=True
    ):
        sqlite_source(Path(job.base) / "legacy.db", changes)
        each.load()
        states.append(held(cloud))
    for each, state in zip(reversed(jobs), reversed(states[:-1]), strict=True):
        assert each.undo().refused == 0
        assert held(cloud) == state


def test_a_marker_of_deletion_that_an_upsert_cleared(job: EngineJob, cloud: psycopg.Connection[Any]) -> None:
    cloud.execute(
        "ALTER TABLE companies ADD COLUMN deleted_at timestamptz; UPDATE companies SET deleted_at = '2001-02-03'"
    )
    before = held(cloud)
    revives = "    write: upsert\n    deleted: {column: deleted_at, revive: true}\n"
    reviving = replace(job, plan=PLAN.replace("    write: upsert\n", revives))
    reviving.load()
    assert cloud.execute("SELECT count(*) FROM companies WHERE deleted_at IS NULL").fetchone() == (5,)
    assert reviving.undo().restored == 2
    assert held(cloud) == before


def test_two_entities_in_one_table(job: EngineJob, cloud: psycopg.Connection[Any]) -> None:
    """The second writes over what the first inserted, and is taken back first: only then is the first's row its own."""
    sqlite_source(Path(job.base) / "legacy.db", "CREATE TABLE firms AS SELECT id, name || ' AG' AS name FROM accounts")
    again = "  firms: {from: firms, to: companies, key: id, id: keep, write: upsert, after: [accounts], fields: {name: {from: name}}}\n"
    twice = replace(job, plan=PLAN + again)
    before = held(cloud)
    twice.load()
    assert "Acme AG" in held(cloud)["public.companies"]
    outcome = twice.undo()
    assert outcome.refused == 0, outcome.kept
    assert held(cloud) == before


# -- one batch ------------------------------------------------------------------------------------


def test_one_batch(job: EngineJob, cloud: psycopg.Connection[Any]) -> None:
    before = held(cloud)
    job.load()
    assert job.undo(("tags", 1)).deleted == 2
    assert keys(cloud, "tags") == ["1\x1fx", "1\x1fy"]
    with job.running() as ctx:
        assert not load(ctx).moved  # not loaded again
        result = verify(ctx)
        assert result.ok, [e.problems for e in result.entities]
        tags = result.entities[2]
        assert (tags.read, tags.loaded, tags.notes) == (2, 2, ("2 rows of 1 batches were taken back",))
        progress = state_at(ctx.workspace).progress
        assert not progress.taken_back
        assert progress.entities["tags"].counts.loaded == 2
    assert job.undo(("tags", 1)).deleted == 0
    # Ana and Bo are referred to by tags and accounts that stay
    refused = job.undo(("contacts", 0))
    assert refused.kept == {"contacts": {"a row of public.companies refers to it": 1}}
    job.undo()
    assert held(cloud) == before


def test_no_such_batch(job: EngineJob, cloud: psycopg.Connection[Any]) -> None:
    with job.running():
        pass
    with pytest.raises(UsageError, match="nothing of job was loaded"):
        job.undo()
    job.load()
    with pytest.raises(UsageError, match="tags has no batch 7"):
        job.undo(("tags", 7))
    with pytest.raises(UsageError, match="leads has no batch 0"):
        job.undo(("leads", 0))


def test_what_the_user_may_not_see(job: EngineJob, cloud: psycopg.Connection[Any]) -> None:
    """Rows that this user can't read might refer to what goes: then nothing goes."""
    job.load()
    loaded = held(cloud)
    user = f"undoer_{cloud.info.dbname}"
    cloud.execute(f"CREATE ROLE {user} LOGIN; GRANT ALL ON SCHEMA packhorse TO {user}")
    cloud.execute(f"GRANT ALL ON ALL TABLES IN SCHEMA public, packhorse TO {user}")
    theirs = replace(job, target=job.target.replace("//postgres@", f"//{user}@"))
    try:
        cloud.execute("REVOKE DELETE ON people FROM " + user)
        with pytest.raises(CatalogueError, match="no privilege to delete on the target's people"):
            theirs.undo()
        cloud.execute("GRANT DELETE ON people TO " + user)
        cloud.execute("CREATE TABLE invoices(id int, person_id bigint REFERENCES people ON DELETE CASCADE)")
        with pytest.raises(CatalogueError, match=r"can't see which rows of public\.invoices refer to people"):
            theirs.undo()
        cloud.execute(f"GRANT SELECT ON invoices TO {user}; ALTER TABLE invoices ENABLE ROW LEVEL SECURITY")
        with pytest.raises(CatalogueError, match=r"can't see which rows of public\.invoices refer to people"):
            theirs.undo()
        cloud.execute("DROP TABLE invoices")
        assert held(cloud) == loaded
        assert theirs.undo().refused == 0
    finally:
        cloud.execute(f"DROP OWNED BY {user}; DROP ROLE {user}")
