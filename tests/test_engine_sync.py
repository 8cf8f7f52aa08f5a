"""What changed in the source, brought in by a further generation of the same job; killed meanwhile, and taken back.

After each the equation holds by verification's own counts, and the log tells the same numbers.
"""

from __future__ import annotations

import signal
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import sql

from engine.faults import SYNC_POINTS
from engine.sync_outcome import EntitySynced, SyncOutcome
from engine.verify import EntityVerified
from sample_data.servers import Database, PostgresServer
from tests.engine_jobs import EngineJob, copied, lost_at, reconciled, sqlite_source
from tests.test_engine_retry import loaded
from workspace.errors import PlanError, UsageError
from workspace.events import PlanChanged

SOURCE = """
CREATE TABLE firms(id text primary key, name text, parent text, kind text);
INSERT INTO firms VALUES ('a', 'Acme', NULL, 'Client'), ('b', 'Bolt', 'a', 'Odd'), ('c', 'Corp', 'x', 'Client'), ('d', 'Dyn', 'b', 'Client');
CREATE TABLE people(id integer primary key, name text, firm text, born text, deleted int, city text);
INSERT INTO people VALUES (1, 'Ana', 'a', '1984-02-29', 0, 'Rome'), (2, 'Bo', 'b', '1990-01-01', 0, 'Oslo'), (3, 'Cy', 'd', 'never', 0, 'Bonn'),
  (4, 'Di', 'a', '1999-09-09', 1, 'Lima'), (5, 'Ed', 'c', '1970-01-01', 0, 'Kiev'), (6, 'Flo', 'a', '1971-01-01', 0, 'Graz');
"""
CHANGES = """
INSERT INTO firms VALUES ('x', 'Xeno', NULL, 'Client');
UPDATE firms SET kind = 'Client' WHERE id = 'b';
UPDATE people SET born = '1980-01-01' WHERE id = 3;
UPDATE people SET deleted = 0 WHERE id = 4;
UPDATE people SET name = 'Eddy', firm = 'x' WHERE id = 5;
UPDATE people SET born = 'gone' WHERE id = 1;
INSERT INTO people VALUES (7, 'Gus', 'x', '1981-01-01', 0, 'Nice'), (0, 'Zed', 'a', '1982-01-01', 0, 'Brno'), (8, 'Hal', 'a', 'bad', 0, 'Linz');
DELETE FROM people WHERE id = 6;
"""
TARGET = """
CREATE TYPE kind AS ENUM ('customer', 'other');
CREATE TABLE companies(id uuid primary key, name text UNIQUE, parent_id uuid REFERENCES companies, kind kind);
CREATE TABLE persons(id bigint GENERATED ALWAYS AS IDENTITY primary key, name text, company_id uuid NOT NULL REFERENCES companies, born date,
  city text, deleted_at timestamptz);
"""
PLAN = """
entities:
  people:
    from: people
    to: persons
    key: id
    id: sequence
    where: deleted = 0
    deleted: {column: deleted_at}
    fields: {name: {from: name}, company_id: {from: firm, ref: firms}, born: {from: born}, city: {from: city}}
  firms:
    from: firms
    to: companies
    key: id
    id: uuid5
    fields: {name: {from: name}, parent_id: {from: parent, ref: firms, missing: 'null'}, kind: {from: kind, map: kinds}}
value_maps:
  kinds: {Client: customer}
"""
PEOPLE = "SELECT p.name, c.name, p.born::text, p.city FROM persons p JOIN companies c ON c.id = p.company_id ORDER BY 1"
FIRMS = "SELECT c.name, p.name FROM companies c LEFT JOIN companies p ON p.id = c.parent_id ORDER BY 1"


@pytest.fixture
def cloud(postgres: PostgresServer, postgres_database: Database) -> Iterator[psycopg.Connection[Any]]:
    postgres_database.run(TARGET)
    with postgres.connect(postgres_database.name) as connection:
        yield connection


