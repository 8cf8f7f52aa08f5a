"""What PostgreSQL says went wrong, as what the engine does about it: rows set aside, tried again, or told and ended.

Only what passes by itself is tried again: a connection, a server that restarts, a deadlock, a lock, a time-out, a want
of connections. No message here holds a statement's values.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from weakref import WeakKeyDictionary

import psycopg
from psycopg import sql

from connectors.protocols import RowsRefusedError, TargetBusyError, TargetLostError
from workspace.errors import CatalogueError, JobFailedError

GONE = ("08", "40003", "57P01", "57P02", "57P03", "57P05", "25P03", "25P04")
"""SQLSTATEs (or how they begin) of a connection or a server that is gone, and may come back."""

BUSY: Mapping[str, tuple[str, str]] = {
    "40001": ("could not serialise {}", "see what else writes to these tables"),
    "40P01": ("broke off {} that deadlocked with another transaction", "see what else writes to these tables"),
    "55P03": ("broke off {} that waited for a lock", "see who holds it (pg_locks), or raise lock_timeout"),
    "57014": ("broke off {}", "see who cancels it"),
    "53300": ("has no connection left for {}", "close some, or raise max_connections"),
}
"""What else passes: what the target did with a statement, and what helps where it doesn't pass."""

FOR_GOOD = ("57P04", "3D000", "28")
"""Of a lost connection, what no new one mends."""

_CODES = {
    "23505": "unique",
    "23514": "check",
    "23503": "foreign_key",
    "23502": "required",
    "22001": "length",
    "22003": "range",
    "P0001": "trigger",
}
_last: WeakKeyDictionary[Any, object] = WeakKeyDictionary()


class NotingCursor(psycopg.Cursor[tuple[Any, ...]]):
    """A cursor that remembers the connection's last statement, so that an error can say what kind it was."""

    def execute(self, query: Any, *arguments: Any, **options: Any) -> Any:
        """As psycopg's."""
        _last[self.connection] = query
        return super().execute(query, *arguments, **options)

    def copy(self, statement: Any, *arguments: Any, **options: Any) -> Any:
        """As psycopg's."""
        _last[self.connection] = statement
        return super().copy(statement, *arguments, **options)


def statement_kind(connection: Any) -> str:
    """The kind of the connection's last statement: `a COPY`, `an INSERT`; `a statement` where it had none."""
    query = _last.get(connection, "")
    text = query.as_string(None) if isinstance(query, sql.Composable) else query if isinstance(query, str) else ""
    word = re.match(r"\s*([A-Za-z]+)", text)
    if word is None:
        return "a statement"
    return f"{'an' if word[1][0] in 'AEIOUaeiou' else 'a'} {word[1].upper()}"


def told(error: psycopg.Error, dsn: str, *, lost: bool, kind: str = "a statement", timeout: str = "0") -> Exception:
    """The error as the engine knows it. `lost`: the connection is no more; `kind` and `timeout` are of the statement that
    failed and of the session (`statement_timeout`, 0 for none)."""
    state = error.sqlstate or ""
    message = " ".join((error.diag.message_primary or str(error)).split())[:300]
    if state in BUSY and not lost:
        what, advice = BUSY[state]
        if state == "57014" and timeout != "0":
            what = f"broke off {{}} after its statement timeout of {timeout}"
            advice = "give the target's user more time: ALTER ROLE ... SET statement_timeout = 0"
        return TargetBusyError(f"the target {what.format(kind)}", advice=advice)
    gone = (
        lost or (isinstance(error, psycopg.OperationalError) and not state) or state.startswith(GONE) or state in BUSY
    )
    if gone and not state.startswith(FOR_GOOD):
        return TargetLostError(message)
    if state.startswith(("22", "23")) or state == "P0001":
        line = re.search(r"COPY [^,]+, line (\d+)(?:, column ([^:\n]+):)?", error.diag.context or "")
        return RowsRefusedError(
            _CODES.get(state, "cast" if state.startswith("22") else "database"),
            message,
            constraint=error.diag.constraint_name or "",
            column=error.diag.column_name or (line[2] if line and line[2] else ""),
            line=int(line[1]) if line else None,
        )
    if state == "42501":
        return CatalogueError(
            f"the target refuses: {message}",
            where=dsn,
            advice="grant the user of the target DSN what it needs",
        )
    advice = (
        "free some space on the target and run `migrate resume`"
        if state == "53100"
        else "mend the cause and run `migrate resume`"
    )
    return JobFailedError(f"the target failed: {message}", where=dsn, advice=advice)
