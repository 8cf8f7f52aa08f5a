"""The rights that reading needs in MySQL and MariaDB, and whether the session's user has them: asked by trying."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from connectors.grants import Grant
from connectors.mysql_catalogue import quote

Ask = Callable[[str], Sequence[tuple[object, ...]]]
_ALL = re.compile(r"GRANT (?P<what>.*?) ON (?P<on>\S+) TO ", re.IGNORECASE)
_PURPOSE = "survey and reading"


def read_grants(
    ask: Ask, readable: Callable[[str], bool], user: str | None, database: str, tables: Sequence[str] | None
) -> list[Grant]:
    """SELECT on these tables (quoted, with their database), or (None) on all of the database. `readable` tries one.
    A `user` who isn't the session's can't be tried."""
    to = _account(str(ask("SELECT CURRENT_USER()")[0][0])) if user is None else _account(user)
    if tables is None:
        place = f"{quote(database)}.*"
        held = any(_covers(str(row[0]), place) for row in ask("SHOW GRANTS")) if user is None else None
        missing = None if held is None else (() if held else ("SELECT",))
        return [Grant(f"GRANT SELECT ON {place} TO {to}", _PURPOSE, "later", missing)]
    return [
        Grant(
            f"GRANT SELECT ON {table} TO {to}", _PURPOSE, "job",
            None if user is not None else () if readable(table) else ("SELECT",),
        )
        for table in tables
    ]  # fmt: skip


def write_grants(ask: Ask, user: str | None, database: str) -> list[Grant]:
    """What writing needs, in all of the database. The rights of a `user` who isn't the session's can't be seen."""
    to = _account(str(ask("SELECT CURRENT_USER()")[0][0])) if user is None else _account(user)
    place = f"{quote(database)}.*"
    held = [str(row[0]) for row in ask("SHOW GRANTS")] if user is None else None
    needed = (
        (("SELECT", "INSERT", "UPDATE", "CREATE", "CREATE TEMPORARY TABLES"), "loading, verifying, our own tables"),
        (("DELETE",), "our own records, and migrate undo"),
    )
    found = []
    for privileges, purpose in needed:
        missing = None
        if held is not None:
            missing = tuple(p for p in privileges if not any(_covers(line, place, p) for line in held))
        found.append(Grant(f"GRANT {', '.join(privileges)} ON {place} TO {to}", purpose, "job", missing))
    return found


def _covers(granted: str, place: str, privilege: str = "SELECT") -> bool:
    """True where a line of SHOW GRANTS gives the privilege on the place or on all."""
    found = _ALL.match(granted)
    if not found:
        return False
    what = [word.strip().upper() for word in found["what"].split(",")]
    # a database's name is a pattern there, with its _ and % escaped
    return found["on"].replace("\\", "") in (place, "*.*") and (privilege in what or "ALL PRIVILEGES" in what)


def _account(user: str) -> str:
    """`name@host` as an account's name in SQL; every host where none is named."""
    name, at, host = user.rpartition("@")
    if not at:
        name, host = user, "%"
    return "@".join("'" + part.replace("\\", "\\\\").replace("'", "\\'") + "'" for part in (name, host))
