"""Rows of the quarantine driven once more: by the same plan, an edited one, or with edited values; and killed meanwhile.

After each the equation holds by verification's own counts, and by checksums: those of the ledger, all steps of a batch
together, are those of the crosswalk's rows.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import sql

from engine.faults import RETRY_POINTS
from engine.load import load
from engine.retry import EntityRetried
from sample_data.servers import Database, PostgresServer
from tests.engine_jobs import EngineJob, copied, lost_at, reconciled, sqlite_source
from workspace.errors import PlanError, UsageError
from workspace.events import PlanChanged

SOURCE = """
CREATE TABLE firms(id text primary key, name text, parent text, kind text);
INSERT INTO firms VALUES ('a', 'Acme', 'd', 'Client'), ('b', 'Bolt', 'a', 'Odd'), ('c', 'Bolt', NULL, 'Odd'), ('d', 'Dyn', 'b', 'Odd'), ('e', 'Evil', NULL, 'Client'),
  ('f', 'Acme', NULL, 'Client');
CREATE TABLE people(id integer primary key, name text, firm text, born text, deleted int, photo blob);
INSERT INTO people VALUES (1, 'Ana', 'a', '1984-02-29', 0, NULL), (2, 'Bo', 'b', '1990-01-01', 0, x'00ff'), (3, 'Cy', 'd', 'never', 0, NULL),
  (4, 'Di', 'a', 'never', 0, NULL), (5, 'Ed', 'a', '1999-09-09', 1, NULL), (6, 'Flo', 'a', 'gone', 0, NULL);
"""
TARGET = """
CREATE TYPE kind AS ENUM ('customer', 'other');
CREATE TABLE companies(id uuid primary key, name text UNIQUE CHECK (name <> 'Evil'), parent_id uuid REFERENCES companies, kind kind);
CREATE TABLE persons(id bigint GENERATED ALWAYS AS IDENTITY primary key, name text, company_id uuid NOT NULL REFERENCES companies, born date, photo bytea);
"""
PLAN = """
entities:
  people:
    from: people
    to: persons
    key: id
    id: sequence
    where: deleted = 0
    fields: {name: {from: name}, company_id: {from: firm, ref: firms}, born: {from: born}, photo: {from: photo}}
  firms:
    from: firms
    to: companies
    key: id
    id: uuid5
    fields: {name: {from: name}, parent_id: {from: parent, ref: firms, missing: 'null'}, kind: {from: kind, map: kinds}}
value_maps:
  kinds: {Client: customer}