@pytest.fixture
def job(postgres_database: Database, cloud: Any, tmp_path: Path) -> EngineJob:
    """Loaded, in batches of two rows: one firm and two people are in quarantine."""
    source = sqlite_source(tmp_path / "legacy.db", SOURCE)
    return loaded(EngineJob(str(tmp_path), "job", PLAN, source, postgres_database.socket_dsn, batch_rows=2))


def change(job: EngineJob, script: str) -> None:
    with sqlite3.connect(job.source.removeprefix("sqlite:///")) as connection:
        connection.executescript(script)
    connection.close()


def reconciled_after_undo(job: EngineJob) -> tuple[EntityVerified, ...]:
    """What verification finds of a job that was taken back, syncs included: no problem."""
    verified = job.verified()
    assert verified.ok, [e.problems for e in verified.entities]
    return verified.entities


def found(outcome: SyncOutcome) -> dict[str, dict[str, Any]]:
    """By entity, what isn't zero."""
    plain = EntitySynced("")
    return {
        e.entity: {k: v for k, v in vars(e).items() if v != getattr(plain, k) and k not in ("entity", "snapshot", "seen", "counted")}
        for e in outcome.entities
    }  # fmt: skip


def test_what_changed_comes_in_and_nothing_else_is_touched(job: EngineJob, cloud: psycopg.Connection[Any]) -> None:
    before = cloud.execute("SELECT id, xmin FROM persons WHERE name IN ('Ana', 'Flo')").fetchall()
    change(job, CHANGES)
    outcome = job.sync()
    assert found(outcome) == {
        "firms": {
            "new": 1, "changed": 1, "again": 2, "gone": 0, "inserted": 2, "unchanged": 2, "freed": 1, "references": 3,
        },
        "people": {"new": 3, "changed": 4, "again": 1, "gone": 1, "inserted": 5, "updated": 1, "quarantined": 2, "freed": 2},
    }  # fmt: skip
    assert cloud.execute(FIRMS).fetchall() == [
        ("Acme", None), ("Bolt", "Acme"), ("Corp", "Xeno"), ("Dyn", "Bolt"), ("Xeno", None)
    ]  # fmt: skip
    assert cloud.execute(PEOPLE).fetchall() == [
        ("Ana", "Acme", "1984-02-29", "Rome"), ("Bo", "Bolt", "1990-01-01", "Oslo"), ("Cy", "Dyn", "1980-01-01", "Bonn"),
        ("Di", "Acme", "1999-09-09", "Lima"), ("Eddy", "Xeno", "1970-01-01", "Kiev"), ("Flo", "Acme", "1971-01-01", "Graz"),
        ("Gus", "Xeno", "1981-01-01", "Nice"), ("Zed", "Acme", "1982-01-01", "Brno"),
    ]  # fmt: skip
    assert cloud.execute("SELECT id, xmin FROM persons WHERE name IN ('Ana', 'Flo')").fetchall() == before
    assert cloud.execute("SELECT key, code FROM packhorse.quarantine ORDER BY 1").fetchall() == [
        ("1", "cast"), ("8", "cast")
    ]  # fmt: skip
    people = next(e for e in reconciled(job).entities if e.entity == "people")
    assert (people.read, people.loaded, people.excluded, people.quarantined) == (9, 7, 0, 2)
    assert outcome.lag > 0


def test_a_sync_of_nothing_changes_nothing(job: EngineJob, cloud: psycopg.Connection[Any]) -> None:
    job.sync()
    change(job, CHANGES)
    job.sync()
    held = {
        name: copied(cloud, sql.SQL(f"SELECT * FROM {name}")) for name in ("companies", "persons", "packhorse.ledger")
    }
    assert found(job.sync()) == {"firms": {"gone": 0}, "people": {"gone": 1}}
    assert held == {name: copied(cloud, sql.SQL(f"SELECT * FROM {name}")) for name in held}
    reconciled(job)


# -- edited in the target ---------------------------------------------------------------------------

