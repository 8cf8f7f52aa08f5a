"""Where a job's files lie on this machine, and what a job may be called.

Everything of a job stands in one folder under the place where `migrate` was called. Folders are made for
their owner alone (0700), because the stage and the quarantine hold people's records. This module must
never read or write what the folders hold.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlsplit

import platformdirs

from workspace.errors import DiskFullError, WorkspaceError

OWNER_ONLY = 0o700
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


@dataclass(frozen=True)
class JobPaths:
    """The places of job `job` under the folder `base`. Raises WorkspaceError for a name that can't be one."""

    base: Path
    job: str

    def __post_init__(self) -> None:
        check_job_name(self.job)

    @property
    def folder(self) -> Path:
        """The job's own folder; all else lies in it."""
        return _jobs_folder(self.base) / self.job

    @property
    def database(self) -> Path:
        """The workspace: the log of events."""
        return self.folder / "workspace.db"

    @property
    def stage(self) -> Path:
        """The stage: Parquet parts as the source sent them."""
        return self.folder / "stage"

    @property
    def transformed(self) -> Path:
        """Parts after the transform, waiting to be loaded."""
        return self.folder / "transformed"

    @property
    def temp(self) -> Path:
        """Room for spilling; may be emptied whenever no process holds the job's lock."""
        return self.folder / "temp"

    @property
    def plans(self) -> Path:
        """The plan, one file a version."""
        return self.folder / "plans"

    @property
    def lock(self) -> Path:
        """The file whose lock says that a process writes this job."""
        return self.folder / "lock"

    @property
    def pause(self) -> Path:
        """A file that is there while somebody wants the job to wait; see `workspace.pause`."""
        return self.folder / "pause"

    @property
    def created(self) -> Path:
        """A file written once, when the job was made: that instant, in UTC."""
        return self.folder / "created"

    def create(self) -> JobPaths:
        """Makes the folders that are missing and returns itself. WorkspaceError, DiskFullError.

        The folder of all jobs gets a `.gitignore`, so that records don't get into somebody's repository.
        """
        jobs = _jobs_folder(self.base)
        try:
            _make_ignored(jobs.parent)
            if not jobs.is_dir():
                _make(jobs)
            for folder in (self.folder, self.stage, self.transformed, self.temp, self.plans):
                _make(folder)
            if not self.created.exists():
                made = datetime.now(UTC).isoformat(timespec="microseconds")
                self.created.touch(mode=0o600)
                self.created.write_text(made + "\n", encoding="utf-8")
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise DiskFullError(
                    "no space left for the job's folder",
                    where=str(self.folder),
                    advice="free some space, then run migrate again",
                ) from error
            raise WorkspaceError(
                f"can't make the job's folder: {error.strerror}",
                where=str(self.folder),
                advice="run migrate in a folder that you may write to",
            ) from error
        return self

    @property
    def rehearsal(self) -> RehearsalPaths:
        """The places of the job's rehearsal."""
        return RehearsalPaths(self.base, self.job)

    def exists(self) -> bool:
        """True where the job has a workspace."""
        return self.database.is_file()


@dataclass(frozen=True)
class RehearsalPaths(JobPaths):
    """A rehearsal has a folder and a log of its own within the job's, over the job's own stage."""

    @property
    def folder(self) -> Path:
        """Within the job's folder; may be removed whenever no process holds the job's lock."""
        return super().folder / "rehearsal"

    @property
    def stage(self) -> Path:
        """The job's."""
        return super().folder / "stage"


def schema_file(base: Path) -> Path:
    """Where the schema of plans lies for those under `base`; its folder is made. OSError where it can't be."""
    folder = _jobs_folder(base).parent
    _make_ignored(folder)
    return folder / "plan.schema.json"


def check_job_name(name: str) -> str:
    """The name. Raises WorkspaceError unless it is letters, digits, - _ . with a letter or digit first."""
    if not _NAME.fullmatch(name):
        raise WorkspaceError(
            f"{name[:100]!r} can't be a job's name",
            advice="use 1 to 100 letters, digits, '-', '_' and '.', with a letter or digit first",
        )
    return name


