"""Verification counts for itself: whatever goes wrong in between or afterwards, it says so and names the rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import psycopg
import pytest

from connectors.dsn import open_source
from connectors.protocols import Page
from engine.load import load
from engine.verify import Verification, verify
from sample_data.servers import Database, PostgresServer
from tests.engine_jobs import EngineJob, sqlite_source, whole_target
from tests.small_crm import PLAN, SOURCE, TARGET
from workspace.errors import JobFailedError
from workspace.events import Verified


@pytest.fixture
def cloud(postgres: PostgresServer, postgres_database: Database) -> Iterator[psycopg.Connection[Any]]:
    postgres_database.run(TARGET)
    with postgres.connect(postgres_database.name) as connection:
        yield connection


@pytest.fixture
def job(postgres_database: Database, cloud: psycopg.Connection[Any], tmp_path: Path) -> EngineJob:
    legacy = sqlite_source(tmp_path / "legacy.db", SOURCE)
    return EngineJob(str(tmp_path), "job", PLAN, legacy, postgres_database.socket_dsn, batch_rows=2)


def lines(result: Verification) -> dict[str, list[str]]:
    return {e.entity: list(e.problems) for e in result.entities if e.problems}


def test_nothing_wrong(job: EngineJob, cloud: psycopg.Connection[Any]) -> None:
    with job.running() as ctx:
        load(ctx)
        before = whole_target(cloud)
        result = verify(ctx)
        assert whole_target(cloud) == before
        recorded = [entry.event for entry in ctx.workspace.events(types=[Verified])]
    assert result.ok
    assert lines(result) == {}
    counts = {e.entity: (e.read, e.counted, e.loaded, e.merged, e.excluded, e.quarantined) for e in result.entities}
    assert counts == {"accounts": (5, 5, 3, 0, 0, 2), "contacts": (7, 7, 4, 0, 1, 2), "notes": (4, 4, 4, 0, 0, 0)}
    assert [event.ok for event in recorded if isinstance(event, Verified)] == [True]


TAMPERED = [
    ("UPDATE people SET name = 'Eve' WHERE name = 'Bo'", "contacts", "batch 0: 1 rows hold other values than were loaded: source keys 2"),
    ("UPDATE people SET born = NULL", "contacts", "batch 0: 1 rows hold other values than were loaded: source keys 1"),
    ("UPDATE people SET born = '2000-01-01' WHERE name IN ('Cy', 'Ed')", "contacts", "batch 1: 1 rows hold other values than were loaded: source keys 3"),
    ("UPDATE people SET company_id = NULL WHERE name = 'Ana'", "contacts", "batch 0: 1 rows hold other values than were loaded: source keys 1"),
    ("UPDATE notes SET person_id = NULL; DELETE FROM people WHERE name = 'Ed'", "contacts", "batch 2: 1 rows no longer in the target: source keys 5"),
    ("DELETE FROM notes WHERE id = 3", "notes", "batch 1: 1 rows no longer in the target: source keys 3"),
    ("UPDATE notes SET id = 33 WHERE id = 3", "notes", "batch 1: 1 rows no longer in the target: source keys 3"),
    ("UPDATE companies SET parent_id = NULL WHERE name = 'Acme'", "accounts", "batch 0: 1 rows hold other references than were filled: source keys a"),
    ("UPDATE companies SET parent_id = id WHERE name = 'Eon'", "accounts", "batch 2: 1 rows hold other references than were filled: source keys e"),
    ("ALTER TABLE people DROP CONSTRAINT people_company_id_fkey; UPDATE people SET company_id = '00000000-0000-0000-0000-00000000dead' WHERE name = 'Ana'",
     "contacts", "company_id: 1 references point at no row of companies"),
    ("DELETE FROM packhorse.quarantine WHERE key = '4'", "contacts", "neither loaded nor quarantined: source keys 4"),
    ("DELETE FROM packhorse.crosswalk WHERE old_id = 'e'", "accounts", "neither loaded nor quarantined: source keys e"),
    ("INSERT INTO packhorse.quarantine SELECT job_id, entity_id, 0, 0, '1', '', 'x', 'x', 'x', '{}' FROM packhorse.quarantine WHERE key = '4'",
     "contacts", "loaded and quarantined: source keys 1"),
    ("UPDATE packhorse.crosswalk SET new_id = (SELECT min(new_id) FROM packhorse.crosswalk x JOIN packhorse.entity e ON e.id = x.entity_id WHERE e.name = 'accounts') "
     "WHERE old_id = 'e'", "accounts", "two source rows point at one target row"),
    ("UPDATE packhorse.ledger SET read = read + 1 WHERE batch = 1 AND read = 2", "notes", "the ledger says read 5, counted 4"),
    ("DELETE FROM packhorse.ledger WHERE batch = 0 AND step = 1", "contacts", "the ledger says read 5, counted 7"),
    ("SELECT setval('people_id_seq', 1)", "contacts", "the sequence of id stands at 1, below the highest id"),
]  # fmt: skip


@pytest.mark.parametrize("batch", [slice(n, n + 6) for n in range(0, len(TAMPERED), 6)], ids=str)
def test_tampered(batch: slice, job: EngineJob, cloud: psycopg.Connection[Any]) -> None:
    """Each in a transaction of its own that is undone again: verification reads through the connection that made it."""
    with job.running() as ctx:
        load(ctx)
        for statement, entity, line in TAMPERED[batch]:
            ctx.target.begin()
            ctx.target._connection.execute(statement.encode())
            result = verify(ctx, ask_source=False)
            ctx.target.rollback()
            ctx.target._connection.execute("SELECT setval('people_id_seq', 100)")
            assert not result.ok
            found = lines(result).get(entity, [])
            assert any(problem.startswith(line) for problem in found), f"{statement}\n{lines(result)}"
        assert verify(ctx).ok


class _Misread:
    """A source that loses or doubles its second page, as a faulty page query would."""

    def __init__(self, dsn: str, entity: str, fault: str) -> None:
        self._source = open_source(dsn)
        self._entity, self._fault = entity, fault

    def __getattr__(self, name: str) -> Any:
        return getattr(self._source, name)

    def pages(
        self,
        relation: str,
        key: Sequence[str],
        *,
        after: tuple[str, ...] | None,
        size: int,
        since: tuple[str, str] | None = None,
        only: Sequence[str] = (),
    ) -> Iterator[Page]:
        for n, page in enumerate(self._source.pages(relation, key, after=after, size=size)):
            if relation == self._entity and n == 1:
                if self._fault == "skipped":
                    continue
                yield page
            yield page


def test_a_page_lost(job: EngineJob, cloud: psycopg.Connection[Any]) -> None:
    source = _Misread(job.source, "contacts", "skipped")
    with job.running(source=source) as ctx:
        load(ctx)
        result = verify(ctx)
    source.close()
    assert not result.ok
    line = "the source counted 7 rows and the stage holds 5: rows were lost or read twice on the way into the stage"
    assert any(problem.startswith(line) for problem in lines(result)["contacts"]), lines(result)


def test_a_page_read_twice(job: EngineJob, cloud: psycopg.Connection[Any]) -> None:
    """The crosswalk takes no source row twice: the load stops, and verification doesn't call it done."""
    source = _Misread(job.source, "contacts", "doubled")
    with job.running(source=source) as ctx:
        with pytest.raises(JobFailedError, match="crosswalk_pkey"):
            load(ctx)
        result = verify(ctx)
    source.close()
    assert any("the source counted 7 rows and the stage holds 9" in problem for problem in lines(result)["contacts"])


def test_a_job_that_the_target_does_not_know(job: EngineJob, cloud: psycopg.Connection[Any]) -> None:
    with job.running() as ctx:
        result = verify(ctx)
        assert not result.ok
        assert "nothing of it was loaded there" in result.entities[0].problems[0]
        load(ctx)
    with job.named("other").running() as ctx:
        result = verify(ctx)
    assert not result.ok
    assert "doesn't know the job other" in result.entities[0].problems[0]


def test_what_the_source_does_afterwards_is_a_note(job: EngineJob, cloud: psycopg.Connection[Any]) -> None:
    with job.running() as ctx:
        load(ctx)
    sqlite_source(Path(job.base) / "legacy.db", "DELETE FROM notes WHERE id = 1")
    with job.running() as ctx:
        result = verify(ctx)
    assert result.ok
    assert {e.entity: e.notes for e in result.entities if e.notes} == {"notes": ("the source holds 3 rows now",)}