"""
MENDED = PLAN.replace("{Client: customer}", "{Client: customer, Odd: other}")
HELD = "SELECT e.name, q.key, q.code, q.signature, q.status FROM packhorse.quarantine q JOIN packhorse.entity e ON e.id = q.entity_id ORDER BY 1, q.row"
FIRMS = "SELECT c.name, p.name, c.kind::text FROM companies c LEFT JOIN companies p ON p.id = c.parent_id ORDER BY 1"
SUMS = """
WITH l AS (SELECT entity_id, batch, sum(checksum) AS c FROM packhorse.ledger GROUP BY 1, 2),
x AS (SELECT entity_id, batch, sum(('x' || substr(replace(target_hash::text, '-', ''), 18, 15))::bit(60)::bigint) AS c FROM packhorse.crosswalk GROUP BY 1, 2)
SELECT count(*) FROM l FULL JOIN x USING (entity_id, batch) WHERE coalesce(l.c, 0) <> coalesce(x.c, 0)
"""


@pytest.fixture(scope="module")
def legacy(tmp_path_factory: pytest.TempPathFactory) -> str:
    return sqlite_source(tmp_path_factory.mktemp("legacy") / "legacy.db", SOURCE)


@pytest.fixture
def cloud(postgres: PostgresServer, postgres_database: Database) -> Iterator[psycopg.Connection[Any]]:
    postgres_database.run(TARGET)
    with postgres.connect(postgres_database.name) as connection:
        yield connection


@pytest.fixture
def job(legacy: str, postgres_database: Database, cloud: Any, tmp_path: Path) -> EngineJob:
    """Loaded, in batches of two rows: 4 firms and 4 people are in quarantine."""
    made = EngineJob(str(tmp_path), "job", PLAN, legacy, postgres_database.socket_dsn, batch_rows=2)
    return loaded(made)


def loaded(job: EngineJob) -> EngineJob:
    """Loads it, its plan in the log as the command records it."""
    with job.running() as ctx:
        ctx.workspace.record(PlanChanged(1, job.plan, "file"))
        load(ctx)
    return job


def holds(job: EngineJob, cloud: psycopg.Connection[Any]) -> None:
    """Asserts that verification finds nothing, and that the ledger's checksums are the crosswalk's."""
    reconciled(job)
    assert cloud.execute(SUMS).fetchone() == (0,)


def test_a_plan_change_brings_in_just_the_rows_concerned(job: EngineJob, cloud: psycopg.Connection[Any]) -> None:
    before = cloud.execute(HELD).fetchall()
    assert [row[:3] for row in before] == [
        ("firms", "b", "map"), ("firms", "c", "map"), ("firms", "d", "map"), ("firms", "e", "check"), ("firms", "f", "unique"),
        ("people", "2", "reference"), ("people", "3", "reference"), ("people", "4", "cast"), ("people", "6", "cast"),
    ]  # fmt: skip
    loaded = cloud.execute("SELECT id, xmin FROM companies").fetchall()
    outcome = job.retry(MENDED)
    assert outcome.plan_version == 2
    assert outcome.changed == {"firms": ["kind"]}
    assert outcome.entities == (
        EntityRetried("firms", driven=5, inserted=2, stay=3, references=3),
        EntityRetried("people", driven=4, inserted=1, stay=3),
    )
    assert cloud.execute(FIRMS).fetchall() == [
        ("Acme", "Dyn", "customer"), ("Bolt", "Acme", "other"), ("Dyn", "Bolt", "other")
    ]  # fmt: skip
    touched = set(loaded) - set(cloud.execute("SELECT id, xmin FROM companies").fetchall())
    assert len(touched) == 1, "a row was touched besides the one whose parent came in"
    assert [row[:3] for row in cloud.execute(HELD)] == [
        ("firms", "c", "unique"), ("firms", "e", "check"), ("firms", "f", "unique"), ("people", "3", "cast"), ("people", "4", "cast"), ("people", "6", "cast"),
    ]  # fmt: skip
    holds(job, cloud)


def test_rows_that_fail_again_stay_with_their_new_reason(job: EngineJob, cloud: psycopg.Connection[Any]) -> None:
    job.retry(MENDED)
    found = {row[1]: row for row in cloud.execute(HELD)}
    assert found["c"][3] == "name: unique companies_name_key"
    assert found["3"][3] == "born: cast date: 'a'"
    detail = "SELECT detail, raw ->> 'name' FROM packhorse.quarantine WHERE key = 'c'"
    assert cloud.execute(detail).fetchone() == ("unique companies_name_key, collides with source key b", "Bolt")
    # once it is there, the row it lost to is one of the target's
    assert job.retry(entity="firms").entities[0].stay == 3
    assert cloud.execute(detail).fetchone() == (
        "unique companies_name_key, held by a row already in the target", "Bolt"
    )  # fmt: skip
    holds(job, cloud)


def test_edited_values_enter_and_the_stage_stays(job: EngineJob, cloud: psycopg.Connection[Any]) -> None:
    outcome = job.retry(edited={"people": {3: {"born": "2001-02-03", "photo": "00AA"}, 5: {"born": "nope"}}})
    assert outcome.entities == (EntityRetried("people", driven=2, inserted=1, stay=1),)
    assert cloud.execute("SELECT name, born::text, photo FROM persons ORDER BY id DESC LIMIT 1").fetchone() == (
        "Di", "2001-02-03", b"\x00\xaa",
    )  # fmt: skip
    assert cloud.execute("SELECT detail, raw ->> 'born' FROM packhorse.quarantine WHERE key = '6'").fetchone() == (
        "cast date (as edited)", "gone",
    )  # fmt: skip
    holds(job, cloud)
    # a later job sees that the source didn't change, and what can't be loaded there leaves the row as it is
    again = job.named("again")
    again.load()
    assert cloud.execute("SELECT count(*) FROM persons WHERE born = '2001-02-03'").fetchone() == (1,)
    assert again.verified().ok
    assert job.verified().ok


def test_a_row_that_where_excludes_now_is_counted_so_and_loaded_ones_stay(
    job: EngineJob, cloud: psycopg.Connection[Any]
) -> None:
    narrower = PLAN.replace("where: deleted = 0", "where: \"deleted = 0 and name not in ('Flo', 'Ana')\"")
    outcome = job.retry(narrower, entity="people")
    assert outcome.changed == {"people": ["where"]}
    assert outcome.entities == (EntityRetried("people", driven=4, excluded=1, stay=3),)
    found = job.verified()
    people = next(e for e in found.entities if e.entity == "people")
    assert (people.read, people.loaded, people.excluded, people.quarantined) == (6, 1, 2, 3)
    holds(job, cloud)


@pytest.mark.parametrize(
    ("old", "new", "where", "what"),
    [
        ("from: people\n", "from: \"select * from people\"\n", "entities.people.from", "another source"),
        ("to: persons", "to: companies", "entities.people.to", "another target table"),
        ("id: uuid5", "id: keep", "entities.firms.id", "another id"),
        ("    key: id\n    id: sequence", "    key: name\n    id: sequence", "entities.people.key", "another key"),
        (", photo: {from: photo}", "", "entities.people.fields", "lacks photo"),
        ("{name: {from: name}, parent_id", "{parent_id", "entities.firms.fields", "lacks name"),
        ("parent_id: {from: parent, ref: firms, missing: 'null'}", "parent_id: {default: null}", "entities.firms.fields.parent_id", "another pass"),
        ("  firms:", "  more: {from: firms, to: companies, key: id, id: uuid5, fields: {}}\n  firms:", "entities.more", "new"),
        ("{from: born}", "{sql: 'nope(born)'}", "entities.people.fields.born", "nope"),
    ],
)  # fmt: skip
def test_a_plan_that_changes_what_loaded_rows_depend_on_is_refused(
    old: str, new: str, where: str, what: str, job: EngineJob, cloud: psycopg.Connection[Any]
) -> None:
    before = cloud.execute(HELD).fetchall()
    assert old in PLAN
    with pytest.raises(PlanError) as refused:
        job.retry(PLAN.replace(old, new))
    assert refused.value.where.startswith(where)
    assert what in refused.value.what
    assert cloud.execute(HELD).fetchall() == before
    assert job.latest().plan == PLAN


def test_fields_in_another_order_are_the_same_plan(job: EngineJob, cloud: psycopg.Connection[Any]) -> None:
    turned = MENDED.replace(
        "{name: {from: name}, company_id: {from: firm, ref: firms}",
        "{company_id: {from: firm, ref: firms}, name: {from: name}",
    )
    assert job.retry(turned).changed == {"firms": ["kind"]}
    holds(job, cloud)


def test_dropped_rows_are_counted_and_wait_for_their_word(job: EngineJob, cloud: psycopg.Connection[Any]) -> None:
    assert job.drop(signature="kind: map kinds") == 3
    assert job.drop(signature="kind: map kinds") == 0
    firms = next(e for e in job.verified().entities if e.entity == "firms")
    assert (firms.quarantined, firms.dropped) == (5, 3)
    holds(job, cloud)
    assert job.retry(MENDED).entities == (
        EntityRetried("firms", driven=2, stay=2),
        EntityRetried("people", driven=4, stay=4),
    )
    outcome = job.retry(dropped=True, entity="firms")
    assert outcome.entities == (EntityRetried("firms", driven=5, inserted=2, stay=3, references=3),)
    assert [row[1] for row in cloud.execute(HELD) if row[4] == "dropped"] == ["c"]
    holds(job, cloud)


def test_a_job_that_did_not_end_or_was_taken_back_is_refused(
    job: EngineJob, cloud: psycopg.Connection[Any], tmp_path: Path
) -> None:
    other = job.named("other")
    assert other.load_in_child("before commit:5") == -signal.SIGKILL
    with pytest.raises(UsageError, match="not loaded all"):
        other.retry()
    with pytest.raises(UsageError, match="no entity 'nope'"):
        job.retry(entity="nope")


# -- killed -----------------------------------------------------------------------------------------

PASSED = {
    "retry begun": 1, "retry ledger taken": 6, "retry rows in": 6, "retry before commit": 9, "retry after commit": 9,
    "retry after checkpoint": 9, "retry between passes": 1,
}  # fmt: skip
KILLS = [f"{point}:{n}" for point, most in PASSED.items() for n in sorted({1, most} if "commit" in point else {most})]
# A row that lost to another one retried with it is told, driven once more, that it loses to one in the target.
LOOKED_AT = {
    "firms": FIRMS,
    "people": "SELECT x.old_id, p.name, p.company_id, p.born, p.photo FROM persons p LEFT JOIN packhorse.crosswalk x ON x.new_id = p.id::text",
    "crosswalk": "SELECT e.name, x.batch, x.old_id, x.source_hash, x.target_hash, x.reference_hash FROM packhorse.crosswalk x JOIN packhorse.entity e ON e.id = x.entity_id",
    "quarantine": "SELECT q.entity_id, q.batch, q.row, q.key, q.field, q.code, CASE code WHEN 'unique' THEN '' ELSE q.signature || q.detail END, q.raw::text, q.status FROM packhorse.quarantine q",
    "retried": "SELECT entity_id, batch, row, plan_version, excluded, edited::text FROM packhorse.retried",
    "ledger": "SELECT entity_id, batch, step % 2, sum(read), sum(inserted), sum(updated), sum(unchanged), sum(excluded), sum(quarantined), sum(checksum) FROM packhorse.ledger GROUP BY 1, 2, 3",
}  # fmt: skip


def dumps(connection: psycopg.Connection[Any]) -> dict[str, str]:
    return {name: copied(connection, sql.SQL(statement)) for name, statement in LOOKED_AT.items()}


@pytest.fixture(scope="module")
def undisturbed(legacy: str, postgres: PostgresServer, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What the target holds after firms were retried by a better plan, and people with edited values."""
    database = postgres.new_database()
    database.run(TARGET)
    job = EngineJob(str(tmp_path_factory.mktemp("job")), "job", PLAN, legacy, database.socket_dsn, batch_rows=2)
    loaded(job).retry(MENDED)
    job.retry(edited={"people": {3: {"born": "2001-02-03"}}})
    with postgres.connect(database.name) as connection:
        held = dumps(connection)
    postgres.drop(database)
    return held


