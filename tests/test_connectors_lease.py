"""The lease on a job: who may write a batch under it, and what a new lease waits for."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import psycopg
import pytest

from connectors.dsn import Dsn
from connectors.postgres import PostgresTarget
from connectors.protocols import LeaseLostError, LedgerRow
from sample_data.servers import Database

ROW = LedgerRow("people", 0, 1, "1", "9", 1)
Open = Callable[[], PostgresTarget]


@pytest.fixture
def opened(postgres_database: Database) -> Iterator[Open]:
    connected: list[PostgresTarget] = []

    def open_one() -> PostgresTarget:
        connected.append(PostgresTarget(Dsn.parse(postgres_database.dsn)))
        return connected[-1]

    yield open_one
    for target in connected:
        target.close()


def leased(opened: Open) -> PostgresTarget:
    target = opened()
    target.prepare()
    target.lease("job", "legacy")
    target.register_entity("legacy", "people", "people")
    return target


def joined(opened: Open, driver: PostgresTarget) -> PostgresTarget:
    target = opened()
    target.join("job", driver.lease_token)
    target.know_entity("legacy", "people", "people")
    target.begin()
    return target


def gone(driver: PostgresTarget, database: Database) -> None:
    """Ends the driver's connection, and the server has noticed."""
    driver.close()
    with psycopg.connect(database.dsn, autocommit=True) as watcher:
        while watcher.execute("SELECT 1 FROM pg_locks WHERE locktype = 'advisory'").fetchone():
            pass


def test_a_batch_is_written_under_the_lease_of_another_process(opened: Open) -> None:
    driver = leased(opened)
    worker = joined(opened, driver)
    assert worker.take(ROW)
    worker.commit()
    assert [row.batch for row in driver.ledger()] == [0]


def test_no_batch_begins_once_the_holder_is_gone(opened: Open, postgres_database: Database) -> None:
    driver = leased(opened)
    worker = joined(opened, driver)
    gone(driver, postgres_database)
    with pytest.raises(LeaseLostError):
        worker.take(ROW)


def test_no_batch_begins_once_another_has_the_job(opened: Open, postgres_database: Database) -> None:
    driver = leased(opened)
    worker = joined(opened, driver)
    gone(driver, postgres_database)
    leased(opened)
    with pytest.raises(LeaseLostError):
        worker.take(ROW)


def test_a_lease_taken_again_by_its_holder_is_the_same(opened: Open) -> None:
    driver = leased(opened)
    worker = joined(opened, driver)
    driver.reconnect()
    assert worker.take(ROW)


def test_a_target_that_does_not_know_the_job_is_no_place_to_write(opened: Open) -> None:
    with pytest.raises(LeaseLostError, match="no job job"):
        opened().join("job", "2026-01-01 00:00:00+00")


def test_a_new_lease_waits_for_the_batch_under_way_and_knows_it_then(opened: Open, postgres_database: Database) -> None:
    """What `undo` and a resumed job rely on: once they have the job, nothing more comes in."""
    driver = leased(opened)
    worker = joined(opened, driver)
    assert worker.take(ROW)
    gone(driver, postgres_database)
    found: list[int] = []
    successor = opened()

    def succeed() -> None:
        successor.lease("job", "legacy")
        successor.know_entity("legacy", "people", "people")
        found.extend(row.batch for row in successor.ledger())

    thread = threading.Thread(target=succeed)
    thread.start()
    with psycopg.connect(postgres_database.dsn, autocommit=True) as watcher:
        while not watcher.execute(
            "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
        ).fetchone():
            assert thread.is_alive(), "it did not wait"
    worker.commit()
    thread.join(30)
    assert found == [0]