POLICIES = [
    # of the entity, of name, of city; then what becomes of Ana and Flo, and the fields that stay, asked where with ?
    ("", "", "", ("Ana", "Paris"), ("Flo", "Ghent"), "name, city"),
    ("overwrite", "", "", ("Anna", "Milan"), ("Flora", "Graz"), ""),
    ("ask", "", "", ("Ana", "Paris"), ("Flo", "Ghent"), "name, city?"),
    ("", "keep", "", ("Anna", "Paris"), ("Flora", "Ghent"), "city"),
    ("", "keep", "ask", ("Anna", "Paris"), ("Flora", "Ghent"), "city?"),
    ("", "", "overwrite", ("Ana", "Milan"), ("Flo", "Graz"), "name"),
    ("overwrite", "", "keep", ("Anna", "Paris"), ("Flora", "Ghent"), "city"),
]
EDIT = "UPDATE {0} SET city = 'Paris' WHERE name = 'Ana'; UPDATE {0} SET city = 'Ghent' WHERE name = 'Flo'"
MOVED = "UPDATE people SET name = 'Anna', city = 'Milan' WHERE id = 1; UPDATE people SET name = 'Flora' WHERE id = 6;"
OF_BOTH = "SELECT name, city FROM {} WHERE city IN ('Paris', 'Milan', 'Ghent', 'Graz') ORDER BY name"


def test_an_edited_row_is_written_over_only_where_the_plan_says_so(
    cloud: psycopg.Connection[Any], postgres_database: Database, tmp_path: Path
) -> None:
    source = sqlite_source(tmp_path / "legacy.db", SOURCE)
    plan = "entities:\n"
    for number, (entity, name, city, *_) in enumerate(POLICIES):
        cloud.execute(
            f"CREATE TABLE p{number}(id int primary key, name text, city text, score float8 DEFAULT 0.1)".encode()
        )
        said = [f", edited: {policy}" if policy else "" for policy in (entity, name, city)]
        plan += (
            f"  p{number}: {{from: people, to: p{number}, key: id{said[0]}, "
            f"fields: {{name: {{from: name{said[1]}}}, city: {{from: city{said[2]}}}}}}}\n"
        )
    cloud.commit()
    job = loaded(EngineJob(str(tmp_path), "job", plan, source, postgres_database.socket_dsn))
    for number in range(len(POLICIES)):
        cloud.execute(EDIT.format(f"p{number}").encode())
    cloud.commit()
    change(job, MOVED)
    outcome = job.sync()
    stays = {}
    for number, (*_, ana, flo, fields) in enumerate(POLICIES):
        assert cloud.execute(OF_BOTH.format(f"p{number}").encode()).fetchall() == [ana, flo], POLICIES[number]
        kept = outcome.kept.get(f"p{number}", [])
        wanted = [(key, fields.rstrip("?"), fields.endswith("?")) for key in "16"] if fields else []
        assert [(row.old_id, row.fields, row.asked) for row in kept] == wanted, POLICIES[number]
        stays |= {f"p{number}": {"changed in the target since": 2}} if fields else {}
    assert outcome.asked == 4
    cloud.commit()
    reconciled(job)
    assert job.undo().kept == stays, "what somebody edited is not taken back"


def test_what_was_asked_comes_again_and_a_person_says_what_holds(
    job: EngineJob, cloud: psycopg.Connection[Any]
) -> None:
    cloud.execute(EDIT.format("persons").encode())
    cloud.commit()
    change(job, MOVED)
    assert job.sync(edited="ask").asked == 2
    assert job.sync(edited="ask").asked == 2
    kept = job.sync(edited="keep")
    assert (kept.asked, len(kept.kept["people"])) == (0, 2)
    assert found(job.sync())["people"] == {"gone": 0}, "a row that is kept is not driven again"
    assert cloud.execute(OF_BOTH.format("persons").encode()).fetchall() == [("Ana", "Paris"), ("Flo", "Ghent")]
    reconciled(job)
    by_field = job.sync(PLAN.replace("{from: city}", "{from: city, edited: overwrite}"))
    assert [row.fields for row in by_field.kept["people"]] == ["name", "name"]
    assert cloud.execute(OF_BOTH.format("persons").encode()).fetchall() == [("Ana", "Milan"), ("Flo", "Graz")]
    reconciled(job)
    with pytest.raises(PlanError, match="more otherwise"):
        job.sync(PLAN.replace("{from: city}", "{sql: 'upper(city)'}"))
    assert job.sync(edited="overwrite").kept == {}
    assert cloud.execute(OF_BOTH.format("persons").encode()).fetchall() == [("Anna", "Milan"), ("Flora", "Graz")]
    reconciled(job)


