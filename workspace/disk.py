"""Files as they are written: for their owner alone, and a full disk told as what it is."""

from __future__ import annotations

import errno
import os
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


@contextmanager
def owner_only() -> Iterator[None]:
    """What this process makes in the block is for its owner alone, whatever the umask, libraries' files too. The umask
    is the process's: it holds for all threads."""
    before = os.umask(0o077)
    try:
        yield
    finally:
        os.umask(before)
