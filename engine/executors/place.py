"""Where the files of a load lie so that all of its workers reach them: the job's own folder, or a place behind fsspec.

DuckDB reads the job's folder and nothing else, so what lies elsewhere is copied in and out, whole, under a name of
its own: nobody ever reads half a file, or another run's. Never part of what is promised: the place may be emptied
when no load runs.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from connectors.dsn import resolved
from workspace.disk import disk_errors
from workspace.errors import JobFailedError, PackhorseError, UsageError


class Place:
    """A job's folder on this machine, and behind it a place that its workers share: names are from that folder."""

    def __init__(self, folder: Path, url: str = "", run: str = "") -> None:
        """Without a URL the folder itself is shared. `run` keeps apart what two runs of a job put there.
        UsageError where nothing serves such a URL."""
        self.folder = folder
        self._url, self.run = url, run
        self._made: set[str] = set()
        if url:
            self._files, root = _opened(url)
            self._root = f"{root.rstrip('/')}/packhorse-{folder.name}/{run}"

    @property
    def shared(self) -> bool:
        """True where the job's folder itself is what all reach."""
        return not self._url

    def name(self, file: Path) -> str:
        """The name of a file in the job's folder."""
        return file.relative_to(self.folder).as_posix()

    def put(self, file: Path, name: str = "") -> str:
        """Has a file of the job's folder where all workers reach it, under its own name or another; the name."""
        name = name or self.name(file)
        if not self.shared:
            with self._told():
                self._make(f"{self._root}/{name}".rpartition("/")[0])
                self._files.put_file(str(file), f"{self._root}/{name}")
        return name

    def _make(self, folder: str) -> None:
        if folder in self._made:
            return
        try:
            self._files.makedirs(folder, exist_ok=True)
        except Exception:  # two workers at once: some filesystems tell the second
            self._files.invalidate_cache()
            if not self._files.isdir(folder):
                raise
        self._made.add(folder)

    def get(self, name: str) -> Path:
        """The file of that name, in the job's folder on this machine."""
        file = self.folder / name
        if self.shared:
            if not file.exists():
                raise JobFailedError(
                    "a worker doesn't see the job's folder", where=f"{file} on {socket.gethostname()}",
                    advice="name a place that all workers reach: --stage PATH or URL",
                )  # fmt: skip
            return file
        if not file.exists():
            with disk_errors():
                file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with self._told():
                self._files.get_file(f"{self._root}/{name}", str(file))
        return file

    def has(self, name: str) -> bool:
        """True where the file of that name is there."""
        if self.shared:
            return (self.folder / name).exists()
        with self._told():
            return bool(self._files.exists(f"{self._root}/{name}"))

    def remove(self, *names: str) -> None:
        """Takes files away that no task needs any more; those that are gone already are no matter."""
        for name in names:
            if not self.shared:
                with self._told():
                    if self._files.exists(f"{self._root}/{name}"):
                        self._files.rm_file(f"{self._root}/{name}")

    def clear(self) -> None:
        """Takes away all that this run has put there."""
        if not self.shared:
            self._clear(self._root)

    def clear_job(self) -> None:
        """Takes away all that runs of the job have put there. Only for who has the job."""
        if not self.shared:
            self._clear(self._root.rpartition("/")[0])

    def _clear(self, folder: str) -> None:
        with self._told():
            self._files.invalidate_cache()
            if self._files.exists(folder):
                self._files.rm(folder, recursive=True)

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Each filesystem has errors of its own: one line for all."""
        try:
            yield
        except PackhorseError:
            raise
        except Exception as error:
            raise JobFailedError(
                f"the stage place can't be used: {type(error).__name__}: {redacted(str(error), self._url)[:200]}",
                where=shown(self._url),
                advice="see that it can be reached and written to from here, then `migrate resume`",
            ) from None


def secret_in(url: str) -> bool:
    """True where a password stands in the URL itself, and not the name of a variable that holds it."""
    return bool(_password(url)) and not _password(url).startswith("${")


def shown(url: str) -> str:
    """The URL as it may be shown."""
    return url.replace(f":{_password(url)}@", ":***@") if secret_in(url) else url


def redacted(message: str, url: str) -> str:
    """What a filesystem says, on one line, without the password should it quote it."""
    secret = _password(resolved(url)) if _password(url) else ""
    return " ".join((message.replace(secret, "***") if secret else message).split())


def _password(url: str) -> str:
    try:
        return urlsplit(url).password or ""
    except ValueError:
        return ""


def _opened(url: str) -> tuple[Any, str]:
    try:
        import fsspec
    except ImportError:
        raise UsageError(
            "a stage place needs fsspec", where=shown(url), advice="pip install 'packhorse[dask]'"
        ) from None
    try:
        # not the instance that another thread may be using: some hold one connection
        files, root = fsspec.url_to_fs(resolved(url), skip_instance_cache=True)
    except (ImportError, ValueError, OSError) as error:
        raise UsageError(
            f"the stage place can't be opened: {redacted(str(error), url)[:200]}", where=shown(url),
            advice="give a path, or a URL that fsspec knows, such as s3://bucket/folder (with s3fs installed)",
        ) from None  # fmt: skip
    return files, str(root)
