"""Makes values plain: JSON types and sound text only, so that an event reads back as it was recorded.

It never raises for a value of a database or of a model; it refuses only what must not be written down (a
password in a DSN).
"""

from __future__ import annotations

import math
import re
import signal
from collections.abc import Iterable, Mapping, Set
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any
from urllib.parse import parse_qsl, urlsplit

_SETTING = re.compile(r"\bpassword\s*=\s*'?([^\s'&]+)", re.IGNORECASE)
_SECRET_PARAMETERS = frozenset({"password", "passwd", "pwd", "sslpassword", "ssl_password"})


def as_text(value: Any) -> Any:
    """Text without lone surrogates (they can't be written as UTF-8); anything but text as it came."""
    if isinstance(value, Enum) and isinstance(value.value, str):
        value = value.value
    if isinstance(value, str):
        return str(value.encode("utf-8", "replace"), "utf-8") if not _sound(value) else str(value)
    return value


def plain(value: Any) -> Any:
    """`value` as JSON types. Dates, decimals, UUIDs and paths become text, binary becomes hexadecimal digits,
    sets become sorted lists, NaN and infinities become None, dataclasses become objects."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, Enum):
        return plain(value.value)
    if isinstance(value, str):
        return as_text(value)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {_member_name(key): plain(item) for key, item in value.items()}
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value).hex()
    if isinstance(value, Set):
        return sorted((plain(item) for item in value), key=lambda item: (str(type(item)), str(item)))
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if hasattr(value, "model_dump"):
        return plain(value.model_dump())
    if hasattr(value, "tolist"):  # numpy's scalars and arrays
        return plain(value.tolist())
    if isinstance(value, Iterable):
        return [plain(item) for item in value]
    return as_text(str(value))


def as_key(value: Any) -> Any:
    """A key as a tuple of texts; a single text is a key of one column."""
    if value is None:
        return None
    if isinstance(value, str):
        return (as_text(value),)
    return tuple(as_text(str(item)) for item in value)


def as_confidence(value: Any) -> Any:
    """Rounding of sums of probabilities may leave 0..1 by a hair; it is put back."""
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float) and -1e-6 <= value <= 1 + 1e-6:
        return min(max(value, 0.0), 1.0)
    return value


def as_signal(value: Any) -> Any:
    """A signal's name (`SIGINT`) for its number."""
    if isinstance(value, int):
        try:
            return signal.Signals(value).name
        except ValueError:
            return str(int(value))
    return as_text(value)


def without_password(value: Any) -> Any:
    """The DSN, if its password is masked. ValueError for one that shows it: nothing may write it down."""
    text = as_text(value)
    if not isinstance(text, str):
        return text
    try:
        parts = urlsplit(text)
        shown = [parts.password or "", *_SETTING.findall(text)]
        shown += [item for name, item in parse_qsl(parts.query) if name.lower() in _SECRET_PARAMETERS]
    except ValueError:
        shown = ["unreadable"]
    if not all(set(item) <= {"*"} or (item.startswith("${") and item.endswith("}")) for item in shown):
        # from None and without the text: the message must not carry the password either
        raise ValueError("a DSN must be masked before it is recorded")
    return text


def _sound(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _member_name(key: Any) -> str:
    made = plain(key)
    return made if isinstance(made, str) else ("null" if made is None else str(made))