def test_edits_that_are_made_after_a_sync_are_still_told(job: EngineJob, cloud: psycopg.Connection[Any]) -> None:
    cloud.execute(EDIT.format("persons").encode())
    cloud.commit()
    change(job, MOVED)
    job.sync()
    reconciled(job)
    cloud.execute("UPDATE persons SET city = 'Lyon' WHERE name = 'Ana'")
    cloud.commit()
    problems = [line for entity in job.verified().entities for line in entity.problems]
    assert len(problems) == 1
    assert "hold other values than were loaded: source keys 1" in problems[0]


# -- gone from the source ---------------------------------------------------------------------------

GONE = """
DELETE FROM people WHERE id IN (1, 3, 6);
UPDATE people SET deleted = 1 WHERE id = 5;
DELETE FROM firms WHERE id IN ('a', 'c');
UPDATE firms SET parent = NULL WHERE id = 'b';
"""


HOLD = """
CREATE FUNCTION hold() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF OLD.name = 'Cy' THEN RAISE 'no'; END IF; RETURN OLD; END $$;
CREATE TRIGGER held BEFORE DELETE ON persons FOR EACH ROW EXECUTE FUNCTION hold();
"""


def test_what_is_gone_goes_where_that_was_said(job: EngineJob, cloud: psycopg.Connection[Any]) -> None:
    change(job, CHANGES)
    job.sync()
    cloud.execute("UPDATE persons SET city = 'Ghent' WHERE name = 'Flo'")
    cloud.commit()
    change(job, GONE)
    assert found(job.sync())["people"] == {"changed": 1, "gone": 3, "excluded": 1}, "nothing goes unless that is said"
    people = next(e for e in job.verified().entities if e.entity == "people")
    assert (people.read, people.loaded, people.excluded, people.quarantined) == (9, 6, 1, 2)
    cloud.execute(HOLD)
    cloud.commit()
    outcome = job.sync(deletes="delete")
    counts = found(outcome)
    assert counts["people"] == {"gone": 3, "deleted": 2, "stayed": 2, "freed": 1}
    assert counts["firms"] == {"gone": 2, "deleted": 1, "stayed": 1}
    assert [(row.old_id, row.fields) for rows in outcome.kept.values() for row in rows] == [
        ("a", "(gone from the source: a row of public.persons refers to it)"),
        ("3", "(gone from the source: the target refuses: trigger)"),
        ("6", "(gone from the source: edited in the target)"),
    ]
    assert [row[0] for row in cloud.execute(PEOPLE)] == ["Bo", "Cy", "Di", "Flo", "Gus", "Zed"]
    cloud.execute("DROP TRIGGER held ON persons")
    cloud.commit()
    reconciled(job)
    again = job.sync(deletes="delete", edited="overwrite")
    assert found(again)["people"] == {"gone": 2, "deleted": 2}
    people = next(e for e in reconciled(job).entities if e.entity == "people")
    assert (people.read, people.loaded, people.excluded, people.quarantined) == (6, 4, 1, 1)
    assert job.undo().refused == 0
    assert cloud.execute("SELECT count(*) FROM persons").fetchone() == (0,)
    cloud.commit()
    assert [(e.read, "left as they are" in " ".join(e.notes)) for e in reconciled_after_undo(job)] == [(0, False)] * 2


