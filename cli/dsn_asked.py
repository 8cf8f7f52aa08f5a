"""A DSN as a person gives it: asked for part by part, the password hidden, or read whole from stdin."""

from __future__ import annotations

import getpass
import sys
from dataclasses import replace
from typing import TYPE_CHECKING
from urllib.parse import quote

from cli.views.output import on_stderr
from workspace.errors import InterruptedJobError, UsageError

if TYPE_CHECKING:
    from connectors.kept_dsns import KeptDsn

_SYSTEMS = {"mysql": 3306, "mariadb": 3306, "postgresql": 5432}
_NAMES = {"mysql": "mysql", "postgres": "postgresql", "sqlite": "sqlite", "csv": "files"}


def ask_dsn() -> str:
    """The DSN that the answers make. UsageError for one that can't be part of any."""
    system = _ask("system (mysql, mariadb, postgresql, sqlite, files; or dsn to paste a whole one)", "").lower()
    if system == "dsn":
        return _whole(_hidden("DSN (not shown)"))
    if system in ("sqlite", "files"):
        return _ask("file" if system == "sqlite" else "file or folder", "")
    if "://" in system:
        raise UsageError("a system is one word", advice="say dsn to paste a whole one, which isn't shown then")
    if system not in _SYSTEMS:
        raise UsageError(f"no system {system[:100]!r}", advice=f"it is one of {', '.join(_SYSTEMS)}, sqlite, files")
    host = _ask("host", "localhost")
    port = _ask("port", str(_SYSTEMS[system]))
    if not port.isdigit() or not 0 < int(port) < 65536:
        raise UsageError(f"{port[:100]!r} is no port", advice="give a number from 1 to 65535")
    database = _ask("database", "")
    user = _ask("user", "")
    password = _hidden("password (not shown; empty for none, or ${NAME} for a variable)")
    login = quote(user, safe="") + (f":{quote(password, safe='')}" if password else "")
    place = f"[{host}]" if ":" in host else quote(host, safe="")
    return f"{system}://{login}{'@' if login else ''}{place}:{port}/{quote(database, safe='')}"


def read_dsn(name: str) -> str:
    """The DSN on stdin, of one line. UsageError where there is none, or more."""
    return _whole(sys.stdin.read(), f"give it on stdin: migrate dsn add {name} < FILE; or call it on a terminal")


def kept_as(name: str, given: str) -> tuple[str, KeptDsn]:
    """The DSN as it is kept, and what is shown of it. A path is kept whole, so that it leads there from everywhere.
    DsnError where it can't be read, UsageError where it is a name itself."""
    from connectors.dsn import Dsn
    from connectors.kept_dsns import KeptDsn, is_kept

    text = given.strip()
    if is_kept(text) or (text.startswith("${") and text.endswith("}")):
        raise UsageError("that is a name itself", where=text[:100], advice="use it as it is, or give the DSN")
    dsn = Dsn.parse(text)
    if dsn.path is not None:
        place = dsn.path.expanduser().resolve()
        whole = replace(dsn, path=place).masked  # no password is in it
        return whole, KeptDsn(name, _NAMES[dsn.system], database=str(place))
    named = dsn.parameters
    host = dsn.host or named.get("host", "") or named.get("unix_socket", "")
    return text, KeptDsn(name, _NAMES[dsn.system], host, dsn.port, dsn.database, dsn.user, dsn.ssh)


def _whole(text: str, advice: str = "paste it whole") -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if not lines:
        raise UsageError("no DSN was given", advice=advice)
    if len(lines) > 1:
        raise UsageError(f"a DSN is one line, and there are {len(lines)}", advice=advice)
    return lines[0]


def _ask(what: str, otherwise: str) -> str:
    on_stderr().print(f"{what}{f' [{otherwise}]' if otherwise else ''}: ", end="")
    line = sys.stdin.readline()
    if not line:
        raise InterruptedJobError("nothing was kept")
    return line.strip() or otherwise


def _hidden(what: str) -> str:
    try:
        return getpass.getpass(f"{what}: ", stream=sys.stderr).strip("\r\n")
    except EOFError:
        raise InterruptedJobError("nothing was kept") from None