def test_every_place_is_tried() -> None:
    assert set(PASSED) == set(RETRY_POINTS)


@pytest.mark.parametrize("kill", KILLS)
def test_killed_and_run_again(
    kill: str, job: EngineJob, cloud: psycopg.Connection[Any], undisturbed: dict[str, str]
) -> None:
    assert job.retry_in_child(kill, MENDED) == -signal.SIGKILL
    job.retry(MENDED)
    edited: Any = {"people": {3: {"born": "2001-02-03"}}}
    if "between" not in kill:
        assert job.retry_in_child(kill.split(":")[0], edited=edited) == -signal.SIGKILL
    if cloud.execute("SELECT count(*) FROM packhorse.quarantine WHERE key = '4'").fetchone() == (1,):
        job.retry(edited=edited)
    held = dumps(cloud)
    assert held == undisturbed
    job.retry(entity="people")  # the log catches up
    holds(job, cloud)


@pytest.mark.parametrize("point", RETRY_POINTS)
def test_a_target_that_is_lost_is_waited_for(
    point: str, job: EngineJob, cloud: psycopg.Connection[Any], undisturbed: dict[str, str]
) -> None:
    within = point in ("retry ledger taken", "retry rows in", "retry before commit")
    with lost_at(point, cloud, every=2 if within else 1):
        job.retry(MENDED)
    job.retry(edited={"people": {3: {"born": "2001-02-03"}}})
    assert dumps(cloud) == undisturbed
    holds(job, cloud)


