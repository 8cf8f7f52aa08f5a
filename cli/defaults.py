"""`packhorse.toml`: what options are taken to be where neither the command line nor the environment says so.

The first of these is in use, and that one alone: the file that PACKHORSE_DEFAULTS names, the one in the working
directory, the one in the user's configuration directory. It is checked whole, by the options' own types, before any
verb begins. It must never hold a password.
"""

from __future__ import annotations

import os
import re
import stat
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import typer

from cli.secrets import shows_password
from workspace.errors import UsageError
from workspace.paths import config_directory

FILE = "packhorse.toml"
VARIABLE = "PACKHORSE_DEFAULTS"

_NO_PASSWORD = "write '${NAME}' in its place and keep it in the environment, or in ~/.pgpass or ~/.my.cnf"
_LARGEST = 1 << 20  # bytes
_WHERE = re.compile(r" \(at line (\d+), column (\d+)\)$")
_Path = tuple[str, ...]


def places() -> list[Path]:
    """Where a file of defaults is looked for, the first first."""
    named = os.environ.get(VARIABLE)
    if named:
        return [Path(named).expanduser()]
    return [Path(FILE), config_directory() / FILE]


def file_in_use() -> Path | None:
    """The file that defaults come from; None where there is none. One that was named is in use, be it there or not."""
    return next((place for place in places() if place.exists() or os.environ.get(VARIABLE)), None)


def read_defaults(command: Any) -> dict[str, Any]:
    """The defaults for `command`, the tree of all verbs: by verb, then by parameter; empty without a file.

    UsageError, with file and line, for a file that can't be read, an unknown key, a value that its option doesn't
    take, or a password.
    """
    file = file_in_use()
    if file is None:
        return {}
    text = _text(file)
    return _Checking(file, text).tree(_parsed(file, text), command, ())


def _text(file: Path) -> str:
    """What the file holds. UsageError where somebody else may have written it: its commands run as this user."""
    try:
        with file.open("rb") as opened:
            found = os.fstat(opened.fileno())
            if stat.S_ISREG(found.st_mode) and _of_others(found):
                raise UsageError(
                    "the file of defaults can be written by another user",
                    where=str(file),
                    advice=f"make it yours: chmod o-w {file}; or name your own with {VARIABLE}",
                )
            data = opened.read(_LARGEST + 1)
    except OSError as error:
        raise UsageError(f"can't read the file of defaults: {error.strerror}", where=str(file)) from None
    if len(data) > _LARGEST:
        raise UsageError("the file of defaults is larger than a megabyte", where=str(file))
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise UsageError("the file of defaults is not UTF-8", where=str(file)) from None


def _of_others(found: os.stat_result) -> bool:
    """True where somebody but this user and root may write it; root itself works on files of all owners."""
    return bool(found.st_mode & stat.S_IWOTH) or (os.geteuid() != 0 and found.st_uid not in (0, os.geteuid()))


def _parsed(file: Path, text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        found = _WHERE.search(str(error))
        where = f"{file}:{found[1]}:{found[2]}" if found else str(file)
        raise UsageError(
            f"this is no TOML: {_WHERE.sub('', str(error))}",
            where=where,
            advice='a line is KEY = VALUE, as in zone = "UTC"',
        ) from None
    except RecursionError:
        raise UsageError("the file of defaults is nested too deeply", where=str(file)) from None


class _Checking:
    """Holds a file against the tree of verbs."""

    def __init__(self, file: Path, text: str) -> None:
        self._file, self._text = file, text

    def tree(self, table: Mapping[str, Any], command: Any, path: _Path) -> dict[str, Any]:
        """The defaults of the verbs below `command`."""
        checked = {}
        for name, value in table.items():
            here = (*path, name)
            child = command.commands.get(name)
            if child is None:
                raise self._unknown("verb", here, list(command.commands))
            if not isinstance(value, dict):
                raise self._refused(
                    f"{name} is a verb, so it is a table of its options", here, f"write [{'.'.join(here)}]"
                )
            checked[name] = (self.tree if getattr(child, "commands", None) else self._verb)(value, child, here)
        return checked

    def _verb(self, table: Mapping[str, Any], command: Any, path: _Path) -> dict[str, Any]:
        known = {key: each for each in command.params for key in _keys(each)}
        context = typer.Context(command, info_name=" ".join(("migrate", *path)))
        checked = {}
        for name, value in table.items():
            here = (*path, name)
            if name not in known:
                raise self._unknown(f"option of migrate {' '.join(path)}", here, list(known))
            checked[known[name].name] = self._value(known[name], value, context, here)
        return checked

    def _value(self, parameter: Any, value: Any, context: Any, path: _Path) -> Any:
        items = value if isinstance(value, list) else [value]
        if any(isinstance(each, str) and shows_password(each) for each in items):
            raise self._refused("a password may not stand in a file of defaults", path, _NO_PASSWORD)
        many = getattr(parameter, "multiple", False)
        flag = getattr(parameter, "is_flag", False)
        fits = (bool,) if flag else (str, int, float)
        wanted = "true or false" if flag else "a text or a number" + (", or a list of them" if many else "")
        if (isinstance(value, list) and not many) or any(
            not isinstance(each, fits) or (isinstance(each, bool) and not flag) for each in items
        ):
            raise self._refused(f"{path[-1]} takes {wanted}", path)
        given = [str(each) for each in items] if many else value if flag else str(value)
        try:
            parameter.process_value(context, given)
        except typer.BadParameter as error:
            raise self._refused(f"{path[-1]}: {error.message}", path) from None
        except UsageError as error:  # of a check of our own
            raise self._refused(f"{path[-1]}: {error.what}", path, error.advice) from None
        return given

    def _unknown(self, what: str, path: _Path, known: list[str]) -> UsageError:
        from engine.known_names import listed, near

        return self._refused(
            f"there is no {what} {path[-1]!r}{near(path[-1], known)}", path, f"there are: {listed(known)}"
        )

    def _refused(self, what: str, path: _Path, advice: str = "") -> UsageError:
        return UsageError(what, where=f"{self._file}:{self._line(path)}", advice=advice)

    def _line(self, path: _Path) -> int:
        """Where the key stands: after the last line up to which the file is TOML that lacks it."""
        lines, before = self._text.split("\n"), 0
        for number in range(1, len(lines) + 1):
            try:
                found: Any = tomllib.loads("\n".join(lines[:number]))
            except tomllib.TOMLDecodeError:
                continue  # within a value of several lines
            for name in path:
                found = found.get(name) if isinstance(found, dict) else None
            if found is not None:
                break
            before = number
        return before + 1


def _keys(parameter: Any) -> Iterator[str]:
    """What a parameter is called in the file: its long option without the dashes, an argument's name."""
    if parameter.param_type_name == "argument":
        yield parameter.name
    elif not parameter.is_eager:
        yield from (each[2:] for each in parameter.opts if each.startswith("--"))
