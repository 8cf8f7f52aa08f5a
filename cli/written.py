"""Files that a command writes for its owner alone: whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from workspace.disk import disk_errors
from workspace.errors import UsageError


def refuse_place(output: Path, option: str) -> None:
    """UsageError for a place that can't be a file; `option` is what names it."""
    if output.is_dir() or not output.parent.is_dir():
        what = "there is a folder of that name" if output.is_dir() else "there is no such folder"
        raise UsageError(what, where=str(output), advice=f"name another file with {option}")


@contextmanager
def written(output: Path) -> Iterator[IO[bytes]]:
    """A file to write to, for its owner alone; an earlier one is replaced when the new one is whole. UsageError where
    it can't be written."""
    temporary = output.with_name(f".{output.name}.{os.getpid()}.writing")
    with disk_errors():
        try:
            with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                yield file
            temporary.replace(output)
        except PermissionError as error:
            raise UsageError(f"cannot be written: {error.strerror}", where=str(output)) from None
        finally:
            temporary.unlink(missing_ok=True)
