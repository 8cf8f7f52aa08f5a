"""The raw pipe: what the two servers' own clients can do, and the measure of all others."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from pathlib import Path

from bench.peers.contender import Contender, NotRunError, Started
from bench.systems import Systems
from connectors.embedded import postgres_binaries
from sample_data.servers import Database


def _client() -> str:
    found = shutil.which("mariadb") or shutil.which("mysql")
    if not found:
        raise NotRunError("MariaDB's client is not installed: apt install mariadb-client")
    return found


def _psql() -> str:
    return shutil.which("psql") or str(postgres_binaries() / "psql")


def _prepare() -> dict[str, str]:
    return {Path(p).name: _version(p) for p in (_client(), _psql())}


def _version(program: str) -> str:
    said = subprocess.run([program, "--version"], capture_output=True, text=True, check=False).stdout
    return said.strip().split("\n")[0]


def _start(systems: Systems, target: Database, folder: Path) -> Started:
    read = shlex.join([
        _client(), "--no-defaults", f"--socket={systems.mariadb.socket}", "--user=root", "--quick", "--batch",
        "--skip-column-names", "--default-character-set=utf8mb4", systems.legacy.name,
    ])  # fmt: skip
    write = shlex.join([_psql(), "-qX", "-v", "ON_ERROR_STOP=1", target.socket_dsn])
    script = ["set -euo pipefail"]
    for table in systems.clean:
        listed = ", ".join(table.columns)
        # the client writes a NULL as the word; the checksum of what arrives shows that no value was one
        copy = f"COPY {table.name} ({listed}) FROM STDIN WITH (NULL 'NULL')"
        select = f"SELECT {listed} FROM clean_{table.name}"
        script.append(f"{read} -e {shlex.quote(select)} | {write} -c {shlex.quote(copy)}")
    return Started(["bash", "-c", "\n".join(script)])


PIPE = Contender(
    name="pipe",
    did="copies clean rows",
    how="mariadb --quick --batch | psql COPY, one table after another",
    prepare=_prepare,
    start=_start,
)
