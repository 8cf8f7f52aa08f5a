"""The servers that the other tests stand on: they start, survive a kill, and are gone afterwards."""

from __future__ import annotations

import subprocess
import sys
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


_STARTS_ONE = """
import sys, time
from pathlib import Path
from connectors.scratch import ScratchServer
with ScratchServer(Path(sys.argv[1])) as server:
    print(server.folder, server.connect().execute("SELECT pg_backend_pid()").fetchone()[0], flush=True)
    time.sleep(600)
"""


def test_a_scratch_server_ends_with_the_process_that_started_it(tmp_path: Path, postgres: PostgresServer) -> None:
    """Killed, that one can clean up nothing itself."""
    starter = subprocess.Popen(
        [sys.executable, "-c", _STARTS_ONE, str(tmp_path / "server")], stdout=subprocess.PIPE, text=True
    )
    assert starter.stdout is not None
    folder = Path(starter.stdout.readline().rsplit(" ", 1)[0])
    assert (folder / "data" / "PG_VERSION").exists()
    server = psutil.Process(int((folder / "data" / "postmaster.pid").read_text().splitlines()[0]))
    watch = server.parent()
    assert watch is not None
    starter.kill()
    starter.wait()
    assert psutil.wait_procs([server, watch], timeout=30)[1] == []
    assert not folder.exists()
