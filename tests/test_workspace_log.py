from __future__ import annotations

import os
import sqlite3
import stat
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import pytest

from tests.workspace_events import new_workspace
from workspace import database
from workspace import log as log_module
from workspace.database import Schema
from workspace.errors import DiskFullError, JobLockedError, WorkspaceError
from workspace.events import BeliefHeld, PhaseStarted, RetryMade
from workspace.log import SCHEMA, Workspace
from workspace.paths import JobPaths


def retry(n: int) -> RetryMade:
    return RetryMade("something", n, "")


def attempts(workspace: Workspace, start: int = 1, stop: int | None = None) -> list[int]:
    return [e.event.attempt for e in workspace.events(start, stop) if isinstance(e.event, RetryMade)]


def test_positions_count_from_one_without_gaps(tmp_path: Path) -> None:
    with new_workspace(tmp_path) as workspace:
        assert workspace.position == 0
        assert workspace.record(retry(1)) == 1
        assert workspace.record(retry(2), retry(3)) == 3
        assert [entry.position for entry in workspace.events()] == [1, 2, 3]
        assert workspace.position == 3


def test_events_are_read_from_start_to_stop_both_included(tmp_path: Path) -> None:
    with new_workspace(tmp_path) as workspace:
        workspace.record(*[retry(n) for n in range(1, 1201)])  # more than two chunks
        assert attempts(workspace) == list(range(1, 1201))
        assert attempts(workspace, 499, 502) == [499, 500, 501, 502]
        assert attempts(workspace, 1200) == [1200]
        assert attempts(workspace, 1201) == []
        assert attempts(workspace, 5, 4) == []


def test_events_of_some_types_only(tmp_path: Path) -> None:
    with new_workspace(tmp_path) as workspace:
        for n in range(600):
            workspace.record(retry(n), PhaseStarted("load"))
        assert [e.position for e in workspace.events(types=[PhaseStarted])] == list(range(2, 1201, 2))
        assert [e.position for e in workspace.events(1190, 1195, {"retry_made"})] == [1191, 1193, 1195]
        assert len(list(workspace.events(types=[PhaseStarted, RetryMade]))) == 1200
        assert list(workspace.events(types=[])) == []


def test_a_reader_sees_what_a_live_writer_commits(tmp_path: Path) -> None:
    with new_workspace(tmp_path) as writer, Workspace.open(writer.paths) as reader:
        for n in range(1, 20):
            writer.record(retry(n))
            assert reader.position == n
            assert attempts(reader, n) == [n]


def test_a_reader_in_mid_read_does_not_hold_up_the_writer_and_meets_the_new_events(tmp_path: Path) -> None:
    with new_workspace(tmp_path) as writer, Workspace.open(writer.paths) as reader:
        writer.record(*[retry(n) for n in range(600)])
        reading = reader.events()
        next(reading)
        writer.record(retry(600))
        assert len(list(reading)) == 600


def test_a_reader_sees_a_transaction_whole_or_not_at_all(tmp_path: Path) -> None:
    with new_workspace(tmp_path) as writer, Workspace.open(writer.paths) as reader:
        seen: set[int] = set()
        done = threading.Event()

        def read() -> None:
            while not done.is_set():
                seen.add(reader.position % 7)

        reading = threading.Thread(target=read)
        reading.start()
        for n in range(60):
            writer.record(*[retry(n)] * 7)
        done.set()
        reading.join()
        assert seen == {0}


def test_a_reader_cannot_record(tmp_path: Path) -> None:
    with new_workspace(tmp_path) as writer, Workspace.open(writer.paths) as reader:
        with pytest.raises(RuntimeError, match="opened to read"):
            reader.record(retry(1))
        with pytest.raises(sqlite3.OperationalError, match="readonly"):
            reader._connection.execute("DELETE FROM event")


