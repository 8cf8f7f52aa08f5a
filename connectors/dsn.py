"""A DSN: read, masked, and opened; the only place that chooses which class serves a system.

A password goes from here to a driver and nowhere else: `repr`, `str`, `masked` and `identity` never hold it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import parse_qs, parse_qsl, quote, quote_plus, unquote

from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError

from connectors.copy_of_target import Copy
from connectors.kept_dsns import NAME, is_kept, kept_dsn
from connectors.measures import Reached, timed
from connectors.protocols import Source
from connectors.target import Target
from connectors.tunnel import check_way, held, hold, host_of
from connectors.variables import Variables
from workspace.errors import DsnError

_SYSTEMS = {
    "mysql": "mysql",
    "mariadb": "mysql",
    "postgresql": "postgres",
    "postgres": "postgres",
    "sqlite": "sqlite",
    "csv": "csv",
    "file": "csv",
}
_PORTS = {"mysql": 3306, "postgres": 5432}
_SCHEMES = {"mysql": "mysql", "postgres": "postgresql", "sqlite": "sqlite", "csv": "csv"}
_PLACE = ("host", "port", "unix_socket", "schema")
_FILES = (".csv", ".tsv", ".xlsx", ".xlsm", ".jsonl", ".ndjson", ".zip")
_VARIABLE = re.compile(r"\$\{([^}]*)\}")
_NAMED = re.compile(rf"(?:\$\{{(?P<variable>[^}}]*)\}}|(?P<kept>{NAME}))(?:\?(?P<more>.*))?", re.DOTALL)
_SECRET_PARAMETER = re.compile(r"pass(word|wd|phrase)?$|pwd$|secret|token", re.IGNORECASE)
_FORMS = (
    "use mysql://, mariadb://, postgresql://, sqlite:///FILE, CSV, XLSX or JSONL files (one, or a folder or zip of them), or a"
    " name of `migrate dsn list`"
)


@dataclass(frozen=True, repr=False)
class Dsn:
    """Where a system is and how to log in.

    `system` is mysql, postgres, sqlite or csv. `path` is the file or folder of the last two, else None.
    `parameters` are the query part, decoded (`ssl_ca`, `sslmode`, `host`, `unix_socket`, `schema`, ...).
    """

    system: str
    user: str = ""
    password: str = field(default="")
    host: str = ""
    port: int | None = None
    database: str = ""
    parameters: Mapping[str, str] = field(default_factory=dict)
    path: Path | None = None

    @classmethod
    def parse(cls, text: str, variables: Mapping[str, str] | None = None) -> Dsn:
        """The DSN that `text` spells: a URL, a path, the name of one that is kept, or `${NAME}` for a variable that
        holds one of these, or else for one that is kept; `?parameters` may follow a name.

        `${NAME}` may also stand for one part of a URL (`mysql://crm:${PW}@db/crm`); its value needs no
        percent-encoding there. `variables` are the environment's and those of `.env` where they aren't given. Raises
        DsnError, which never quotes a password, and KeyringError.
        """
        variables = Variables() if variables is None else variables
        text = text.strip()
        if (named := _NAMED.fullmatch(text)) and (spelt := _spelt(named, variables)) is not None:
            dsn = _parse(spelt.strip(), variables)
            more = {key: _resolve(_one(key, value), variables) for key, value in parse_qs(named["more"] or "").items()}
            return _checked(replace(dsn, parameters={**dsn.parameters, **more}))
        return _checked(_parse(text, variables))

    @property
    def ssh(self) -> str:
        """The host that the way leads through, as `user@host:port`; empty for none."""
        return self.parameters.get("ssh", "")

    @property
    def far_end(self) -> tuple[str, str, int]:
        """The tunnel to take, where there is one: through whom, and to which host and port as that one calls them."""
        return self.ssh, self.host or "localhost", self.port or _PORTS[self.system]

    @property
    def is_local(self) -> bool:
        """True where nothing of it goes over a network in the clear by itself: a file, a socket, the loopback address, or
        ssh."""
        if self.path is not None or self.ssh:
            return True
        named = self.parameters.get("hostaddr") or self.host or self.parameters.get("host", "")
        return all(is_local(host) for host in named.split(","))

    @property
    def masked(self) -> str:
        """The DSN as it may be shown: each password is `***`."""
        if self.path is not None:
            if self.system == "csv" and not self.parameters:
                return str(self.path)
            query = "&".join(f"{key}={quote(value, safe='/*,')}" for key, value in sorted(self.parameters.items()))
            return f"{self.system}:///{self.path}" + (f"?{query}" if query else "")
        login = quote(self.user, safe="") + (":***" if self.password else "")
        return self._url(f"{login}@" if login else "", self.port, self.parameters)

    @property
    def identity(self) -> str:
        """Which system this is, without user, password or what only concerns the way there.

        Stable across runs: it is the source's name in the crosswalk.
        """
        if self.path is not None:
            return f"{self.system}:///{self.path.expanduser().resolve()}"
        if self.ssh and is_local(self.host):  # the loopback address is of the host that the way leads through
            return replace(self, host=host_of(self.ssh), parameters={**self.parameters, "ssh": ""}).identity
        place = {key: value for key, value in self.parameters.items() if key in _PLACE}
        port = self.port or (None if place.keys() & {"host", "unix_socket"} else _PORTS[self.system])
        return self._url("", port, place)

    def _url(self, login: str, port: int | None, parameters: Mapping[str, str]) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host.lower()
        query = "&".join(
            f"{key}=" + ("***" if _SECRET_PARAMETER.search(key) else quote_plus(value, safe="/,"))
            for key, value in sorted(parameters.items())
        )
        place = f"{host}:{port}" if port else host
        url = f"{_SCHEMES[self.system]}://{login}{place}/{quote(self.database, safe='')}"
        return f"{url}?{query}" if query else url

    def redact(self, message: str) -> str:
        """A driver's message on one line, without this DSN's passwords should the driver quote them."""
        secrets = [self.password, *(v for k, v in self.parameters.items() if _SECRET_PARAMETER.search(k))]
        for secret in filter(None, secrets):
            for spelling in {secret, quote(secret, safe=""), quote_plus(secret)}:
                message = re.sub(rf"(?<!\w){re.escape(spelling)}(?!\w)", "***", message)
        return " ".join(message.split())

    def __repr__(self) -> str:
        return f"Dsn({self.masked!r})"

    def __str__(self) -> str:
        return self.masked


def resolved(text: str) -> str:
    """`text` with the value of its variable in each `${NAME}`'s place. DsnError where there is no such variable."""
    return _resolve(text, Variables())


