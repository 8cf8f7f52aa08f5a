"""pgloader, data only, into the tables that are there: one command a table, so that references can be checked.

With its defaults it reads ahead more rows than its heap holds. With one worker its reader and writer wait for
each other for ever.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from bench.peers.contender import Contender, NotRunError, Started
from bench.systems import Systems
from sample_data.servers import Database

_SETTINGS = "data only, workers = 2, concurrency = 1, prefetch rows = 10000, batch rows = 10000, batch size = 8MB"
_LOAD = """LOAD DATABASE FROM {source} INTO {target}
WITH {settings}
CAST type text to text
INCLUDING ONLY TABLE NAMES MATCHING 'clean_{table}'
ALTER TABLE NAMES MATCHING 'clean_{table}' RENAME TO '{table}'
ALTER SCHEMA '{legacy}' RENAME TO 'public';
"""


def _program() -> str:
    found = shutil.which("pgloader")
    if not found:
        raise NotRunError("pgloader is not installed: apt install pgloader")
    return found


def _prepare() -> dict[str, str]:
    said = subprocess.run([_program(), "--version"], capture_output=True, text=True, check=False).stdout
    return {"pgloader": said.split('"')[1] if '"' in said else said.strip()}


def _start(systems: Systems, target: Database, folder: Path) -> Started:
    given = {
        "source": systems.reader_dsn,
        "target": systems.writer_dsn(target),
        "settings": _SETTINGS,
        "legacy": systems.legacy.name,
    }
    commands = folder / "commands.load"
    commands.write_text("\n".join(_LOAD.format(table=table.name, **given) for table in systems.clean))
    return Started([_program(), "--on-error-stop", "--root-dir", str(folder / "files"), str(commands)])


PGLOADER = Contender(
    name="pgloader",
    did="copies clean rows",
    how="data only, one table after another, reading ahead less than by default; it stops at a bad row",
    prepare=_prepare,
    start=_start,
)
