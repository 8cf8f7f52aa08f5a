"""Takes record values out of a job's files once it is signed off; the accounts stay: counts, decisions, plan versions,
who did what and when.

Works on this machine alone: what is in the target is `engine.cleanup`'s. Removes nothing outside the job's folder, and
in it nothing that isn't a job's own.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from engine.faults import fault_point
from engine.plan import parse_plan
from engine.stage import sync_folder
from workspace.disk import disk_errors
from workspace.errors import InterruptedJobError, PlanError, UsageError, WorkspaceError
from workspace.events import CrosswalkExported, JobPurged
from workspace.log import Workspace
from workspace.paths import JobPaths
from workspace.pause import this_user
from workspace.progress import Progress
from workspace.state import State, state_at
from workspace.thinning import thinned

_OURS = {"plans", "lock", "created", "pause"}  # hold no record values


@dataclass(frozen=True)
class Purgeable:
    """What a purge of a job finds. `files` of `bytes` would go; `outside` are places that hold values of its records
    and are a person's to remove; `stays` are files in its folder that aren't the job's own. `open` says why it isn't
    settled, "" where it is; `purged` whether an earlier purge ended, `begun` whether one began. `cleaned_up`: its records
    are no longer in the target."""

    job: str
    files: int
    bytes: int
    outside: tuple[str, ...]
    stays: tuple[str, ...]
    open: str
    purged: bool
    begun: bool
    cleaned_up: bool
    quarantined: int

    def to_dict(self) -> dict[str, Any]:
        """As JSON values."""
        return asdict(self)


class Purge:
    """One command's part of purging a job. Made under the job's lock, with its log open; to foresee, neither."""

    def __init__(
        self, paths: JobPaths, workspace: Workspace, *, crosswalk: bool = False,
        stop: Callable[[], bool] = lambda: False,
    ) -> None:  # fmt: skip
        """With `crosswalk`, one that was exported into the job's folder goes too. WorkspaceError."""
        self._paths, self._workspace, self._crosswalk, self._stop = paths, workspace, crosswalk, stop
        self._state = state_at(workspace)
        self._exports = [
            e.event for e in workspace.events(types=[CrosswalkExported]) if isinstance(e.event, CrosswalkExported)
        ]

    def foresee(self) -> Purgeable:
        """What `run` would remove; writes nothing."""
        files = list(self._files())
        progress, belief = self._state.progress, self._state.belief
        begun = progress.purged_at is not None
        return Purgeable(
            self._paths.job, len(files), sum(_size(file) for file in files), tuple(self._outside()),
            tuple(self._not_ours()), _unsettled(self._state), begun and not files, begun,
            bool(belief.cleaned_up), progress.counts.quarantined,
        )  # fmt: skip

    def run(self, *, unsettled: bool = False) -> Purgeable:
        """Takes the values out; what it found before. UsageError where the job isn't settled, unless `unsettled`.

        The log says that the job is purged in the transaction that takes values out of it, before any file goes: no
        other command then relies on files that may be gone. Killed at any instant, the same command goes on; files are
        removed last, so that what is left shows that it didn't end."""
        found = self.foresee()
        if found.open and not unsettled and not found.begun:
            raise UsageError(
                f"the job {found.job} is not settled: {found.open}", where=f"job {found.job}",
                advice="settle it first, or say --unsettled: that can't be done afterwards",
            )  # fmt: skip
        if found.purged:
            return found
        with disk_errors():  # it goes last: whoever finds it knows that a purge didn't end
            self._paths.stage.mkdir(mode=0o700, exist_ok=True)
            self._mark.touch(mode=0o600)
        fault_point("purge begun")

        def told(changed: int) -> list[JobPurged]:
            if found.begun:
                return []
            return [JobPurged(found.files, found.bytes, changed, bool(found.open), this_user())]

        self._workspace.thin(_thinned, told)
        fault_point("purge told")
        self._workspace.forget()
        fault_point("purge log forgotten")
        self._remove()
        return found

    def _remove(self) -> None:
        """Removes the files, then their folders."""
        with disk_errors():
            for file in list(self._files()):
                if self._stop():
                    raise InterruptedJobError(
                        "interrupted; some files are still there", where=str(self._paths.folder),
                        advice=f"migrate purge {self._paths.job}",
                    )  # fmt: skip
                try:
                    file.unlink(missing_ok=True)
                except OSError as error:
                    raise WorkspaceError(
                        f"can't be removed: {error.strerror}", where=str(file),
                        advice=f"see who owns it, then: migrate purge {self._paths.job}",
                    ) from error  # fmt: skip
                fault_point("purge file removed")
            for folder in self._folders():
                shutil.rmtree(folder, ignore_errors=True)
            sync_folder(self._paths.folder)

    def _folders(self) -> list[Path]:
        """Folders that hold nothing but records, and what is made of them."""
        paths = self._paths
        return [paths.rehearsal.folder, paths.temp, paths.transformed, paths.stage]

    @property
    def _mark(self) -> Path:
        return self._paths.stage / "purging"

    def _files(self) -> Iterator[Path]:
        """The files that go, the mark of a purge that didn't end last."""
        yield from self._exported()
        for folder in self._folders():
            found = sorted(each for each in folder.rglob("*") if not each.is_dir() or each.is_symlink())
            yield from (each for each in found if each != self._mark)
        if self._mark.exists():
            yield self._mark

    def _exported(self) -> Iterator[Path]:
        """What `cleanup` put into the job's folder: the quarantine's raw rows, and the crosswalk where that goes too."""
        for event in self._exports:
            for name, goes in ((event.quarantine, True), (event.file, self._crosswalk)):
                if name and goes and self._within(Path(name)) and Path(name).is_file():
                    yield Path(name)
        yield from self._paths.folder.glob(".*.writing")  # a cleanup that was killed

    def _not_ours(self) -> Iterator[str]:
        """Files in the job's folder that stay, besides those of a purged job."""
        goes = set(self._files())
        log = self._paths.database.name
        for each in sorted(self._paths.folder.iterdir()):
            if each in goes or each in self._folders() or each.name in _OURS or each.name.startswith(log):
                continue
            yield str(each)

    def _outside(self) -> Iterator[str]:
        """Places elsewhere that the log and the plan know to hold records."""
        belief = self._state.belief
        for event in self._exports:
            yield from (
                n for n in (event.file, event.quarantine) if n and not self._within(Path(n)) and Path(n).exists()
            )
        try:
            plan = parse_plan(belief.plan) if belief.plan else None
        except PlanError:
            plan = None
        if plan is not None and plan.archive and (archive := Path(plan.archive) / self._paths.job).exists():
            yield str(archive)
        if belief.options.get("stage"):
            yield str(belief.options["stage"])

    def _within(self, file: Path) -> bool:
        return file.absolute().is_relative_to(self._paths.folder.absolute())


def _thinned(event: Any) -> Any:
    fault_point("purge log")
    return thinned(event)


def _unsettled(state: State) -> str:
    """Why a job can't be purged yet, in words; "" where nothing is open."""
    progress = state.progress
    if state.belief.cleaned_up or progress.outcome == "undone":
        return ""
    parts = [_not_done(progress)]
    questions = len(progress.open_questions)
    parts.append(f"{questions:,} questions are open" if questions else "")
    held = sum(f.open for entity in progress.entities.values() for f in entity.failures.values())
    parts.append(f"{held:,} rows are open in quarantine" if held else "")
    return "; ".join(part for part in parts if part)


def _not_done(progress: Progress) -> str:
    if progress.exit_code not in (0, 3) or progress.outcome in (
        "dry run",
        "drafted",
        "declined",
        "rehearsed",
        "piloted",
    ):
        return "it is not done"
    return "" if progress.verified else "it is not verified"


def _size(file: Path) -> int:
    try:
        return file.lstat().st_size
    except OSError:
        return 0