def through(text: str, way: str | None) -> str:
    """The DSN as it was given, led through the host that ssh logs in to; as it is without one. DsnError for a host that
    ssh may not be told, or another one than it names itself."""
    if not way:
        return text
    text = text.strip()
    if named := re.search(r"[?&]ssh=([^&]*)", text):
        if unquote(named[1]) == check_way(way):
            return text
        raise DsnError("the DSN names a host to go through itself", where=f"ssh {way[:100]}", advice="name one of them")
    end = text.rpartition("@")[2] if "://" in text else text  # a ? may stand in a password
    return f"{text}{'&' if '?' in end else '?'}ssh={quote(check_way(way), safe='')}"


def keeps_no_secret(text: str) -> bool:
    """True for a DSN as it was given that holds no secret itself: it has none, or its password is a `${NAME}`, or it is
    a name."""
    text = text.strip()
    name = _NAMED.fullmatch(text)
    if name is not None and (name["variable"] is not None or is_kept(name["kept"])):
        return not any(_SECRET_PARAMETER.search(key) for key, _ in parse_qsl(name["more"] or ""))
    stand_in = {name: f"variable-{name}" for name in _VARIABLE.findall(text)}
    try:
        named = Dsn.parse(text, stand_in)
    except DsnError:
        return False
    return "***" not in named.masked or (named.password in stand_in.values() and named.masked.count("***") == 1)


def open_source(dsn: Dsn | str) -> Source:
    """A source to read from, connected. Raises DsnError, ConnectError."""
    dsn = Dsn.parse(dsn) if isinstance(dsn, str) else dsn
    if not dsn.ssh:
        return _open_source(dsn)
    with held(*dsn.far_end):
        source = _open_source(dsn)
        hold(source, *dsn.far_end)
        return source


def _open_source(dsn: Dsn) -> Source:
    if dsn.system == "mysql":
        from connectors.mysql import MysqlSource

        return MysqlSource(dsn)
    if dsn.system == "postgres":
        from connectors.postgres_source import PostgresSource

        return PostgresSource(dsn)
    if dsn.system == "sqlite":
        from connectors.sqlite import SqliteSource

        return SqliteSource(dsn)
    from connectors.csv import CsvSource

    return CsvSource(dsn)


