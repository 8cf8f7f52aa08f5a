"""The same command again, and a new job over a source that has changed meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from engine.load import load
from engine.preview import preview
from engine.quarantine import quarantined_rows
from engine.verify import verify
from sample_data.servers import Database, PostgresServer
from tests.engine_jobs import EngineJob, records, sqlite_source
from tests.small_crm import PLAN, SOURCE, TARGET
from workspace.errors import InterruptedJobError, JobLockedError

CHANGES = """
UPDATE contacts SET name = 'Bob' WHERE id = 2;
UPDATE contacts SET born = 'never' WHERE id = 5;
UPDATE contacts SET born = NULL WHERE id = 4;
UPDATE contacts SET deleted = 1 WHERE id = 3;
UPDATE contacts SET deleted = 0 WHERE id = 7;
DELETE FROM notes WHERE id = 1;
INSERT INTO notes VALUES (9, 7, 'nine');
UPDATE accounts SET parent = NULL WHERE id = 'a';
UPDATE accounts SET parent = 'e' WHERE id = 'b';
"""


@pytest.fixture
def cloud(postgres: PostgresServer, postgres_database: Database) -> Iterator[psycopg.Connection[Any]]:
    postgres_database.run(TARGET)
    with postgres.connect(postgres_database.name) as connection:
        yield connection


@pytest.fixture
def job(postgres_database: Database, cloud: psycopg.Connection[Any], tmp_path: Path) -> EngineJob:
    legacy = sqlite_source(tmp_path / "legacy.db", SOURCE)
    return EngineJob(str(tmp_path), "job", PLAN, legacy, postgres_database.socket_dsn, batch_rows=2)


def without_sequences(cloud: psycopg.Connection[Any]) -> dict[str, str]:
    """The records; a row that the target refuses draws an id each time it is tried."""
    return {name: rows for name, rows in records(cloud).items() if not name.endswith("_seq")}


def test_only_what_is_new_or_changed(job: EngineJob, cloud: psycopg.Connection[Any]) -> None:
    job.load()
    sqlite_source(Path(job.base) / "legacy.db", CHANGES)
    with job.named("next").running() as ctx:
        foreseen = {e.entity: (e.load, e.unchanged, e.excluded, e.quarantined) for e in preview(ctx).entities}
        # A name changed, a birthday mended (and so a note has its person), a person back; one birthday went bad.
        assert foreseen == {"accounts": (2, 1, 0, 2), "contacts": (4, 1, 1, 1), "notes": (2, 2, 0, 0)}
        outcome = load(ctx)
        assert (outcome.inserted, outcome.updated, outcome.unchanged) == (3, 4, 4)
        result = verify(ctx)
        assert result.ok, [e.problems for e in result.entities]
        assert {row.key[0] for row in quarantined_rows(ctx.target, "next")} == {"c", "d", "5", "6"}
    people = cloud.execute(
        "SELECT p.name, c.name, p.born::text FROM people p LEFT JOIN companies c ON c.id = p.company_id ORDER BY 1"
    )
    # Ed's birthday can't be read any more: what an earlier job loaded of him stays as it was. Cy was marked as
    # deleted in the source: nothing deletes him here but a person.
    assert people.fetchall() == [
        ("Ana", "Acme", "1984-02-29"),
        ("Bob", "Bolt", None),
        ("Cy", None, None),
        ("Di", "Eon", None),
        ("Ed", None, None),
        ("Gil", "Acme", None),
    ]
    companies = cloud.execute(
        "SELECT c.name, p.name FROM companies c LEFT JOIN companies p ON p.id = c.parent_id WHERE c.name <> 'Dyn' ORDER BY 1"
    )
    assert companies.fetchall() == [("Acme", None), ("Bolt", "Eon"), ("Eon", None)]
    assert cloud.execute("SELECT n.id, p.name FROM notes n LEFT JOIN people p ON p.id = n.person_id ORDER BY 1").fetchall() == [
        (1, "Ana"), (2, "Bob"), (3, "Di"), (4, "Ed"), (9, "Gil"),
    ]  # fmt: skip


def test_a_third_job_finds_all_as_it_is(job: EngineJob, cloud: psycopg.Connection[Any]) -> None:
    job.load()
    sqlite_source(Path(job.base) / "legacy.db", CHANGES)
    job.named("next").load()
    held = without_sequences(cloud)
    with job.named("third").running() as ctx:
        outcome = load(ctx)
        assert (outcome.inserted, outcome.updated) == (0, 0)
        assert verify(ctx).ok
    assert without_sequences(cloud) == held


def test_a_changed_row_that_collides_now(job: EngineJob, cloud: psycopg.Connection[Any]) -> None:
    """Bolt is renamed to what Acme is called: the row keeps what it has, in quarantine and in the target once."""
    job.load()
    sqlite_source(Path(job.base) / "legacy.db", "UPDATE accounts SET name = 'Acme' WHERE id = 'b'")
    with job.named("next").running() as ctx:
        load(ctx)
        result = verify(ctx)
        assert result.ok, [e.problems for e in result.entities]
        assert [(r.key, r.code) for r in quarantined_rows(ctx.target, "next", entity="accounts")] == [
            (("b",), "unique"), (("c",), "unique"), (("d",), "unique"),
        ]  # fmt: skip
    assert cloud.execute("SELECT name FROM companies ORDER BY 1").fetchall() == [
        ("Acme",),
        ("Bolt",),
        ("Dyn",),
        ("Eon",),
    ]


def test_two_processes_on_one_job(job: EngineJob, cloud: psycopg.Connection[Any], tmp_path: Path) -> None:
    """A second machine has a folder of its own; the target's lease tells it that the job is taken."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    other = EngineJob(str(elsewhere), job.name, job.plan, job.source, job.target, job.batch_rows)
    with job.running() as ctx:
        load(ctx)
        with pytest.raises(JobLockedError, match="is being run by process"), other.running() as second:
            load(second)
    with other.running() as second:
        assert not load(second).moved


