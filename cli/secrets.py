"""Keeps passwords that were typed into a DSN out of the process list.

Runs before anything heavy is imported, so it imports next to nothing. It must never print or keep a password.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import setproctitle

_LOGIN = re.compile(r"([A-Za-z][\w+.-]*://[^:/@?\s]*):(.+)@", re.DOTALL)
_PARAMETER = re.compile(r"([?&][^=&]*(?:pass|pwd|secret|token)[^=&]*=)([^&]+)", re.IGNORECASE)
_THROUGH = re.compile(r"(/[^/?@]*\?(?:[^&@]*&)*ssh=[^&@\s]*)@([^&@/]*)(?=&[^@]*$|$)")
_VARIABLE = re.compile(r"\$\{[^}]*\}")

BETTER_WAYS = (
    "a password typed into a DSN stays in your shell's history; better: '${NAME}' in its place, read from"
    " the environment or .env, `migrate dsn add NAME`, or ~/.pgpass or ~/.my.cnf and no password at all"
)


def masked(argument: str) -> str:
    """The argument with each password of a DSN as `***`; rather too much than too little is hidden."""
    return _PARAMETER.sub(r"\1***", _LOGIN.sub(r"\1:***@", _plain(argument)))


def hide_passwords(arguments: Sequence[str]) -> bool:
    """Masks passwords in the title of this process; True where one stood in the arguments in clear."""
    if all(masked(argument) == _plain(argument) for argument in arguments):
        return False
    setproctitle.setproctitle(" ".join(["migrate", *map(masked, arguments)]))
    return any(shows_password(argument) for argument in arguments)


def shows_password(argument: str) -> bool:
    """True where a password stands there itself and not the name of a variable."""
    found = [match[2] for pattern in (_LOGIN, _PARAMETER) for match in pattern.finditer(_plain(argument))]
    return any(not _VARIABLE.fullmatch(password) for password in found)


def _plain(argument: str) -> str:
    """The argument with the @ of a host to go through (`?ssh=me@host`) written so that it isn't taken for a login's."""
    return _THROUGH.sub(r"\1%40\2", argument)