def test_threads_may_record_at_once(tmp_path: Path) -> None:
    with new_workspace(tmp_path) as workspace:
        threads = [threading.Thread(target=lambda: [workspace.record(retry(n)) for n in range(25)]) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert [entry.position for entry in workspace.events()] == list(range(1, 101))


def test_the_log_itself_refuses_changes(tmp_path: Path) -> None:
    with new_workspace(tmp_path) as workspace:
        workspace.record(retry(1))
        for change in ("UPDATE event SET type = 'x'", "DELETE FROM event"):
            with pytest.raises(sqlite3.IntegrityError, match="append-only"):
                workspace._connection.execute(change)


def test_what_is_recorded_is_on_the_disk_when_record_returns(tmp_path: Path) -> None:
    with new_workspace(tmp_path) as workspace:
        settings = {
            name: workspace._connection.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("synchronous", "journal_mode", "fullfsync")
        }
        assert settings == {"synchronous": 2, "journal_mode": "wal", "fullfsync": 1}


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_all_files_are_for_their_owner_alone(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        with new_workspace(tmp_path) as workspace, Workspace.open(workspace.paths) as reader:
            workspace.record(retry(1))
            assert reader.position == 1
            jobs = tmp_path / ".packhorse" / "jobs"
            found = {path.relative_to(jobs): stat.S_IMODE(path.stat().st_mode) for path in jobs.rglob("*")}
    finally:
        os.umask(before)
    names = {path.name for path in found}
    assert {"workspace.db", "workspace.db-wal", "workspace.db-shm", "stage", "temp", "plans"} <= names
    for path, mode in found.items():
        assert mode == (0o700 if (jobs / path).is_dir() else 0o600), path


def test_a_file_that_others_could_read_is_closed_to_them(tmp_path: Path) -> None:
    with new_workspace(tmp_path) as workspace:
        file = workspace.paths.database
    file.chmod(0o644)
    with new_workspace(tmp_path):
        assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_a_job_that_is_not_there_is_not_made_by_reading(tmp_path: Path) -> None:
    with pytest.raises(WorkspaceError, match="no job 'other' here"):
        Workspace.open(JobPaths(tmp_path, "other"))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("write", [False, True])
def test_a_newer_schema_is_refused_and_left_as_it_is(tmp_path: Path, write: bool) -> None:
    with new_workspace(tmp_path) as workspace:
        workspace.record(retry(1))
    file = workspace.paths.database
    connection = sqlite3.connect(file)
    connection.execute(f"PRAGMA user_version = {SCHEMA.version + 1}")
    connection.close()
    before = file.read_bytes()
    with pytest.raises(WorkspaceError, match="written by a newer version") as caught:
        Workspace.open(workspace.paths, write=write)
    assert caught.value.exit_code == 2
    assert "\n" not in str(caught.value)
    assert file.read_bytes() == before


def test_a_newer_event_is_refused_with_its_place(tmp_path: Path) -> None:
    with new_workspace(tmp_path) as workspace:
        workspace.record(retry(1))
        workspace._connection.execute("INSERT INTO event (at, type, body) VALUES ('2099-01-01', 'dreamt', '{}')")
        with pytest.raises(WorkspaceError, match=r"newer version.*dreamt.*event 2"):
            list(workspace.events())
        assert attempts(workspace, stop=1) == [1]


def test_an_older_file_is_brought_up_to_date_by_the_writer_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with new_workspace(tmp_path) as workspace:
        workspace.record(retry(1))

    def _add_a_note(connection: sqlite3.Connection) -> None:
        connection.execute("CREATE TABLE note (text TEXT)")

    newer = Schema(SCHEMA.name, SCHEMA.application, (*SCHEMA.migrations, _add_a_note))
    monkeypatch.setattr(log_module, "SCHEMA", newer)
    with pytest.raises(WorkspaceError, match="older version"):
        Workspace.open(workspace.paths)
    with new_workspace(tmp_path) as writer:
        assert writer._connection.execute("SELECT count(*) FROM note").fetchone() == (0,)
    with Workspace.open(workspace.paths) as reader:
        assert attempts(reader) == [1]


def test_a_migration_that_fails_leaves_the_file_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with new_workspace(tmp_path) as workspace:
        workspace.record(retry(1))

    def _fail_midway(connection: sqlite3.Connection) -> None:
        connection.execute("CREATE TABLE note (text TEXT)")
        connection.execute("nonsense")

    with monkeypatch.context() as patch:
        patch.setattr(log_module, "SCHEMA", Schema(SCHEMA.name, SCHEMA.application, (*SCHEMA.migrations, _fail_midway)))
        with pytest.raises(WorkspaceError, match="can't use the workspace"):
            Workspace.open(workspace.paths, write=True)
    with Workspace.open(workspace.paths) as reader:
        assert attempts(reader) == [1]


def damage_nothing(file: Path) -> None:
    file.write_bytes(b"")


def damage_text(file: Path) -> None:
    file.write_bytes(b"not a database at all, just text " * 40)


def damage_header(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[:16] = b"\0" * 16
    file.write_bytes(content)


def damage_cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def damage_pages(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[4096:] = b"\xa5" * (len(content) - 4096)
    file.write_bytes(content)


@pytest.mark.parametrize("write", [False, True])
@pytest.mark.parametrize("damage", [damage_text, damage_header, damage_cut, damage_pages])
def test_a_damaged_file_is_one_clear_line(tmp_path: Path, damage: object, write: bool) -> None:
    assert callable(damage)
    with new_workspace(tmp_path) as workspace:
        for n in range(200):
            workspace.record(BeliefHeld(f"s{n}", "c", {"text": "x" * 200}))
    damage(workspace.paths.database)

    def use() -> None:
        with Workspace.open(workspace.paths, write=write) as opened:
            list(opened.events())

    with pytest.raises(WorkspaceError) as caught:
        use()
    assert caught.value.exit_code == 2
    assert "\n" not in str(caught.value)
    assert str(workspace.paths.database) in str(caught.value)


def test_an_empty_file_is_no_job_to_read(tmp_path: Path) -> None:
    with new_workspace(tmp_path) as workspace:
        pass
    damage_nothing(workspace.paths.database)
    with pytest.raises(WorkspaceError, match="empty"):
        Workspace.open(workspace.paths)


def test_a_gap_in_the_log_is_damage(tmp_path: Path) -> None:
    with new_workspace(tmp_path) as workspace:
        workspace.record(retry(1), retry(2), retry(3))
    connection = sqlite3.connect(workspace.paths.database)
    connection.executescript("DROP TRIGGER event_refuses_delete; DELETE FROM event WHERE position = 2")
    connection.close()
    with pytest.raises(WorkspaceError, match="1 events are missing"):
        Workspace.open(workspace.paths, write=True)


@pytest.mark.parametrize("write", [False, True])
def test_somebody_elses_database_is_refused_and_left_alone(tmp_path: Path, write: bool) -> None:
    paths = JobPaths(tmp_path, "job").create()
    connection = sqlite3.connect(paths.database)
    connection.execute("CREATE TABLE theirs (id)")
    connection.close()
    before = paths.database.read_bytes()
    with pytest.raises(WorkspaceError, match="no workspace of Packhorse"):
        Workspace.open(paths, write=write)
    assert paths.database.read_bytes() == before


@pytest.mark.parametrize("write", [False, True])
def test_a_folder_in_the_place_of_the_file(tmp_path: Path, write: bool) -> None:
    paths = JobPaths(tmp_path, "job").create()
    paths.database.mkdir()
    with pytest.raises(WorkspaceError):
        Workspace.open(paths, write=write)


def test_a_full_disk_records_nothing_and_can_be_gone_on_from(tmp_path: Path) -> None:
    with new_workspace(tmp_path) as workspace:
        workspace.record(retry(1))
        (pages,) = workspace._connection.execute("PRAGMA page_count").fetchone()
        workspace._connection.execute(f"PRAGMA max_page_count = {pages}")
        with pytest.raises(DiskFullError, match="no space left") as caught:
            workspace.record(retry(2), BeliefHeld("s", "c", {"text": "x" * 100_000}))
        assert caught.value.exit_code == 1
        assert "resume" in caught.value.advice
        assert workspace.position == 1
        workspace._connection.execute("PRAGMA max_page_count = 1000000")
        assert workspace.record(retry(2)) == 2


def test_another_writer_in_mid_transaction_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "_WAIT", 0.1)
    with new_workspace(tmp_path) as one, new_workspace(tmp_path) as two:
        one._connection.execute("BEGIN IMMEDIATE")
        with pytest.raises(JobLockedError, match="another process keeps writing"):
            two.record(retry(1))
        one._connection.execute("ROLLBACK")
        assert two.record(retry(1)) == 1


def test_opening_to_write_writes_nothing_so_that_a_full_disk_keeps_no_workspace_shut(tmp_path: Path) -> None:
    with new_workspace(tmp_path) as workspace:
        workspace.record(retry(1))
    before = workspace.paths.database.read_bytes()
    with new_workspace(tmp_path) as workspace:
        assert workspace.paths.database.with_name("workspace.db-wal").stat().st_size == 0
        assert workspace.paths.database.read_bytes() == before


def test_names_that_mean_something_in_a_uri(tmp_path: Path) -> None:
    base = tmp_path / "a b?mode=memory#x%41 'ü"
    base.mkdir()
    with new_workspace(base) as workspace:
        workspace.record(retry(1))
    assert workspace.paths.database.stat().st_size > 0
    with Workspace.open(workspace.paths) as reader:
        assert attempts(reader) == [1]


def test_a_reader_in_another_process_after_the_writer_was_killed(tmp_path: Path) -> None:
    script = textwrap.dedent(
        """
        import os, signal, sys
        from pathlib import Path
        from workspace.events import RetryMade
        from workspace.log import Workspace
        from workspace.paths import JobPaths
        workspace = Workspace.open(JobPaths(Path(sys.argv[1]), "job"), write=True)
        workspace.record(RetryMade("x", 1, ""))
        os.kill(os.getpid(), signal.SIGKILL)
        """
    )
    subprocess.run([sys.executable, "-c", script, str(tmp_path)], check=False)
    paths = JobPaths(tmp_path, "job")
    assert paths.database.with_name("workspace.db-wal").stat().st_size > 0  # it is all still in the WAL
    with Workspace.open(paths) as reader:
        assert attempts(reader) == [1]