def test_a_job_s_name_belongs_to_its_source(job: EngineJob, cloud: psycopg.Connection[Any], tmp_path: Path) -> None:
    job.load()
    (tmp_path / "elsewhere").mkdir()
    other = EngineJob(str(tmp_path / "elsewhere"), job.name, job.plan, job.source, job.target, source_name="another")
    with pytest.raises(JobLockedError, match="of another source"):
        other.load()


def test_stopped_between_batches(job: EngineJob, cloud: psycopg.Connection[Any], postgres: PostgresServer) -> None:
    """Asked to stop at any point it is polled, the load stops in order, and goes on to the same end."""
    undisturbed = postgres.new_database()
    undisturbed.run(TARGET)
    EngineJob(job.base, "undisturbed", PLAN, job.source, undisturbed.socket_dsn, job.batch_rows).load()
    stopped = 0
    for asked in (1, 2, 4, 6):
        with job.running() as ctx:
            left = [asked]

            def stop(left: list[int] = left) -> bool:
                left[0] -= 1
                return left[0] < 0

            ctx.stop = stop
            try:
                load(ctx)
            except InterruptedJobError as error:
                stopped += error.exit_code == 130
    assert stopped >= 3
    with job.running() as ctx:
        load(ctx)
        assert verify(ctx).ok
    statement = "SELECT name, born::text FROM people UNION ALL SELECT name, parent_id::text FROM companies UNION ALL SELECT text, id::text FROM notes ORDER BY 1, 2"
    assert cloud.execute(statement).fetchall() == undisturbed.rows(statement)
    postgres.drop(undisturbed)


def test_a_lost_connection(job: EngineJob, cloud: psycopg.Connection[Any]) -> None:
    """The target drops the connection in mid-load, again and again: each batch is there once."""
    with job.running() as ctx:
        commit = ctx.target.commit
        dropped: list[int] = []

        def drop_first() -> None:
            if len(dropped) < 3:
                dropped.append(1)
                cloud.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
                )
            commit()

        ctx.target.commit = drop_first  # type: ignore[method-assign]
        outcome = load(ctx)
        assert (outcome.read, outcome.quarantined) == (16, 4)
        assert verify(ctx).ok
    assert len(dropped) == 3


def test_a_field_beside_a_links_key_is_brought_up_to_date(
    job: EngineJob, cloud: psycopg.Connection[Any], tmp_path: Path
) -> None:
    cloud.execute("CREATE TABLE tags(person int, tag text, weight int, note text, PRIMARY KEY (person, tag))")
    source = sqlite_source(
        tmp_path / "tags.db",
        "CREATE TABLE tags(person int, tag text, weight int, PRIMARY KEY (person, tag)); "
        "INSERT INTO tags VALUES (1, 'x', 1), (1, 'y', 2), (2, 'x', 3);",
    )
    plan = """
entities:
  tags: {from: tags, to: tags, key: [person, tag], id: none, fields: {person: {from: person}, tag: {from: tag}, weight: {from: weight}}}
"""
    first = EngineJob(job.base, "first", plan, source, job.target)
    first.load()
    cloud.execute("UPDATE tags SET note = 'kept'")
    sqlite_source(tmp_path / "tags.db", "UPDATE tags SET weight = 7 WHERE tag = 'x'")
    later = first.named("later")
    assert later.load().updated == 2
    weights = "SELECT person, tag, weight, note FROM tags ORDER BY 1, 2"
    assert cloud.execute(weights).fetchall() == [(1, "x", 7, "kept"), (1, "y", 2, "kept"), (2, "x", 7, "kept")]
    found = later.verified()
    assert found.ok, found
    later.undo()
    assert cloud.execute(weights).fetchall() == [(1, "x", 1, "kept"), (1, "y", 2, "kept"), (2, "x", 3, "kept")]
    assert first.verified().ok