def reach(dsn: Dsn) -> Reached:
    """What one meets at a system: it is connected to, asked who it is, and left. Raises ConnectError and its kin."""
    if not dsn.ssh:
        return _reach(dsn)
    with held(*dsn.far_end):
        return _reach(dsn)


def _reach(dsn: Dsn) -> Reached:
    if dsn.system == "mysql":
        from connectors.mysql_connection import reach as reached

        return reached(dsn)
    if dsn.system == "postgres":
        from connectors.postgres_connection import reach as reached

        return reached(dsn)
    took, source = timed(lambda: open_source(dsn))
    try:
        return Reached(source.catalogue().server, "", took)
    finally:
        source.close()


def open_target(dsn: Dsn | str, schema: str | None = None) -> Target:
    """A target to write to, connected; our records are in its `schema`, by default `packhorse`. Raises DsnError where
    the system cannot be one, ConnectError, UsageError for a name that no schema can have."""
    dsn = Dsn.parse(dsn) if isinstance(dsn, str) else dsn
    opens: Callable[..., Target]
    if dsn.system == "postgres":
        from connectors.postgres import PostgresTarget as opens
    elif dsn.system == "mysql":
        from connectors.mysql_target import MysqlTarget as opens
    elif dsn.system == "sqlite":
        from connectors.sqlite_target import SqliteTarget as opens
    else:
        raise DsnError(
            f"{_SCHEMES[dsn.system]} cannot be a target",
            where=dsn.masked,
            advice="a target is a database: postgresql://, mysql:// or sqlite:///FILE",
        )
    if not dsn.ssh:
        return opens(dsn, schema) if schema is not None else opens(dsn)
    with held(*dsn.far_end):
        target = opens(dsn, schema) if schema is not None else opens(dsn)
        hold(target, *dsn.far_end)
        return target


def check_copy(dsn: Dsn, into: Dsn | None) -> None:
    """DsnError where a target can't be copied to rehearse in, or not into a system such as that of `into`."""
    for system, here in ((dsn, "a rehearsal needs a PostgreSQL target"), (into, "can't stand in for the target")):
        if system is not None and system.system != "postgres":
            raise DsnError(
                here if system is dsn else f"{_SCHEMES[system.system]} {here}", where=system.masked,
                advice="try the job on a copy of the target instead" if system is dsn
                else "name an empty PostgreSQL database: postgresql://user@host/database",
            )  # fmt: skip


def open_copy(
    dsn: Dsn, target: Target, filled: Sequence[str], folder: Path, into: Dsn | None
) -> AbstractContextManager[Copy]:
    """An empty copy of a target that is open, and whose DSN is given: in a server of our own that goes with the block,
    or `into` an empty database, which stays. `filled` are the tables that rows will go into; `folder` is for files.

    DsnError as `check_copy`; at the block's entry CatalogueError where one of the tables can't be made, UsageError
    where `into` isn't empty, JobFailedError."""
    check_copy(dsn, into)
    from connectors.postgres import PostgresTarget
    from connectors.postgres_copy import empty_copy

    assert isinstance(target, PostgresTarget)
    return empty_copy(dsn, target, filled, folder, into)


def _spelt(named: re.Match[str], variables: Mapping[str, str]) -> str | None:
    """The text that a whole `${NAME}`, or the name of a DSN that is kept, stands for; None for a word that is neither.
    DsnError where it may mean two things, or nothing."""
    name = named["variable"]
    if name is not None:
        if name not in variables and is_kept(name):
            return kept_dsn(name)
        value = _resolve(f"${{{name}}}", variables)
        return kept_dsn(value) if is_kept(value) and not Path(value).exists() else value
    name = named["kept"]
    if not is_kept(name):
        return None
    if Path(name).exists():
        raise DsnError(
            f"{name} is the name of a DSN that is kept, and of a file or folder here", where=name,
            advice=f"say '${{{name}}}' for the DSN, ./{name} for the file or folder",
        )  # fmt: skip
    return kept_dsn(name)


def _resolve(text: str, variables: Mapping[str, str]) -> str:
    """`text` with each `${NAME}` replaced. DsnError where there is no such variable."""

    def value(match: re.Match[str]) -> str:
        if match[1] not in variables:
            raise DsnError(
                f"the environment variable {match[1]} is not set",
                where=match[0],
                advice=f"export {match[1]}=..., or write {match[1]}=... into a file .env here",
            )
        return variables[match[1]]

    return _VARIABLE.sub(value, text)


