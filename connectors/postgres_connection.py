"""A psycopg connection from a DSN, and one clear line where there can't be one."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import psycopg

from connectors.dsn import Dsn
from connectors.measures import Reached, timed
from workspace.errors import ConnectError

_OURS = ("schema",)


def connect(dsn: Dsn, application: str = "packhorse") -> psycopg.Connection[tuple[Any, ...]]:
    """An autocommit connection; `schema` parameters become the search path. ConnectError names the masked DSN."""
    parameters: dict[str, Any] = {k: v for k, v in dsn.parameters.items() if k not in _OURS}
    parameters.setdefault("connect_timeout", "10")
    parameters.setdefault("application_name", application)
    if dsn.host:
        parameters["host"] = dsn.host
    if dsn.port:
        parameters["port"] = dsn.port
    if dsn.user:
        parameters["user"] = dsn.user
    if dsn.password:
        parameters["password"] = dsn.password
    if dsn.database:
        parameters["dbname"] = dsn.database
    try:
        connection = psycopg.connect(**parameters, autocommit=True)
        if schema := dsn.parameters.get("schema"):
            connection.execute("SELECT set_config('search_path', %s, false)", [schema])
    except (psycopg.Error, UnicodeError) as error:
        message = dsn.redact(str(error))
        raise ConnectError(_said(message), where=dsn.masked, advice=_advice(message)) from None
    return connection


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
    for mark in ("FATAL:", "ERROR:"):
        if mark in message:
            return message.rsplit(mark, 1)[1].strip()[:200]
    return message.removeprefix("connection failed: ")[:200]


def _advice(message: str) -> str:
    low = message.lower()
    if "password authentication failed" in low or "no password supplied" in low:
        return "check user and password of the DSN"
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