def list_jobs(base: Path) -> list[str]:
    """The names of the jobs under `base` that have a workspace, the newest last; empty when there is none."""
    folder = _jobs_folder(base)
    if not folder.is_dir():
        return []
    found = [
        JobPaths(base, entry.name)
        for entry in folder.iterdir()
        if _NAME.fullmatch(entry.name) and (entry / "workspace.db").is_file()
    ]
    return [paths.job for paths in sorted(found, key=lambda paths: (_created_at(paths), paths.job))]


def newest_job(base: Path) -> JobPaths:
    """The job made last. Raises WorkspaceError when there is none."""
    jobs = list_jobs(base)
    if not jobs:
        raise WorkspaceError(
            "no job here yet", where=str(_jobs_folder(base)), advice="start one: migrate run SOURCE TARGET"
        )
    return JobPaths(base, jobs[-1])


def find_job(base: Path, job: str | None) -> JobPaths:
    """The job of that name, or the newest when `job` is None. Raises WorkspaceError when it isn't there."""
    if job is None:
        return newest_job(base)
    paths = JobPaths(base, job)
    if not paths.exists():
        raise WorkspaceError(
            f"no job {job!r} here", where=str(_jobs_folder(base)), advice="migrate jobs lists those there are"
        )
    return paths


def new_job_name(source: str, target: str) -> str:
    """A readable name that no other job has, such as `legacy-to-cloud-20240501-k3fm`.

    `source` and `target` are DSNs, paths or names; of a DSN only the database (or the host) is taken.
    """
    today = datetime.now().astimezone().strftime("%Y%m%d")
    tail = "".join(secrets.choice("bcdfghjkmnpqrstvwxz23456789") for _ in range(5))
    return f"{_short_name(source)}-to-{_short_name(target)}-{today}-{tail}"


def data_directory() -> Path:
    """Where what is kept across jobs lies: PACKHORSE_DATA_HOME or the user's data directory."""
    chosen = os.environ.get("PACKHORSE_DATA_HOME")
    return Path(chosen).expanduser() if chosen else platformdirs.user_data_path("packhorse", appauthor=False)


def config_directory() -> Path:
    """Where what a person has set up lies: PACKHORSE_CONFIG_HOME or the user's configuration directory."""
    chosen = os.environ.get("PACKHORSE_CONFIG_HOME")
    return Path(chosen).expanduser() if chosen else platformdirs.user_config_path("packhorse", appauthor=False)


def _jobs_folder(base: Path) -> Path:
    return base / ".packhorse" / "jobs"


def _make_ignored(folder: Path) -> None:
    if not folder.is_dir():
        _make(folder)
    ignore = folder / ".gitignore"
    if not ignore.exists():
        ignore.write_text("*\n", encoding="utf-8")


def _make(folder: Path) -> None:
    folder.mkdir(mode=OWNER_ONLY, parents=False, exist_ok=True)
    folder.chmod(OWNER_ONLY)


def _created_at(paths: JobPaths) -> datetime:
    try:
        at = datetime.fromisoformat(paths.created.read_text(encoding="utf-8").strip())
        return at if at.tzinfo else at.replace(tzinfo=UTC)
    except (OSError, ValueError):
        return datetime.fromtimestamp(paths.database.stat().st_mtime, UTC)


def _short_name(place: str) -> str:
    if "://" in place:
        parts = urlsplit(place)
        place = parts.path.strip("/") or parts.netloc.rpartition("@")[2].partition(":")[0] or parts.scheme
    else:
        place = place.partition("?")[0]  # parameters after a name
    last = Path(place.rstrip("/")).name
    stem = last.rpartition(".")[0] or last
    slug = re.sub(r"[^a-z0-9]+", "-", stem.lower()).strip("-")
    return slug[:24].strip("-") or "data"
