"""A connection to MySQL or MariaDB from a DSN, set up for reading, and its errors in one clear line.

The driver, mysqlclient, is optional and imported here only. Sessions are made read-only; the server is
never let read a local file through us.
"""

from __future__ import annotations

import contextlib
from types import ModuleType
from typing import Any

from connectors.dsn import Dsn, is_local
from connectors.measures import Reached, timed
from connectors.tunnel import tunnel
from workspace.errors import CatalogueError, ConnectError, DsnError, PackhorseError, UsageError

_SSL = ("ca", "capath", "cert", "key", "cipher")
_ENCRYPTED = ("REQUIRED", "VERIFY_CA", "VERIFY_IDENTITY")
_UNENCRYPTED = ("DISABLED", "PREFERRED")
_NO_TLS = "set up TLS on the server; where nobody else can be on the way, add ssl_mode=DISABLED to the DSN: ?ssl_mode=DISABLED"
_NUMBERS = ("connect_timeout", "read_timeout", "write_timeout")
_TEXTS = (
    "unix_socket",
    "ssl_mode",
    "auth_plugin",
    "server_public_key_path",
    "read_default_file",
    "read_default_group",
)

# Long reads must not end because we were slow to take a page, or because a report would have been.
_SETTINGS = (
    "time_zone = '+00:00'",
    "group_concat_max_len = 67108864",  # MySQL cuts at 1024 bytes without a word
    "net_write_timeout = 3600",
    "net_read_timeout = 3600",
    "wait_timeout = 86400",
    "max_statement_time = 0",
    "max_execution_time = 0",
    "idle_readonly_transaction_timeout = 0",
    "idle_transaction_timeout = 0",
)

# What doesn't fit is refused, and an id of 0 is one.
_STRICT = (
    "STRICT_ALL_TABLES,NO_ZERO_DATE,NO_ZERO_IN_DATE,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION,"
    "NO_AUTO_VALUE_ON_ZERO"
)
_FOUND_ROWS = 2  # an UPDATE tells how many rows it found, changed or not

_NO_TLS_MADE = 2026
_NO_CONNECTION = {
    1040: ("the server has no connection free", "end other connections, or raise max_connections"),
    1044: ("the user may not use this database", "ask for GRANT SELECT ON the database"),
    1045: ("the server refuses the user or the password", "check both; %-encode special characters"),
    1049: ("there is no such database", "check the database in the DSN"),
    1130: ("the server does not let this host in", "ask for a grant from this host"),
    1698: ("the server refuses the user or the password", "check both; %-encode special characters"),
    2002: ("no server answers there", "check host, port or socket, and that the server runs"),
    2003: ("no server answers there", "check host, port or socket, and that the server runs"),
    2005: ("the host is not known", "check the host in the DSN"),
    _NO_TLS_MADE: ("the encrypted connection was not made", "check ssl_mode and ssl_ca in the DSN"),
}
_NO_PRIVILEGE = (1142, 1143, 1227, 1356, 1370)
_NOT_THERE = (1146, 1109, 1051)
LOST = (1053, 1080, 1152, 1159, 1160, 1161, 1317, 1927, 2006, 2013, 2055)


def driver() -> ModuleType:
    """mysqlclient's module. UsageError, with what to install, where it is missing."""
    try:
        import MySQLdb
    except ImportError as error:
        raise UsageError(
            f"MySQL and MariaDB need the driver mysqlclient, which is missing here: {error}",
            advice="pip install packhorse[mysql]; first apt install libmariadb-dev pkg-config, or the like",
        ) from None
    return MySQLdb  # type: ignore[no-any-return]


def connect(dsn: Dsn, *, conv: dict[Any, Any], use_unicode: bool) -> Any:
    """A read-only session in autocommit, in UTC, in utf8mb4, with no sql_mode. ConnectError, DsnError.

    `conv` and `use_unicode` say what values arrive as; with neither they are the server's bytes.
    """
    module = driver()
    try:
        connection = module.connect(
            **_arguments(dsn),
            conv=conv,
            use_unicode=use_unicode,
            charset="utf8mb4",
            autocommit=True,
            multi_statements=False,
        )
    except module.Error as error:
        raise connect_error(dsn, error) from None
    _see_encrypted(dsn, connection)
    cursor = connection.cursor()
    cursor.execute("SET SESSION sql_mode = ''")
    cursor.execute("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")
    for setting in _SETTINGS:
        with contextlib.suppress(module.Error):  # not every version has each
            cursor.execute(f"SET SESSION {setting}")
    cursor.execute("SET SESSION TRANSACTION READ ONLY")
    cursor.close()
    return connection


def connect_to_write(dsn: Dsn) -> Any:
    """A session in autocommit that writes: strict, in UTC, in utf8mb4, and with LOCAL INFILE where the DSN doesn't say
    `local_infile=0`. ConnectError, DsnError."""
    module = driver()
    local = dsn.parameters.get("local_infile", "1") != "0"
    try:
        connection = module.connect(
            **{**_arguments(dsn), "local_infile": int(local)},
            charset="utf8mb4",
            autocommit=True,
            client_flag=_FOUND_ROWS,
        )
    except module.Error as error:
        raise connect_error(dsn, error) from None
    _see_encrypted(dsn, connection)
    cursor = connection.cursor()
    cursor.execute("SET NAMES utf8mb4 COLLATE utf8mb4_bin")
    cursor.execute(f"SET SESSION sql_mode = '{_STRICT}'")
    cursor.execute("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")
    for setting in _SETTINGS:
        with contextlib.suppress(module.Error):  # not every version has each
            cursor.execute(f"SET SESSION {setting}")
    cursor.close()
    return connection


