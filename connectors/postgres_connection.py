"""A psycopg connection from a DSN, and one clear line where there can't be one."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import closing
from typing import Any

import psycopg

from connectors.dsn import Dsn, is_local
from connectors.measures import Reached, timed
from connectors.tunnel import tunnel
from workspace.errors import ConnectError

_OURS = ("schema", "ssh")
_NO_TLS = (
    "set up TLS on the server; where nobody else can be on the way, add sslmode=disable to the DSN: ?sslmode=disable"
)


def parameters(dsn: Dsn) -> dict[str, str]:
    """What libpq is told, of connections and of PostgreSQL's programs alike. TLS is asked for where a network is in
    between and nobody has said otherwise."""
    found = {key: value for key, value in dsn.parameters.items() if key not in _OURS}
    known = {"host": dsn.host, "port": str(dsn.port or ""), "user": dsn.user, "password": dsn.password}
    found.update({key: value for key, value in {**known, "dbname": dsn.database}.items() if value})
    if dsn.ssh:  # under the server's own name, which certificates and ~/.pgpass go by
        way, host, port = dsn.far_end
        found.update({"host": host, "hostaddr": "127.0.0.1", "port": str(tunnel(way, host, port).port())})
    if not _says_itself(found) and not _is_near(found):
        found["sslmode"] = "require"
    return found


def connect(dsn: Dsn, application: str = "packhorse") -> psycopg.Connection[tuple[Any, ...]]:
    """An autocommit connection; `schema` parameters become the search path. ConnectError names the masked DSN."""
    given = parameters(dsn)
    given.setdefault("connect_timeout", "10")
    given.setdefault("application_name", application)
    try:
        connection = psycopg.connect(**given, autocommit=True)  # type: ignore[arg-type]
        _see_encrypted(dsn, given, connection)
        if schema := dsn.parameters.get("schema"):
            connection.execute("SELECT set_config('search_path', %s, false)", [schema])
    except (psycopg.Error, UnicodeError) as error:
        message = dsn.redact(str(error))
        what = f"{_said(message)}{_beside(dsn)}"
        raise ConnectError(what, where=dsn.masked, advice=_advice(message)) from None
    return connection


def _beside(dsn: Dsn) -> str:
    """What ssh said, where the way leads through one."""
    said = tunnel(*dsn.far_end).said() if dsn.ssh else ""
    return f"; ssh says: {said}" if said else ""


def _says_itself(given: Mapping[str, str]) -> bool:
    """True where a person has said whether TLS is wanted, or a service file may have."""
    named = ("sslmode", "PGSSLMODE"), ("service", "PGSERVICE")
    return any(parameter in given or os.environ.get(variable) for parameter, variable in named)


def _is_near(given: Mapping[str, str]) -> bool:
    """True where libpq will go by a socket or the loopback address."""
    named = given.get("hostaddr") or given.get("host")
    if not named:
        named = os.environ.get("PGHOSTADDR") or os.environ.get("PGHOST") or ""
    return all(map(is_local, named.split(",")))


def _see_encrypted(dsn: Dsn, given: Mapping[str, str], connection: psycopg.Connection[tuple[Any, ...]]) -> None:
    """ConnectError where a service file led over a network without a word on TLS, and there is none."""
    if connection.pgconn.ssl_in_use or "sslmode" in given or os.environ.get("PGSSLMODE"):
        return
    if is_local(connection.info.hostaddr) or "sslmode" in connection.info.get_parameters():
        return
    connection.close()
    raise ConnectError("the server does not encrypt the connection", where=dsn.masked, advice=_NO_TLS)


def reach(dsn: Dsn) -> Reached:
    """What one meets there. ConnectError, CatalogueError."""
    took, connection = timed(lambda: connect(dsn))
    with closing(connection):
        trip = min(timed(lambda: connection.execute("SELECT 1"))[0] for _ in range(5))
        row = connection.execute("SELECT current_setting('server_version')").fetchone()
        encrypted = ""
        if connection.pgconn.ssl_in_use:
            found = connection.execute(
                "SELECT version FROM pg_stat_ssl WHERE pid = pg_backend_pid() AND ssl"
            ).fetchone()
            encrypted = str(found[0]) if found else "TLS"  # a pooler in between has the server's end
        return Reached(f"PostgreSQL {row[0] if row else '?'}", encrypted, took, trip)


def _said(message: str) -> str:
    """The driver's last clause: it lists each address tried, one line is enough."""
    if "server does not support SSL" in message:
        return "the server does not encrypt the connection"
    for mark in ("FATAL:", "ERROR:"):
        if mark in message:
            return message.rsplit(mark, 1)[1].strip()[:200]
    return message.removeprefix("connection failed: ")[:200]


def _advice(message: str) -> str:
    low = message.lower()
    if "password authentication failed" in low or "no password supplied" in low:
        return "check user and password of the DSN"
    if "server does not support ssl" in low:
        return _NO_TLS
    if "certificate" in low or "ssl" in low:
        return "check sslmode, sslrootcert, sslcert and sslkey in the DSN"
    if "does not exist" in low and "database" in low:
        return "check the database's name, or create it"
    if "does not exist" in low and "role" in low:
        return "check the DSN's user"
    if "could not translate host" in low or "resolve host" in low or "name or service" in low:
        return "check the DSN's host"
    if "refused" in low or "no such file" in low:
        return "check host and port, and that the server runs"
    if "timeout" in low or "timed out" in low:
        return "check host, port and firewall"
    return "check the DSN"