def test_a_retried_row_is_taken_back_with_its_batch(job: EngineJob, cloud: psycopg.Connection[Any]) -> None:
    job.retry(MENDED)
    assert job.latest().undo().refused == 0
    for table in ("companies", "persons", "packhorse.crosswalk", "packhorse.quarantine", "packhorse.retried"):
        assert cloud.execute(f"SELECT count(*) FROM {table}".encode()).fetchone() == (0,), table
    assert job.verified().ok
    with pytest.raises(UsageError, match="was taken back"):
        job.retry()


@pytest.mark.parametrize("write", ["insert", "upsert"])
def test_a_second_row_of_a_source_key_or_an_id_never_writes_over_the_first(
    write: str, cloud: psycopg.Connection[Any], postgres_database: Database, tmp_path: Path
) -> None:
    source = sqlite_source(
        tmp_path / "twice.db",
        "CREATE TABLE t(k text, v text); INSERT INTO t VALUES ('1', 'a'), ('1', 'b'), ('01', 'c');",
    )
    cloud.execute("CREATE TABLE t(id int primary key, v text)")
    cloud.commit()
    plan = f"entities: {{t: {{from: t, to: t, key: k, id: keep, write: {write}, fields: {{v: {{from: v}}}}}}}}"
    made = loaded(EngineJob(str(tmp_path), "twice", plan, source, postgres_database.socket_dsn))
    before = cloud.execute("SELECT * FROM t").fetchall()
    assert len(before) == 1
    assert made.retry().entities == (EntityRetried("t", driven=2, stay=2),)
    assert cloud.execute("SELECT * FROM t").fetchall() == before
    holds(made, cloud)