def _parse(text: str, variables: Mapping[str, str]) -> Dsn:
    if not text:
        raise DsnError("an empty DSN", advice=_FORMS)
    if "://" in text:
        return _parse_url(text, variables)
    return _parse_path(_resolve(text, variables))


def _checked(dsn: Dsn) -> Dsn:
    """The DSN, where ssh can lead to it or isn't to. DsnError."""
    if "ssh" not in dsn.parameters:
        return dsn
    check_way(dsn.ssh)
    other = next((name for name in ("unix_socket", "host", "hostaddr", "service") if name in dsn.parameters), None)
    if dsn.path is not None or other or dsn.host.startswith(("/", "@")):
        raise DsnError(
            "ssh leads to a host and port alone", where=dsn.masked,
            advice=f"leave {other} out of the DSN" if other else "name the server's host and port, as seen from there",
        )  # fmt: skip
    return dsn


def _parse_url(text: str, variables: Mapping[str, str]) -> Dsn:
    scheme = text.partition("://")[0]
    system = _SYSTEMS.get(scheme.partition("+")[0].lower())
    if system is None:
        raise DsnError(f"unknown scheme {scheme!r} in a DSN", where=_roughly_masked(text), advice=_FORMS)
    # an @ in it would pass for the login's
    text = re.sub(r"([?&]ssh=)([^&]*)", lambda found: found[1] + found[2].replace("@", "%40"), text)
    try:
        url = make_url(text)
    except (ArgumentError, ValueError):
        raise DsnError(
            "a DSN that cannot be read",
            where=_roughly_masked(text),
            advice=f"write it as {scheme}://user@host:port/database",
        ) from None
    parameters = {key: _resolve(_one(key, value), variables) for key, value in url.query.items()}
    database = _resolve(url.database or "", variables)
    if system == "csv":
        return Dsn(system, parameters=parameters, path=_parse_path(database).path)
    if system == "sqlite":
        if database in ("", ":memory:"):
            raise DsnError("a SQLite DSN without a file", where=text, advice="write it as sqlite:///crm.db")
        return Dsn(system, parameters=parameters, path=Path(database).expanduser())
    authority = text.partition("://")[2].partition("?")[0]
    login_lost = "@" in authority and url.username is None and not authority.startswith("@")
    if login_lost or "@" in (url.host or ""):
        raise DsnError(
            "a DSN with more than one @, or a / before it",
            where=_roughly_masked(text),
            advice="write @ in a name or password as %40, : as %3A and / as %2F",
        )
    if not database:
        raise DsnError(
            "a DSN that names no database",
            where=_roughly_masked(text),
            advice=f"write it as {scheme}://user@host:port/database",
        )
    return Dsn(
        system,
        user=_resolve(url.username or "", variables),
        password=_resolve(str(url.password or ""), variables),
        host=_resolve(url.host or "", variables),
        port=url.port,
        database=database,
        parameters=parameters,
    )


def _one(key: str, values: str | Sequence[str]) -> str:
    """A parameter's value: of one given several times the last, and all of those that may be."""
    if isinstance(values, str):
        return values
    return ",".join(values) if key in ("sheet", "together") else values[-1]


def _parse_path(text: str) -> Dsn:
    path = Path(text).expanduser()
    if path.is_dir() or path.suffix.lower() in _FILES:
        return Dsn("csv", path=path)
    if path.suffix.lower() in (".db", ".sqlite", ".sqlite3") and path.is_file():
        return Dsn("sqlite", path=path)
    if path.exists():
        raise DsnError(f"{path.suffix or 'such'} files cannot be read", where=text, advice=_FORMS)
    what = "neither a DSN nor a file or folder that is there, nor the name of a DSN that is kept"
    raise DsnError(what, where=_roughly_masked(text), advice=_FORMS)


def is_local(host: str) -> bool:
    """True for a host that no network leads to: a socket (also where it is empty), or the loopback address."""
    if not host or host.startswith(("/", "@")) or host.lower() == "localhost":
        return True
    try:
        return ip_address(host.partition("%")[0]).is_loopback
    except ValueError:
        return False


def _roughly_masked(text: str) -> str:
    """A DSN that does not parse, without whatever may be a password in it."""
    head, _, query = text.partition("?")
    head = re.sub(r"(//|^)[^@]*@(.*@)?", r"\1***@", head)
    if "@" in query:  # the ? may stand in a password
        return head.partition("://")[0] + "://***"
    query = "&".join(re.sub(r"=.*", "=***", part) for part in query.split("&")) if query else ""
    return f"{head}?{query}" if query else head
