"""Fixtures: real servers once a session, a fresh database for each test."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from sample_data.servers import Database, MariadbServer, NotInstalledError, PostgresServer


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Half as many workers again as there are cores: a test waits for servers and commands for a third of its time."""
    return (os.cpu_count() or 1) * 3 // 2


@pytest.fixture(scope="session", autouse=True)
def _data_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keeps tests away from what whoever runs them has learnt, pulled and set up."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PACKHORSE_CONFIG_HOME", str(tmp_path_factory.mktemp("config-home")))
        patch.setenv("PACKHORSE_DATA_HOME", str(tmp_path_factory.mktemp("data-home")))
        yield


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """The PostgreSQL server that the tests share; leave it running."""
    server = PostgresServer()
    yield server
    server.remove()


@pytest.fixture(scope="session")
def system_postgres() -> Iterator[PostgresServer]:
    """PostgreSQL as the machine has it installed, built with TLS and ICU; skips where there is none."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb")) + sorted(Path("/usr/pgsql").glob("*/bin/initdb"))
    if not found:
        pytest.skip("PostgreSQL with TLS and ICU is not installed: apt-get install postgresql")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PACKHORSE_POSTGRES", str(found[-1].parent))
        server = PostgresServer()
    yield server
    server.remove()


@pytest.fixture(scope="session")
def mariadb() -> Iterator[MariadbServer]:
    """The MariaDB server that the tests share; skips, with the reason, where there is none."""
    try:
        server = MariadbServer()
    except NotInstalledError as reason:
        pytest.skip(str(reason))
    yield server
    server.remove()


@pytest.fixture(scope="module")
def postgres_to_crash() -> Iterator[PostgresServer]:
    """A server of the module's own, to `kill()`, `restart()` and `start()` again: same port, same data."""
    server = PostgresServer()
    yield server
    server.remove()


@pytest.fixture(scope="module")
def mariadb_to_crash() -> Iterator[MariadbServer]:
    """A server of the module's own, to `kill()`, `restart()` and `start()` again: same port, same data."""
    try:
        server = MariadbServer()
    except NotInstalledError as reason:
        pytest.skip(str(reason))
    yield server
    server.remove()


@pytest.fixture
def postgres_database(postgres: PostgresServer) -> Iterator[Database]:
    """An empty PostgreSQL database: `.dsn`, `.run(script)`, `.rows(sql)`."""
    database = postgres.new_database()
    yield database
    postgres.drop(database)


@pytest.fixture
def mariadb_database(mariadb: MariadbServer) -> Iterator[Database]:
    """An empty MariaDB database: `.dsn`, `.run(script)`, `.rows(sql)`."""
    database = mariadb.new_database()
    yield database
    mariadb.drop(database)
