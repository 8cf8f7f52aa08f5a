"""The servers that the other tests stand on: they start, survive a kill, and are gone afterwards."""

from __future__ import annotations

from pathlib import Path

import psutil
import pytest

from sample_data.servers import Database, MariadbServer, NotInstalledError, PostgresServer


@pytest.mark.parametrize("kind", [PostgresServer, MariadbServer])
def test_a_server_keeps_what_was_committed_over_a_kill_and_leaves_nothing(
    kind: type[PostgresServer] | type[MariadbServer], tmp_path: Path
) -> None:
    try:
        server = kind(tmp_path / ("a_folder_with_a_long_name_" * 5))
    except NotInstalledError as reason:
        pytest.skip(str(reason))
    database = server.new_database()
    database.run("CREATE TABLE t (id int primary key); INSERT INTO t VALUES (1), (2)")
    port, pid = server.port, server.pid

    server.kill()
    with pytest.raises(RuntimeError):
        _ = server.pid
    server.start()
    assert database.rows("SELECT id FROM t ORDER BY id") == [(1,), (2,)]
    server.restart()
    assert server.port == port
    assert server.pid != pid

    last = server.pid
    server.remove()
    assert not psutil.pid_exists(last)
    assert not server.folder.exists()
    assert not server.socket_folder.exists()


def test_each_test_has_a_database_of_its_own(postgres_database: Database, postgres: PostgresServer) -> None:
    postgres_database.run("CREATE TABLE t (id int)")
    other = postgres.new_database()
    other.run("CREATE TABLE t (id int)")
    postgres.drop(other)
    assert postgres_database.rows("SELECT count(*) FROM t") == [(0,)]