def _see_encrypted(dsn: Dsn, connection: Any) -> None:
    """ConnectError where TLS was wanted and isn't there: some versions of the driver take the wish and go on without,
    and an option file may lead over a network by itself."""
    mode = dsn.parameters.get("ssl_mode", "").upper()
    near = is_local(connection.get_host_info().partition(" via ")[0])
    if mode in _UNENCRYPTED or (near and mode not in _ENCRYPTED):
        return
    with contextlib.closing(connection.cursor()) as cursor:
        encrypted = cursor.execute("SHOW SESSION STATUS LIKE 'Ssl_cipher'") and cursor.fetchone()[1]
    if not encrypted:
        connection.close()
        raise ConnectError("the server does not encrypt the connection", where=dsn.masked, advice=_NO_TLS)


def reach(dsn: Dsn) -> Reached:
    """What one meets there. ConnectError, UsageError where the driver is missing."""
    took, connection = timed(lambda: connect(dsn, conv={}, use_unicode=True))
    with contextlib.closing(connection), contextlib.closing(connection.cursor()) as cursor:
        trip = min(timed(lambda: cursor.execute("SELECT 1"))[0] for _ in range(5))
        cursor.execute("SELECT VERSION()")
        version = _text(cursor.fetchone()[0])
        encrypted = cursor.execute("SHOW SESSION STATUS LIKE 'Ssl_version'") and _text(cursor.fetchone()[1])
    return Reached(server_name(version), encrypted or "", took, trip)


def server_name(version: str) -> str:
    """Product and version, as shown, of what VERSION() gives."""
    return f"{'MariaDB' if 'MariaDB' in version else 'MySQL'} {version.partition('-')[0]}"


def _text(value: bytes | str) -> str:
    return value.decode() if isinstance(value, bytes) else value


def _arguments(dsn: Dsn) -> dict[str, Any]:
    arguments: dict[str, Any] = {
        "database": dsn.database,
        "user": dsn.user,
        "password": dsn.password,
        "host": dsn.host,
        "port": dsn.port or 0,
        "connect_timeout": 15,
        # a server may ask for any file of ours when it pleases; never answer
        "local_infile": 0,
    }
    if dsn.host == "localhost" and dsn.port:
        arguments["host"] = "127.0.0.1"  # the driver takes localhost for the socket, whatever the port
    if dsn.ssh:
        arguments.update(host="127.0.0.1", port=tunnel(*dsn.far_end).port())
    ssl = {}
    for name, value in dsn.parameters.items():
        if name.removeprefix("ssl_") in _SSL and name.startswith("ssl_"):
            ssl[name.removeprefix("ssl_")] = value
        elif name in _NUMBERS and value.isdigit():
            arguments[name] = int(value)
        elif name in _TEXTS:
            arguments[name] = value
        elif name in ("password", "passwd"):
            arguments["password"] = value
        elif name == "compress":
            arguments["compress"] = 1
        elif name not in ("charset", "local_infile", "ssh"):  # text always comes as utf8mb4, whatever tables hold
            raise DsnError(
                f"the parameter {name} is not known, or has a wrong value",
                where=dsn.masked,
                advice=f"known: {', '.join(_TEXTS + _NUMBERS)}, ssl_{', ssl_'.join(_SSL)}, compress",
            )
    if ssl:
        arguments["ssl"] = ssl
    if not dsn.is_local:
        arguments.setdefault("ssl_mode", "REQUIRED")
    return {name: value for name, value in arguments.items() if value not in ("", None)}


def connect_error(dsn: Dsn, error: Exception) -> ConnectError:
    """The clear line for a connection that was not made."""
    number, message = error_parts(error)
    what, advice = _NO_CONNECTION.get(
        number, (f"the server refuses the connection: {dsn.redact(message)[:200]}", "check the DSN")
    )
    if number == _NO_TLS_MADE:
        what = f"{what}: {dsn.redact(message)[:200]}"
        advice = advice if any(name.startswith("ssl_") for name in dsn.parameters) else _NO_TLS
    if dsn.ssh and (said := tunnel(*dsn.far_end).said()):
        what = f"{what}; ssh says: {said}"
    return ConnectError(what, where=dsn.masked, advice=advice)


def query_error(dsn: Dsn, error: Exception) -> PackhorseError:
    """The clear line for a query that the server did not take."""
    number, message = error_parts(error)
    message = dsn.redact(message)[:300]
    if number in _NO_PRIVILEGE:
        return ConnectError(f"the user lacks a privilege: {message}", where=dsn.masked, advice="ask for GRANT SELECT")
    if number in LOST:
        return ConnectError(f"the connection was lost: {message}", where=dsn.masked, advice="run it again")
    advice = "check the table's name" if number in _NOT_THERE else "check the query in the plan"
    return CatalogueError(f"the server refuses the query: {message}", where=dsn.masked, advice=advice)


def error_parts(error: Exception) -> tuple[int, str]:
    """The server's number and message; 0 where the driver gives none."""
    if len(error.args) >= 2 and isinstance(error.args[0], int):
        return error.args[0], str(error.args[1])
    return 0, str(error)
