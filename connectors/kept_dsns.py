"""DSNs kept under a name: the DSN itself in the machine's keyring, and a list of the names in the user's configuration,
since a keyring can't be asked what it holds.

The list is its owner's alone and holds no secret: neither a password nor a DSN. Nothing else writes a DSN down.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workspace.errors import DsnError, KeyringError, UsageError
from workspace.paths import OWNER_ONLY, config_directory

if TYPE_CHECKING:
    from keyring.backend import KeyringBackend

SERVICE = "packhorse"
"""Under which all our entries stand in a keyring; the name is the entry's user."""
NAME = r"[A-Za-z0-9_][A-Za-z0-9_-]{0,63}"
"""What a name may be: nothing that a DSN, an option or a path with a folder in it could be."""
_VERSION = 1
_OTHERWISE = "without one, set an environment variable or write it into a file .env, and say '${NAME}' for it"


@dataclass(frozen=True)
class KeptDsn:
    """What is shown of a DSN that is kept: which system, and where it is. `host` and `port` are empty for files, whose
    path is the `database`; `ssh` is the host that the way leads through, or empty."""

    name: str
    system: str
    host: str = ""
    port: int | None = None
    database: str = ""
    user: str = ""
    ssh: str = ""


def check_name(name: str) -> str:
    """The name. UsageError where a DSN can't be kept under it."""
    if not re.fullmatch(NAME, name):
        raise UsageError(
            f"{name[:100]!r} can't be a DSN's name",
            advice="use 1 to 64 letters, digits, '-' and '_', with no '-' first",
        )
    return name


def kept_dsns() -> dict[str, KeptDsn]:
    """All that are kept, by name, sorted; empty where none is. UsageError where the list can't be read."""
    file = _file()
    try:
        document = json.loads(file.read_text(encoding="utf-8"))
        if document["version"] > _VERSION:
            raise UsageError(
                "the list of DSNs is of a newer version", where=str(file), advice="update packhorse, or move it away"
            )
        return {name: KeptDsn(name, **told) for name, told in sorted(document["dsns"].items())}
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise UsageError(f"the list of DSNs can't be read: {error.strerror}", where=str(file)) from None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise UsageError(
            "the list of DSNs is damaged", where=str(file),
            advice="move it away; the DSNs themselves stay in the keyring until `migrate dsn add` keeps them again",
        ) from None  # fmt: skip


def is_kept(name: str) -> bool:
    """True where a DSN is kept under that name."""
    return re.fullmatch(NAME, name) is not None and name in kept_dsns()


def kept_dsn(name: str) -> str:
    """The DSN that is kept under that name, as it was given. DsnError where none is, KeyringError where the keyring
    doesn't give it."""
    if name not in kept_dsns():
        raise DsnError(
            f"no DSN is kept under the name {name[:100]}", advice="`migrate dsn list` tells which are; see dsn add"
        )
    with _told("give"):
        found = _keyring().get_password(SERVICE, name)
    if found is None:
        raise KeyringError(
            f"the keyring holds no DSN {name}",
            where=_called(),
            advice=f"keep it anew: migrate dsn add {name} --replace",
        )
    return found


def check_keyring() -> None:
    """KeyringError where this machine has no keyring that keeps anything."""
    _keyring()


def keep(kept: KeptDsn, dsn: str) -> None:
    """Keeps a DSN, in the place of one of the same name. KeyringError where the keyring doesn't take it, and the list is
    then as it was; UsageError where the list can't be written."""
    check_name(kept.name)
    with _list_to_write() as names, _told("keep"):
        keyring = _keyring()
        keyring.set_password(SERVICE, kept.name, dsn)
        if keyring.get_password(SERVICE, kept.name) != dsn:
            raise KeyringError("the keyring doesn't give back what it was given", where=_called(), advice=_OTHERWISE)
        names[kept.name] = kept


def forget(name: str) -> None:
    """Removes a DSN from the keyring, then from the list. DsnError where there is none, KeyringError where the keyring
    doesn't let it go."""
    from keyring.errors import PasswordDeleteError

    if name not in kept_dsns():
        raise DsnError(f"no DSN is kept under the name {name[:100]}", advice="`migrate dsn list` tells which are")
    with _list_to_write() as names, _told("remove"):
        keyring = _keyring()
        with suppress(PasswordDeleteError):  # it was gone already
            keyring.delete_password(SERVICE, name)
        if keyring.get_password(SERVICE, name) is not None:
            raise KeyringError(f"the keyring still holds the DSN {name}", where=_called(), advice="remove it there")
        names.pop(name, None)


def _keyring() -> KeyringBackend:
    """The machine's keyring. KeyringError where there is none."""
    import keyring
    from keyring.backends import fail, null

    try:
        found = keyring.get_keyring()
    except Exception as error:  # a backend that is named and isn't there, a broken configuration
        why = " ".join(str(error).split())[:200] or type(error).__name__
        raise KeyringError(f"the keyring can't be opened: {why}", advice=_OTHERWISE) from None
    if isinstance(found, fail.Keyring | null.Keyring):
        raise KeyringError("this machine has no keyring that could keep a DSN", advice=_OTHERWISE)
    return found


def _called() -> str:
    import keyring

    return f"keyring {keyring.get_keyring().name}"


@contextmanager
def _told(verb: str) -> Iterator[None]:
    """Each backend has errors of its own, some from the desktop behind it: one line for all, without what was kept."""
    try:
        yield
    except KeyringError:
        raise
    except Exception as error:
        raise KeyringError(
            f"the keyring doesn't {verb} the DSN: {type(error).__name__}", where=_called(),
            advice=f"unlock it, then give the command again; {_OTHERWISE}",
        ) from None  # fmt: skip


def _file() -> Path:
    return config_directory() / "dsns.json"


@contextmanager
def _list_to_write() -> Iterator[dict[str, KeptDsn]]:
    """The list, written whole when the block ends well; one process at a time."""
    from filelock import FileLock

    file = _file()
    try:
        file.parent.mkdir(mode=OWNER_ONLY, parents=True, exist_ok=True)
        with FileLock(file.with_suffix(".lock"), timeout=30, mode=0o600):
            names = kept_dsns()
            yield names
            told: dict[str, dict[str, Any]] = {}
            for name, kept in names.items():
                told[name] = {key: value for key, value in asdict(kept).items() if key != "name"}
            _write(file, json.dumps({"version": _VERSION, "dsns": told}, indent=2) + "\n")
    except OSError as error:
        raise UsageError(f"the list of DSNs can't be written: {error.strerror or error}", where=str(file)) from None


def _write(file: Path, text: str) -> None:
    """All or nothing, readable by its owner alone from the first byte on."""
    handle, made = tempfile.mkstemp(prefix=".dsns-", dir=file.parent)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as out:
            out.write(text)
            out.flush()
            os.fsync(out.fileno())
        os.replace(made, file)
    except BaseException:
        with suppress(OSError):
            os.unlink(made)
        raise
