from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from tests.workspace_events import new_workspace
from workspace.errors import WorkspaceError
from workspace.paths import JobPaths, data_directory, find_job, list_jobs, new_job_name, newest_job


@pytest.mark.parametrize("name", ["a", "Legacy-to_cloud.2", "0", "a" * 100])
def test_names_that_a_job_may_have(tmp_path: Path, name: str) -> None:
    assert JobPaths(tmp_path, name).folder == tmp_path / ".packhorse" / "jobs" / name


@pytest.mark.parametrize(
    "name", ["", ".", "..", ".hidden", "-x", "a/b", "a\\b", "a b", "a\n", "a\0", "ü", "a" * 101, "../x", "~"]
)
def test_names_that_it_may_not(tmp_path: Path, name: str) -> None:
    with pytest.raises(WorkspaceError, match="can't be a job's name") as caught:
        JobPaths(tmp_path, name)
    assert caught.value.exit_code == 2
    assert "\n" not in str(caught.value)


def test_all_lies_in_the_jobs_folder(tmp_path: Path) -> None:
    paths = JobPaths(tmp_path, "job").create()
    folders = (paths.stage, paths.transformed, paths.temp, paths.plans)
    assert all(folder.is_dir() and folder.parent == paths.folder for folder in folders)
    assert {paths.database.parent, paths.lock.parent} == {paths.folder}
    assert (tmp_path / ".packhorse" / ".gitignore").read_text() == "*\n"


def test_folders_are_for_their_owner_alone_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        paths = JobPaths(tmp_path, "job").create()
    finally:
        os.umask(before)
    for folder in (tmp_path / ".packhorse", paths.folder, paths.stage, paths.transformed, paths.temp, paths.plans):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_a_jobs_folder_that_others_could_enter_is_closed_to_them(tmp_path: Path) -> None:
    paths = JobPaths(tmp_path, "job").create()
    for folder in (paths.folder, paths.stage):
        folder.chmod(0o755)
    paths.create()
    assert {stat.S_IMODE(folder.stat().st_mode) for folder in (paths.folder, paths.stage)} == {0o700}


def test_making_a_job_twice_keeps_what_is_there(tmp_path: Path) -> None:
    paths = JobPaths(tmp_path, "job").create()
    (paths.stage / "part").write_text("x")
    made = paths.created.read_text()
    paths.create()
    assert (paths.stage / "part").read_text() == "x"
    assert paths.created.read_text() == made


def test_a_place_that_is_no_folder_is_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / ".packhorse").write_text("a file")
    with pytest.raises(WorkspaceError, match="can't make the job's folder") as caught:
        JobPaths(tmp_path, "job").create()
    assert caught.value.advice


def test_jobs_are_listed_in_the_order_they_were_made(tmp_path: Path) -> None:
    assert list_jobs(tmp_path) == []
    with pytest.raises(WorkspaceError, match="no job here yet"):
        newest_job(tmp_path)
    for job in ("zebra", "ant", "mule"):
        new_workspace(tmp_path, job).close()
    JobPaths(tmp_path, "without-a-workspace").create()
    (tmp_path / ".packhorse" / "jobs" / ".strange name").mkdir()
    new_workspace(tmp_path, "zebra").close()  # opened again, not made again
    assert list_jobs(tmp_path) == ["zebra", "ant", "mule"]
    assert newest_job(tmp_path).job == "mule"
    JobPaths(tmp_path, "ant").created.unlink()  # falls back on the file's own time
    assert set(list_jobs(tmp_path)) == {"zebra", "ant", "mule"}


def test_a_job_is_found_by_name_or_as_the_newest(tmp_path: Path) -> None:
    new_workspace(tmp_path, "one").close()
    new_workspace(tmp_path, "two").close()
    assert find_job(tmp_path, "one").job == "one"
    assert find_job(tmp_path, None).job == "two"
    with pytest.raises(WorkspaceError, match="no job 'three' here") as caught:
        find_job(tmp_path, "three")
    assert "migrate jobs" in caught.value.advice


@pytest.mark.parametrize(
    ("source", "target", "start"),
    [
        ("mysql://me:hunter2@db.example.com/legacy_crm", "postgresql://h/cloud?sslmode=require", "legacy-crm-to-cloud-"),
        ("sqlite:///old/My%20CRM.db", "${CLOUD_DSN}", "my-20crm-to-cloud-dsn-"),
        ("./export/", "postgresql://me:hunter2@cloud.example.com", "export-to-cloud-"),
        ("contacts.csv", "x" * 99, "contacts-to-" + "x" * 24 + "-"),
        ("", "???", "data-to-data-"),
    ],
)  # fmt: skip
def test_a_new_name_is_readable_and_holds_no_secret(tmp_path: Path, source: str, target: str, start: str) -> None:
    name = new_job_name(source, target)
    assert name.startswith(start)
    assert "hunter2" not in name
    assert JobPaths(tmp_path, name).job == name


def test_new_names_are_unique() -> None:
    assert len({new_job_name("a", "b") for _ in range(500)}) == 500


def test_the_data_directory_can_be_put_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PACKHORSE_DATA_HOME", str(tmp_path / "data"))
    assert data_directory() == tmp_path / "data"
    monkeypatch.delenv("PACKHORSE_DATA_HOME")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "xdg"))
    assert data_directory().name == "packhorse"