def test_what_is_gone_is_marked_once_and_unmarked_when_it_comes_back(
    job: EngineJob, cloud: psycopg.Connection[Any]
) -> None:
    marked = "SELECT name FROM persons WHERE deleted_at IS NOT NULL ORDER BY 1"
    change(job, "DELETE FROM people WHERE id = 6; UPDATE people SET deleted = 1 WHERE id = 1;")
    plan = PLAN.replace("    id: uuid5", "    id: uuid5\n    deleted: {column: gone}")
    cloud.execute("ALTER TABLE companies ADD gone boolean NOT NULL DEFAULT false")
    cloud.commit()
    with job.running() as ctx:
        ctx.workspace.record(PlanChanged(2, plan, "file"))
    assert found(job.sync(deletes="mark"))["people"] == {"changed": 1, "gone": 1, "excluded": 1, "marked": 2}
    assert cloud.execute(marked).fetchall() == [("Ana",), ("Flo",)]
    cloud.commit()
    reconciled(job)
    assert found(job.sync(deletes="mark"))["people"] == {"gone": 1}
    change(
        job,
        "INSERT INTO people VALUES (6, 'Flo', 'a', '1971-01-01', 0, 'Graz'); UPDATE people SET deleted = 0 WHERE id = 1;",
    )
    job.sync(deletes="mark")
    assert cloud.execute(marked).fetchall() == []
    cloud.commit()
    reconciled(job)


def test_with_a_watermark_only_what_changed_is_read(
    cloud: psycopg.Connection[Any], postgres_database: Database, tmp_path: Path
) -> None:
    rows = ", ".join(f"({n}, 'n{n}', '2024-01-{n:02} 12:00:00')" for n in range(1, 21))
    source = sqlite_source(
        tmp_path / "legacy.db",
        f"CREATE TABLE t(id integer primary key, v text, at datetime); INSERT INTO t VALUES {rows}",
    )
    cloud.execute("CREATE TABLE t(id int primary key, v text)")
    cloud.commit()
    plan = "entities: {t: {from: t, to: t, key: id, fields: {v: {from: v}}, watermark: {column: at, overlap: 90000}}}"
    job = loaded(EngineJob(str(tmp_path), "job", plan, source, postgres_database.socket_dsn))
    change(
        job,
        "UPDATE t SET v = 'new', at = '2024-01-21 00:00:00' WHERE id = 3; UPDATE t SET v = 'late' WHERE id = 19; UPDATE t SET v = 'untold' WHERE id = 5; "
        "INSERT INTO t VALUES (21, 'null', NULL), (22, 'odd', '9999-01-01 00:00:00'); DELETE FROM t WHERE id = 7;",
    )
    (first,) = job.sync().entities
    assert (first.seen, first.new, first.changed, first.gone, first.watermark) == (5, 2, 2, None, "2024-01-19 11:00:00")
    (entity,) = reconciled(job).entities
    assert "some are gone from the source" in " ".join(entity.notes)
    (second,) = job.sync(deletes="delete").entities
    assert (second.seen, second.gone, second.deleted, second.watermark) == (4, 1, 1, "2024-01-19 23:00:00")
    (third,) = job.sync(full=True).entities
    assert (third.seen, third.changed, third.watermark) == (21, 1, "")
    held = cloud.execute("SELECT id, v FROM t ORDER BY 1").fetchall()
    assert held == [
        (n, {3: "new", 19: "late", 5: "untold", 21: "null", 22: "odd"}.get(n, f"n{n}")) for n in range(1, 23) if n != 7
    ]
    reconciled(job)


@pytest.mark.parametrize(
    ("column", "what"),
    [("nope", "no column 'nope'"), ("photo", "doesn't rise"), ("v", "no date in 1 rows")],
)  # fmt: skip
def test_a_watermark_that_tells_nothing_is_refused(
    column: str, what: str, cloud: psycopg.Connection[Any], postgres_database: Database, tmp_path: Path
) -> None:
    source = sqlite_source(
        tmp_path / "legacy.db",
        "CREATE TABLE t(id integer primary key, v text, photo blob); INSERT INTO t VALUES (1, 'x', NULL)",
    )
    cloud.execute("CREATE TABLE t(id int primary key, v text)")
    cloud.commit()
    plan = f"entities: {{t: {{from: t, to: t, key: id, fields: {{v: {{from: v}}}}, watermark: {column}}}}}"
    job = EngineJob(str(tmp_path), "job", plan, source, postgres_database.socket_dsn)
    with pytest.raises(PlanError, match=what) as refused:
        loaded(job).sync()
    assert refused.value.where == "entities.t.watermark"


