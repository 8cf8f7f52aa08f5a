"""A full disk, told as what it is wherever files are written."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager

from workspace.errors import DiskFullError


@contextmanager
def disk_errors() -> Iterator[None]:
    """Turns a full disk into one clear line."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT) or "No space left" in str(error):
            raise DiskFullError(
                "the disk is full", where=str(error.filename or ""), advice="free some space, then `migrate resume`"
            ) from None
        raise