def test_a_job_that_was_synced_goes_on_as_one(job: EngineJob, cloud: psycopg.Connection[Any]) -> None:
    change(job, CHANGES)
    assert job.sync_in_child("sync before commit:2") == -signal.SIGKILL
    with pytest.raises(UsageError, match="a sync of the job began"):
        job.load()
    assert "a sync began and didn't end" in " ".join(job.verified().entities[0].problems)
    with pytest.raises(UsageError, match="other options"):
        job.sync(deletes="delete")
    job.sync()
    assert not job.load().moved
    assert [e.entity for e in job.retry().entities] == ["people"]
    reconciled(job)
    with pytest.raises(UsageError, match="was synced"):
        job.undo(("people", 0))
    change(job, "ALTER TABLE people ADD more text")
    with pytest.raises(PlanError, match="columns changed since the job read them: more"):
        job.sync()


# -- killed -----------------------------------------------------------------------------------------

CHAINS = {
    "each place": [f"{point}:1" for point in SYNC_POINTS],
    "late": ["sync rows in:5", "sync after commit:1", "sync before commit:1", "sync between passes:1", "sync before commit:2", "sync after commit:1"],
}  # fmt: skip
LOOKED_AT = {
    "firms": FIRMS,
    "people": "SELECT x.old_id, p.name, p.company_id, p.born, p.city FROM persons p LEFT JOIN packhorse.crosswalk x ON x.new_id = p.id::text",
    "crosswalk": "SELECT e.name, x.batch, x.old_id, x.source_hash, x.target_hash, x.reference_hash FROM packhorse.crosswalk x JOIN packhorse.entity e ON e.id = x.entity_id",
    "quarantine": "SELECT q.entity_id, q.batch, q.row, q.key, q.field, q.code, q.signature, q.detail, q.raw::text, q.status FROM packhorse.quarantine q",
    "superseded": "SELECT * FROM packhorse.superseded",
    "kept": "SELECT entity_id, batch, old_id, fields, asked, edited_hash FROM packhorse.kept",
    "ledger": "SELECT entity_id, batch, step, read, inserted, updated, unchanged, excluded, quarantined, checksum FROM packhorse.ledger",
}  # fmt: skip


def dumps(connection: psycopg.Connection[Any]) -> dict[str, str]:
    return {name: copied(connection, sql.SQL(statement)) for name, statement in LOOKED_AT.items()}


@pytest.fixture(scope="module")
def undisturbed(postgres: PostgresServer, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What the target holds after a sync that nothing disturbed."""
    database = postgres.new_database()
    database.run(TARGET)
    folder = tmp_path_factory.mktemp("job")
    job = EngineJob(
        str(folder), "job", PLAN, sqlite_source(folder / "legacy.db", SOURCE), database.socket_dsn, batch_rows=2
    )
    loaded(job)
    change(job, CHANGES)
    job.sync()
    with postgres.connect(database.name) as connection:
        held = dumps(connection)
    postgres.drop(database)
    return held


@pytest.mark.parametrize("chain", CHAINS)
def test_killed_again_and_again_it_ends_as_undisturbed(
    chain: str, job: EngineJob, cloud: psycopg.Connection[Any], undisturbed: dict[str, str]
) -> None:
    change(job, CHANGES)
    for kill in CHAINS[chain]:
        assert job.sync_in_child(kill) == -signal.SIGKILL, kill
    job.sync()
    assert dumps(cloud) == undisturbed
    reconciled(job)


@pytest.mark.parametrize(
    "point", ["sync begun", "sync staged", "sync after commit", "sync after checkpoint", "sync before completed"]
)
def test_a_target_that_is_lost_is_waited_for(
    point: str, job: EngineJob, cloud: psycopg.Connection[Any], undisturbed: dict[str, str]
) -> None:
    change(job, CHANGES)
    with lost_at(point, cloud):
        job.sync()
    assert dumps(cloud) == undisturbed
    reconciled(job)
